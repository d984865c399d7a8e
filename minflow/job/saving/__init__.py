"""Checkpoints of job functions: a folder for each variable, and who keeps how many of them.

Read next: `folder.py`, the files; `manager.py`, `flow.train.CheckPoint`.
"""
