"""Sorting in numpy by keys that no two elements share, for which its quickest sort, which is not stable, will do.

A key is a whole number of 64 bits: above, the number itself, whose bits are turned so that they rise as it does; below,
where it stands. What it computes: `../../ops/sort.py`.
"""

from __future__ import annotations

import numpy as np

from ...ops.rules import write_out
from ...ops.sort import sort
from ..kernels import KERNELS, fast

LEAST = 1 << 10  # numbers; below, numpy's stable sort is as fast
SIGN, LOW = 1 << 31, (1 << 32) - 1


def keys(x, descending: bool):
    """float32 (..., n) as uint64; NaN are the largest, and both zeros are one."""
    bits = np.add(x, 0).view("u4")  # makes 0 of -0
    bits[np.isnan(x)] = LOW >> 1
    bits ^= (bits.view("i4") >> 31).view("u4") | np.uint32(SIGN)
    found = (~bits if descending else bits).astype("u8")
    found <<= np.uint64(32)
    found |= np.arange(x.shape[-1], dtype="u8")
    return found


@fast(sort, tolerance=0)
def _(xp, x, axis, descending, out=None):
    if x.dtype.char != "f" or x.size < LEAST or xp is not np or x.shape[axis] > LOW:
        return KERNELS[sort].reference(x, axis, descending, out=out)
    rows = np.ascontiguousarray(np.moveaxis(x, axis, -1))
    order = keys(rows, descending)
    order.sort(-1)
    order &= np.uint64(LOW)
    places = order.view("i8")
    starts = np.arange(0, rows.size, rows.shape[-1]).reshape(*rows.shape[:-1], 1)
    values = rows.reshape(-1).take(places + starts, mode="clip")
    found = [np.moveaxis(a, -1, axis) for a in (values, places)]
    if out is None:
        return tuple([np.ascontiguousarray(a) for a in found])
    return tuple([write_out(xp, a, place) for a, place in zip(found, out)])
