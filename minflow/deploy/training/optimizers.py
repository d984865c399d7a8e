"""Convert optimizers and their schedules to data, and restore them from it.

Read next: `../../nn/graph/state.py`, which names the states in the same way; `settings.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn

from ...core.base.errors import GraphError, MinflowError
from ...core.mode import bump_mutations
from ...core.source_location import fail
from ...core.spec import Spec, float32
from ...core.tensor import Tensor
from ...io.files import META
from ...nn.loading import MAX_COUNT, MAX_DEPTH, array_of, tensor_of
from ...optim import Optimizer, lr_scheduler
from ...optim.lr_scheduler import LRScheduler
from ..checks import (
    Check,
    Malformed,
    check_bool,
    check_choice,
    check_each,
    check_fields,
    check_text,
    checking_file,
    choice_of,
)
from .built_in import (
    CLASSES_BY_NAME,
    GROUP_OPTIONS,
    MAX_ENTRIES,
    NESTED_SCHEDULES,
    OPTIMIZERS,
    PER_GROUP_LISTS,
    SCHEDULES,
    attributes_of,
    check_plain,
    count,
    options_of,
    plain,
)

TENSORS_ONLY_HINT = "or keep its class, and save only the tensors: flow.save(graph.state_dict(), path)"


# ---- saving ----------------------------------------------------------------------------------------------------------


def optimizers_as_data(graph: Any) -> tuple[list[dict[str, Any]], dict[str, Tensor]]:
    """Returns (the optimizers of a graph with their schedules as JSON, name -> tensor of their states).

    The tensors are not copied. Raises GraphError, naming the object, for anything that a file cannot hold: functions,
    user-defined classes, hooks.
    """
    names = graph.parameter_names()
    data: list[dict[str, Any]] = []
    tensors: dict[str, Tensor] = {}
    for number, (optimizer, schedulers) in enumerate(graph.optimizers):
        entry, states = OptimizerWriter(graph, optimizer, names).entry(schedulers)
        data.append(entry)
        tensors.update(states)
        with checking_value(graph, type(optimizer).__name__):  # refuses values that could not be read back
            check_optimizer_data(entry, f"optimizers[{number}]")
    return data, tensors


@contextmanager
def checking_value(graph: Any, what: str) -> Iterator[None]:
    """Context manager: turn a Malformed in the block into a GraphError about saving `what`."""
    try:
        yield
    except Malformed as error:
        refuse_saving(
            graph,
            f"{what} has a value that a file cannot hold: {error.place or 'it'} must be {error.expected}, "
            f"got {error.actual}",
            f"plain numbers, {TENSORS_ONLY_HINT}",
            error,
        )


def refuse_saving(graph: Any, why: str, hint: str, error: BaseException | None = None, **values: Any) -> NoReturn:
    """Raise the GraphError of a training graph that cannot be saved."""
    try:
        fail(GraphError, f"flow.save: {graph.name} cannot be saved as a training graph: {why}", hint, **values)
    except GraphError as refusal:
        raise refusal from error


class OptimizerWriter:
    """Converts one optimizer of a graph to data."""

    def __init__(self, graph: Any, optimizer: Any, names: Mapping[int, str]):
        self.graph, self.optimizer, self.names = graph, optimizer, names
        self.kind = type(optimizer).__name__
        self.seen: set[int] = set()  # id() of its schedules

    def refuse(self, why: str, hint: str, **values: Any) -> NoReturn:
        refuse_saving(self.graph, why, f"{hint}; {TENSORS_ONLY_HINT}", **values)

    def entry(self, schedulers: list[Any]) -> tuple[dict[str, Any], dict[str, Tensor]]:
        optimizer = self.optimizer
        self.check_optimizer()
        with checking_value(self.graph, self.kind):
            groups = [self.group(group) for group in optimizer.param_groups]
            options, extra = self.options(optimizer.defaults, "defaults")
        held = [(self.name(p), p) for p in optimizer._all_parameters()]
        states = {name: optimizer.state[p] for name, p in held if optimizer.state.get(p)}
        data = {
            "class": self.kind,
            "steps": optimizer._steps_taken,
            "defaults": options | {"extra": extra},
            "groups": groups,
            "state": {name: list(state) for name, state in states.items()},
            "schedulers": [self.schedule(scheduler) for scheduler in schedulers],
        }
        return data, {f"{name}-{key}": x.detach() for name, state in states.items() for key, x in state.items()}

    def check_optimizer(self) -> None:
        """Raise GraphError for an optimizer that is not in the table, or that has hooks or replaced methods."""
        optimizer, kind = self.optimizer, type(self.optimizer)
        if kind not in OPTIMIZERS:
            what = f"{self.kind} is not a built-in optimizer with an update rule; only those can be saved"
            self.refuse(what, "flow.optim.SGD, Adam, AdamW, ...", optimizer=self.kind)
        if hooks := [*optimizer._optimizer_step_pre_hooks, *optimizer._optimizer_step_post_hooks]:
            what = f"{self.kind} has step hooks, which are functions"
            hint = "remove them: handle.remove()"
            self.refuse(what, hint, hooks=len(hooks))
        for name, value in vars(optimizer).items():
            if hasattr(kind, name) and name not in ("_in_step", "_idle_steps", "_last_backwards"):
                what = f"{self.kind}.{name} was replaced on the object itself"
                self.refuse(what, f"del optimizer.{name}", **{name: value})

    def name(self, p: Tensor) -> str:
        if id(p) not in self.names:
            what = f"a parameter of {self.kind} belongs to no module of the graph, so it has no name"
            self.refuse(what, "hold it in a module that the graph has: self.weight = nn.Parameter(...)", parameter=p)
        return self.names[id(p)]

    def group(self, group: Mapping[str, Any]) -> dict[str, Any]:
        options, extra = self.options(group, "a group")
        result = {"params": [self.name(p) for p in group["params"]], **options, "extra": extra}
        return result | ({"param_names": list(group["param_names"])} if "param_names" in group else {})

    def options(self, group: Mapping[str, Any], where: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Split a group into (options that a step reads, other entries)."""
        known = options_of(type(self.optimizer)) | GROUP_OPTIONS
        options: dict[str, Any] = {}
        extra: dict[str, Any] = {}
        for name in (*known, *group):
            if name in ("params", "param_names") or name not in group:
                continue
            try:
                if name in known:
                    options[name] = bool(group[name]) if known[name] is check_bool else plain(group[name])
                else:
                    extra[name] = plain(group[name])
            except Malformed as error:
                raise Malformed(error.expected, group[name], f"{name!r} of {where}") from None
        return options, extra

    def schedule(self, scheduler: Any, depth: int = 0) -> dict[str, Any]:
        kind: Any = type(scheduler)
        if kind not in SCHEDULES:
            self.refuse_schedule(scheduler)
        attributes: dict[str, Check] = attributes_of(kind)
        names = {name: kind._names_in_files.get(name, name) for name in attributes}
        in_files = {own: name for name, own in names.items()}
        own = {k: v for k, v in vars(scheduler).items() if k not in ("optimizer", "_is_initial", "_schedulers")}
        for attribute, value in own.items():
            name = in_files.get(attribute, attribute)
            if attribute not in in_files or callable(value):
                what = f"{kind.__name__}.{name} is not part of what a schedule has built in"
                self.refuse(what, f"leave {name} out", **{name: value})
        if scheduler.optimizer is not self.optimizer:
            what = f"{kind.__name__} sets the rates of another optimizer"
            self.refuse(what, "make it with this optimizer", optimizer=type(scheduler.optimizer).__name__)
        if id(scheduler) in self.seen or depth > MAX_DEPTH:
            self.refuse(f"the same {kind.__name__} occurs twice", "an object for each place", scheduler=kind.__name__)
        self.seen.add(id(scheduler))
        data: dict[str, Any] = {"class": kind.__name__}
        with checking_value(self.graph, kind.__name__):
            for name in attributes:
                if names[name] not in own:
                    raise Malformed("an attribute", None, name)
                value = own[names[name]]
                data[name] = bool(value) if attributes[name] is check_bool else plain(value)
        if kind in NESTED_SCHEDULES:
            data["schedulers"] = [self.schedule(inner, depth + 1) for inner in scheduler._schedulers]
        return data

    def refuse_schedule(self, scheduler: Any) -> NoReturn:
        """Raise GraphError that suggests a replacement for this scheduler."""
        kind = type(scheduler)
        name = kind.__name__
        if kind in (lr_scheduler.LambdaLR, lr_scheduler.MultiplicativeLR):
            hint = "a schedule that is made of numbers: MultiStepLR, LinearLR, CosineAnnealingLR, SequentialLR, ..."
            self.refuse(f"{name} holds a function, and a file holds no code", hint, scheduler=name)
        if kind is lr_scheduler.ReduceLROnPlateau:
            what = "ReduceLROnPlateau needs a metric, which a graph does not give it"
            self.refuse(what, "step it after the graph's call, and save its state_dict", scheduler=name)
        what = f"{name} is not a built-in schedule; only those can be saved"
        self.refuse(what, "flow.optim.lr_scheduler.MultiStepLR, LinearLR, SequentialLR, ...", scheduler=name)


