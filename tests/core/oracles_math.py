"""Oracles of binary ops and special functions: other formulas, in double precision."""

import math

import numpy as np
from numpy.polynomial import chebyshev, hermite, hermite_e, laguerre, legendre
from scipy import integrate, special

from minflow.core.spec import promote, spec_of


def wide(function):
    """Compute a function of floats in float64; Python numbers and integers become floats."""

    def run(*arrays, **attrs):
        dtype = promote(*[a.__class__ if isinstance(a, bool | int | float) else spec_of(a) for a in arrays])
        out = np.asarray(function(*[np.asarray(a, "float64") for a in arrays], **attrs))
        return out.astype(dtype.name if dtype.floating else "float32")

    return run


def each(function):
    """Apply a Python function to each element."""
    return wide(np.vectorize(function, otypes=["float64"]))


def frexp(x):
    exponent = np.floor(np.log2(np.abs(x))).astype("int32") + 1 if x.size else np.zeros(x.shape, "int32")
    return (x / 2.0**exponent).astype(x.dtype), np.asarray(exponent)


def bessel(order, sign):
    """Bessel's integral for the first kind (sign -1 gives the modified function)."""
    angle = (
        (lambda t, x: math.cos(order * t - x * math.sin(t)))
        if sign > 0
        else (lambda t, x: math.exp(x * math.cos(t)) * math.cos(order * t))
    )
    return lambda x: integrate.quad(angle, 0, math.pi, (x,), epsabs=1e-13)[0] / math.pi


def basis(n):
    return [0] * int(n) + [1]


def second(x, n):
    """U(n), from the derivative of T(n + 1)."""
    return 0.0 if n < 0 else chebyshev.chebval(x, chebyshev.chebder(basis(n + 1))) / (n + 1)


CHEBYSHEV = {
    "chebyshev_polynomial_t": lambda x, n: chebyshev.chebval(x, basis(n)),
    "chebyshev_polynomial_u": second,
    "chebyshev_polynomial_v": lambda x, n: second(x, n) - second(x, n - 1),
    "chebyshev_polynomial_w": lambda x, n: second(x, n) + second(x, n - 1),
}


ORACLES = {
    **{name: each(f) for name, f in CHEBYSHEV.items()},
    **{f"shifted_{name}": each(lambda x, n, f=f: f(2 * x - 1, n)) for name, f in CHEBYSHEV.items()},
    "hermite_polynomial_h": each(lambda x, n: hermite.hermval(x, basis(n))),
    "hermite_polynomial_he": each(lambda x, n: hermite_e.hermeval(x, basis(n))),
    "laguerre_polynomial_l": each(lambda x, n: laguerre.lagval(x, basis(n))),
    "legendre_polynomial_p": each(lambda x, n: legendre.legval(x, basis(n))),
    "hypot": wide(lambda a, b: np.sqrt(a * a + b * b)),
    "copysign": wide(lambda a, b: np.abs(a) * np.where(b < 0, -1, 1)),
    "logaddexp": wide(lambda a, b: np.log(np.exp(a) + np.exp(b))),
    "logaddexp2": wide(lambda a, b: np.log2(2**a + 2**b)),
    "xlogy": wide(lambda a, b: np.log(b) * a),
    "xlog1py": wide(lambda a, b: np.log(1 + b) * a),
    "nextafter": lambda a, b: np.where(
        np.asarray(b) > a, -np.nextafter(-a, a.dtype.type(-np.inf)), np.nextafter(a, a.dtype.type(-np.inf))
    ),
    "frexp": frexp,
    "gcd": np.frompyfunc(lambda a, b: math.gcd(int(a), int(b)), 2, 1),
    "lcm": np.frompyfunc(lambda a, b: math.lcm(int(a), int(b)), 2, 1),
    "bitwise_left_shift": lambda a, b: (a * 2**b).astype(a.dtype),
    "bitwise_right_shift": lambda a, b: (a // 2**b).astype(a.dtype),
    "erfc": each(math.erfc),
    "erfcx": wide(lambda x: np.exp(x * x) * special.erfc(x)),
    "erfinv": wide(lambda x: special.ndtri((x + 1) / 2) / math.sqrt(2)),
    "ndtri": wide(lambda x: special.erfinv(2 * x - 1) * math.sqrt(2)),
    "log_ndtr": each(lambda x: math.log(math.erfc(-x / math.sqrt(2)) / 2)),
    "entr": wide(lambda x: -special.xlogy(x, x)),
    "lgamma": wide(lambda x: np.log(np.abs(special.gamma(x)))),
    "digamma": wide(lambda x: special.polygamma(0, x)),
    "polygamma": wide(lambda x, n: special.polygamma(n, x)),
    "igamma": wide(lambda a, b: 1 - special.gammaincc(a, b)),
    "igammac": wide(lambda a, b: 1 - special.gammainc(a, b)),
    "zeta": wide(
        lambda a, b: (
            sum([(b + k) ** -a for k in range(30)])
            + (b + 30) ** (1 - a) / (a - 1)
            + (b + 30) ** -a / 2
            + a * (b + 30) ** (-a - 1) / 12
            - a * (a + 1) * (a + 2) * (b + 30) ** (-a - 3) / 720
        )
    ),
    "i0": each(bessel(0, -1)),
    "i1": each(bessel(1, -1)),
    "i0e": wide(lambda x: np.exp(-np.abs(x)) * special.iv(0, x)),
    "i1e": wide(lambda x: np.exp(-np.abs(x)) * special.iv(1, x)),
    "airy_ai": wide(lambda x: (special.airye(x + 0j)[0] * np.exp(-2 / 3 * (x + 0j) ** 1.5)).real),
    "bessel_j0": each(bessel(0, 1)),
    "bessel_j1": each(bessel(1, 1)),
    "bessel_y0": wide(lambda x: special.yv(0, x)),
    "bessel_y1": wide(lambda x: special.yv(1, x)),
    "modified_bessel_k0": wide(lambda x: special.kv(0, x)),
    "modified_bessel_k1": wide(lambda x: special.kv(1, x)),
    "scaled_modified_bessel_k0": wide(lambda x: special.kve(0, x)),
    "scaled_modified_bessel_k1": wide(lambda x: special.kve(1, x)),
    "spherical_bessel_j0": wide(lambda x: special.spherical_jn(0, x)),
}
