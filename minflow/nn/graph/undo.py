"""Traces without side effects: what the program's code changes outside of its trace is undone afterwards.

Undone are: attributes of the graph and its modules, with the contents of their containers; globals and enclosing
variables that the code names, with theirs, and attributes of the program's objects, classes, functions and modules if
their names occur in the code; random generators. Printed text is suppressed. Read next: `dynamic.py`.
"""

from __future__ import annotations

import builtins
import sys
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import CellType, FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from ...core.random import default_generator
from ...core.source_location import NOTICES
from ...core.symbolic_shapes import SYMBOLIC
from ...core.tensor import Tensor
from ..module import Module
from .python_state import (
    CONTAINERS,
    MAX_ENTRIES,
    MAX_LEVELS,
    BuildReads,
    entries_of,
    is_user_class,
    is_user_file,
    small_array,
)


class Names(NamedTuple):
    """Names that code may bind anew. space: a dict, a class, or the cell of an enclosing variable.

    path: text in front of a name.  only: the names that count; None for all.
    """

    path: str
    space: Any
    only: frozenset[str] | set[str] | None

    def values(self) -> dict[str, Any]:
        """The values of the names that are bound now."""
        if isinstance(self.space, CellType):
            try:
                return dict.fromkeys(self.only or (), self.space.cell_contents)
            except ValueError:
                return {}
        values = self.space if isinstance(self.space, dict) else vars(self.space)
        return dict(values) if self.only is None else {name: values[name] for name in self.only if name in values}

    def bind(self, name: str, value: Any) -> None:
        if isinstance(self.space, CellType):
            self.space.cell_contents = value
        elif isinstance(self.space, dict):
            self.space[name] = value
        else:
            type.__setattr__(self.space, name, value)

    def unbind(self, name: str) -> None:
        if isinstance(self.space, CellType):
            del self.space.cell_contents
        elif isinstance(self.space, dict):
            del self.space[name]
        else:
            type.__delattr__(self.space, name)


class Undo:
    """State that code may change outside of its trace, as it was before.

    changed: after `undo`, (name, value) of what had changed, except names that got a tensor.
    """

    def __init__(self, owners: Iterable[tuple[str, Any]], reads: BuildReads | None = None):
        self.changed: list[tuple[str, Any]] = []
        self.names: list[tuple[Names, dict[str, Any]]] = []
        self.contents: dict[int, tuple[str, Any, Any]] = {}
        self.attributes = reads.named_attributes if reads is not None else set()
        self.seen: set[int] = set()
        for path, owner in owners:
            self.seen.add(id(owner))
            self.record_names(Names(f"{path}.", owner.__dict__, None))
            self.record_class(type(owner))
        for variable in reads.named.values() if reads is not None else ():
            self.record_names(Names("", variable.namespace, {variable.name}))

    def record_names(self, names: Names) -> None:
        before = names.values()
        self.names.append((names, before))
        for name, value in before.items():
            self.record(names.path + name, value)

    def record(self, path: str, value: Any) -> None:
        """Record the contents of nested containers, and attributes of the program's objects."""
        if isinstance(value, tuple):
            for x in value:
                self.record(path, x)
        elif id(value) in self.seen:
            return
        elif type(value) in (list, dict, set, deque) or (small_array(value) and value.flags.writeable):
            self.seen.add(id(value))
            self.contents[id(value)] = path, value, value.copy()
            for x in () if small_array(value) or len(value) > MAX_ENTRIES else entries_of(value):
                self.record(path, x)
        elif isinstance(value, type):
            self.record_class(value)
        elif belongs_to_user(value) and not isinstance(value, Tensor | Module):
            self.seen.add(id(value))
            if isinstance(own := getattr(value, "__dict__", None), dict):
                self.record_names(Names(f"{path}.", own, self.attributes))
            self.record_class(type(value))

    def record_class(self, kind: type) -> None:
        for one in kind.__mro__:
            if id(one) not in self.seen and is_user_class(one):
                self.seen.add(id(one))
                self.record_names(Names(f"{one.__name__}.", one, self.attributes))

    def undo(self) -> None:
        changed = []
        for names, before in self.names:
            now = names.values()
            for name in [name for name in {**before, **now} if now.get(name, self) is not before.get(name, self)]:
                changed.append((names.path + name, now.get(name)))
                if name in before:
                    names.bind(name, before[name])
                else:
                    names.unbind(name)
        for path, box, before in self.contents.values():
            if contents_of(box) == contents_of(before):
                continue
            if small_array(box):
                changed.append((path, None))
                box[...] = before
            else:
                changed.append((path, entries_of(box)))
                box.clear()
                (box.update if isinstance(box, dict | set) else box.extend)(before)
        self.changed = [(path, value) for path, value in changed if not isinstance(value, Tensor)]

    @property
    def sized(self) -> str:
        """Name of the first value that holds sizes or tensors of the trace; "" if there is none."""
        return next((path for path, value in self.changed if holds_sizes(value)), "")


def belongs_to_user(value: Any) -> bool:
    """True for a module or function of the program, or an object of one of its classes."""
    if isinstance(value, ModuleType):
        return (file := getattr(value, "__file__", None)) is not None and is_user_file(file)
    return is_user_file(value.__code__.co_filename) if isinstance(value, FunctionType) else is_user_class(type(value))


def contents_of(box: Any) -> Any:
    """Equal for the same objects in the same order, or for arrays of the same bits."""
    return box.tobytes() if small_array(box) else list(map(id, entries_of(box)))


def holds_sizes(value: Any, level: int = MAX_LEVELS) -> bool:
    """True for a symbolic number or tensor, alone or in a container."""
    if isinstance(value, CONTAINERS):
        return level > 0 and any([holds_sizes(x, level - 1) for x in entries_of(value)])
    return type(value) in SYMBOLIC or (isinstance(value, Tensor) and value.array is None)


@contextmanager
def undoing_side_effects(owners: Iterable[tuple[str, Any]], reads: BuildReads | None = None) -> Iterator[Undo]:
    """Context manager: undo the changes of a trace. owners: (path, graph or module). reads: what its code names."""
    undo = Undo(owners, reads)
    import random

    numbers = random.getstate(), np.random.get_state()
    drawn = default_generator.seed_, default_generator.key, default_generator.counter
    notices, shown, thread = NOTICES.on, builtins.print, threading.get_ident()

    def silent(*args: Any, **options: Any) -> None:
        if threading.get_ident() != thread or options.get("file") not in (None, sys.stdout, sys.stderr):
            shown(*args, **options)

    try:
        NOTICES.on, builtins.print = False, silent
        yield undo
    finally:
        builtins.print, NOTICES.on = shown, notices
        random.setstate(numbers[0])
        np.random.set_state(numbers[1])
        default_generator.seed_, default_generator.key, default_generator.counter = drawn
        undo.undo()
