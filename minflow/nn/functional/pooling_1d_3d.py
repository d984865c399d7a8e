"""Pooling of signals and volumes. A signal is pooled as an image of one row, a volume in two passes: image by image,
then along the depth. That is exact for the maximum, and the first of equal maxima stays the first.

Read next: `pooling.py`, the same for images; `adaptive_pools.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.base.errors import DTypeError, ShapeError
from ...core.functions.arguments import integer
from ...core.ops import pool
from ...core.ops.conv_composites import AXES
from ...core.source_location import fail
from ...core.spec import float16, float32
from ...core.tensor import Tensor
from .arguments import check_tensor, composite, sizes
from .conv import Size1, Size3, Sizes
from .pooling import Pooled


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


UNPOOLED_AXIS = dict(kernel_size=1, stride=1, padding=0, dilation=1)  # attrs of an axis that is not pooled


def select_axes(attrs: dict, *axes: int | None) -> dict:
    """The attrs of two axes; None is an axis that is not pooled."""
    chosen = {
        k: tuple([UNPOOLED_AXIS[k] if i is None else v[i] for i in axes])
        for k, v in attrs.items()
        if k in UNPOOLED_AXIS
    }
    return attrs | chosen


def max_with_indices(x: Tensor, attrs: dict) -> tuple[Tensor, Tensor]:
    y, indices = pool.max_pool2d(x, **attrs)
    return y, indices


def pool_in_two_passes(
    x: Tensor,
    over_images: Callable[[Tensor], tuple[Tensor, Tensor]],
    over_depth: Callable[[Tensor], tuple[Tensor, Tensor]],
) -> tuple[Tensor, Tensor]:
    """Pool volumes in two passes by two functions for images: (maxima, their indices in D * H * W)."""
    n, c, depth, h, w = x.spec.shape
    y, inner = over_images(x.reshape(n, c * depth, h, w))
    rows, columns = y.spec.shape[2:]
    y, outer = over_depth(y.reshape(n, c, depth, rows * columns))
    inner = pool.picked(inner.reshape(n, c, depth, rows * columns), outer)
    shape = (n, c, y.spec.shape[2], rows, columns)
    return y.reshape(shape), (outer // (rows * columns) * (h * w) + inner).reshape(shape)


def with_indices(y: Tensor, indices: Tensor, input: Tensor, return_indices: bool) -> Pooled:
    """Return the result of max pooling, with the indices if they are requested."""
    if input.spec.ndim < y.spec.ndim:
        y, indices = y.squeeze(0), indices.squeeze(0)
    return (y, indices) if return_indices else y


@composite("max_pool1d")
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
    y, indices = max_with_indices(x.unsqueeze(2), select_axes(attrs, None, 0))
    return with_indices(y.squeeze(2), indices.squeeze(2), input, return_indices)


@composite("max_pool3d")
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
    images, depth = select_axes(attrs, 1, 2), select_axes(attrs, 0, None)
    return with_indices(
        *pool_in_two_passes(x, lambda y: max_with_indices(y, images), lambda y: max_with_indices(y, depth)),
        input,
        return_indices,
    )


def average_pool(x: Tensor, attrs: dict, count_include_pad: bool, divisor: int | None) -> Tensor:
    rest = {k: v for k, v in attrs.items() if k != "dilation"}
    return pool.avg_pool2d(x, **rest, count_include_pad=bool(count_include_pad), divisor_override=divisor)


@composite("avg_pool1d")
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
    attrs = select_axes(window_attrs("avg_pool1d", 1, x, kernel_size, stride, padding, ceil_mode=ceil_mode), None, 0)
    y = average_pool(x.unsqueeze(2), attrs, count_include_pad, None).squeeze(2)
    return y if x is input else y.squeeze(0)


@composite("avg_pool3d")
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
    half = x.spec.dtype is float16
    x = x.to(float32) if half else x  # round once, at the end, not between the two passes
    n, c, depth, h, w = x.spec.shape
    first = None if divisor_override is None else 1
    y = average_pool(x.reshape(n, c * depth, h, w), select_axes(attrs, 1, 2), count_include_pad, first)
    rows, columns = y.spec.shape[2:]
    y = average_pool(
        y.reshape(n, c, depth, rows * columns), select_axes(attrs, 0, None), count_include_pad, divisor_override
    )
    y = y.reshape(n, c, y.spec.shape[2], rows, columns)
    y = y.to(float16) if half else y
    return y if input.spec.ndim == 5 else y.squeeze(0)
