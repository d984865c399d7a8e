"""Axes whose size differs from call to call: which there are, and which numbers of a program follow them.

A program is traced at several sizes. Attrs, literals and constants that differ between the traces are solved for: an
integer that is multilinear in the sizes, such as 8*batch*time + 3, is written as such (`Follows`), and checked at sizes
that it was not solved from; every other difference is refused with its line. Read next: `axes.py`, which there are;
`derived_sizes.py`, what follows them; `size_relations.py`, how it is found; `traces.py`, from what; `retrace.py`, which
traces.
"""
