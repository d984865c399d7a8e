"""Images: datasets, transforms and models, laid out as flowvision: `from minflow import vision as flowvision`.

Pillow is imported only by what needs it. Read next: `datasets/base.py`, `transforms/transforms.py`,
`models/mobilenet_v2.py`.
"""

from . import datasets, models, transforms

__all__ = ["datasets", "models", "transforms"]
