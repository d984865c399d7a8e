"""From records to pictures: folding, DOT, the engines that draw it, our own layout, PNG.

Read next: `fold.py`, `dot.py`, `engines.py`.
"""
