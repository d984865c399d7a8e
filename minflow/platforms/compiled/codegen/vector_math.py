"""exp, log, tanh and erf of 16 float32 as LLVM IR, within 2 units in the last place of float64.

exp(x) is a power of two times exp(r), for a small r, by a polynomial; erf, and tanh of large x, use exp(x) - 1, which
loses nothing near 0. Polynomials interpolate at Chebyshev points, after subtracting the terms that float32 represents
exactly. NaN, infinities and overflow behave as in NumPy. Source: Muller, Elementary Functions, 3rd edition, chapters 3
and 11. Read next: `platforms/compiled/kernels/elementwise_fusion.py`.
"""

from __future__ import annotations

import math

import numpy as np

from .jit import ir
from .llvm import INT, LANES, VECTOR, WIDE, called, filled, multiply_add

WHOLE = ir.VectorType(INT, LANES)
LN2 = math.log(2)
ROUNDER = 1.5 * 2**23  # adding it rounds to an integer
FRACTION, BIAS = 23, 127  # bits of the fraction of a float32; bias of its exponent
ROOT_HALF = int(np.float32(math.sqrt(0.5)).view("i4"))
LEAST = float(np.finfo("f4").tiny)
BENT, ONE = 0.625, 10.0  # from here tanh is computed by exp; from here it is 1
OVER = 4.0  # from here erf is 1


def interpolated(function, low: float, high: float, degree: int) -> list[float]:
    """Coefficients of a polynomial that approximates the function between low and high, constant term first."""
    series = np.polynomial.Chebyshev.interpolate(np.vectorize(function, otypes=["f8"]), degree, [low, high])
    return series.convert(kind=np.polynomial.Polynomial).coef.tolist()


def series(terms, x: float) -> float:
    return math.fsum(term * x**k for k, term in enumerate(terms))


def weighted(degree: int) -> list[float]:
    """Coefficients of p(x) = -log(1 - erf(x)) / x, so that erf(x) = 1 - exp(-x * p(x)).

    The value at 0 comes first, split into two float32. Least squares, weighted by the precision that erf needs, which
    decreases with x.
    """
    points = OVER / 2 * (1 - np.cos(np.pi * (np.arange(200) + 0.5) / 200))
    powers = np.array([-math.log(math.erfc(x)) if x > 0.5 else -math.log1p(-math.erf(x)) for x in points.tolist()])
    need = points / np.expm1(powers)
    fit = np.polynomial.Chebyshev.fit(points, powers / points, degree, domain=[0, OVER], w=need)
    first, *rest = fit.convert(kind=np.polynomial.Polynomial).coef.tolist()
    rounded = float(np.float32(first))
    return [rounded, first - rounded, *rest]


# (exp(x) - 1 - x) / x**2;  (log(1 + x) - x + x**2 / 2) / x**3;  (tanh(x) - x) / x**3, as polynomials in x**2
EXP = interpolated(lambda x: series([1 / math.factorial(k + 2) for k in range(20)], x), -LN2 / 2, LN2 / 2, 4)
LOG = interpolated(lambda x: series([(-1) ** k / (k + 3) for k in range(80)], x), 0.5**0.5 - 1, 2**0.5 - 1, 8)
TANH = interpolated(lambda s: (math.tanh(s**0.5) - s**0.5) / s**1.5, 0, BENT**2, 4)
ERF = weighted(8)


def polynomial(builder, factors: list[float], x):
    total = filled(factors[-1])
    for factor in reversed(factors[:-1]):
        total = multiply_add(builder, total, x, filled(factor))
    return total


def whole(number: int) -> ir.Constant:
    return ir.Constant(WHOLE, [number] * LANES)


def at_most(builder, x, high: float):
    """Minimum of x and `high`; NaN stays."""
    return builder.select(builder.fcmp_ordered(">", x, filled(high)), filled(high), x)


def clamp(builder, x, low: float, high: float):
    """Clamp x to [low, high]; NaN stays."""
    x = at_most(builder, x, high)
    return builder.select(builder.fcmp_ordered("<", x, filled(low)), filled(low), x)


def power_of_two(builder, n):
    return builder.bitcast(builder.shl(builder.add(n, whole(BIAS)), whole(FRACTION)), VECTOR)


def times_power_of_two(builder, x, added):
    """Compute x * 2**n, rounded once, from n + ROUNDER; in two factors, since 2**n alone may overflow float32."""
    if WIDE:
        n, mask = builder.fsub(added, filled(ROUNDER)), ir.IntType(LANES)
        return called(builder, "llvm.x86.avx512.mask.scalef.ps.512", VECTOR, x, n, x, mask(-1), INT(4))
    n = builder.sub(builder.bitcast(added, WHOLE), whole(int(np.float32(ROUNDER).view("i4"))))
    half = builder.ashr(n, whole(1))
    return builder.fmul(builder.fmul(x, power_of_two(builder, half)), power_of_two(builder, builder.sub(n, half)))


