"""Python's operators on tensors: `x + y`, `x @ w`, `x < 0`, `x += 1`. Read next: `forwarded.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from .. import functions as F
from ..base.errors import MinflowError
from ..dispatch import apply
from ..functionalize import apply_inplace, write_result
from ..host import HostArray, HostScalar
from ..ir import NUMBERS
from ..messages.wrong_arguments import safe_hasattr
from ..ops import compare as c, elementwise as e
from ..overrides import PUBLIC, run_overridden

if TYPE_CHECKING:
    from ..tensor import Tensor

    Operand: TypeAlias = Tensor | complex | HostArray | HostScalar


class Operators:
    """Python's operators."""

    def __add__(self: Tensor, other: Operand) -> Tensor:
        return apply(e.add, self, other)

    def __radd__(self: Tensor, other: Operand) -> Tensor:
        return apply(e.add, other, self)

    def __mul__(self: Tensor, other: Operand) -> Tensor:
        return apply(e.mul, self, other)

    def __rmul__(self: Tensor, other: Operand) -> Tensor:
        return apply(e.mul, other, self)

    def __sub__(self: Tensor, other: Operand) -> Tensor:
        return apply(e.sub, self, other)

    def __rsub__(self: Tensor, other: Operand) -> Tensor:
        return apply(e.sub, other, self)

    def __truediv__(self: Tensor, other: Operand) -> Tensor:
        return apply(e.div, self, other)

    def __rtruediv__(self: Tensor, other: Operand) -> Tensor:
        return apply(e.div, other, self)

    def __pow__(self: Tensor, other: Operand) -> Tensor:
        return apply(e.pow, self, other)

    def __rpow__(self: Tensor, other: Operand) -> Tensor:
        return apply(e.pow, other, self)

    def __floordiv__(self: Tensor, other: Operand) -> Tensor:
        return apply(e.floor_divide, self, other)

    def __rfloordiv__(self: Tensor, other: Operand) -> Tensor:
        return apply(e.floor_divide, other, self)

    def __mod__(self: Tensor, other: Operand) -> Tensor:
        return apply(e.remainder, self, other)

    def __rmod__(self: Tensor, other: Operand) -> Tensor:
        return apply(e.remainder, other, self)

    def __matmul__(self: Tensor, other: Tensor) -> Tensor:
        try:
            return F.matmul(self, other)
        except MinflowError:
            return run_overridden(PUBLIC["matmul"], (self, other), {})

    def __rmatmul__(self: Tensor, other: Tensor) -> Tensor:
        return F.matmul(other, self)

    def __neg__(self: Tensor) -> Tensor:
        return apply(e.neg, self)

    def __pos__(self: Tensor) -> Tensor:
        return self

    def __abs__(self: Tensor) -> Tensor:
        return apply(e.abs, self)

    def __invert__(self: Tensor) -> Tensor:
        return F.bitwise_not(self)

    def __and__(self: Tensor, other: Operand) -> Tensor:
        return F.bitwise_and(self, other)

    def __rand__(self: Tensor, other: Operand) -> Tensor:
        return F.bitwise_and(other, self)

    def __or__(self: Tensor, other: Operand) -> Tensor:
        return F.bitwise_or(self, other)

    def __ror__(self: Tensor, other: Operand) -> Tensor:
        return F.bitwise_or(other, self)

    def __xor__(self: Tensor, other: Operand) -> Tensor:
        return F.bitwise_xor(self, other)

    def __rxor__(self: Tensor, other: Operand) -> Tensor:
        return F.bitwise_xor(other, self)

    def __lshift__(self: Tensor, other: Operand) -> Tensor:
        return F.bitwise_left_shift(self, other)

    def __rlshift__(self: Tensor, other: Operand) -> Tensor:
        return F.bitwise_left_shift(other, self)

    def __rshift__(self: Tensor, other: Operand) -> Tensor:
        return F.bitwise_right_shift(self, other)

    def __rrshift__(self: Tensor, other: Operand) -> Tensor:
        return F.bitwise_right_shift(other, self)

    def __divmod__(self: Tensor, other: Operand) -> tuple[Tensor, Tensor]:
        return self // other, self % other

    def __rdivmod__(self: Tensor, other: Any) -> tuple[Tensor, Tensor]:
        return other // self, other % self

    def __lt__(self: Tensor, other: Operand) -> Tensor:
        return apply(c.lt, self, other)

    def __le__(self: Tensor, other: Operand) -> Tensor:
        return apply(c.le, self, other)

    def __gt__(self: Tensor, other: Operand) -> Tensor:
        return apply(c.gt, self, other)

    def __ge__(self: Tensor, other: Operand) -> Tensor:
        return apply(c.ge, self, other)

    def __eq__(self: Tensor, other: object) -> Tensor:  # type: ignore[override]
        return apply(c.eq, self, other) if comparable(other) else NotImplemented

    def __ne__(self: Tensor, other: object) -> Tensor:  # type: ignore[override]
        return apply(c.ne, self, other) if comparable(other) else NotImplemented

    def __iadd__(self: Tensor, other: Operand) -> Tensor:
        return apply_inplace(e.add, self, other)

    def __isub__(self: Tensor, other: Operand) -> Tensor:
        return apply_inplace(e.sub, self, other)

    def __imul__(self: Tensor, other: Operand) -> Tensor:
        return apply_inplace(e.mul, self, other)

    def __itruediv__(self: Tensor, other: Operand) -> Tensor:
        return apply_inplace(e.div, self, other)

    def __ipow__(self: Tensor, other: Operand) -> Tensor:
        return apply_inplace(e.pow, self, other)

    def __ifloordiv__(self: Tensor, other: Operand) -> Tensor:
        return apply_inplace(e.floor_divide, self, other)

    def __imod__(self: Tensor, other: Operand) -> Tensor:
        return apply_inplace(e.remainder, self, other)

    def __iand__(self: Tensor, other: Operand) -> Tensor:
        return write_result(self, F.bitwise_and(self, other))

    def __ior__(self: Tensor, other: Operand) -> Tensor:
        return write_result(self, F.bitwise_or(self, other))

    def __ixor__(self: Tensor, other: Operand) -> Tensor:
        return write_result(self, F.bitwise_xor(self, other))

    def __ilshift__(self: Tensor, other: Operand) -> Tensor:
        return write_result(self, F.bitwise_left_shift(self, other))

    def __irshift__(self: Tensor, other: Operand) -> Tensor:
        return write_result(self, F.bitwise_right_shift(self, other))


def comparable(x: Any) -> bool:
    """True if == compares elementwise. With None or a string the result is just False."""
    return type(x) in NUMBERS or issubclass(type(x), HostArray | HostScalar) or safe_hasattr(x, "spec")


# NumPy's operators on a tensor, by name: `array + tensor` calls `numpy.add(array, tensor)`
BY_UFUNC = {
    "add": e.add, "subtract": e.sub, "multiply": e.mul, "divide": e.div, "floor_divide": e.floor_divide,
    "power": e.pow, "float_power": e.pow, "remainder": e.remainder, "matmul": F.matmul, "maximum": e.maximum,
    "minimum": e.minimum, "equal": c.eq, "not_equal": c.ne, "less": c.lt, "less_equal": c.le, "greater": c.gt,
    "greater_equal": c.ge, "bitwise_and": F.bitwise_and, "bitwise_or": F.bitwise_or, "bitwise_xor": F.bitwise_xor,
    "left_shift": F.bitwise_left_shift, "right_shift": F.bitwise_right_shift,
}  # fmt: skip
