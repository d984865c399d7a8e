"""OneCycleLR and CyclicLR: rates that rise and fall, and momentum the other way. Read next: `composite.py`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...core.base.errors import OptimError
from ...core.source_location import fail
from ...nn.loading import Writes
from ..groups import as_number
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
    _names_in_files = {
        **LRScheduler._names_in_files,
        "tops": "max_lrs",
        "low": "base_momentums",
        "high": "max_momentums",
    }

    _derived_in_state: tuple[str, ...] = ("use_beta1",)

    @property
    def use_beta1(self) -> bool:
        """True if the momentum is the first of the group's betas."""
        return "betas" in self.optimizer.defaults

    @property
    def _graph_refusal(self) -> str:  # type: ignore[override]
        return (
            "it changes momentum at every step, which a graph has built in (cycle_momentum=False)"
            if self.cycle_momentum
            else ""
        )

    def _set_momentum_range(self, base: Any, largest: Any, optimizer: Any) -> None:
        """Set the lowest and highest momentum of each group. Raises OptimError if the optimizer has no momentum."""
        if self.cycle_momentum:
            defaults = getattr(optimizer, "defaults", {"momentum": 0})
            if "momentum" not in defaults and "betas" not in defaults:
                what = f"{type(self).__name__}: {type(optimizer).__name__} has neither momentum nor betas"
                fail(OptimError, what, "cycle_momentum=False", optimizer=type(optimizer).__name__)
            self.max_momentums = per_group(self, "max_momentum", largest, optimizer)
            self.base_momentums = per_group(self, "base_momentum", base, optimizer)

    def _check_progress(self) -> None:
        super()._check_progress()
        owner, groups = type(self).__name__, len(self.optimizer.param_groups)
        if self.cycle_momentum and not hasattr(self, "base_momentums"):
            what = f"{owner}: cycle_momentum is True, but this schedule has no momenta"
            hint = "cycle_momentum=True when the schedule is created"
            fail(OptimError, what, hint, cycle_momentum=self.cycle_momentum)
        for name in ("max_lrs", "base_momentums", "max_momentums"):
            if len(getattr(self, name, self.base_lrs)) != groups:
                fail(
                    OptimError,
                    f"{owner}: {name} must have one number for each of the {groups} groups, got "
                    f"{len(getattr(self, name))}",
                    "a state saved from the same groups",
                    **{name: getattr(self, name)},
                )

    def _set_momentum(self, group: Any, momentum: float) -> None:
        """Write the momentum to the hyperparameter of the group's optimizer."""
        if self.use_beta1:
            group["betas"] = (momentum, *group["betas"][1:])
        else:
            group["momentum"] = momentum

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), **({"use_beta1": self.use_beta1} if self.cycle_momentum else {})}


