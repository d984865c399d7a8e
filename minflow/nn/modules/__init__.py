"""The layers, by family, in PyTorch's folder: each keeps parameters and calls one function of `../functional`.

Their base class is in `../module.py`. Read next: `linear.py`, the shortest.
"""

from . import utils as utils
