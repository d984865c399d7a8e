"""Load a state all or nothing: first check everything, then write everything while Ctrl-C is delayed.

Objects that load a state have `_checked_state(state_dict)`: it raises StateError, or returns the remaining writes as a
list of calls that cannot fail. A graph can thus check its modules, optimizers and schedulers before it writes to any of
them. This module checks the values of a state: numbers, strings and containers of them. Read next: `state.py`,
`../optim/optimizer.py`.
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any, NoReturn

from ..core.backend import backend_of, namespace, to_host
from ..core.base.errors import MinflowError, StateError
from ..core.base.interrupts import uninterrupted
from ..core.base.placement import Placement, broadcast
from ..core.context import current_context
from ..core.functionalize import before_write
from ..core.functions.creation import as_tensor
from ..core.grad.modes import no_grad
from ..core.host import HostArray, HostScalar
from ..core.ops.global_tensors import whole_array
from ..core.sharding import logical
from ..core.source_location import describe, here
from ..core.spec import Spec
from ..core.tensor import Tensor

Writes = list[Callable[[], object]]
MAX_DEPTH = 20  # levels of nested containers in a state
MAX_COUNT = 2**53  # largest count: floats are exact up to here


class Refused(Exception):
    """Raised with the reason for refusing a value."""


def write(writes: Writes) -> None:
    """Perform the checked writes, without interruption and between two steps of graphs and jobs.

    First waits for steps of jobs that read a tensor that one of the calls writes (its `target`).
    """
    for call in writes:
        before_write(getattr(getattr(call, "target", None), "_version_counter", None))
    with current_context().plan_lock, uninterrupted(), no_grad():
        for call in writes:
            call()


def refuse(owner: str, what: str, hint: str, /, **values: Any) -> NoReturn:
    """Raise the StateError of `owner`.load_state_dict. Strings among the values are shown without quotes."""
    shown = {name.replace("_", " "): x if isinstance(x, str) else describe(x) for name, x in values.items()}
    raise StateError(f"{owner}.load_state_dict: {what}; nothing was loaded", values=shown, where=here(), hint=hint)


def as_refusal(owner: str, call: Callable[[], Any]) -> Any:
    """Return the result of `call`. Its errors, such as those of an optimizer's group, become StateErrors: the state
    does not fit.
    """
    try:
        return call()
    except MinflowError as error:
        if isinstance(error, StateError):
            raise
        what = f"{owner}.load_state_dict: {error.what}; nothing was loaded"
        hint = "a state that was saved from the same class, and not changed since"
        raise StateError(what, values=error.values, where=here(), hint=hint) from error


def array_of(value: Any) -> HostArray | None:
    """Return the elements of a tensor (ours or PyTorch's), an array or a number; None for any other value."""
    try:
        if isinstance(value, Tensor):
            if value.is_global:
                return whole_array(value)
            return None if value.array is None else to_host(value.array)
        value = from_torch(value)
        array = to_host(value.array) if isinstance(value, Tensor) else namespace().asarray(value)
    except Exception:  # raised by an object that is not ours
        return None
    return array if array.dtype.kind in "biuf" else None


def from_torch(value: Any) -> Any:
    """Return a tensor of PyTorch as one of minflow, on the same memory if it is on the CPU; any other value unchanged.

    NumPy lacks bfloat16, so such a tensor is copied.
    """
    if isinstance(value, Tensor) or not type(value).__module__.startswith("torch") or not hasattr(value, "detach"):
        return value
    value = value.detach().cpu()
    half = str(value.dtype) == "torch.bfloat16"
    array = as_tensor((value.float() if half else value).numpy())
    return array.bfloat16() if half else array


def tensor_of(array: HostArray, spec: Spec) -> Tensor:
    """Return a tensor of this spec, on its device, with a copy of the elements."""
    return distributed_as(
        spec, Tensor(backend_of(spec.device).from_host(array.astype(spec.np, copy=False)), logical(spec))
    )


def distributed_as(spec: Spec, value: Tensor) -> Tensor:
    """Return a tensor with the placement and sbp of `spec`, or a local one of all elements; itself if it has these.

    All ranks call it. A local tensor that becomes global has the elements of the first rank of the placement.
    """
    if spec.placement is None or spec.sbp is None:
        return Tensor(whole_array(value), logical(value.spec)) if value.is_global else value
    if value.is_local:
        value = value.to_global(Placement(spec.placement.type, spec.placement.order[:1]), broadcast, check_meta=False)
    return value.to_global(spec.placement, spec.sbp)


def number(value: Any) -> float:
    """Return a finite number, from a number or a tensor or array with one element. Raises Refused, also for a bool."""
    if isinstance(value, Tensor | HostArray) and value.shape == ():
        value = value.item() if not isinstance(value, Tensor) or value.array is not None else None
    if isinstance(value, bool) or not isinstance(value, Real):
        raise Refused(f"{describe(value)} is not a number")
    try:
        if math.isfinite(value):
            return value.item() if isinstance(value, HostScalar) else value  # type: ignore[return-value]  # a number
    except OverflowError:
        pass
    raise Refused(f"{describe(value)} is not finite")


def integer(value: Any, low: int = 0) -> int:
    """Return an integer of at least `low`. Raises Refused."""
    count = number(value)
    if count != int(count) or not low <= count <= MAX_COUNT:
        raise Refused(f"{describe(value)} is not an integer of at least {low}")
    return int(count)


def plain_data(value: Any, depth: int = 0) -> Any:
    """Copy a value that a file can hold: tensors, arrays, numbers, strings, None, and containers. Raises Refused."""
    if depth > MAX_DEPTH:
        raise Refused(f"it is nested more than {MAX_DEPTH} levels deep")
    if value is None or isinstance(value, bool | int | float | str | HostScalar):
        return value
    if isinstance(value, Tensor | HostArray):
        if (value.array if isinstance(value, Tensor) else array_of(value)) is None:
            raise Refused(f"{describe(value)} has no elements")
        return value.detach().clone() if isinstance(value, Tensor) else value.copy()
    if isinstance(value, Mapping):
        entries = {key(k): plain_data(v, depth + 1) for k, v in value.items()}
        kind: Any = type(value)
        return kind(entries) if kind in (Counter, OrderedDict) else entries
    if type(value) in (list, tuple):
        return type(value)([plain_data(v, depth + 1) for v in value])
    raise Refused(f"a {type(value).__name__} is not data")


def key(value: Any) -> Any:
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, tuple):
        return tuple([key(part) for part in value])
    raise Refused(f"the key {describe(value)} is neither a string nor a number")


