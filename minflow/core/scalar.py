"""The formula of an elementwise op: how one element of the result follows from one element of each input.

    relu = define("relu(x)", ..., scalar=lambda b, x: b.max(x, 0))

A formula is a function of a builder and of the op's inputs, with its attrs by name. It calls operations of the builder
(the same ones whatever the attrs are) on values of the builder or Python numbers; the builder decides what a value is.
So one formula becomes a step of a fused loop (`platforms/compiled/kernels/formula_lowering.py`), nodes of an ONNX model
(`onnx/converters/formulas.py`), or a count (below). Formulas hold for floats; the op's reference kernel decides about
other dtypes. Read next: `ops/elementwise.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .base.errors import InternalError

if TYPE_CHECKING:
    from .op import Op

# Operations with the meaning of IEEE 754 and C: max and min are NaN if either input is, round is to even.
ARITHMETIC = frozenset("add sub mul div neg abs max min floor ceil round trunc".split())
FUNCTIONS = frozenset(
    """sqrt exp exp2 expm1 log log1p log2 log10 sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc
    lgamma pow atan2 hypot fmod copysign nextafter cbrt""".split()
)
# Results are truth values: the first input of `select(condition, a, b)`, and the inputs of the last three.
CONDITIONS = frozenset("eq ne lt le gt ge isnan isinf isfinite signbit and_ or_ not_".split())
OPERATIONS = ARITHMETIC | FUNCTIONS | CONDITIONS | {"select"}
CHEAP = frozenset("add sub mul neg abs max min".split())  # faster to compute again than to read from memory


class UnsupportedOperation(Exception):
    """Raised by a builder that has no code for an operation of a formula."""


class ScalarBuilder:
    """Base class of builders: `b.exp(x)` is `b.emit("exp", x)`."""

    def emit(self, operation: str, *values: Any) -> Any:
        """The value of an operation. Raises UnsupportedOperation."""
        raise UnsupportedOperation(operation)

    def __getattr__(self, operation: str) -> Callable:
        if operation not in OPERATIONS:
            raise InternalError(
                f"formulas have no operation {operation!r}", hint=f"one of {', '.join(sorted(OPERATIONS))}"
            )
        return functools.partial(self.emit, operation)


def expm1(b: ScalarBuilder, x: Any) -> Any:
    """exp(x) - 1 for a builder without that operation: tanh(x / 2) * (exp(x) + 1), which is exact for small x."""
    return b.mul(b.tanh(b.mul(x, 0.5)), b.add(b.exp(x), 1))


def log1p(b: ScalarBuilder, x: Any) -> Any:
    """log(1 + x) for a builder without that operation: log(u) * x / (u - 1) with u = 1 + x, which cancels the rounding
    of u. Goldberg 1991, theorem 4.
    """
    u = b.add(1, x)
    step = b.sub(u, 1)
    factor = b.select(b.lt(b.abs(x), 1), b.div(x, step), 1)
    return b.select(b.eq(step, 0), x, b.mul(b.log(u), factor))


class OperationList(ScalarBuilder):
    """A builder that lists the operations of a formula, in order."""

    def __init__(self) -> None:
        self.operations: list[str] = []

    def emit(self, operation: str, *values: Any) -> None:
        if operation == "pow" and values[1] in (2, 3):
            self.operations += ["mul"] * (int(values[1]) - 1)
        else:
            self.operations.append(operation)


@functools.lru_cache(1024)
def operations_of(op: Op, literals: tuple = ()) -> tuple[str, ...]:
    """The operations of an op's formula, in order; none if it has no formula.

    literals: for a node, its inputs that are Python numbers, and None for the others: x ** 2 is one product.
    """
    listed = OperationList()
    if op.scalar is not None:
        op.scalar(listed, *(literals or op.inputs), **dict.fromkeys(op.attrs, 0))
    return tuple(listed.operations)


def flops_per_element(op: Op) -> int:
    """Floating-point operations of the formula. A function such as exp counts as one, conditions as none."""
    return sum(operation not in CONDITIONS for operation in operations_of(op))


def is_cheap(op: Op) -> bool:
    """True if the formula is one operation that is faster than a read from memory."""
    operations = operations_of(op)
    return len(operations) == 1 and operations[0] in CHEAP


def elementary(operation: str) -> Callable | None:
    """The formula of an op that is one operation of its inputs; None if formulas have no such operation."""
    return (lambda b, *values: b.emit(operation, *values)) if operation in OPERATIONS else None
