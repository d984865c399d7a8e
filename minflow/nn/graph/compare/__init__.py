"""A graph held against eager, or against another implementation, operation by operation.

Read next: `compare.py`, both methods of a graph; `eager_run.py`, which records eager; `result.py`, what they give.
"""
