"""Adaptive pooling: the mean or the maximum of windows whose number is the output size.

Window i of m over n elements goes from floor(i*n/m) to ceil((i+1)*n/m). Read next: `pooling_1d_3d.py`.
"""

from __future__ import annotations

from ...core.ops import pool_composites as pools
from ...core.tensor import Tensor
from .arguments import sizes
from .pooling import Pooled
from .pooling_1d_3d import maxima, to_batch, with_indices

Sizes = int | None | tuple[int | None, ...]


def output_sizes(name: str, n: int, x: Tensor, output_size: Sizes) -> tuple[int, ...]:
    """Return the size of the output; None keeps the input's size."""
    every = isinstance(output_size, tuple | list)
    requested = tuple(output_size) if every else (output_size,) * n  # type: ignore[arg-type]
    have = x.spec.shape[2:]
    filled = tuple(m if a is None else a for a, m in zip(requested, have)) if len(requested) == n else requested
    return sizes(name, "output_size", filled, 1, n)


def adaptive_max_pool(n: int, input: Tensor, output_size: Sizes, return_indices: bool) -> Pooled:
    name = f"adaptive_max_pool{n}d"
    x = to_batch(name, input, n)
    result = pools.adaptive_max_pool[n](x, output_size=output_sizes(name, n, x, output_size))
    return maxima(result, input, return_indices)


def adaptive_avg_pool(n: int, input: Tensor, output_size: Sizes) -> Tensor:
    name = f"adaptive_avg_pool{n}d"
    x = to_batch(name, input, n)
    y = pools.adaptive_avg_pool[n](x, output_size=output_sizes(name, n, x, output_size))
    return y if x is input else y.squeeze(0)


def adaptive_max_pool1d(input: Tensor, output_size: Sizes, return_indices: bool = False) -> Pooled:
    """The maximum of each of output_size windows. input: float (N, C, L) or (C, L).

    return_indices: also return the index in L of each maximum, int64.
    """
    return adaptive_max_pool(1, input, output_size, return_indices)


def adaptive_max_pool2d(input: Tensor, output_size: Sizes, return_indices: bool = False) -> Pooled:
    """The maximum of each of output_size windows: an int, a pair, or None for an axis that keeps its size.

    input: float (N, C, H, W) or (C, H, W). return_indices: also return the index in H * W of each maximum, int64.
    """
    return adaptive_max_pool(2, input, output_size, return_indices)


def adaptive_max_pool3d(input: Tensor, output_size: Sizes, return_indices: bool = False) -> Pooled:
    """The maximum of each of output_size windows. input: float (N, C, D, H, W) or (C, D, H, W).

    return_indices: also return the index in D * H * W of each maximum, int64.
    """
    return adaptive_max_pool(3, input, output_size, return_indices)


adaptive_max_pool1d_with_indices = with_indices(adaptive_max_pool1d)
adaptive_max_pool2d_with_indices = with_indices(adaptive_max_pool2d)
adaptive_max_pool3d_with_indices = with_indices(adaptive_max_pool3d)


def adaptive_avg_pool1d(input: Tensor, output_size: Sizes) -> Tensor:
    """The mean of each of output_size windows. input: float (N, C, L) or (C, L)."""
    return adaptive_avg_pool(1, input, output_size)


def adaptive_avg_pool3d(input: Tensor, output_size: Sizes) -> Tensor:
    """The mean of each of output_size windows. input: float (N, C, D, H, W) or (C, D, H, W)."""
    return adaptive_avg_pool(3, input, output_size)
