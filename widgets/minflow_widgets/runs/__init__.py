"""Runs kept on disk: one table each, and the same runs on one picture later.

Read next: `log.py`, which writes them; `saved_runs.py`, which reads them; `compare.py`.
"""
