"""Inspection of running jobs: the elements of a Blob, the timeline, the explorer.

Nothing here runs a job. Read next: `timeline.py`.
"""
