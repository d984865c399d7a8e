"""Converters of elementwise arithmetic and mathematical functions.

Inputs were promoted before the node was recorded; a Python number takes the dtype of the other tensor. Integer dtypes
that an ONNX op does not support are computed in int64. Ops that are not here or in `compare.py` are converted by their
formula: `formulas.py`.
"""

from __future__ import annotations

import math

from ...core.spec import DType, bool_, int32, int64, uint8
from ..builder import Builder, converter
from .formulas import OnnxFormula


def result_dtype(node) -> DType:
    return node.out_specs[0].dtype


def values(b: Builder, node, inputs, dtype: DType | None = None) -> list[str]:
    """Names of the inputs; Python numbers have the result's dtype, or the given one."""
    return [b.value(x, dtype or result_dtype(node)) for x in inputs]


def is_float(node) -> bool:
    return result_dtype(node).floating


def same_op(kind: str, of_bools: str = "", narrow: frozenset[DType] = frozenset()):
    """Converter of an op that has an equivalent in ONNX. of_bools: the equivalent for bools.  narrow: dtypes that it
    does not support.
    """

    def same(b, node, *inputs):
        dtype = result_dtype(node)
        if dtype is bool_ and of_bools:
            return b.op(of_bools, *values(b, node, inputs))
        if dtype in narrow:
            return b.cast(b.op(kind, *[b.cast(x, int64) for x in values(b, node, inputs)]), dtype)
        return b.op(kind, *values(b, node, inputs))

    return same


converter("add")(same_op("Add", "Or"))
converter("sub")(same_op("Sub"))
converter("mul")(same_op("Mul", "And"))
converter("div")(same_op("Div"))
converter("maximum")(same_op("Max", "Or"))
converter("minimum")(same_op("Min", "And"))
converter("neg")(same_op("Neg", narrow=frozenset({uint8})))
converter("abs")(lambda b, node, x: x if result_dtype(node) is bool_ else b.op("Abs", x))
converter("sign")(same_op("Sign"))
converter("sigmoid")(same_op("Sigmoid"))
converter("softplus")(same_op("Softplus"))


def rounding(kind: str):
    def rounded(b, node, x):
        return b.op(kind, x) if is_float(node) else x

    return rounded


for ours, theirs in dict(floor="Floor", ceil="Ceil", round="Round").items():
    converter(ours)(rounding(theirs))


@converter("trunc")
def _(b, node, x):
    return OnnxFormula(b, result_dtype(node)).trunc(x) if is_float(node) else x


@converter("pow")
def _(b, node, x, y):
    dtype = result_dtype(node)
    if y.__class__ is int and y == 2:
        return b.op("Mul", x, x)
    names = values(b, node, (x, y))
    if dtype.floating or dtype in (int32, int64):
        return b.op("Pow", *names)
    return b.cast(b.op("Pow", *[b.cast(name, int64) for name in names]), dtype)


@converter("fmod")
def _(b, node, *inputs):
    return b.op("Mod", *values(b, node, inputs), fmod=1)


@converter("remainder")
def _(b, node, *inputs):
    return remainder(b, node, *values(b, node, inputs))


def remainder(b: Builder, node, x: str, y: str) -> str:
    """The remainder of x / y, with the sign of y."""
    if not is_float(node):
        return b.op("Mod", x, y)
    zero, rest = b.const(0, result_dtype(node)), b.op("Mod", x, y, fmod=1)
    other_sign = b.op("Xor", b.op("Less", rest, zero), b.op("Less", y, zero))
    moved = b.op("And", other_sign, b.op("Not", b.op("Equal", rest, zero)))
    return b.op("Where", moved, b.op("Add", rest, y), rest)


@converter("floor_divide")
def _(b, node, *inputs):
    """Floor division via the remainder, as in Python: 1.0 // 0.1 is 9."""
    x, y = values(b, node, inputs)
    whole = b.op("Div", b.op("Sub", x, remainder(b, node, x, y)), y)
    if not is_float(node):
        return whole
    by_zero = b.op("Equal", y, b.const(0, result_dtype(node)))
    return b.op("Where", by_zero, b.op("Div", x, y), b.op("Round", whole))


@converter("atan2")
def _(b, node, *inputs):
    """The angle of y / x, turned by pi where x is negative; pi / 2 with the sign of y where x is 0."""
    y, x = values(b, node, inputs)
    dtype = result_dtype(node)
    zero, half = b.const(0, dtype), b.const(math.pi / 2, dtype)
    turn = b.op("Where", b.op("Less", y, zero), b.const(-math.pi, dtype), b.const(math.pi, dtype))
    angle = b.op("Atan", b.op("Div", y, x))
    negate = b.op("Where", b.op("Less", x, zero), b.op("Add", angle, turn), angle)
    return b.op("Where", b.op("Equal", x, zero), b.op("Mul", b.op("Sign", y), half), negate)


