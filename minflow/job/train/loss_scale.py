"""Loss scales of job functions: backward starts from the scale, and the gradients of variables are divided by it.

In half precision this keeps small gradients from becoming 0. In float32, a scale that is a power of 2 changes only
exponents, so results are equal bit for bit. Read next: `optimizer_base.py`, which skips a step whose gradients are not
finite if the scale is dynamic.
"""

from __future__ import annotations

from typing import Any

from ...core.messages.suggestions import missing_names
from ...core.ops.compare import ge, isfinite, logical_and, logical_not
from ...core.ops.elementwise import maximum, minimum, where
from ...core.ops.reduce import all
from ...core.ops.shape import reshape
from ...core.spec import DType, finfo, float32, int64
from ...core.tensor import Tensor
from ..scope import current_device
from .arguments import check_integer, check_number

LARGEST = finfo(float32).max


class LossScalePolicy:
    """Base class. `scale(build)` is the factor of this step; `advance` decides whether the step is taken."""

    def scale(self, build: Any) -> float | Tensor:
        """The factor of the loss in this step."""
        raise NotImplementedError

    def advance(self, build: Any, gradients: list[Tensor]) -> Tensor | None:
        """Write the scale of the next step. Returns a 0-d bool, true if this step is taken; None means always."""
        return None


class static_loss_scale(LossScalePolicy):
    """A constant factor. loss_scale_factor: more than 0; a power of 2 leaves results in float32 unchanged."""

    def __init__(self, loss_scale_factor: float):
        self.loss_scale_factor = check_number(
            "static_loss_scale", "loss_scale_factor", loss_scale_factor, 0, open_low=True
        )

    def scale(self, build: Any) -> float:
        return self.loss_scale_factor

    def __repr__(self) -> str:
        return f"loss_scale.static_loss_scale({self.loss_scale_factor:g})"


class State:
    """Stand-in for a variable as the owner of a dynamic scale's slots, which belong to the job."""

    shape = (1,)
    ranks = sbp = None

    def __init__(self, job: str, dtype: DType):
        self.name, self.dtype = f"System-Train-DynamicLossScale-{job}", dtype
        self.device = current_device()


class dynamic_loss_scale(LossScalePolicy):
    """A factor that adapts to be as large as possible while gradients stay finite.

    A step whose gradients contain NaN or infinity is skipped: weights and optimizer states are unchanged, and the
    factor is divided by `multiplier`, down to 1. After `increment_period` good steps in a row it is multiplied by
    `multiplier`, up to the largest float32. Factor and counter are stored, and saved in checkpoints, as
    `System-Train-DynamicLossScale-<job>-LossScale` (float32) and `...-GoodStepCounter` (int64).
    """

    def __init__(self, initial_loss_scale: float = 2**30, increment_period: int = 2000, multiplier: float = 2.0):
        owner = "dynamic_loss_scale"
        self.initial_loss_scale = check_number(owner, "initial_loss_scale", initial_loss_scale, 1, LARGEST)
        self.increment_period = check_integer(owner, "increment_period", increment_period, 1)
        self.multiplier = check_number(owner, "multiplier", multiplier, 1, open_low=True)

    def state(self, build: Any) -> tuple[Tensor, Tensor]:
        """The factor and the counter of good steps, each of shape (1,)."""
        name = build.job.name
        return (
            build.slot(State(name, float32), "LossScale", self.initial_loss_scale, (1,)),
            build.slot(State(name, int64), "GoodStepCounter", 0, (1,)),
        )

    def scale(self, build: Any) -> Tensor:
        return reshape(self.state(build)[0], shape=())

    def advance(self, build: Any, gradients: list[Tensor]) -> Tensor:
        scale, count = self.state(build)
        good = all(isfinite(gradients[0]), axis=None, keepdims=False)
        for g in gradients[1:]:
            good = logical_and(good, all(isfinite(g), axis=None, keepdims=False))
        full = ge(count + 1, self.increment_period)
        # minimum before the product, so that it cannot overflow
        grown = minimum(scale, LARGEST / self.multiplier) * self.multiplier
        build.write(scale, where(good, where(full, grown, scale), maximum(scale / self.multiplier, 1.0)))
        build.write(count, where(logical_and(good, logical_not(full)), count + 1, 0))
        return good

    def __repr__(self) -> str:
        inside = f"{self.initial_loss_scale:g}, {self.increment_period}, {self.multiplier:g}"
        return f"loss_scale.dynamic_loss_scale({inside})"


__all__ = ["LossScalePolicy", "dynamic_loss_scale", "static_loss_scale"]
__getattr__ = missing_names("flow.optimizer.loss_scale", globals())
