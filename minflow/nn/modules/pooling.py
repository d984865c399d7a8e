"""Layers that pool: the maximum, the mean or the p-norm of windows. They have no parameters.

Read next: `../functional/pooling.py`, `../functional/pooling_1d_3d.py`; `adaptive_pooling.py`.
"""

from __future__ import annotations

from typing import Any

from ...core.tensor import Tensor
from .. import functional as F
from ..functional.arguments import sizes
from .by_axes import ByAxes

Sizes = int | tuple[int, ...]


class Pool(ByAxes):
    """Base of pools over windows: kernel_size, stride and padding."""

    _repr_attributes: tuple[str, ...] = ("kernel_size", "stride", "padding")

    def __init__(self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0):
        super().__init__()
        self.kernel_size, self.stride, self.padding = kernel_size, kernel_size if stride is None else stride, padding


class MaxPool(Pool):
    """The maximum of each window of kernel_size, `stride` apart (kernel_size if None).

    return_indices: also return the int64 index of each maximum in the flattened input, which MaxUnpool takes.
    """

    _kind = "max_pool"
    _repr_attributes = (*Pool._repr_attributes, "dilation", "ceil_mode")

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ):
        super().__init__(kernel_size, stride, padding)
        self.dilation, self.return_indices, self.ceil_mode = dilation, return_indices, ceil_mode

    def forward(self, input: Tensor) -> Any:
        return getattr(F, self._function)(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices
        )


class MaxPool1d(MaxPool, axes=1):
    """x: float (N, C, L) or (C, L)."""


class MaxPool2d(MaxPool, axes=2):
    """x: float (N, C, H, W) or (C, H, W)."""


class MaxPool3d(MaxPool, axes=3):
    """x: float (N, C, D, H, W) or (C, D, H, W)."""


class AvgPool1d(Pool):
    """The mean of each window of kernel_size elements, `stride` apart (kernel_size if None).

    x: float (N, C, L) or (C, L). count_include_pad: include the zeros of the padding.
    """

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ):
        kernel, step, pad = (
            sizes("AvgPool1d", name, value, least, 1)
            for name, value, least in (
                ("kernel_size", kernel_size, 1),
                ("stride", kernel_size if stride is None else stride, 1),
                ("padding", padding, 0),
            )
        )
        super().__init__(kernel, step, pad)
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)


class AvgPool(Pool):
    """The mean of each window of kernel_size, `stride` apart (kernel_size if None).

    count_include_pad: include the zeros of the padding. divisor_override: divide by this.
    """

    _kind = "avg_pool"

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ):
        super().__init__(kernel_size, stride, padding)
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        return getattr(F, self._function)(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )


class AvgPool2d(AvgPool, axes=2):
    """x: float (N, C, H, W) or (C, H, W)."""


class AvgPool3d(AvgPool, axes=3):
    """x: float (N, C, D, H, W) or (C, D, H, W)."""


class LPPool(ByAxes):
    """(sum of x**p over each window)**(1/p), p = norm_type: the sum if p is 1, the maximum if it is infinity."""

    _kind = "lp_pool"
    _repr_attributes = ("norm_type", "kernel_size", "stride", "ceil_mode")

    def __init__(self, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None, ceil_mode: bool = False):
        super().__init__()
        self.norm_type, self.kernel_size, self.stride, self.ceil_mode = norm_type, kernel_size, stride, ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        return getattr(F, self._function)(input, self.norm_type, self.kernel_size, self.stride, self.ceil_mode)


class LPPool1d(LPPool, axes=1):
    """x: float (N, C, L) or (C, L)."""


class LPPool2d(LPPool, axes=2):
    """x: float (N, C, H, W) or (C, H, W)."""


class LPPool3d(LPPool, axes=3):
    """x: float (N, C, D, H, W) or (C, D, H, W)."""
