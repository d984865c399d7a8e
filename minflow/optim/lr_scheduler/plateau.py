"""ReduceLROnPlateau: lower the rate when a metric stops improving. Read next: `base.py`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...core.base.errors import OptimError
from ...core.source_location import fail
from ..groups import as_number, check_range
from ..optimizer import Optimizer
from .base import LRScheduler, check_number
from .cycles import per_group


class ReduceLROnPlateau(LRScheduler):
    """Multiply the rate by `factor` when a metric has not improved for more than `patience` steps:
    `scheduler.step(loss)`.

    mode: "min" or "max", the direction of improvement.  threshold: the least improvement, as a fraction of the best
    ("rel") or absolute ("abs", threshold_mode).  cooldown: steps after a change during which nothing is counted.
    min_lr: the lowest rate, one number or one for each group.  eps: smaller changes are ignored.
    """

    _optional_in_state = ("verbose", "base_lrs", "_step_count")
    _derived_in_state = ("mode_worse", "default_min_lr")  # read and not written
    _graph_refusal = "its step needs a metric (step it after the graph's call: scheduler.step(loss))"

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | Sequence[float] = 0.0,
        eps: float = 1e-8,
        verbose: bool = False,
    ):
        if not isinstance(optimizer, Optimizer):
            what = f"ReduceLROnPlateau takes an optimizer, not a {type(optimizer).__name__}"
            fail(OptimError, what, "ReduceLROnPlateau(optimizer, ...)", optimizer=optimizer)
        self.mode, self.factor, self.patience, self.threshold = mode, factor, patience, threshold
        self.threshold_mode, self.cooldown, self.eps, self.verbose = threshold_mode, cooldown, eps, verbose
        self.optimizer, self.min_lrs = optimizer, per_group(self, "min_lr", min_lr, optimizer)
        self._check_arguments()
        self.best = math.inf if mode == "min" else -math.inf
        self.cooldown_counter = self.num_bad_epochs = self.last_epoch = 0
        self.base_lrs, self._is_initial, self._step_count = self._current_lrs(), False, 1
        self._last_lr = self._current_lrs()

    def _check_arguments(self) -> None:
        for name, known in (("mode", ("min", "max")), ("threshold_mode", ("rel", "abs"))):
            if getattr(self, name) not in known:
                what = f"ReduceLROnPlateau: {name} cannot be {getattr(self, name)!r}"
                fail(OptimError, what, " or ".join(map(repr, known)), **{name: getattr(self, name)})
        for name in ("factor", "threshold", "patience", "cooldown", "eps"):
            check_number(self, name)
        if self.factor >= 1:
            check_range("ReduceLROnPlateau", {"factor": self.factor}, "factor", -math.inf, 1.0, below=True)

    def _check_progress(self) -> None:
        super()._check_progress()
        for name in ("cooldown_counter", "num_bad_epochs"):
            check_number(self, name)
        if math.isnan(as_number("ReduceLROnPlateau", "best", self.best)):
            what = "ReduceLROnPlateau: best must be a number, got nan: no metric would be better"
            fail(OptimError, what, "a state that was saved before the metric was NaN", best=self.best)
        if len(self.min_lrs) not in (1, len(self.optimizer.param_groups)):
            fail(
                OptimError,
                f"ReduceLROnPlateau: min_lrs must have a rate for each of the "
                f"{len(self.optimizer.param_groups)} groups, got {len(self.min_lrs)}",
                "min_lr=0.001",
                min_lrs=self.min_lrs,
            )
        for rate in self.min_lrs:
            check_range("ReduceLROnPlateau", {"min_lr": rate}, "min_lr")

    @property
    def in_cooldown(self) -> bool:
        """True during the cooldown."""
        return self.cooldown_counter > 0

    def _is_better(self, value: float, best: float) -> bool:
        """True if the metric improved by at least the threshold."""
        sign = -1 if self.mode == "min" else 1
        goal = best * (1 + sign * self.threshold) if self.threshold_mode == "rel" else best + sign * self.threshold
        return value < goal if self.mode == "min" else value > goal

    def step(self, metrics: Any = None, epoch: int | None = None) -> None:  # type: ignore[override]
        """Record a value of the metric, and lower the rate if necessary."""
        if metrics is None:
            fail(OptimError, "ReduceLROnPlateau.step needs the metric to watch", "scheduler.step(loss)")
        value = as_number("ReduceLROnPlateau.step", "metrics", metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(value, self.best):
            self.best, self.num_bad_epochs = value, 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr()
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = self._current_lrs()

    def _reduce_lr(self) -> None:
        """Multiply the learning rates by `factor`, but not below `min_lr`."""
        groups = self.optimizer.param_groups
        floors = self.min_lrs if len(self.min_lrs) == len(groups) else [self.min_lrs[0]] * len(groups)
        for group, low in zip(groups, floors):
            old = float(group["lr"])
            new = max(old * self.factor, low)
            if old - new > self.eps:
                group["lr"] = new
                if self.verbose:
                    print(f"step {self.last_epoch}: lr = {new:g}")
