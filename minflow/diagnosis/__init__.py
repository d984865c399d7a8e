"""Errors, looked at after the fact: whose line it was, what went in, what would have fitted, and the card that shows
it.

Stands above the engine and views and knows no module: what it needs of one it asks by protocol.
Read next: `failure.py` (a traceback read), `card.py` (how it is shown), `notebook.py` (where the program runs).
"""
