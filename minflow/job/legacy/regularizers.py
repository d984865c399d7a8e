"""Regularizers of job functions: penalties that keep a variable small; their gradient is added to that of the variable.

The regularizer is stored with the variable. The penalty is not part of the loss that a job returns; only its gradient
is added, after the division by the loss's size and before clipping. Independent of jobs.
Read next: `../train/optimizer.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real

from ...core.base.errors import JobError
from ...core.messages.suggestions import missing_names
from ...core.ops.elementwise import sign
from ...core.source_location import fail
from ...core.tensor import Tensor


@dataclass(frozen=True)
class Regularizer:
    """l1 * sum(|w|) + l2 / 2 * sum(w**2)."""

    l1: float
    l2: float

    def penalty_gradient(self, weight: Tensor) -> Tensor:
        """l1 * sign(w) + l2 * w."""
        if not self.l1:
            return weight * self.l2
        slope = sign(weight) * self.l1
        return slope + weight * self.l2 if self.l2 else slope


def checked(name: str, l1: float, l2: float) -> Regularizer:
    for argument, value in (("l1", l1), ("l2", l2)):
        if not (isinstance(value, Real) and value >= 0):
            why = "; below 0 it would push weights away from 0" if isinstance(value, Real) else ""
            what = f"regularizers.{name}: {argument} must be a number of at least 0, got {value!r:.60}{why}"
            fail(JobError, what, f"regularizers.{name}(0.01)")
    return Regularizer(float(l1), float(l2))


def l1(l: float = 0.01) -> Regularizer:
    """Add l * sign(w) to the gradient."""
    return checked("l1", l, 0.0)


def l2(l: float = 0.01) -> Regularizer:
    """Add l * w to the gradient."""
    return checked("l2", 0.0, l)


def l1_l2(l1: float = 0.01, l2: float = 0.01) -> Regularizer:
    """Add l1 * sign(w) + l2 * w to the gradient."""
    return checked("l1_l2", l1, l2)


__all__ = ["l1", "l1_l2", "l2"]
__getattr__ = missing_names("flow.regularizers", globals())
