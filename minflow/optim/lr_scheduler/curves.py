"""Schedules along a curve: cosines, a polynomial.

Read next: `cycles.py`, whose curves also rise.
"""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

from ...core.base.errors import OptimError
from ...core.source_location import fail
from ...nn.loading import MAX_COUNT
from ..groups import as_number
from ..optimizer import Optimizer
from .base import LRScheduler, check_count, check_number, float_power, takes_scheduler_args


class CosineAnnealingLR(LRScheduler):
    """Half a cosine from the initial rate down to eta_min in T_max steps, and up again.

    Source: Loshchilov & Hutter 2017 (arXiv:1608.03983), eq. 5, without restarts.
    """

    @takes_scheduler_args
    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0):
        self.T_max, self.eta_min = T_max, eta_min

    def _check_arguments(self) -> None:
        check_number(self, "eta_min")
        is_number = isinstance(self.T_max, Real) and not isinstance(self.T_max, bool)
        if not is_number or not 1e-9 <= self.T_max <= MAX_COUNT:
            what = f"CosineAnnealingLR: T_max must be above 0, got {self.T_max!r}"
            fail(OptimError, what, "T_max=number of steps of the whole training", T_max=self.T_max)

    def get_lr(self) -> list[float]:
        if self._is_initial:
            return self._current_lrs()
        if self._step_count == 1 and self.last_epoch > 0:
            return self._closed_form()
        below = 1 + math.cos(math.pi * (self.last_epoch - 1) / self.T_max)
        if below == 0 or (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:  # just past the lowest point
            lift = (1 - math.cos(math.pi / self.T_max)) / 2
            return [rate + (base - self.eta_min) * lift for base, rate in zip(self.base_lrs, self._current_lrs())]
        quotient = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / below
        return [quotient * (rate - self.eta_min) + self.eta_min for rate in self._current_lrs()]

    def _closed_form(self) -> list[float]:
        part = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * part for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a cosine from the initial rate down to eta_min in T_0 steps, restarted from the top; each cycle is T_mult
    times as long as the one before.

    decay_rate: the top of each cycle relative to the one before.  restart_limit: after this number of cycles the rate
    stays at eta_min; 0 for no limit. Both are OneFlow's. step(epoch) jumps to an epoch, which may be a fraction.
    Source: Loshchilov & Hutter 2017 (arXiv:1608.03983), eq. 5.
    """

    T_cur: float
    _names_in_files = {**LRScheduler._names_in_files, "cycles": "_cycles"}
    _optional_in_state = ("verbose", "decay_rate", "restart_limit", "_cycles")

    @takes_scheduler_args
    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        *,
        decay_rate: float = 1.0,
        restart_limit: int = 0,
    ):
        self.T_0, self.T_i, self.T_mult, self.eta_min = T_0, T_0, T_mult, eta_min
        self.decay_rate, self.restart_limit, self.T_cur, self._cycles = decay_rate, restart_limit, -1, 0

    def _check_arguments(self) -> None:
        for name, low in (("T_0", 1), ("T_mult", 1), ("restart_limit", 0)):
            check_count(self, name, low)
        for name in ("eta_min", "decay_rate", "T_cur", "T_i"):
            check_number(self, name)

    def _with_our_entries(self, state: dict[str, Any]) -> dict[str, Any]:
        """Count the cycles of a PyTorch state: each is T_mult times as long, or as many as passed since the start."""
        try:
            passed, ratio = state["last_epoch"] - state["T_cur"], state["T_i"] / state["T_0"]
            cycles = passed / state["T_0"] if state["T_mult"] == 1 else math.log(ratio, state["T_mult"])
            return {"_cycles": max(round(cycles), 0), **state}
        except (KeyError, TypeError, ValueError, ArithmeticError):  # the checks that follow refuse it
            return state

    def _move(self, epoch: float | None) -> None:
        """Set the learning rates of the next epoch, or of the given one, which may be a fraction."""
        if epoch is None:
            self.T_cur = max(self.T_cur, self.last_epoch) + 1 if self._is_initial else self.T_cur + 1
            if self.T_cur >= self.T_i:
                self.T_cur, self.T_i, self._cycles = self.T_cur % self.T_i, self.T_i * self.T_mult, self._cycles + 1
            return super()._move(None)
        at = as_number("CosineAnnealingWarmRestarts", "epoch", epoch)
        if not 0 <= at <= MAX_COUNT:
            fail(OptimError, f"CosineAnnealingWarmRestarts: there is no step {epoch}", "scheduler.step(3)", epoch=epoch)
        self.T_cur, self.T_i, self._cycles = epoch, self.T_0, 0
        while self.T_cur >= self.T_i:
            if self.T_mult == 1:
                self.T_cur, self._cycles = epoch % self.T_0, int(at // self.T_0)
            else:
                self.T_cur, self.T_i, self._cycles = self.T_cur - self.T_i, self.T_i * self.T_mult, self._cycles + 1
        return super()._move(math.floor(at))

    def get_lr(self) -> list[float]:
        part = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        if 0 < self.restart_limit <= self._cycles:
            part = 0.0
        top = float_power(self.decay_rate, self._cycles)
        return [self.eta_min + (base * top - self.eta_min) * part for base in self.base_lrs]


class CosineDecayLR(LRScheduler):
    """Half a cosine from the initial rate down to `alpha` times itself in `decay_steps` steps, and then constant.

    From OneFlow. Source: Loshchilov & Hutter 2017 (arXiv:1608.03983), eq. 5, without restarts.
    """

    @takes_scheduler_args
    def __init__(self, optimizer: Optimizer, decay_steps: int, alpha: float = 0.0):
        self.decay_steps, self.alpha = decay_steps, alpha

    def _check_arguments(self) -> None:
        check_count(self, "decay_steps", 1)
        check_number(self, "alpha")

    def get_lr(self) -> list[float]:
        part = (1 + math.cos(math.pi * min(self.last_epoch / self.decay_steps, 1))) / 2
        return [base * ((1 - self.alpha) * part + self.alpha) for base in self.base_lrs]


class PolynomialLR(LRScheduler):
    """The initial rate times (1 - step / total_iters) ** power, down to 0 in `total_iters` steps.

    With OneFlow's names, `PolynomialLR(optimizer, steps=100, end_learning_rate=1e-4, power=1, cycle=False)`, it falls
    to end_learning_rate (default 0.0001); with cycle=True it then restarts at a higher rate, and falls over twice,
    three times, ... as many steps.
    """

    _optional_in_state = ("verbose", "cycle", "end_learning_rate")

    @takes_scheduler_args
    def __init__(
        self,
        optimizer: Optimizer,
        total_iters: int = 5,
        power: float = 1.0,
        *,
        steps: int | None = None,
        end_learning_rate: float | None = None,
        cycle: bool = False,
    ):
        self.total_iters, self.power, self.cycle = total_iters if steps is None else steps, power, cycle
        oneflow = steps is not None or end_learning_rate is not None or cycle
        self.end_learning_rate = 1e-4 if oneflow and end_learning_rate is None else end_learning_rate

    def _check_arguments(self) -> None:
        check_count(self, "total_iters", 1)
        check_number(self, "power")
        if self.end_learning_rate is not None:
            check_number(self, "end_learning_rate")

    def get_lr(self) -> list[float]:
        if self.end_learning_rate is not None:
            return self._closed_form()
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._current_lrs()
        left = (1 - self.last_epoch / self.total_iters) / (1 - (self.last_epoch - 1) / self.total_iters)
        return [rate * float_power(left, self.power) for rate in self._current_lrs()]

    def _closed_form(self) -> list[float]:
        end, whole = self.end_learning_rate or 0.0, self.total_iters
        if self.cycle:
            whole *= max(math.ceil(self.last_epoch / whole), 1)
        part = float_power(1 - min(self.last_epoch, whole) / whole, self.power)
        return [(base - end) * part + end for base in self.base_lrs]
