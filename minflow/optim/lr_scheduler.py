"""Learning rate schedules: objects whose `step()`, called after the optimizer's, sets `group["lr"]`.

The numbers are PyTorch's: each schedule goes on from the present `group["lr"]`, so that schedules can be chained and a
user's own change counts; one that has to jump to a step uses its closed form.
Knows nothing of how an optimizer uses the rate. Read next: `optimizer.py`.
"""

from __future__ import annotations

import copy
import functools
import inspect
import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..core.messages.near import name_hints as _name_hints
from ..core.base.errors import OptimError
from ..core.mode import MODE
from ..core.where import fail, warn
from ..nn.loading import LARGEST, Refused, Writes, as_refusal, like, refuse, write
from .groups import as_number, check_range
from .optimizer import Optimizer


class LRScheduler:
    """Base class: a subclass gives `get_lr()`, the rates of all groups at `self.last_epoch`.

    last_epoch: how many steps were taken when going on with a saved schedule, else -1 (OneFlow calls it last_step).
    """

    def __init__(
        self, optimizer: Optimizer, last_epoch: int = -1, verbose: bool = False, *, last_step: int | None = None
    ):
        if not isinstance(optimizer, Optimizer):
            fail(
                OptimError,
                f"{type(self).__name__} takes an optimizer, not a {type(optimizer).__name__}",
                f"{type(self).__name__}(optimizer, ...)",
                optimizer=optimizer,
            )
        last_epoch = last_epoch if last_step is None else last_step
        self.optimizer, self.verbose = optimizer, verbose
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", float(group["lr"]))
            elif "initial_lr" not in group:
                fail(
                    OptimError,
                    f"{type(self).__name__} is to go on after step {last_epoch}, but group {i} has no initial_lr",
                    "optimizer.load_state_dict(...) first, or last_epoch=-1 for a new schedule",
                    last_epoch=last_epoch,
                )
        self.base_lrs = [float(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self.begin()

    @property
    def last_step(self) -> int:
        """OneFlow's name of last_epoch."""
        return self.last_epoch

    def begin(self) -> None:
        """Set the rates of the first step."""
        self.count, self.initial = 0, True
        self.move(None)
        self.count, self.initial = 1, False

    def step(self, epoch: int | None = None) -> None:
        """Go one step on, or to step `epoch`. Call it after `optimizer.step()`."""
        if (mode := MODE.get()).watch is not None:
            mode.watch.refuse_step(self, "step")
        mode.before_schedule(self)
        if self.count == 1 and self.optimizer.steps == 0:
            warn(
                f"{type(self).__name__}.step comes before the first optimizer.step(), "
                "so the schedule's first rate is never used",
                "call optimizer.step() first, then scheduler.step(); to keep this order, silence it by "
                'warnings.filterwarnings("ignore", category=flow.MinflowWarning)',
                rates=self.base_lrs,
            )
        self.count += 1
        self.move(epoch)

    def move(self, epoch: int | None) -> None:
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        rates = self.get_lr() if epoch is None else self.closed_form()
        for group, rate in zip(self.optimizer.param_groups, rates):
            group["lr"] = rate
        self.rates = self.present()
        if self.verbose and not self.initial:
            print(f"step {self.last_epoch}: lr = {', '.join(f'{rate:g}' for rate in self.rates)}")

    def get_lr(self) -> list[float]:
        """The rates of all groups at `self.last_epoch`; they may go on from `present()`, those of the step before."""
        fail(
            OptimError,
            f"{type(self).__name__} does not say its rates",
            "def get_lr(self): return [a rate for each group]",
        )
        return []

    def closed_form(self) -> list[float]:
        """The rates at `self.last_epoch`, without looking at those of the step before."""
        return self.get_lr()

    def present(self) -> list[float]:
        """The rates that the groups have now."""
        return [float(group["lr"]) for group in self.optimizer.param_groups]

    def get_last_lr(self) -> list[float]:
        """The rate of each group, as this schedule last set it."""
        return list(self.rates)

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer: numbers, lists and dicts."""
        return {key: value for key, value in self.__dict__.items() if key not in ("optimizer", "initial")}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on where `state_dict` was taken, or raise StateError and change nothing. The rates themselves are in the
        optimizer's state_dict."""
        write(self.checked_state(state_dict))

    def checked_state(self, state_dict: Mapping[str, Any]) -> Writes:
        """What loading would write; see `../nn/loading.py`."""
        owner, hint = type(self).__name__, "the state_dict of a scheduler of the same class"
        if not isinstance(state_dict, Mapping):
            refuse(owner, f"a dict is wanted, not a {type(state_dict).__name__}", hint, state_dict=state_dict)
        present = self.state_dict()
        missing = [key for key in present if key not in state_dict]
        unknown = [key for key in state_dict if key not in present and key != "optimizer"]
        if missing or unknown:
            refuse(owner, f"{len(missing)} entries missing, {len(unknown)} unknown", hint,
                   missing=", ".join(missing) or "none", unknown=", ".join(map(str, unknown)) or "none")
        result, writes = self.taken(present, state_dict)
        trial = copy.copy(self)
        trial.__dict__.update(result)
        as_refusal(owner, lambda: (trial.check(), trial.check_progress()))
        return [*writes, lambda: self.__dict__.update(result)]

    def taken(self, present: Mapping[str, Any], saved: Mapping[str, Any]) -> tuple[dict[str, Any], Writes]:
        """(attributes by name, each of the kind that it has now; what else is to be written)."""
        result = {}
        for name, value in present.items():
            try:
                result[name] = like(value, saved[name])
            except Refused as reason:
                refuse(type(self).__name__, f"{name} cannot be loaded: {reason}",
                       "the state_dict of a scheduler of the same class", now=value, given=saved[name])
        return result, []

    def check(self) -> None:
        """Refuse attributes with which this schedule has no rate: after its arguments, and after a load."""

    def check_progress(self) -> None:
        """Refuse a step or rates that no schedule of this optimizer has come to."""
        for name, low in (("last_epoch", -1), ("count", 0)):
            check_count(self, name, low)
        for name in ("base_lrs", "rates"):
            if len(getattr(self, name)) != len(self.optimizer.param_groups):
                fail(OptimError, f"{type(self).__name__}: {name} has {len(getattr(self, name))} rates, "
                     f"and the optimizer {len(self.optimizer.param_groups)} groups", "one for each group",
                     **{name: getattr(self, name)})
        for rate in self.base_lrs:
            check_range(type(self).__name__, {"base_lrs": rate}, "base_lrs")


def check_count(scheduler: LRScheduler, name: str, low: int) -> None:
    """Refuse an attribute that is no whole number from `low` on."""
    value = getattr(scheduler, name)
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not low <= value <= LARGEST:
        fail(OptimError,
             f"{type(scheduler).__name__}: {name} is {value!r}, and must be a whole number of steps, at least {low}",
             f"{name}=30", **{name: value})


def check_number(scheduler: LRScheduler, name: str) -> None:
    """Refuse an attribute that is no finite number."""
    value = getattr(scheduler, name)
    if not math.isfinite(as_number(type(scheduler).__name__, name, value)):
        fail(OptimError, f"{type(scheduler).__name__}: {name} is {value!r}, and must be finite", f"{name}=0.1",
             **{name: value})


def power(gamma: float, n: int) -> float:
    """gamma ** n, where Python raises for what is too large."""
    try:
        return gamma**n
    except OverflowError:
        return math.inf if gamma > 0 or n % 2 == 0 else -math.inf


def schedule(init: Callable) -> Callable:
    """The `__init__` of a schedule, from one of its own arguments alone: LRScheduler's stand after them."""
    own = inspect.signature(init).parameters
    _, _, *common = inspect.signature(LRScheduler.__init__).parameters.values()  # after self and optimizer
    whole = inspect.Signature([*own.values(), *common])

    @functools.wraps(init)
    def __init__(self: LRScheduler, *args: Any, **options: Any) -> None:
        passed = whole.bind(self, *args, **options).arguments
        init(**{name: value for name, value in passed.items() if name in own})
        self.check()
        LRScheduler.__init__(self, passed["optimizer"], **{k: v for k, v in passed.items() if k not in own})

    __init__.__signature__ = whole  # type: ignore[attr-defined]
    return __init__


class LambdaLR(LRScheduler):
    """The initial rate times `lr_lambda(step)`; one function for all groups, or a list with one for each.

    Functions are not saved by state_dict; the attributes of callable objects are.
    """

    @schedule
    def __init__(self, optimizer: Optimizer, lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]]):
        groups = len(optimizer.param_groups) if isinstance(optimizer, Optimizer) else 0
        self.lr_lambdas = list(lr_lambda) if isinstance(lr_lambda, Sequence) else [lr_lambda] * groups
        if len(self.lr_lambdas) != groups and groups:
            fail(
                OptimError,
                f"LambdaLR: {len(self.lr_lambdas)} functions for {groups} parameter groups",
                "one function, or one for each group",
                functions=len(self.lr_lambdas),
                groups=groups,
            )
        if not all(callable(function) for function in self.lr_lambdas):
            fail(
                OptimError,
                "LambdaLR takes a function of the step",
                "LambdaLR(optimizer, lambda step: 0.95**step)",
                lr_lambda=lr_lambda,
            )

    def get_lr(self) -> list[float]:
        return [base * float(function(self.last_epoch)) for base, function in zip(self.base_lrs, self.lr_lambdas)]

    def state_dict(self) -> dict[str, Any]:
        kept = [
            None if not hasattr(f, "__dict__") or hasattr(f, "__code__") else dict(vars(f)) for f in self.lr_lambdas
        ]
        return {**super().state_dict(), "lr_lambdas": kept}

    def taken(self, present: Mapping[str, Any], saved: Mapping[str, Any]) -> tuple[dict[str, Any], Writes]:
        owner, kept, new = "LambdaLR", present["lr_lambdas"], saved["lr_lambdas"]
        result, writes = super().taken({k: v for k, v in present.items() if k != "lr_lambdas"}, saved)
        if not isinstance(new, list | tuple) or [x is None for x in new] != [x is None for x in kept]:
            refuse(owner, "lr_lambdas are of other functions", "a LambdaLR with the same functions", given=new)
        for function, now, attributes in zip(self.lr_lambdas, kept, new):
            if now is None:
                continue
            if not isinstance(attributes, Mapping) or attributes.keys() != now.keys():
                refuse(owner, "lr_lambdas have other attributes", "a LambdaLR with the same functions", now=now,
                       given=attributes)
            try:
                values = {name: like(value, attributes[name]) for name, value in now.items()}
            except Refused as reason:
                refuse(owner, f"an attribute of a function cannot be loaded: {reason}",
                       "a LambdaLR with the same functions", now=now)
            writes.append(lambda function=function, values=values: vars(function).update(values))
        return result, writes


