"""What there is to see, as plain frozen records with stable ids: the only step that touches live objects.

Read next: `graph.py`, `tape.py`, `module.py`, `reports.py` (what a graph reports).
"""
