"""What there is to see, as plain frozen records with stable ids: the only step that touches live objects.

Read next: `structure.py` (tapes, graphs, modules), `reports.py` (what a graph reports).
"""
