"""Datasets of images. Read next: `base.py`."""

from ...core.messages.near import tell as _tell
from .base import ImageDataset
from .cifar import CIFAR10
from .digits import Digits
from .fake import FakeData
from .mnist import MNIST, FashionMNIST

__all__ = ["CIFAR10", "Digits", "FakeData", "FashionMNIST", "ImageDataset", "MNIST"]

__getattr__ = _tell("flow.vision.datasets", globals())
