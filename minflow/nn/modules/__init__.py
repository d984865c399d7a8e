"""The layers, by family, in PyTorch's folder: each keeps parameters and calls one function of `../functional`.

`../module.py` is what they share. Read next: `linear.py`, the shortest.
"""

from . import utils as utils
