"""Processes in which answers of others run, and plain data that returns from them. Start at `process.py`."""
