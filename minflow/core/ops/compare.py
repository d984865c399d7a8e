"""Elementwise comparisons, logical and bitwise ops. No gradients. Read next: `reduce.py`."""

from __future__ import annotations

from collections.abc import Callable

from ..kernels import kernel
from ..op import define
from ..scalar import elementary
from ..spec import bool_
from .examples import binary, bools, case, floats, ints, unary
from .rules import broadcast

# ---- comparisons: bool results -----------------------------------------------------------------------------------


def comparison(name: str, ufunc: str, symbol: str, doc: str, **options):
    examples = [*binary(), case(ints(3, 4), ints(4)), case(bools(4), bools(4)), case(ints(5), 2)]
    op = define(
        f"{name}(a, b)",
        broadcast(name, "a", "b", out=bool_),
        elementwise="bool",
        scalar=elementary(name),
        examples=examples,
        doc=doc,
        **options,
    )
    kernel(op, ufunc=ufunc)
    return op


eq = comparison("eq", "equal", "==", "a == b.", domain="complex")
ne = comparison("ne", "not_equal", "!=", "a != b.", domain="complex")
lt = comparison("lt", "less", "<", "a < b.")
le = comparison("le", "less_equal", "<=", "a <= b.")
gt = comparison("gt", "greater", ">", "a > b.")
ge = comparison("ge", "greater_equal", ">=", "a >= b.")


# ---- predicates of one element
# -----------------------------------------------------------------------------------------


def predicate_op(name: str, ufunc: str, doc: str, scalar: Callable | None = None, **options):
    op = define(
        f"{name}(x)",
        broadcast(name, "x", out=bool_),
        elementwise="bool",
        scalar=elementary(name) or scalar,
        examples=unary(),
        doc=doc,
        **options,
    )
    kernel(op, ufunc=ufunc)
    return op


isnan = predicate_op("isnan", "isnan", "True where x is NaN.", domain="complex")
isinf = predicate_op("isinf", "isinf", "True where x is inf or -inf.", domain="complex")
isfinite = predicate_op("isfinite", "isfinite", "True where x is neither infinite nor NaN.", domain="complex")
signbit = predicate_op("signbit", "signbit", "True where x has a minus sign, also for -0.0.")
logical_not = predicate_op(
    "logical_not", "logical_not", "True where x is zero or False.", lambda b, x: b.eq(x, 0), domain="complex"
)


# ---- logic; anything but 0 counts as true ------------------------------------------------------------------

LOGIC_EXAMPLES = [
    case(bools(3, 4), bools(3, 4)),
    case(bools(4), bools(3, 1)),
    case(floats(3), ints(3)),
    case(bools(()), bools(0)),
]


def logic(name: str, doc: str):
    op = define(
        f"{name}(a, b)",
        broadcast(name, "a", "b", out=bool_),
        elementwise="bool",
        domain="complex",
        examples=LOGIC_EXAMPLES,
        doc=doc,
    )
    kernel(op, ufunc=name)
    return op


logical_and = logic("logical_and", "True where both are true.")
logical_or = logic("logical_or", "True where at least one of the two is true.")
logical_xor = logic("logical_xor", "True where exactly one of the two is true.")


# ---- bits --------------------------------------------------------------------------------------------------------

BITWISE_EXAMPLES = [
    case(bools(3, 4), bools(4)),
    case(ints(3, 4), ints(3, 4)),
    case(ints(4), 6),
    case(ints(4, dtype="uint8"), ints(4, dtype="uint8")),
]


def bitwise(name: str, symbol: str, doc: str):
    op = define(
        f"{name}(a, b)",
        broadcast(name, "a", "b", integers=True),
        elementwise="same",
        always_infer=True,
        examples=BITWISE_EXAMPLES,
        doc=doc,
    )
    kernel(op, ufunc=name)
    return op


bitwise_and = bitwise("bitwise_and", "&", "a & b: logical for bools, bitwise for integers.")
bitwise_or = bitwise("bitwise_or", "|", "a | b: logical for bools, bitwise for integers.")
bitwise_xor = bitwise("bitwise_xor", "^", "a ^ b: logical for bools, bitwise for integers.")

bitwise_not = define(
    "bitwise_not(x)",
    broadcast("bitwise_not", "x", integers=True),
    elementwise="same",
    always_infer=True,
    examples=[bools(3, 4), ints(4), ints(4, dtype="uint8"), bools(())],
    doc="~x: logical for bools, bitwise for integers.",
)
kernel(bitwise_not, ufunc="invert")
