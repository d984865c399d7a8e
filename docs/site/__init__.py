"""The documentation site. Start at `__main__.py`."""