class OneCycleLR(CyclicSchedule):
    """Rise from max_lr / div_factor to max_lr in the first `pct_start` of all steps, then fall to 1/final_div_factor of
    the initial rate.

    total_steps, or epochs * steps_per_epoch: the number of steps; further steps are refused.  max_lr: one rate, or one
    for each group.  anneal_strategy: "cos" or "linear".  three_phase: fall to the initial rate in as many steps as the
    rise, then the rest of the way.  cycle_momentum: momentum falls from max_momentum to base_momentum while the rate
    rises, and back.
    Each group holds its rates and momenta: `initial_lr`, `max_lr`, `min_lr`, `max_momentum`, `base_momentum`.
    Source: Smith & Topin 2018 (arXiv:1708.07120), section 3.
    """

    _names_in_files = {**CyclicSchedule._names_in_files, "anneal_strategy": "_anneal_func_type"}
    _optional_in_state = (
        *("verbose", "epochs", "steps_per_epoch", "pct_start", "three_phase", "div_factor", "final_div_factor"),
        *("max_lrs", "base_momentums", "max_momentums"),
    )
    _derived_in_state = ("use_beta1", "_schedule_phases")

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
        self.pct_start, self._anneal_func_type, self.three_phase = pct_start, anneal_strategy, bool(three_phase)
        self.div_factor, self.final_div_factor, self.cycle_momentum = div_factor, final_div_factor, bool(cycle_momentum)
        self._check_arguments()
        self.max_lrs = per_group(self, "max_lr", max_lr, optimizer)
        self._set_momentum_range(base_momentum, max_momentum, optimizer)
        if isinstance(optimizer, Optimizer):
            for i, group in enumerate(optimizer.param_groups):
                group["initial_lr"] = self.max_lrs[i] / div_factor
                group["max_lr"], group["min_lr"] = self.max_lrs[i], group["initial_lr"] / final_div_factor
                if cycle_momentum:
                    group["max_momentum"], group["base_momentum"] = self.max_momentums[i], self.base_momentums[i]

    def _check_arguments(self) -> None:
        check_count(self, "total_steps", 1)
        check_fraction(self, "pct_start")
        for name in ("div_factor", "final_div_factor"):
            check_number(self, name)
            if getattr(self, name) == 0:
                what = f"OneCycleLR: {name} must not be 0, because the rate is divided by it"
                fail(OptimError, what, f"{name}=25.0", **{name: 0})
        if (strategy := self._anneal_func_type) not in ("cos", "linear"):
            what = f"OneCycleLR: anneal_strategy must be 'cos' or 'linear', got {strategy!r}"
            fail(OptimError, what, "'cos' or 'linear'", anneal_strategy=strategy)

    @property
    def _schedule_phases(self) -> list[dict[str, Any]]:
        """The last step of each phase, and the names of the rates and momenta at its ends, as in PyTorch."""
        rise = float(self.pct_start * self.total_steps) - 1
        ends = [(rise, "initial_lr", "max_lr"), (self.total_steps - 1, "max_lr", "min_lr")]
        if self.three_phase:
            ends[1:] = [(2 * rise, "max_lr", "initial_lr"), (self.total_steps - 1, "initial_lr", "min_lr")]
        phases = []
        for end, *rates in ends:
            start_momentum, end_momentum = ["base_momentum" if r == "max_lr" else "max_momentum" for r in rates]
            phases.append(
                {
                    "end_step": end,
                    "start_lr": rates[0],
                    "end_lr": rates[1],
                    "start_momentum": start_momentum,
                    "end_momentum": end_momentum,
                }
            )
        return phases

    def _interpolate(self, start: float, end: float, part: float) -> float:
        """The value at a fraction, 0 to 1, of the way from `start` to `end`."""
        if self._anneal_func_type == "linear":
            return (end - start) * part + start
        return end + (start - end) / 2 * (math.cos(math.pi * part) + 1)

    def get_lr(self) -> list[float]:
        now = self.last_epoch
        if now >= self.total_steps + 1:
            what = f"OneCycleLR: step {now} is beyond the total of {self.total_steps}"
            fail(OptimError, what, "total_steps=epochs * len(loader)", total_steps=self.total_steps)
        phases, start = self._schedule_phases, 0.0
        while now > phases[0]["end_step"] and len(phases) > 1:
            start = phases.pop(0)["end_step"]
        phase = phases[0]
        part = (now - start) / (phase["end_step"] - start) if phase["end_step"] != start else 1.0
        rates = []
        for i, group in enumerate(self.optimizer.param_groups):
            base = self.base_lrs[i]
            levels = {"initial_lr": base, "max_lr": self.max_lrs[i], "min_lr": base / self.final_div_factor, **group}
            rates.append(self._interpolate(levels[phase["start_lr"]], levels[phase["end_lr"]], part))
            if self.cycle_momentum:
                ends = group[phase["start_momentum"]], group[phase["end_momentum"]]
                self._set_momentum(group, self._interpolate(*ends, part))
        return rates

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "_schedule_phases": self._schedule_phases}

    def _with_our_entries(self, state: dict[str, Any]) -> dict[str, Any]:
        match state:
            case {"_schedule_phases": [{"end_step": int() | float() as rise}, *others], "total_steps": int() as total}:
                pct_start = (rise + 1) / total if total else self.pct_start
                return {"pct_start": pct_start, "three_phase": len(others) == 2, **state}
        return state


