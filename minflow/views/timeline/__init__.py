"""Who was busy when during a job: the record of a timeline, its text, its picture.

Read next: `record.py`.
"""
