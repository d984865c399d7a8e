"""Execution of job steps: the queue and its worker, a step and its handle, records of past steps.

Independent of graphs: the work of a step is a function. Read next: `stream.py`.
"""
