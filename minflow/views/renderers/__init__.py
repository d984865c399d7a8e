"""One module for each kind of display: its record, its text, its picture.

Read next: `tensor.py`.
"""
