"""Text and records of a graph: print(graph), the log of a build, the tree of a failed build, records for views.

Nothing here runs a graph. Read next: `text.py` (print), `build_log.py` (`graph.debug`), `reports.py` (records).
"""
