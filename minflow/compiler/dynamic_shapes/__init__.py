"""Dynamic axes, whose size changes from call to call, and the values of a program that depend on them.

A program is traced at several sizes. Attrs, literals and constants that differ between the traces are solved for: an
integer that is multilinear in the sizes, such as 8*batch*time + 3, is stored as such (`SizeFormula`) and checked at
further sizes; any other difference is refused with its line.

A graph that is called with other sizes is traced with symbols instead: `symbolic_program.py`. Read next: `axes.py`, the
axes; `derived_sizes.py`, the dependent values; `size_relations.py`, the solver; `traces.py`, its input.
"""
