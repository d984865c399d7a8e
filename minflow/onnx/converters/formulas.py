"""ONNX nodes from the formulas of elementwise ops (`core/scalar.py`), for ops that have no converter of their own.

Functions without an ONNX op are composed so that they stay accurate for small and large arguments, as ours are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...core.op import OPS
from ...core.scalar import ScalarBuilder, expm1, log1p, operations_of
from ...core.spec import DType
from ..builder import CONVERTERS, Builder

SAME = {  # operation of a formula -> ONNX op
    "add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "neg": "Neg", "abs": "Abs", "max": "Max", "min": "Min",
    "floor": "Floor", "ceil": "Ceil", "round": "Round", "sqrt": "Sqrt", "exp": "Exp", "log": "Log", "erf": "Erf",
    "sin": "Sin", "cos": "Cos", "tan": "Tan", "asin": "Asin", "acos": "Acos", "atan": "Atan", "pow": "Pow",
    "sinh": "Sinh", "cosh": "Cosh", "tanh": "Tanh", "asinh": "Asinh", "acosh": "Acosh", "atanh": "Atanh",
    "eq": "Equal", "lt": "Less", "le": "LessOrEqual", "gt": "Greater", "ge": "GreaterOrEqual", "isnan": "IsNaN",
    "and_": "And", "or_": "Or", "not_": "Not", "select": "Where",
}  # fmt: skip


class OnnxFormula(ScalarBuilder):
    """Builds formulas as ONNX nodes. dtype: of all values, and of Python numbers."""

    def __init__(self, builder: Builder, dtype: DType):
        self.builder, self.dtype = builder, dtype

    def emit(self, operation: str, *values: Any) -> str:
        if operation in COMPOSED:
            return COMPOSED[operation](self, *values)
        return self.builder.op(SAME[operation], *[self.builder.value(x, self.dtype) for x in values])


COMPOSED: dict[str, Callable] = {  # operation without an ONNX op -> its value
    "ne": lambda b, x, y: b.not_(b.eq(x, y)),
    "trunc": lambda b, x: b.select(b.lt(x, 0), b.ceil(x), b.floor(x)),
    "exp2": lambda b, x: b.pow(2, x),
    "expm1": expm1,
    "log1p": log1p,
    "log2": lambda b, x: b.mul(b.log(x), 1 / math.log(2)),
    "log10": lambda b, x: b.mul(b.log(x), 1 / math.log(10)),
    "erfc": lambda b, x: b.sub(1, b.erf(x)),
}


def convert(b: Builder, node: Any, *inputs: Any) -> str:
    """The converter of an op with a formula."""
    dtype = node.out_specs[0].dtype
    if not dtype.floating:
        b.refuse(f"has no ONNX form for {dtype.name}", "x.float() first")
    return node.op.scalar(OnnxFormula(b, dtype), *inputs, **node.attrs)


def has_onnx_formula(op: Any) -> bool:
    operations = operations_of(op)
    return bool(operations) and op.elementwise != "bool" and set(operations) <= {*SAME, *COMPOSED}


def register_formulas() -> None:
    """Make `convert` the converter of each op that has an ONNX formula and no converter of its own."""
    for name, op in OPS.items():
        if has_onnx_formula(op):
            CONVERTERS.setdefault(name, convert)
