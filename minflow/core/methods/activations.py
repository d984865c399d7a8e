"""Activations as methods: `x.mish()`. Read next: `../functions/activation.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..functions import activation as a
from ..messages.suggestions import hint_methods

if TYPE_CHECKING:
    from ..tensor import Tensor


@hint_methods
class Activations:
    """Activations without parameters, and prelu."""

    def gelu(self: Tensor, approximate: str = "none") -> Tensor:
        return a.gelu(self, approximate)

    def quick_gelu(self: Tensor) -> Tensor:
        return a.quick_gelu(self)

    def silu(self: Tensor) -> Tensor:
        return a.silu(self)

    def mish(self: Tensor) -> Tensor:
        return a.mish(self)

    def softplus(self: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
        return a.softplus(self, beta, threshold)

    def softsign(self: Tensor) -> Tensor:
        return a.softsign(self)

    def selu(self: Tensor) -> Tensor:
        return a.selu(self)

    def celu(self: Tensor, alpha: float = 1.0) -> Tensor:
        return a.celu(self, alpha)

    def square_relu(self: Tensor) -> Tensor:
        return a.square_relu(self)

    def prelu(self: Tensor, weight: Tensor) -> Tensor:
        return a.prelu(self, weight)

    def hardshrink(self: Tensor, lambd: float = 0.5) -> Tensor:
        return a.hardshrink(self, lambd)
