"""Activations that are functions and methods as well as layers: `flow.mish(x)`, `x.selu()`.

Most are composite ops. Read next: `../ops/activation_composites.py`, `../ops/activation.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..base.errors import DTypeError, OutOfRangeError, ShapeError
from ..functionalize import call_inplace
from ..messages.wrong_arguments import not_a_tensor
from ..ops import activation_composites as a, elementwise as e
from ..ops.compare import ge, gt, le, logical_and
from ..source_location import fail
from .arguments import cast_number, float_or_symbol, is_symbolic, is_tensor, number_or_symbol, with_numbers

if TYPE_CHECKING:
    from ..tensor import Tensor


def check_input(name: str, input: Tensor, floating: bool = False) -> None:
    """Return input as a tensor; refuse anything else and, if `floating`, dtypes that are not floating."""
    if not hasattr(input, "spec"):
        raise not_a_tensor(name, "input", input)
    if floating and not input.spec.floating:
        fail(DTypeError, f"{name}: input must be floating, got {input.dtype.name}", "x.float() first", input=input)


# ---- smooth -------------------------------------------------------------------------------------------------------


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """x * Phi(x) = x / 2 * (1 + erf(x / sqrt(2))); with approximate="tanh"
    x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))). Hendrycks & Gimpel 2016, section 2.
    """
    check_input("gelu", input, floating=True)
    if approximate not in ("none", "tanh"):
        fail(ShapeError, f"gelu: approximate is {approximate!r}", 'approximate="none" or approximate="tanh"')
    return a.gelu(input, approximate=approximate)


def quick_gelu(input: Tensor) -> Tensor:
    """x * sigmoid(1.702 * x), an approximation of gelu. Hendrycks & Gimpel 2016, section 2."""
    check_input("quick_gelu", input, floating=True)
    return a.quick_gelu(input)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x * sigmoid(x)."""
    check_input("silu", input, floating=True)
    return write_if_inplace(a.silu, input, inplace)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """x * tanh(log(1 + exp(x))). Misra 2019, eq. 1."""
    check_input("mish", input, floating=True)
    return write_if_inplace(a.mish, input, inplace)


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + exp(beta * x)) / beta; where beta * x > threshold, x itself."""
    check_input("softplus", input, floating=True)
    beta = number_or_symbol(beta)
    plain = not is_tensor(beta) and beta == 1
    scaled = input if plain else input * beta
    smooth = e.softplus(scaled)
    return e.where(gt(scaled, threshold), input, smooth if plain else smooth / beta)


def softsign(input: Tensor) -> Tensor:
    """x / (1 + |x|)."""
    check_input("softsign", input)
    return a.softsign(input)


# ---- piecewise ---------------------------------------------------------------------------------------------------


def square_relu(input: Tensor) -> Tensor:
    """max(x, 0)**2. So et al. 2021, section 3."""
    check_input("square_relu", input, floating=True)
    return e.square(e.relu(input))


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x if x > 0, else alpha * (exp(x) - 1). Clevert et al. 2016, eq. 15."""
    check_input("elu", input, floating=True)
    return write_if_inplace(elu_of, input, inplace, alpha=float_or_symbol(alpha), scale=1.0, input_scale=1.0)


def elu_of(x: Tensor, **numbers: Any) -> Tensor:
    return with_numbers(a.elu, x, **numbers)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """1.0507 * elu(x, alpha=1.6733): keeps mean 0 and variance 1. Klambauer et al. 2017, eq. 2."""
    check_input("selu", input, floating=True)
    return write_if_inplace(a.elu, input, inplace, alpha=a.SELU_ALPHA, scale=a.SELU_SCALE, input_scale=1.0)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x if x > 0, else alpha * (exp(x / alpha) - 1): an elu with a continuous derivative. Barron 2017, eq. 2."""
    check_input("celu", input, floating=True)
    if not is_symbolic(alpha) and not alpha:
        what = "celu: alpha must not be 0, because x is divided by it"
        fail(OutOfRangeError, what, "alpha=1.0; or relu, its limit", input=input)
    alpha = float_or_symbol(alpha)
    return write_if_inplace(elu_of, input, inplace, alpha=alpha, scale=1.0, input_scale=1.0 / alpha)


def write_if_inplace(function: Callable, x: Tensor, inplace: bool, *args: Any, **attrs: Any) -> Tensor:
    return call_inplace(function, x, *args, **attrs) if inplace else function(x, *args, **attrs)


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """x if x > 0, else weight * x. weight: one element, or one per channel (axis 1). He et al. 2015, eq. 1."""
    check_input("prelu", input, floating=True)
    if not is_tensor(weight):
        raise not_a_tensor("prelu", "weight", weight)
    x, w = input.spec, weight.spec
    channels = x.shape[1] if x.ndim > 1 else 1
    if w.ndim > 1 or w.size not in (1, channels):
        what = (
            f"prelu: weight has shape {list(w.shape)}, and the input {channels} channel{'s' * (channels != 1)} (axis 1)"
        )
        fail(ShapeError, what, f"nn.PReLU({channels}), or one weight", input=input, weight=weight)
    if w.dtype is not x.dtype:
        what = f"prelu: the input is {x.dtype.name}, the weight is {w.dtype.name}"
        fail(DTypeError, what, f"weight.to(flow.{x.dtype.name})", input=input, weight=weight)
    return a.prelu(input, weight)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """x if x > threshold, else value."""
    check_input("threshold", input)
    value = cast_number("threshold", value, input.spec.dtype, input=input)
    return write_if_inplace(threshold_of, input, inplace, threshold, value)


def threshold_of(x: Tensor, threshold: float, value: float) -> Tensor:
    return e.where(le(x, threshold), value, x)


def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x if |x| > lambd, else 0."""
    check_input("hardshrink", input, floating=True)
    return e.where(logical_and(ge(input, -lambd), le(input, lambd)), 0.0, input)
