"""Analysis of errors after they were raised: whose line failed, its inputs, what would have fitted, and the error card.

Above the engine and views; knows no modules, and queries them through protocols only.
Read next: `failure.py` (reading a traceback), `card.py` (the display), `notebook.py` (where the program runs).
"""
