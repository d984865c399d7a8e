"""Layers that convolve: Conv1d, Conv2d, Conv3d. The bias is initialized as in PyTorch: uniform in +-1/sqrt(fan_in).

Read next: `../functional/conv.py`; `conv_transpose.py`, the layers that enlarge images.
"""

from __future__ import annotations

import math
from typing import Any

from ...core.base.errors import ShapeError
from ...core.functions.creation import empty
from ...core.source_location import fail
from ...core.spec import Device, DType
from ...core.tensor import Tensor
from .. import functional as F, init
from ..functional.arguments import sizes
from ..functional.conv import Sizes
from ..module import Module
from ..parameter import Parameter
from .by_axes import ByAxes
from .linear import check_size

PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class Convolution(ByAxes):
    """Base of the six convolution layers: sizes, options, weight and bias."""

    transposed = False  # transposed: True if the weight starts with in_channels

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple[int, ...],
        stride: tuple[int, ...],
        padding: tuple[int, ...] | str,
        dilation: tuple[int, ...],
        transposed: bool,
        output_padding: tuple[int, ...],
        groups: int,
        bias: bool,
        padding_mode: str = "zeros",
        *place: Any,
    ):
        """Constructor of PyTorch's `_ConvNd`, for classes of programs. place: device, dtype."""
        super().__init__()
        self._axes, self.transposed = len(kernel_size), transposed
        options = (stride, padding, dilation, groups, bias, padding_mode, *(place or (None, None)))
        self._initialize(in_channels, out_channels, kernel_size, *options)
        self.output_padding = tuple(output_padding)

    def _initialize(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes,
        padding: Sizes | str,
        dilation: Sizes,
        groups: int,
        bias: bool,
        padding_mode: str,
        *place: Any,
    ) -> None:
        """Check the options, and create weight and bias."""
        name, n = type(self).__name__, self._axes
        for argument, value in (("in_channels", in_channels), ("out_channels", out_channels), ("groups", groups)):
            check_size(name, argument, value, 1)
        for argument, value in (("in_channels", in_channels), ("out_channels", out_channels)):
            if value % groups:
                what = f"{name}: {argument} is {value}, which groups={groups} does not divide"
                fail(ShapeError, what, f"a multiple of {groups} for {argument}, or another groups")
        if padding_mode not in (PADDING_MODES[:1] if self.transposed else PADDING_MODES):
            hint = "F.pad before the layer" if self.transposed else ", ".join(map(repr, PADDING_MODES))
            fail(ShapeError, f"{name}: padding_mode is {padding_mode!r}", hint)
        if isinstance(padding, str) and padding not in ("same", "valid"):
            fail(ShapeError, f"{name}: padding is {padding!r}", 'an int in pixels, a pair, "same" or "valid"')
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size = sizes(name, "kernel_size", kernel_size, 1, n)
        self.stride = sizes(name, "stride", stride, 1, n)
        self.dilation = sizes(name, "dilation", dilation, 1, n)
        self.padding = padding if isinstance(padding, str) else sizes(name, "padding", padding, 0, n)
        if padding == "same" and max(self.stride) > 1:
            what = f'{name}: padding "same" with stride {self.stride}'
            fail(ShapeError, what, "a padding in pixels: padding=1 for a kernel of 3")
        self.padding_mode, self.output_padding = padding_mode, (0,) * n
        first, second = (in_channels, out_channels) if self.transposed else (out_channels, in_channels)
        self.weight = Parameter(empty(first, second // groups, *self.kernel_size, device=place[0], dtype=place[1]))
        self.bias: Parameter | None
        numbers = Parameter(empty(out_channels, device=place[0], dtype=place[1])) if bias else None
        self.register_parameter("bias", numbers)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reinitialize weight and bias: uniform in +-1/sqrt(fan_in)."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(init.fans(self.weight)[0])
            init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        n = self._axes
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        options = dict(padding=(0,) * n, dilation=(1,) * n, output_padding=(0,) * n, groups=1)
        text += "".join([f", {k}={getattr(self, k)}" for k, usual in options.items() if getattr(self, k) != usual])
        text += "" if self.bias is not None else ", bias=False"
        return text if self.padding_mode == "zeros" else f"{text}, padding_mode={self.padding_mode}"


class Conv(Convolution):
    """A cross-correlation, with the options of the function."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] = 1,
        padding: int | tuple[int, ...] | str = 0,
        dilation: int | tuple[int, ...] = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Device | str | None = None,
        dtype: DType | None = None,
    ):
        Module.__init__(self)
        options: tuple[Any, ...] = (stride, padding, dilation, groups, bias, padding_mode, device, dtype)
        self._initialize(in_channels, out_channels, kernel_size, *options)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """The convolution with another weight and bias; classes of programs call and override it."""
        function = getattr(F, type(self)._function)
        padding: Sizes | str = self.padding
        if self.padding_mode != "zeros":
            F.arguments.check_tensor(type(self).__name__, input)
            input, padding = F.pad(input, self._padding_widths(), mode=self.padding_mode), 0
        return function(input, weight, bias, self.stride, padding, self.dilation, self.groups)

    _function = "conv2d"

    def _padding_widths(self) -> list[int]:
        """Return `padding` in the order of F.pad: (left, right) of the last axis, then of the one before it."""
        if isinstance(self.padding, str):
            total = [d * (k - 1) if self.padding == "same" else 0 for d, k in zip(self.dilation, self.kernel_size)]
            return [n for t in reversed(total) for n in (t // 2, t - t // 2)]
        return [p for p in reversed(self.padding) for _ in range(2)]

    _reversed_padding_repeated_twice = property(_padding_widths)  # PyTorch's name


class Conv1d(Conv):
    """Cross-correlation of signals with filters, plus a bias per filter; see functional.conv1d.

    x: float (N, in_channels, L) or (in_channels, L). weight: (out_channels, in_channels / groups, K).
    padding: width at each end, "same" (stride 1) or "valid"; padding_mode: "zeros", "reflect", "replicate" or
    "circular".
    """

    _axes, _function = 1, "conv1d"


class Conv2d(Conv):
    """Cross-correlation of images with filters, plus a bias per filter; see functional.conv2d.

    x: float (N, in_channels, H, W) or (in_channels, H, W). weight: (out_channels, in_channels / groups, KH, KW).
    kernel_size, stride, padding, dilation: int or pair, in pixels; padding also "same" (stride 1) or "valid".
    padding_mode: "zeros", "reflect", "replicate" or "circular".
    """


class Conv3d(Conv):
    """Cross-correlation of volumes with filters, plus a bias per filter; see functional.conv3d.

    x: float (N, in_channels, D, H, W) or (in_channels, D, H, W). weight: (out_channels, in_channels / groups, KD, KH,
    KW). kernel_size, stride, padding, dilation: int or three of them, in voxels; padding also "same" (stride 1) or
    "valid".
    """

    _axes, _function = 3, "conv3d"
