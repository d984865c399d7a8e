"""Records as text: for terminals, screen readers and golden tests.

Read next: `listing.py`.
"""
