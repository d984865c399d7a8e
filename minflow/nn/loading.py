"""Loading a state all or nothing: everything is checked first, then everything is written, and no Ctrl-C comes between.

What can be loaded into has `checked_state(state_dict)`: it raises StateError, or says what is left to do as a list of
calls that cannot fail. So a graph checks its modules, optimizers and schedulers before the first of them is written.
What a state may hold is checked here: numbers, texts and containers of them. Read next: `state.py`,
`../optim/optimizer.py`.
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..compiler.executor import LOCK
from ..core.base.errors import MinflowError, StateError
from ..core.base.interrupts import uninterrupted
from ..core.functionalize import before_write
from ..core.tensor import Tensor
from ..core.source_location import describe, here

Writes = list[Callable[[], object]]
DEEPEST = 20  # levels of containers in a state
LARGEST = 2**53  # of a count: up to here a float is exact


class Refused(Exception):
    """Why a value is not taken."""


def write(writes: Writes) -> None:
    """Do what was checked: between two steps of graphs and jobs, and whole. The steps of jobs that read a tensor which
    one of the calls writes (its `target`) end first."""
    for call in writes:
        before_write(getattr(getattr(call, "target", None), "cell", None))
    with LOCK, uninterrupted():
        for call in writes:
            call()


def refuse(owner: str, what: str, hint: str, /, **values: Any) -> None:
    """Raise the StateError of `owner`.load_state_dict. Texts are shown as they are."""
    shown = {name.replace("_", " "): x if isinstance(x, str) else describe(x) for name, x in values.items()}
    raise StateError(f"{owner}.load_state_dict: {what}; nothing was loaded", values=shown, where=here(), hint=hint)


def as_refusal(owner: str, call: Callable[[], Any]) -> Any:
    """The result of `call`; where it refuses (an optimizer that checks its group), the state does not fit."""
    try:
        return call()
    except MinflowError as error:
        if isinstance(error, StateError):
            raise
        what = f"{owner}.load_state_dict: {error.what}; nothing was loaded"
        hint = "a state that was saved from the same class, and not changed since"
        raise StateError(what, values=error.values, where=here(), hint=hint) from error


def array_of(value: Any) -> np.ndarray | None:
    """The numbers of a tensor (ours or PyTorch's), an array or a number; None if it has none that a tensor could
    hold."""
    try:
        if isinstance(value, Tensor):
            return value.array
        array = np.asarray(value.detach().cpu().numpy() if hasattr(value, "detach") else value)
    except Exception:  # of an object that is not ours
        return None
    return array if array.dtype.kind in "biuf" else None


def number(value: Any) -> float:
    """A finite number, no bool; a tensor or array of one number is one. Raises Refused."""
    if isinstance(value, Tensor | np.ndarray) and value.shape == ():
        value = value.item() if not isinstance(value, Tensor) or value.array is not None else None
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        raise Refused(f"{describe(value)} is no number")
    try:
        if math.isfinite(value):
            return value.item() if isinstance(value, np.generic) else value
    except OverflowError:
        pass
    raise Refused(f"{describe(value)} is not finite")


def whole(value: Any, low: int = 0) -> int:
    """A count from `low` on. Raises Refused."""
    count = number(value)
    if count != int(count) or not low <= count <= LARGEST:
        raise Refused(f"{describe(value)} is no whole number from {low} on")
    return int(count)


def plain(value: Any, depth: int = 0) -> Any:
    """A copy of what a file can hold: tensors, arrays, numbers, texts, None, and containers of them. Raises Refused."""
    if depth > DEEPEST:
        raise Refused(f"it lies more than {DEEPEST} levels deep")
    if value is None or isinstance(value, bool | int | float | str | np.generic):
        return value
    if isinstance(value, Tensor | np.ndarray):
        if array_of(value) is None:
            raise Refused(f"{describe(value)} has no numbers")
        return value.detach().clone() if isinstance(value, Tensor) else value.copy()
    if isinstance(value, Mapping):
        entries = {key(k): plain(v, depth + 1) for k, v in value.items()}
        return type(value)(entries) if type(value) in (Counter, OrderedDict) else entries
    if type(value) in (list, tuple):
        return type(value)([plain(v, depth + 1) for v in value])
    raise Refused(f"a {type(value).__name__} is not data")


def key(value: Any) -> Any:
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, tuple):
        return tuple([key(part) for part in value])
    raise Refused(f"the key {describe(value)} is neither a text nor a number")


def like(present: Any, value: Any) -> Any:
    """A copy of `value`, which must be of the kind that `present` is: a number for a number, as many as there are now.

    Raises Refused. What is None or empty now may become any data.
    """
    if isinstance(present, bool):
        if not isinstance(value, bool | np.bool_):
            raise Refused(f"{describe(value)} is neither True nor False")
        return bool(value)
    if isinstance(present, int | float | np.integer | np.floating):
        return number(value) if math.isfinite(present) or not isinstance(value, float) else value
    if isinstance(present, str):
        if not isinstance(value, str):
            raise Refused(f"{describe(value)} is no text")
        return value
    if isinstance(present, Tensor | np.ndarray):
        array = array_of(value)
        if array is None or array.shape != tuple(present.shape):
            raise Refused(f"{describe(value)} is no array of shape {tuple(present.shape)}")
        return plain(value)
    if isinstance(present, Mapping):
        if not isinstance(value, Mapping):
            raise Refused(f"{describe(value)} is no dict")
        return plain(value) | {k: like(v, value[k]) for k, v in present.items() if k in value}
    if isinstance(present, list | tuple):
        if type(value) not in (list, tuple):
            raise Refused(f"{describe(value)} is no list")
        models = present if len(present) == len(value) else [*present[:1]] * len(value)
        return type(value)([like(a, b) for a, b in zip(models, value)]) if models else plain(value)
    if present is None:
        return plain(value)
    if type(value) is not type(present):
        raise Refused(f"{describe(value)} is no {type(present).__name__}")
    return value