@converter("clamp")
def _(b, node, x, low, high):
    dtype = result_dtype(node)
    if low.__class__ is not str and high.__class__ is not str and dtype.floating:
        low, high = (None if abs(n) == math.inf else b.const(n, dtype) for n in (low, high))
        return b.op("Clip", x, low, high)
    return b.op("Min", b.op("Max", *values(b, node, (x, low))), b.value(high, dtype))


@converter("where")
def _(b, node, cond, *inputs):
    x, y = values(b, node, inputs)
    if result_dtype(node) is bool_:  # onnxruntime has no Where for bool
        return b.op("Or", b.op("And", cond, x), b.op("And", b.op("Not", cond), y))
    return b.op("Where", cond, x, y)


@converter("cast")
def _(b, node, x):
    return b.cast(x, node.attrs["dtype"])


@converter("square")
def _(b, node, x):
    return b.op("Mul", x, x)


@converter("entr")
def _(b, node, x):
    zero = b.const(0, result_dtype(node))
    value = b.op("Neg", b.op("Mul", x, b.op("Log", x)))
    below = b.op("Where", b.op("Less", x, zero), b.const(-math.inf, result_dtype(node)), value)
    return b.op("Where", b.op("Equal", x, zero), zero, below)


# ---- binary functions --------------------------------------------------------------------------------------------


@converter("hypot")
def _(b, node, *inputs):
    """The larger input times sqrt(1 + ratio * ratio), so that no square overflows."""
    x, y = [b.op("Abs", name) for name in values(b, node, inputs)]
    zero, one = b.const(0, result_dtype(node)), b.const(1, result_dtype(node))
    longer, shorter = b.op("Max", x, y), b.op("Min", x, y)
    ratio = b.op("Div", shorter, b.op("Where", b.op("Equal", longer, zero), one, longer))
    return b.op("Mul", longer, b.op("Sqrt", b.op("Add", b.op("Mul", ratio, ratio), one)))


@converter("copysign")
def _(b, node, *inputs):
    x, y = values(b, node, inputs)
    size = b.op("Abs", x)
    return b.op("Where", has_minus_sign(b, y, result_dtype(node)), b.op("Neg", size), size)


def has_minus_sign(b: Builder, x: str, dtype: DType) -> str:
    """True where x has a minus sign, including -0.0 (1 / -0.0 is below 0)."""
    below = b.op("Less", x, b.const(0, dtype))
    return b.op("Or", below, b.op("Less", b.op("Reciprocal", x), b.const(0, dtype))) if dtype.floating else below


@converter("logaddexp", "logaddexp2")
def _(b, node, *inputs):
    """The larger input plus log(1 + exp(-distance))."""
    x, y = values(b, node, inputs)
    apart = b.op("Neg", b.op("Abs", b.op("Sub", x, y)))
    apart = b.op("Where", b.op("Equal", x, y), b.const(0, result_dtype(node)), apart)  # both may be infinite
    if node.op.name == "logaddexp":
        return b.op("Add", b.op("Max", x, y), b.op("Softplus", apart))
    unit = b.const(math.log(2), result_dtype(node))
    return b.op("Add", b.op("Max", x, y), b.op("Div", b.op("Softplus", b.op("Mul", apart, unit)), unit))


@converter("xlogy", "xlog1py")
def _(b, node, *inputs):
    x, y = values(b, node, inputs)
    dtype = result_dtype(node)
    zero = b.const(0, dtype)
    nothing = b.op("And", b.op("Equal", x, zero), b.op("Not", b.op("IsNaN", y)))
    log = b.op("Log", y) if node.op.name == "xlogy" else OnnxFormula(b, dtype).log1p(y)
    return b.op("Mul", x, b.op("Where", nothing, zero, log))


# ---- activations -------------------------------------------------------------------------------------------------


@converter("relu")
def _(b, node, x):
    return x if result_dtype(node) is uint8 else b.op("Relu", x)


@converter("relu6")
def _(b, node, x):
    dtype = result_dtype(node)
    return b.op("Clip", x, b.const(0, dtype), b.const(6, dtype))


@converter("leaky_relu")
def _(b, node, x, slope):
    if slope.__class__ is not str and is_float(node):
        return b.op("LeakyRelu", x, alpha=float(slope))
    slope, dtype = b.value(slope, result_dtype(node)), result_dtype(node)
    return b.op("Where", b.op("Greater", x, b.const(0, dtype)), x, b.op("Mul", x, slope))
