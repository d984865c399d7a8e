"""The state of a graph: everything that a training run needs to resume bit for bit.

`state_dict()` has OneFlow's form: one dict for each member, and next to them "System-Train-TrainStep", the optimizer's
state as "model.fc1.weight-momentum_buffer", schedulers and the generator. Read next: `../state.py`.
"""

from __future__ import annotations

import copy
import functools
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from ...core.base.errors import StateError
from ...core.context import current_context
from ...core.functions.creation import as_tensor
from ...core.host import HostArray
from ...core.ops.global_tensors import whole_array
from ...core.random import default_generator, words_of
from ...core.source_location import fail
from ...core.tensor import Tensor
from ..loading import Refused, Writes, array_of, as_refusal, integer, write
from ..state import EXTRA
from . import messages

STEP, GENERATOR = "System-Train-TrainStep", "System-Generator"
OPTIMIZER, SCHEDULER = "System-Optimizer", "System-LRScheduler"


def state_of(graph: Any) -> OrderedDict[str, Any]:
    """Copy the whole state: later calls of the graph do not change the copy."""
    saved: OrderedDict[str, Any] = OrderedDict()
    for name, member in graph.named_members():
        saved[name] = copied_state(member.state_dict())
    if not graph.optimizers:
        return saved
    saved[STEP] = as_tensor([graph._steps])
    names = graph.parameter_names()
    for number, (optimizer, schedulers) in enumerate(graph.optimizers):
        for i, p in enumerate(optimizer._all_parameters()):
            for key, tensor in optimizer.state.get(p, {}).items():
                saved[f"{names.get(id(p), f'parameter {number}.{i}')}-{key}"] = tensor.detach().clone()
        groups = [
            {k: v for k, v in group.items() if k not in ("params", "param_names")} for group in optimizer.param_groups
        ]
        saved[f"{OPTIMIZER}-{number}"] = {"param_groups": groups, "steps": optimizer._steps_taken}
        for j, scheduler in enumerate(schedulers):
            if hasattr(scheduler, "state_dict"):
                saved[f"{SCHEDULER}-{number}.{j}"] = scheduler.state_dict()
    saved[GENERATOR] = as_tensor(default_generator.get_state().copy())
    return saved


def copied_state(entries: Mapping[str, Any]) -> OrderedDict[str, Any]:
    """Copy a module's state_dict(), with the versions of its modules."""
    copies = OrderedDict((key, x.clone() if isinstance(x, Tensor) else copy.deepcopy(x)) for key, x in entries.items())
    copies._metadata = copy.deepcopy(getattr(entries, "_metadata", OrderedDict()))  # type: ignore[attr-defined]
    return copies


def load_into(graph: Any, saved: Any, strict: bool) -> None:
    """Load the result of `state_of`, before or after the first call: all of it, or raise StateError and load nothing.

    A plain `module.state_dict()` of the graph's only module is accepted too. strict=False ignores missing and
    unexpected names; an entry of a different type or shape is refused in any case.
    """
    saved = state_by_member(graph, saved)
    members = dict(graph.named_members())
    extras = {key: value for key, value in saved.items() if key not in members}
    names = graph.parameter_names()
    owners = {
        names.get(id(p), f"parameter {number}.{i}"): (number, i)
        for number, (optimizer, _) in enumerate(graph.optimizers)
        for i, p in enumerate(optimizer._all_parameters())
    }
    moments = {key: value for key, value in extras.items() if isinstance(key, str) and key.rpartition("-")[0] in owners}
    known = {STEP, GENERATOR, *moments}
    for number, (_, schedulers) in enumerate(graph.optimizers):
        known |= {f"{OPTIMIZER}-{number}", *[f"{SCHEDULER}-{number}.{j}" for j in range(len(schedulers))]}
    missing = [name for name, member in members.items() if name not in saved and member.state_dict()]
    unexpected = [key for key in extras if key not in known]
    if strict and (missing or unexpected):
        fail(
            StateError,
            f"{graph.name}.load_state_dict: {len(missing)} members missing, {len(unexpected)} entries unexpected; "
            "nothing was loaded",
            "strict=False loads what fits by name; model.load_state_dict for the state of a module",
            missing=messages.Unquoted(messages.first_items(missing) or "none"),
            unexpected=messages.Unquoted(messages.first_items(list(map(str, unexpected))) or "none"),
        )
    plans = PendingLoads()
    for name, member in members.items():
        if name in saved and (saved[name] or strict):
            plans.add(member, saved[name], strict=strict)
    for number, (optimizer, schedulers) in enumerate(graph.optimizers):
        entry = extras.get(f"{OPTIMIZER}-{number}")
        if (state := optimizer_state(graph, number, moments, owners, entry)) is not None:
            plans.add(optimizer, state)
        if entry is not None and "steps" in entry:
            steps = checked_steps(graph, f"{OPTIMIZER}-{number}: steps", entry["steps"])
            plans.writes.append(functools.partial(setattr, optimizer, "_steps_taken", steps))
        for j, scheduler in enumerate(schedulers):
            if (key := f"{SCHEDULER}-{number}.{j}") in extras:
                plans.add(scheduler, extras[key])
    if STEP in extras:
        steps = checked_steps(graph, STEP, extras[STEP])
        plans.writes.append(lambda: graph.__dict__.update(_steps=steps))
    if GENERATOR in extras:
        words = as_refusal(graph.name, lambda: words_of(generator_state(extras[GENERATOR])))
        plans.writes.append(lambda: default_generator.set_state(words))
    plans.write()


