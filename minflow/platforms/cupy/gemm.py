"""Arguments of cuBLAS for a batch of matrix products, from shapes and strides: a copy is needed only if no axis of a
matrix is contiguous.

cuBLAS stores matrices column by column: a row-major (n, k) is its (k, n). So out = a @ b is its out = b @ a, and either
of them may be transposed. Read next: `cublas.py`.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import NamedTuple

MOST_CALLS = 4  # for products whose batch has no common stride; beyond, operands that are not contiguous are copied
LIMIT = 1 << 31  # of sizes


class Stored(NamedTuple):
    """The matrices of one side, which are stored column by column.

    offset: bytes from the start of the array to the first matrix.  transposed: the product takes the transposes.
    leading: elements from column to column.  step: elements from matrix to matrix; 0 if all are the same.
    """

    offset: int
    transposed: bool
    leading: int
    step: int


class Gemm(NamedTuple):
    """One call of cuBLAS: `batch` products (m, n) = (m, k) @ (k, n) of matrices stored column by column."""

    m: int
    n: int
    k: int
    batch: int
    left: Stored
    right: Stored
    out: Stored


class Axis(NamedTuple):
    """An axis of the batch: its size, and its strides in a, b and out."""

    size: int
    strides: tuple[int, ...]


@functools.lru_cache(1 << 12)
def gemms(a: tuple, b: tuple, out: tuple, itemsize: int, copied: bool = False) -> tuple[Gemm, ...] | None:
    """The calls that compute out = a @ b, each with b on the left; None if copies are needed first.

    a, b, out: (shape, strides in bytes), with axes (..., n, k), (..., k, p) and (..., n, p), of at least one element.
    copied: True if all of them are contiguous, so that a copy would not help.
    """
    if any(step % itemsize for _, strides in (a, b, out) for step in strides):
        return None
    sides = [(shape, [step // itemsize for step in strides]) for shape, strides in (a, b, out)]
    (n, k), p, batch = a[0][-2:], b[0][-1], out[0][:-2]
    axes = [Axis(size, tuple(steps)) for size, *steps in zip(batch, *[batch_strides(*x, len(batch)) for x in sides])]
    rows = Axis(n, tuple([strides[-2] for _, strides in (sides[0], sides[2])]))
    if math.prod(b[0][:-2]) == 1:  # all rows of a meet the same matrix
        merged = merge([*[Axis(x.size, (x.strides[0], x.strides[2])) for x in axes], rows])
        if len(merged) == 1:
            (rows,), axes, n = merged, [], merged[0].size
    found = [
        layout_of(k, p, *sides[1][1][-2:]),
        layout_of(n, k, rows.strides[0], sides[0][1][-1]),
        layout_of(n, p, rows.strides[1], sides[2][1][-1]),
    ]
    layouts = [x for x in found if x is not None]
    if len(layouts) < len(found) or layouts[2][0] or max(n, k, p, *[leading for _, leading in layouts]) >= LIMIT:
        return None
    *outer, inner = sorted(merge(axes), key=lambda x: x.size) or [Axis(1, (0, 0, 0))]
    if not copied and math.prod([x.size for x in outer]) > MOST_CALLS:
        return None
    calls = []
    for index in itertools.product(*[range(x.size) for x in outer]):
        offsets = [itemsize * sum([i * x.strides[side] for i, x in zip(index, outer)]) for side in (1, 0, 2)]
        steps = [inner.strides[side] for side in (1, 0, 2)]
        stored = [Stored(offset, *layout, step) for offset, layout, step in zip(offsets, layouts, steps)]
        calls.append(Gemm(p, n, k, inner.size, *stored))
    return tuple(calls)


def batch_strides(shape: tuple, strides: list, ndim: int) -> list[int]:
    """The strides of the batch axes of an operand after broadcasting to `ndim` of them."""
    own = [0 if size == 1 else step for size, step in zip(shape[:-2], strides)]
    return [0] * (ndim - len(own)) + own


def merge(axes: list[Axis]) -> list[Axis]:
    """Merge neighboring axes that can be walked with one stride."""
    merged: list[Axis] = []
    for axis in axes:
        if axis.size == 1:
            continue
        if merged and all([s == axis.size * t for s, t in zip(merged[-1].strides, axis.strides)]):
            axis = Axis(merged.pop().size * axis.size, axis.strides)
        merged.append(axis)
    return merged


def layout_of(rows: int, columns: int, row: int, column: int) -> tuple[bool, int] | None:
    """(transposed, leading) of row-major (rows, columns) with these strides, seen as stored column by column; None if
    neither axis is contiguous.
    """
    leading = row if rows > 1 else columns
    if (column == 1 or columns == 1) and leading >= columns:
        return False, leading
    leading = column if columns > 1 else rows
    if (row == 1 or rows == 1) and leading >= rows:
        return True, leading
    return None
