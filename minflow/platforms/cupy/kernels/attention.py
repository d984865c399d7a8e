"""Attention in tiles, which stores no weights, and its gradient."""

from __future__ import annotations

import math
from typing import Any

from ....core.kernels import kernel
from ....core.ops.attention import scaled_dot_product_attention
from ....core.spec import Spec
from ..device_code import launch
from ..gemm import Axis, merge

TOLERANCE = 32  # another order of summation
WIDEST = 128  # most features of a key or value
HALF_KEYS = 512  # beyond, float16 and bfloat16 take less time as products of cuBLAS, on tensor cores
DTYPES = {"float32", "float16", "bfloat16"}
SIDE = 16  # of the square of threads of a block


def accepts(query: Any, key: Any, value: Any, mask: Any, scale: float, nowhere: bool) -> bool:
    """True if the kernels take these arrays, or arrays of these specs."""
    batch, rows, keys = query.shape[:-2], query.shape[-2], key.shape[-2]
    for x in (query, key, value):
        if x.dtype.name not in DTYPES or x.shape[:-2] != batch or not 0 < x.shape[-1] <= WIDEST:
            return False
        if x.__class__ is Spec and x.placement is not None:
            return False
    if not isinstance(mask, int | type) and (mask.dtype.name not in DTYPES | {"bool"} or mask.ndim > query.ndim):
        return False
    return math.prod(batch) * rows * keys > 0 and (query.dtype.name == "float32" or keys <= HALF_KEYS)


def accepts_grad(grad: Any, *inputs: Any, needs: int, **attrs: Any) -> bool:
    """True if the kernels compute these gradients: not that of the mask."""
    return not needs >> 3 and accepts(*inputs, **attrs)


def strided(xp, x, axes: int) -> tuple[Any, list[int]]:
    """The array, or a contiguous copy, and its strides in elements: of the batch, of the heads, and of the last `axes`
    axes but the features.
    """
    *outer, head = [(1, 0), *zip(x.shape[:-2], x.strides[:-2])]
    merged = merge([Axis(size, (step,)) for size, step in outer])
    rest = [step // x.itemsize for step in x.strides[-2:]]
    if len(merged) > 1 or any(step % x.itemsize for step in x.strides) or (axes == 1 and rest[1] != 1 < x.shape[-1]):
        return strided(xp, xp.ascontiguousarray(x), axes)
    batch = merged[0].strides[0] // x.itemsize if merged else 0
    return x, [batch, head[1] // x.itemsize, *rest[:axes]]


def arguments(xp, q, k, v, mask, *grad) -> tuple[list, list, dict[str, Any]]:
    """Arrays and numbers of a launch, and its macros."""
    rows, keys, heads = q.shape[-2], k.shape[-2], q.shape[-3] if q.ndim > 2 else 1
    kind = "NONE" if mask.__class__ is int else "ALLOWED" if mask.dtype.name == "bool" else "ADDED"
    placed = [strided(xp, x, 1) for x in (q, k, v)]
    if kind == "NONE":
        placed.append((placed[0][0], [0, 0, 0, 0]))  # which nothing reads
    else:
        placed.append(strided(xp, xp.broadcast_to(mask, (*q.shape[:-2], rows, keys)), 2))
    placed += [strided(xp, x, 1) for x in grad]
    sizes = [SIDE * -(-n // SIDE) for n in (q.shape[-1], v.shape[-1])]
    macros = {"MASK": kind, "WIDTH": sizes[0], "DEPTH": sizes[1]}
    numbers = [heads, rows, keys, q.shape[-1], v.shape[-1], *[step for _, steps in placed for step in steps]]
    return [x for x, _ in placed], numbers, macros


def types_of(arrays: list) -> dict[str, Any]:
    return {"T": arrays[0].dtype, "M": arrays[3].dtype}


@kernel(
    scaled_dot_product_attention,
    platform="cupy",
    declines=True,
    accepts=accepts,
    tolerance=TOLERANCE,
    bfloat16=True,
)
def _(xp, query, key, value, mask, scale, nowhere, out=None):
    if not accepts(query, key, value, mask, scale, nowhere):
        return NotImplemented
    shape = (*query.shape[:-1], value.shape[-1])
    result = out if out is not None and out.flags.c_contiguous else xp.empty(shape, query.dtype)
    arrays, numbers, macros = arguments(xp, query, key, value, mask)
    wide = max(macros["WIDTH"], macros["DEPTH"]) > 64
    tile = {"BQ": 32 if wide else 64, "BK": 32}
    rows, items = query.shape[-2], math.prod(query.shape[:-2])
    grid = items * -(-rows // tile["BQ"])
    args = [*arrays, result, *numbers, float(scale), int(nowhere)]
    launch("attention.cu", "attend", grid, 256, *args, types=types_of(arrays), **macros, **tile)
    if out is None or out is result:
        return result
    out[...] = result
    return out


@kernel(
    scaled_dot_product_attention.gradient,
    platform="cupy",
    declines=True,
    accepts=accepts_grad,
    tolerance=TOLERANCE,
    bfloat16=True,
)
def _(xp, grad, query, key, value, mask, scale, nowhere, needs, out=None):
    if not accepts_grad(grad, query, key, value, mask, scale=scale, nowhere=nowhere, needs=needs):
        return NotImplemented
    outs = [xp.empty(x.shape, x.dtype) for x in (query, key, value)] if out is None else list(out[:3])
    results = [x if x.flags.c_contiguous else xp.empty(x.shape, x.dtype) for x in outs]
    arrays, numbers, macros = arguments(xp, query, key, value, mask, grad)
    side = 16 if max(macros["WIDTH"], macros["DEPTH"]) > 64 else 32
    options = {"types": types_of(arrays), **macros, "BQ": side, "BK": side}
    rows, keys, items = query.shape[-2], key.shape[-2], math.prod(query.shape[:-2])
    statistics = xp.empty((items, rows, 2), "float32")
    by_rows, by_keys = items * -(-rows // side), items * -(-keys // side)
    numbers.append(float(scale))

    def run(name: str, blocks: int, *args: Any) -> None:
        launch("attention_grad.cu", name, blocks, 256, *arrays, statistics, *args, **options)

    run("attend_statistics", by_rows, *numbers, int(nowhere))
    if needs & 6:
        run("attend_grad_keys", by_keys, *results[1:], *numbers)
    if needs & 1:
        run("attend_grad_queries", by_rows, results[0], *numbers)
    for place, result in zip(outs, results):
        if place is not result:
            place[...] = result
    if out is None:
        return (*results, xp.zeros((), query.dtype))
    return out
