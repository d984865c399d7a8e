"""Tables of the optimizers and schedules that a file can name, and of the allowed kinds of their values.

A class is stored by name and looked up here; every value from a file is checked against the kind of its name in these
tables, so nothing from a file is executed. Read next: `optimizers.py`.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections import Counter
from typing import Any

import numpy as np

from ...core.tensor import Tensor
from ...nn.loading import MAX_COUNT, MAX_DEPTH, array_of
from ...optim import ASGD, LAMB, SGD, Adadelta, Adagrad, Adam, Adamax, AdamW, NAdam, RAdam, RMSprop, Rprop, lr_scheduler
from ...optim.lr_scheduler import LRScheduler
from ...optim.optimizer import hyperparameters
from ...optim.swa_utils import SWALR
from .. import checks
from ..checks import Check, Malformed, choice, each, finite, flag, maybe, text, whole

LONGEST = 100_000  # milestones of a schedule, or entries of a list in a group


def plain(x: Any, depth: int = 0) -> Any:
    """A number, string, bool, None or list of these as JSON; inf as {"float": "inf"}. Raises Malformed."""
    if isinstance(x, Tensor | np.ndarray | np.generic) and np.ndim(x) == 0 and array_of(x) is not None:
        x = x.item()
    if isinstance(x, float) and not math.isfinite(x):
        return finite(float(x))
    if x is None or isinstance(x, bool | int | float | str):
        return next((kind(x) for kind in (bool, int, float, str) if isinstance(x, kind)), None)
    if isinstance(x, Counter):
        return [[plain(step), plain(times)] for step, times in x.items()]
    if isinstance(x, list | tuple) and depth < MAX_DEPTH:
        return [plain(entry, depth + 1) for entry in x]
    raise Malformed("a number, a text, a flag, None or a list of them", x)


def anything(x: Any, place: str, depth: int = 0) -> Any:
    """Check a value that `plain` wrote, and return it."""
    if x is None or type(x) is bool:
        return x
    if type(x) is str:
        return text(x, place, 10_000, lines=True)
    if type(x) is list and depth < MAX_DEPTH:
        return each(x, place, lambda entry, place: anything(entry, place, depth + 1), LONGEST)
    return real(x, place)


def pair(x: Any, place: str) -> tuple:
    """Two numbers, such as betas."""
    return tuple(each(x, place, real, 2, 2))


def listed(check: Check) -> Check:
    return lambda x, place: each(x, place, check, LONGEST)


def only(value: Any) -> Check:
    """Accept only this value."""

    def check(x: Any, place: str) -> Any:
        if x is not value:
            raise Malformed(repr(value), x, place)
        return value

    return check


def milestones(x: Any, place: str) -> Counter:
    """Step -> its multiplicity."""
    return Counter({step: times for step, times in each(x, place, steps_and_times, LONGEST)})


def steps_and_times(x: Any, place: str) -> list[int]:
    return each(x, place, integer, 2, 2)


real = functools.partial(checks.real, low=-math.inf)  # never NaN
integer = functools.partial(whole, low=-MAX_COUNT, high=MAX_COUNT)
count = functools.partial(whole, low=0, high=MAX_COUNT)
positive = functools.partial(whole, low=1, high=MAX_COUNT)
rates = listed(real)


# ---- the tables ------------------------------------------------------------------------------------------------------

OPTIMIZERS = {  # class -> names of the states of its parameters
    SGD: "momentum_buffer step",
    Adam: "exp_avg exp_avg_sq max_exp_avg_sq step",
    AdamW: "exp_avg exp_avg_sq max_exp_avg_sq step",
    RMSprop: "square_avg grad_avg momentum_buffer step",
    Adagrad: "sum step",
    Adadelta: "square_avg acc_delta step",
    Rprop: "prev step_size step",
    ASGD: "ax mu eta step",
    Adamax: "exp_avg exp_inf step",
    NAdam: "exp_avg exp_avg_sq mu_product step",
    RAdam: "exp_avg exp_avg_sq step",
    LAMB: "exp_avg exp_avg_sq step",
}
OF_GROUPS: dict[str, Check] = {  # options that a group of any optimizer may have
    "initial_lr": functools.partial(real, low=0),
    "clip_grad_max_norm": maybe(functools.partial(real, low=0)),
    "clip_grad_norm_type": maybe(real),
}
COMMON: dict[str, Check] = {  # attributes of every schedule
    "verbose": flag,
    "last_epoch": functools.partial(whole, low=-MAX_DEPTH, high=MAX_COUNT),
    "count": count,
    "base_lrs": listed(functools.partial(real, low=0)),
    "rates": rates,
}
TOGETHER: dict[str, Check] = {"anew": listed(maybe(flag)), "milestones": listed(positive)}
s = lr_scheduler
SCHEDULES: dict[type, dict[str, Check]] = {  # class -> its own attributes and their kinds
    s.StepLR: {"step_size": positive, "gamma": real},
    s.MultiStepLR: {"milestones": milestones, "gamma": real},
    s.LinearLR: {"start_factor": real, "end_factor": real, "total_iters": count},
    s.ConstantLR: {"factor": real, "total_iters": count},
    s.ExponentialLR: {"gamma": real},
    s.CosineAnnealingLR: {"T_max": real, "eta_min": real},
    s.CosineAnnealingWarmRestarts: {
        "T_0": positive, "T_i": positive, "T_mult": positive, "T_cur": real, "cycles": count, "eta_min": real,
        "decay_rate": real, "restart_limit": count,
    },
    s.CosineDecayLR: {"decay_steps": positive, "alpha": real},
    s.PolynomialLR: {"total_iters": positive, "power": real, "cycle": flag, "end_learning_rate": maybe(real)},
    s.OneCycleLR: {
        "epochs": maybe(real), "steps_per_epoch": maybe(real), "total_steps": positive, "pct_start": real,
        "anneal_strategy": choice("cos", "linear"), "three_phase": flag, "div_factor": real, "final_div_factor": real,
        "cycle_momentum": only(False), "tops": rates,
    },
    s.CyclicLR: {
        "step_size_up": real, "step_size_down": real, "mode": choice("triangular", "triangular2", "exp_range"),
        "gamma": real, "scale_fn": only(None), "scale_mode": choice("cycle", "iterations"),
        "cycle_momentum": only(False), "bases": rates, "tops": rates,
    },
    s.SequentialLR: TOGETHER,
    s.WarmupLR: TOGETHER | {
        "warmup_factor": real, "warmup_iters": count, "warmup_prefix": flag,
        "warmup_method": choice("linear", "constant"),
    },
    s.ChainedScheduler: {},
    SWALR: {"goals": rates, "anneal_epochs": count, "anneal_strategy": choice("cos", "linear")},
}  # fmt: skip
HOLDING = (s.SequentialLR, s.WarmupLR, s.ChainedScheduler)  # they have `schedulers`
OF_EACH_GROUP = ("base_lrs", "rates", "bases", "tops", "goals")  # lists with one number per group
NAMED = {kind.__name__: kind for kind in (*OPTIMIZERS, *SCHEDULES)}


@functools.cache
def options_of(kind: Any) -> dict[str, Check]:
    """Hyperparameter -> its kind, derived from its default."""
    parameters = inspect.signature(kind).parameters.values()
    defaults = hyperparameters({p.name: p.default for p in parameters})
    return {
        name: flag if isinstance(default, bool) else pair if isinstance(default, tuple) else real
        for name, default in defaults.items()
    }


def attributes_of(kind: type[LRScheduler]) -> dict[str, Check]:
    return COMMON | SCHEDULES[kind]
