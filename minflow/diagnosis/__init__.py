"""Analysis of errors after they were raised: the user's line, its inputs, inputs that would fit, the error card.

Above the engine and views; imports no modules, and queries them only through protocols.
Read next: `failure.py` (reading a traceback), `card.py` (the display), `notebook.py` (where the program runs).
"""
