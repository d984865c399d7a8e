"""What can be looked at while jobs run: a Blob's numbers, the timeline, the explorer.

Nothing here runs a job. Read next: `timeline.py`.
"""
