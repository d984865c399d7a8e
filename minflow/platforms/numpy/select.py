"""Branch-free kernels that select between two values, of `core/ops/elementwise.py` and `core/ops/activation.py`.

`np.where` takes several ns per element if the condition changes often, and `np.maximum` three times as long as
`np.clip`. Values are combined bitwise, so that NaN and infinities are preserved.
"""

from __future__ import annotations

import numpy as np

from ...core.host.float_warnings import silent
from ...core.kernels import kernel
from ...core.ops.activation import leaky_relu, leaky_relu_grad
from ...core.ops.elementwise import clamp, relu, where

MIN_ELEMENTS = 1 << 11  # below, calls cost more than branches
CHUNK = 1 << 16  # elements that stay in the L2 cache
BITS = {4: "u4", 8: "u8"}


def all_contiguous(*values) -> bool:
    """True if all values are contiguous numpy arrays or numbers."""
    return all([not hasattr(v, "shape") or (v.__class__ is np.ndarray and v.flags.c_contiguous) for v in values])


def choose(cond, a, b, out) -> None:
    """out = a where cond, else b: contiguous arrays of one size and dtype; a or b may have a single element."""
    cond, a, b, out = [v.reshape(-1) for v in (cond, a, b, out)]
    cond, kind = cond.view("i1"), BITS[out.itemsize]
    a, b, out = a.view(kind), b.view(kind), out.view(kind)
    signs, mask = np.empty(CHUNK, "i1"), np.empty(CHUNK, f"i{out.itemsize}")
    for first in range(0, out.size, CHUNK):
        here = slice(first, min(first + CHUNK, out.size))
        m = mask[: here.stop - first]
        left, right = a[here] if a.size > 1 else a, b[here] if b.size > 1 else b
        np.copyto(m, np.negative(cond[here], out=signs[: m.size]))  # all bits, or none
        bits = m.view(kind)
        if right.size == 1 and not right[0]:
            np.bitwise_and(left, bits, out=out[here])
        else:
            np.bitwise_and(np.bitwise_xor(left, right), bits, out=bits)
            np.bitwise_xor(bits, right, out=out[here])


def choose_applies(cond, a, b, out) -> bool:
    """True if `choose` can compute `where`, and is faster."""
    arrays = [v for v in (a, b) if getattr(v, "ndim", 0)]
    if (
        cond.__class__ is not np.ndarray
        or cond.size < MIN_ELEMENTS
        or not arrays
        or not all_contiguous(cond, a, b, out)
    ):
        return False
    dtype = arrays[0].dtype
    return (
        dtype.kind == "f"
        and dtype.itemsize in BITS
        and all([v.shape == cond.shape for v in arrays])
        and (out is None or (out.shape == cond.shape and out.dtype == dtype))
    )


@kernel(where, platform="numpy", tolerance=0, declines=True, smallest=MIN_ELEMENTS)
def _(xp, cond, a, b, out=None):
    if not choose_applies(cond, a, b, out):
        return NotImplemented
    dtype = a.dtype if getattr(a, "ndim", 0) else b.dtype
    out = np.empty(cond.shape, dtype) if out is None else out
    choose(cond, np.asarray(a, dtype), np.asarray(b, dtype), out)
    return out


def clipped(x, low, high, out):
    found = np.clip(x, low, high, out=out)
    return found if low else np.add(found, 0, out=found)  # turns -0 into 0, as maximum does


@kernel(relu, platform="numpy", tolerance=0)
def _(xp, x, out=None):
    if x.__class__ is not np.ndarray or x.size < MIN_ELEMENTS or x.dtype.kind != "f":
        return xp.maximum(x, 0, out=out)
    return clipped(x, 0, np.inf, out)


@kernel(clamp, platform="numpy", tolerance=0, declines=True, smallest=MIN_ELEMENTS)
def _(xp, x, min, max, out=None):
    numbers = not hasattr(min, "shape") and not hasattr(max, "shape") and min <= max
    if numbers and x.__class__ is np.ndarray and x.size >= MIN_ELEMENTS and x.dtype.kind == "f":
        return clipped(x, min, max, out)
    return NotImplemented


def select_scaled(values, x, slope, out) -> bool:
    """Write values where x > 0, else values * slope, chunk by chunk; return False if the arguments are numbers or
    broadcast, which the reference kernel handles.
    """
    if hasattr(slope, "shape") or not all([v.__class__ is np.ndarray and all_contiguous(v) for v in (values, x, out)]):
        return False
    if x.dtype.char not in "fd" or not values.shape == x.shape == out.shape:
        return False
    if not values.dtype == x.dtype == out.dtype:
        return False
    factors = np.array([slope, 1], x.dtype)
    if x.size <= CHUNK:
        with silent():
            np.multiply(values, factors.take(np.greater(x, 0).view("i1")), out=out)
        return True
    values, x, out = [v.reshape(-1) for v in (values, x, out)]
    with silent():
        for first in range(0, x.size, CHUNK):
            here = slice(first, first + CHUNK)
            np.multiply(values[here], factors.take(np.greater(x[here], 0).view("i1")), out=out[here])
    return True


def write_larger(x, slope, out) -> bool:
    """Write the larger one of x and x * slope, which is leaky_relu for 0 < slope < 1; see `select_scaled`."""
    if hasattr(slope, "shape") or not 0 < slope < 1 or not all_contiguous(x, out) or x.dtype.char not in "fd":
        return False
    if x.__class__ is not np.ndarray or x.dtype != out.dtype or x.shape != out.shape:
        return False
    if x.size <= CHUNK:
        with silent():
            np.maximum(x, np.multiply(x, slope), out=out)
        return True
    x, out = x.reshape(-1), out.reshape(-1)
    with silent():
        for first in range(0, x.size, CHUNK):
            here = slice(first, first + CHUNK)
            np.maximum(x[here], np.multiply(x[here], slope), out=out[here])
    return True


@kernel(leaky_relu, platform="numpy", tolerance=0, declines=True)
def _(xp, x, slope, out=None):
    place = np.empty_like(x) if out is None else out
    if write_larger(x, slope, place):
        return place
    return place if select_scaled(x, x, slope, place) else NotImplemented


@kernel(leaky_relu_grad, platform="numpy", tolerance=0, declines=True)
def _(xp, grad, x, slope, out=None):
    place = np.empty_like(x) if out is None else out
    return place if select_scaled(grad, x, slope, place) else NotImplemented