def size_of(builder, x):
    return called(builder, f"llvm.fabs.v{LANES}f32", VECTOR, x)


def with_sign(builder, x, sign):
    return called(builder, f"llvm.copysign.v{LANES}f32", VECTOR, x, sign)


def remainder(builder, x):
    """Return (x - n log(2), n + ROUNDER), with a remainder of at most log(2) / 2. Exact for small n."""
    added = multiply_add(builder, x, filled(1 / LN2), filled(ROUNDER))
    return multiply_add(builder, builder.fsub(added, filled(ROUNDER)), filled(-float(np.float32(LN2))), x), added


def small_exp(builder, r):
    """Compute exp(r) - 1."""
    return multiply_add(builder, builder.fmul(polynomial(builder, EXP, r), r), r, r)


def exp(builder, x):
    # Beyond -104 and 89 the result is 0 or infinity. The processor takes 100 cycles for a result that rounds to 0.
    vanishes = builder.fcmp_ordered("<", x, filled(-104.0))
    x = at_most(builder, builder.select(vanishes, filled(0), x), 89.0)
    r, added = remainder(builder, x)
    r = multiply_add(builder, builder.fsub(added, filled(ROUNDER)), filled(float(np.float32(LN2)) - LN2), r)
    grown = times_power_of_two(builder, builder.fadd(small_exp(builder, r), filled(1)), added)
    return builder.select(vanishes, filled(0), grown)


def exp_less_one(builder, x):
    """Compute exp(x) - 1 for |x| < 30 or NaN, as 2**n * (exp(r) - 1) + 2**n - 1."""
    r, added = remainder(builder, x)
    power = builder.add(builder.shl(builder.bitcast(added, WHOLE), whole(FRACTION)), whole(BIAS << FRACTION))
    power = builder.bitcast(power, VECTOR)
    return multiply_add(builder, power, small_exp(builder, r), builder.fsub(power, filled(1)))


def sigmoid(builder, x):
    grown = builder.fadd(exp(builder, builder.fneg(x)), filled(1))
    return builder.fdiv(filled(1), grown)


def log(builder, x):
    """Compute log(m) + n * log(2), with m between the roots of 1/2 and 2."""
    small = builder.fcmp_ordered("<", x, filled(LEAST))
    grown = builder.select(small, builder.fmul(x, filled(2.0**FRACTION)), x)
    bits = builder.sub(builder.bitcast(grown, WHOLE), whole(ROOT_HALF))
    n = builder.sitofp(builder.ashr(bits, whole(FRACTION)), VECTOR)
    n = builder.fsub(n, builder.select(small, filled(FRACTION), filled(0)))
    m = builder.add(builder.and_(bits, whole((1 << FRACTION) - 1)), whole(ROOT_HALF))
    f = builder.fsub(builder.bitcast(m, VECTOR), filled(1))
    inner = multiply_add(builder, f, polynomial(builder, LOG, f), filled(-0.5))
    value, high = multiply_add(builder, builder.fmul(f, f), inner, f), float(np.float32(LN2))
    value = multiply_add(builder, n, filled(LN2 - high), value)
    value = multiply_add(builder, n, filled(high), value)
    for sign, number, result in (("==", math.inf, math.inf), ("==", 0.0, -math.inf)):
        value = builder.select(builder.fcmp_ordered(sign, x, filled(number)), filled(result), value)
    return builder.select(builder.fcmp_unordered("<", x, filled(0)), filled(math.nan), value)


def tanh(builder, x):
    size, s = size_of(builder, x), builder.fmul(x, x)
    small = multiply_add(builder, builder.fmul(s, polynomial(builder, TANH, s)), x, x)
    least = at_most(builder, size, ONE)
    grown = builder.fadd(exp_less_one(builder, builder.fadd(least, least)), filled(2))
    large = builder.fsub(filled(1), builder.fdiv(filled(2), grown))
    return with_sign(builder, builder.select(builder.fcmp_ordered("<", size, filled(BENT)), small, large), x)


def erf(builder, x):
    """Compute 1 - exp(-|x| * p(|x|)), with the sign of x."""
    size, (factor, *factors) = at_most(builder, size_of(builder, x), OVER), [-y for y in ERF]
    power = multiply_add(builder, size, filled(factor), builder.fmul(size, polynomial(builder, factors, size)))
    return with_sign(builder, exp_less_one(builder, power), x)
