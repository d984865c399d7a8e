"""MobileNetV2, with the parameter names and results of torchvision.

Source: Sandler et al. 2018 (arXiv:1801.04381), table 2 and figure 4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ... import nn
from ...core.base.errors import ShapeError
from ...core.source_location import fail
from ...core.tensor import Tensor
from .initialization import reset_layers
from .weights import build

# For each stage: expansion factor (t), channels (c), number of blocks (n), stride of the first block (s).
STAGES = [[1, 16, 1, 1], [6, 24, 2, 2], [6, 32, 3, 2], [6, 64, 4, 2], [6, 96, 3, 1], [6, 160, 3, 2], [6, 320, 1, 1]]


def make_divisible(v: float, divisor: int = 8, min_value: int | None = None) -> int:
    """Return the multiple of `divisor` closest to v, at least `min_value` and at most 10 % below v."""
    new = max(divisor if min_value is None else min_value, int(v + divisor / 2) // divisor * divisor)
    return new + divisor if new < 0.9 * v else new


class ConvBNActivation(nn.Sequential):
    """Convolution without bias, batch norm, ReLU6."""

    def __init__(
        self,
        in_planes: int,
        out_planes: int,
        kernel_size: int = 3,
        stride: int = 1,
        groups: int = 1,
        norm_layer: Callable[[int], nn.Module] | None = None,
        activation_layer: Callable[..., nn.Module] | None = None,
        dilation: int = 1,
    ):
        padding = (kernel_size - 1) // 2 * dilation
        super().__init__(
            nn.Conv2d(
                in_planes, out_planes, kernel_size, stride, padding, dilation=dilation, groups=groups, bias=False
            ),
            (norm_layer or nn.BatchNorm2d)(out_planes),
            (activation_layer or nn.ReLU6)(inplace=True),
        )
        self.out_channels = out_planes


ConvBNReLU = ConvBNActivation  # the older name


class InvertedResidual(nn.Module):
    """Expand by 1x1, filter each channel by 3x3, project by 1x1, with a skip connection if the shapes allow it."""

    def __init__(
        self, inp: int, oup: int, stride: int, expand_ratio: int, norm_layer: Callable[[int], nn.Module] | None = None
    ):
        super().__init__()
        if stride not in (1, 2):
            fail(ShapeError, f"InvertedResidual: stride must be 1 or 2, got {stride}", "stride=1")
        norm_layer = norm_layer or nn.BatchNorm2d
        self.stride, self.use_res_connect = stride, stride == 1 and inp == oup
        hidden = round(inp * expand_ratio)
        layers: list[nn.Module] = []
        if expand_ratio != 1:
            layers.append(ConvBNReLU(inp, hidden, kernel_size=1, norm_layer=norm_layer))
        layers += [
            ConvBNReLU(hidden, hidden, stride=stride, groups=hidden, norm_layer=norm_layer),
            nn.Conv2d(hidden, oup, 1, bias=False),
            norm_layer(oup),
        ]
        self.conv = nn.Sequential(*layers)
        self.out_channels = oup

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv(x) if self.use_res_connect else self.conv(x)


class MobileNetV2(nn.Module):
    """MobileNetV2.

    x: float (N, 3, H, W). Returns the logits (N, num_classes).

    width_mult: factor of all channel counts.  inverted_residual_setting: stages as in STAGES.  last_channel: input
    features of the classifier.
    """

    def __init__(
        self,
        num_classes: int = 1000,
        width_mult: float = 1.0,
        inverted_residual_setting: Sequence[Sequence[int]] | None = None,
        round_nearest: int = 8,
        block: Callable[..., nn.Module] | None = None,
        norm_layer: Callable[[int], nn.Module] | None = None,
        dropout: float = 0.2,
    ):
        super().__init__()
        block, norm_layer, stages = (
            block or InvertedResidual,
            norm_layer or nn.BatchNorm2d,
            inverted_residual_setting or STAGES,
        )
        if any(len(stage) != 4 for stage in stages):
            what = "MobileNetV2: each stage of inverted_residual_setting must have four numbers"
            fail(ShapeError, what, "[t, c, n, s], as in STAGES")
        channels = make_divisible(32 * width_mult, round_nearest)
        self.last_channel = make_divisible(1280 * max(1.0, width_mult), round_nearest)
        features: list[nn.Module] = [ConvBNReLU(3, channels, stride=2, norm_layer=norm_layer)]
        for t, c, n, s in stages:
            out = make_divisible(c * width_mult, round_nearest)
            for i in range(n):
                features.append(block(channels, out, s if i == 0 else 1, expand_ratio=t, norm_layer=norm_layer))
                channels = out
        features.append(ConvBNReLU(channels, self.last_channel, kernel_size=1, norm_layer=norm_layer))
        self.features = nn.Sequential(*features)
        self.classifier = nn.Sequential(nn.Dropout(dropout), nn.Linear(self.last_channel, num_classes))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reinitialize all weights as the authors of the paper did."""
        reset_layers(self)

    def forward(self, x: Tensor) -> Tensor:
        x = self.features(x)
        return self.classifier(x.mean((2, 3)))


def mobilenet_v2(pretrained: Any = False, progress: bool = True, weights: Any = None, **kwargs: Any) -> MobileNetV2:
    """MobileNetV2: 3,504,872 parameters."""
    return build("mobilenet_v2", MobileNetV2, pretrained, weights, **kwargs)
