"""Atomic writes of files. No other part of core accesses the disk. Read next: `atomic.py`."""