class CyclicLR(CyclicSchedule):
    """Rise from base_lr to max_lr in step_size_up steps and fall again in step_size_down, repeatedly.

    mode: "triangular"; "triangular2" halves the height at each cycle; "exp_range" scales it by gamma**step.  scale_fn:
    a custom scaling function instead, of the cycle or, with scale_mode="iterations", of the step; it is not saved.
    cycle_momentum: momentum falls from max_momentum to base_momentum while the rate rises, and back.
    Source: Smith 2017 (arXiv:1506.01186), section 3.
    """

    _names_in_files = {**CyclicSchedule._names_in_files, "bases": "base_lrs", "scale_fn": "_scale_fn_custom"}
    _derived_in_state = ("use_beta1", "total_size", "step_ratio", "_scale_fn_custom")

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
        self.mode, self.gamma, self._scale_fn_custom, self.cycle_momentum = mode, gamma, scale_fn, bool(cycle_momentum)
        self.scale_mode = scale_mode if scale_fn is not None else "iterations" if mode == "exp_range" else "cycle"
        self._check_arguments()
        base_lrs = per_group(self, "base_lr", base_lr, optimizer)
        self.max_lrs = per_group(self, "max_lr", max_lr, optimizer)
        self._set_momentum_range(base_momentum, max_momentum, optimizer)
        if isinstance(optimizer, Optimizer):
            for group, base in zip(optimizer.param_groups, base_lrs):
                group["lr"] = base

    def _check_arguments(self) -> None:
        for name in ("step_size_up", "step_size_down"):
            check_number(self, name)
        if not self.step_size_up >= 0 or not self.step_size_down >= 0 or self.step_size_up + self.step_size_down < 1e-6:
            what = f"CyclicLR: a cycle of {self.step_size_up} steps up and {self.step_size_down} down"
            hint = "step_size_up=2000"
            fail(OptimError, what, hint, step_size_up=self.step_size_up, step_size_down=self.step_size_down)
        check_number(self, "gamma")
        if self._scale_fn_custom is None and self.mode not in ("triangular", "triangular2", "exp_range"):
            what = f"CyclicLR: mode cannot be {self.mode!r}"
            fail(OptimError, what, "'triangular', 'triangular2' or 'exp_range'", mode=self.mode)

    @property
    def total_size(self) -> float:
        """Number of steps of a cycle."""
        return float(self.step_size_up + self.step_size_down)

    @property
    def step_ratio(self) -> float:
        """Fraction of a cycle in which the rate rises."""
        return self.step_size_up / self.total_size

    def _begin(self) -> None:
        self.base_lrs = self._current_lrs()  # not the rate that the optimizer was created with
        super()._begin()

    def _scale(self, cycle: int) -> float:
        """The scale of the height of this cycle."""
        at = cycle if self.scale_mode == "cycle" else self.last_epoch
        if self._scale_fn_custom is not None:
            return float(self._scale_fn_custom(at))
        if self.mode == "triangular":
            return 1.0
        return float_power(0.5, cycle - 1) if self.mode == "triangular2" else float_power(self.gamma, at)

    def get_lr(self) -> list[float]:
        whole, turn = self.total_size, self.step_ratio
        cycle = math.floor(1 + self.last_epoch / whole)
        x = 1.0 + self.last_epoch / whole - cycle
        height = (x / turn if turn else 0.0) if x <= turn else (x - 1) / (turn - 1)
        if self.cycle_momentum:
            for group, low, high in zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums):
                self._set_momentum(group, high - (high - low) * height * self._scale(cycle))
        return [base + (top - base) * height * self._scale(cycle) for base, top in zip(self.base_lrs, self.max_lrs)]

    def state_dict(self) -> dict[str, Any]:
        scale = function_state(self._scale_fn_custom)
        derived = {"total_size": self.total_size, "step_ratio": self.step_ratio, "_scale_fn_custom": scale}
        return {**super().state_dict(), **derived}

    def _convert_state(self, current: Mapping[str, Any], saved: Mapping[str, Any]) -> tuple[dict[str, Any], Writes]:
        result, writes = super()._convert_state(current, saved)
        return result, [*writes, *function_writes(self, self._scale_fn_custom, saved.get("_scale_fn_custom"))]

    def _with_our_entries(self, state: dict[str, Any]) -> dict[str, Any]:
        match state:
            case {"total_size": int() | float() as size, "step_ratio": int() | float() as ratio}:
                return {"step_size_up": size * ratio, "step_size_down": size - size * ratio, **state}
        return state
