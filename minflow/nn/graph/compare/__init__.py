"""A graph held against eager, or against another implementation, operation by operation.

Read next: `eager_run.py`, which follows eager; `eager_check.py` (`compare_eager`); `compare.py`
(`compare(reference)`).
"""
