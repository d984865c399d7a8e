"""Layers that pool to a given size, and layers that undo max pooling. Read next: `../functional/adaptive_pools.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.tensor import Tensor
from .. import functional as F
from ..functional.arguments import sizes
from ..module import Module
from .pooling import Pool, Sizes

OutputSize = int | None | tuple[int | None, ...]


class AdaptivePool(Module):
    """Base of adaptive pools: one window per output element. output_size: an int, one for each axis, or None for an
    axis that keeps its size.
    """

    function = ""

    def __init__(self, output_size: OutputSize):
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Any:
        return getattr(F, self.function)(input, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(AdaptivePool):
    __doc__ = f"The mean of each window. x: float (N, C, L) or (C, L). {AdaptivePool.__doc__}"
    function = "adaptive_avg_pool1d"


class AdaptiveAvgPool2d(AdaptivePool):
    __doc__ = f"The mean of each window. x: float (N, C, H, W) or (C, H, W). {AdaptivePool.__doc__}"
    function = "adaptive_avg_pool2d"


class AdaptiveAvgPool3d(AdaptivePool):
    __doc__ = f"The mean of each window. x: float (N, C, D, H, W) or (C, D, H, W). {AdaptivePool.__doc__}"
    function = "adaptive_avg_pool3d"


class AdaptiveMaxPool(AdaptivePool):
    __doc__ = f"{AdaptivePool.__doc__}\n    return_indices: also return the index of each maximum.\n    "

    def __init__(self, output_size: OutputSize, return_indices: bool = False):
        super().__init__(output_size)
        self.return_indices = return_indices

    def forward(self, input: Tensor) -> Any:
        return getattr(F, self.function)(input, self.output_size, self.return_indices)


class AdaptiveMaxPool1d(AdaptiveMaxPool):
    __doc__ = f"The maximum of each window. x: float (N, C, L) or (C, L). {AdaptiveMaxPool.__doc__}"
    function = "adaptive_max_pool1d"


class AdaptiveMaxPool2d(AdaptiveMaxPool):
    __doc__ = f"The maximum of each window. x: float (N, C, H, W) or (C, H, W). {AdaptiveMaxPool.__doc__}"
    function = "adaptive_max_pool2d"


class AdaptiveMaxPool3d(AdaptiveMaxPool):
    __doc__ = f"The maximum of each window. x: float (N, C, D, H, W) or (C, D, H, W). {AdaptiveMaxPool.__doc__}"
    function = "adaptive_max_pool3d"


class MaxUnpool(Pool):
    """Put each element at its index from max pooling, with zeros elsewhere: layer(x, indices, output_size=None)."""

    axes = 2

    def __init__(self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0):
        name, n = type(self).__name__, self.axes
        kernel = sizes(name, "kernel_size", kernel_size, 1, n)
        step = kernel if stride is None else sizes(name, "stride", stride, 1, n)
        super().__init__(kernel, step, sizes(name, "padding", padding, 0, n))

    def forward(self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        function = getattr(F, f"max_unpool{self.axes}d")
        return function(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool1d(MaxUnpool):
    __doc__ = f"x: float (N, C, L') or (C, L'). {MaxUnpool.__doc__}"
    axes = 1


class MaxUnpool2d(MaxUnpool):
    __doc__ = f"x: float (N, C, H', W') or (C, H', W'). {MaxUnpool.__doc__}"


class MaxUnpool3d(MaxUnpool):
    __doc__ = f"x: float (N, C, D', H', W') or (C, D', H', W'). {MaxUnpool.__doc__}"
    axes = 3
