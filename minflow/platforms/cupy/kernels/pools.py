"""Pooling of images and its gradients, one launch each. Read next: `sources/pool.cu`."""

from __future__ import annotations

import math
from typing import Any

from ....core.backend import Array
from ....core.kernels import kernel
from ....core.ops.conv import positions
from ....core.ops.pool import (
    adaptive_avg_pool2d,
    adaptive_avg_pool2d_grad,
    avg_pool2d,
    avg_pool2d_grad,
    max_pool2d,
    max_pool2d_grad,
)
from ..device_code import blocks_for, launch, supported
from ..row_teams import BLOCK, contiguous, launch_rows, sum_dtype, team_size

SOURCE = "pool.cu"
TOLERANCE = 8  # means: another order of summation, and one rounding
MOST = 1 << 31  # elements, which are counted in 32 bits


def pool(xp: Any, name: str, x: Array, out: Array, *others: Array, sizes: tuple[int, ...], each: int) -> Any:
    """Run a function of `sources/pool.cu`, with a thread for each of these elements."""
    if not supported(x, out) or max(x.size, out.size) >= MOST:
        return NotImplemented
    types = {"T": x.dtype, "ACC": sum_dtype(x)}
    launch(SOURCE, name, blocks_for(each), BLOCK, x, out, *others, each, *sizes, types=types, TEAM=1)
    return out


@kernel(max_pool2d, platform="cupy", declines=True, bfloat16=True)
def _(xp, x, kernel_size, stride, padding, dilation, ceil_mode, out=None):
    if out is None:
        shape = *x.shape[:2], *positions(x.shape[2:], kernel_size, stride, padding, dilation, ceil_mode)
        out = xp.empty(shape, x.dtype), xp.empty(shape, "int64")
    y, indices = out
    if not indices.flags.c_contiguous:
        return NotImplemented
    sizes = *x.shape[2:], *y.shape[2:], *kernel_size, *stride, *padding, *dilation
    done = pool(xp, "max_pool", *contiguous(xp, x), y, indices, sizes=sizes, each=y.size)
    return NotImplemented if done is NotImplemented else out


@kernel(max_pool2d_grad, platform="cupy", declines=True, bfloat16=True, tolerance=1)
def _(xp, grad, indices, shape, apart, out=None):
    (grad, indices), out = contiguous(xp, grad, indices), xp.empty(shape, grad.dtype) if out is None else out
    planes, size, count = math.prod(shape[:2]), math.prod(shape[2:]), math.prod(grad.shape[2:])
    if not supported(grad, out) or indices.dtype != "int64" or max(size, count) >= MOST:
        return NotImplemented
    heads, links = xp.empty((planes, size), "int32"), xp.empty((planes, count), "int32")
    arrays, types = (grad, indices, out, heads, links), {"T": grad.dtype, "ACC": sum_dtype(grad)}
    launch(SOURCE, "max_pool_grad", planes, BLOCK, *arrays, size, count, int(apart), types=types, TEAM=1)
    return out


@kernel(avg_pool2d, platform="cupy", declines=True, bfloat16=True, tolerance=TOLERANCE)
def _(xp, x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, out=None):
    if out is None:
        out = xp.empty(
            (*x.shape[:2], *positions(x.shape[2:], kernel_size, stride, padding, (1, 1), ceil_mode)), x.dtype
        )
    sizes = *x.shape[2:], *out.shape[2:], *kernel_size, *stride, *padding
    sizes += int(count_include_pad), divisor_override or 0
    return pool(xp, "avg_pool", *contiguous(xp, x), out, sizes=sizes, each=out.size)


@kernel(avg_pool2d_grad, platform="cupy", declines=True, bfloat16=True, tolerance=TOLERANCE)
def _(xp, grad, shape, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, out=None):
    out = xp.empty(shape, grad.dtype) if out is None else out
    if divisor_override == 0:
        return NotImplemented
    sizes = *shape[2:], *grad.shape[2:], *kernel_size, *stride, *padding
    sizes += int(count_include_pad), divisor_override or 0
    return pool(xp, "avg_pool_grad", *contiguous(xp, grad), out, sizes=sizes, each=out.size)


@kernel(adaptive_avg_pool2d, platform="cupy", declines=True, bfloat16=True, tolerance=TOLERANCE)
def _(xp, x, output_size, out=None):
    (x,), out = contiguous(xp, x), xp.empty((*x.shape[:2], *output_size), x.dtype) if out is None else out
    if not supported(x, out) or max(x.size, out.size) >= MOST:
        return NotImplemented
    height, width = x.shape[2:]
    window = -(-height // output_size[0]) * -(-width // output_size[1])
    team, types = team_size(out.size, window), {"T": x.dtype, "ACC": sum_dtype(x)}
    sizes = out.size, height, width, *output_size
    launch_rows(SOURCE, "adaptive_avg_pool", out.size, team, x, out, *sizes, types=types)
    return out


@kernel(adaptive_avg_pool2d_grad, platform="cupy", declines=True, bfloat16=True, tolerance=TOLERANCE)
def _(xp, grad, shape, out=None):
    out = xp.empty(shape, grad.dtype) if out is None else out
    sizes = *shape[2:], *grad.shape[2:]
    return pool(xp, "adaptive_avg_pool_grad", *contiguous(xp, grad), out, sizes=sizes, each=out.size)
