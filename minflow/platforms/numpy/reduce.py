"""Fast kernels of sum and mean, `../../core/ops/reduce.py`, along the last axes.

They use einsum, whose loop adds sixteen elements at a time, while that of `np.add.reduce` adds eight.
"""

from __future__ import annotations

import numpy as np

from ...core.kernels import kernel
from ...core.ops.reduce import mean, sum
from ...core.ops.rules import count, keepdims_shape

MIN_ELEMENTS = 1 << 12  # below, numpy is as fast
ROW_ELEMENTS = 1 << 10  # summed sequentially
TOLERANCE = 32  # a different order of summation


def sums(x, axis):
    """The sums of x over all axes or over the last ones, as one axis; None if numpy is as fast."""
    if x.size < MIN_ELEMENTS or x.__class__ is not np.ndarray or x.dtype.char not in "fd" or not x.flags.c_contiguous:
        return None
    last, n = axis is None or axis == tuple(range(x.ndim - len(axis), x.ndim)), count(x.shape, axis)
    if not last or n < 16:
        return None
    if n <= ROW_ELEMENTS:
        return np.einsum("ij->i", x.reshape(-1, n))
    # parts of a long row are summed separately, which rounds less
    rows, whole = x.reshape(-1, n), n // ROW_ELEMENTS * ROW_ELEMENTS
    total = np.add.reduce(np.einsum("ijk->ij", rows[:, :whole].reshape(len(rows), -1, ROW_ELEMENTS)), 1)
    return total if whole == n else total + np.einsum("ij->i", rows[:, whole:])


def shaped_sums(x, axis, keepdims: bool, found, out):
    """The sums in the output shape, in `out` if given."""
    shape = keepdims_shape(x.shape, axis) if keepdims else () if axis is None else x.shape[: x.ndim - len(axis)]
    found = found.reshape(shape)
    if out is None:
        return found
    np.copyto(out, found)
    return out


@kernel(sum, platform="numpy", tolerance=TOLERANCE, declines=True, smallest=MIN_ELEMENTS)
def _(xp, x, axis, keepdims, out=None):
    found = sums(x, axis)
    if found is None:
        return NotImplemented
    return shaped_sums(x, axis, keepdims, found, out)


@kernel(mean, platform="numpy", tolerance=TOLERANCE, declines=True, smallest=MIN_ELEMENTS)
def _(xp, x, axis, keepdims, out=None):
    found = sums(x, axis)
    if found is None:
        return NotImplemented
    return shaped_sums(x, axis, keepdims, np.true_divide(found, count(x.shape, axis), out=found), out)
