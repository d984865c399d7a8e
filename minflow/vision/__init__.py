"""Datasets, transforms and models for images, laid out like flowvision: `from minflow import vision as flowvision`.

Pillow is imported only when needed. Read next: `datasets/base.py`, `transforms/transforms.py`,
`models/mobilenet_v2.py`.
"""

from ..core.messages.suggestions import missing_names as _missing_names
from . import datasets as datasets, models as models, ops as ops, transforms as transforms, utils as utils

__getattr__ = _missing_names("flow.vision", globals())
