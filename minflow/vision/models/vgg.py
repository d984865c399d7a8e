"""VGG networks, with the parameter names and results of torchvision.

Source: Simonyan & Zisserman 2015 (arXiv:1409.1556), table 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import nn
from ...core.functions import flatten
from ...core.tensor import Tensor
from .initialization import reset_layers
from .weights import build

# Columns of the table: channels of each 3x3 convolution, "M" for a pool that halves the image.
CONFIGURATIONS: dict[str, list[int | str]] = {
    "A": [64, "M", 128, "M", 256, 256, "M", 512, 512, "M", 512, 512, "M"],
    "B": [64, 64, "M", 128, 128, "M", 256, 256, "M", 512, 512, "M", 512, 512, "M"],
    "D": [64, 64, "M", 128, 128, "M", 256, 256, 256, "M", 512, 512, 512, "M", 512, 512, 512, "M"],
    "E": [64, 64, "M", 128, 128, "M", *[256] * 4, "M", *[512] * 4, "M", *[512] * 4, "M"],
}


class VGG(nn.Module):
    """VGG network.

    x: float (N, 3, H, W), H and W at least 32. Returns the logits (N, num_classes).

    features: the convolutions, with 512 output channels; see `make_layers`.  init_weights: True to initialize all
    weights as in torchvision, False for each layer's default.
    """

    def __init__(self, features: nn.Module, num_classes: int = 1000, init_weights: bool = True, dropout: float = 0.5):
        super().__init__()
        self.features, self.avgpool = features, nn.AdaptiveAvgPool2d((7, 7))
        self.classifier = nn.Sequential(
            nn.Linear(512 * 7 * 7, 4096),
            nn.ReLU(True),
            nn.Dropout(dropout),
            nn.Linear(4096, 4096),
            nn.ReLU(True),
            nn.Dropout(dropout),
            nn.Linear(4096, num_classes),
        )
        if init_weights:
            self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reinitialize all weights."""
        reset_layers(self)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(flatten(self.avgpool(self.features(x)), 1))


def make_layers(cfg: Sequence[int | str], batch_norm: bool = False) -> nn.Sequential:
    """Build the convolutions of a column, each followed by ReLU, with batch norm in between if requested."""
    layers: list[nn.Module] = []
    channels = 3
    for entry in cfg:
        if isinstance(entry, str):
            layers.append(nn.MaxPool2d(2, 2))
            continue
        layers.append(nn.Conv2d(channels, entry, 3, padding=1))
        layers += [nn.BatchNorm2d(entry)] if batch_norm else []
        layers.append(nn.ReLU(inplace=True))
        channels = entry
    return nn.Sequential(*layers)


def column(letter: str, norm: bool, **kwargs: Any) -> VGG:
    return VGG(make_layers(CONFIGURATIONS[letter], norm), **kwargs)


def vgg11(pretrained: Any = False, progress: bool = True, weights: Any = None, **kwargs: Any) -> VGG:
    """VGG with 11 layers: 132,863,336 parameters."""
    return build("vgg11", column, pretrained, weights, "A", False, **kwargs)


def vgg13(pretrained: Any = False, progress: bool = True, weights: Any = None, **kwargs: Any) -> VGG:
    """VGG with 13 layers: 133,047,848 parameters."""
    return build("vgg13", column, pretrained, weights, "B", False, **kwargs)


def vgg16(pretrained: Any = False, progress: bool = True, weights: Any = None, **kwargs: Any) -> VGG:
    """VGG with 16 layers: 138,357,544 parameters."""
    return build("vgg16", column, pretrained, weights, "D", False, **kwargs)


def vgg19(pretrained: Any = False, progress: bool = True, weights: Any = None, **kwargs: Any) -> VGG:
    """VGG with 19 layers: 143,667,240 parameters."""
    return build("vgg19", column, pretrained, weights, "E", False, **kwargs)


def vgg11_bn(pretrained: Any = False, progress: bool = True, weights: Any = None, **kwargs: Any) -> VGG:
    """VGG with 11 layers and batch norm: 132,868,840 parameters."""
    return build("vgg11_bn", column, pretrained, weights, "A", True, **kwargs)


def vgg13_bn(pretrained: Any = False, progress: bool = True, weights: Any = None, **kwargs: Any) -> VGG:
    """VGG with 13 layers and batch norm: 133,053,736 parameters."""
    return build("vgg13_bn", column, pretrained, weights, "B", True, **kwargs)


def vgg16_bn(pretrained: Any = False, progress: bool = True, weights: Any = None, **kwargs: Any) -> VGG:
    """VGG with 16 layers and batch norm: 138,365,992 parameters."""
    return build("vgg16_bn", column, pretrained, weights, "D", True, **kwargs)


def vgg19_bn(pretrained: Any = False, progress: bool = True, weights: Any = None, **kwargs: Any) -> VGG:
    """VGG with 19 layers and batch norm: 143,678,248 parameters."""
    return build("vgg19_bn", column, pretrained, weights, "E", True, **kwargs)
