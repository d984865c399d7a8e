"""Schedules of schedules: in sequence, after a warm-up, or all at once. Read next: `base.py`."""

from __future__ import annotations

import copy
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

from ...core.base.errors import OptimError
from ...core.mode import MODE
from ...core.source_location import fail
from ...nn.loading import Writes, refuse
from ..optimizer import Optimizer
from .base import LRScheduler, check_count
from .factors import ConstantLR, LinearLR
from .plateau import ReduceLROnPlateau


class CompositeSchedule(LRScheduler):
    """Base class of schedules that contain `schedulers`, whose states are part of their own."""

    _schedulers: list[LRScheduler]
    _names_in_files = {**LRScheduler._names_in_files, "schedulers": "_schedulers"}
    _optional_in_state: tuple[str, ...] = ("verbose", "base_lrs", "_step_count")

    @property
    def _graph_refusal(self) -> str:  # type: ignore[override]
        return next((why for scheduler in self._schedulers if (why := scheduler._graph_refusal)), "")

    def _members(self, schedulers: Any, optimizer: Any) -> list[LRScheduler]:
        """The schedulers, each checked to belong to this optimizer."""
        owner, listed = type(self).__name__, list(schedulers)
        for i, scheduler in enumerate(listed):
            if isinstance(scheduler, ReduceLROnPlateau):
                what = f"{owner}: entry {i} is a ReduceLROnPlateau, whose step needs a metric"
                fail(OptimError, what, "step it separately: plateau.step(loss)", entry=i)
            if not isinstance(scheduler, LRScheduler) or scheduler.optimizer is not optimizer:
                what = f"{owner}: entry {i} is not a scheduler of this optimizer"
                hint = "create every scheduler with the optimizer given here"
                fail(OptimError, what, hint, entry=type(scheduler).__name__)
        return listed

    def _undo_first_step(self) -> None:
        """Undo the first step that each schedule took when it was created."""
        for scheduler in self._schedulers:
            if isinstance(scheduler, CompositeSchedule):
                scheduler._undo_first_step()
            else:
                scheduler.last_epoch -= 1

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "_schedulers": [scheduler.state_dict() for scheduler in self._schedulers]}

    def _convert_state(self, current: Mapping[str, Any], saved: Mapping[str, Any]) -> tuple[dict[str, Any], Writes]:
        states, owner = saved["_schedulers"], type(self).__name__
        if not isinstance(states, list | tuple) or len(states) != len(self._schedulers):
            what = f"it must have a list of the states of {len(self._schedulers)} schedulers"
            refuse(owner, what, "the state_dict of a scheduler of the same class", schedulers=states)
        result, writes = super()._convert_state({k: v for k, v in current.items() if k != "_schedulers"}, saved)
        for scheduler, state in zip(self._schedulers, states):
            writes += scheduler._checked_state(state)
        return result, writes


