"""Data sets: `points` and `sums` are generated, `digits` and `text` ship with the package, `load_mnist` finds its file
locally or downloads and verifies it.

Returns plain NumPy arrays, in the batches that OneFlow's job functions take; never unpickles a file. Independent of
tensors and models. Read next: `digits.py`, then `files.py` (how files are read safely), `download.py`.
"""

from ..core.messages.suggestions import name_hints as _name_hints
from .cache import cache_dir
from .digits import digits
from .mnist import load_mnist
from .points import points
from .sums import sums
from .text import text

__all__ = ["cache_dir", "digits", "load_mnist", "points", "sums", "text"]

__getattr__ = _name_hints("flow.data", globals())
