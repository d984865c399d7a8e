"""Adaptive pooling: the mean or the maximum of windows whose number is the output size.

Window i of m over n elements goes from floor(i*n/m) to ceil((i+1)*n/m). For the maximum, the elements of all windows
are gathered one window after another (a short window repeats its last one), so that max_pool2d sees equal windows.
Read next: `pooling_1d_3d.py`.
"""

from __future__ import annotations

import numpy as np

from ...core.functions.creation import from_numpy
from ...core.ops import pool
from ...core.ops.index import take
from ...core.spec import float16, float32
from ...core.tensor import Tensor
from .arguments import composite, sizes
from .pooling import Pooled
from .pooling_1d_3d import max_with_indices, pool_in_two_passes, to_batch, with_indices

Sizes = int | None | tuple[int | None, ...]


def output_sizes(name: str, n: int, x: Tensor, output_size: Sizes) -> tuple[int, ...]:
    """Return the size of the output; None keeps the input's size."""
    every = isinstance(output_size, tuple | list)
    requested = tuple(output_size) if every else (output_size,) * n  # type: ignore[arg-type]
    have = x.spec.shape[2:]
    filled = tuple(m if a is None else a for a, m in zip(requested, have)) if len(requested) == n else requested
    return sizes(name, "output_size", filled, 1, n)


def window_indices(n: int, m: int) -> np.ndarray:
    """Return (m, k) positions: those of each window, padded to the longest window by repeating its last position."""
    starts, stops = np.arange(m) * n // m, -(-(np.arange(m) + 1) * n // m)
    return np.minimum(starts[:, None] + np.arange((stops - starts).max()), stops[:, None] - 1)


def adaptive_max_impl(x: Tensor, size: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """The maximum of each window of images, and its index in H * W."""
    kernel = []
    places = [window_indices(n, m) for n, m in zip(x.spec.shape[2:], size)]
    y = x
    for axis, place in enumerate(places, 2):
        kernel.append(place.shape[1])
        if place.shape[1] > 1 or len(place) != x.spec.shape[axis]:
            y = take(y, from_numpy(place.reshape(-1)), axis=axis)
    attrs = dict(kernel_size=tuple(kernel), stride=tuple(kernel), padding=(0, 0), dilation=(1, 1), ceil_mode=False)
    y, indices = max_with_indices(y, attrs)
    width = places[1].size
    row, column = [
        take(from_numpy(p.reshape(-1)), i, axis=0) for p, i in zip(places, (indices // width, indices % width))
    ]
    return y, row * x.spec.shape[3] + column


@composite("adaptive_max_pool1d")
def adaptive_max_pool1d(input: Tensor, output_size: Sizes, return_indices: bool = False) -> Pooled:
    """The maximum of each of output_size windows. input: float (N, C, L) or (C, L).

    return_indices: also return the index in L of each maximum, int64.
    """
    x = to_batch("adaptive_max_pool1d", input, 1)
    size = output_sizes("adaptive_max_pool1d", 1, x, output_size)
    y, indices = adaptive_max_impl(x.unsqueeze(2), (1, *size))
    return with_indices(y.squeeze(2), indices.squeeze(2), input, return_indices)


@composite("adaptive_max_pool2d")
def adaptive_max_pool2d(input: Tensor, output_size: Sizes, return_indices: bool = False) -> Pooled:
    """The maximum of each of output_size windows: an int, a pair, or None for an axis that keeps its size.

    input: float (N, C, H, W) or (C, H, W). return_indices: also return the index in H * W of each maximum, int64.
    """
    x = to_batch("adaptive_max_pool2d", input, 2)
    size = output_sizes("adaptive_max_pool2d", 2, x, output_size)
    return with_indices(*adaptive_max_impl(x, size), input, return_indices)


@composite("adaptive_max_pool3d")
def adaptive_max_pool3d(input: Tensor, output_size: Sizes, return_indices: bool = False) -> Pooled:
    """The maximum of each of output_size windows. input: float (N, C, D, H, W) or (C, D, H, W).

    return_indices: also return the index in D * H * W of each maximum, int64.
    """
    x = to_batch("adaptive_max_pool3d", input, 3)
    depth, rows, columns = output_sizes("adaptive_max_pool3d", 3, x, output_size)
    result = pool_in_two_passes(
        x, lambda y: adaptive_max_impl(y, (rows, columns)), lambda y: adaptive_max_impl(y, (depth, y.spec.shape[3]))
    )
    return with_indices(*result, input, return_indices)


@composite("adaptive_avg_pool1d")
def adaptive_avg_pool1d(input: Tensor, output_size: Sizes) -> Tensor:
    """The mean of each of output_size windows. input: float (N, C, L) or (C, L)."""
    x = to_batch("adaptive_avg_pool1d", input, 1)
    size = output_sizes("adaptive_avg_pool1d", 1, x, output_size)
    y = pool.adaptive_avg_pool2d(x.unsqueeze(2), output_size=(1, *size)).squeeze(2)
    return y if x is input else y.squeeze(0)


@composite("adaptive_avg_pool3d")
def adaptive_avg_pool3d(input: Tensor, output_size: Sizes) -> Tensor:
    """The mean of each of output_size windows. input: float (N, C, D, H, W) or (C, D, H, W)."""
    x = to_batch("adaptive_avg_pool3d", input, 3)
    m, rows, columns = output_sizes("adaptive_avg_pool3d", 3, x, output_size)
    half = x.spec.dtype is float16
    x = x.to(float32) if half else x  # round once, at the end, not between the two passes
    n, c, depth, h, w = x.spec.shape
    y = pool.adaptive_avg_pool2d(x.reshape(n, c * depth, h, w), output_size=(rows, columns))
    y = y.reshape(n, c, depth, rows * columns).transpose(2, 3).reshape(n, c * rows * columns, 1, depth)
    y = pool.adaptive_avg_pool2d(y, output_size=(1, m)).reshape(n, c, rows, columns, m).movedim(4, 2)
    y = y.to(float16) if half else y
    return y if input.spec.ndim == 5 else y.squeeze(0)
