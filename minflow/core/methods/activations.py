"""Activations as methods: `x.mish()`. Read next: `../functions/activation.py`."""

from __future__ import annotations

from ..functions import activation as a
from ..messages.suggestions import hint_methods


@hint_methods
class Activations:
    """Activations without parameters, and prelu."""

    def gelu(self, approximate="none"):
        return a.gelu(self, approximate)

    def quick_gelu(self):
        return a.quick_gelu(self)

    def silu(self):
        return a.silu(self)

    def mish(self):
        return a.mish(self)

    def softplus(self, beta=1.0, threshold=20.0):
        return a.softplus(self, beta, threshold)

    def softsign(self):
        return a.softsign(self)

    def selu(self):
        return a.selu(self)

    def celu(self, alpha=1.0):
        return a.celu(self, alpha)

    def square_relu(self):
        return a.square_relu(self)

    def prelu(self, weight):
        return a.prelu(self, weight)

    def hardshrink(self, lambd=0.5):
        return a.hardshrink(self, lambd)
