"""LRScheduler: the step, rates and state common to all schedules, and checks of their arguments.

Independent of particular schedules. Read next: `factors.py`.
"""

from __future__ import annotations

import copy
import functools
import inspect
import math
from collections.abc import Callable, Mapping
from numbers import Integral
from typing import Any

from ...core.base.errors import OptimError, with_article
from ...core.mode import MODE
from ...core.source_location import fail, warn
from ...nn.loading import MAX_COUNT, MAX_DEPTH, Refused, Writes, as_refusal, copy_matching, refuse, write
from ..groups import as_number, check_range
from ..optimizer import Optimizer
from ..renamed_hooks import RenamedHook

# names of entries in PyTorch's states, and our entries that those states lack
PYTORCH_NAMES = {"_step_count": "count", "_last_lr": "rates", "_schedulers": "schedulers"}
# methods of PyTorch's schedulers that are not called here
NOT_CALLED = {
    "_initial_step": "def __init__(self, optimizer): super().__init__(optimizer), and what comes after the first rates",
    "_update_lr": "def get_lr(self): return [a rate for each group]; or a step() of its own",
}
UNSAVED_ATTRIBUTES = ("optimizer", "initial")  # attributes that a state omits


class LRScheduler:
    """Base class. A subclass defines `get_lr()`, the rates of all groups at `self.last_epoch`; it may define
    `_get_closed_form_lr()`, for jumps to a step, or its own `step()`.

    last_epoch: the number of steps taken when continuing a saved schedule, else -1 (OneFlow calls it last_step).
    """

    graph_refusal = ""  # why a graph cannot step it, or ""
    present = RenamedHook("current_lrs")
    _get_lr_called_within_step = True  # user programs check it in `get_lr`; it is not used otherwise

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name, hint in NOT_CALLED.items():
            if name in vars(cls):
                what = f"{cls.__name__} defines {name}, which is not called here"
                fail(OptimError, what, hint, method=vars(cls)[name])

    def __init__(
        self, optimizer: Optimizer, last_epoch: int = -1, verbose: bool = False, *, last_step: int | None = None
    ):
        if not isinstance(optimizer, Optimizer):
            what = f"{type(self).__name__} takes an optimizer, not a {type(optimizer).__name__}"
            fail(OptimError, what, f"{type(self).__name__}(optimizer, ...)", optimizer=optimizer)
        last_epoch = last_epoch if last_step is None else last_step
        self.optimizer, self.verbose = optimizer, verbose
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", float(group["lr"]))
            elif "initial_lr" not in group:
                what = f"{type(self).__name__} cannot continue after step {last_epoch}: group {i} has no initial_lr"
                hint = "optimizer.load_state_dict(...) first, or last_epoch=-1 for a new schedule"
                fail(OptimError, what, hint, last_epoch=last_epoch)
        self.base_lrs = [float(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self.begin()

    @property
    def last_step(self) -> int:
        """OneFlow's name for last_epoch."""
        return self.last_epoch

    @property
    def _step_count(self) -> int:
        return self.count

    @_step_count.setter
    def _step_count(self, count: int) -> None:
        self.count = count

    @property
    def _is_initial(self) -> bool:
        return self.initial

    @property
    def _last_lr(self) -> list[float]:
        return self.rates

    @_last_lr.setter
    def _last_lr(self, rates: list[float]) -> None:
        self.rates = rates

    def begin(self) -> None:
        """Set the rates of the first step, with the subclass's own step() if it has one."""
        self.count, self.initial = 0, True
        if type(self).step is LRScheduler.step:
            self.move(None)
        else:
            self.rates = self.current_lrs()
            self.step()
        self.count, self.initial = 1, False

    def step(self, epoch: int | None = None) -> None:
        """Advance by one step, or to step `epoch`. Call it after `optimizer.step()`."""
        if (mode := MODE.get()).watch is not None:
            mode.watch.refuse_step(self, "step")
        mode.before_schedule(self)
        if self.count == 1 and self.optimizer.steps == 0 and not self.initial:
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
        """Set the learning rates of the next epoch, or of the given one."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        rates = self.get_lr() if epoch is None else self.closed_form()
        for group, rate in zip(self.optimizer.param_groups, rates):
            group["lr"] = rate
        self.rates = self.current_lrs()
        if self.verbose and not self.initial:
            print(f"step {self.last_epoch}: lr = {', '.join(f'{rate:g}' for rate in self.rates)}")

    def get_lr(self) -> list[float]:
        """Return the rates of all groups at `self.last_epoch`, perhaps from the `current_lrs()` of the previous one."""
        what = f"{type(self).__name__} does not define get_lr"
        fail(OptimError, what, "def get_lr(self): return [a rate for each group]")
        return []

    def closed_form(self) -> list[float]:
        """Return the rates at `self.last_epoch`, computed without those of the previous step."""
        own = getattr(self, "_get_closed_form_lr", None)
        return self.get_lr() if own is None else own()

    def current_lrs(self) -> list[float]:
        """The current rates of the groups."""
        return [float(group["lr"]) for group in self.optimizer.param_groups]

    def get_last_lr(self) -> list[float]:
        """The rate of each group, as last set by this schedule."""
        return list(self.rates)

    def state_dict(self) -> dict[str, Any]:
        """Return all attributes except the optimizer: numbers, lists and dicts."""
        return {key: value for key, value in self.__dict__.items() if key not in UNSAVED_ATTRIBUTES}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continue from a `state_dict()`, or raise StateError and change nothing. The rates themselves are in the
        optimizer's state_dict.
        """
        write(self.checked_state(state_dict))

    def checked_state(self, state_dict: Mapping[str, Any]) -> Writes:
        """Return the writes that loading would perform; see `../nn/loading.py`."""
        owner, hint = type(self).__name__, "the state_dict of a scheduler of the same class"
        if not isinstance(state_dict, Mapping):
            refuse(owner, f"state_dict must be a dict, got {with_article(state_dict)}", hint, state_dict=state_dict)
        current = self.state_dict()
        if "_step_count" in state_dict:  # PyTorch's
            state_dict = {PYTORCH_NAMES.get(key, key): value for key, value in state_dict.items()}
            state_dict = {"verbose": self.verbose, **{k: v for k, v in state_dict.items() if k[:1] != "_"}}
        missing = [key for key in current if key not in state_dict]
        unknown = [key for key in state_dict if key not in current and key != "optimizer"]
        if missing or unknown:
            refuse(
                owner,
                f"{len(missing)} entries missing, {len(unknown)} unknown",
                hint,
                missing=", ".join(missing) or "none",
                unknown=", ".join(map(str, unknown)) or "none",
            )
        result, writes = self.convert_state(current, state_dict)
        trial = copy.copy(self)
        trial.__dict__.update(result)
        as_refusal(owner, trial.check)
        as_refusal(owner, trial.check_progress)
        return [*writes, lambda: self.__dict__.update(result)]

    def convert_state(self, current: Mapping[str, Any], saved: Mapping[str, Any]) -> tuple[dict[str, Any], Writes]:
        """(attributes by name, each of its current type; other writes)."""
        result = {}
        for name, value in current.items():
            try:
                result[name] = copy_matching(value, saved[name])
            except Refused as reason:
                what = f"{name} cannot be loaded: {reason}"
                hint = "the state_dict of a scheduler of the same class"
                refuse(type(self).__name__, what, hint, current=value, saved=saved[name])
        return result, []

    def check(self) -> None:
        """Refuse attributes for which this schedule has no rate, after creation and after loading."""

    def check_progress(self) -> None:
        """Refuse a step or rates that no schedule of this optimizer can reach."""
        # Each enclosing schedule undoes the first step, so last_epoch may be below 0.
        for name, low in (("last_epoch", -MAX_DEPTH), ("count", 0)):
            check_count(self, name, low)
        for name in ("base_lrs", "rates"):
            if len(getattr(self, name)) != len(self.optimizer.param_groups):
                fail(
                    OptimError,
                    f"{type(self).__name__}: {name} has {len(getattr(self, name))} rates, "
                    f"and the optimizer {len(self.optimizer.param_groups)} groups",
                    "one for each group",
                    **{name: getattr(self, name)},
                )
        for rate in self.base_lrs:
            check_range(type(self).__name__, {"base_lrs": rate}, "base_lrs")


def check_count(scheduler: LRScheduler, name: str, low: int) -> None:
    """Refuse an attribute unless it is an integer of at least `low`."""
    value = getattr(scheduler, name)
    if isinstance(value, bool) or not isinstance(value, Integral) or not low <= int(value) <= MAX_COUNT:
        what = f"{type(scheduler).__name__}: {name} must be an integer of at least {low}, got {value!r}"
        fail(OptimError, what, f"{name}=30", **{name: value})


def check_number(scheduler: LRScheduler, name: str) -> None:
    """Refuse an attribute unless it is a finite number."""
    value = getattr(scheduler, name)
    if not math.isfinite(as_number(type(scheduler).__name__, name, value)):
        what = f"{type(scheduler).__name__}: {name} must be finite, got {value!r}"
        fail(OptimError, what, f"{name}=0.1", **{name: value})


def check_fraction(scheduler: LRScheduler, name: str) -> None:
    """Refuse an attribute unless it is a number from 0 to 1."""
    check_range(type(scheduler).__name__, {name: getattr(scheduler, name)}, name, 0.0, 1.0)


def float_power(x: float, n: float) -> float:
    """x ** n as a float; Python would raise on overflow, or create a huge integer."""
    try:
        return float(x) ** n
    except ArithmeticError:  # too large, or 0 ** -1
        return math.inf if x >= 0 or n % 2 == 0 else -math.inf


def takes_scheduler_args(init: Callable) -> Callable:
    """Append the arguments of LRScheduler to those of a schedule's `__init__`, which declares only its own."""
    own = inspect.signature(init).parameters
    _, _, *common = inspect.signature(LRScheduler.__init__).parameters.values()  # after self and optimizer
    whole = inspect.Signature(sorted([*own.values(), *common], key=lambda p: p.kind))

    @functools.wraps(init)
    def __init__(self: LRScheduler, *args: Any, **options: Any) -> None:
        passed = whole.bind(self, *args, **options).arguments
        init(**{name: value for name, value in passed.items() if name in own})
        self.check()
        LRScheduler.__init__(self, passed["optimizer"], **{k: v for k, v in passed.items() if k not in own})

    __init__.__signature__ = whole  # type: ignore[attr-defined]
    return __init__
