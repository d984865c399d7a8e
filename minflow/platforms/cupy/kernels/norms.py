"""Norms of rows, of groups of channels and of batches, and their gradients. Statistics take one pass over memory.

Sums over a channel are parts of chunks, which the next launch joins in order. Read next: `sources/row_norm.cu`,
`sources/channel_norm.cu`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

from ....core.backend import Array, is_array
from ....core.kernels import kernel
from ....core.ops.norm import batch_norm, batch_norm_grad, batch_norm_inference, group_norm, layer_norm, rms_norm
from ....core.spec import Spec, promote
from ..device_code import WARP, launch, supported
from ..row_teams import BLOCK, contiguous, launch_rows, sum_dtype, team_size

OPTIONS: dict[str, Any] = dict(platform="cupy", declines=True, bfloat16=True, tolerance=64)  # another order of sums
ROWS, CHANNELS = "row_norm.cu", "channel_norm.cu"
MOST_CHUNKS = 64
MOST = 1 << 31  # elements of a row or channel, which are counted in 32 bits


def given(*arrays: Any) -> list[Array]:
    return [x for x in arrays if is_array(x)]


def accepts(x: int, *specs: Spec | type, **attrs: Any) -> bool:
    """True unless the weight and the bias have two dtypes. x: the index of x among the inputs of an op."""
    vectors = [s for s in specs[x + 1 :] if isinstance(s, Spec)]
    return specs[x].size > 0 and specs[0].dtype is specs[x].dtype and len({s.dtype for s in vectors}) < 2  # type: ignore[union-attr]  # tensors


# ---- rows ------------------------------------------------------------------------------------------------------------


def vector(x: Array | float) -> tuple[Array | None, float]:
    """A weight or bias as a kernel takes it: a pointer, and the number in its place."""
    return (x, 0.0) if is_array(x) else (None, float(x))


def row_dtypes(x: Array, *vectors: Array | float) -> dict[str, Any] | None:
    """dtypes by macro; None if the weight and the bias have two."""
    dtypes = {v.dtype for v in given(*vectors)} or {x.dtype}
    return {"T": x.dtype, "W": dtypes.pop(), "ACC": sum_dtype(x)} if len(dtypes) == 1 else None


def normalize_rows(
    xp: Any,
    x: Array,
    weight: Array | float,
    bias: Array | float,
    out: Array | None,
    eps: float,
    columns: int,
    groups: int = 1,
    pixels: int = 1,
    centered: int = 1,
) -> Any:
    """Normalize rows of this number of columns: see `sources/row_norm.cu`."""
    (x,), out = contiguous(xp, x), xp.empty(x.shape, x.dtype) if out is None else out
    types = row_dtypes(x, weight, bias)
    if types is None or not supported(x, out, *given(weight, bias)) or columns >= MOST:
        return NotImplemented
    rows, sizes = x.size // columns, (columns, groups, pixels)
    arrays = x, *vector(weight), *vector(bias), out
    team = team_size(rows, columns)
    launch_rows(ROWS, "norm_rows", rows, team, *arrays, eps, rows, *sizes, types=types, CENTERED=centered)
    return out


def row_gradients(
    xp: Any,
    grad: Array,
    x: Array,
    weight: Array | float,
    outs: Sequence[Array] | None,
    needs: int,
    eps: float,
    columns: int,
    groups: int = 1,
    pixels: int = 1,
    centered: int = 1,
) -> Any:
    """Write the gradients with respect to x, weight and, if there is one, bias."""
    if outs is None or grad.dtype != x.dtype:
        return NotImplemented
    (grad, x), vectors = contiguous(xp, grad, x), [out if needs >> i & 1 else None for i, out in enumerate(outs)][1:]
    gx, types = outs[0] if needs & 1 else xp.empty(x.shape, x.dtype), row_dtypes(x, weight, *vectors)
    if types is None or not supported(grad, x, gx, *given(weight, *vectors)) or max(columns, x.size // columns) >= MOST:
        return NotImplemented
    rows = x.size // columns
    statistics = xp.empty((2, rows), types["ACC"])
    options: dict[str, Any] = dict(types=types, CENTERED=centered)
    sizes = rows, columns, groups, pixels
    team = team_size(rows, columns)
    launch_rows(ROWS, "norm_grad_rows", rows, team, grad, x, *vector(weight), gx, statistics, eps, *sizes, **options)
    if given(*vectors):
        channels = groups * (columns // pixels)
        images = rows // groups
        parts = sum_channels(grad, x, statistics[0], statistics[1], xp, eps, images, channels, pixels, groups)
        blocks = -(-channels // WARP)
        types |= {"S": types["ACC"]}
        both = [*vectors, None][:2]
        launch(CHANNELS, "add_sums", blocks, BLOCK, parts, *both, channels, len(parts), types=types, LANES=WARP)
    return outs


@kernel(layer_norm, **OPTIONS, accepts=partial(accepts, 0))
def _(xp, x, weight, bias, axes, eps, out=None):
    return normalize_rows(xp, x, weight, bias, out, eps, math.prod(x.shape[-len(axes) :]))


@kernel(layer_norm.gradient, **OPTIONS, accepts=partial(accepts, 1))
def _(xp, grad, x, weight, bias, axes, eps, needs, out=None):
    return row_gradients(xp, grad, x, weight, out, needs, eps, math.prod(x.shape[-len(axes) :]))


@kernel(rms_norm, **OPTIONS, accepts=partial(accepts, 0))
def _(xp, x, weight, axes, eps, out=None):
    return normalize_rows(xp, x, weight, 0, out, eps, math.prod(x.shape[-len(axes) :]), centered=0)


@kernel(rms_norm.gradient, **OPTIONS, accepts=partial(accepts, 1))
def _(xp, grad, x, weight, axes, eps, needs, out=None):
    return row_gradients(xp, grad, x, weight, out, needs, eps, math.prod(x.shape[-len(axes) :]), centered=0)


def group_sizes(x: Array, groups: int) -> dict[str, int]:
    return {"columns": math.prod(x.shape[1:]) // groups, "groups": groups, "pixels": math.prod(x.shape[2:])}


@kernel(group_norm, **OPTIONS, accepts=partial(accepts, 0))
def _(xp, x, weight, bias, groups, eps, out=None):
    return normalize_rows(xp, x, weight, bias, out, eps, **group_sizes(x, groups))


@kernel(group_norm.gradient, **OPTIONS, accepts=partial(accepts, 1))
def _(xp, grad, x, weight, bias, groups, eps, needs, out=None):
    return row_gradients(xp, grad, x, weight, out, needs, eps, **group_sizes(x, groups))


# ---- channels --------------------------------------------------------------------------------------------------------


def channel_grid(images: int, channels: int, pixels: int) -> tuple[tuple[int, int], int]:
    """(blocks of channels and chunks of their elements, channels of a block)."""
    lanes = WARP if pixels == 1 else 1
    blocks, count = -(-channels // lanes), images * pixels
    return (blocks, max(1, min(MOST_CHUNKS, 1024 // blocks, count * lanes // (4 * BLOCK)))), lanes


def sum_channels(
    grad: Array,
    x: Array,
    mean: Array,
    var: Array,
    xp: Any,
    eps: float,
    images: int,
    channels: int,
    pixels: int,
    rows_of_image: int,
) -> Array:
    """The sums of grad, and of grad times the normalized x, for each chunk and channel: (chunks, channels, 2).

    rows_of_image: the number of statistics of an image; 0 if all images share those of each channel.
    """
    grid, lanes = channel_grid(images, channels, pixels)
    types = {"T": x.dtype, "S": mean.dtype, "W": x.dtype, "ACC": sum_dtype(x)}
    parts = xp.empty((grid[1], channels, 2), types["ACC"])
    sizes = images, channels, pixels, rows_of_image, channels // rows_of_image if rows_of_image else 1
    launch(CHANNELS, "channel_sums", grid, BLOCK, grad, x, mean, var, parts, eps, *sizes, types=types, LANES=lanes)
    return parts


def batch_sizes(x: Array) -> tuple[int, int, int]:
    return x.shape[0], x.shape[1], math.prod(x.shape[2:])


@kernel(batch_norm, **OPTIONS)
def _(xp, x, weight, bias, eps, out=None):
    if out is None:
        out = xp.empty(x.shape, x.dtype), xp.empty(weight.shape, x.dtype), xp.empty(weight.shape, x.dtype)
    x, weight, bias = contiguous(xp, x, weight, bias)
    if not supported(x, weight, bias, *out) or x.size // x.shape[1] >= MOST:
        return NotImplemented
    sizes = batch_sizes(x)
    grid, lanes = channel_grid(*sizes)
    acc = sum_dtype(x)
    parts = xp.empty((grid[1], sizes[1], 3), acc)
    options = dict(types={"T": x.dtype, "S": x.dtype, "W": x.dtype, "ACC": acc}, LANES=lanes)
    launch(CHANNELS, "channel_moments", grid, BLOCK, x, parts, *sizes, **options)
    launch(CHANNELS, "batch_norm", grid, BLOCK, x, weight, bias, parts, *out, eps, *sizes, **options)
    return out


@kernel(batch_norm_grad, **OPTIONS)
def _(xp, grad, x, weight, mean, var, eps, out=None):
    if out is None:
        out = xp.empty(x.shape, x.dtype), xp.empty(weight.shape, x.dtype), xp.empty(weight.shape, x.dtype)
    grad, x, weight, mean, var = contiguous(xp, grad, x, weight, mean, var)
    if not supported(grad, x, weight, mean, var, *out) or x.size // x.shape[1] >= MOST:
        return NotImplemented
    sizes = batch_sizes(x)
    grid, lanes = channel_grid(*sizes)
    parts = sum_channels(grad, x, mean, var, xp, eps, *sizes, 0)
    options = dict(types={"T": x.dtype, "S": x.dtype, "W": x.dtype, "ACC": sum_dtype(x)}, LANES=lanes)
    arrays = grad, x, weight, mean, var, parts, *out
    launch(CHANNELS, "batch_norm_grad", grid, BLOCK, *arrays, eps, *sizes, **options)
    return out


def keeps_dtype(x: Spec, mean: Spec, var: Spec, *affine: Spec | type, **attrs: Any) -> bool:
    """True if the result has the dtype of x, and the pairs of vectors have one dtype each."""
    vectors = [s for s in affine if isinstance(s, Spec)]
    real = x.dtype.floating and complex not in affine and x.size > 0
    one = mean.dtype is var.dtype and len({s.dtype for s in vectors}) < 2
    return real and one and all([promote(x, s) is x.dtype for s in (mean, *vectors)])


@kernel(batch_norm_inference, **OPTIONS, accepts=keeps_dtype)
def _(xp, x, mean, var, weight, bias, eps, out=None):
    x, mean, var = contiguous(xp, x, mean, var)
    out, types = xp.empty(x.shape, x.dtype) if out is None else out, row_dtypes(x, weight, bias)
    channels = mean, var, *given(weight, bias)
    if types is None or not supported(x, out, *channels) or out.dtype != x.dtype or x.size // x.shape[1] >= MOST:
        return NotImplemented
    sizes = batch_sizes(x)
    grid, lanes = channel_grid(*sizes)
    types |= {"S": mean.dtype}
    arrays = x, mean, var, *vector(weight), *vector(bias), out
    launch(CHANNELS, "batch_norm_inference", grid, BLOCK, *arrays, eps, *sizes, types=types, LANES=lanes)
    return out
