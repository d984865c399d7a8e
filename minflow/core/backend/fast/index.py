"""Adding by index in numpy: rows that meet are added up side by side. What it computes: `../../ops/index.py`."""

from __future__ import annotations

from ...ops.checks import check_bounds
from ...ops.index import copied, everywhere, index_add, scatter_add, settle
from ..kernels import fast


@fast(index_add, tolerance=16)
def _(xp, x, index, src, axis, by="indexing", out=None):
    n = x.shape[axis]
    check_bounds(xp, by, index, n, axis)
    result = copied(xp, x, out)
    if index.size and result.size:
        flat = index.reshape(-1) % n
        rows = src.reshape(x.shape[:axis] + (flat.size,) + x.shape[axis + 1 :])
        order = xp.argsort(flat, kind="stable")  # equal positions side by side, so that each is added up in one go
        flat = flat[order]
        starts = xp.flatnonzero(xp.concatenate((xp.ones(1, bool), flat[1:] != flat[:-1])))
        totals = xp.add.reduceat(xp.moveaxis(rows, axis, 0)[order], starts, axis=0)
        target = xp.moveaxis(result, axis, 0)
        target[flat[starts]] += totals
    return settle(xp, result, out)


@fast(scatter_add, tolerance=0)
def _(xp, x, index, src, dim, by="indexing", out=None):
    at = everywhere(xp, by, x, index, dim)
    result = copied(xp, x, out)
    if index.size:
        flat = xp.ravel_multi_index(xp.broadcast_arrays(*at), x.shape, mode="wrap").reshape(
            -1
        )  # one index: numpy's fast case
        xp.add.at(result.reshape(-1), flat, xp.broadcast_to(src, index.shape).reshape(-1))
    return settle(xp, result, out)
