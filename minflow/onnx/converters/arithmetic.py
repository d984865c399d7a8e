"""Converters of elementwise arithmetic and mathematical functions.

Inputs were promoted before the node was recorded; a Python number takes the dtype of the other tensor. Integer dtypes
that an ONNX op does not support are computed in int64. Functions without an ONNX op are composed so that they stay
accurate for small and large arguments, as ours are.
"""

from __future__ import annotations

import math

from ...core.spec import DType, bool_, int32, int64, uint8
from ..builder import Builder, converter


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
TWINS = dict(
    exp="Exp",
    log="Log",
    sqrt="Sqrt",
    reciprocal="Reciprocal",
    sin="Sin",
    cos="Cos",
    tan="Tan",
    asin="Asin",
    acos="Acos",
    atan="Atan",
    tanh="Tanh",
    sinh="Sinh",
    cosh="Cosh",
    asinh="Asinh",
    acosh="Acosh",
    atanh="Atanh",
    sigmoid="Sigmoid",
    erf="Erf",
    softplus="Softplus",
)
for ours, theirs in TWINS.items():
    converter(ours)(same_op(theirs))


def rounding(kind: str):
    def rounded(b, node, x):
        return b.op(kind, x) if is_float(node) else x

    return rounded


for ours, theirs in dict(floor="Floor", ceil="Ceil", round="Round").items():
    converter(ours)(rounding(theirs))


def truncated(b: Builder, x: str, dtype: DType) -> str:
    return b.op("Where", b.op("Less", x, b.const(0, dtype)), b.op("Ceil", x), b.op("Floor", x))


@converter("trunc")
def _(b, node, x):
    return truncated(b, x, result_dtype(node)) if is_float(node) else x


@converter("trunc_divide")
def _(b, node, *inputs):
    return truncated(b, b.op("Div", *values(b, node, inputs)), result_dtype(node))


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


@converter("lerp")
def _(b, node, *inputs):
    start, end, weight = values(b, node, inputs)
    dtype = result_dtype(node)
    way = b.op("Sub", end, start)
    near = b.op("Less", b.op("Abs", weight), b.const(0.5, dtype))
    back = b.op("Sub", end, b.op("Mul", way, b.op("Sub", b.const(1, dtype), weight)))
    return b.op("Where", near, b.op("Add", start, b.op("Mul", weight, way)), back)


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


@converter("exp2")
def _(b, node, x):
    return b.op("Pow", b.const(2, result_dtype(node)), x)


@converter("expm1")
def _(b, node, x):
    """tanh(x / 2) * (exp(x) + 1), which is exact for small x."""
    dtype = result_dtype(node)
    half = b.op("Tanh", b.op("Mul", x, b.const(0.5, dtype)))
    return b.op("Mul", half, b.op("Add", b.op("Exp", x), b.const(1, dtype)))


@converter("log1p")
def _(b, node, x):
    return log1p(b, x, result_dtype(node))


def log1p(b: Builder, x: str, dtype: DType) -> str:
    """log(u) * x / (u - 1) with u = 1 + x, which cancels the rounding of u (Goldberg 1991, theorem 4)."""
    one = b.const(1, dtype)
    u = b.op("Add", one, x)
    step = b.op("Sub", u, one)
    small = b.op("Less", b.op("Abs", x), one)
    mended = b.op("Where", small, b.op("Div", x, step), one)
    return b.op("Where", b.op("Equal", step, b.const(0, dtype)), x, b.op("Mul", b.op("Log", u), mended))


@converter("log10", "log2")
def _(b, node, x):
    base = 10 if node.op.name == "log10" else 2
    return b.op("Mul", b.op("Log", x), b.const(1 / math.log(base), result_dtype(node)))


@converter("rsqrt")
def _(b, node, x):
    return b.op("Reciprocal", b.op("Sqrt", x))


@converter("erfc")
def _(b, node, x):
    return b.op("Sub", b.const(1, result_dtype(node)), b.op("Erf", x))


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
    log = b.op("Log", y) if node.op.name == "xlogy" else log1p(b, y, dtype)
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
