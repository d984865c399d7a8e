"""Transforms of single images, applied before batching. Read next: `transforms.py`."""

from ...core.messages.suggestions import name_hints as _name_hints
from . import functional
from .augment import (
    ColorJitter,
    GaussianBlur,
    Grayscale,
    RandomAffine,
    RandomErasing,
    RandomGrayscale,
    RandomResizedCrop,
    RandomRotation,
)
from .container import RandomApply, RandomChoice, RandomOrder
from .images import InterpolationMode
from .transforms import (
    CenterCrop,
    Compose,
    ConvertImageDtype,
    FiveCrop,
    Lambda,
    Normalize,
    Pad,
    PILToTensor,
    RandomCrop,
    RandomHorizontalFlip,
    RandomVerticalFlip,
    Resize,
    TenCrop,
    ToPILImage,
    ToTensor,
)

__all__ = [
    "CenterCrop",
    "ColorJitter",
    "Compose",
    "ConvertImageDtype",
    "FiveCrop",
    "GaussianBlur",
    "Grayscale",
    "InterpolationMode",
    "Lambda",
    "Normalize",
    "PILToTensor",
    "Pad",
    "RandomAffine",
    "RandomApply",
    "RandomChoice",
    "RandomCrop",
    "RandomErasing",
    "RandomGrayscale",
    "RandomHorizontalFlip",
    "RandomOrder",
    "RandomResizedCrop",
    "RandomRotation",
    "RandomVerticalFlip",
    "Resize",
    "TenCrop",
    "ToPILImage",
    "ToTensor",
    "functional",
]

__getattr__ = _name_hints("flow.vision.transforms", globals())
