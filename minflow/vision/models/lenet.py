"""LeNet for images of 28x28 pixels, as OneFlow's first tutorials train it on MNIST."""

from __future__ import annotations

from typing import Any, NoReturn

from ... import nn
from ...core.base.errors import ShapeError
from ...core.source_location import fail
from ...core.tensor import Tensor
from ...nn.functional.arguments import Unquoted
from .weights import build


class LeNet(nn.Module):
    """LeNet: two convolutions with ReLU and max pooling, a hidden layer with dropout, and one output per class.

    x: float (N, in_channels, 28, 28). Returns the logits (N, num_classes). Parameters: conv1, conv2, fc1, fc2, each
    with weight and bias; 1,663,370 elements. After LeCun et al. 1998, "Gradient-based learning applied to document
    recognition", section II, with the sizes of OneFlow's tutorial.
    """

    def __init__(self, num_classes: int = 10, in_channels: int = 1, dropout: float = 0.5):
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, 32, 5, padding=2)
        self.pool1 = nn.MaxPool2d(2)
        self.conv2 = nn.Conv2d(32, 64, 5, padding=2)
        self.pool2 = nn.MaxPool2d(2)
        self.fc1 = nn.Linear(64 * 7 * 7, 512)
        self.dropout = nn.Dropout(dropout)
        self.fc2 = nn.Linear(512, num_classes)
        self.relu = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        images = x
        x = self.pool1(self.relu(self.conv1(x)))
        x = self.pool2(self.relu(self.conv2(x)))
        if x.shape[1:] != (64, 7, 7):
            raise_size_error(images)
        x = self.dropout(self.relu(self.fc1(x.flatten(1))))
        return self.fc2(x)


def raise_size_error(x: Tensor) -> NoReturn:
    """Raise an error for input that is not a batch of 28x28 images, instead of one about the internal layer fc1."""
    shape = x.shape
    what = f"and these are {shape[-2]}x{shape[-1]}"
    hint = "transforms.Resize((28, 28)) for the images; or a model of your own for this size"
    if len(shape) == 3:
        what, hint = "and this is a single one", "x.unsqueeze(0) makes a batch of one image"
    expected = x.spec.replace(shape=(shape[0] if len(shape) == 4 else 1, shape[-3], 28, 28))
    fail(ShapeError, f"LeNet takes batches of images of 28x28, {what}", hint, x=x, expected=Unquoted(f"x {expected}"))


def lenet(pretrained: bool = False, progress: bool = True, weights: Any = None, **kwargs: Any) -> LeNet:
    """LeNet; pretrained=True loads your own file `lenet.safetensors`."""
    return build("lenet", LeNet, pretrained, weights, **kwargs)
