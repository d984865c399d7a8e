"""How a graph is written down: print(graph), the log of a build, what is known where a build failed, records for views.

Nothing here runs a graph. Read next: `text.py` (print), `build_log.py` (`graph.debug`), `reports.py` (records).
"""
