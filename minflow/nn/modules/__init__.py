"""The layers, by family, at PyTorch's module path: each holds parameters and calls one function of `../functional`.

Their base class is in `../module.py`. Read next: `linear.py`, the shortest.
"""

from . import utils as utils
