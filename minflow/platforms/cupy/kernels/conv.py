"""conv2d and its gradients: products of tiles whose elements are gathered from the images (implicit GEMM).

1x1 filters are products of cuBLAS. With one channel per group, every thread sums an element (`sources/depthwise.cu`).
Read next: `sources/conv.cu`.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

from ....core.base.dtypes import MatmulPrecision
from ....core.kernels import kernel
from ....core.ops.conv import Pair, Sizes, conv2d, conv2d_input_grad, conv2d_weight_grad, positions
from ....core.spec import Spec
from ..device_code import blocks_for, launch, name_of, supported
from .linalg import product

TOLERANCE = 32  # another order of summation
MOST = 1 << 30  # elements of an array: the source counts them as int, also those in the padding
BLOCKS = 264  # two per multiprocessor of a large GPU. A constant, so that all GPUs give the same bits
LEAST = 256  # terms of the sum that are worth a part of their own
MOST_PARTS = 1 << 24  # elements of the parts of one result
TILES = {"float64": (64, 64), "float32": (128, 64)}  # the largest along m and j, by precision
INSTRUCTIONS: dict[str, dict[str, Any]] = {  # of tensor cores, by precision
    "float16": {"FORMAT": '"f16"', "SHAPE": '"m16n8k16"', "ARCHITECTURE": 750},
    "bfloat16": {"FORMAT": '"bf16"', "SHAPE": '"m16n8k16"', "ARCHITECTURE": 800},
    "tf32": {"FORMAT": '"tf32"', "SHAPE": '"m16n8k8"', "ARCHITECTURE": 800},
}
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
    macros: dict[str, Any]


@functools.lru_cache(1024)
def launch_of(
    mode: str, x: Sizes, weight: Sizes, stride: Pair, padding: Pair, dilation: Pair, groups: int, precision: str
) -> Launch | None:
    """The launch for a convolution of these shapes, or None if it is not supported.

    precision: a dtype, or "tf32" for float32 whose factors are rounded to TF32.
    """
    (n, _, h, w), (filters, c, kh, kw) = x, weight
    oh, ow = positions((h, w), (kh, kw), stride, padding, dilation)
    f, grad = filters // groups, (n, filters, oh, ow)
    if not max(map(math.prod, (x, weight, grad))) < MOST:
        return None
    shape = {"FORWARD": grad, "INPUT_GRAD": x, "WEIGHT_GRAD": weight}[mode]
    if c == 1 < groups and kw <= TAPS:
        macros = dict(zip(("KH", "KW", "SH", "SW", "DH", "DW"), (kh, kw, *stride, *dilation)))
        grid, parts = [blocks_for(math.prod(shape))], 1
        if mode == "WEIGHT_GRAD":
            macros["ROWS"] = rows = kh if kh * kw <= TAPS else 1
            parts = parts_for(filters, n * oh * ow // LEAST, shape)
            grid = [filters, parts, kh // rows]
        numbers = (n, groups, f, h, w, oh, ow, *padding, parts)
        return Launch("depthwise.cu", "depthwise", shape, tuple(grid), numbers, parts, macros)
    products = groups * (math.prod(stride) if mode == "INPUT_GRAD" else 1)
    m, columns, depth = {
        "FORWARD": (f, n * oh * ow, c * kh * kw),
        "INPUT_GRAD": (c, n * -(-h // stride[0]) * -(-w // stride[1]), f * kh * kw),
        "WEIGHT_GRAD": (f, c * kh * kw, n * oh * ow),
    }[mode]
    bm, bn = tile_for(m, columns, BLOCKS if mode == "WEIGHT_GRAD" else products, precision)
    blocks = -(-m // bm) * -(-columns // bn)
    parts = parts_for(blocks * products, depth // LEAST, shape)
    if products * parts >= 1 << 16:
        return None
    geometry = (n, c, h, w, f, kh, kw, oh, ow, *stride, *padding, *dilation, groups, parts)
    tile = {"BM": bm, "BN": bn} | INSTRUCTIONS.get(precision, {})
    return Launch("conv.cu", "convolve", shape, (blocks, products * parts), geometry, parts, tile)


def parts_for(blocks: int, most: int, shape: Sizes) -> int:
    """The number of parts of a sum for a result of this shape, which `blocks` blocks compute in one part."""
    return max(1, min(BLOCKS // blocks, most, MOST_PARTS // math.prod(shape)))


def tile_for(m: int, columns: int, products: int, precision: str) -> tuple[int, int]:
    """Sizes of the tiles of a product along m and columns. products: number of such products, or of their parts."""
    high, wide = TILES.get(precision, (128, 128))
    if m <= 32 and precision != "float64":
        return 32, 128
    if 0 < m % 128 <= 64 or -(-m // high) * -(-columns // wide) * products < BLOCKS // 2:
        return 64, 64
    return high, wide


def convolve(xp, mode: str, a, b, x: Sizes, weight: Sizes, out, **geometry) -> Any:
    """Run one of the three convolutions on its factors in the order of `conv.cu`. x, weight: shapes."""
    a, b = [y if y.flags.c_contiguous else xp.ascontiguousarray(y) for y in (a, b)]
    dtype = name_of(a.dtype)
    precision = "tf32" if dtype == "float32" and MatmulPrecision.convolutions_in_tf32 else dtype
    found = launch_of(mode, x, weight, precision=precision, **geometry) if a.size and b.size else None
    if found is None:
        return NotImplemented
    file, function, shape, grid, numbers, parts, macros = found
    out = xp.empty(shape, a.dtype) if out is None else out
    if not supported(a, b, out):
        return NotImplemented
    types = {"T": dtype, "ACC": "float64" if dtype == "float64" else "float32"}
    target = out if parts == 1 else xp.empty((parts, out.size), types["ACC"])
    launch(file, function, grid, 256, a, b, target, *numbers, types=types, MODE=mode, **macros)
    if parts > 1:
        launch("sum_parts.cu", "sum_parts", blocks_for(out.size), 256, target, out, parts, out.size, types=types)
    return out


def images_product(xp, filters, images, shape: Sizes, out, transposed: bool) -> Any:
    """Multiply each image by 1x1 filters, or by the transposed ones. shape: of the result."""
    if out is not None and not out.flags.c_contiguous:
        return NotImplemented
    result = xp.empty(shape, images.dtype) if out is None else out
    matrices = [x.reshape(*x.shape[:2], -1) for x in (images, result)]
    done = product(xp, filters.reshape(filters.shape[:2]), matrices[0], transposed, False, out=matrices[1])
    return done if done is NotImplemented else result


def is_product(weight: Sizes, stride: Pair, padding: Pair, groups: int, **_: Pair) -> bool:
    """True if each pixel of the result is the product of filters and the channels of one pixel, and cuBLAS may compute
    it, whose products have a precision of their own.
    """
    plain = weight[2:] == stride == (1, 1) and padding == (0, 0) and groups == 1
    return plain and MatmulPrecision.tf32() == MatmulPrecision.convolutions_in_tf32


def in_limits(*specs: Spec, shape: Sizes = (1,), **geometry) -> bool:
    """True if the arrays are not empty, nor too large for the kernels. shape: of the result."""
    return all([0 < size < MOST for size in (math.prod(shape), *[x.size for x in specs])])


register = functools.partial(
    kernel, platform="cupy", declines=True, tolerance=TOLERANCE, accepts=in_limits, bfloat16=True
)


@register(conv2d)
def _(xp, x, weight, out=None, **geometry):
    if is_product(weight.shape, **geometry):
        shape = (len(x), len(weight), *x.shape[2:])
        return images_product(xp, weight, x, shape, out, transposed=False)
    return convolve(xp, "FORWARD", weight, x, x.shape, weight.shape, out, **geometry)


@register(conv2d_input_grad)
def _(xp, grad, weight, shape, out=None, **geometry):
    if is_product(weight.shape, **geometry):
        return images_product(xp, weight, grad, shape, out, transposed=True)
    return convolve(xp, "INPUT_GRAD", weight, grad, shape, weight.shape, out, **geometry)


@register(conv2d_weight_grad)
def _(xp, grad, x, shape, out=None, **geometry):
    return convolve(xp, "WEIGHT_GRAD", grad, x, x.shape, shape, out, **geometry)
