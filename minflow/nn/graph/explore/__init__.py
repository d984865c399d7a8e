"""What `explore(graph)` shows: the subject, the session of one explorer, the details of one row. Plain data for views.

Read next: `subject.py`, the door to live objects; `session.py`, what is open; `details.py`, one row.
"""
