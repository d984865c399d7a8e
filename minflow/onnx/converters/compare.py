"""Converters of comparisons, logic and bits. A Python number takes the dtype of the tensor that it is compared with."""

from __future__ import annotations

from ...core.ir import NUMBERS
from ...core.spec import DType, bool_, float16, float32, int32, int64
from ..builder import Builder, converter
from .arithmetic import has_minus_sign


def input_dtype(node) -> DType:
    """The dtype of the tensor inputs."""
    return next((x.spec.dtype for x in node.inputs if x.__class__ not in NUMBERS), bool_)


def as_bool(b: Builder, node, i: int, x) -> str:
    """Input i as a bool: everything except 0 is true."""
    if x.__class__ is not str:
        return b.const(bool(x))
    return b.cast(x, bool_, node.inputs[i].spec.dtype)


def compare_op(kind: str, negate: bool = False):
    def comparison(b, node, *inputs):
        dtype = input_dtype(node)
        names = [b.value(x, dtype) for x in inputs]
        if dtype is bool_ and kind != "Equal":
            names = [b.cast(x, int32) for x in names]
        result = b.op(kind, *names)
        return b.op("Not", result) if negate else result

    return comparison


KINDS = dict(eq="Equal", lt="Less", le="LessOrEqual", gt="Greater", ge="GreaterOrEqual")
for ours, theirs in KINDS.items():
    converter(ours)(compare_op(theirs))
converter("ne")(compare_op("Equal", negate=True))


@converter("isnan", "isinf", "isfinite")
def _(b, node, x):
    name, dtype = node.op.name, input_dtype(node)
    if not dtype.floating:
        same = b.op("Equal", x, x)
        return same if name == "isfinite" else b.op("Not", same)
    x = b.cast(x, float32) if dtype is float16 else x  # IsInf does not support float16
    if name != "isfinite":
        return b.op("IsNaN" if name == "isnan" else "IsInf", x)
    return b.op("Not", b.op("Or", b.op("IsNaN", x), b.op("IsInf", x)))


@converter("signbit")
def _(b, node, x):
    dtype = input_dtype(node)
    return has_minus_sign(b, x, dtype) if dtype is not bool_ else b.op("Not", b.op("Equal", x, x))


@converter("logical_not")
def _(b, node, x):
    return b.op("Not", as_bool(b, node, 0, x))


@converter("logical_and", "logical_or", "logical_xor")
def _(b, node, *inputs):
    kind = {"logical_and": "And", "logical_or": "Or", "logical_xor": "Xor"}[node.op.name]
    return b.op(kind, *[as_bool(b, node, i, x) for i, x in enumerate(inputs)])


def bitwise_op(kind: str, of_bools: str):
    def bitwise(b, node, *inputs):
        dtype = node.out_specs[0].dtype
        return b.op(of_bools if dtype is bool_ else kind, *[b.value(x, dtype) for x in inputs])

    return bitwise


for ours, theirs in dict(bitwise_and="And", bitwise_or="Or", bitwise_xor="Xor", bitwise_not="Not").items():
    converter(ours)(bitwise_op(f"Bitwise{theirs}", theirs))


@converter("bitwise_left_shift", "bitwise_right_shift")
def _(b, node, *inputs):
    """ONNX shifts only unsigned integers, so multiply by powers of 2, or divide and round down."""
    dtype = node.out_specs[0].dtype
    x, steps = [b.value(x, int64) if x.__class__ in NUMBERS else b.cast(x, int64) for x in inputs]
    power = b.op("Pow", b.const(2), steps)
    if node.op.name == "bitwise_left_shift":
        return b.cast(b.op("Mul", x, power), dtype)
    return b.cast(b.op("Div", b.op("Sub", x, b.op("Mod", x, power)), power), dtype)
