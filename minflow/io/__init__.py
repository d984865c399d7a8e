"""Saving and loading: one safetensors file that also holds the structure and a checksum.

`checkpoint.py` has `save` and `load`; `tree.py` turns nested objects into text and tensors, `container.py` reads and
writes the file, `atomic.py` makes that all or nothing, `foreign.py` reads what other programs wrote. No file is ever
unpickled. Read next: `checkpoint.py`.
"""

from .checkpoint import load as load
from .checkpoint import save as save
