"""`flow.distributions.utils`: conversions between probabilities and logits, for distributions of your own."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any

from ..core import functions as F
from ..core.messages.suggestions import name_hints as _name_hints
from ..core.spec import finfo
from ..core.tensor import Tensor
from .distribution import broadcast_parameters

__all__ = ["broadcast_all", "clamp_probs", "lazy_property", "logits_to_probs", "probs_to_logits"]


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Return numbers and tensors as tensors of one shape and dtype."""
    return tuple(broadcast_parameters(*values))


def clamp_probs(probs: Tensor) -> Tensor:
    """Keep probabilities away from 0 and 1 by the rounding error of their dtype."""
    eps = finfo(probs.dtype).eps
    return probs.clamp(eps, 1 - eps)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """softmax over the last axis; is_binary: the sigmoid of each."""
    return F.sigmoid(logits) if is_binary else F.softmax(logits, -1)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """log(p); is_binary: log(p / (1 - p))."""
    probs = clamp_probs(probs)
    return probs.log() - (-probs).log1p() if is_binary else probs.log()


class lazy_property:
    """Property that is computed on first use and then kept as an attribute."""

    def __init__(self, wrapped: Callable[[Any], Any]):
        self.wrapped = wrapped
        update_wrapper(self, wrapped)  # type: ignore[arg-type]

    def __get__(self, instance: Any, kind: Any = None) -> Any:
        if instance is None:
            return self
        value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


__getattr__ = _name_hints("flow.distributions.utils", globals())
