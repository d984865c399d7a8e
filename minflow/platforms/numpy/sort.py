"""The kernel of `sort`, `../../core/ops/sort.py`: sort unique keys, for which numpy's fastest sort is enough.

A key is a uint64: its upper half is the float32 with its bits mapped so that they increase with it, its lower half the
index of the element.
"""

from __future__ import annotations

import numpy as np

from ...core.kernels import kernel
from ...core.ops.rules import write_out
from ...core.ops.sort import sort

MIN_ELEMENTS = 1 << 10  # elements; below, numpy's stable sort is as fast
SIGN_BIT, INDEX_MASK = 1 << 31, (1 << 32) - 1


def keys(x, descending: bool):
    """The keys of float32[..., n], as uint64; NaN is largest, and 0 equals -0."""
    bits = np.add(x, 0).view("u4")  # turns -0 into 0
    bits[np.isnan(x)] = INDEX_MASK >> 1
    bits ^= (bits.view("i4") >> 31).view("u4") | np.uint32(SIGN_BIT)
    found = (~bits if descending else bits).astype("u8")
    found <<= np.uint64(32)
    found |= np.arange(x.shape[-1], dtype="u8")
    return found


@kernel(sort, platform="numpy", tolerance=0, declines=True)
def _(xp, x, axis, descending, out=None):
    if x.dtype.char != "f" or x.size < MIN_ELEMENTS or xp is not np or x.shape[axis] > INDEX_MASK:
        return NotImplemented
    rows = np.ascontiguousarray(np.moveaxis(x, axis, -1))
    order = keys(rows, descending)
    order.sort(-1)
    order &= np.uint64(INDEX_MASK)
    places = order.view("i8")
    starts = np.arange(0, rows.size, rows.shape[-1]).reshape(*rows.shape[:-1], 1)
    values = rows.reshape(-1).take(places + starts, mode="clip")
    found = [np.moveaxis(a, -1, axis) for a in (values, places)]
    if out is None:
        return tuple([np.ascontiguousarray(a) for a in found])
    return tuple([write_out(xp, a, place) for a, place in zip(found, out)])
