"""Figures that matplotlib draws, of a run or a model. Read next: `figures.py`."""
