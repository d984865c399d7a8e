"""The timeline of jobs, live. Read next: `live_timeline.py`."""
