"""conv2d and its gradients: products of tiles whose elements are gathered from the images (implicit GEMM).

With one channel per group, every thread sums an element (`sources/depthwise.cu`). Read next: `sources/conv.cu`.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

from ....core.kernels import kernel
from ....core.ops.conv import Pair, Sizes, conv2d, conv2d_input_grad, conv2d_weight_grad, positions
from ..device_code import blocks_for, launch, supported

TOLERANCE = 32  # another order of summation
MOST = 1 << 30  # elements of an array: the source counts them as int, also those in the padding
BLOCKS = 264  # enough for two per multiprocessor. A constant, so that all GPUs give the same bits
LEAST = 256  # terms of the sum that are worth a part of their own
MOST_PARTS = 1 << 24  # elements of the parts of one result
TILES = {"large": (128, 64, 16), "square": (64, 64, 16), "wide": (32, 128, 16)}  # sizes along m, j, k: see conv.cu
TAPS = 25  # most sums that a thread has in registers


class Launch(NamedTuple):
    """How one convolution runs.

    shape: of the result.  grid: blocks.  numbers: arguments.  parts: of the sum.
    """

    file: str
    function: str
    shape: Sizes
    grid: Sizes
    numbers: Sizes
    parts: int
    macros: dict[str, int]


@functools.lru_cache(1024)
def launch_of(
    mode: str, x: Sizes, weight: Sizes, stride: Pair, padding: Pair, dilation: Pair, groups: int, dtype: str
) -> Launch | None:
    """The launch for a convolution of these shapes, or None if it is not supported."""
    (n, _, h, w), (filters, c, kh, kw) = x, weight
    oh, ow = positions((h, w), (kh, kw), stride, padding, dilation)
    f, grad = filters // groups, (n, filters, oh, ow)
    if not max(map(math.prod, (x, weight, grad))) < MOST:
        return None
    shape = {"FORWARD": grad, "INPUT_GRAD": x, "WEIGHT_GRAD": weight}[mode]
    if c == 1 < groups and kw <= TAPS:
        macros = dict(zip(("KH", "KW", "SH", "SW", "DH", "DW"), (kh, kw, *stride, *dilation)))
        grid, parts = (blocks_for(math.prod(shape)),), 1
        if mode == "WEIGHT_GRAD":
            macros["ROWS"] = rows = kh if kh * kw <= TAPS else 1
            parts = parts_for(filters, n * oh * ow // LEAST, shape)
            grid = filters, parts, kh // rows
        numbers = (n, groups, f, h, w, oh, ow, *padding, parts)
        return Launch("depthwise.cu", "depthwise", shape, grid, numbers, parts, macros)
    others = groups * (math.prod(stride) if mode == "INPUT_GRAD" else 1)  # products
    m, columns, depth = {
        "FORWARD": (f, n * oh * ow, c * kh * kw),
        "INPUT_GRAD": (c, n * -(-h // stride[0]) * -(-w // stride[1]), f * kh * kw),
        "WEIGHT_GRAD": (f, c * kh * kw, n * oh * ow),
    }[mode]
    tile = tile_for(m, columns, depth // LEAST if mode == "WEIGHT_GRAD" else others, dtype)
    blocks = -(-m // tile[0]) * -(-columns // tile[1])
    parts = parts_for(blocks * others, depth // LEAST, shape)
    numbers = (n, c, h, w, f, kh, kw, oh, ow, *stride, *padding, *dilation, groups, parts)
    macros = dict(zip(("BM", "BN", "BK"), tile))
    found = Launch("conv.cu", "convolve", shape, (blocks, others * parts), numbers, parts, macros)
    return found if others * parts < 1 << 16 else None


def parts_for(blocks: int, most: int, shape: Sizes) -> int:
    """The number of parts of a sum that so few blocks compute for a result of this shape."""
    return max(1, min(BLOCKS // blocks, most, MOST_PARTS // math.prod(shape)))


def tile_for(m: int, columns: int, others: int, dtype: str) -> Sizes:
    """Sizes of the tiles of a product. others: number of such products, or of its parts."""
    if dtype == "float64":
        return 64, 64, 8
    if m <= 32:
        return TILES["wide"]
    if m % 128 in range(1, 65) or -(-m // 128) * -(-columns // 64) * others < BLOCKS:
        return TILES["square"]
    return TILES["large"]


def convolve(xp, mode: str, a, b, x: Sizes, weight: Sizes, out, **geometry) -> Any:
    """Run one of the three convolutions on its factors in the order of `conv.cu`. x, weight: shapes."""
    a, b = xp.ascontiguousarray(a), xp.ascontiguousarray(b)
    if not supported(a, b):
        return NotImplemented
    found = launch_of(mode, x, weight, dtype=a.dtype.name, **geometry)
    if found is None:
        return NotImplemented
    file, function, shape, grid, numbers, parts, macros = found
    out = xp.empty(shape, a.dtype) if out is None else out
    types = {"T": a.dtype, "ACC": "float64" if a.dtype == "float64" else "float32"}
    target = out if parts == 1 else xp.empty((parts, out.size), types["ACC"])
    launch(file, function, grid, 256, a, b, target, *numbers, types=types, MODE=mode, **macros)
    if parts > 1:
        launch("sum_parts.cu", "sum_parts", blocks_for(out.size), 256, target, out, parts, out.size, types=types)
    return out


@kernel(conv2d, platform="cupy", declines=True, tolerance=TOLERANCE)
def _(xp, x, weight, out=None, **geometry):
    return convolve(xp, "FORWARD", weight, x, x.shape, weight.shape, out, **geometry)


@kernel(conv2d_input_grad, platform="cupy", declines=True, tolerance=TOLERANCE)
def _(xp, grad, weight, shape, out=None, **geometry):
    return convolve(xp, "INPUT_GRAD", weight, grad, shape, weight.shape, out, **geometry)


@kernel(conv2d_weight_grad, platform="cupy", declines=True, tolerance=TOLERANCE)
def _(xp, grad, x, shape, out=None, **geometry):
    return convolve(xp, "WEIGHT_GRAD", grad, x, x.shape, shape, out, **geometry)
