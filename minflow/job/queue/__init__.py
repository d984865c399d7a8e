"""How the steps of jobs run: the one queue and its worker, a step and its handle, what is remembered of each.

Nothing here knows a graph: the work of a step is a function. Read next: `stream.py`.
"""
