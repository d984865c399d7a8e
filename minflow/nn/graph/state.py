"""The state of a graph: what a training run needs to go on, bit for bit.

`state_dict()` has OneFlow's form: one dict for each member, and beside them "System-Train-TrainStep", the optimizer's
state as "model.fc1.weight-momentum_buffer", schedulers and the generator. Read next: `../state.py`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...core.creation import as_tensor
from ...core.errors import GraphError
from ...core.op import fail
from ...core.random import default_generator
from ...core.tensor import Tensor
from . import mistakes

STEP, GENERATOR = "System-Train-TrainStep", "System-Generator"
OPTIMIZER, SCHEDULER = "System-Optimizer", "System-LRScheduler"


def state_of(graph: Any) -> OrderedDict[str, Any]:
    """A copy of everything: it does not change when the graph goes on."""
    found: OrderedDict[str, Any] = OrderedDict()
    for name, member in graph.named_members():
        found[name] = OrderedDict((key, tensor.clone()) for key, tensor in member.state_dict().items())
    if not graph.optimizers:
        return found
    found[STEP] = as_tensor(np.array([graph._steps], "int64"))
    names = graph.parameter_names()
    for number, (optimizer, schedulers) in enumerate(graph.optimizers):
        for i, p in enumerate(optimizer.parameters()):
            for key, tensor in optimizer.state.get(p, {}).items():
                found[f"{names.get(id(p), f'parameter {number}.{i}')}-{key}"] = tensor.detach().clone()
        groups = [{k: v for k, v in group.items() if k not in ("params", "param_names")} for group in optimizer.param_groups]
        found[f"{OPTIMIZER}-{number}"] = {"param_groups": groups, "steps": optimizer.steps}
        for j, scheduler in enumerate(schedulers):
            if hasattr(scheduler, "state_dict"):
                found[f"{SCHEDULER}-{number}.{j}"] = scheduler.state_dict()
    found[GENERATOR] = as_tensor(default_generator.get_state().copy())
    return found


def load_into(graph: Any, given: Any, strict: bool) -> None:
    """Take over what `state_of` gave; before or after the first call. All is checked before anything is written.

    A plain `module.state_dict()` of the graph's only module is taken too. strict=False passes over what does not fit.
    """
    if not isinstance(given, Mapping):
        fail(GraphError, f"{graph.name}.load_state_dict takes a dict, not {mistakes.a(given)}",
             "graph.load_state_dict(flow.load(path))", state_dict=mistakes.Text(mistakes.short(given)))  # fmt: skip
    members = dict(graph.named_members())
    if given and all(isinstance(value, Tensor | np.ndarray) for value in given.values()):
        holders = [name for name, member in members.items() if member.state_dict()]
        if len(holders) == 1:
            given = {**{name: {} for name in members}, holders[0]: given}
    for name in members:
        if not isinstance(given.get(name, {}), Mapping):
            fail(GraphError, f"{graph.name}.load_state_dict: {name!r} is {mistakes.a(given[name])}, not the state of a module",
                 f"what {name}.state_dict() gives; or the whole of graph.state_dict()", **{name: given[name]})  # fmt: skip
    parts = {name: given[name] for name in members if name in given}
    extras = {key: value for key, value in given.items() if key not in members}
    names = graph.parameter_names()
    wanted: dict[str, tuple[int, int, str]] = {}
    for number, (optimizer, _) in enumerate(graph.optimizers):
        for i, p in enumerate(optimizer.parameters()):
            wanted[names.get(id(p), f"parameter {number}.{i}")] = number, i, ""
    moments = {key: value for key, value in extras.items() if key.rpartition("-")[0] in wanted}
    known = {STEP, GENERATOR, *moments}
    known |= {key for key in extras if key.startswith((OPTIMIZER, SCHEDULER))}
    missing = [name for name, member in members.items() if name not in parts and member.state_dict()]
    unexpected = [key for key in extras if key not in known]
    if strict and (missing or unexpected):
        fail(GraphError, f"{graph.name}.load_state_dict: {len(missing)} members missing, {len(unexpected)} entries unexpected; "
             "nothing was loaded", "strict=False loads what fits by name; model.load_state_dict for the state of a module",
             missing=mistakes.Text(mistakes.some(missing) or "none"),
             unexpected=mistakes.Text(mistakes.some(list(map(str, unexpected))) or "none"))  # fmt: skip
    optimizer_states = [optimizer_state(graph, number, moments, wanted, extras) for number in range(len(graph.optimizers))]
    for (optimizer, _), told in zip(graph.optimizers, optimizer_states):
        for i, p in enumerate(optimizer.parameters() if told is not None else ()):
            optimizer.fitting(i, p, told["state"].get(i, {}))  # raises where a shape does not fit
    for name in sorted(parts, key=lambda name: fits(members[name], parts[name])):  # one that will be refused comes first
        if parts[name] or strict:
            members[name].load_state_dict(parts[name], strict=strict)
    for (optimizer, schedulers), told, number in zip(graph.optimizers, optimizer_states, range(len(graph.optimizers))):
        if told is not None:
            optimizer.load_state_dict(told)
            for i, p in enumerate(optimizer.parameters()):
                for key, value in told["state"].get(i, {}).items():
                    optimizer.state[p][key].copy_(value)
            optimizer.steps = int(extras.get(f"{OPTIMIZER}-{number}", {}).get("steps", optimizer.steps))
        for j, scheduler in enumerate(schedulers):
            key = f"{SCHEDULER}-{number}.{j}"
            if key in extras:
                scheduler.load_state_dict(extras[key])
    if STEP in extras:
        graph.__dict__["_steps"] = int(np.asarray(numbers(extras[STEP])).reshape(-1)[0])
    if GENERATOR in extras:
        default_generator.set_state(numbers(extras[GENERATOR]))


def fits(member: Any, part: Mapping) -> bool:
    """Has this state the names and shapes of the module?"""
    wanted = member.state_dict()
    return wanted.keys() == part.keys() and all(tuple(part[name].shape) == tuple(t.shape) for name, t in wanted.items())


def optimizer_state(graph: Any, number: int, moments: dict, wanted: dict, extras: dict) -> dict | None:
    """The state of one optimizer in its own form; None where nothing of it was saved."""
    optimizer = graph.optimizers[number][0]
    told = extras.get(f"{OPTIMIZER}-{number}")
    state: dict[int, dict] = {}
    for key, value in moments.items():
        name, _, kind = key.rpartition("-")
        owner, i, _ = wanted[name]
        if owner == number:
            state.setdefault(i, {})[kind] = value
    if told is None and not state:
        return None
    now = optimizer.state_dict()["param_groups"]
    groups = told["param_groups"] if told is not None else [{} for _ in now]
    merged = [{**dict(group), "params": mine["params"]} for group, mine in zip(groups, now)]
    return {"state": state, "param_groups": merged}


def numbers(x: Any) -> np.ndarray:
    return x.numpy() if isinstance(x, Tensor) else np.asarray(x)
