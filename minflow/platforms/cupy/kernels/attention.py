"""Attention in tiles, which stores no weights, and its gradient."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from ....core.kernels import kernel
from ....core.ops.attention import scaled_dot_product_attention
from ....core.spec import Spec
from ..device_code import cuda_backend_of, launch
from ..gemm import Axis, merge
from .conv import INSTRUCTIONS

TOLERANCE = 32  # another order of summation
WIDEST = 128  # most features of a key or value
DTYPES = {"float32", "float16", "bfloat16"}
SIDE = 16  # of the square of threads of a block


class Tiling(NamedTuple):
    """How a block works. file: without ".cu".  rows: of its result.  threads: in it.  macros: of the source."""

    file: str
    rows: int
    threads: int
    macros: dict[str, int | str]


def tiling_of(dtype: str, widest: int, gradient: bool, capability: int) -> Tiling:
    """The tiling for keys and values of at most `widest` features, on tensor cores if the GPU has them for it."""
    wide, end = widest > 64, "_grad" if gradient else ""
    instruction: dict[str, Any] = INSTRUCTIONS.get(dtype, {})
    if instruction and capability * 10 >= instruction["ARCHITECTURE"]:
        columns = 64 >> wide >> gradient
        return Tiling(f"attention_half{end}", 64, 128, {"TILE": columns, **instruction})
    rows, columns = (16 if wide else 32,) * 2 if gradient else (32 if wide else 64, 32)
    return Tiling(f"attention{end}", rows, 256, {"BQ": rows, "BK": columns})


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
    return math.prod(batch) * rows * keys > 0


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


def prepare(xp, q, k, v, mask, *grad) -> tuple[Callable, list]:
    """A function that launches a kernel by its name, for a number of rows of the result, after these arrays; and the
    numbers that all kernels take.
    """
    rows, keys, heads = q.shape[-2], k.shape[-2], q.shape[-3] if q.ndim > 2 else 1
    kind = "NONE" if mask.__class__ is int else "ALLOWED" if mask.dtype.name == "bool" else "ADDED"
    placed = [strided(xp, x, 1) for x in (q, k, v)]
    if kind == "NONE":
        placed.append((placed[0][0], [0, 0, 0, 0]))  # which nothing reads
    else:
        placed.append(strided(xp, xp.broadcast_to(mask, (*q.shape[:-2], rows, keys)), 2))
    placed += [strided(xp, x, 1) for x in grad]
    sizes = [SIDE * -(-n // SIDE) for n in (q.shape[-1], v.shape[-1])]
    tiling = tiling_of(q.dtype.name, max(sizes), bool(grad), cuda_backend_of(q).capability)
    macros = {"MASK": kind, "WIDTH": sizes[0], "DEPTH": sizes[1], **tiling.macros}
    numbers = [heads, rows, keys, q.shape[-1], v.shape[-1], *[step for _, steps in placed for step in steps]]
    arrays, items = [x for x, _ in placed], math.prod(q.shape[:-2])

    def run(name: str, rows: int, *args: Any) -> None:
        blocks, types = items * -(-rows // tiling.rows), {"T": q.dtype, "M": arrays[3].dtype}
        launch(f"{tiling.file}.cu", name, blocks, tiling.threads, *arrays, *args, types=types, **macros)

    return run, numbers


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
    run, numbers = prepare(xp, query, key, value, mask)
    run("attend", query.shape[-2], result, *numbers, float(scale), int(nowhere))
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
    run, numbers = prepare(xp, query, key, value, mask, grad)
    rows, keys, numbers = query.shape[-2], key.shape[-2], [*numbers, float(scale)]
    statistics = xp.empty((math.prod(query.shape[:-1]), 2), "float32")
    run("attend_statistics", rows, statistics, *numbers, int(nowhere))
    if needs & 6:
        run("attend_grad_keys", keys, statistics, *results[1:], *numbers)
    if needs & 1:
        run("attend_grad_queries", rows, statistics, results[0], *numbers)
    for place, result in zip(outs, results):
        if place is not result:
            place[...] = result
    if out is None:
        return (*results, xp.zeros((), query.dtype))
    return out