# ---- loading ---------------------------------------------------------------------------------------------------------


def optimizers_from_data(
    data: Any, parameters: Mapping[str, Tensor], tensors: Mapping[str, Any]
) -> list[tuple[Optimizer, list[LRScheduler]]]:
    """Restore optimizers from the output of `optimizers_as_data`, for `graph.add_optimizer`.

    parameters: name -> parameter of the graph.  tensors: name -> tensor or array of a state, which is copied. Raises
    GraphFormatError for invalid data.
    """
    with checking_file(META):
        entries = check_each(data, "optimizers", check_optimizer_data, MAX_ENTRIES)
        named = [(name, f"optimizers[{i}]") for i, entry in enumerate(entries) for name in entry["params"]]
        seen: set[str] = set()
        for name, place in named:
            if name not in parameters:
                raise Malformed("the name of a parameter of the graph", name, place)
            if name in seen:
                raise Malformed("a parameter in one group of one optimizer", name, place)
            seen.add(name)
        return [restore_optimizer(entry, f"optimizers[{i}]", parameters, tensors) for i, entry in enumerate(entries)]


def state_names(data: Any) -> Iterator[str]:
    """Names of the tensors that belong to checked optimizer data."""
    for entry in data:
        for name, keys in entry["state"].items():
            yield from (f"{name}-{key}" for key in keys)


