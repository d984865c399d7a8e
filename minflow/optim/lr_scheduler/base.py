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

# methods of PyTorch's schedulers that are not called here
NOT_CALLED = {
    "_initial_step": "def __init__(self, optimizer): super().__init__(optimizer), and what comes after the first rates",
    "_update_lr": "def get_lr(self): return [a rate for each group]; or a step() of its own",
}
UNSAVED_ATTRIBUTES = ("optimizer", "_is_initial")
IGNORED_IN_STATE = ("optimizer", "_is_initial", "_get_lr_called_within_step")


class LRScheduler:
    """Base class. A subclass defines `get_lr()`, the rates of all groups at `self.last_epoch`; it may define
    `_get_closed_form_lr()`, for jumps to a step, or its own `step()`.

    last_epoch: the number of steps taken when continuing a saved schedule, else -1 (OneFlow calls it last_step).
    """

    _graph_refusal = ""  # why a graph cannot step it, or ""
    # attributes that a state of PyTorch lacks or replaces: they keep their values
    _optional_in_state: tuple[str, ...] = ("verbose",)
    _derived_in_state: tuple[str, ...] = ()  # entries of a state, as in PyTorch, that are not attributes
    # name of an attribute in files and in states of earlier versions -> its name
    _names_in_files: Mapping[str, str] = {"count": "_step_count", "rates": "_last_lr"}
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
        self._begin()

    @property
    def last_step(self) -> int:
        """OneFlow's name for last_epoch."""
        return self.last_epoch

    def _begin(self) -> None:
        """Set the rates of the first step, with the subclass's own step() if it has one."""
        self._step_count, self._is_initial = 0, True
        if type(self).step is LRScheduler.step:
            self._move(None)
        else:
            self._last_lr = self._current_lrs()
            self.step()
        self._step_count, self._is_initial = 1, False

    def step(self, epoch: int | None = None) -> None:
        """Advance by one step, or to step `epoch`. Call it after `optimizer.step()`."""
        if (mode := MODE.get()).watch is not None:
            mode.watch.refuse_step(self, "step")
        mode.before_schedule(self)
        if self._step_count == 1 and self.optimizer._steps_taken == 0 and not self._is_initial:
            warn(
                f"{type(self).__name__}.step comes before the first optimizer.step(), "
                "so the schedule's first rate is never used",
                "call optimizer.step() first, then scheduler.step(); to keep this order, silence it by "
                'warnings.filterwarnings("ignore", category=flow.MinflowWarning)',
                rates=self.base_lrs,
            )
        self._step_count += 1
        self._move(epoch)

    def _move(self, epoch: int | None) -> None:
        """Set the learning rates of the next epoch, or of the given one."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        rates = self.get_lr() if epoch is None else self._closed_form()
        for group, rate in zip(self.optimizer.param_groups, rates):
            group["lr"] = rate
        self._last_lr = self._current_lrs()
        if self.verbose and not self._is_initial:
            print(f"step {self.last_epoch}: lr = {', '.join(f'{rate:g}' for rate in self._last_lr)}")

    def get_lr(self) -> list[float]:
        """Return the rates of all groups at `self.last_epoch`, perhaps from the previous ones, `group["lr"]`."""
        what = f"{type(self).__name__} does not define get_lr"
        fail(OptimError, what, "def get_lr(self): return [a rate for each group]")
        return []

    def _closed_form(self) -> list[float]:
        """Return the rates at `self.last_epoch`, computed without those of the previous step."""
        own = getattr(self, "_get_closed_form_lr", None)
        return self.get_lr() if own is None else own()

    def _current_lrs(self) -> list[float]:
        """The current rates of the groups."""
        return [float(group["lr"]) for group in self.optimizer.param_groups]

    def get_last_lr(self) -> list[float]:
        """The rate of each group, as last set by this schedule."""
        return list(self._last_lr)

    def state_dict(self) -> dict[str, Any]:
        """Return all attributes except the optimizer: numbers, lists and dicts."""
        return {key: value for key, value in self.__dict__.items() if key not in UNSAVED_ATTRIBUTES}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continue from a `state_dict()` of minflow or PyTorch, or raise StateError and change nothing. The rates
        themselves are in the optimizer's state_dict.
        """
        write(self._checked_state(state_dict))

    def _checked_state(self, state_dict: Mapping[str, Any]) -> Writes:
        """Return the writes that loading would perform; see `../nn/loading.py`."""
        owner, hint = type(self).__name__, "the state_dict of a scheduler of the same class"
        if not isinstance(state_dict, Mapping):
            refuse(owner, f"state_dict must be a dict, got {with_article(state_dict)}", hint, state_dict=state_dict)
        derived = self._derived_in_state
        current = {name: value for name, value in self.state_dict().items() if name not in derived}
        state_dict = {self._names_in_files.get(k, k): v for k, v in state_dict.items() if k not in IGNORED_IN_STATE}
        kept = {name: current[name] for name in self._optional_in_state if name in current}
        state_dict = kept | self._with_our_entries(state_dict)
        missing = [key for key in current if key not in state_dict]
        unknown = [key for key in state_dict if key not in current and key not in derived]
        if missing or unknown:
            refuse(
                owner,
                f"{len(missing)} entries missing, {len(unknown)} unknown",
                hint,
                missing=", ".join(missing) or "none",
                unknown=", ".join(map(str, unknown)) or "none",
            )
        result, writes = self._convert_state(current, state_dict)
        trial = copy.copy(self)
        trial.__dict__.update(result)
        as_refusal(owner, trial._check_arguments)
        as_refusal(owner, trial._check_progress)
        return [*writes, lambda: self.__dict__.update(result)]

    def _with_our_entries(self, state: dict[str, Any]) -> dict[str, Any]:
        """Add the attributes that follow from other entries of a PyTorch state."""
        return state

    def _convert_state(self, current: Mapping[str, Any], saved: Mapping[str, Any]) -> tuple[dict[str, Any], Writes]:
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

    def _check_arguments(self) -> None:
        """Refuse attributes for which this schedule has no rate, after creation and after loading."""

    def _check_progress(self) -> None:
        """Refuse a step or rates that no schedule of this optimizer can reach."""
        # Each enclosing schedule undoes the first step, so last_epoch may be below 0.
        for name, low in (("last_epoch", -MAX_DEPTH), ("_step_count", 0)):
            check_count(self, name, low)
        for name in ("base_lrs", "_last_lr"):
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
    """Refuse an attribute unless it is a whole number of at least `low`, such as 3 or 3.0, which becomes 3."""
    value = getattr(scheduler, name)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
        setattr(scheduler, name, value)
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


def function_state(function: Any) -> dict[str, Any] | None:
    """The attributes of a callable object, for a state; None for a function."""
    return None if not hasattr(function, "__dict__") or hasattr(function, "__code__") else dict(vars(function))


def function_writes(scheduler: LRScheduler, function: Any, saved: Any) -> Writes:
    """Return the write that restores the saved attributes of a callable object; see `function_state`."""
    owner, current = type(scheduler).__name__, function_state(function)
    if current is None:
        return []
    hint = f"a {owner} with the same functions"
    if not isinstance(saved, Mapping) or saved.keys() != current.keys():
        refuse(owner, "a function has other attributes", hint, current=current, saved=saved)
    try:
        values = {name: copy_matching(value, saved[name]) for name, value in current.items()}
    except Refused as reason:
        refuse(owner, f"an attribute of a function cannot be loaded: {reason}", hint, current=current)
    return [functools.partial(function.__dict__.update, values)]


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
        self._check_arguments()
        LRScheduler.__init__(self, passed["optimizer"], **{k: v for k, v in passed.items() if k not in own})

    __init__.__signature__ = whole  # type: ignore[attr-defined]
    return __init__
