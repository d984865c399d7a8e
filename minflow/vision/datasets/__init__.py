"""Datasets of images. Read next: `base.py`."""

from .base import ImageDataset
from .cifar import CIFAR10
from .digits import Digits
from .fake import FakeData
from .mnist import MNIST, FashionMNIST

__all__ = ["CIFAR10", "Digits", "FakeData", "FashionMNIST", "ImageDataset", "MNIST"]
