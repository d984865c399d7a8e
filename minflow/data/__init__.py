"""Data to learn from: `points` are made, `digits` ships inside the package, `load_mnist` is found, or fetched and
checked.

Gives plain numpy arrays, batches as OneFlow's job functions take them; no file is ever unpickled.
Knows no tensors and no models. Read next: `digits.py`, then `files.py` (how files are read safely), `download.py`.
"""

from ..core.messages.near import name_hints as _name_hints
from .cache import cache_dir
from .digits import digits
from .mnist import load_mnist
from .points import points

__all__ = ["cache_dir", "digits", "load_mnist", "points"]

__getattr__ = _name_hints("flow.data", globals())
