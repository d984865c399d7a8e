"""Files that are written all or nothing. Nothing else of core touches the disk. Read next: `atomic.py`."""
