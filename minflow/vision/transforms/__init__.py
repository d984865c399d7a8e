"""What is done to one image on its way into a batch. Read next: `transforms.py`."""

from ...core.messages.near import tell as _tell
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

__getattr__ = _tell("flow.vision.transforms", globals())
