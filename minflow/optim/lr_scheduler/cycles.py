"""OneCycleLR and CyclicLR: rates that rise and fall, and momentum the other way. Read next: `composite.py`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ...core.base.errors import OptimError
from ...core.source_location import fail
from ..groups import as_number
from ..optimizer import Optimizer
from .base import LRScheduler, check_count, check_fraction, check_number, float_power, takes_scheduler_args


def per_group(scheduler: LRScheduler, name: str, value: Any, optimizer: Any) -> list[float]:
    """Expand an argument, one number or a list, to one number per group."""
    groups = len(optimizer.param_groups) if isinstance(optimizer, Optimizer) else 1
    owner = type(scheduler).__name__
    values = list(value) if isinstance(value, list | tuple) else [value] * groups
    if len(values) != groups:
        what = f"{owner}: {name} has {len(values)} numbers for {groups} groups"
        fail(OptimError, what, "one, or one for each group", **{name: value})
    return [as_number(owner, name, x) for x in values]


class CyclicSchedule(LRScheduler):
    """A schedule that may cycle momentum against the rate: `momentum` of a group, or the first of its `betas`."""

    cycle_momentum = False

    @property
    def graph_refusal(self) -> str:  # type: ignore[override]
        return (
            "it changes momentum at every step, which a graph has built in (cycle_momentum=False)"
            if self.cycle_momentum
            else ""
        )

    def momentum_key(self, optimizer: Any) -> str:
        """Return the name of the hyperparameter that is the momentum. Raises OptimError if there is none."""
        defaults = getattr(optimizer, "defaults", {"momentum": 0})
        if "momentum" not in defaults and "betas" not in defaults:
            what = f"{type(self).__name__}: {type(optimizer).__name__} has neither momentum nor betas"
            fail(OptimError, what, "cycle_momentum=False", optimizer=type(optimizer).__name__)
        return "betas" if "betas" in defaults else "momentum"

    def set_momentum_range(self, base: Any, largest: Any, optimizer: Any) -> None:
        """Set the lowest and highest momentum of each group."""
        if self.cycle_momentum:
            self.key = self.momentum_key(optimizer)
            self.high = per_group(self, "max_momentum", largest, optimizer)
            self.low = per_group(self, "base_momentum", base, optimizer)

    def check_progress(self) -> None:
        super().check_progress()
        owner, groups = type(self).__name__, len(self.optimizer.param_groups)
        if self.cycle_momentum and not hasattr(self, "low"):
            what = f"{owner}: cycle_momentum is True, but this schedule has no momenta"
            hint = "cycle_momentum=True when the schedule is created"
            fail(OptimError, what, hint, cycle_momentum=self.cycle_momentum)
        for name in ("bases", "tops", "low", "high"):
            if len(getattr(self, name, self.base_lrs)) != groups:
                fail(
                    OptimError,
                    f"{owner}: {name} must have one number for each of the {groups} groups, got "
                    f"{len(getattr(self, name))}",
                    "a state saved from the same groups",
                    **{name: getattr(self, name)},
                )

    def set_momentum(self, group: Any, momentum: float) -> None:
        """Write the momentum to the hyperparameter of the group's optimizer."""
        group[self.key] = (momentum, *group["betas"][1:]) if self.key == "betas" else momentum


