"""Layers: MaxPool2d, AvgPool2d, AdaptiveAvgPool2d. They have no parameters.

Read next: `../functional/pooling.py`.
"""

from __future__ import annotations

from ...core.tensor import Tensor
from .. import functional as F
from ..module import Module

Size2 = int | tuple[int, int]


class Pool2d(Module):
    """What the pools of windows share: their size, how far they are apart, and the edge."""

    def __init__(self, kernel_size: Size2, stride: Size2 | None, padding: Size2, ceil_mode: bool):
        super().__init__()
        self.kernel_size, self.stride, self.padding = kernel_size, kernel_size if stride is None else stride, padding
        self.ceil_mode = ceil_mode

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxPool2d(Pool2d):
    """The largest number in each window of kernel_size pixels, a step of `stride` apart (kernel_size if None).

    x: float (N, C, H, W) or (C, H, W). return_indices: also int64 positions in the flattened H * W of each maximum.
    """

    def __init__(
        self,
        kernel_size: Size2,
        stride: Size2 | None = None,
        padding: Size2 = 0,
        dilation: Size2 = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ):
        super().__init__(kernel_size, stride, padding, ceil_mode)
        self.dilation, self.return_indices = dilation, return_indices

    def forward(self, input: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        return F.max_pool2d(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices
        )

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, dilation={self.dilation}, ceil_mode={self.ceil_mode}"


class AvgPool2d(Pool2d):
    """The mean of each window of kernel_size pixels, a step of `stride` apart (kernel_size if None).

    x: float (N, C, H, W) or (C, H, W). count_include_pad: zeros of the padding count. divisor_override: divide by this.
    """

    def __init__(
        self,
        kernel_size: Size2,
        stride: Size2 | None = None,
        padding: Size2 = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ):
        super().__init__(kernel_size, stride, padding, ceil_mode)
        self.count_include_pad, self.divisor_override = count_include_pad, divisor_override

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool2d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )


class AdaptiveAvgPool2d(Module):
    """Means of as many windows as give output_size (H, W): an int, a pair, or None for an axis that stays as it is."""

    def __init__(self, output_size: int | None | tuple[int | None, int | None]):
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool2d(input, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"
