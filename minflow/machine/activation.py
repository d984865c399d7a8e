"""erf, and the gradient of relu6, in one pass each.

erf(x) is x times a polynomial in x * x, which is evaluated in float64; beyond 4 it is 1 in float32. The polynomial
interpolates at Chebyshev's points, where the largest error is least but for a small factor.
Source: Trefethen, Approximation Theory and Approximation Practice, chapter 4.
"""

from __future__ import annotations

import math

import numpy as np

from . import llvm
from .conv import BYTES
from .jit import compiled, ir
from .llvm import LANES, function
from .memory import at
from .threads import split
from .vectors import below, masked_load, masked_store

END, DEGREE = 4.0, 18  # error of the polynomial 5e-10, a hundredth of float32's rounding
LEAST, CHUNK = 1 << 12, 1 << 16  # numbers: below NumPy is as fast; that a thread takes
HALF = ir.VectorType(ir.DoubleType(), LANES // 2)


def polynomial() -> np.ndarray:
    """Coefficients of erf(x) / x in u = 2 * (x / END)**2 - 1, the constant one first."""
    chebyshev = np.polynomial.chebyshev
    found = chebyshev.chebinterpolate(lambda u: [ratio(END * math.sqrt((one + 1) / 2)) for one in u], DEGREE)
    return chebyshev.cheb2poly(found)


def ratio(x: float) -> float:
    return math.erf(x) / x if x else 2 / math.sqrt(math.pi)


def of_half(builder: ir.IRBuilder, x, factors: list[float]):
    """erf of 8 numbers of float64."""
    constant = lambda number: ir.Constant(HALF, [float(number)] * (LANES // 2))  # noqa: E731
    for sign, limit in ((">", END), ("<", -END)):  # NaN is neither
        x = builder.select(builder.fcmp_ordered(sign, x, constant(limit)), constant(limit), x)
    u = builder.fsub(builder.fmul(builder.fmul(x, x), constant(2 / END**2)), constant(1))
    total = constant(factors[-1])
    for factor in reversed(factors[:-1]):
        total = builder.fadd(builder.fmul(total, u, flags=["contract"]), constant(factor), flags=["contract"])
    return builder.fmul(total, x)


@function("erf_of", 3, inline=False)
def erf_of(builder, x, y, count):
    """y = erf(x) of up to 16 numbers."""
    mask, factors = below(builder, count), polynomial().tolist()
    numbers = masked_load(builder, x, mask, llvm.filled(0))
    halves = []
    for first in (0, LANES // 2):
        places = ir.Constant(ir.VectorType(llvm.INT, LANES // 2), list(range(first, first + LANES // 2)))
        part = builder.shuffle_vector(numbers, numbers, places)
        found = of_half(builder, builder.fpext(part, HALF), factors)
        halves.append(builder.fptrunc(found, ir.VectorType(llvm.FLOAT, LANES // 2)))
    every = ir.Constant(ir.VectorType(llvm.INT, LANES), list(range(LANES)))
    masked_store(builder, builder.shuffle_vector(*halves, every), y, mask)


@compiled
def erf_of_all(x, y, first, last):
    for i in range(first, last, LANES):
        erf_of(x + i * BYTES, y + i * BYTES, min(LANES, last - i))


@function("relu6_grad_of", 4, inline=False)
def relu6_grad_of(builder, x, y, out, count):
    """x where y is between 0 and 6, or NaN, else 0: up to 16 numbers."""
    mask = below(builder, count)
    value = masked_load(builder, y, mask, llvm.filled(0))
    flat = builder.or_(builder.fcmp_ordered("<=", value, llvm.filled(0)),
                       builder.fcmp_ordered(">=", value, llvm.filled(6)))
    keep = builder.select(flat, llvm.filled(0), llvm.filled(1))
    masked_store(builder, builder.fmul(masked_load(builder, x, mask, llvm.filled(0)), keep), out, mask)


@compiled
def relu6_grad_of_all(x, y, out, first, last):
    for i in range(first, last, LANES):
        relu6_grad_of(x + i * BYTES, y + i * BYTES, out + i * BYTES, min(LANES, last - i))


def fits(out: np.ndarray | None, *arrays: np.ndarray) -> bool:
    first = arrays[0]
    return first.size >= LEAST and all(
        one is None or one.dtype == np.float32 and one.shape == first.shape and one.flags.c_contiguous
        for one in (out, *arrays))


def by_chunks(size: int, do) -> None:
    split(-(-size // CHUNK), lambda k: do(k * CHUNK, min((k + 1) * CHUNK, size)))


def erf(x, out=None):
    if not fits(out, x):
        return None
    out = np.empty(x.shape, "f4") if out is None else out
    by_chunks(x.size, lambda first, last: erf_of_all(at(x), at(out), first, last))
    return out


def relu6_grad(x, y, out=None):
    if not fits(out, x, y):
        return None
    out = np.empty(x.shape, "f4") if out is None else out
    by_chunks(x.size, lambda first, last: relu6_grad_of_all(at(x), at(y), at(out), first, last))
    return out
