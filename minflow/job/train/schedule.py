"""Learning rates of job functions: each schedule is a function of t, the number of steps that the job has finished.

`t` is 0 in the first step. A warm-up replaces the schedule while t < its steps, and does not shift it: when it ends,
the schedule stands where it would have stood without. Nothing here has a state, so a resumed job needs nothing but t.
Knows nothing of weights and gradients. Read next: `optimizer.py`; for `nn.Graph` and eager `../optim/lr_scheduler.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ...core.base.errors import OptimError
from ...core.tensor import Tensor
from ...core.where import fail
from .arguments import number, said, whole


class Warmup:
    """The rate of the first steps: a subclass gives `multiplier_at(t)`, by which the base rate is multiplied."""

    steps: int

    def multiplier_at(self, t: int) -> float:
        raise NotImplementedError

    def __repr__(self) -> str:
        inside = ", ".join([f"{name}={value!r}" for name, value in vars(self).items()])
        return f"warmup.{type(self).__name__}({inside})"


class constant(Warmup):
    """base * multiplier while t < steps.  steps: at least 0; multiplier: more than 0 and less than 1."""

    def __init__(self, steps: int, multiplier: float):
        self.steps = whole("warmup.constant", "steps", steps, 0)
        self.multiplier = number("warmup.constant", "multiplier", multiplier, 0, 1, open_low=True, open_high=True)

    def multiplier_at(self, t: int) -> float:
        return self.multiplier


class linear(Warmup):
    """base * (s + (1 - s) * t / steps) while t < steps.  steps: at least 0; s = start_multiplier: from 0 to below 1."""

    def __init__(self, steps: int, start_multiplier: float):
        self.steps = whole("warmup.linear", "steps", steps, 0)
        self.start_multiplier = number("warmup.linear", "start_multiplier", start_multiplier, 0, 1, open_high=True)

    def multiplier_at(self, t: int) -> float:
        return self.start_multiplier + (1 - self.start_multiplier) * t / self.steps


class warmup:
    """The warm-ups, under the name that programs write: `flow.optimizer.warmup.linear(100, 0.1)`."""

    constant, linear = constant, linear


class LrScheduler:
    """Base class: a subclass gives `decayed(t)`, the rate of step t after the warm-up.

    base_lr: the rate that warm-ups multiply.  warmup: None, `warmup.constant(...)` or `warmup.linear(...)`.
    """

    def __init__(self, base_lr: float, warmup: Warmup | None = None):
        owner = type(self).__name__
        self.base_lr = number(owner, "base_lr", base_lr, 0)
        if warmup is not None and not isinstance(warmup, Warmup):
            fail(
                OptimError,
                f"{owner}: warmup is a {type(warmup).__name__}, where warmup.constant or warmup.linear is wanted",
                "warmup=flow.optimizer.warmup.linear(100, 0.1): steps, and the share of the rate to start from",
                warmup=warmup,
            )
        self.warmup = warmup

    def decayed(self, t: int) -> float:
        raise NotImplementedError

    def rate(self, t: int) -> float:
        """The learning rate of the step that starts when t steps are finished."""
        if self.warmup is not None and t < self.warmup.steps:
            return self.base_lr * self.warmup.multiplier_at(t)
        return self.decayed(t)

    def symbol(self, build: Any) -> Tensor:
        """The learning rate inside a job: a 0-d number that is read before every step."""
        return build.at_step(self.rate)

    def __repr__(self) -> str:
        return said(self)


# ---- by steps ----------------------------------------------------------------------------------------------------


def ascending(owner: str, boundaries: Sequence[int]) -> list[int]:
    """The boundaries as a list: whole numbers, each larger than the one before."""
    if not isinstance(boundaries, Sequence) or isinstance(boundaries, str):
        fail(OptimError, f"{owner}: boundaries is a {type(boundaries).__name__}, where a list of steps is wanted",
             "boundaries=[1000, 2000]", boundaries=boundaries)  # fmt: skip
    found = [whole(owner, f"boundaries[{i}]", b, 0) for i, b in enumerate(boundaries)]
    for i, (a, b) in enumerate(zip(found, found[1:])):
        if b <= a:
            fail(
                OptimError,
                f"{owner}: boundaries[{i + 1}] is {b} and does not come after boundaries[{i}], which is {a}",
                "boundaries in ascending order",
                boundaries=found,
            )
    return found


def piece(boundaries: list[int], t: int) -> int:
    """In which piece step t is; a boundary belongs to the piece before it."""
    return sum([t > b for b in boundaries])


def numbers(owner: str, name: str, values: Any) -> list[float]:
    if not isinstance(values, Sequence) or isinstance(values, str):
        fail(OptimError, f"{owner}: {name} is a {type(values).__name__}, where a list of numbers is wanted",
             f"{name}=[0.1, 0.01]", **{name: values})  # fmt: skip
    return [number(owner, f"{name}[{i}]", v, 0) for i, v in enumerate(values)]


class PiecewiseConstantScheduler(LrScheduler):
    """values[i] while t <= boundaries[i], the last one after all boundaries.

    boundaries: steps, ascending.  values: learning rates, one more than boundaries; `([], [0.1])` is 0.1 throughout.
    A warm-up multiplies values[0].
    """

    def __init__(self, boundaries: Sequence[int], values: Sequence[float], warmup: Warmup | None = None):
        owner = "PiecewiseConstantScheduler"
        self.boundaries, self.values = ascending(owner, boundaries), numbers(owner, "values", values)
        if len(self.boundaries) + 1 != len(self.values):
            fail(
                OptimError,
                f"{owner}: {len(self.boundaries)} boundaries make {len(self.boundaries) + 1} pieces, "
                f"and {len(self.values)} values are given",
                "one value more than boundaries; ([], [0.1]) is a constant rate of 0.1",
                boundaries=self.boundaries,
                values=self.values,
            )
        super().__init__(self.values[0], warmup)

    def decayed(self, t: int) -> float:
        return self.values[piece(self.boundaries, t)]


class PiecewiseScalingScheduler(LrScheduler):
    """base_lr while t <= boundaries[0], then base_lr * scale[i] from past boundaries[i] on.

    scale: one factor for each boundary, or one number for all. The factors do not multiply each other.
    """

    def __init__(
        self, base_lr: float, boundaries: Sequence[int], scale: float | Sequence[float], warmup: Warmup | None = None
    ):
        owner = "PiecewiseScalingScheduler"
        self.boundaries = ascending(owner, boundaries)
        if not isinstance(scale, Sequence):
            scale = [scale] * len(self.boundaries)
        self.scale = numbers(owner, "scale", scale)
        if len(self.boundaries) != len(self.scale):
            fail(
                OptimError,
                f"{owner}: {len(self.boundaries)} boundaries, and {len(self.scale)} factors in scale",
                "one factor for each boundary",
                boundaries=self.boundaries,
                scale=self.scale,
            )
        super().__init__(base_lr, warmup)

    def decayed(self, t: int) -> float:
        return self.base_lr * [1.0, *self.scale][piece(self.boundaries, t)]


# ---- smooth ------------------------------------------------------------------------------------------------------


class Decay(LrScheduler):
    """Base class of the schedules that count in units of `steps`."""

    def __init__(self, base_lr: float, steps: int, warmup: Warmup | None):
        super().__init__(base_lr, warmup)
        self.steps = whole(type(self).__name__, "steps", steps, 1)

    def until(self, t: int) -> float:
        """The share of `steps` that has passed, at most 1."""
        return min(t, self.steps) / self.steps


class CosineScheduler(Decay):
    """base_lr * ((1 - alpha) * (1 + cos(pi * u)) / 2 + alpha), u = min(t, steps) / steps: down to base_lr * alpha."""

    def __init__(self, base_lr: float, steps: int, alpha: float = 0.0, warmup: Warmup | None = None):
        super().__init__(base_lr, steps, warmup)
        self.alpha = number("CosineScheduler", "alpha", alpha)

    def decayed(self, t: int) -> float:
        cosine = 0.5 * (1 + math.cos(math.pi * self.until(t)))
        return self.base_lr * ((1 - self.alpha) * cosine + self.alpha)


class LinearCosineScheduler(Decay):
    """base_lr * ((alpha + 1 - u) * (1 + cos(2 pi * num_periods * u)) / 2 + beta), u = min(t, steps) / steps."""

    def __init__(
        self,
        base_lr: float,
        steps: int,
        num_periods: float = 0.5,
        alpha: float = 0.0,
        beta: float = 0.001,
        warmup: Warmup | None = None,
    ):
        super().__init__(base_lr, steps, warmup)
        self.num_periods, self.alpha, self.beta = [
            number("LinearCosineScheduler", name, value)
            for name, value in (("num_periods", num_periods), ("alpha", alpha), ("beta", beta))
        ]

    def decayed(self, t: int) -> float:
        cosine = 0.5 * (1 + math.cos(2 * math.pi * self.num_periods * self.until(t)))
        return self.base_lr * ((self.alpha + 1 - self.until(t)) * cosine + self.beta)


class PolynomialScheduler(Decay):
    """(base_lr - end) * (1 - u) ** power + end, u = min(t, steps) / steps; end = end_learning_rate.

    cycle: instead of staying at the end, start anew with every `steps` longer: u = t / (steps * ceil(t / steps)).
    """

    def __init__(
        self,
        base_lr: float,
        steps: int,
        end_learning_rate: float = 0.0001,
        power: float = 1.0,
        cycle: bool = False,
        warmup: Warmup | None = None,
    ):
        super().__init__(base_lr, steps, warmup)
        self.end_learning_rate = number("PolynomialScheduler", "end_learning_rate", end_learning_rate, 0)
        self.power, self.cycle = number("PolynomialScheduler", "power", power, 0), bool(cycle)

    def decayed(self, t: int) -> float:
        # The original's first step counts as the second one when it cycles: at 0 there is no cycle to be in yet.
        now = max(t, 1) if self.cycle else min(t, self.steps)
        length = self.steps * math.ceil(now / self.steps) if self.cycle else self.steps
        return (self.base_lr - self.end_learning_rate) * (1 - now / length) ** self.power + self.end_learning_rate


class PolynomialSchduler(PolynomialScheduler):
    """PolynomialScheduler, by the misspelled name that old programs use."""


class Exponential(Decay):
    """Base class of what decays without end.  staircase: only whole multiples of `steps` count."""

    def __init__(
        self, base_lr: float, steps: int, decay_rate: float, staircase: bool = False, warmup: Warmup | None = None
    ):
        super().__init__(base_lr, steps, warmup)
        self.decay_rate, self.staircase = number(type(self).__name__, "decay_rate", decay_rate, 0), bool(staircase)

    def passed(self, t: int) -> float:
        return t // self.steps if self.staircase else t / self.steps


class ExponentialScheduler(Exponential):
    """base_lr * decay_rate ** (t / steps)."""

    def decayed(self, t: int) -> float:
        return self.base_lr * self.decay_rate ** self.passed(t)


class InverseTimeScheduler(Exponential):
    """base_lr / (1 + decay_rate * t / steps)."""

    def decayed(self, t: int) -> float:
        return self.base_lr / (1 + self.decay_rate * self.passed(t))


class NaturalExpScheduler(Exponential):
    """base_lr * exp(-decay_rate * t / steps)."""

    def decayed(self, t: int) -> float:
        return self.base_lr * math.exp(-self.decay_rate * self.passed(t))


# ---- one's own ---------------------------------------------------------------------------------------------------


class CustomScheduler(LrScheduler):
    """A rate of one's own: a function of t, or a Blob of one number that the job itself computes or is given.

    `CustomScheduler(lambda t: 0.1 / (1 + t))`, or `CustomScheduler(lr)` with `lr: tp.Numpy.Placeholder((1,))`.
    """

    def __init__(self, lbn: Tensor | Callable[[int], float]):
        if isinstance(lbn, Tensor):
            if lbn.numel() != 1 or not lbn.spec.floating:
                fail(
                    OptimError,
                    "CustomScheduler: the learning rate is one floating number",
                    "a Placeholder of shape (1,)",
                    rate=lbn,
                )
        elif not callable(lbn):
            fail(
                OptimError,
                f"CustomScheduler: {lbn!r} is neither a Blob nor a function of the step",
                "CustomScheduler(lambda t: 0.1 / (1 + t)), or the Blob that holds the rate; names of blobs are not looked up",
            )
        self.warmup, self.lbn = None, lbn

    def decayed(self, t: int) -> float:
        return float(self.lbn(t))

    def symbol(self, build: Any) -> Tensor:
        return self.lbn.reshape(()) if isinstance(self.lbn, Tensor) else build.at_step(self.rate)
