"""Elementary functions of a few lines over other ops, with PyTorch's arguments.

Read next: `special.py`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..base.errors import DTypeError
from ..ops import binary, compare as c, elementwise as e
from ..ops.shape import detach as outside_tape, filled
from ..source_location import fail
from ..spec import bool_, default_dtype, finfo, float64, promote
from . import return_types
from .arguments import as_operand, ensure_tensor, in_float32, is_tensor, to
from .arithmetic import clamp

if TYPE_CHECKING:
    from ..tensor import Tensor
    from .memory_format import Layout


def promoted(*inputs: Any) -> list:
    """Return tensors and numbers as tensors of their promoted dtype."""
    inputs = tuple([as_operand(x) for x in inputs])
    dtype = promote(*[x.spec if is_tensor(x) else x.__class__ for x in inputs])
    return [to(ensure_tensor(x), dtype) for x in inputs]


def to_floating(input: Tensor) -> Tensor:
    """Return input, converted to the default float dtype if it is bool or integer."""
    input = ensure_tensor(input)
    return input if input.spec.floating else to(input, default_dtype())


def check_floating(name: str, input: Tensor) -> None:
    if not input.spec.floating:
        fail(DTypeError, f"{name}: input must be floating, got {input.dtype.name}", "x.float() first", input=input)


def clamp_min(input: Tensor, min: Tensor | float) -> Tensor:
    """Elementwise max(input, min)."""
    return clamp(input, min, None)


def clamp_max(input: Tensor, max: Tensor | float) -> Tensor:
    """Elementwise min(input, max)."""
    return clamp(input, None, max)


def frac(input: Tensor) -> Tensor:
    """The fractional part: `input - trunc(input)`, with the sign of input."""
    check_floating("frac", input)
    return e.sub(input, e.trunc(input))


def rad2deg(input: Tensor) -> Tensor:
    """Convert radians to degrees: `input * 180 / pi`."""
    return e.mul(to_floating(input), 180 / math.pi)


def deg2rad(input: Tensor) -> Tensor:
    """Convert degrees to radians: `input * pi / 180`."""
    return e.mul(to_floating(input), math.pi / 180)


def fmax(input: Tensor, other: Tensor | float) -> Tensor:
    """Elementwise maximum that ignores NaN if the other element is a number. Ties give the gradient to input."""
    input, other = promoted(input, other)
    return e.where(c.logical_or(c.ge(input, other), c.isnan(other)), input, other)


def fmin(input: Tensor, other: Tensor | float) -> Tensor:
    """Elementwise minimum that ignores NaN if the other element is a number. Ties give the gradient to input."""
    input, other = promoted(input, other)
    return e.where(c.logical_or(c.le(input, other), c.isnan(other)), input, other)


def float_power(input: Tensor, exponent: Tensor | float) -> Tensor:
    """`input ** exponent`, computed and returned in float64."""
    x, y = [to(x, float64) if is_tensor(x) else float(x) for x in (as_operand(input), as_operand(exponent))]
    return e.pow(x, y)


def heaviside(input: Tensor, values: Tensor) -> Tensor:
    """0 where input is negative (or NaN), `values` where it is 0, 1 where it is positive. No gradient."""
    number, input, values = not is_tensor(values), ensure_tensor(input), ensure_tensor(values)
    if input.spec.dtype is not values.spec.dtype:
        dtype = f"flow.{input.dtype.name}"
        what = f"heaviside: input is {input.dtype.name}, values are {values.dtype.name}"
        hint = f"flow.tensor(values, dtype={dtype})" if number else f"values.to({dtype})"
        fail(DTypeError, what, hint, input=input, values=values)
    return e.where(c.eq(input, 0), outside_tape(values), to(c.gt(input, 0), input.spec.dtype))


@in_float32
def ldexp(input: Tensor, other: Tensor | float) -> Tensor:
    """`input * 2**other`, in the dtype of input if that is floating."""
    input, other = to_floating(input), as_operand(other)
    exponent = to(other, input.spec.dtype) if is_tensor(other) and not other.spec.floating else other
    return e.mul(input, e.exp2(ensure_tensor(exponent)) if is_tensor(exponent) else 2.0**exponent)


def frexp(input: Tensor) -> return_types.frexp:
    """(mantissa, exponent): input = mantissa * 2**exponent with 1/2 <= |mantissa| < 1; exponents are int32."""
    return return_types.frexp(*binary.frexp(input))


@in_float32
def sinc(input: Tensor) -> Tensor:
    """sin(pi * x) / (pi * x); 1 at 0."""
    input = to_floating(input)
    zero = c.eq(input, 0)
    angle = e.mul(e.where(zero, 1.0, input), math.pi)
    return e.where(zero, 1.0, e.div(e.sin(angle), angle))


@in_float32
def logit(input: Tensor, eps: float | None = None) -> Tensor:
    """log(x / (1 - x)), the inverse of sigmoid; NaN outside [0, 1]. eps: clamp x to [eps, 1 - eps] first."""
    input = to_floating(input)
    if eps is not None:
        input = e.clamp(input, float(eps), 1 - float(eps))
    else:
        inside = c.logical_and(c.ge(input, 0), c.le(input, 1))
        input = e.mul(input, e.where(inside, 1.0, math.nan))  # so that the gradient is NaN too
    return e.sub(e.log(input), e.log(e.sub(1, input)))


def nan_to_num(
    input: Tensor, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    """Replace NaN (by 0 unless given), inf and -inf (by the largest and smallest number of the dtype). The gradient is
    0 there.
    """
    nan, posinf, neginf = [None if x is None else float(x) for x in (nan, posinf, neginf)]
    if not input.spec.floating:
        return e.add(input, 0) if input.spec.dtype is not bool_ else c.logical_or(input, False)
    limits = finfo(input.dtype)
    out = e.where(c.isnan(input), nan or 0.0, input)
    out = e.where(c.eq(input, math.inf), limits.max if posinf is None else posinf, out)
    return e.where(c.eq(input, -math.inf), limits.min if neginf is None else neginf, out)


def positive(input: Tensor) -> Tensor:
    """Return input. Raises DTypeError for bools."""
    if input.spec.dtype is bool_:
        fail(DTypeError, "positive: not defined for bool", "x.int() first", input=input)
    return input


# ---- predicates ---------------------------------------------------------------------------------------------------


def isposinf(input: Tensor) -> Tensor:
    """True where x is positive infinity."""
    return c.eq(input, math.inf) if input.spec.floating else always_false(input)


def isneginf(input: Tensor) -> Tensor:
    """True where x is negative infinity."""
    return c.eq(input, -math.inf) if input.spec.floating else always_false(input)


def always_false(input: Tensor) -> Tensor:
    return filled(input.spec.replace(dtype=bool_), False)


def is_nonzero(input: Tensor) -> bool:
    """True if the one element of input is not 0; a Python bool."""
    return bool(input.item() != 0) if input.spec.size == 1 else bool(input)


def is_floating_point(input: Tensor) -> bool:
    """True if input has a floating dtype; a Python bool."""
    return input.is_floating_point()


def is_signed(input: Tensor) -> bool:
    """True if the dtype of input is signed; a Python bool."""
    return input.is_signed()


def is_same_size(input: Tensor, other: Tensor) -> bool:
    """True if both have the same shape; a Python bool."""
    return input.spec.shape == other.spec.shape


# ---- function forms of methods --------------------------------------------------------------------------------


def clone(input: Tensor, *, memory_format: Layout | None = None) -> Tensor:
    """A copy of input through which gradients flow. memory_format: accepted; the copy is contiguous."""
    return input.clone()


def detach(input: Tensor) -> Tensor:
    """A tensor that shares the storage, outside the tape."""
    return input.detach()


def ceil_(input: Tensor) -> Tensor:
    """In-place `ceil`."""
    return input.ceil_()


def floor_(input: Tensor) -> Tensor:
    """In-place `floor`."""
    return input.floor_()


def frac_(input: Tensor) -> Tensor:
    """In-place `frac`."""
    return input.frac_()


def lerp_(input: Tensor, end: Tensor | float, weight: Tensor | float) -> Tensor:
    """In-place `lerp`."""
    return input.lerp_(end, weight)


def round_(input: Tensor, *, decimals: int = 0) -> Tensor:
    """In-place `round`."""
    return input.round_(decimals=decimals)


def sin_(input: Tensor) -> Tensor:
    """In-place `sin`."""
    return input.sin_()
