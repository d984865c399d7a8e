"""Layers: the elementwise activations, Softmax and LogSoftmax. Formulas: `../functional/activation.py`."""

from __future__ import annotations

from ...core.base.errors import ShapeError
from ...core.source_location import fail
from ...core.tensor import Tensor
from .. import functional as F
from ..module import Module


class InplaceActivation(Module):
    """Base of activations that can overwrite their input. Its repr shows `inplace` if it is True."""

    def __init__(self, inplace: bool = False):
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        return ", ".join(filter(None, (super().extra_repr(), "inplace=True" if self.inplace else "")))


class ReLU(InplaceActivation):
    """max(x, 0)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.relu(input, self.inplace)


class ReLU6(InplaceActivation):
    """min(max(x, 0), 6)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.relu6(input, self.inplace)


class LeakyReLU(InplaceActivation):
    """x if x > 0, else negative_slope * x."""

    _repr_attributes = ("negative_slope",)

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False):
        super().__init__(inplace)
        self.negative_slope = negative_slope

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, self.inplace)


class GELU(Module):
    """x * Phi(x), where Phi is the normal cdf; approximate="tanh" selects a close approximation."""

    def __init__(self, approximate: str = "none"):
        super().__init__()
        if approximate not in ("none", "tanh"):
            fail(ShapeError, f"GELU: approximate is {approximate!r}", 'approximate="none" or approximate="tanh"')
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class SiLU(InplaceActivation):
    """x * sigmoid(x)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.silu(input, self.inplace)


class Sigmoid(Module):
    """1 / (1 + exp(-x))."""

    def forward(self, input: Tensor) -> Tensor:
        return F.sigmoid(input)


class Tanh(Module):
    """(exp(x) - exp(-x)) / (exp(x) + exp(-x))."""

    def forward(self, input: Tensor) -> Tensor:
        return F.tanh(input)


class AlongAxis(Module):
    """Base of the functions along an axis `dim`."""

    _repr_attributes = ("dim",)

    def __init__(self, dim: int | None = None):
        super().__init__()
        self.dim = dim


class Softmax(AlongAxis):
    """exp(x) / sum(exp(x)) along axis `dim`."""

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim)


class LogSoftmax(AlongAxis):
    """log(softmax(x)) along axis `dim`, computed without overflow."""

    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim)
