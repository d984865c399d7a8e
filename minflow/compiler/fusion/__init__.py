"""Passes that make a graph faster: layout and fusion. The machine runs what they make; NumPy can, too.

Read in this order: `blocks.py`, the operations on blocks of channels, then `layout.py`, which brings them in.
"""
