"""max_unpool: put maxima back to their positions; and pooling by the p-norm. Read next: `pooling_1d_3d.py`."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.base.errors import DTypeError, ShapeError
from ...core.functions.arguments import integer
from ...core.ops import pool_composites as pools
from ...core.source_location import fail
from ...core.tensor import Tensor
from .arguments import check_tensor, sizes
from .conv import Size1, Size2, Size3, Sizes
from .pooling_1d_3d import stride_or_kernel, to_batch, window_attrs


def max_unpool(
    n: int,
    input: Tensor,
    indices: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None,
    padding: Sizes,
    output_size: Sequence[int] | None,
) -> Tensor:
    """Return zeros of the size before pooling, with the input's elements at their indices."""
    name = f"max_unpool{n}d"
    x = to_batch(name, input, n)
    check_tensor(name, indices, "indices")
    if indices.spec.dtype.floating or indices.spec.shape != input.spec.shape:
        what = f"{name}: the input has shape {input.spec.shape}, the indices {indices.spec}"
        hint = f"the two results of max_pool{n}d(..., return_indices=True)"
        fail(DTypeError, what, hint, input=input, indices=indices)
    kernel = sizes(name, "kernel_size", kernel_size, 1, n)
    step = stride_or_kernel(name, n, kernel, stride)
    pad = sizes(name, "padding", padding, 0, n)
    usual = [(m - 1) * s + k - 2 * p for m, s, k, p in zip(x.spec.shape[2:], step, kernel, pad)]
    size = usual if output_size is None else list(output_size)
    size = size[2:] if len(size) == n + 2 else size
    if len(size) != n or any(not u - s < m < u + s for m, u, s in zip(size, usual, step)) or min(size) < 1:
        what = f"{name}: output_size is {tuple(size)}, where {tuple(usual)} is usual, and less than {step} more or less"
        fail(ShapeError, what, "the shape of what was pooled", input=input)
    places = indices if x is input else indices.unsqueeze(0)
    out = pools.max_unpool[n](x, places, output_size=tuple([integer(m, "size") for m in size]))
    return out if x is input else out.squeeze(0)


def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Size1,
    stride: Size1 | None = None,
    padding: Size1 = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """The inverse of max_pool1d(..., return_indices=True): zeros, with input[n,c,i] at index indices[n,c,i] of L.

    input: float (N, C, L') or (C, L'). output_size: one of the sizes that pooling maps to L', with or without (N, C).
    Raises OutOfRangeError if an index is outside.
    """
    return max_unpool(1, input, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Size2,
    stride: Size2 | None = None,
    padding: Size2 = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """The inverse of max_pool2d(..., return_indices=True): zeros, with each element at its index in H * W.

    input: float (N, C, H', W') or (C, H', W'). Zeiler & Fergus 2014, section 2.1.
    """
    return max_unpool(2, input, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Size3,
    stride: Size3 | None = None,
    padding: Size3 = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """The inverse of max_pool3d(..., return_indices=True): zeros, with each element at its index in D * H * W."""
    return max_unpool(3, input, indices, kernel_size, stride, padding, output_size)


def lp_pool(
    n: int, input: Tensor, norm_type: float, kernel_size: Sizes, stride: Sizes | None, ceil_mode: bool
) -> Tensor:
    """Return the p-norm of each window."""
    name = f"lp_pool{n}d"
    x = to_batch(name, input, n)
    p = float(norm_type * 1.0)  # unlike float(), refuses strings
    attrs = window_attrs(name, n, x, kernel_size, stride, 0, ceil_mode=ceil_mode)
    del attrs["padding"], attrs["dilation"]
    out = pools.lp_pool[n](x, norm_type=p, **attrs)
    return out if x is input else out.squeeze(0)


def lp_pool1d(
    input: Tensor, norm_type: float, kernel_size: int, stride: int | None = None, ceil_mode: bool = False
) -> Tensor:
    """(sum of x**p over each window)**(1/p), p = norm_type. input: float (N, C, L) or (C, L)."""
    return lp_pool(1, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(
    input: Tensor, norm_type: float, kernel_size: Size2, stride: Size2 | None = None, ceil_mode: bool = False
) -> Tensor:
    """(sum of x**p over each window)**(1/p), p = norm_type. input: float (N, C, H, W) or (C, H, W)."""
    return lp_pool(2, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(
    input: Tensor, norm_type: float, kernel_size: Size3, stride: Size3 | None = None, ceil_mode: bool = False
) -> Tensor:
    """(sum of x**p over each window)**(1/p), p = norm_type. input: float (N, C, D, H, W) or (C, D, H, W)."""
    return lp_pool(3, input, norm_type, kernel_size, stride, ceil_mode)