def copy_matching(present: Any, value: Any) -> Any:
    """Copy `value`, which must have the type and the number of elements of `present`. Raises Refused.

    If `present` is None or empty, `value` may be any data.
    """
    if isinstance(present, bool):
        if not isinstance(value, bool | HostScalar) or value not in (0, 1):
            raise Refused(f"{describe(value)} is neither True nor False")
        return bool(value)
    if isinstance(present, Real):
        return number(value) if math.isfinite(present) or not isinstance(value, float) else value
    if isinstance(present, str):
        if not isinstance(value, str):
            raise Refused(f"{describe(value)} is not a string")
        return value
    if isinstance(present, Tensor | HostArray):
        array = array_of(value)
        if array is None or array.shape != tuple(present.shape):
            raise Refused(f"{describe(value)} is not an array of shape {tuple(present.shape)}")
        return plain_data(value)
    if isinstance(present, Mapping):
        if not isinstance(value, Mapping):
            raise Refused(f"{describe(value)} is not a dict")
        return plain_data(value) | {k: copy_matching(v, value[k]) for k, v in present.items() if k in value}
    if isinstance(present, list | tuple):
        if type(value) not in (list, tuple):
            raise Refused(f"{describe(value)} is not a list")
        models = present if len(present) == len(value) else [*present[:1]] * len(value)
        return type(value)([copy_matching(a, b) for a, b in zip(models, value)]) if models else plain_data(value)
    if present is None:
        return plain_data(value)
    if type(value) is not type(present):
        raise Refused(f"{describe(value)} is not a {type(present).__name__}")
    return value
