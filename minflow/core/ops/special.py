"""Special functions computed by SciPy, which the first of their kernels imports.

Gradient rules are written in ops, so second derivatives exist wherever first ones do. The Bessel and Airy functions
have no gradient, as in PyTorch. Read next: `../functions/special.py`.
"""

from __future__ import annotations

import math

from ..base.errors import GradError, OutOfRangeError
from ..host.float_warnings import silent
from ..kernels import kernel
from ..op import define
from ..source_location import fail, need
from ..spec import Spec
from .binary import binary_op
from .compare import eq
from .elementwise import exp, log, reciprocal, sign, square, unary_float, where
from .examples import case, floats, ints, positive, strided
from .rules import as_arrays, need_floating, via_float32, write_out


def by_scipy(op, name: str):
    """The kernel of an op that is one function of scipy.special."""

    @kernel(op, on_host=True)
    @via_float32
    def _(xp, *arrays, out=None):
        special = need("scipy.special", op.name)  # not at module import: importing it takes longer than all of minflow
        with silent():
            return getattr(special, name)(*as_arrays(xp, *arrays), out=out)

    return op


def special(name: str, rule, doc: str, scipy: str | None = "", low: float = -2.0, high: float = 2.0):
    """Define a unary op that is SciPy's function `scipy` (default: the same name; None: the kernel is below)."""
    op = unary_float(name, rule, doc, low=low, high=high, module=__name__)
    return op if scipy is None else by_scipy(op, scipy or name)


# ---- the error function and the normal distribution --------------------------------------------------------------

erfc = special(
    "erfc", lambda g, x: g * (exp(-square(x)) * (-2 / math.sqrt(math.pi))), "1 - erf(x), exact if that is small."
)
erfcx = special(
    "erfcx", lambda g, x, out: g * (2 * x * out - 2 / math.sqrt(math.pi)), "exp(x*x) * erfc(x), without overflow."
)
erfinv = special(
    "erfinv",
    lambda g, x: g * (exp(square(erfinv(x))) * (math.sqrt(math.pi) / 2)),
    "The inverse of erf; NaN outside [-1, 1].",
    low=-0.9,
    high=0.9,
)
ndtri = special(
    "ndtri",
    lambda g, out: g * (exp(square(out) * 0.5) * math.sqrt(2 * math.pi)),
    "The inverse cdf of the standard normal distribution.",
    low=0.1,
    high=0.9,
)
log_ndtr = special(
    "log_ndtr",
    lambda g, x: g * (math.sqrt(2 / math.pi) / erfcx(x * -math.sqrt(0.5))),
    "log of the standard normal cdf, without underflow.",
)
entr = special("entr", lambda g, x: g * (-log(x) - 1), "-x * log(x): 0 at 0, -inf below.", low=0.2, high=3.0)

# ---- the gamma function ------------------------------------------------------------------------------------------

lgamma = special(
    "lgamma", lambda g, x: g * digamma(x), "log |gamma(x)|; gamma(n) is the factorial of n - 1.", None, 0.2, 3.0
)
digamma = special("digamma", lambda g, x: g * polygamma(x, n=1), "The derivative of lgamma.", "psi", 0.2, 3.0)


@kernel(lgamma, on_host=True)
@via_float32
def _(xp, x, out=None):
    special = need("scipy.special", "lgamma")
    with silent():
        return special.gammaln(xp.where(xp.isneginf(x), -x, x), out=out)  # inf at -inf, as in C


def polygamma_spec(x: Spec, n: int) -> Spec:
    need_floating("polygamma", x)
    if not 1 <= n <= 170:  # 171! exceeds the range of floats
        raise OutOfRangeError(f"polygamma: the order must be from 1 to 170, got {n}", hint="polygamma(1, x)")
    return x


polygamma = define(
    "polygamma(x; n)",
    polygamma_spec,
    lambda g, x, n: g * polygamma(x, n=n + 1),
    sharding="... -> ...",
    examples=[
        case(positive(3, 4), n=1),
        case(positive(()), n=2),
        case(positive(0, 3), n=1),
        case(strided(4, 5, low=0.3, high=3.0), n=3),
        case(floats(5, dtype="float32", low=0.3), n=1),
    ],
    doc="The n-th derivative of digamma, n >= 1.",
)


@kernel(polygamma, on_host=True)
@via_float32
def _(xp, x, n, out=None):
    special = need("scipy.special", "polygamma")
    with silent():
        factor = math.gamma(n + 1.0) * (1 if n % 2 else -1)
        return xp.multiply(special.zeta(x.dtype.type(n + 1), x), x.dtype.type(factor), out=out)


def no_closed_form(name: str):
    """The rule of an input whose derivative has no closed form: backward is refused there."""

    def rule(g):
        what = f"{name}: its derivative in the first argument has no closed form"
        fail(GradError, what, f"{name}(x.detach(), y)", gradient=g)

    return rule


