"""One file for each kind of thing that is shown: its record, its text, its picture.

Read next: `tensor.py`.
"""
