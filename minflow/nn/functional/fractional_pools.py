"""Pooling over windows at random places, so that the input shrinks by a factor that is no whole number.

Source: Graham 2014 (arXiv:1412.6071). Read next: `adaptive_pools.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.base.errors import ShapeError
from ...core.base.signatures import rename
from ...core.functions import gather
from ...core.functions.creation import arange, rand
from ...core.ops.conv_composites import AXES
from ...core.ops.global_tensors import on_each_rank
from ...core.source_location import fail
from ...core.tensor import Tensor
from .arguments import sizes
from .pooling import Pooled
from .pooling_1d_3d import maxima, to_batch, with_indices

Sizes = int | tuple[int, ...]


def starts(sample: Tensor, size: int, kernel: int, windows: int) -> Tensor:
    """First position of each window, int64 (N, C, windows). sample: in [0, 1), (N, C)."""
    u = sample.unsqueeze(-1)
    step = (size - kernel) / max(windows - 1, 1)
    i = arange(windows, dtype=u.dtype, device=u.device)
    first = ((i + u) * step).floor() - (u * step).floor()
    return first.masked_fill(i == windows - 1, size - kernel).long()


def fractional_max_pool(n: int) -> Callable[..., Pooled]:
    """The function for n spatial axes."""
    name = f"fractional_max_pool{n}d"

    def pooled(
        input: Tensor,
        kernel_size: Sizes,
        output_size: Sizes | None = None,
        output_ratio: float | tuple[float, ...] | None = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> Pooled:
        x = to_batch(name, input, n)
        shape = x.spec.shape[2:]
        if (output_size is None) is (output_ratio is None):
            fail(ShapeError, f"{name}: one of output_size and output_ratio is needed", "output_ratio=0.5", input=input)
        if output_size is None:
            ratios: Any = output_ratio if isinstance(output_ratio, tuple | list) else (output_ratio,) * n
            if len(ratios) != n:
                fail(
                    ShapeError,
                    f"{name}: output_ratio must be {n} numbers, got {ratios}",
                    "output_ratio=0.5",
                    input=input,
                )
            output_size = tuple([int(size * ratio) for size, ratio in zip(shape, ratios)])
        kernel, out = sizes(name, "kernel_size", kernel_size, 1, n), sizes(name, "output_size", output_size, 1, n)
        if any(m + k - 1 > size for size, k, m in zip(shape, kernel, out)):
            fail(ShapeError, f"{name}: {out} windows of {kernel} do not fit into {shape}", "fewer windows", input=input)
        if _random_samples is None:
            _random_samples = rand(*x.shape[:2], n, dtype=x.dtype, device=x.device)
        elif _random_samples.shape != (*x.shape[:2], n):
            what = f"{name}: _random_samples must be {(*x.shape[:2], n)}"
            fail(ShapeError, what, "flow.rand(N, C, n) for n axes", _random_samples=_random_samples, input=input)
        index = arange(1, device=x.device).reshape(*[1] * (2 * n + 2))  # (N, C, windows of each axis, their elements)
        for axis, (size, k, m) in enumerate(zip(shape, kernel, out)):
            sample = _random_samples[..., axis if n == 3 else 1 - axis]  # PyTorch's order: the columns of images first
            places = starts(sample, size, k, m).unsqueeze(-1) + arange(k, device=x.device)
            before, after = [1] * axis, [1] * (n - 1 - axis)
            index = index * size + places.reshape(*places.shape[:2], *before, m, *after, *before, k, *after)
        index = index.reshape(*index.shape[: n + 2], -1)
        if x.is_global and index.is_local:
            index = on_each_rank(index, x.placement)
        values = gather(x.flatten(2), 2, index.flatten(2)).reshape(index.shape)
        y, which = values.max(-1)
        indices = gather(index, -1, which.unsqueeze(-1)).squeeze(-1)
        return maxima((y, indices), input, return_indices)

    axes = AXES[n]
    pooled.__doc__ = f"""The maximum of each of output_size random windows. input: float (N, C, {axes}) or (C, {axes}).

    output_ratio: output_size as a fraction of the input's size, in place of it. return_indices: also return the index
    of each maximum in the flattened last axes, int64. _random_samples: in [0, 1), (N, C, {n}); drawn if None.
    """
    rename(pooled, name)
    return pooled


fractional_max_pool2d, fractional_max_pool3d = fractional_max_pool(2), fractional_max_pool(3)
fractional_max_pool2d_with_indices = with_indices(fractional_max_pool2d)
fractional_max_pool3d_with_indices = with_indices(fractional_max_pool3d)
