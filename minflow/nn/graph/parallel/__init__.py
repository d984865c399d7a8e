"""Training a graph of global tensors on several ranks. Read next: `zero.py`, `stages.py`."""
