"""From records to pictures: folding, DOT, layout engines, SVG and PNG.

Read next: `fold.py`, `dot.py`, `engines.py`.
"""
