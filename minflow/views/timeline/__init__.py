"""Timeline of a job, when each thread was busy: its record, text and picture.

Read next: `record.py`.
"""
