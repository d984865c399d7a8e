"""Layers that pool to a given size, and layers that undo max pooling. Read next: `../functional/adaptive_pools.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.tensor import Tensor
from .. import functional as F
from ..functional.arguments import sizes
from .by_axes import ByAxes
from .pooling import Pool, Sizes

OutputSize = int | None | tuple[int | None, ...]


class AdaptivePool(ByAxes):
    """Base of adaptive pools: one window per output element. output_size: an int, one for each axis, or None for an
    axis that keeps its size.
    """

    _repr_attributes = ("output_size",)

    def __init__(self, output_size: OutputSize):
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Any:
        return getattr(F, self._function)(input, self.output_size)


class AdaptiveAvgPool(AdaptivePool):
    _kind = "adaptive_avg_pool"


class AdaptiveAvgPool1d(AdaptiveAvgPool, axes=1):
    """The mean of each window. x: float (N, C, L) or (C, L)."""


class AdaptiveAvgPool2d(AdaptiveAvgPool, axes=2):
    """The mean of each window. x: float (N, C, H, W) or (C, H, W)."""


class AdaptiveAvgPool3d(AdaptiveAvgPool, axes=3):
    """The mean of each window. x: float (N, C, D, H, W) or (C, D, H, W)."""


class AdaptiveMaxPool(AdaptivePool):
    __doc__ = f"{AdaptivePool.__doc__}\n    return_indices: also return the index of each maximum.\n    "
    _kind = "adaptive_max_pool"

    def __init__(self, output_size: OutputSize, return_indices: bool = False):
        super().__init__(output_size)
        self.return_indices = return_indices

    def forward(self, input: Tensor) -> Any:
        return getattr(F, self._function)(input, self.output_size, self.return_indices)


class AdaptiveMaxPool1d(AdaptiveMaxPool, axes=1):
    """The maximum of each window. x: float (N, C, L) or (C, L)."""


class AdaptiveMaxPool2d(AdaptiveMaxPool, axes=2):
    """The maximum of each window. x: float (N, C, H, W) or (C, H, W)."""


class AdaptiveMaxPool3d(AdaptiveMaxPool, axes=3):
    """The maximum of each window. x: float (N, C, D, H, W) or (C, D, H, W)."""


class MaxUnpool(Pool):
    """Put each element at its index from max pooling, with zeros elsewhere: layer(x, indices, output_size=None)."""

    _kind = "max_unpool"

    def __init__(self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0):
        name, n = type(self).__name__, self._axes
        kernel = sizes(name, "kernel_size", kernel_size, 1, n)
        step = kernel if stride is None else sizes(name, "stride", stride, 1, n)
        super().__init__(kernel, step, sizes(name, "padding", padding, 0, n))

    def forward(self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        function = getattr(F, self._function)
        return function(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool1d(MaxUnpool, axes=1):
    """x: float (N, C, L') or (C, L')."""


class MaxUnpool2d(MaxUnpool, axes=2):
    """x: float (N, C, H', W') or (C, H', W')."""


class MaxUnpool3d(MaxUnpool, axes=3):
    """x: float (N, C, D', H', W') or (C, D', H', W')."""


class FractionalMaxPool(ByAxes):
    """The maximum of each of output_size windows at random places, or of as many as output_ratio times the input's
    size. return_indices: also return the index of each maximum.
    """

    _kind = "fractional_max_pool"
    _repr_attributes = ("kernel_size", "output_size", "output_ratio")

    def __init__(
        self,
        kernel_size: Sizes,
        output_size: Sizes | None = None,
        output_ratio: float | tuple[float, ...] | None = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ):
        super().__init__()
        self.kernel_size, self.return_indices = kernel_size, return_indices
        self.output_size, self.output_ratio = output_size, output_ratio
        self.register_buffer("_random_samples", _random_samples)

    def forward(self, input: Tensor) -> Any:
        function, samples = getattr(F, self._function), self._random_samples
        return function(input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices, samples)


class FractionalMaxPool2d(FractionalMaxPool, axes=2):
    """x: float (N, C, H, W) or (C, H, W)."""


class FractionalMaxPool3d(FractionalMaxPool, axes=3):
    """x: float (N, C, D, H, W) or (C, D, H, W)."""
