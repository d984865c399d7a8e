"""Nested lists, tuples and dicts of tensors: the inputs and outputs of build. Read next: `build.py`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ...core.base.errors import GraphError
from ...core.messages.wrong_arguments import contains_itself
from ...core.source_location import describe, here
from ...core.tensor import Tensor

TreeSpec = Any  # a structure without its tensors; hashable


class Leaf:
    """In a TreeSpec: a value that is not a tensor, unchanged."""

    def __init__(self, value: Any):
        self.value = value


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
        return dict(zip(keys, values)) if kind is dict else kind(zip(keys, values))
    return kind(*values) if hasattr(kind, "_fields") else kind(values)


def leaves(x: Any, path: tuple = (), inside: tuple = ()) -> list[tuple[tuple, Any]]:
    """Yield (path of keys and indices, leaf) of everything in a structure, in order. inside: the enclosing containers,
    to detect cycles.
    """
    if not isinstance(x, dict | list | tuple):
        return [(path, x)]
    if any(x is container for container in inside):
        return []
    entries = x.items() if isinstance(x, dict) else enumerate(x)
    return [leaf for key, value in entries for leaf in leaves(value, (*path, key), (*inside, x))]


def keys_of(path: Any) -> tuple:
    """Parse a path from `flatten`, such as "0[1]['key']", into keys. A key that is not a literal stays a string."""
    if isinstance(path, tuple):
        return path
    keys: list[Any] = []
    try:
        place = ast.parse(path, mode="eval").body
        while isinstance(place, ast.Subscript):
            keys.insert(0, ast.literal_eval(place.slice))
            place = place.value
        return ast.literal_eval(place), *keys
    except (SyntaxError, ValueError):
        head, _, rest = path.partition("[")
        first, _, rest = rest.partition("]")
        return int(head), int(first) if first.isdigit() else first.strip("'\""), *([rest.strip("[]")] if rest else [])
