"""Activations: functions of one tensor, each number on its own, and the two softmaxes.

The primitives among them (relu, relu6, sigmoid, tanh, softmax, log_softmax) are ops of core; the others are composites.
Read next: `../../core/ops/elementwise.py`, `../../core/ops/softmax.py`.
"""

from __future__ import annotations

import math

from ...core.base.errors import DTypeError, ShapeError
from ...core.functions.arguments import in_float32, maybe_to
from ...core.ops import activation as a
from ...core.ops import elementwise as e
from ...core.ops import softmax as s
from ...core.ops.compare import gt
from ...core.rebind import in_place, overwrite
from ...core.spec import DType
from ...core.tensor import Tensor
from ...core.where import fail, warn
from .arguments import axis_of, check_tensor, composite


def ready(name: str, input: Tensor, floating: bool = False) -> None:
    if not isinstance(input, Tensor):
        check_tensor(name, input)
    if floating and not input.spec.floating:
        fail(DTypeError, f"{name}: input must be floating, it is {input.dtype.name}", "x.float() first", input=input)


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(x, 0)"""
    ready("relu", input)
    return input.relu_() if inplace else e.relu(input)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(x, 0), 6)"""
    ready("relu6", input)
    return in_place(a.relu6, input) if inplace else a.relu6(input)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x where x > 0, else negative_slope * x"""
    ready("leaky_relu", input, floating=True)
    return overwrite(a.leaky_relu, input, negative_slope) if inplace else a.leaky_relu(input, negative_slope)


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """x * Phi(x) = x / 2 * (1 + erf(x / sqrt(2))); with approximate="tanh"
    x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))). Hendrycks & Gimpel 2016, section 2."""
    ready("gelu", input, floating=True)
    if approximate not in ("none", "tanh"):
        fail(ShapeError, f"gelu: approximate is {approximate!r}", 'approximate="none" or approximate="tanh"')
    return gelu_tanh(input) if approximate == "tanh" else gelu_erf(input)


@composite("gelu")
@in_float32
def gelu_erf(x: Tensor) -> Tensor:
    return x * (e.erf(x * math.sqrt(0.5)) + 1.0) * 0.5


@composite("gelu")
@in_float32
def gelu_tanh(x: Tensor) -> Tensor:
    return x * (e.tanh((x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)) + 1.0) * 0.5


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x * sigmoid(x)"""
    ready("silu", input, floating=True)
    return overwrite(silu_of, input) if inplace else silu_of(input)


@composite("silu")
@in_float32
def silu_of(x: Tensor) -> Tensor:
    return x * e.sigmoid(x)


def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-x))"""
    ready("sigmoid", input)
    return e.sigmoid(input)


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + exp(beta * x)) / beta; x itself where beta * x > threshold."""
    ready("softplus", input, floating=True)
    scaled = input if beta == 1 else input * beta
    smooth = e.softplus(scaled)
    return e.where(gt(scaled, threshold), input, smooth if beta == 1 else smooth / beta)


def logsigmoid(input: Tensor) -> Tensor:
    """log(sigmoid(x)) = -softplus(-x)"""
    ready("logsigmoid", input, floating=True)
    return -e.softplus(-input)


def tanh(input: Tensor) -> Tensor:
    """(exp(x) - exp(-x)) / (exp(x) + exp(-x))"""
    ready("tanh", input)
    return e.tanh(input)


def softmax(input: Tensor, dim: int | None = None, dtype: DType | None = None) -> Tensor:
    """exp(x) / sum(exp(x)) along axis dim. dtype: that of the computation, if not the input's."""
    ready("softmax", input)
    input = maybe_to(input, dtype)
    return s.softmax(input, dim=chosen_axis("softmax", input, dim))


def log_softmax(input: Tensor, dim: int | None = None, dtype: DType | None = None) -> Tensor:
    """log(softmax(x)) along axis dim, computed without overflow."""
    ready("log_softmax", input)
    input = maybe_to(input, dtype)
    return s.log_softmax(input, dim=chosen_axis("log_softmax", input, dim))


def chosen_axis(name: str, input: Tensor, dim: int | None) -> int:
    """The axis meant; PyTorch's old choice, with a warning, where none is said."""
    ndim = input.spec.ndim
    if dim is None:
        dim = 0 if ndim in (0, 1, 3) else 1
        if ndim > 1:
            warn(
                f"{name}: no dim is given, so axis {dim} was taken",
                f"{name}(x, dim={dim}), or dim=-1 for the last axis",
                input=input,
            )
    return axis_of(name, dim, ndim)
