"""Learning rates of job functions: each schedule is a function of t, the number of steps that the job has finished.

`t` is 0 in the first step. A warm-up replaces the schedule while t < its steps, and does not shift it: afterwards the
rate is the same as without warm-up. Schedules are stateless, so a resumed job needs only t. Independent of weights and
gradients. Read next: `optimizer.py`; for `nn.Graph` and eager mode, `../../optim/lr_scheduler/`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from ...core.base.errors import OptimError
from ...core.source_location import fail
from ...core.tensor import Tensor
from .arguments import (
    DeclaredArgument,
    DeclaredArguments,
    check_integer,
    check_number,
    flag_argument,
    float_argument,
    instance_argument,
    integer_argument,
)


class Warmup:
    """The rate of the first steps. A subclass implements `multiplier_at(t)`, the factor of the base rate."""

    steps: int

    def multiplier_at(self, t: int) -> float:
        raise NotImplementedError

    def __repr__(self) -> str:
        inside = ", ".join([f"{name}={value!r}" for name, value in vars(self).items()])
        return f"warmup.{type(self).__name__}({inside})"


class constant(Warmup):
    """base * multiplier while t < steps.  steps: at least 0; multiplier: more than 0 and less than 1."""

    def __init__(self, steps: int, multiplier: float):
        self.steps = check_integer("warmup.constant", "steps", steps, 0)
        self.multiplier = check_number("warmup.constant", "multiplier", multiplier, 0, 1, open_low=True, open_high=True)

    def multiplier_at(self, t: int) -> float:
        return self.multiplier


class linear(Warmup):
    """base * (s + (1 - s) * t / steps) while t < steps.  steps: at least 0; s = start_multiplier: from 0 to below 1."""

    def __init__(self, steps: int, start_multiplier: float):
        self.steps = check_integer("warmup.linear", "steps", steps, 0)
        self.start_multiplier = check_number(
            "warmup.linear", "start_multiplier", start_multiplier, 0, 1, open_high=True
        )

    def multiplier_at(self, t: int) -> float:
        return self.start_multiplier + (1 - self.start_multiplier) * t / self.steps


class warmup:
    """Namespace of the warm-ups: `flow.optimizer.warmup.linear(100, 0.1)`."""

    constant, linear = constant, linear


class LrScheduler(DeclaredArguments):
    """Base class. A subclass implements `decayed(t)`, the rate of step t after the warm-up.

    base_lr: the rate that a warm-up multiplies.  warmup: None, `warmup.constant(...)` or `warmup.linear(...)`.
    """

    arguments = "base_lr warmup"
    base_lr: float = float_argument(low=0)
    warmup = instance_argument(
        Warmup,
        "warmup=flow.optimizer.warmup.linear(100, 0.1): steps, and the share of the rate to start from",
        "warmup.constant or warmup.linear",
    )

    def decayed(self, t: int) -> float:
        """The learning rate of step `t`, ignoring the warm-up."""
        raise NotImplementedError

    def rate(self, t: int) -> float:
        """The learning rate of the step that starts after t finished steps."""
        if self.warmup is not None and t < self.warmup.steps:
            return self.base_lr * self.warmup.multiplier_at(t)
        return self.decayed(t)

    def symbol(self, build: Any) -> Tensor:
        """The learning rate inside a job: a 0-d tensor that is read before every step."""
        return build.at_step(self.rate)


# ---- by steps ----------------------------------------------------------------------------------------------------


def ascending(owner: str, name: str, boundaries: Sequence[int]) -> list[int]:
    """Check the boundaries and return them as a list: integers in ascending order."""
    if not isinstance(boundaries, Sequence) or isinstance(boundaries, str):
        what = f"{owner}: boundaries must be a list of steps, got a {type(boundaries).__name__}"
        fail(OptimError, what, "boundaries=[1000, 2000]", boundaries=boundaries)
    steps = [check_integer(owner, f"boundaries[{i}]", b, 0) for i, b in enumerate(boundaries)]
    for i, (a, b) in enumerate(itertools.pairwise(steps)):
        if b <= a:
            what = f"{owner}: boundaries[{i + 1}] is {b} and does not come after boundaries[{i}], which is {a}"
            fail(OptimError, what, "boundaries in ascending order", boundaries=steps)
    return steps


def piece(boundaries: list[int], t: int) -> int:
    """Index of the piece that contains step t; a boundary belongs to the piece before it."""
    return sum([t > b for b in boundaries])


def numbers(owner: str, name: str, values: Any) -> list[float]:
    if not isinstance(values, Sequence) or isinstance(values, str):
        what = f"{owner}: {name} must be a list of numbers, got a {type(values).__name__}"
        fail(OptimError, what, f"{name}=[0.1, 0.01]", **{name: values})
    return [check_number(owner, f"{name}[{i}]", v, 0) for i, v in enumerate(values)]


class PiecewiseConstantScheduler(LrScheduler):
    """values[i] while t <= boundaries[i], and the last value after all boundaries.

    boundaries: steps, ascending.  values: learning rates, one more than boundaries; `([], [0.1])` is a constant 0.1.
    A warm-up multiplies values[0].
    """

    arguments = "boundaries values warmup"
    boundaries: Any = DeclaredArgument(ascending, "Sequence[int]")
    values: Any = DeclaredArgument(numbers, "Sequence[float]")

    def complete(self) -> None:
        pieces, values = len(self.boundaries) + 1, len(self.values)
        if pieces != values:
            owner = "PiecewiseConstantScheduler"
            what = f"{owner}: {pieces - 1} boundaries make {pieces} pieces, and {values} values are given"
            hint = "one value more than boundaries; ([], [0.1]) is a constant rate of 0.1"
            fail(OptimError, what, hint, boundaries=self.boundaries, values=self.values)
        self.base_lr = self.values[0]

    def decayed(self, t: int) -> float:
        return self.values[piece(self.boundaries, t)]


class PiecewiseScalingScheduler(LrScheduler):
    """base_lr while t <= boundaries[0], then base_lr * scale[i] after boundaries[i].

    scale: one factor per boundary, or one for all. The factors do not accumulate.
    """

    arguments = "base_lr boundaries scale warmup"
    boundaries: Any = DeclaredArgument(ascending, "Sequence[int]")
    scale: Any = DeclaredArgument(lambda owner, name, value: value, "float | Sequence[float]")

    def complete(self) -> None:
        owner, count = "PiecewiseScalingScheduler", len(self.boundaries)
        scale = self.scale if isinstance(self.scale, Sequence) else [self.scale] * count
        self.scale = numbers(owner, "scale", scale)
        if count != len(self.scale):
            what = f"{owner}: {count} boundaries, and {len(self.scale)} factors in scale"
            fail(OptimError, what, "one factor for each boundary", boundaries=self.boundaries, scale=self.scale)

    def decayed(self, t: int) -> float:
        return self.base_lr * [1.0, *self.scale][piece(self.boundaries, t)]


# ---- smooth ------------------------------------------------------------------------------------------------------


class Decay(LrScheduler):
    """Base class of schedules that measure time in units of `steps`."""

    arguments = "base_lr steps warmup"
    steps: int = integer_argument(1)

    def until(self, t: int) -> float:
        """Fraction of `steps` that has passed, at most 1."""
        return min(t, self.steps) / self.steps


class CosineScheduler(Decay):
    """base_lr * ((1 - alpha) * (1 + cos(pi * u)) / 2 + alpha), u = min(t, steps) / steps: down to base_lr * alpha."""

    arguments = "base_lr steps alpha warmup"
    alpha: float = float_argument(0.0)

    def decayed(self, t: int) -> float:
        cosine = 0.5 * (1 + math.cos(math.pi * self.until(t)))
        return self.base_lr * ((1 - self.alpha) * cosine + self.alpha)


class LinearCosineScheduler(Decay):
    """base_lr * ((alpha + 1 - u) * (1 + cos(2 pi * num_periods * u)) / 2 + beta), u = min(t, steps) / steps."""

    arguments = "base_lr steps num_periods alpha beta warmup"
    num_periods, alpha, beta = float_argument(0.5), float_argument(0.0), float_argument(0.001)

    def decayed(self, t: int) -> float:
        cosine = 0.5 * (1 + math.cos(2 * math.pi * self.num_periods * self.until(t)))
        return self.base_lr * ((self.alpha + 1 - self.until(t)) * cosine + self.beta)


class PolynomialScheduler(Decay):
    """(base_lr - end) * (1 - u) ** power + end, u = min(t, steps) / steps; end = end_learning_rate.

    cycle: instead of staying at the end, restart with a longer period: u = t / (steps * ceil(t / steps)).
    """

    arguments = "base_lr steps end_learning_rate power cycle warmup"
    end_learning_rate, power, cycle = float_argument(0.0001, 0), float_argument(1.0, 0), flag_argument(False)

    def decayed(self, t: int) -> float:
        # As in OneFlow, the first step counts as the second if `cycle`: at 0 no cycle has begun yet.
        now = max(t, 1) if self.cycle else min(t, self.steps)
        length = self.steps * math.ceil(now / self.steps) if self.cycle else self.steps
        return (self.base_lr - self.end_learning_rate) * (1 - now / length) ** self.power + self.end_learning_rate


class PolynomialSchduler(PolynomialScheduler):
    """PolynomialScheduler, by the misspelled name that old programs use."""


class Exponential(Decay):
    """Base class of schedules that decay without end. staircase: count only whole multiples of `steps`."""

    arguments = "base_lr steps decay_rate staircase warmup"
    decay_rate, staircase = float_argument(low=0), flag_argument(False)

    def passed(self, t: int) -> float:
        """Number of times that the rate has decayed after `t` steps."""
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


# ---- custom ------------------------------------------------------------------------------------------------------


def rate_or_function(owner: str, name: str, value: Any) -> Any:
    if isinstance(value, Tensor):
        if value.numel() != 1 or not value.spec.floating:
            what = f"{owner}: the learning rate must be one floating number"
            fail(OptimError, what, "a Placeholder of shape (1,)", rate=value)
    elif not callable(value):
        what = f"{owner}: {value!r} is neither a Blob nor a function of the step"
        hint = f"{owner}(lambda t: 0.1 / (1 + t)), or the Blob that holds the rate; names of blobs are not looked up"
        fail(OptimError, what, hint)
    return value


class CustomScheduler(LrScheduler):
    """A custom rate: a function of t, or a one-element Blob that the job computes or takes as an argument.

    `CustomScheduler(lambda t: 0.1 / (1 + t))`, or `CustomScheduler(lr)` with `lr: tp.Numpy.Placeholder((1,))`.
    """

    arguments = "lbn"
    lbn: Any = DeclaredArgument(rate_or_function, "Tensor | Callable[[int], float]")
    warmup = None

    def decayed(self, t: int) -> float:
        return float(self.lbn(t))

    def symbol(self, build: Any) -> Tensor:
        return self.lbn.reshape(()) if isinstance(self.lbn, Tensor) else build.at_step(self.rate)
