"""Datasets, transforms and models for images, laid out like flowvision: `from minflow import vision as flowvision`.

Pillow is imported only when needed. Read next: `datasets/base.py`, `transforms/transforms.py`,
`models/mobilenet_v2.py`.
"""

from ..core.messages.suggestions import missing_names as _missing_names
from . import datasets as datasets
from . import models as models
from . import ops as ops
from . import transforms as transforms
from . import utils as utils

__getattr__ = _missing_names("flow.vision", globals())
