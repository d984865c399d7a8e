"""SqueezeNet, with the parameter names and results of torchvision.

Source: Iandola et al. 2016 (arXiv:1602.07360), table 1 (version 1.0) and its authors' version 1.1, which pools earlier.
"""

from __future__ import annotations

from typing import Any

from ... import nn
from ...core.base.errors import OutOfRangeError
from ...core.functions import cat, flatten
from ...core.source_location import fail
from ...core.tensor import Tensor
from .weights import build

# For each version: the first convolution (channels, size), then fire modules (squeezed, expanded) and pools.
VERSIONS: dict[str, tuple[tuple[int, int], list[Any]]] = {
    "1_0": (
        (96, 7),
        ["M", (16, 64), (16, 64), (32, 128), "M", (32, 128), (48, 192), (48, 192), (64, 256), "M", (64, 256)],
    ),
    "1_1": (
        (64, 3),
        ["M", (16, 64), (16, 64), "M", (32, 128), (32, 128), "M", (48, 192), (48, 192), (64, 256), (64, 256)],
    ),
}


class Fire(nn.Module):
    """Squeeze the channels by 1x1, then expand by 1x1 and 3x3 in parallel."""

    def __init__(self, inplanes: int, squeeze_planes: int, expand1x1_planes: int, expand3x3_planes: int):
        super().__init__()
        self.inplanes = inplanes
        self.squeeze = nn.Conv2d(inplanes, squeeze_planes, 1)
        self.squeeze_activation = nn.ReLU(inplace=True)
        self.expand1x1 = nn.Conv2d(squeeze_planes, expand1x1_planes, 1)
        self.expand1x1_activation = nn.ReLU(inplace=True)
        self.expand3x3 = nn.Conv2d(squeeze_planes, expand3x3_planes, 3, padding=1)
        self.expand3x3_activation = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        x = self.squeeze_activation(self.squeeze(x))
        return cat([self.expand1x1_activation(self.expand1x1(x)), self.expand3x3_activation(self.expand3x3(x))], 1)


class SqueezeNet(nn.Module):
    """SqueezeNet.

    x: float (N, 3, H, W), H and W at least 21. Returns the logits (N, num_classes). version: "1_0" or "1_1".
    """

    def __init__(self, version: str = "1_0", num_classes: int = 1000, dropout: float = 0.5):
        super().__init__()
        if version not in VERSIONS:
            fail(OutOfRangeError, f"SqueezeNet: there is no version {version!r}", f"one of {', '.join(VERSIONS)}")
        self.num_classes = num_classes
        (channels, size), rows = VERSIONS[version]
        layers: list[nn.Module] = [nn.Conv2d(3, channels, size, stride=2), nn.ReLU(inplace=True)]
        for row in rows:
            if row == "M":
                layers.append(nn.MaxPool2d(3, stride=2, ceil_mode=True))
            else:
                layers.append(Fire(channels, row[0], row[1], row[1]))
                channels = 2 * row[1]
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(
            nn.Dropout(dropout), nn.Conv2d(512, num_classes, 1), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d((1, 1))
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reinitialize all weights."""
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                if m is self.classifier[1]:
                    nn.init.normal_(m.weight, 0.0, 0.01)
                else:
                    nn.init.kaiming_uniform_(m.weight)
                if m.bias is not None:
                    nn.init.zeros_(m.bias)

    def forward(self, x: Tensor) -> Tensor:
        return flatten(self.classifier(self.features(x)), 1)


def squeezenet1_0(pretrained: Any = False, progress: bool = True, weights: Any = None, **kwargs: Any) -> SqueezeNet:
    """SqueezeNet 1.0: 1,248,424 parameters."""
    return build("squeezenet1_0", SqueezeNet, pretrained, weights, "1_0", **kwargs)


def squeezenet1_1(pretrained: Any = False, progress: bool = True, weights: Any = None, **kwargs: Any) -> SqueezeNet:
    """SqueezeNet 1.1, with 2.4 times less computation than 1.0: 1,235,496 parameters."""
    return build("squeezenet1_1", SqueezeNet, pretrained, weights, "1_1", **kwargs)
