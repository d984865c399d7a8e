"""max_unpool: put maxima back to their positions; and pooling by the p-norm. Read next: `pooling_1d_3d.py`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ...core.base.errors import DTypeError, ShapeError
from ...core.functions import masked_fill
from ...core.functions.creation import zeros
from ...core.ops.index import scatter
from ...core.source_location import fail
from ...core.tensor import Tensor
from .arguments import check_tensor, composite, sizes
from .conv import Size1, Size2, Size3, Sizes
from .pooling import avg_pool2d, max_pool2d
from .pooling_1d_3d import avg_pool1d, avg_pool3d, max_pool1d, max_pool3d, stride_or_kernel, to_batch


def max_unpool(
    name: str,
    n: int,
    input: Tensor,
    indices: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None,
    padding: Sizes,
    output_size: Sequence[int] | None,
) -> Tensor:
    """Return zeros of the size before pooling, with the input's elements at their indices."""
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
    flat, places = (t.reshape(*x.spec.shape[:2], math.prod(x.spec.shape[2:])) for t in (x, indices))
    empty = zeros(*x.spec.shape[:2], math.prod(size), dtype=x.spec.dtype)
    out = scatter(empty, places, flat, dim=2, by=name).reshape(*x.spec.shape[:2], *size)
    return out if x is input else out.squeeze(0)


@composite("max_unpool1d")
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
    return max_unpool("max_unpool1d", 1, input, indices, kernel_size, stride, padding, output_size)


@composite("max_unpool2d")
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
    return max_unpool("max_unpool2d", 2, input, indices, kernel_size, stride, padding, output_size)


@composite("max_unpool3d")
def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Size3,
    stride: Size3 | None = None,
    padding: Size3 = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """The inverse of max_pool3d(..., return_indices=True): zeros, with each element at its index in D * H * W."""
    return max_unpool("max_unpool3d", 3, input, indices, kernel_size, stride, padding, output_size)


AVG_POOLS: dict[int, tuple[Callable, Callable]] = {
    1: (avg_pool1d, max_pool1d),
    2: (avg_pool2d, max_pool2d),
    3: (avg_pool3d, max_pool3d),
}


def power_pool(
    name: str, n: int, input: Tensor, norm_type: float, kernel_size: Sizes, stride: Sizes | None, ceil_mode: bool
) -> Tensor:
    """The p-norm of each window: (mean of the powers * window size) ** (1 / p)."""
    to_batch(name, input, n)
    mean, most = AVG_POOLS[n]
    if math.isinf(norm_type):
        sign = math.copysign(1.0, norm_type)
        return most(input.abs() * sign, kernel_size, stride, 0, 1, ceil_mode) * sign
    if not norm_type:
        fail(ShapeError, f"{name}: norm_type must not be 0: the sum is raised to 1 / norm_type", "norm_type=2.0")
    count = math.prod(sizes(name, "kernel_size", kernel_size, 1, n))
    out = mean(input**norm_type, kernel_size, stride, 0, ceil_mode)
    nothing = out == 0  # the root has an infinite slope there: no gradient
    root = (masked_fill(out, nothing, 1.0) * count) ** (1.0 / norm_type)
    return masked_fill(root, nothing, 0.0 if norm_type > 0 else math.inf)


@composite("lp_pool1d")
def lp_pool1d(
    input: Tensor, norm_type: float, kernel_size: int, stride: int | None = None, ceil_mode: bool = False
) -> Tensor:
    """(sum of x**p over each window)**(1/p), p = norm_type. input: float (N, C, L) or (C, L)."""
    return power_pool("lp_pool1d", 1, input, norm_type, kernel_size, stride, ceil_mode)


@composite("lp_pool2d")
def lp_pool2d(
    input: Tensor, norm_type: float, kernel_size: Size2, stride: Size2 | None = None, ceil_mode: bool = False
) -> Tensor:
    """(sum of x**p over each window)**(1/p), p = norm_type. input: float (N, C, H, W) or (C, H, W)."""
    return power_pool("lp_pool2d", 2, input, norm_type, kernel_size, stride, ceil_mode)


@composite("lp_pool3d")
def lp_pool3d(
    input: Tensor, norm_type: float, kernel_size: Size3, stride: Size3 | None = None, ceil_mode: bool = False
) -> Tensor:
    """(sum of x**p over each window)**(1/p), p = norm_type. input: float (N, C, D, H, W) or (C, D, H, W)."""
    return power_pool("lp_pool3d", 3, input, norm_type, kernel_size, stride, ceil_mode)
