"""Comparison of a graph with eager mode, or with another implementation, op by op.

Read next: `compare.py`, both methods of a graph; `eager_run.py`, which records eager; `result.py`, the result.
"""
