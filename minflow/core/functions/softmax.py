"""softmax and log_softmax with PyTorch's arguments; other neural network functions are in `nn/functional`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..ops import softmax as s
from .arguments import accept_axis, maybe_to, normalize_axis

if TYPE_CHECKING:
    from ..base.dtypes import DTypeLike
    from ..tensor import Tensor


@accept_axis
def softmax(input: Tensor, dim: int | None, dtype: DTypeLike | None = None) -> Tensor:
    """exp(x) / sum(exp(x)) along `dim`, computed without overflow."""
    return s.softmax(maybe_to(input, dtype), dim=normalize_axis(dim, input.spec.ndim, input))


@accept_axis
def log_softmax(input: Tensor, dim: int | None, dtype: DTypeLike | None = None) -> Tensor:
    """log(softmax(x)) along `dim`, computed without overflow."""
    return s.log_softmax(maybe_to(input, dtype), dim=normalize_axis(dim, input.spec.ndim, input))
