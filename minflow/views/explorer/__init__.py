"""The explorer's picture: rows, where they stand, SVG. Pure functions of a StepRecord.

Read next: `rows.py`, `grid.py`.
"""
