"""Plain frozen records with stable ids that describe what can be shown. Only this package touches live objects.

Read next: `graph.py`, `tape.py`, `module.py`, `reports.py` (reports of a graph).
"""
