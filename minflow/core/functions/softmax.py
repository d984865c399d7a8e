"""softmax and log_softmax with PyTorch's arguments; other neural network functions are in `nn/functional`."""

from __future__ import annotations

from ..ops import softmax as s
from .arguments import axis_of, maybe_to, numpy_names


@numpy_names
def softmax(input, dim, dtype=None):
    """exp(x) / sum(exp(x)) along `dim`, computed without overflow."""
    return s.softmax(maybe_to(input, dtype), dim=axis_of(dim, input.spec.ndim, input))


@numpy_names
def log_softmax(input, dim, dtype=None):
    """log(softmax(x)) along `dim`, computed without overflow."""
    return s.log_softmax(maybe_to(input, dtype), dim=axis_of(dim, input.spec.ndim, input))
