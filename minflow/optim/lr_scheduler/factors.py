"""Schedules that multiply the rate: by the values of a function, at certain steps, or at each step.

The values are PyTorch's: each schedule continues from the current `group["lr"]`, so that schedules can be chained and a
user's change is kept; a jump to a step uses the closed form. Read next: `curves.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any

from ...core.base.errors import OptimError
from ...core.source_location import fail
from ...nn.loading import MAX_COUNT, Writes, refuse
from ..optimizer import Optimizer
from .base import (
    LRScheduler,
    check_count,
    check_fraction,
    check_number,
    float_power,
    function_state,
    function_writes,
    takes_scheduler_args,
)


class LambdaLR(LRScheduler):
    """The initial rate times `lr_lambda(step)`; one function for all groups, or a list with one for each.

    state_dict does not save functions, but saves the attributes of callable objects.
    """

    @takes_scheduler_args
    def __init__(self, optimizer: Optimizer, lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]]):
        groups = len(optimizer.param_groups) if isinstance(optimizer, Optimizer) else 0
        self.lr_lambdas = list(lr_lambda) if isinstance(lr_lambda, Sequence) else [lr_lambda] * groups
        if len(self.lr_lambdas) != groups and groups:
            what = f"{type(self).__name__}: {len(self.lr_lambdas)} functions for {groups} parameter groups"
            fail(OptimError, what, "one function, or one for each group", functions=len(self.lr_lambdas), groups=groups)
        if not all(callable(function) for function in self.lr_lambdas):
            what = f"{type(self).__name__} takes a function of the step"
            fail(OptimError, what, f"{type(self).__name__}(optimizer, lambda step: 0.95**step)", lr_lambda=lr_lambda)

    def get_lr(self) -> list[float]:
        return [base * float(function(self.last_epoch)) for base, function in zip(self.base_lrs, self.lr_lambdas)]

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "lr_lambdas": [function_state(f) for f in self.lr_lambdas]}

    def _convert_state(self, current: Mapping[str, Any], saved: Mapping[str, Any]) -> tuple[dict[str, Any], Writes]:
        owner, kept, new = type(self).__name__, current["lr_lambdas"], saved["lr_lambdas"]
        result, writes = super()._convert_state({k: v for k, v in current.items() if k != "lr_lambdas"}, saved)
        if not isinstance(new, list | tuple) or [x is None for x in new] != [x is None for x in kept]:
            refuse(owner, "lr_lambdas are of other functions", f"a {owner} with the same functions", saved=new)
        for function, attributes in zip(self.lr_lambdas, new):
            writes += function_writes(self, function, attributes)
        return result, writes


class MultiplicativeLR(LambdaLR):
    """The current rate times `lr_lambda(step)` at each step; one function for all groups, or a list with one for each.

    state_dict does not save functions, but saves the attributes of callable objects.
    """

    def get_lr(self) -> list[float]:
        if self._is_initial:
            return self._current_lrs()
        return [rate * float(function(self.last_epoch)) for rate, function in zip(self._current_lrs(), self.lr_lambdas)]


class StepLR(LRScheduler):
    """Multiply the rate by gamma every `step_size` steps."""

    @takes_scheduler_args
    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1):
        self.step_size, self.gamma = step_size, gamma

    def _check_arguments(self) -> None:
        check_count(self, "step_size", 1)
        check_number(self, "gamma")

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0 or self.last_epoch % self.step_size:
            return self._current_lrs()
        return [rate * self.gamma for rate in self._current_lrs()]

    def _closed_form(self) -> list[float]:
        return [base * float_power(self.gamma, self.last_epoch // self.step_size) for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    """Multiply the rate by gamma at each of the steps in `milestones`; a step listed twice counts twice."""

    @takes_scheduler_args
    def __init__(self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1):
        if not isinstance(milestones, Iterable):
            what = f"MultiStepLR: milestones must be a list of steps, got {milestones!r}"
            fail(OptimError, what, "milestones=[30, 80]", milestones=milestones)
        self.milestones, self.gamma = Counter(milestones), gamma

    def _check_arguments(self) -> None:
        check_number(self, "gamma")
        for step, times in self.milestones.items():
            whole = all(isinstance(n, Integral) and not isinstance(n, bool) for n in (step, times))
            if not whole or max(abs(step), abs(times)) > MAX_COUNT:
                what = f"MultiStepLR: {step!r} in milestones is not a step"
                fail(OptimError, what, "milestones=[30, 80]", milestones=dict(self.milestones))

    def get_lr(self) -> list[float]:
        return [rate * float_power(self.gamma, self.milestones[self.last_epoch]) for rate in self._current_lrs()]

    def _closed_form(self) -> list[float]:
        passed = sum(times for step, times in self.milestones.items() if step <= self.last_epoch)
        return [base * float_power(self.gamma, passed) for base in self.base_lrs]

    def _convert_state(self, current: Mapping[str, Any], saved: Mapping[str, Any]) -> tuple[dict[str, Any], Writes]:
        result, writes = super()._convert_state(current, saved)
        return {**result, "milestones": Counter(result["milestones"])}, writes


class LinearLR(LRScheduler):
    """The initial rate times a factor that changes linearly from start_factor to end_factor in total_iters steps."""

    @takes_scheduler_args
    def __init__(
        self, optimizer: Optimizer, start_factor: float = 1.0 / 3, end_factor: float = 1.0, total_iters: int = 5
    ):
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters

    def _check_arguments(self) -> None:
        check_number(self, "start_factor")
        check_number(self, "end_factor")
        check_count(self, "total_iters", 0)
        start_factor, end_factor = self.start_factor, self.end_factor
        for name, factor, whole in (
            ("start_factor", start_factor, 0 < start_factor <= 1),
            ("end_factor", end_factor, 0 <= end_factor <= 1),
        ):
            if not whole:
                fail(
                    OptimError,
                    f"LinearLR: {name} must be {'above' if name[0] == 's' else 'at least'} 0 and at most 1, "
                    f"got {factor:g}",
                    "LinearLR(optimizer, start_factor=0.1, total_iters=5)",
                    start_factor=start_factor,
                    end_factor=end_factor,
                )

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return [rate * self.start_factor for rate in self._current_lrs()]
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._current_lrs()
        rise = self.end_factor - self.start_factor
        return [
            rate * (1 + rise / (self.total_iters * self.start_factor + (self.last_epoch - 1) * rise))
            for rate in self._current_lrs()
        ]

    def _closed_form(self) -> list[float]:
        part = min(self.total_iters, self.last_epoch) / self.total_iters if self.total_iters else 1.0
        return [base * (self.start_factor + (self.end_factor - self.start_factor) * part) for base in self.base_lrs]


class ConstantLR(LRScheduler):
    """The initial rate times `factor`, from 0 to 1, until step `total_iters`; then the initial rate."""

    @takes_scheduler_args
    def __init__(self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5):
        self.factor, self.total_iters = factor, total_iters

    def _check_arguments(self) -> None:
        check_fraction(self, "factor")
        check_count(self, "total_iters", 0)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return [rate * self.factor for rate in self._current_lrs()]
        if self.last_epoch != self.total_iters:
            return self._current_lrs()
        if self.factor == 0:
            what = "ConstantLR: a rate of 0 cannot be scaled back to what it was"
            fail(OptimError, what, "a small factor above 0, such as 1e-3", factor=self.factor)
        return [rate * (1.0 / self.factor) for rate in self._current_lrs()]

    def _closed_form(self) -> list[float]:
        return [base * (1.0 if self.last_epoch >= self.total_iters else self.factor) for base in self.base_lrs]


class ExponentialLR(LRScheduler):
    """Multiply the rate by gamma at every step."""

    @takes_scheduler_args
    def __init__(self, optimizer: Optimizer, gamma: float):
        self.gamma = gamma

    def _check_arguments(self) -> None:
        check_number(self, "gamma")

    def get_lr(self) -> list[float]:
        return self._current_lrs() if self._is_initial else [rate * self.gamma for rate in self._current_lrs()]

    def _closed_form(self) -> list[float]:
        return [base * float_power(self.gamma, self.last_epoch) for base in self.base_lrs]
