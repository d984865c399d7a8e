"""The explorer's picture: rows, their geometry, SVG. Pure functions of a StepRecord.

Read next: `rows.py`, `grid.py`.
"""
