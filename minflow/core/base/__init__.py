"""What the engine stands on and what knows no tensor: errors in four parts, events, Ctrl-C, placements, the rich repr.

Read next: `errors.py`.
"""
