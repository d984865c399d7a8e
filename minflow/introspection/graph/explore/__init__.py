"""The model of `explore(graph)`: the subject, the session of one explorer, the details of one row. Plain data for
views.

Read next: `subject.py`, the access to live objects; `session.py`, the open items; `details.py`, one row.
"""
