"""Docstrings of methods that say no more than the function of their name: `x.exp()` is told by `flow.exp`."""

from __future__ import annotations

from collections.abc import Mapping
from types import FunctionType
from typing import Any


def inherit_docs(cls: type, *rooms: Mapping[str, Any]) -> None:
    """Give the public methods of `cls` that have no docstring the one of the function of their name, the first of
    `rooms` that has it; a form in place, `exp_`, that of `exp`."""

    def of(name: str) -> str | None:
        places = [room[name] for room in rooms if name in room] + [getattr(cls, name, None)]
        return next((doc for it in places if (doc := it.__doc__ if callable(it) else None)), None)

    for kind in cls.__mro__:
        for name, method in vars(kind).items():
            if name[:1] != "_" and type(method) is FunctionType and not method.__doc__:
                method.__doc__ = of(name) or (name[-1] == "_" and (doc := of(name[:-1])) and f"In place: {doc}") or None