class StepLR(LRScheduler):
    """The rate times gamma every `step_size` steps."""

    @schedule
    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1):
        self.step_size, self.gamma = step_size, gamma

    def check(self) -> None:
        check_count(self, "step_size", 1)
        check_number(self, "gamma")

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0 or self.last_epoch % self.step_size:
            return self.present()
        return [rate * self.gamma for rate in self.present()]

    def closed_form(self) -> list[float]:
        return [base * power(self.gamma, self.last_epoch // self.step_size) for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    """The rate times gamma at each of the steps in `milestones`; a step listed twice counts twice."""

    @schedule
    def __init__(self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1):
        if not isinstance(milestones, Iterable):
            fail(
                OptimError,
                f"MultiStepLR: milestones is {milestones!r}, where a list of steps is wanted",
                "milestones=[30, 80]",
                milestones=milestones,
            )
        self.milestones, self.gamma = Counter(milestones), gamma

    def check(self) -> None:
        check_number(self, "gamma")
        for step, times in self.milestones.items():
            whole = all(isinstance(n, int | np.integer) and not isinstance(n, bool) for n in (step, times))
            if not whole or max(abs(step), abs(times)) > LARGEST:
                fail(OptimError, f"MultiStepLR: {step!r} in milestones is no step", "milestones=[30, 80]",
                     milestones=dict(self.milestones))

    def get_lr(self) -> list[float]:
        return [rate * power(self.gamma, self.milestones[self.last_epoch]) for rate in self.present()]

    def closed_form(self) -> list[float]:
        passed = sum(times for step, times in self.milestones.items() if step <= self.last_epoch)
        return [base * power(self.gamma, passed) for base in self.base_lrs]

    def taken(self, present: Mapping[str, Any], saved: Mapping[str, Any]) -> tuple[dict[str, Any], Writes]:
        result, writes = super().taken(present, saved)
        return {**result, "milestones": Counter(result["milestones"])}, writes


class LinearLR(LRScheduler):
    """The initial rate times a factor that goes straight from start_factor to end_factor in total_iters steps."""

    @schedule
    def __init__(
        self, optimizer: Optimizer, start_factor: float = 1.0 / 3, end_factor: float = 1.0, total_iters: int = 5
    ):
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters

    def check(self) -> None:
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
                    f"LinearLR: {name} is {factor:g}, "
                    f"and must be {'above' if name[0] == 's' else 'at least'} 0 and at most 1",
                    "LinearLR(optimizer, start_factor=0.1, total_iters=5)",
                    start_factor=start_factor,
                    end_factor=end_factor,
                )

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return [rate * self.start_factor for rate in self.present()]
        if self.initial or self.last_epoch > self.total_iters:
            return self.present()
        rise = self.end_factor - self.start_factor
        return [
            rate * (1 + rise / (self.total_iters * self.start_factor + (self.last_epoch - 1) * rise))
            for rate in self.present()
        ]

    def closed_form(self) -> list[float]:
        part = min(self.total_iters, self.last_epoch) / self.total_iters if self.total_iters else 1.0
        return [base * (self.start_factor + (self.end_factor - self.start_factor) * part) for base in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """The rate along half a cosine, from the initial one down to eta_min in T_max steps, and up again.

    Source: Loshchilov & Hutter 2017 (arXiv:1608.03983), eq. 5, without restarts.
    """

    @schedule
    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0):
        self.T_max, self.eta_min = T_max, eta_min

    def check(self) -> None:
        check_number(self, "eta_min")
        is_number = isinstance(self.T_max, int | float | np.number) and not isinstance(self.T_max, bool)
        if not is_number or not 1e-9 <= self.T_max <= LARGEST:
            fail(
                OptimError,
                f"CosineAnnealingLR: T_max is {self.T_max!r}, and must be above 0",
                "T_max=number of steps of the whole training",
                T_max=self.T_max,
            )

    def get_lr(self) -> list[float]:
        if self.initial:
            return self.present()
        if self.count == 1 and self.last_epoch > 0:
            return self.closed_form()
        below = 1 + math.cos(math.pi * (self.last_epoch - 1) / self.T_max)
        if below == 0 or (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:  # just past the lowest point
            lift = (1 - math.cos(math.pi / self.T_max)) / 2
            return [rate + (base - self.eta_min) * lift for base, rate in zip(self.base_lrs, self.present())]
        quotient = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / below
        return [quotient * (rate - self.eta_min) + self.eta_min for rate in self.present()]

    def closed_form(self) -> list[float]:
        part = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * part for base in self.base_lrs]


class SequentialLR(LRScheduler):
    """One schedule after another: the next one begins at each of the steps in `milestones`.

    interval_rescaling: False lets the next schedule go on counting from the first step, as OneFlow does; True or None
    (PyTorch's way) starts it at its own step 0. One bool, or one for each schedule.
    """

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
        if type(interval_rescaling) is int:  # PyTorch has last_epoch in this place
            interval_rescaling, last_epoch = None, interval_rescaling
        if not schedulers or len(milestones) != len(schedulers) - 1:
            fail(
                OptimError,
                f"SequentialLR: {len(schedulers)} schedulers and {len(milestones)} milestones; "
                "one milestone between each two is wanted",
                "SequentialLR(optimizer, [warmup, decay], milestones=[5])",
                schedulers=len(schedulers),
                milestones=milestones,
            )
        for i, scheduler in enumerate(schedulers):
            if not isinstance(scheduler, LRScheduler) or scheduler.optimizer is not optimizer:
                fail(
                    OptimError,
                    f"SequentialLR: entry {i} is not a scheduler of this optimizer",
                    "make every scheduler with the optimizer given here",
                    entry=type(scheduler).__name__,
                )
        anew = interval_rescaling
        if not all(x is None or isinstance(x, bool) for x in (anew if isinstance(anew, list | tuple) else [anew])):
            fail(OptimError, f"SequentialLR: interval_rescaling is {anew!r}", "True or False, or one for each schedule",
                 interval_rescaling=anew)
        self.anew = list(anew) if isinstance(anew, Sequence) else [anew is not False] * len(schedulers)
        self.optimizer, self.verbose, self.initial = optimizer, verbose, False
        self.schedulers, self.milestones, self.count = schedulers, milestones, 1
        self.check()
        self.last_epoch = (last_epoch if last_step is None else last_step) + 1
        self.base_lrs = [float(group["initial_lr"]) for group in optimizer.param_groups]
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"]
        self.undo()
        schedulers[bisect_right(milestones, 0)].begin()
        self.rates = self.present()

    def undo(self) -> None:
        """Take back the first step that each schedule took when it was made."""
        for scheduler in self.schedulers:
            if isinstance(scheduler, SequentialLR):
                scheduler.undo()
            else:
                scheduler.last_epoch -= 1

    def begin(self) -> None:
        self.schedulers[0].begin()
        self.rates = self.present()

    def step(self, epoch: int | None = None) -> None:
        """Go one step on with the schedule whose turn it is."""
        if epoch is not None:
            fail(OptimError, "SequentialLR goes step by step", "scheduler.step() without a number", epoch=epoch)
        MODE.get().before_schedule(self)
        self.last_epoch += 1
        turn = bisect_right(self.milestones, self.last_epoch)
        scheduler = self.schedulers[turn]
        if not self.anew[turn] and turn:
            scheduler.move(self.last_epoch)
        elif turn and self.milestones[turn - 1] == self.last_epoch:
            scheduler.move(0)
        else:
            scheduler.step()
        self.rates = scheduler.get_last_lr()

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "schedulers": [scheduler.state_dict() for scheduler in self.schedulers]}

    def check(self) -> None:
        milestones = self.milestones
        whole = all(isinstance(n, int | np.integer) for n in milestones)
        if not whole or any(a >= b for a, b in zip([0, *milestones], milestones)):
            fail(
                OptimError,
                f"SequentialLR: milestones {milestones} do not rise",
                "steps in rising order, above 0",
                milestones=milestones,
            )
        if len(self.schedulers) != len(milestones) + 1 or len(self.schedulers) != len(self.anew):
            fail(OptimError, f"SequentialLR: {len(self.schedulers)} schedulers, {len(milestones)} milestones and "
                 f"{len(self.anew)} of interval_rescaling", "a state of the same schedules", milestones=milestones)

    def taken(self, present: Mapping[str, Any], saved: Mapping[str, Any]) -> tuple[dict[str, Any], Writes]:
        states = saved["schedulers"]
        if not isinstance(states, list | tuple) or len(states) != len(self.schedulers):
            refuse("SequentialLR", f"a list of the states of {len(self.schedulers)} schedulers is wanted",
                   "the state_dict of a scheduler of the same class", schedulers=states)
        result, writes = super().taken({k: v for k, v in present.items() if k != "schedulers"}, saved)
        for scheduler, state in zip(self.schedulers, states):
            writes += scheduler.checked_state(state)
        return result, writes


__all__ = ["CosineAnnealingLR", "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR", "SequentialLR", "StepLR"]
__getattr__ = _name_hints("flow.optim.lr_scheduler", globals())
