"""Docstrings for methods that repeat a public function: `x.exp()` gets the docstring of `flow.exp`."""

from __future__ import annotations

from collections.abc import Mapping
from types import FunctionType
from typing import Any


def inherit_docs(cls: type, *namespaces: Mapping[str, Any]) -> None:
    """Copy docstrings to the public methods of `cls` that have none, from the function of that name in the first of
    `namespaces` that documents it; an in-place method, `exp_`, gets the docstring of `exp`.
    """

    def of(name: str) -> str | None:
        places = [names[name] for names in namespaces if name in names] + [getattr(cls, name, None)]
        return next((doc for it in places if (doc := it.__doc__ if callable(it) else None)), None)

    for kind in cls.__mro__:
        for name, method in vars(kind).items():
            if name[:1] != "_" and type(method) is FunctionType and not method.__doc__:
                method.__doc__ = of(name) or (name[-1] == "_" and (doc := of(name[:-1])) and f"In place: {doc}") or None