def check_optimizer_data(x: Any, place: str) -> dict[str, Any]:
    """Check one optimizer's data, except for constraints of the parameters and of the class itself."""
    x = check_fields(x, place, ("class", "steps", "defaults", "groups", "state", "schedulers"))
    kind: Any = CLASSES_BY_NAME[check_choice(x["class"], f"{place}.class", [known.__name__ for known in OPTIMIZERS])]
    options: dict[str, Check] = options_of(kind)
    checked = {
        "kind": kind,
        "steps": count(x["steps"], f"{place}.steps"),
        "defaults": check_options_data(
            check_fields(x["defaults"], f"{place}.defaults", (*options, "extra"), GROUP_OPTIONS),
            f"{place}.defaults",
            options,
        ),
        "groups": check_each(
            x["groups"], f"{place}.groups", functools.partial(check_group_data, options), MAX_ENTRIES, 1
        ),
    }
    names = [name for group in checked["groups"] for name in group["params"]]
    state, known = x["state"], OPTIMIZERS[kind].split()
    if type(state) is not dict or not set(state) <= set(names):
        raise Malformed("states of parameters that its groups have", state, f"{place}.state")
    for name, keys in state.items():
        check_each(keys, f"{place}.state.{name}", choice_of(*known), len(known))
    amount = len(checked["groups"])
    schedulers = check_each(x["schedulers"], f"{place}.schedulers", functools.partial(check_schedule_data, amount), 100)
    return checked | {"params": names, "state": state, "schedulers": schedulers}


def check_group_data(options: Mapping[str, Check], x: Any, place: str) -> dict[str, Any]:
    x = check_fields(x, place, ("params", *options, "extra"), ("param_names", *GROUP_OPTIONS))
    name = functools.partial(check_text, max_length=MAX_ENTRIES, min_length=1)
    group = {"params": check_each(x["params"], f"{place}.params", name), **check_options_data(x, place, options)}
    if "param_names" in x:
        amount = len(group["params"])
        group["param_names"] = check_each(x["param_names"], f"{place}.param_names", check_text, amount, amount)
    return group


