"""Fast kernels of gather and scatter, `../../core/ops/index.py`.

Rows are added by the product with a sparse matrix of ones in SciPy, or by sorting without SciPy; indices that rise by
regular steps, as in resizing an image, are added slice by slice.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ...core.kernels import kernel
from ...core.ops.checks import check_bounds
from ...core.ops.index import copied, gather, index_add, index_grid, scatter_add, write_out

MAX_SLICES = 12  # slices; with more, sorting is as fast
MIN_ELEMENTS = 1 << 14  # elements to gather or add; for fewer, the preparation costs more than it saves


@kernel(index_add, platform="numpy", tolerance=16)
def _(xp, x, index, src, axis, by="indexing", out=None):
    n = x.shape[axis]
    check_bounds(xp, by, index, n, axis)
    result = copied(xp, x, out)
    if index.size and result.size:
        flat = index.reshape(-1) % n
        rows = src.reshape((*x.shape[:axis], flat.size, *x.shape[axis + 1 :]))
        add_rows(xp, xp.moveaxis(result, axis, 0), flat, xp.moveaxis(rows, axis, 0))
    return write_out(xp, result, out)


def add_rows(xp, target, flat, rows) -> None:
    """target[flat[i]] += rows[i] for every i."""
    large = rows.size >= MIN_ELEMENTS and xp is np
    pieces = slices(flat) if large else None
    if pieces is not None:
        for place, source in pieces:
            target[place] += rows[source]
        return
    if large and rows.dtype.char in "fd" and rows[0].size > 1 and (sparse := scipy_sparse()):
        target += matrix(sparse, flat, len(target), rows.dtype).dot(rows.reshape(len(rows), -1)).reshape(target.shape)
        return
    if rows.ndim == 1 or (not large and target.flags.c_contiguous):  # numpy's add.at is fastest on single elements
        width = rows[0].size
        places = flat if width == 1 else (flat[:, None] * width + xp.arange(width)).reshape(-1)
        xp.add.at(target.reshape(-1), places, rows.reshape(-1))
        return
    order = xp.argsort(flat, kind="stable")  # equal indices become adjacent, and one reduceat sums each run
    flat = flat[order]
    starts = xp.flatnonzero(xp.concatenate((xp.ones(1, bool), flat[1:] != flat[:-1])))
    target[flat[starts]] += xp.add.reduceat(rows[order], starts, axis=0)


@functools.cache
def scipy_sparse() -> Any:
    """The module scipy.sparse, or None without SciPy."""
    try:
        from scipy import sparse  # on first use, since importing it takes longer than all of minflow
    except ImportError:
        return None
    return sparse


def matrix(sparse: Any, flat, n: int, dtype):
    """The sparse matrix of shape (n, len(flat)) with a 1 at [flat[i], i]."""
    return sparse.csc_array((np.ones(flat.size, dtype), flat, np.arange(flat.size + 1)), shape=(n, flat.size))


def slices(flat) -> list[tuple[slice, slice]] | None:
    """(target slice, source slice) pairs that cover all indices, without repeated targets in a slice; None if there
    would be more than MAX_SLICES.

    If an image is enlarged k times, the indices rise by 1 every k entries; if it is reduced, by more at each entry.
    """
    span = int(flat.max() - flat.min()) + 1
    every = max(1, -(-flat.size // span))
    found: list[tuple[slice, slice]] = []
    for first in range(every):
        part, start = flat[first::every], 0
        if not part.size:
            continue
        rise = max(1, int(part[part.size // 2] - part[part.size // 2 - 1])) if part.size > 1 else 1
        ends = [*(np.flatnonzero(np.diff(part) != rise) + 1).tolist(), part.size]
        if len(found) + len(ends) > MAX_SLICES:
            return None
        for end in ends:
            low, high = int(part[start]), int(part[end - 1])
            found.append(
                (slice(low, high + 1, rise), slice(first + start * every, first + (end - 1) * every + 1, every))
            )
            start = end
    return found


@kernel(gather, platform="numpy", tolerance=0, declines=True, smallest=MIN_ELEMENTS)
def _(xp, x, index, dim, by="indexing", out=None):
    if index.size < MIN_ELEMENTS or xp is not np or not x.flags.c_contiguous:
        return NotImplemented
    check_bounds(xp, by, index, x.shape[dim], dim)
    steps = [stride // x.itemsize for stride in x.strides]
    flat = index.astype("i8")
    if flat.min() < 0:
        flat += (flat < 0) * x.shape[dim]  # `%` takes five times as long
    flat *= steps[dim]
    for axis, (n, step) in enumerate(zip(index.shape, steps)):
        if axis != dim:
            flat += (np.arange(n) * step).reshape((-1,) + (1,) * (x.ndim - 1 - axis))
    return write_out(xp, x.reshape(-1).take(flat, mode="clip"), out)  # mode "raise" would check each index again


@kernel(scatter_add, platform="numpy", tolerance=0)
def _(xp, x, index, src, dim, by="indexing", out=None):
    at = index_grid(xp, by, x, index, dim)
    result = copied(xp, x, out)
    if index.size:
        flat = xp.ravel_multi_index(xp.broadcast_arrays(*at), x.shape, mode="wrap").reshape(
            -1
        )  # one index: numpy's fast case
        xp.add.at(result.reshape(-1), flat, xp.broadcast_to(src, index.shape).reshape(-1))
    return write_out(xp, result, out)
