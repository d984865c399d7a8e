"""softmax and log_softmax with PyTorch's arguments; other neural network functions are in `nn/functional`."""

from __future__ import annotations

from ..ops import softmax as s
from .arguments import accept_axis, maybe_to, normalize_axis


@accept_axis
def softmax(input, dim, dtype=None):
    """exp(x) / sum(exp(x)) along `dim`, computed without overflow."""
    return s.softmax(maybe_to(input, dtype), dim=normalize_axis(dim, input.spec.ndim, input))


@accept_axis
def log_softmax(input, dim, dtype=None):
    """log(softmax(x)) along `dim`, computed without overflow."""
    return s.log_softmax(maybe_to(input, dtype), dim=normalize_axis(dim, input.spec.ndim, input))
