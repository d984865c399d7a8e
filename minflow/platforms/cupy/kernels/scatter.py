"""Sums at positions that may repeat: gradients of embeddings, of `take` and of `gather`.

Positions are sorted instead of added by atomic operations, so that the bits do not depend on the order of threads.
"""

from __future__ import annotations

import math

from ....core.backend import Array
from ....core.kernels import kernel
from ....core.ops.checks import check_bounds
from ....core.ops.index import copied, flat_positions, index_add, scatter_add
from ....core.ops.rules import write_out
from ..device_code import FLOATS, blocks_for, launch

TOLERANCE = 16  # another order of summation
RUN = 16  # sorted positions of a thread
MOST_INT32 = 1 << 31


def add_rows(xp, x: Array, index: Array, src: Array, outer: int, inner: int) -> None:
    """x[:, index[i]] += src[:, i], where x is (outer, n, inner) and src (outer, len(index), inner)."""
    m, n = index.size, x.size // (outer * inner)
    index = (index % n).astype("int32" if n < MOST_INT32 else "int64")
    order = xp.argsort(index, kind="stable")
    accumulator = "float64" if x.dtype == "float64" else "float32"
    size = outer * -(-m // RUN) * inner
    heads, tails = xp.empty(size, accumulator), xp.empty(size, accumulator)
    types = {"T": x.dtype, "ACC": accumulator, "INDEX": index.dtype}
    blocks = blocks_for(size, most=MOST_INT32 - 1)
    sizes = outer, n, m, inner
    launch("scatter.cu", "add_runs", blocks, 256, x, src, index, order, heads, tails, *sizes, types=types, RUN=RUN)
    if m > RUN:
        launch("scatter.cu", "add_long_runs", blocks, 256, x, index, order, heads, tails, *sizes, types=types, RUN=RUN)


@kernel(index_add, platform="cupy", declines=True, tolerance=TOLERANCE, bfloat16=True)
def _(xp, x, index, src, axis, by="indexing", out=None):
    if x.dtype.name not in FLOATS or not index.size or not x.size:
        return NotImplemented
    check_bounds(xp, by, index, x.shape[axis], axis)
    result = copied(xp, x, out)
    outer, inner = math.prod(x.shape[:axis]), math.prod(x.shape[axis + 1 :])
    add_rows(xp, result, index.reshape(-1), xp.ascontiguousarray(src), outer, inner)
    return write_out(xp, result, out)


@kernel(scatter_add, platform="cupy", declines=True, tolerance=TOLERANCE, bfloat16=True)
def _(xp, x, index, src, dim, by="indexing", out=None):
    if x.dtype.name not in FLOATS or not index.size or not x.size:
        return NotImplemented
    result = copied(xp, x, out)
    src = xp.ascontiguousarray(src) if hasattr(src, "dtype") else xp.full(index.shape, src, x.dtype)
    place = flat_positions(xp, by, result, index, dim).reshape(-1)
    add_rows(xp, result, place, src, 1, 1)
    return write_out(xp, result, out)
