"""Nested lists, tuples, dicts and dataclasses of tensors: the inputs and outputs of build. Read next: `build.py`."""

from __future__ import annotations

import ast
import dataclasses
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ...core.base.errors import GraphError
from ...core.messages.wrong_arguments import contains_itself
from ...core.source_location import describe, here
from ...core.tensor import Tensor
from ..module import Module

TreeSpec = Any  # a structure without its tensors; hashable


class Leaf:
    """In a TreeSpec: a value that is not a tensor, unchanged."""

    def __init__(self, value: Any):
        self.value = value


class Field(str):
    """In a path: the name of a field of a dataclass."""

    __slots__ = ()


def fields_of(x: Any) -> dict[str, Any] | None:
    """The fields of a user's dataclass by name; None for any other object, also for a module or a dict that is one."""
    kind = type(x)
    if not dataclasses.is_dataclass(kind) or isinstance(x, type | Module | dict):
        return None
    if kind.__module__.partition(".")[0] == "minflow":
        return None
    return {Field(field.name): getattr(x, field.name) for field in dataclasses.fields(x) if hasattr(x, field.name)}


def parts_of(x: Any) -> list | None:
    """The parts of a list, tuple, dict or dataclass; None for any other object."""
    fields = x if isinstance(x, dict) else fields_of(x)
    return list(fields.values()) if fields is not None else list(x) if isinstance(x, list | tuple) else None


def flatten(x: Any, refuse: Callable[[str, Any], Any], path: str = "") -> tuple[TreeSpec, list[Tensor]]:
    """Return (structure, tensors in order). Leaves are tensors and None; for any other leaf, `refuse(path, leaf)`
    raises an error or returns a Leaf.
    """
    try:
        return flatten_tree(x, refuse, path)
    except RecursionError as error:
        if not contains_itself(x):
            raise
        raise GraphError(
            "a list or dict contains itself, and a graph takes trees of tensors",
            where=here(),
            values={"value": describe(x)},
            hint="leave out the entry that leads back",
        ) from error


def flatten_tree(x: Any, refuse: Callable[[str, Any], Any], path: str = "") -> tuple[TreeSpec, list[Tensor]]:
    if isinstance(x, Tensor):
        return "tensor", [x]
    if x is None:
        return None, []
    if isinstance(x, dict):
        keys, values = list(x), list(x.values())
        parts = [flatten_tree(value, refuse, f"{path}[{key!r}]") for key, value in zip(keys, values)]
        return (type(x), tuple(keys), tuple([p[0] for p in parts])), [t for p in parts for t in p[1]]
    if isinstance(x, list | tuple):
        parts = [flatten_tree(value, refuse, f"{path}[{i}]" if path else str(i)) for i, value in enumerate(x)]
        return (type(x), None, tuple([p[0] for p in parts])), [t for p in parts for t in p[1]]
    if (fields := fields_of(x)) is not None:
        parts = [flatten_tree(value, refuse, f"{path}.{name}") for name, value in fields.items()]
        return (type(x), tuple(fields), tuple([p[0] for p in parts])), [t for p in parts for t in p[1]]
    return refuse(path, x), []


def unflatten(spec: TreeSpec, tensors: Iterable) -> Any:
    """Rebuild a structure with these tensors, in order."""
    return build_tree(spec, iter(tensors))


def build_tree(spec: TreeSpec, tensors: Iterator) -> Any:
    if spec == "tensor":
        return next(tensors)
    if spec is None:
        return None
    if isinstance(spec, Leaf):
        return spec.value
    kind, keys, parts = spec
    values = [build_tree(part, tensors) for part in parts]
    if keys is not None:
        return with_entries(kind, dict(zip(keys, values)))
    return kind(*values) if hasattr(kind, "_fields") else kind(values)


def with_entries(kind: type, entries: dict) -> Any:
    """A dict or a dataclass of this type with these entries or fields."""
    if kind is dict:
        return entries
    if issubclass(kind, dict):
        if dataclasses.is_dataclass(kind):  # a dict whose keys are fields, such as the outputs of Transformers' models
            return kind(**entries)
        return kind(None, entries) if issubclass(kind, defaultdict) else kind(entries)
    new = object.__new__(kind)  # without `__post_init__`, which has run for the object that was flattened
    for name, value in entries.items():
        object.__setattr__(new, name, value)
    return new


def leaves(x: Any, path: tuple = (), inside: tuple = ()) -> list[tuple[tuple, Any]]:
    """Yield (path of keys and indices, leaf) of everything in a structure, in order. inside: the enclosing containers,
    to detect cycles.
    """
    fields = fields_of(x)
    if fields is None and not isinstance(x, dict | list | tuple):
        return [(path, x)]
    if any(x is container for container in inside):
        return []
    entries = fields.items() if fields is not None else x.items() if isinstance(x, dict) else enumerate(x)
    return [leaf for key, value in entries for leaf in leaves(value, (*path, key), (*inside, x))]


def keys_of(path: Any) -> tuple:
    """Parse a path from `flatten`, such as "0[1]['key'].x", into keys. A key that is not a literal stays a string."""
    if isinstance(path, tuple):
        return path
    keys: list[Any] = []
    try:
        place = ast.parse(path, mode="eval").body
        while isinstance(place, ast.Subscript | ast.Attribute):
            keys.insert(0, Field(place.attr) if isinstance(place, ast.Attribute) else ast.literal_eval(place.slice))
            place = place.value
        return ast.literal_eval(place), *keys
    except (SyntaxError, ValueError):
        head, _, rest = path.partition("[")
        first, _, rest = rest.partition("]")
        return int(head), int(first) if first.isdigit() else first.strip("'\""), *([rest.strip("[]")] if rest else [])
