"""Formulas of elementwise ops as bytecode of fused loops.

An op whose formula consists of these operations can be fused, without code of its own; `SHORTER` replaces formulas for
which there is a shorter program. Truth values are 1 and 0. Read next: `elementwise_fusion.py`, which calls this.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....core.ir import Node
from ....core.scalar import ScalarBuilder, UnsupportedOperation, expm1, log1p
from .elementwise_loops import OPCODES


def div(p, x, y):
    """Division by a number: multiply by its reciprocal."""
    if isinstance(y, int | float) and 1e-30 < abs(y) < 1e30:
        return p("mul", x, 1 / y)
    return p("div", x, y)


def power(p, x, exponent):
    """x to the power 2 or 3; the pass fuses no others."""
    if exponent not in (2, 3):
        raise UnsupportedOperation("pow")
    square = p("mul", x, x)
    return square if exponent == 2 else p("mul", square, x)


def invert(p, condition):
    return p("sub", 1.0, condition)


LOWERINGS: dict[str, Callable] = {  # operation of a formula -> its register, from registers and numbers
    **{
        name: lambda p, *x, name=name: p(name, *x)
        for name in "add sub mul abs sqrt exp log tanh erf floor ceil trunc lt le eq".split()
    },
    "round": lambda p, x: p("rint", x),
    "max": lambda p, x, y: p("maximum", x, y),
    "min": lambda p, x, y: p("minimum", x, y),
    "neg": lambda p, x: p("mul", x, -1.0),
    "div": div,
    "pow": power,
    "log1p": lambda p, x: log1p(BytecodeBuilder(p), x),
    "expm1": lambda p, x: expm1(BytecodeBuilder(p), x),
    "gt": lambda p, x, y: p("lt", y, x),
    "ge": lambda p, x, y: p("le", y, x),
    "ne": lambda p, x, y: invert(p, p("eq", x, y)),
    "isnan": lambda p, x: invert(p, p("eq", x, x)),
    "and_": lambda p, x, y: p("mul", x, y),
    "or_": lambda p, x, y: p("maximum", x, y),
    "not_": invert,
    "select": lambda p, condition, x, y: p("where", condition, x, y),
}


class BytecodeBuilder(ScalarBuilder):
    """Builds formulas in the bytecode of a fused loop."""

    def __init__(self, bytecode: Any):
        self.bytecode = bytecode

    def emit(self, operation: str, *values: Any) -> Any:
        lower = LOWERINGS.get(operation)
        if lower is None:
            raise UnsupportedOperation(operation)
        return lower(self.bytecode, *values)


def logit_entropy(p, x, target):
    """log(1 + e): near 0, add what rounding 1 + e has lost, times the derivative of log."""
    small = p("exp", p("mul", p("abs", x), -1.0))
    sum_ = p("add", small, 1.0)
    tail = p("add", p("log", sum_), p("div", p("sub", small, p("sub", sum_, 1.0)), sum_))
    below, above = p("maximum", p("mul", x, -1.0), 0.0), p("maximum", x, 0.0)
    return p("add", p("add", p("mul", target, below), p("mul", p("sub", 1.0, target), above)), tail)


SHORTER: dict[str, Callable] = {  # op -> a program of fewer operations than its formula
    "leaky_relu": lambda p, x, slope: p("leak", x, x, slope),
    "leaky_relu_grad": lambda p, grad, x, slope: p("leak", grad, x, slope),
    "logit_entropy": logit_entropy,
}


def lower(node: Node, bytecode: Any, operands: list) -> Any:
    """The register of an elementwise op's result: by an instruction of its own, a shorter program, or its formula."""
    name = node.op.name
    if name in SHORTER:
        return SHORTER[name](bytecode, *operands, **node.attrs)
    if name in OPCODES and name not in LOWERINGS:
        return bytecode(name, *operands)
    return node.op.scalar(BytecodeBuilder(bytecode), *operands, **node.attrs)
