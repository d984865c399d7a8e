"""Pooling of signals and volumes. Read next: `../../core/ops/pool_composites.py`; `adaptive_pools.py`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from ...core.base.errors import DTypeError, ShapeError
from ...core.base.signatures import rename
from ...core.functions.arguments import integer
from ...core.ops import pool_composites as pools
from ...core.ops.conv_composites import AXES
from ...core.source_location import fail
from ...core.tensor import Tensor
from .arguments import check_tensor, sizes
from .conv import Size1, Size3, Sizes
from .pooling import Pooled, max_pool2d


def to_batch(name: str, input: Tensor, n: int) -> Tensor:
    """Return (N, C, ...) from a batch or one example. n: number of spatial axes."""
    check_tensor(name, input)
    x, axes = input.spec, AXES[n]
    if not x.dtype.floating:
        fail(DTypeError, f"{name}: the input must be floating, got {x.dtype.name}", "x.float()", input=input)
    if x.ndim not in (n + 1, n + 2):
        what = f"{name}: the input must be (N, C, {axes}) or (C, {axes}), got {x.ndim} axes"
        fail(ShapeError, what, f"x.flatten(0, {-n - 2})" if x.ndim > n + 2 else "x.unsqueeze(0)", input=input)
    if 0 in x.shape[-n - 1 :]:
        fail(ShapeError, f"{name}: an input of shape {list(x.shape)} has no elements to pool", "x.shape", input=input)
    return input if x.ndim == n + 2 else input.unsqueeze(0)


def stride_or_kernel(name: str, n: int, kernel: tuple[int, ...], stride: Sizes | None) -> tuple[int, ...]:
    """Return the stride; None or an empty sequence means the kernel's size."""
    none = stride is None or (isinstance(stride, tuple | list) and not stride)
    return kernel if none else sizes(name, "stride", stride, 1, n)


def window_attrs(
    name: str,
    n: int,
    x: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None,
    padding: Sizes,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
) -> dict[str, Any]:
    """Return the attrs of a pooling over n axes. Raises ShapeError if a window does not fit."""
    kernel = sizes(name, "kernel_size", kernel_size, 1, n)
    step = stride_or_kernel(name, n, kernel, stride)
    pad, spread = sizes(name, "padding", padding, 0, n), sizes(name, "dilation", dilation, 1, n)
    for size, k, s, p, d in zip(x.spec.shape[2:], kernel, step, pad, spread):
        if p > k // 2:
            what = f"{name}: padding {p} is more than half of the window of {k}"
            fail(ShapeError, what, "at most half: a window must overlap the input", input=x)
        reach = size + 2 * p - d * (k - 1) - 1
        if reach < 0 and not (ceil_mode and -reach < s):
            what = f"{name}: a window of {kernel} with dilation {spread} does not fit into {x.spec.shape[2:]}"
            fail(ShapeError, what, "a smaller window, or fewer poolings before this layer", input=x)
    return dict(kernel_size=kernel, stride=step, padding=pad, dilation=spread, ceil_mode=bool(ceil_mode))


def maxima(result: Any, input: Tensor, return_indices: bool) -> Pooled:
    """Return the result of max pooling of a batch: of one example if that is the input, with indices if requested."""
    y, indices = result
    if input.spec.ndim < y.spec.ndim:
        y, indices = y.squeeze(0), indices.squeeze(0) if return_indices else indices
    return (y, indices) if return_indices else y


def max_pool1d(
    input: Tensor,
    kernel_size: Size1,
    stride: Size1 | None = None,
    padding: Size1 = 0,
    dilation: Size1 = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Pooled:
    """The maximum of each window. input: float (N, C, L) or (C, L). Options as in max_pool2d.

    return_indices: also return the index in L of each maximum, int64.
    """
    x = to_batch("max_pool1d", input, 1)
    attrs = window_attrs("max_pool1d", 1, x, kernel_size, stride, padding, dilation, ceil_mode)
    return maxima(pools.max_pool[1](x, **attrs), input, return_indices)


def max_pool3d(
    input: Tensor,
    kernel_size: Size3,
    stride: Size3 | None = None,
    padding: Size3 = 0,
    dilation: Size3 = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Pooled:
    """The maximum of each window. input: float (N, C, D, H, W) or (C, D, H, W). Options as in max_pool2d.

    return_indices: also return the index in D * H * W of each maximum, int64.
    """
    x = to_batch("max_pool3d", input, 3)
    attrs = window_attrs("max_pool3d", 3, x, kernel_size, stride, padding, dilation, ceil_mode)
    return maxima(pools.max_pool[3](x, **attrs), input, return_indices)


def with_indices(pool: Callable) -> Callable:
    """The max pooling that always returns (maxima, indices), whatever its argument return_indices."""

    @functools.wraps(pool)
    def pooled(*args: Any, **kwargs: Any) -> Pooled:
        bound = signature.bind(*args, **kwargs)
        return pool(**bound.arguments | {"return_indices": True})

    signature = inspect.signature(pool)
    rename(pooled, f"{pool.__name__}_with_indices")
    pooled.__doc__ = f"`{pool.__name__}` with return_indices=True: (maxima, indices)."
    return pooled


max_pool1d_with_indices, max_pool2d_with_indices = with_indices(max_pool1d), with_indices(max_pool2d)
max_pool3d_with_indices = with_indices(max_pool3d)


def avg_pool(n: int, x: Tensor, input: Tensor, attrs: dict, count_include_pad: bool, divisor: int | None) -> Tensor:
    """Return the mean of each window. x: `input` as a batch."""
    del attrs["dilation"]
    y = pools.avg_pool[n](x, **attrs, count_include_pad=bool(count_include_pad), divisor_override=divisor)
    return y if x is input else y.squeeze(0)


def avg_pool1d(
    input: Tensor,
    kernel_size: Size1,
    stride: Size1 | None = None,
    padding: Size1 = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """The mean of each window. input: float (N, C, L) or (C, L). Options as in avg_pool2d."""
    x = to_batch("avg_pool1d", input, 1)
    attrs = window_attrs("avg_pool1d", 1, x, kernel_size, stride, padding, ceil_mode=ceil_mode)
    return avg_pool(1, x, input, attrs, count_include_pad, None)


def avg_pool3d(
    input: Tensor,
    kernel_size: Size3,
    stride: Size3 | None = None,
    padding: Size3 = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each window. input: float (N, C, D, H, W) or (C, D, H, W). Options as in avg_pool2d."""
    x = to_batch("avg_pool3d", input, 3)
    if divisor_override is not None and not integer(divisor_override, "divisor_override"):
        hint = "the number to divide each window's sum by, or None"
        fail(ShapeError, "avg_pool3d: divisor_override is 0", hint, input=input)
    attrs = window_attrs("avg_pool3d", 3, x, kernel_size, stride, padding, ceil_mode=ceil_mode)
    return avg_pool(3, x, input, attrs, count_include_pad, divisor_override)
