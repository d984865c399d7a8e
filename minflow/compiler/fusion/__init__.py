"""Passes that make a graph faster: layout and fusion. The machine runs what they make; NumPy can, too.

Read next: `blocks.py`, the operations on blocks of channels.
"""
