"""State and data of `explore(graph)`: the model, the session of one explorer, the details of one row. Plain data for
views.

Read next: `explorer_model.py`, the access to live objects; `session.py`, the open items; `details.py`, one row.
"""
