"""Piecewise linear and gated activations, rrelu with its random slope, and gumbel_softmax.

At a kink the slope is PyTorch's: that of the flat side if the function saturates. Read next: `activation.py`.
"""

from __future__ import annotations

import math

from ...core.base.errors import OutOfRangeError, ShapeError
from ...core.functions import argmax, clamp, ge, gt, le, logical_and, lt, one_hot
from ...core.functions.activation import check_input, write_if_inplace
from ...core.functions.arguments import cast_number, in_float32, is_symbolic, is_tensor, maybe_to, number_or_symbol
from ...core.functions.random import exponential_like, uniform_like
from ...core.ops import activation_composites as a, elementwise as e, softmax as s
from ...core.source_location import fail, warn
from ...core.spec import DType
from ...core.tensor import Tensor
from .activation import softmax_axis
from .arguments import composite, normalize_axis


def hardtanh(
    input: Tensor,
    min_val: float = -1.0,
    max_val: float = 1.0,
    inplace: bool = False,
) -> Tensor:
    """min(max(x, min_val), max_val); slope 0 at the ends. Raises OutOfRangeError if min_val is above max_val."""
    check_input("hardtanh", input)
    if is_symbolic(min_val) or is_symbolic(max_val):
        ends = [x.detach() if is_symbolic(x) else x for x in (min_val, max_val)]
        return write_if_inplace(clamp, input, inplace, *ends)
    if not min_val <= max_val:
        what = f"hardtanh: min_val {min_val} is above max_val {max_val}"
        fail(OutOfRangeError, what, "hardtanh(x, -1.0, 1.0)", input=input)
    ends = [cast_number("hardtanh", x, input.spec.dtype, input=input) for x in (min_val, max_val)]
    return write_if_inplace(hardtanh_impl, input, inplace, *ends)


def hardtanh_impl(x: Tensor, low: float, high: float) -> Tensor:
    return a.piecewise(x, low, high, x, low, high)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(x / 6 + 1 / 2, 0), 1); slope 0 at the ends."""
    check_input("hardsigmoid", input, floating=True)
    return write_if_inplace(a.hardsigmoid, input, inplace)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x * hardsigmoid(x). Howard et al. 2019, section 5.2."""
    check_input("hardswish", input, floating=True)
    return write_if_inplace(a.hardswish, input, inplace)


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x - lambd if x > lambd, x + lambd if x < -lambd, else 0. Raises OutOfRangeError for a negative lambd."""
    check_input("softshrink", input, floating=True)
    lambd = number_or_symbol(lambd)
    if not is_tensor(lambd) and not lambd >= 0:
        fail(OutOfRangeError, f"softshrink: lambd must be at least 0, got {lambd!r}", "lambd=0.5", input=input)
    middle = e.where(logical_and(ge(input, -lambd), le(input, lambd)), 0.0, input)
    return e.where(gt(input, lambd), input - lambd, e.where(lt(input, -lambd), input + lambd, middle))


def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x)."""
    check_input("tanhshrink", input)
    return input - e.tanh(input)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """a * sigmoid(b), where a and b are the two halves of the input along dim. Dauphin et al. 2017, eq. 1."""
    check_input("glu", input, floating=True)
    if not input.spec.ndim:
        fail(ShapeError, "glu: the input has no axes, so it has no halves", "x of (..., 2 * D)", input=input)
    axis = normalize_axis("glu", dim, input.spec.ndim)
    if input.spec.shape[axis] % 2:
        what = f"glu: axis {axis} has size {input.spec.shape[axis]}, which has no halves"
        fail(ShapeError, what, "a layer before it with twice as many outputs", input=input)
    return a.glu(input, axis=axis)


def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """x if x > 0, else a * x, where a is drawn for each element from [lower, upper) in training, else their mean.

    Xu et al. 2015, section 2.4.
    """
    check_input("rrelu", input, floating=True)
    if not -math.inf < lower <= upper < math.inf:
        what = f"rrelu: lower and upper must be finite and in order, got {lower} and {upper}"
        fail(OutOfRangeError, what, "rrelu(x, 1 / 8, 1 / 3)", input=input)
    return write_if_inplace(rrelu_impl, input, inplace, float(lower), float(upper), training)


def rrelu_impl(x: Tensor, lower: float, upper: float, training: bool) -> Tensor:
    slope = uniform_like(x, lower, upper) if training else (lower + upper) / 2
    return a.rrelu(x, slope)


# ---- along an axis -----------------------------------------------------------------------------------------------


def softmin(input: Tensor, dim: int | None = None, dtype: DType | None = None) -> Tensor:
    """softmax(-x) along axis dim."""
    check_input("softmin", input)
    input = maybe_to(input, dtype)
    return s.softmax(-input, dim=softmax_axis("softmin", input, dim))


def gumbel_softmax(logits: Tensor, tau: float = 1.0, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """softmax((logits + noise) / tau) along axis dim, with noise from the Gumbel distribution: a differentiable sample.

    hard: return the one-hot sample, 1 at the largest, with the gradient of the soft one. eps: no longer used.
    Jang et al. 2017, eq. 2.
    """
    check_input("gumbel_softmax", logits, floating=True)
    tau = number_or_symbol(tau)
    if not is_tensor(tau) and not tau > 0:
        fail(OutOfRangeError, f"gumbel_softmax: tau must be above 0, got {tau!r}", "tau=1.0", logits=logits)
    if eps != 1e-10:
        warn("gumbel_softmax: eps is given, which is no longer used", "gumbel_softmax(logits, tau)", logits=logits)
    return gumbel_softmax_impl(logits, tau, hard, normalize_axis("gumbel_softmax", dim, logits.spec.ndim))


@composite("gumbel_softmax")
@in_float32
def gumbel_softmax_impl(logits: Tensor, tau: float, hard: bool, axis: int) -> Tensor:
    soft = s.softmax((logits - e.log(exponential_like(logits))) / tau, dim=axis)
    if not hard:
        return soft
    chosen = one_hot(argmax(soft, axis), soft.spec.shape[axis]).movedim(-1, axis) if soft.spec.ndim else soft * 0 + 1
    return chosen.to(soft.dtype).detach() + (soft - soft.detach())


# ---- in place ----------------------------------------------------------------------------------------------------


def hardtanh_(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """hardtanh, in place."""
    return hardtanh(input, min_val, max_val, inplace=True)


def rrelu_(input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False) -> Tensor:
    """rrelu, in place."""
    return rrelu(input, lower, upper, training, inplace=True)
