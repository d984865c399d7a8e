"""Binary functions beyond arithmetic, integer functions, and the parts of a float.

They are primitives because the obvious composite overflows (`hypot`, `logaddexp`), has another derivative at 0
(`xlogy`), or does not exist (`nextafter`, `gcd`, shifts). Read next: `special.py`.
"""

from __future__ import annotations

import math

from ..host.float_warnings import silent
from ..kernels import kernel
from ..op import define
from ..scalar import elementary
from ..spec import Spec, int32
from .compare import eq, le, logical_and
from .elementwise import exp2, log1p, no_gradient, sigmoid, ufunc_kernel, where
from .examples import binary, case, floats, ints, strided
from .rules import as_arrays, broadcast, need_floating, via_float32
from .shape import detach


def binary_op(
    name: str,
    rules: dict,
    doc: str,
    *,
    ufunc: str = "",
    refuse_bool: str = "",
    elementwise: str = "float",
    examples: list | None = None,
    module: str = __name__,
):
    """Define an op of a and b; its kernel is the ufunc, if one is named."""
    op = define(
        f"{name}(a, b)",
        broadcast(name, "a", "b", refuse_bool=refuse_bool),
        rules,
        elementwise=elementwise,
        scalar=elementary(name),
        examples=binary(low=0.3, high=3.0) if examples is None else examples,
        doc=doc,
        module=module,
    )
    if ufunc:
        ufunc_kernel(op, ufunc)
    return op


hypot = binary_op(
    "hypot",
    dict(a=lambda g, a, out: g * (a / out), b=lambda g, b, out: g * (b / out)),
    "sqrt(a*a + b*b), the length of the vector (a, b), even if a*a would overflow.",
    ufunc="hypot",
    refuse_bool="a.float() first",
)
copysign = binary_op(
    "copysign",
    dict(a=lambda g, a, out: g * where(eq(a, 0), 0.0, out / where(eq(a, 0), 1.0, a)), b=no_gradient),
    "The absolute value of a with the sign of b, including that of -0.0.",
    ufunc="copysign",
    examples=[*binary(), case(floats(4), -2.0)],
)
logaddexp = binary_op(
    "logaddexp",
    dict(a=lambda g, a, b: g * sigmoid(a - b), b=lambda g, a, b: g * sigmoid(b - a)),
    "log(exp(a) + exp(b)), without overflow.",
    ufunc="logaddexp",
    refuse_bool="a.float() first",
    examples=binary(),
)
logaddexp2 = binary_op(
    "logaddexp2",
    dict(a=lambda g, a, b: g * sigmoid((a - b) * math.log(2)), b=lambda g, a, b: g * sigmoid((b - a) * math.log(2))),
    "log2(2**a + 2**b), without overflow.",
    ufunc="logaddexp2",
    refuse_bool="a.float() first",
    examples=binary(),
)
xlogy = binary_op(
    "xlogy",
    dict(
        a=lambda g, a, b: where(logical_and(eq(a, 0), le(b, 0)), 0.0, xlogy(g, tensor_like(b, a))),
        b=lambda g, a, b: g * (a / b),
    ),
    "a * log(b); 0 if a is 0 and b is not NaN.",
)
xlog1py = binary_op(
    "xlog1py",
    dict(
        a=lambda g, a, b: g * where(logical_and(eq(a, 0), le(b, -1)), 0.0, log1p(tensor_like(b, a))),
        b=lambda g, a, b: g * (a / (b + 1)),
    ),
    "a * log(1 + b), exact for small b; 0 if a is 0 and b is not NaN.",
)


def tensor_like(b, a):
    """Return b as a tensor; a Python number is converted."""
    return b if hasattr(b, "spec") else no_gradient(a) + b


def product_or_zero(op, ufunc: str) -> None:
    @kernel(op)
    @via_float32
    def _(xp, a, b, out=None):
        a, b = as_arrays(xp, a, b)
        with silent():
            zero = xp.logical_and(xp.equal(a, 0), xp.logical_not(xp.isnan(b)))
            return xp.multiply(a, xp.where(zero, 0, getattr(xp, ufunc)(b)), out=out)


product_or_zero(xlogy, "log")
product_or_zero(xlog1py, "log1p")


def floats_only(name: str, *names: str):
    """The shape rule of ops that take only floats."""
    rule = broadcast(name, *names)

    def checked(*specs):
        for letter, s in zip(names, specs):
            if isinstance(s, Spec):
                need_floating(name, s, letter)
        return rule(*specs)

    return checked


nextafter = define(
    "nextafter(a, b)",
    floats_only("nextafter", "a", "b"),
    dict(a=lambda g, a, b: where(eq(a, b), 0.0, g), b=no_gradient),
    elementwise="same",
    always_infer=True,
    scalar=elementary("nextafter"),
    examples=[
        case(floats(3, 4), floats(4)),
        case(floats(0, 3), floats(3)),
        case(floats(()), floats(3)),
        case(strided(4, 5), 1.0),
        case(floats(3, dtype="float32"), floats(3, dtype="float32")),
    ],
    doc="The next representable number after a in the direction of b.",
)
kernel(nextafter, ufunc="nextafter")


def frexp_spec(x):
    """The shape rule of frexp."""
    need_floating("frexp", x)
    return x, x.replace(dtype=int32)


frexp = define(
    "frexp(x) -> mantissa, exponent",
    frexp_spec,
    lambda g, out1: g[0] / exp2(detach(out1)),
    sharding="... -> ..., ...",
    examples=[floats(3, 4), floats(()), floats(0, 3), strided(4, 5), floats(5, dtype="float32")],
    doc="(mantissa, exponent) with x = mantissa * 2**exponent and 1/2 <= |mantissa| < 1.",
)


@kernel(frexp)
def _(xp, x):
    mantissa, exponent = xp.frexp(x)
    return mantissa, xp.where(xp.isfinite(x), exponent, 0).astype("int32")


# ---- integers ----------------------------------------------------------------------------------------------------

INTEGER_EXAMPLES = [
    case(ints(3, 4, low=-9, high=9), ints(4, low=-9, high=9)),
    case(ints(()), ints(3)),
    case(ints(0, 3), ints(3)),
    case(ints(5), 6),
    case(ints(4, dtype="uint8"), ints(4, dtype="uint8")),
]
SHIFT_EXAMPLES = [
    case(ints(3, 4, low=-9, high=9), ints(4)),
    case(ints(()), ints(3)),
    case(ints(0, 3), ints(3)),
    case(ints(5), 2),
    case(ints(4, dtype="uint8"), ints(4, dtype="uint8")),
]


def integer_op(name: str, ufunc: str, doc: str, examples: list):
    """Define an op of two integers."""
    op = define(
        f"{name}(a, b)",
        broadcast(name, "a", "b", integers=True, refuse_bool="a.int() first"),
        elementwise="same",
        always_infer=True,
        scalar=elementary(name),
        examples=examples,
        doc=doc,
    )
    kernel(op, ufunc=ufunc)
    return op


gcd = integer_op("gcd", "gcd", "The greatest common divisor.", INTEGER_EXAMPLES)
lcm = integer_op("lcm", "lcm", "The least common multiple; 0 if one is 0.", INTEGER_EXAMPLES)
bitwise_left_shift = integer_op(
    "bitwise_left_shift", "left_shift", "a << b: a * 2**b; overflowing bits are lost.", SHIFT_EXAMPLES
)
bitwise_right_shift = integer_op("bitwise_right_shift", "right_shift", "a >> b: floor(a / 2**b).", SHIFT_EXAMPLES)