def check_options_data(x: Mapping[str, Any], place: str, options: Mapping[str, Check]) -> dict[str, Any]:
    known, extra = {**options, **GROUP_OPTIONS}, x["extra"]
    if type(extra) is not dict or set(extra) & {*known, "params", "param_names"}:
        raise Malformed("an object with names that the optimizer does not know", extra, f"{place}.extra")
    result = {
        check_text(name, f"a name in {place}.extra"): check_plain(value, f"{place}.extra.{name}")
        for name, value in extra.items()
    }
    return {name: known[name](x[name], f"{place}.{name}") for name in known if name in x} | result


def check_schedule_data(groups: int, x: Any, place: str, depth: int = 0) -> dict[str, Any]:
    """Check one schedule: its attributes by name, and its class as "kind"."""
    if depth > MAX_DEPTH:
        raise Malformed(f"at most {MAX_DEPTH} nested schedules", depth, place)
    kinds = {kind.__name__: kind for kind in SCHEDULES}
    if type(x) is not dict:
        raise Malformed("an object with a class", x, place)
    kind = kinds[check_choice(x.get("class"), f"{place}.class", kinds)]
    attributes = attributes_of(kind)
    x = check_fields(x, place, ("class", *attributes, *(["schedulers"] if kind in NESTED_SCHEDULES else [])))
    result = {name: check(x[name], f"{place}.{name}") for name, check in attributes.items()}
    for name in PER_GROUP_LISTS:
        if len(result.get(name, [0] * groups)) != groups:
            raise Malformed(f"one number for each of the {groups} groups", result[name], f"{place}.{name}")
    if kind in NESTED_SCHEDULES:
        inner = functools.partial(check_schedule_data, groups, depth=depth + 1)
        result["schedulers"] = check_each(x["schedulers"], f"{place}.schedulers", inner, 100, 1)
    return {"kind": kind, **result}


def restore_optimizer(
    entry: dict[str, Any], place: str, parameters: Mapping[str, Tensor], tensors: Mapping[str, Any]
) -> tuple[Optimizer, list[LRScheduler]]:
    """Create the objects of one checked entry."""
    groups = []
    for group in entry["groups"]:
        held: list[Any] = [parameters[name] for name in group["params"]]
        names = group.get("param_names")
        groups.append(
            {key: value for key, value in group.items() if key != "param_names"}
            | {"params": held if names is None else list(zip(names, held))}
        )
    known = options_of(entry["kind"])
    try:
        optimizer = entry["kind"](groups, **{name: entry["defaults"][name] for name in known})
        optimizer.defaults = dict(entry["defaults"])
        schedulers = [restore_schedule(data, optimizer) for data in entry["schedulers"]]
    except MinflowError as error:
        raise Malformed(f"what the class itself accepts ({error.what})", entry["kind"].__name__, place) from error
    optimizer._steps_taken = entry["steps"]
    for name, keys in entry["state"].items():
        p = parameters[name]
        for key in keys:
            optimizer.state[p][key] = state_tensor(f"{name}-{key}", tensors, p, key, key in optimizer._scalar_states)
    bump_mutations()
    return optimizer, schedulers


def state_tensor(name: str, tensors: Mapping[str, Any], p: Tensor, key: str, single: bool) -> Tensor:
    """Copy the state of this name. Raises Malformed unless its spec fits `p`."""
    spec: Any = Spec((), float32) if single else p.spec
    array = array_of(tensors[name]) if name in tensors else None
    if array is None or array.shape != tuple(spec.shape) or array.dtype != spec.np:
        found = "nothing" if array is None else f"{array.dtype}{list(array.shape)}"
        raise Malformed(f"a state that is {spec}", found, name)
    if key == "step" and not (0 <= array <= MAX_COUNT and array == int(array)):
        raise Malformed("a number of steps", array.item(), name)
    return tensor_of(array, spec)


def restore_schedule(data: dict[str, Any], optimizer: Optimizer) -> LRScheduler:
    """Create a schedule with these attributes, without `__init__`, which would start it again."""
    kind = data["kind"]
    scheduler: LRScheduler = kind.__new__(kind)
    attributes = {kind._names_in_files.get(name, name): value for name, value in data.items() if name != "kind"}
    scheduler.__dict__.update(attributes, optimizer=optimizer, _is_initial=False)
    if kind in NESTED_SCHEDULES:
        scheduler.__dict__["_schedulers"] = [restore_schedule(entry, optimizer) for entry in data["schedulers"]]
    scheduler._check_arguments()
    scheduler._check_progress()
    return scheduler
