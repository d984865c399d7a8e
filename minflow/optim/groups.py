"""Parameter groups: dicts of hyperparameters with the list of parameters to which they apply.

Checks everything that a user may pass to an optimizer. Independent of steps. Read next: `optimizer.py`.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Mapping
from typing import Any

from ..core.base.errors import OptimError, with_article
from ..core.host import HostScalar
from ..core.in_flight import IN_FLIGHT, wait_for_steps
from ..core.mode import bump_mutations
from ..core.source_location import fail
from ..core.tensor import Tensor
from ..nn.containers import ParameterList
from ..nn.module import Module

# parameters, parameters with their names, or groups of parameters with hyperparameters of their own
Params = Iterable[Tensor] | Iterable[tuple[str, Tensor]] | Iterable[dict[str, Any]]
DYNAMIC_HYPERPARAMETERS = ("lr", "initial_lr", "max_lr", "min_lr")  # read at each step, never compiled into a plan


class Group(dict):
    """Hyperparameters by name, and `params`. All but lr are compiled into plans: changes bump the mutation counter."""

    def __setitem__(self, key: str, value: Any) -> None:
        if key not in DYNAMIC_HYPERPARAMETERS and not equal_values(self.get(key, Group), value):
            bump_mutations()
        if IN_FLIGHT:  # they read the learning rate that they were submitted with
            wait_for_steps()
        super().__setitem__(key, value)

    def __delitem__(self, key: str) -> None:
        bump_mutations()
        super().__delitem__(key)

    def update(self, *others: Any, **values: Any) -> None:
        for key, value in dict(*others, **values).items():
            self[key] = value

    def __ior__(self, other: Any) -> Group:  # type: ignore[misc]
        self.update(other)
        return self

    def setdefault(self, key: str, default: Any = None) -> Any:
        if key not in self:
            self[key] = default
        return self[key]

    def pop(self, key: str, *default: Any) -> Any:
        if key in self:
            bump_mutations()
        return super().pop(key, *default)

    def popitem(self) -> tuple[str, Any]:
        bump_mutations()
        return super().popitem()

    def clear(self) -> None:
        bump_mutations()
        super().clear()

    def fingerprint(self) -> tuple:
        """Key of the values that are compiled into a step: hyperparameters except lr, and parameters by identity."""
        fixed = tuple(
            [(k, repr(v)) for k, v in self.items() if k not in (*DYNAMIC_HYPERPARAMETERS, "params", "param_names")]
        )
        return *fixed, tuple([id(p) for p in self["params"]])


def equal_values(old: Any, new: Any) -> bool:
    return old is new or (type(old) is type(new) and isinstance(new, bool | int | float | str | tuple) and old == new)


def as_groups(params: Any, owner: str) -> list[dict[str, Any]]:
    """Return the groups given as `params`: tensors, (name, tensor) pairs, or dicts with a key "params"."""
    if isinstance(params, ParameterList):
        params = list(params)
    if isinstance(params, Module):
        what = f"{owner} was given the module {type(params).__name__}, not its parameters"
        fail(OptimError, what, f"{owner}(model.parameters(), ...)")
    if isinstance(params, Tensor):
        what = f"{owner} takes a list of parameters, got one tensor"
        fail(OptimError, what, f"{owner}([tensor], ...)", params=params)
    if isinstance(params, Mapping):
        what = f"{owner} takes a list of groups, got one dict"
        fail(OptimError, what, f"{owner}([group], ...) or model.parameters()")
    if callable(params):
        name = getattr(params, "__name__", "parameters")
        fail(OptimError, f"{owner} was given the method {name}, which was not called", f"{name}(), with parentheses")
    if not isinstance(params, Iterable) or isinstance(params, str):
        what = f"{owner} takes an iterable of parameters, not a {type(params).__name__}"
        fail(OptimError, what, f"{owner}(model.parameters(), lr=...)", params=params)
    listed = list(params)
    if not listed:
        what = f"{owner}: optimizer got an empty parameter list, so it would train nothing"
        hint = "the parameters of a model that has some: layers in a Python list belong into an nn.ModuleList"
        fail(OptimError, what, hint, params=params)
    if all(isinstance(entry, Mapping) for entry in listed):
        return [dict(entry) for entry in listed]
    return [{"params": listed}]


def group_members(passed: Any, owner: str) -> tuple[list[Tensor], list[str] | None]:
    """Return the checked tensors of one group, and their names if (name, tensor) pairs were given."""
    if isinstance(passed, Tensor):
        passed = [passed]
    if isinstance(passed, set):
        fail(OptimError, f"{owner}: the parameters of a group are a set, whose order differs between runs", "a list")
    if callable(passed) or isinstance(passed, Module) or not isinstance(passed, Iterable):
        return group_members(as_groups(passed, owner)[0]["params"], owner)
    entries = list(passed)
    named = bool(entries) and all(isinstance(e, tuple) and len(e) == 2 and isinstance(e[0], str) for e in entries)
    tensors = [e[1] for e in entries] if named else entries
    for i, p in enumerate(tensors):
        if not isinstance(p, Tensor):
            hint = "p.parameters() of each module" if isinstance(p, Module) else "model.parameters()"
            fail(OptimError, f"{owner}: parameter {i} is a {type(p).__name__}, not a tensor", hint, parameter=p)
        if not p.is_leaf:
            what = f"{owner}: parameter {i} was computed from others, so backward leaves no gradient in it"
            fail(OptimError, what, "give what it was computed from, or p.detach().requires_grad_()", parameter=p)
        if not (p.spec.floating or p.spec.dtype.is_complex):
            what = f"{owner}: parameter {i} is {p.dtype.name}, and only floating and complex tensors can be trained"
            fail(OptimError, what, "p.float()", parameter=p)
    return tensors, [e[0] for e in entries] if named else None


def check_range(
    owner: str, group: Mapping[str, Any], name: str, low: float = 0.0, high: float = math.inf, below: bool = False
) -> None:
    """Refuse a hyperparameter outside [low, high], or with `below` outside [low, high)."""
    value = group[name]
    number = as_number(owner, name, value)
    if not low <= number <= high or (below and number == high):
        if below:
            until = f"below {high:g}" if low == -math.inf else f"at least {low:g} and below {high:g}"
        else:
            until = f"at least {low:g}" if high == math.inf else f"from {low:g} to {high:g}"
        what = f"{owner}: {name} must be {until}, got {number:g}"
        fail(OptimError, what, f"{owner}(params, {name}=...)", **{name: number})


def check_pair(owner: str, group: Mapping[str, Any], name: str, example: str) -> list[float]:
    """Check the two numbers of a hyperparameter that is a pair, such as betas."""
    pair = group[name]
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        fail(OptimError, f"{owner}: {name} must be two numbers, got {pair!r}", f"{name}={example}", **{name: pair})
    return [as_number(owner, f"{name}[{i}]", value) for i, value in enumerate(pair)]


def check_betas(owner: str, group: Mapping[str, Any]) -> None:
    """Refuse betas unless they are two numbers, each in [0, 1)."""
    for i, beta in enumerate(check_pair(owner, group, "betas", "(0.9, 0.999)")):
        check_range(owner, {f"betas[{i}]": beta}, f"betas[{i}]", 0.0, 1.0, below=True)


def check_flags(kind: type, group: Mapping[str, Any]) -> None:
    """Refuse a flag (a bool in the optimizer's signature) without a truth value, such as an array of two elements."""
    for name, parameter in inspect.signature(kind).parameters.items():
        if isinstance(parameter.default, bool) and name in group:
            try:
                bool(group[name])
            except ValueError:
                what = f"{kind.__name__}: {name} must be True or False, got {with_article(group[name])}"
                fail(OptimError, what, f"{name}=True", **{name: group[name]})


def check_kinds(owner: str, group: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
    """Refuse a hyperparameter whose type differs from its default's: a string for a number, a list for a flag."""
    for name, default in defaults.items():
        if isinstance(default, bool):
            if not isinstance(group[name], int | HostScalar) or group[name] not in (0, 1):
                what = f"{owner}: {name} must be True or False, got {with_article(group[name])}"
                fail(OptimError, what, f"{name}=True", **{name: group[name]})
        elif isinstance(default, int | float):
            as_number(owner, name, group[name])


def as_number(owner: str, name: str, value: Any) -> float:
    try:
        if isinstance(value, str | bytes):
            raise TypeError
        return float(value)
    except (TypeError, ValueError, OverflowError):
        what = f"{owner}: {name} must be a number, got {with_article(value)}"
        fail(OptimError, what, f"{name}=0.01", **{name: value})
