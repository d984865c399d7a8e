"""Datasets of images. Read next: `base.py`."""

from ...core.messages.suggestions import name_hints as _name_hints
from .base import ImageDataset
from .cifar import CIFAR10, CIFAR100
from .digits import Digits
from .fake import FakeData
from .folder import DatasetFolder, ImageFolder
from .mnist import MNIST, FashionMNIST

__all__ = [
    "CIFAR10",
    "CIFAR100",
    "DatasetFolder",
    "Digits",
    "FakeData",
    "FashionMNIST",
    "ImageDataset",
    "ImageFolder",
    "MNIST",
]

__getattr__ = _name_hints("flow.vision.datasets", globals())
