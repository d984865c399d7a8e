"""Orthogonal polynomials of degree n at x, by SciPy's recurrences. Without gradients, as in PyTorch.

Degrees are truncated to integers; below 0 the result is 0, above 1,000 NaN. Read next: `special.py`.
"""

from __future__ import annotations

from collections.abc import Callable

from ..host.float_warnings import silent
from ..kernels import kernel
from ..source_location import need
from .binary import binary_op
from .examples import case, floats, ints, strided
from .rules import as_arrays, via_float32, write_out

DEGREE_EXAMPLES = [
    case(floats(3, 4), ints(4)),
    case(floats(()), ints(3)),
    case(floats(0, 3), 2),
    case(strided(4, 5), 3),
    case(floats(5, dtype="float32"), ints(5)),
    case(ints(3), ints(3)),
]
MAX_DEGREE = 1000  # degree; recurrences take one step per degree


def polynomial(name: str, evaluate: Callable, doc: str):
    """Define an op. evaluate: a function of scipy.special, of integer degrees and x."""
    op = binary_op(name, {}, doc, examples=DEGREE_EXAMPLES, module=__name__)

    @kernel(op, on_host=True)
    @via_float32
    def _(xp, x, n, out=None):
        special = need("scipy.special", name)
        x, n = as_arrays(xp, x, n)
        with silent():
            n = xp.trunc(n)
            right = xp.greater_equal(n, 0)
            degree = xp.where(right, xp.minimum(n, MAX_DEGREE + 1), 0).astype("int64")
            value = evaluate(special, xp.minimum(degree, MAX_DEGREE), x.astype("float64"))
            value = xp.where(degree > MAX_DEGREE, xp.nan, xp.where(right, value, 0))
            return write_out(xp, value.astype(x.dtype), out)

    return op


def chebyshev_third(s, n, x):
    """U(n) - U(n-1): the third kind, cos((n + 1/2) t) / cos(t / 2) with x = cos(t)."""
    return s.eval_chebyu(n, x) - (n > 0) * s.eval_chebyu(abs(n - 1), x)


def chebyshev_fourth(s, n, x):
    """U(n) + U(n-1): the fourth kind, sin((n + 1/2) t) / sin(t / 2) with x = cos(t)."""
    return s.eval_chebyu(n, x) + (n > 0) * s.eval_chebyu(abs(n - 1), x)


chebyshev_polynomial_t = polynomial(
    "chebyshev_polynomial_t",
    lambda s, n, x: s.eval_chebyt(n, x),
    "Chebyshev polynomial of the first kind: cos(n * t) with a = cos(t).",
)
chebyshev_polynomial_u = polynomial(
    "chebyshev_polynomial_u",
    lambda s, n, x: s.eval_chebyu(n, x),
    "Chebyshev polynomial of the second kind: sin((n + 1) * t) / sin(t).",
)
chebyshev_polynomial_v = polynomial(
    "chebyshev_polynomial_v", chebyshev_third, "Chebyshev polynomial of the third kind."
)
chebyshev_polynomial_w = polynomial(
    "chebyshev_polynomial_w", chebyshev_fourth, "Chebyshev polynomial of the fourth kind."
)
shifted_chebyshev_polynomial_t = polynomial(
    "shifted_chebyshev_polynomial_t",
    lambda s, n, x: s.eval_chebyt(n, 2 * x - 1),
    "chebyshev_polynomial_t at 2 * a - 1.",
)
shifted_chebyshev_polynomial_u = polynomial(
    "shifted_chebyshev_polynomial_u",
    lambda s, n, x: s.eval_chebyu(n, 2 * x - 1),
    "chebyshev_polynomial_u at 2 * a - 1.",
)
shifted_chebyshev_polynomial_v = polynomial(
    "shifted_chebyshev_polynomial_v",
    lambda s, n, x: chebyshev_third(s, n, 2 * x - 1),
    "chebyshev_polynomial_v at 2 * a - 1.",
)
shifted_chebyshev_polynomial_w = polynomial(
    "shifted_chebyshev_polynomial_w",
    lambda s, n, x: chebyshev_fourth(s, n, 2 * x - 1),
    "chebyshev_polynomial_w at 2 * a - 1.",
)
hermite_polynomial_h = polynomial(
    "hermite_polynomial_h",
    lambda s, n, x: s.eval_hermite(n, x),
    "Physicists' Hermite polynomial: 2 * a * H(n-1) - 2 * (n-1) * H(n-2).",
)
hermite_polynomial_he = polynomial(
    "hermite_polynomial_he",
    lambda s, n, x: s.eval_hermitenorm(n, x),
    "Probabilists' Hermite polynomial: a * He(n-1) - (n-1) * He(n-2).",
)
laguerre_polynomial_l = polynomial(
    "laguerre_polynomial_l", lambda s, n, x: s.eval_laguerre(n, x), "Laguerre's polynomial."
)
legendre_polynomial_p = polynomial(
    "legendre_polynomial_p", lambda s, n, x: s.eval_legendre(n, x), "Legendre's polynomial."
)
