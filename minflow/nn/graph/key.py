"""The key of a plan except its inputs: identities and plain values, and the differences between two keys.

Recomputed only if the mutation counter has changed, or the contents of a container have.
Read next: `python_state.py`, `compiled.py`.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Container, Iterable
from typing import Any

from ...core.backend import owner_of
from ...core.tensor import Tensor
from ...diagnosis.creation_site import SITE_ATTRIBUTE
from ..buffer_links import own_storages
from ..hooks import GLOBAL_HOOKS, hooks_of
from .python_state import (
    CONTAINERS,
    MAX_ENTRIES,
    ElementsRead,
    Variables,
    changes_inside,
    contents_changed,
    display_text,
    snapshot,
)

EXCLUDED_ATTRIBUTES = (
    "_parameters",
    "_buffers",
    "_modules",
    "_non_persistent_buffers_set",
    "_module_hooks",
    "_scope_name",
    SITE_ATTRIBUTE,
)


class Fingerprint:
    """The part of a plan's key about modules and Python state. entries: (name, field) -> a value that is equal only if
    nothing changed. alive: objects kept alive, so that their ids stay valid.

    shown: (name, field) -> that value as shown to the user. contents: (container, its contents), checked at every call.
    untracked: (name, field) -> a description, for values whose state can change without changing the key.
    relinks: True if plans follow a buffer that is rebound to another tensor, so that the key contains only the buffer's
    layout. It contains the tensor too if that is a view or shares its storage.
    """

    def __init__(
        self,
        modules: Iterable[tuple[str, Any]],
        skipped: Container[tuple[str, str]] = (),
        variables: Variables | None = None,
        numbers: Iterable[tuple[str, Tensor]] = (),
        relinks: bool = False,
    ):
        self.entries: dict[tuple[str, str], Any] = {}
        self.alive: list[Any] = []
        self.shown: dict[tuple[str, str], str] = {}
        self.contents: list[tuple[Any, Any]] = []
        self.untracked: dict[tuple[str, str], str] = {}
        self.skipped = skipped  # attributes that build sets, such as a counter: they change at each call
        self.buffers: list[tuple[str, Tensor]] = []  # buffers that plans follow
        self.users: Counter[int] = Counter()  # id of a storage -> number of its names
        for path, module in modules:
            self.add_module(path, module, relinks)
        self.add_hooks("all modules", GLOBAL_HOOKS.registered())
        for (space, name), variable in (variables or {}).items():
            place, tensor = (name, f"variable {space}"), variable.value_now()
            if place in skipped:
                continue
            self.entries[place] = snapshot(variable, None, self.alive)
            self.contents.append((variable, self.entries[place]))
            self.shown[place] = str(tensor.spec) if isinstance(tensor, Tensor) else display_text(tensor)
            self.count_storages(tensor)
        for name, tensor in numbers:
            place, read = (name or tensor._label or "a tensor", f"variable {id(tensor)}"), ElementsRead(tensor)
            self.entries[place] = read.snapshot()
            self.contents.append((read, self.entries[place]))
            self.shown[place] = str(read)
            self.count_storages(tensor)  # a buffer whose elements were read cannot be followed
        self.finish()

    @classmethod
    def of_graph(cls, graph: Any) -> Fingerprint:
        own_storages(graph.all_modules())  # before the build, whose trace refers to the bases of views
        own = cls(graph.all_modules(), graph._volatile, graph._variables, graph._numbers.values(), relinks=True)
        paths = {id(module): path for path, module in graph.all_modules()}
        taken = set(paths.values())
        for name, module in graph._outside_modules:  # its attributes may be read without a call
            if id(module) not in paths:
                path = paths[id(module)] = unique(name, taken)
                taken.add(path)
                own.add_module(path, module)
        for name, value in vars(graph).items():
            if not name.startswith("_") and name != "repr_style":
                own.add_value("self", name, value)
        for name, value in graph.config.fingerprint().items():
            own.add_value("config", name, value)
        for i, (optimizer, _) in enumerate(graph.optimizers):
            own.add_optimizer(f"optimizer {i}" if len(graph.optimizers) > 1 else "optimizer", optimizer)
        own.entries["graph", "passes"] = tuple(map(id, graph.passes))
        own.entries["graph", "kept values"] = tuple(sorted(graph.kept))
        own.alive.append(list(graph.passes))
        own.finish()
        return own

    def finish(self) -> None:
        """Add the tensors of the buffers that cannot be followed, and make the key."""
        for name, tensor in self.buffers:
            if tensor._alias is None and self.users[id(owner_of(tensor.array))] == 1:
                self.entries[name, "tensor"] = tensor.array.strides
            else:
                self.entries[name, "tensor"] = id(tensor), id(tensor.array)
                self.alive.append((tensor, tensor.array))
        self.key = tuple(self.entries.items())

    def count_storages(self, value: Any, inside: tuple = ()) -> None:
        """Count the storages of the tensors in a value and in its containers. inside: the enclosing containers."""
        if isinstance(value, Tensor):
            if value.array is not None:
                self.users[id(owner_of(value.array))] += 1
        elif isinstance(value, CONTAINERS) and len(value) <= MAX_ENTRIES and not any(value is box for box in inside):
            for x in value.values() if isinstance(value, dict) else value:
                self.count_storages(x, (*inside, value))

    def contents_changed(self) -> bool:
        """True if the contents of a container have changed, or a variable names a different tensor."""
        return contents_changed(self.contents)

    def add_module(self, path: str, module: Any, relinks: bool = False) -> None:
        own = module.__dict__
        self.entries[path, "module"] = id(module)
        self.alive.append(module)
        self.shown[path, "module"] = repr(type(module).__name__)
        for name, value in own.items():
            if name not in EXCLUDED_ATTRIBUTES:
                self.add_value(path, name, value)
        for name, tensor in own["_parameters"].items():
            self.add_tensor(f"{path}.{name}", tensor)
        for name, tensor in own["_buffers"].items():
            self.add_tensor(f"{path}.{name}", tensor, relinks)
        self.entries[path, "submodules"] = tuple([(name, id(child)) for name, child in own["_modules"].items()])
        self.add_hooks(path, hooks_of(module))

    def add_hooks(self, owner: str, listed: list) -> None:
        """Add (hook, registration options) of all hooks, in their order."""
        if listed:
            self.entries[owner, "hooks"] = tuple([(id(hook), place) for hook, place in listed])
            self.shown[owner, "hooks"] = f"{len(listed)} hook{'s' * (len(listed) > 1)}"
            self.alive.append(listed)

    def add_tensor(self, name: str, tensor: Tensor | None, relinks: bool = False) -> None:
        if tensor is None:
            self.entries[name, "tensor"] = None
            return
        self.count_storages(tensor)
        if relinks and tensor.array is not None:
            self.buffers.append((name, tensor))
            self.entries[name, "tensor"] = None  # reserves its position; see `finish`
            self.alive.append(tensor.spec)
        else:
            self.entries[name, "tensor"] = id(tensor), id(tensor.array)
            self.alive.append((tensor, tensor.array, tensor.spec))
        self.entries[name, "spec"] = id(tensor.spec)
        self.entries[name, "requires_grad"] = tensor._needs
        self.shown[name, "requires_grad"] = str(tensor._needs)
        self.shown[name, "spec"] = str(tensor.spec)
        self.shown[name, "tensor"] = "a tensor"

    def add_value(self, owner: str, name: str, value: Any) -> None:
        if (owner, name) in self.skipped:
            return
        if isinstance(value, Tensor):
            self.add_tensor(f"{owner}.{name}", value)
            return
        if isinstance(value, CONTAINERS):
            self.count_storages(value)
        reasons: list[str] = []
        self.entries[owner, name] = snapshot(value, reasons, self.alive)
        if reasons:
            self.untracked[owner, name] = reasons[0]
        if changes_inside(value) and not any(value is known for known, _ in self.contents):  # modules share settings
            self.contents.append((value, self.entries[owner, name]))
        self.shown[owner, name] = display_text(value)

    def add_optimizer(self, name: str, optimizer: Any) -> None:
        self.entries[name, "class"] = type(optimizer).__name__
        self.add_hooks(name, [(hook, place) for place, kind in enumerate(optimizer._step_hooks()) for hook in kind])
        self.alive.append(optimizer)
        for i, group in enumerate(optimizer.param_groups):
            where = f"{name} group {i}" if len(optimizer.param_groups) > 1 else name
            for key, value in group.items():
                if key not in ("params", "param_names", "lr", "initial_lr"):
                    self.add_value(where, key, value)
            self.entries[where, "parameters"] = tuple([id(p) for p in group["params"]])
            self.shown[where, "parameters"] = f"{len(group['params'])} parameters"
        for p, state in optimizer.state.items():
            self.entries[name, f"state {id(p)}"] = tuple([(key, id(t.array)) for key, t in state.items()])
            self.alive.append([t.array for t in state.values()])


def unique(name: str, taken: Container[str]) -> str:
    """Return the name, with the first number that makes it unique if it is taken."""
    return name if name not in taken else next(n for i in itertools.count(1) if (n := f"{name}_{i}") not in taken)


def differences(old: Fingerprint, new: Fingerprint) -> list[tuple[str, str, str]]:
    """Return (what, old value, new value) of everything that changed, as shown to the user."""
    changed = []
    for key in dict.fromkeys((*old.entries, *new.entries)):
        if old.entries.get(key, Fingerprint) == new.entries.get(key, Fingerprint):
            continue
        owner, name = key
        before = old.shown.get(key, "was not there" if key not in old.entries else "another")
        after = new.shown.get(key, "is not there" if key not in new.entries else "another")
        if before == after and key in old.entries and key in new.entries:
            after = f"another {after}"
        field = name.partition(" ")[0]
        changed.append(
            (owner if field in ("tensor", "spec", "module", "variable") else f"{owner}.{field}", before, after)
        )
    return changed