class OneCycleLR(CyclicSchedule):
    """Rise from max_lr / div_factor to max_lr in the first `pct_start` of all steps, then fall to 1/final_div_factor of
    the initial rate.

    total_steps, or epochs * steps_per_epoch: the number of steps; further steps are refused.  max_lr: one rate, or one
    for each group.  anneal_strategy: "cos" or "linear".  three_phase: fall to the initial rate in as many steps as the
    rise, then the rest of the way.  cycle_momentum: momentum falls from max_momentum to base_momentum while the rate
    rises, and back.
    Source: Smith & Topin 2018 (arXiv:1708.07120), section 3.
    """

    @takes_scheduler_args
    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | Sequence[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | Sequence[float] = 0.85,
        max_momentum: float | Sequence[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
    ):
        self.epochs, self.steps_per_epoch = epochs, steps_per_epoch
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                what = "OneCycleLR: the number of steps must be given"
                hint = "total_steps=1000, or epochs=10, steps_per_epoch=100"
                fail(OptimError, what, hint, epochs=epochs, steps_per_epoch=steps_per_epoch)
            check_count(self, "epochs", 1)
            check_count(self, "steps_per_epoch", 1)
            total_steps = epochs * steps_per_epoch
        self.total_steps = total_steps
        self.pct_start, self.anneal_strategy, self.three_phase = pct_start, anneal_strategy, bool(three_phase)
        self.div_factor, self.final_div_factor, self.cycle_momentum = div_factor, final_div_factor, bool(cycle_momentum)
        self.check()
        self.tops = per_group(self, "max_lr", max_lr, optimizer)
        self.set_momentum_range(base_momentum, max_momentum, optimizer)
        if isinstance(optimizer, Optimizer):
            for i, group in enumerate(optimizer.param_groups):
                group["initial_lr"] = self.tops[i] / div_factor

    def check(self) -> None:
        check_count(self, "total_steps", 1)
        check_fraction(self, "pct_start")
        for name in ("div_factor", "final_div_factor"):
            check_number(self, name)
            if getattr(self, name) == 0:
                what = f"OneCycleLR: {name} must not be 0, because the rate is divided by it"
                fail(OptimError, what, f"{name}=25.0", **{name: 0})
        if self.anneal_strategy not in ("cos", "linear"):
            what = f"OneCycleLR: anneal_strategy must be 'cos' or 'linear', got {self.anneal_strategy!r}"
            fail(OptimError, what, "'cos' or 'linear'", anneal_strategy=self.anneal_strategy)

    def phases(self) -> list[tuple[float, str, str]]:
        """(last step, initial rate, final rate) of each phase."""
        rise = float(self.pct_start * self.total_steps) - 1
        first, last = (rise, "first", "top"), self.total_steps - 1
        if self.three_phase:
            return [first, (2 * rise, "top", "first"), (last, "first", "last")]
        return [first, (last, "top", "last")]

    def interpolate(self, start: float, end: float, part: float) -> float:
        """The value at a fraction, 0 to 1, of the way from `start` to `end`."""
        if self.anneal_strategy == "linear":
            return (end - start) * part + start
        return end + (start - end) / 2 * (math.cos(math.pi * part) + 1)

    def get_lr(self) -> list[float]:
        now = self.last_epoch
        if now >= self.total_steps + 1:
            what = f"OneCycleLR: step {now} is beyond the total of {self.total_steps}"
            fail(OptimError, what, "total_steps=epochs * len(loader)", total_steps=self.total_steps)
        *rising, (end, first, last) = self.phases()
        start = 0.0
        for until, a, b in rising:
            if now <= until:
                end, first, last = until, a, b
                break
            start = until
        part = (now - start) / (end - start) if end != start else 1.0
        rates = []
        for i, (top, base) in enumerate(zip(self.tops, self.base_lrs)):
            levels = {"first": base, "top": top, "last": base / self.final_div_factor}
            rates.append(self.interpolate(levels[first], levels[last], part))
            if self.cycle_momentum:
                from_, to = [self.low[i] if name == "top" else self.high[i] for name in (first, last)]
                self.set_momentum(self.optimizer.param_groups[i], self.interpolate(from_, to, part))
        return rates


class CyclicLR(CyclicSchedule):
    """Rise from base_lr to max_lr in step_size_up steps and fall again in step_size_down, repeatedly.

    mode: "triangular"; "triangular2" halves the height at each cycle; "exp_range" scales it by gamma**step.  scale_fn:
    a custom scaling function instead, of the cycle or, with scale_mode="iterations", of the step; it is not saved.
    cycle_momentum: momentum falls from max_momentum to base_momentum while the rate rises, and back.
    Source: Smith 2017 (arXiv:1506.01186), section 3.
    """

    @takes_scheduler_args
    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | Sequence[float],
        max_lr: float | Sequence[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | Sequence[float] = 0.8,
        max_momentum: float | Sequence[float] = 0.9,
    ):
        self.step_size_up = step_size_up
        self.step_size_down = step_size_up if step_size_down is None else step_size_down
        self.mode, self.gamma, self.scale_fn, self.cycle_momentum = mode, gamma, scale_fn, bool(cycle_momentum)
        self.scale_mode = scale_mode if scale_fn is not None else "iterations" if mode == "exp_range" else "cycle"
        self.check()
        self.bases = per_group(self, "base_lr", base_lr, optimizer)
        self.tops = per_group(self, "max_lr", max_lr, optimizer)
        self.set_momentum_range(base_momentum, max_momentum, optimizer)
        if isinstance(optimizer, Optimizer):
            for group, base in zip(optimizer.param_groups, self.bases):
                group["lr"] = base

    def check(self) -> None:
        for name in ("step_size_up", "step_size_down"):
            check_number(self, name)
        if not self.step_size_up >= 0 or not self.step_size_down >= 0 or self.step_size_up + self.step_size_down < 1e-6:
            what = f"CyclicLR: a cycle of {self.step_size_up} steps up and {self.step_size_down} down"
            hint = "step_size_up=2000"
            fail(OptimError, what, hint, step_size_up=self.step_size_up, step_size_down=self.step_size_down)
        check_number(self, "gamma")
        if self.scale_fn is None and self.mode not in ("triangular", "triangular2", "exp_range"):
            what = f"CyclicLR: mode cannot be {self.mode!r}"
            fail(OptimError, what, "'triangular', 'triangular2' or 'exp_range'", mode=self.mode)

    def scale(self, cycle: int) -> float:
        """The scale of the height of this cycle."""
        at = cycle if self.scale_mode == "cycle" else self.last_epoch
        if self.scale_fn is not None:
            return float(self.scale_fn(at))
        if self.mode == "triangular":
            return 1.0
        return float_power(0.5, cycle - 1) if self.mode == "triangular2" else float_power(self.gamma, at)

    def get_lr(self) -> list[float]:
        whole = self.step_size_up + self.step_size_down
        cycle, turn = math.floor(1 + self.last_epoch / whole), self.step_size_up / whole
        x = 1.0 + self.last_epoch / whole - cycle
        height = (x / turn if turn else 0.0) if x <= turn else (x - 1) / (turn - 1)
        if self.cycle_momentum:
            for group, low, high in zip(self.optimizer.param_groups, self.low, self.high):
                self.set_momentum(group, high - (high - low) * height * self.scale(cycle))
        return [base + (top - base) * height * self.scale(cycle) for base, top in zip(self.bases, self.tops)]

    def state_dict(self) -> dict[str, Any]:
        return {name: value for name, value in super().state_dict().items() if name != "scale_fn"}
