"""Comparisons, logic and bits, element by element. No gradients. Read next: `reduce.py`."""

from __future__ import annotations

from .examples import binary, bools, case, floats, ints, unary
from ..op import define, kernel
from ..spec import bool_
from .rules import SPLIT_1, SPLIT_2, broadcast

# ---- comparisons: bool results -----------------------------------------------------------------------------------


def comparison(name: str, ufunc: str, symbol: str, doc: str, **options):
    examples = [*binary(), case(ints(3, 4), ints(4)), case(bools(4), bools(4)), case(ints(5), 2)]
    op = define(
        f"{name}(a, b)",
        broadcast(name, "a", "b", out=bool_),
        elementwise="bool",
        scalar=f"a {symbol} b",
        sbp=SPLIT_2,
        examples=examples,
        doc=doc,
        **options,
    )
    kernel(op, ufunc=ufunc)
    return op


eq = comparison("eq", "equal", "==", "a == b.", numbers="complex")
ne = comparison("ne", "not_equal", "!=", "a != b.", numbers="complex")
lt = comparison("lt", "less", "<", "a < b.")
le = comparison("le", "less_equal", "<=", "a <= b.")
gt = comparison("gt", "greater", ">", "a > b.")
ge = comparison("ge", "greater_equal", ">=", "a >= b.")


# ---- tests of one number -----------------------------------------------------------------------------------------


def test(name: str, ufunc: str, doc: str, **options):
    op = define(
        f"{name}(x)",
        broadcast(name, "x", out=bool_),
        elementwise="bool",
        scalar=f"{name}(x)",
        sbp=SPLIT_1,
        examples=unary(),
        doc=doc,
        **options,
    )
    kernel(op, ufunc=ufunc)
    return op


isnan = test("isnan", "isnan", "Is x not a number?", numbers="complex")
isinf = test("isinf", "isinf", "Is x infinite, of either sign?", numbers="complex")
isfinite = test("isfinite", "isfinite", "Is x neither infinite nor NaN?", numbers="complex")
signbit = test("signbit", "signbit", "Does x have a minus sign? -0.0 has one.")
logical_not = test("logical_not", "logical_not", "Is x zero or False?", numbers="complex")


# ---- logic, where anything but 0 counts as true ------------------------------------------------------------------

LOGIC = [
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
        sbp=SPLIT_2,
        numbers="complex",
        examples=LOGIC,
        doc=doc,
    )
    kernel(op, ufunc=name)
    return op


logical_and = logic("logical_and", "Are both true?")
logical_or = logic("logical_or", "Is one of the two, or both, true?")
logical_xor = logic("logical_xor", "Is exactly one of the two true?")


# ---- bits --------------------------------------------------------------------------------------------------------

BITS = [
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
        scalar=f"a {symbol} b",
        sbp=SPLIT_2,
        examples=BITS,
        doc=doc,
    )
    kernel(op, ufunc=name)
    op.fast_path = False  # floats must meet the rule, which refuses them
    return op


bitwise_and = bitwise("bitwise_and", "&", "a & b: of bools and, of integers bit by bit.")
bitwise_or = bitwise("bitwise_or", "|", "a | b: of bools or, of integers bit by bit.")
bitwise_xor = bitwise("bitwise_xor", "^", "a ^ b: of bools exclusive or, of integers bit by bit.")

bitwise_not = define(
    "bitwise_not(x)",
    broadcast("bitwise_not", "x", integers=True),
    elementwise="same",
    scalar="~x",
    sbp=SPLIT_1,
    examples=[bools(3, 4), ints(4), ints(4, dtype="uint8"), bools(())],
    doc="~x: of bools not, of integers every bit turned.",
)
kernel(bitwise_not, ufunc="invert")
bitwise_not.fast_path = False
