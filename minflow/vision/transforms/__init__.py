"""What is done to one image on its way into a batch. Read next: `transforms.py`."""

from ...core.messages.near import name_hints as _name_hints
from . import functional
from .transforms import (
    CenterCrop,
    Compose,
    Lambda,
    Normalize,
    RandomCrop,
    RandomHorizontalFlip,
    RandomVerticalFlip,
    Resize,
    ToPILImage,
    ToTensor,
)

__all__ = ["CenterCrop", "Compose", "Lambda", "Normalize", "RandomCrop", "RandomHorizontalFlip", "RandomVerticalFlip",
           "Resize", "ToPILImage", "ToTensor", "functional"]

__getattr__ = _name_hints("flow.vision.transforms", globals())
