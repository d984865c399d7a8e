"""Runs kept on disk, one table each, and pictures that compare them.

Read next: `log.py`, which writes them; `saved_runs.py`, which reads them; `compare.py`.
"""
