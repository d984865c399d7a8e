"""Figures that matplotlib draws: the history of a run, a confusion matrix, the landscape of a loss, a line,
filters, and more.

Each function draws into `ax`, or into a new figure, and returns the Axes, so that everything can be changed afterwards;
each has a form in plain text for terminals. Names are drawn as they are, never as formulas. Read next: `drawing.py`.
"""
