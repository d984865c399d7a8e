"""Residual networks, with the parameter names and results of torchvision.

Sources: He et al. 2016 (arXiv:1512.03385), table 1; Xie et al. 2017 (arXiv:1611.05431); Zagoruyko & Komodakis 2016
(arXiv:1605.07146). The stride is in the 3x3 convolution of a bottleneck ("ResNet v1.5").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ... import nn
from ...core.base.errors import ShapeError
from ...core.functions import flatten
from ...core.source_location import fail
from ...core.tensor import Tensor
from .initialization import reset_layers
from .weights import build

Norm = Callable[[int], nn.Module]


def conv3x3(in_planes: int, out_planes: int, stride: int = 1, groups: int = 1, dilation: int = 1) -> nn.Conv2d:
    """3x3 convolution without bias; keeps the size if the stride is 1."""
    return nn.Conv2d(in_planes, out_planes, 3, stride, dilation, dilation=dilation, groups=groups, bias=False)


def conv1x1(in_planes: int, out_planes: int, stride: int = 1) -> nn.Conv2d:
    """1x1 convolution without bias."""
    return nn.Conv2d(in_planes, out_planes, 1, stride, bias=False)


class BasicBlock(nn.Module):
    """relu(x + two 3x3 convolutions of x). planes: output channels; stride: of the first convolution."""

    expansion = 1

    def __init__(
        self,
        inplanes: int,
        planes: int,
        stride: int = 1,
        downsample: nn.Module | None = None,
        groups: int = 1,
        base_width: int = 64,
        dilation: int = 1,
        norm_layer: Norm | None = None,
    ):
        super().__init__()
        if groups != 1 or base_width != 64 or dilation != 1:
            what = f"BasicBlock does not support groups={groups}, base_width={base_width}, dilation={dilation}"
            fail(ShapeError, what, "groups=1, base_width=64, dilation=1; or a Bottleneck, which supports them")
        norm_layer = norm_layer or nn.BatchNorm2d
        self.conv1, self.bn1 = conv3x3(inplanes, planes, stride), norm_layer(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2, self.bn2 = conv3x3(planes, planes), norm_layer(planes)
        self.downsample, self.stride = downsample, stride

    def forward(self, x: Tensor) -> Tensor:
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self.relu(out + (x if self.downsample is None else self.downsample(x)))


class Bottleneck(nn.Module):
    """relu(x + (reduced by 1x1, filtered by 3x3, expanded by 1x1)); 4 * planes output channels.

    groups: of the 3x3 convolution.  base_width: inner channels per group, for each 64 planes.
    """

    expansion = 4

    def __init__(
        self,
        inplanes: int,
        planes: int,
        stride: int = 1,
        downsample: nn.Module | None = None,
        groups: int = 1,
        base_width: int = 64,
        dilation: int = 1,
        norm_layer: Norm | None = None,
    ):
        super().__init__()
        norm_layer, width = norm_layer or nn.BatchNorm2d, int(planes * (base_width / 64.0)) * groups
        self.conv1, self.bn1 = conv1x1(inplanes, width), norm_layer(width)
        self.conv2, self.bn2 = conv3x3(width, width, stride, groups, dilation), norm_layer(width)
        self.conv3, self.bn3 = conv1x1(width, planes * self.expansion), norm_layer(planes * self.expansion)
        self.relu = nn.ReLU(inplace=True)
        self.downsample, self.stride = downsample, stride

    def forward(self, x: Tensor) -> Tensor:
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn3(self.conv3(self.relu(self.bn2(self.conv2(out)))))
        return self.relu(out + (x if self.downsample is None else self.downsample(x)))


class ResNet(nn.Module):
    """Residual network.

    x: float (N, 3, H, W). Returns the logits (N, num_classes).

    block: BasicBlock or Bottleneck.  layers: number of blocks in each of the four stages.  zero_init_residual: True to
    start each block as the identity.  replace_stride_with_dilation: for each of the last three stages, True to dilate
    filters instead of halving images.
    """

    def __init__(
        self,
        block: type[BasicBlock] | type[Bottleneck],
        layers: Sequence[int],
        num_classes: int = 1000,
        zero_init_residual: bool = False,
        groups: int = 1,
        width_per_group: int = 64,
        replace_stride_with_dilation: Sequence[bool] | None = None,
        norm_layer: Norm | None = None,
    ):
        super().__init__()
        self.inplanes, self.dilation = 64, 1
        self.groups, self.base_width, self.norm_layer = groups, width_per_group, norm_layer or nn.BatchNorm2d
        spread = (False, *(replace_stride_with_dilation or (False, False, False)))
        if len(spread) != 4 or len(layers) != 4:
            what = f"ResNet: got layers={list(layers)}, replace_stride_with_dilation={replace_stride_with_dilation}"
            fail(ShapeError, what, "four block counts; three bools, or None")
        self.conv1 = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        self.bn1, self.relu = self.norm_layer(64), nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        for i, count in enumerate(layers):
            stage = self.stage(block, 64 * 2**i, count, 1 if i == 0 else 2, spread[i])
            self.add_module(f"layer{i + 1}", stage)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(512 * block.expansion, num_classes)
        self.reset_parameters(zero_init_residual)

    def stage(self, block: Any, planes: int, blocks: int, stride: int, spread: bool) -> nn.Sequential:
        """`blocks` blocks; the first one changes size and channels, with a projected skip connection."""
        before = self.dilation
        if spread:
            self.dilation, stride = self.dilation * stride, 1
        downsample, out = None, planes * block.expansion
        if stride != 1 or self.inplanes != out:
            downsample = nn.Sequential(conv1x1(self.inplanes, out, stride), self.norm_layer(out))
        shared = (self.groups, self.base_width)
        result = [block(self.inplanes, planes, stride, downsample, *shared, before, self.norm_layer)]
        self.inplanes = out
        result += [block(out, planes, 1, None, *shared, self.dilation, self.norm_layer) for _ in range(1, blocks)]
        return nn.Sequential(*result)

    def reset_parameters(self, zero_init_residual: bool = False) -> None:
        """Reinitialize the filters as in He et al. 2015 (arXiv:1502.01852), eq. 14."""
        reset_layers(self, linear=False)
        for m in self.modules() if zero_init_residual else ():
            if isinstance(m, BasicBlock | Bottleneck):
                last = m.bn3 if isinstance(m, Bottleneck) else m.bn2
                nn.init.zeros_(last.weight)

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(flatten(self.avgpool(x), 1))


def resnet18(pretrained: Any = False, progress: bool = True, weights: Any = None, **kwargs: Any) -> ResNet:
    """ResNet with 18 layers: 11,689,512 parameters."""
    return build("resnet18", ResNet, pretrained, weights, BasicBlock, [2, 2, 2, 2], **kwargs)


def resnet34(pretrained: Any = False, progress: bool = True, weights: Any = None, **kwargs: Any) -> ResNet:
    """ResNet with 34 layers: 21,797,672 parameters."""
    return build("resnet34", ResNet, pretrained, weights, BasicBlock, [3, 4, 6, 3], **kwargs)


def resnet50(pretrained: Any = False, progress: bool = True, weights: Any = None, **kwargs: Any) -> ResNet:
    """ResNet with 50 layers: 25,557,032 parameters."""
    return build("resnet50", ResNet, pretrained, weights, Bottleneck, [3, 4, 6, 3], **kwargs)


def resnet101(pretrained: Any = False, progress: bool = True, weights: Any = None, **kwargs: Any) -> ResNet:
    """ResNet with 101 layers: 44,549,160 parameters."""
    return build("resnet101", ResNet, pretrained, weights, Bottleneck, [3, 4, 23, 3], **kwargs)


def resnet152(pretrained: Any = False, progress: bool = True, weights: Any = None, **kwargs: Any) -> ResNet:
    """ResNet with 152 layers: 60,192,808 parameters."""
    return build("resnet152", ResNet, pretrained, weights, Bottleneck, [3, 8, 36, 3], **kwargs)


def resnext50_32x4d(pretrained: Any = False, progress: bool = True, weights: Any = None, **kwargs: Any) -> ResNet:
    """ResNeXt with 50 layers, 32 groups of 4 channels: 25,028,904 parameters."""
    kwargs = {"groups": 32, "width_per_group": 4} | kwargs
    return build("resnext50_32x4d", ResNet, pretrained, weights, Bottleneck, [3, 4, 6, 3], **kwargs)


def wide_resnet50_2(pretrained: Any = False, progress: bool = True, weights: Any = None, **kwargs: Any) -> ResNet:
    """ResNet with 50 layers and twice as many channels inside each bottleneck: 68,883,240 parameters."""
    kwargs = {"width_per_group": 128} | kwargs
    return build("wide_resnet50_2", ResNet, pretrained, weights, Bottleneck, [3, 4, 6, 3], **kwargs)
