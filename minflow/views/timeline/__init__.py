"""Who was busy when: the record of a timeline, its text, its picture.

Read next: `record.py`.
"""
