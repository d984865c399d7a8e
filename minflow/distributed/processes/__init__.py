"""Processes of ranks: which launcher starts them, what each does, and which one has ended first. See `../launch.py`."""
