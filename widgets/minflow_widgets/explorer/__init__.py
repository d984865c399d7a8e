"""The explorer of graphs, jobs and models. Read next: `explorer.py`, then `explorer.js`, which draws it."""
