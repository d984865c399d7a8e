"""Activations: elementwise functions of one tensor, and the two softmaxes.

relu, relu6, sigmoid, tanh, softmax and log_softmax are primitives, defined in core; the others are composites.
Read next: `../../core/ops/elementwise.py`, `../../core/ops/softmax.py`.
"""

from __future__ import annotations

from ...core.dispatch import apply
from ...core.functionalize import apply_inplace, call_inplace
from ...core.functions import activation as activations
from ...core.functions.activation import (
    celu as celu,
    check_input,
    elu as elu,
    gelu as gelu,
    hardshrink as hardshrink,
    mish as mish,
    prelu as prelu,
    quick_gelu as quick_gelu,
    selu as selu,
    silu as silu,
    softplus as softplus,
    softsign as softsign,
    square_relu as square_relu,
    threshold as threshold,
)
from ...core.functions.arguments import maybe_to
from ...core.ops import activation as a, elementwise as e, softmax as s
from ...core.source_location import warn
from ...core.spec import DType
from ...core.tensor import Tensor
from .arguments import normalize_axis


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(x, 0)."""
    check_input("relu", input)
    return input.relu_() if inplace else apply(e.relu, input)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(x, 0), 6)."""
    check_input("relu6", input)
    return apply_inplace(a.relu6, input) if inplace else a.relu6(input)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x if x > 0, else negative_slope * x."""
    check_input("leaky_relu", input, floating=True)
    return call_inplace(a.leaky_relu, input, negative_slope) if inplace else apply(a.leaky_relu, input, negative_slope)


def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-x))."""
    check_input("sigmoid", input)
    return apply(e.sigmoid, input)


def logsigmoid(input: Tensor) -> Tensor:
    """log(sigmoid(x)) = -softplus(-x)."""
    check_input("logsigmoid", input, floating=True)
    return -e.softplus(-input)


def tanh(input: Tensor) -> Tensor:
    """(exp(x) - exp(-x)) / (exp(x) + exp(-x))."""
    check_input("tanh", input)
    return apply(e.tanh, input)


def softmax(input: Tensor, dim: int | None = None, dtype: DType | None = None) -> Tensor:
    """exp(x) / sum(exp(x)) along axis dim. dtype: the dtype of the computation, by default the input's."""
    check_input("softmax", input)
    input = input if dtype is None else maybe_to(input, dtype)
    return apply(s.softmax, input, dim=softmax_axis("softmax", input, dim))


def log_softmax(input: Tensor, dim: int | None = None, dtype: DType | None = None) -> Tensor:
    """log(softmax(x)) along axis dim, computed without overflow."""
    check_input("log_softmax", input)
    input = input if dtype is None else maybe_to(input, dtype)
    return apply(s.log_softmax, input, dim=softmax_axis("log_softmax", input, dim))


def softmax_axis(name: str, input: Tensor, dim: int | None) -> int:
    """Return the axis to use: dim, or PyTorch's former default, with a warning, if it is None."""
    ndim = input.spec.ndim
    if dim is None:
        dim = 0 if ndim in (0, 1, 3) else 1
        if ndim > 1:
            warn(
                f"{name}: no dim is given, so axis {dim} was taken",
                f"{name}(x, dim={dim}), or dim=-1 for the last axis",
                input=input,
            )
    return normalize_axis(name, dim, ndim)


# ---- in place ----------------------------------------------------------------------------------------------------


def relu_(input: Tensor) -> Tensor:
    """relu, in place."""
    return relu(input, inplace=True)


def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """leaky_relu, in place."""
    return leaky_relu(input, negative_slope, inplace=True)


def elu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """elu, in place."""
    return elu(input, alpha, inplace=True)


def selu_(input: Tensor) -> Tensor:
    """selu, in place."""
    return selu(input, inplace=True)


def celu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """celu, in place."""
    return celu(input, alpha, inplace=True)


def threshold_(input: Tensor, threshold: float, value: float) -> Tensor:
    """threshold, in place."""
    return activations.threshold(input, threshold, value, inplace=True)
