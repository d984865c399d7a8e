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

from ...core.host import HostArray, HostScalar
from ...core.tensor import Tensor
from ...nn.loading import MAX_COUNT, MAX_DEPTH, array_of
from ...optim import (
    ASGD,
    LAMB,
    SGD,
    Adadelta,
    Adagrad,
    Adam,
    Adamax,
    AdamW,
    NAdam,
    RAdam,
    RMSprop,
    Rprop,
    SparseAdam,
    lr_scheduler,
)
from ...optim.lr_scheduler import LRScheduler
from ...optim.optimizer import hyperparameters
from ...optim.swa_utils import SWALR
from .. import checks
from ..checks import (
    Check,
    Malformed,
    check_bool,
    check_each,
    check_int,
    check_text,
    choice_of,
    encode_float,
    optional_of,
)

MAX_ENTRIES = 100_000  # milestones of a schedule, or entries of a list in a group


def plain(x: Any, depth: int = 0) -> Any:
    """A number, string, bool, None or list of these as JSON; inf as {"float": "inf"}. Raises Malformed."""
    if isinstance(x, Tensor | HostArray | HostScalar) and x.ndim == 0 and array_of(x) is not None:
        x = x.item()
    if isinstance(x, float) and not math.isfinite(x):
        return encode_float(float(x))
    if x is None or isinstance(x, bool | int | float | str):
        return next((kind(x) for kind in (bool, int, float, str) if isinstance(x, kind)), None)
    if isinstance(x, Counter):
        return [[plain(step), plain(times)] for step, times in x.items()]
    if isinstance(x, list | tuple) and depth < MAX_DEPTH:
        return [plain(entry, depth + 1) for entry in x]
    raise Malformed("a number, a text, a flag, None or a list of them", x)


def check_plain(x: Any, place: str, depth: int = 0) -> Any:
    """Check a value that `plain` wrote, and return it."""
    if x is None or type(x) is bool:
        return x
    if type(x) is str:
        return check_text(x, place, 10_000, lines=True)
    if type(x) is list and depth < MAX_DEPTH:
        return check_each(x, place, lambda entry, place: check_plain(entry, place, depth + 1), MAX_ENTRIES)
    return real(x, place)


def pair(x: Any, place: str) -> tuple:
    """Two numbers, such as betas."""
    return tuple(check_each(x, place, real, 2, 2))


def list_of(check: Check) -> Check:
    return lambda x, place: check_each(x, place, check, MAX_ENTRIES)


def only_value(value: Any) -> Check:
    """Accept only this value."""

    def check(x: Any, place: str) -> Any:
        if x is not value:
            raise Malformed(repr(value), x, place)
        return value

    return check


def milestones(x: Any, place: str) -> Counter:
    """Step -> its multiplicity."""
    return Counter({step: times for step, times in check_each(x, place, steps_and_times, MAX_ENTRIES)})


def steps_and_times(x: Any, place: str) -> list[int]:
    return check_each(x, place, integer, 2, 2)


real = functools.partial(checks.check_real, low=-math.inf)  # never NaN
integer = functools.partial(check_int, low=-MAX_COUNT, high=MAX_COUNT)
count = functools.partial(check_int, low=0, high=MAX_COUNT)
positive = functools.partial(check_int, low=1, high=MAX_COUNT)
rates = list_of(real)


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
    SparseAdam: "exp_avg exp_avg_sq step",
    NAdam: "exp_avg exp_avg_sq mu_product step",
    RAdam: "exp_avg exp_avg_sq step",
    LAMB: "exp_avg exp_avg_sq step",
}
GROUP_OPTIONS: dict[str, Check] = {  # options that a group of any optimizer may have
    "initial_lr": functools.partial(real, low=0),
    "clip_grad_max_norm": optional_of(functools.partial(real, low=0)),
    "clip_grad_norm_type": optional_of(real),
}
COMMON_ATTRIBUTES: dict[str, Check] = {  # attributes of every schedule
    "verbose": check_bool,
    "last_epoch": functools.partial(check_int, low=-MAX_DEPTH, high=MAX_COUNT),
    "count": count,
    "base_lrs": list_of(functools.partial(real, low=0)),
    "rates": rates,
}
SEQUENTIAL_ATTRIBUTES: dict[str, Check] = {"anew": list_of(optional_of(check_bool)), "milestones": list_of(positive)}
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
    s.PolynomialLR: {"total_iters": positive, "power": real, "cycle": check_bool,
                     "end_learning_rate": optional_of(real)},
    s.OneCycleLR: {
        "epochs": optional_of(real), "steps_per_epoch": optional_of(real), "total_steps": positive, "pct_start": real,
        "anneal_strategy": choice_of("cos", "linear"), "three_phase": check_bool, "div_factor": real,
        "final_div_factor": real,
        "cycle_momentum": only_value(False), "tops": rates,
    },
    s.CyclicLR: {
        "step_size_up": real, "step_size_down": real, "mode": choice_of("triangular", "triangular2", "exp_range"),
        "gamma": real, "scale_fn": only_value(None), "scale_mode": choice_of("cycle", "iterations"),
        "cycle_momentum": only_value(False), "bases": rates, "tops": rates,
    },
    s.SequentialLR: SEQUENTIAL_ATTRIBUTES,
    s.WarmupLR: SEQUENTIAL_ATTRIBUTES | {
        "warmup_factor": real, "warmup_iters": count, "warmup_prefix": check_bool,
        "warmup_method": choice_of("linear", "constant"),
    },
    s.ChainedScheduler: {},
    SWALR: {"goals": rates, "anneal_epochs": count, "anneal_strategy": choice_of("cos", "linear")},
}  # fmt: skip
NESTED_SCHEDULES = (s.SequentialLR, s.WarmupLR, s.ChainedScheduler)  # they have `schedulers`
PER_GROUP_LISTS = ("base_lrs", "rates", "bases", "tops", "goals")  # lists with one number per group
CLASSES_BY_NAME = {kind.__name__: kind for kind in (*OPTIMIZERS, *SCHEDULES)}


@functools.cache
def options_of(kind: Any) -> dict[str, Check]:
    """Hyperparameter -> its kind, derived from its default."""
    parameters = inspect.signature(kind).parameters.values()
    defaults = hyperparameters({p.name: p.default for p in parameters})
    return {
        name: check_bool if isinstance(default, bool) else pair if isinstance(default, tuple) else real
        for name, default in defaults.items()
    }


def attributes_of(kind: type[LRScheduler]) -> dict[str, Check]:
    return COMMON_ATTRIBUTES | SCHEDULES[kind]