def generator_state(value: Any) -> Any:
    """The state of this rank's generator, if a global tensor joins those of several ranks: on others, the first one."""
    if not isinstance(value, Tensor) or value.is_local:
        return value
    states, order, rank = whole_array(value), value.placement.order, current_context().rank
    at = 2 * order.index(rank) if rank in order and len(states) == 2 * len(order) else 0
    return states[at : at + 2]


class PendingLoads:
    """The writes that loading will perform: checked ones of our classes, and calls of users' load methods, which can
    only be tried.
    """

    def __init__(self) -> None:
        self.writes: Writes = []
        self.own: list[tuple[Any, Any, dict[str, Any]]] = []

    def add(self, owner: Any, state: Any, **options: Any) -> None:
        checks = getattr(type(owner), "_checked_state", None)
        if checks is not None and defining_class(type(owner), "load_state_dict") is defining_class(
            type(owner), "_checked_state"
        ):
            by_itself = getattr(owner, "_has_custom_load", False)
            writes = None if by_itself else owner._checked_state(state, **options)
            if writes is not None:
                self.writes += writes
                return
        else:
            options = {}
        self.own.append((owner, state, options))

    def write(self) -> None:
        """Run the users' load methods first, because they may raise: in that case the previous ones are undone."""
        before = [(owner, copy.deepcopy(owner.state_dict())) for owner, _, _ in self.own]
        try:
            for owner, state, options in self.own:
                owner.load_state_dict(state, **options)
        except BaseException:
            for owner, state in before:
                with suppress(Exception):
                    owner.load_state_dict(state)
            raise
        write(self.writes)


def defining_class(kind: type, name: str) -> type | None:
    """Return the class that defines a method."""
    return next((base for base in kind.__mro__ if name in vars(base)), None)


def state_by_member(graph: Any, saved: Any) -> Mapping:
    """Return the state with one dict for each member; the state of a graph's only module is wrapped."""
    if not isinstance(saved, Mapping):
        what = f"{graph.name}.load_state_dict takes a dict, not {messages.a(saved)}"
        hint = "graph.load_state_dict(flow.load(path))"
        fail(StateError, what, hint, state_dict=messages.Unquoted(messages.short_repr(saved)))
    members = dict(graph.named_members())
    if saved and all(isinstance(x, Tensor | HostArray) or str(key).endswith(EXTRA) for key, x in saved.items()):
        holders = [name for name, member in members.items() if member.state_dict()]
        if len(holders) == 1:
            saved = {**{name: {} for name in members}, holders[0]: saved}
    for name in members:
        if not isinstance(saved.get(name, {}), Mapping):
            what = f"{graph.name}.load_state_dict: {name!r} is {messages.a(saved[name])}, not the state of a module"
            hint = f"the result of {name}.state_dict(); or the whole of graph.state_dict()"
            fail(StateError, what, hint, **{name: saved[name]})
    return saved


def optimizer_state(graph: Any, number: int, moments: dict, owners: dict, entry: Any) -> dict | None:
    """Return the state of one optimizer in the form of its state_dict; None if the saved state has none."""
    optimizer = graph.optimizers[number][0]
    state: dict[int, dict] = {}
    for key, value in moments.items():
        name, _, kind = key.rpartition("-")
        owner, i = owners[name]
        if owner == number:
            state.setdefault(i, {})[kind] = value
    if entry is None and not state:
        return None
    now = optimizer.state_dict()["param_groups"]
    if entry is None:
        return {"state": state, "param_groups": now}
    groups = entry.get("param_groups") if isinstance(entry, Mapping) else None
    if (
        not isinstance(groups, list | tuple)
        or len(groups) != len(now)
        or not all(isinstance(g, Mapping) for g in groups)
    ):
        fail(
            StateError,
            f"{graph.name}.load_state_dict: {OPTIMIZER}-{number} does not have the {len(now)} groups of "
            f"{messages.a(optimizer)}; "
            "nothing was loaded",
            "graph.state_dict() of a graph with the same optimizer",
            found=messages.Unquoted(messages.short_repr(entry)),
        )
    return {"state": state, "param_groups": [{**group, "params": mine["params"]} for group, mine in zip(groups, now)]}


def checked_steps(graph: Any, name: str, value: Any) -> int:
    """Return a number of steps, from a number or an array with one element."""
    try:
        array = array_of(value)
        return integer(array.reshape(-1)[0] if array is not None and array.size == 1 else value)
    except Refused as reason:
        what = f"{graph.name}.load_state_dict: {name}: {reason}; nothing was loaded"
        fail(StateError, what, "int64[1], 0 or more", found=messages.Unquoted(messages.short_repr(value)))
