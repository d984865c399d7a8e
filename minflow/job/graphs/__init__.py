"""Graphs on the stream of job functions: `graph.submit`, and `flow.start` of a graph. Read next: `graph_job.py`."""