def igamma_grad(a, b, sign: int):
    """The derivative of igamma (sign 1) and igammac (-1) in b: b**(a-1) * exp(-b) / gamma(a)."""
    return sign * exp((a - 1) * log(b) - b - lgamma(a))


POSITIVE = [
    case(positive(3, 4), positive(4)),
    case(positive(()), positive(3)),
    case(positive(0, 3), positive(3)),
    case(strided(4, 5, low=0.3, high=3.0), positive(5)),
    case(ints(3, low=1), ints(3, low=1)),
]
igamma = by_scipy(
    binary_op(
        "igamma",
        dict(a=no_closed_form("igamma"), b=lambda g, a, b: g * igamma_grad(a, b, 1)),
        "The regularized lower incomplete gamma function; differentiable only in b.",
        examples=POSITIVE,
        module=__name__,
    ),
    "gammainc",
)
igammac = by_scipy(
    binary_op(
        "igammac",
        dict(a=no_closed_form("igammac"), b=lambda g, a, b: g * igamma_grad(a, b, -1)),
        "The regularized upper incomplete gamma function, 1 - igamma; differentiable only in b.",
        examples=POSITIVE,
        module=__name__,
    ),
    "gammaincc",
)
ABOVE_ONE = [
    case(floats(3, 4, low=1.3, high=4.0), positive(4)),
    case(floats((), low=1.5, high=4.0), positive(3)),
    case(floats(0, 3), positive(3)),
    case(2.5, positive(3)),
    case(strided(4, 5, low=1.5, high=3.0), positive(5)),
    case(ints(3, low=2), ints(3, low=1)),
]
zeta = by_scipy(
    binary_op(
        "zeta",
        dict(a=no_closed_form("zeta"), b=lambda g, a, b: g * (-a * zeta(a + 1, b))),
        "The sum of (b + k)**-a over k = 0, 1, 2, ...; Riemann's zeta(a) if b is 1.",
        examples=ABOVE_ONE,
        module=__name__,
    ),
    "zeta",
)


# ---- Bessel and Airy functions ----------------------------------------------------------------------------

i0 = special("i0", lambda g, x: g * i1(x), "Modified Bessel function of the first kind, order 0.")
i1 = special(
    "i1", lambda g, x, out: g * (i0(x) - divided(out, x)), "Modified Bessel function of the first kind, order 1."
)
i0e = special("i0e", lambda g, x, out: g * (i1e(x) - sign(x) * out), "exp(-|x|) * i0(x).")
i1e = special("i1e", lambda g, x, out: g * (i0e(x) - out * sign(x) - divided(out, x)), "exp(-|x|) * i1(x).")


def divided(out, x):
    """out / x; its limit 1/2 at 0, where i1 is x/2."""
    zero = eq(x, 0)
    return where(zero, 0.5, out * reciprocal(where(zero, 1.0, x)))


airy_ai = special("airy_ai", None, "Airy function Ai.", None)
bessel_j0 = special("bessel_j0", None, "Bessel function of the first kind, order 0.", "j0")
bessel_j1 = special("bessel_j1", None, "Bessel function of the first kind, order 1.", "j1")
bessel_y0 = special("bessel_y0", None, "Bessel function of the second kind, order 0.", "y0", 0.2, 3.0)
bessel_y1 = special("bessel_y1", None, "Bessel function of the second kind, order 1.", "y1", 0.2, 3.0)
modified_bessel_k0 = special(
    "modified_bessel_k0", None, "Modified Bessel function of the second kind, order 0.", "k0", 0.2, 3.0
)
modified_bessel_k1 = special(
    "modified_bessel_k1", None, "Modified Bessel function of the second kind, order 1.", "k1", 0.2, 3.0
)
scaled_modified_bessel_k0 = special(
    "scaled_modified_bessel_k0", None, "exp(x) * modified_bessel_k0(x).", "k0e", 0.2, 3.0
)
scaled_modified_bessel_k1 = special(
    "scaled_modified_bessel_k1", None, "exp(x) * modified_bessel_k1(x).", "k1e", 0.2, 3.0
)
spherical_bessel_j0 = special("spherical_bessel_j0", None, "sin(x) / x; 1 at 0.", None)


@kernel(airy_ai, on_host=True)
@via_float32
def _(xp, x, out=None):
    special = need("scipy.special", "airy_ai")
    return write_out(xp, special.airy(x)[0], out)


@kernel(spherical_bessel_j0, on_host=True)
@via_float32
def _(xp, x, out=None):
    special = need("scipy.special", "spherical_bessel_j0")
    return write_out(xp, special.spherical_jn(0, x).astype(x.dtype), out)