class SequentialLR(CompositeSchedule):
    """One schedule after another, switching to the next one at each step in `milestones`.

    interval_rescaling: False lets the next schedule continue to count from the first step, as in OneFlow; True or None
    (as in PyTorch) starts it at its own step 0. One bool, or one for each schedule.
    """

    _names_in_files = {**CompositeSchedule._names_in_files, "milestones": "_milestones", "anew": "_rescaling"}
    _optional_in_state = (*CompositeSchedule._optional_in_state, "_rescaling")

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: Sequence[LRScheduler],
        milestones: Sequence[int],
        interval_rescaling: bool | Sequence[bool] | None = None,
        last_epoch: int = -1,
        verbose: bool = False,
        *,
        last_step: int | None = None,
    ):
        schedulers, milestones = list(schedulers), list(milestones)
        if type(interval_rescaling) is int:  # last_epoch is at this position in PyTorch
            interval_rescaling, last_epoch = None, interval_rescaling
        if not schedulers or len(milestones) != len(schedulers) - 1:
            fail(
                OptimError,
                f"SequentialLR: {len(schedulers)} schedulers and {len(milestones)} milestones; "
                "there must be one milestone between each two",
                "SequentialLR(optimizer, [warmup, decay], milestones=[5])",
                schedulers=len(schedulers),
                milestones=milestones,
            )
        schedulers = self._members(schedulers, optimizer)
        rescaling = interval_rescaling if isinstance(interval_rescaling, list | tuple) else [interval_rescaling]
        if not all(x is None or isinstance(x, bool) for x in rescaling):
            what = f"SequentialLR: interval_rescaling cannot be {interval_rescaling!r}"
            fail(OptimError, what, "True or False, or one for each schedule", interval_rescaling=interval_rescaling)
        # for each schedule, whether it starts at its own step 0
        self._rescaling = (
            list(interval_rescaling)
            if isinstance(interval_rescaling, Sequence)
            else [interval_rescaling is not False] * len(schedulers)
        )
        self.optimizer, self.verbose, self._is_initial = optimizer, verbose, False
        self._schedulers, self._milestones, self._step_count = schedulers, milestones, 1
        self._check_arguments()
        self.last_epoch = (last_epoch if last_step is None else last_step) + 1
        self.base_lrs = [float(group["initial_lr"]) for group in optimizer.param_groups]
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"]
        self._undo_first_step()
        schedulers[bisect_right(milestones, 0)]._begin()
        self._last_lr = self._current_lrs()

    def _begin(self) -> None:
        self._schedulers[0]._begin()
        self._last_lr = self._current_lrs()

    def step(self, epoch: int | None = None) -> None:
        """Advance the schedule whose turn it is by one step."""
        if epoch is not None:
            fail(OptimError, "SequentialLR cannot jump to a step", "scheduler.step() without an argument", epoch=epoch)
        MODE.get().before_schedule(self)
        self.last_epoch += 1
        turn = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[turn]
        if not self._rescaling[turn] and turn:
            scheduler._move(self.last_epoch)
        elif turn and self._milestones[turn - 1] == self.last_epoch:
            scheduler._move(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()

    def _check_arguments(self) -> None:
        milestones = self._milestones
        whole = all(isinstance(n, Integral) for n in milestones)
        if not whole or any(a >= b for a, b in zip([0, *milestones], milestones)):
            what = f"SequentialLR: milestones must be in ascending order, got {milestones}"
            fail(OptimError, what, "steps in ascending order, above 0", milestones=milestones)
        if len(self._schedulers) != len(milestones) + 1 or len(self._schedulers) != len(self._rescaling):
            fail(
                OptimError,
                f"SequentialLR: {len(self._schedulers)} schedulers, {len(milestones)} milestones and "
                f"{len(self._rescaling)} of interval_rescaling",
                "a state of the same schedules",
                milestones=milestones,
            )


class WarmupLR(SequentialLR):
    """`warmup_iters` steps with a smaller rate before a schedule, or before the constant rate of an optimizer.

    warmup_factor: the initial fraction of the rate.  warmup_method: "linear" rises to the rate of the schedule at its
    step warmup_iters, "constant" stays at the factor.  warmup_prefix: the schedule begins at its own step 0 after the
    warm-up; else it counts from the first step. From OneFlow, where it is also called WarmUpLR.
    """

    def __init__(
        self,
        scheduler_or_optimizer: LRScheduler | Optimizer,
        warmup_factor: float = 1.0 / 3,
        warmup_iters: int = 5,
        warmup_method: str = "linear",
        warmup_prefix: bool = False,
        last_step: int = -1,
        verbose: bool = False,
    ):
        inner = scheduler_or_optimizer if isinstance(scheduler_or_optimizer, LRScheduler) else None
        optimizer = inner.optimizer if inner is not None else scheduler_or_optimizer
        self.warmup_factor, self.warmup_iters, self.warmup_prefix = warmup_factor, warmup_iters, bool(warmup_prefix)
        self.warmup_method = warmup_method
        check_count(self, "warmup_iters", 0)
        if not isinstance(optimizer, Optimizer) or (inner is None and warmup_iters == 0):
            fail(
                OptimError,
                f"WarmupLR takes an optimizer and at least one step, or a scheduler, not a "
                f"{type(optimizer).__name__} and {warmup_iters} steps",
                "WarmupLR(CosineDecayLR(optimizer, 100))",
                warmup_iters=warmup_iters,
            )
        if warmup_method not in ("linear", "constant"):
            what = f"WarmupLR: warmup_method must be 'linear' or 'constant', got {warmup_method!r}"
            fail(OptimError, what, "'linear' or 'constant'", warmup_method=warmup_method)
        schedulers = [] if inner is None else [inner]
        if warmup_iters:
            schedulers.insert(0, self._make_warmup(optimizer, inner, last_step))
        milestones = [warmup_iters] if len(schedulers) == 2 else []
        super().__init__(
            optimizer, schedulers, milestones, [True, self.warmup_prefix][: len(schedulers)], last_step, verbose
        )

    def _make_warmup(self, optimizer: Optimizer, inner: LRScheduler | None, last_step: int) -> LRScheduler:
        """Make the schedule of the first steps. It begins at the initial rate, even if `inner` has changed the rate."""
        for group in optimizer.param_groups:
            group["lr"] = group.get("initial_lr", group["lr"])
        if self.warmup_method == "constant":
            return ConstantLR(optimizer, self.warmup_factor, self.warmup_iters, last_step)
        end = 1.0
        if inner is not None and not self.warmup_prefix:
            if len(set(inner.base_lrs)) > 1 or not inner.base_lrs[0]:
                what = "WarmupLR: the groups have different rates, so one rise does not fit them all"
                fail(OptimError, what, "warmup_prefix=True, or an optimizer for each", rates=inner.base_lrs)
            later = copy.copy(inner)
            later.last_epoch = self.warmup_iters
            end = later._closed_form()[0] / inner.base_lrs[0]
        return LinearLR(optimizer, self.warmup_factor, end, self.warmup_iters, last_step)


class ChainedScheduler(CompositeSchedule):
    """Several schedules at once: each multiplies the rate that the previous ones produced."""

    _optional_in_state = (*CompositeSchedule._optional_in_state, "last_epoch")

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None):
        listed = list(schedulers)
        if not listed:
            fail(OptimError, "ChainedScheduler needs at least one scheduler", "ChainedScheduler([warmup, decay])")
        own: Any = optimizer if optimizer is not None else getattr(listed[0], "optimizer", None)
        self.optimizer = own
        self._schedulers, self._step_count = self._members(listed, self.optimizer), 1
        self.verbose = self._is_initial = False
        self.last_epoch, self.base_lrs = listed[-1].last_epoch, list(listed[-1].base_lrs)
        self._last_lr = self._current_lrs()

    def _begin(self) -> None:
        for scheduler in self._schedulers:
            scheduler._begin()
        self._last_lr = self._current_lrs()

    def step(self, epoch: int | None = None) -> None:
        """Advance each scheduler by one step."""
        MODE.get().before_schedule(self)
        for scheduler in self._schedulers:
            scheduler.step() if epoch is None else scheduler.step(epoch)
        self.last_epoch, self._last_lr = self._schedulers[-1].last_epoch, self._current_lrs()

    def _move(self, epoch: int | None) -> None:
        """Let each scheduler set its learning rates, in order."""
        for scheduler in self._schedulers:
            scheduler._move(epoch)
        self.last_epoch, self._last_lr = self._schedulers[-1].last_epoch, self._current_lrs()

    def _with_our_entries(self, state: dict[str, Any]) -> dict[str, Any]:
        states = state.get("_schedulers")
        last = states[-1] if isinstance(states, list | tuple) and states else None
        return {"last_epoch": last["last_epoch"], **state} if isinstance(last, dict) and "last_epoch" in last else state
