"""Arithmetic, comparison and selection, with PyTorch's arguments. Functions whose only arguments are tensors are ops.

Read next: `reduction.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..base.dtypes import HALF_DTYPES
from ..base.errors import DTypeError, OutOfRangeError
from ..base.legacy_dispatch import overloaded
from ..ir import NUMBERS
from ..ops import compare as c, elementwise as e, reduce as r
from ..ops.shape import expand
from ..source_location import fail
from ..spec import DType, bool_, float32, float64, iinfo, promote, uint8
from .arguments import (
    as_operand,
    cast_fill_value,
    cast_number,
    common_shape,
    ensure_tensor,
    integer,
    is_tensor,
    number_or_symbol,
    to,
)

if TYPE_CHECKING:
    from ..op import Op
    from ..tensor import Tensor


def scaled(input: Tensor | float, other: Tensor | float, alpha: float) -> Any:
    """Return alpha * other in the promoted dtype of input and other, so that a float alpha does not widen it."""
    input, other = as_operand(input), as_operand(other)
    if alpha.__class__ is int and alpha == 1:
        return other
    alpha = number_or_symbol(alpha)
    if alpha.__class__ in NUMBERS and alpha == 1 and alpha is not True:
        return other
    dtype = promote(*[x.spec if is_tensor(x) else x.__class__ for x in (input, other)])
    if not is_tensor(other) and alpha.__class__ in NUMBERS:
        return other * alpha
    if dtype is bool_ and alpha.__class__ is int:
        return e.mul(other, bool(alpha))
    alpha = to(alpha, dtype) if is_tensor(alpha) and dtype.floating else alpha
    return e.mul(to(other, dtype) if is_tensor(other) and dtype.floating else other, alpha)


def add(input: Tensor, other: Tensor | float, *, alpha: float = 1) -> Tensor:
    """`input + alpha * other`, broadcast and promoted."""
    return e.add(as_operand(input), scaled(input, other, alpha))


def sub(input: Tensor | float, other: Tensor | float, *, alpha: float = 1) -> Tensor:
    """`input - alpha * other`, broadcast and promoted. Raises DTypeError for bools."""
    return e.sub(as_operand(input), scaled(input, other, alpha))


def rsub(input: Tensor, other: Tensor | float, *, alpha: float = 1) -> Tensor:
    """`other - alpha * input`."""
    return sub(other, input, alpha=alpha)


def div(input: Tensor, other: Tensor | float, *, rounding_mode: str | None = None) -> Tensor:
    """`input / other`; rounding_mode "floor" rounds down and keeps integers, "trunc" rounds towards 0."""
    input, other = as_operand(input), as_operand(other)
    if rounding_mode is None:
        return e.div(input, other)
    if rounding_mode == "floor":
        return e.floor_divide(input, other)
    if rounding_mode == "trunc":
        dtype = promote(*[x.spec if is_tensor(x) else x.__class__ for x in (input, other)])
        if dtype.floating:
            return e.trunc_divide(input, other)
        return e.floor_divide(e.sub(input, e.fmod(input, other)), other)
    fail(DTypeError, f"div: rounding_mode is {rounding_mode!r}", 'None, "floor" or "trunc"', input=input, other=other)


def pow(input: Tensor, exponent: Tensor | float) -> Tensor:
    """`input ** exponent`. Raises DTypeError for an integer tensor to a negative integer."""
    input, exponent = as_operand(input), as_operand(exponent)
    if exponent.__class__ is int and exponent < 0 and is_tensor(input) and not input.spec.dtype.floating:
        what = f"pow: integers to the power {exponent} are not integers"
        fail(DTypeError, what, f"input.float() ** {exponent}", input=input)
    return e.pow(input, exponent)


def round(input: Tensor, *, decimals: int = 0) -> Tensor:
    """Round to the nearest integer (halves to even), or to the given number of decimals."""
    if not integer(decimals, "decimals") or not input.spec.dtype.floating:
        return e.round(input)
    return e.div(e.round(e.mul(input, 10.0**decimals)), 10.0**decimals)


@overloaded
def clamp(input: Tensor, min: Tensor | float | None = None, max: Tensor | float | None = None) -> Tensor:
    """Limit input to [min, max]; these are numbers or tensors, and one of them may be None."""
    if min is None and max is None:
        fail(DTypeError, "clamp: min or max must be given", "clamp(min=0)", input=input)
    if min is None or max is None:
        passed = as_operand(max if min is None else min)
        spec = input.spec
        dtype = promote(spec, passed.spec if is_tensor(passed) else passed.__class__)
        if dtype is bool_:
            return e.maximum(input, passed) if max is None else e.minimum(input, passed)
        low, high = (float("-inf"), float("inf")) if dtype.rank > 1 else (iinfo(dtype).min, iinfo(dtype).max)
        min, max = (low, max) if min is None else (min, high)
    return e.clamp(input, as_operand(min), as_operand(max))


@overloaded
def where(condition: Tensor, input: Tensor | float | None = None, other: Any = None) -> Any:
    """input where condition is True, else other. With condition alone: its positions, as nonzero(as_tuple=True)."""
    if input is None and other is None:
        from .gather import nonzero

        return nonzero(condition, as_tuple=True)
    condition, input, other = as_operand(condition), as_operand(input), as_operand(other)
    if is_tensor(condition) and condition.spec.dtype is uint8:
        condition = to(condition, bool_)
    if is_tensor(condition) and condition.spec.dtype is not bool_:
        what = f"where: the condition must be bool, got {condition.spec.dtype.name}"
        fail(DTypeError, what, "a comparison such as x > 0, or condition.bool()", condition=condition)
    dtype = promote(*[x.spec if is_tensor(x) else x.__class__ for x in (input, other)])
    values = dict(condition=condition, input=input, other=other)
    return e.where(
        condition, *[to(x, dtype) if is_tensor(x) else cast_number("where", x, dtype, **values) for x in (input, other)]
    )


@overloaded
def masked_fill(input: Tensor, mask: Tensor, value: Tensor | float) -> Tensor:
    """Replace elements where mask is True by `value`, a number or a 0-d tensor. The dtype of input is kept."""
    return e.where(mask, cast_fill_value("masked_fill", value, input.spec.dtype, input=input, value=value), input)


def lerp(input: Tensor, end: Tensor | float, weight: Tensor | float) -> Tensor:
    """`input + weight * (end - input)`: from input (weight 0) to end (weight 1)."""
    if hasattr(input, "spec") and not input.spec.floating:
        fail(DTypeError, f"lerp: input must be floating, got {input.dtype.name}", "x.float() first", input=input)
    return e.lerp(input, end, as_operand(weight))


def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Tensor | float = 1) -> Tensor:
    """`input + value * tensor1 * tensor2`, in the promoted dtype of the three."""
    return sum_with(e.mul, input, tensor1, tensor2, value)


def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Tensor | float = 1) -> Tensor:
    """`input + value * tensor1 / tensor2`, in the promoted dtype of the three."""
    return sum_with(e.div, input, tensor1, tensor2, value)


def sum_with(op: Op, input: Tensor, tensor1: Tensor, tensor2: Tensor, value: Tensor | float) -> Tensor:
    """input + value * op(tensor1, tensor2). Computed in a wider dtype if needed: 100 * 7 would wrap in int8."""
    parts = [ensure_tensor(x) for x in (input, tensor1, tensor2)]
    dtype = promote(*[x.spec for x in parts])
    input, tensor1, tensor2 = [to(x, float32 if dtype in HALF_DTYPES else dtype) for x in parts]
    shape = common_shape(f"addc{op.name}", dict(input=input, tensor1=tensor1, tensor2=tensor2))
    if tensor1.spec.shape != shape:  # reduce the broadcast gradient last, after the product
        tensor1 = expand(tensor1, shape=shape)
    out = e.add(input, e.mul(op(tensor1, tensor2), value))
    return to(out, dtype) if dtype in HALF_DTYPES else out


absolute, negative, multiply, subtract, divide, true_divide = e.abs, e.neg, e.mul, sub, div, div
clip = overloaded(clamp, "clip")


def isclose(
    input: Tensor, other: Tensor | float, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Tensor:
    """|input - other| <= atol + rtol * |other|, elementwise; equal infinities are close."""
    for name, bound in (("rtol", rtol), ("atol", atol)):
        if not bound >= 0:
            fail(OutOfRangeError, f"isclose: {name} must be a number of at least 0, got {bound!r}", f"{name}=1e-5")
    input, other = as_operand(input), ensure_tensor(other)
    equal = c.eq(input, other)
    if equal_nan:
        equal = c.logical_or(equal, c.logical_and(c.isnan(input), c.isnan(other)))
    dtype = promote(*[x.spec if is_tensor(x) else x.__class__ for x in (input, other)])
    if not dtype.floating:  # differences in int8 would wrap
        input, other = to(ensure_tensor(input), float64), to(other, float64)
    distance = e.abs(e.sub(input, other))
    most = e.add(e.mul(e.abs(other), rtol), atol)
    return c.logical_or(equal, c.logical_and(c.le(distance, most), c.isfinite(distance)))


def allclose(
    input: Tensor, other: Tensor | float, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> bool:
    """True if all elements are close; a Python bool. See `isclose`."""
    return bool(r.all(isclose(input, other, rtol, atol, equal_nan), axis=None, keepdims=False))


@overloaded
def equal(input: Tensor, other: Tensor) -> bool:
    """True if the shapes are the same and all elements are equal; a Python bool."""
    if input.spec.shape != other.spec.shape:
        return False
    return bool(r.all(c.eq(input, other), axis=None, keepdims=False))


def result_type(*tensors: Tensor | complex) -> DType:
    """The dtype to which these tensors and numbers are promoted."""
    return promote(*[x.spec if is_tensor(x) else x.__class__ for x in tensors])
