"""Checkpoints of job functions: a folder with one subfolder per variable.

Read next: `folder.py`, the files; `manager.py`, `flow.train.CheckPoint`.
"""
