"""Overloads of public names: while a job function is built, `flow.sort(blob)` calls the legacy function of that name.

`@overloaded` marks the definition, and inside minflow the name always means that definition. Only the public name,
`flow.sort`, looks for an overload (see `../messages/suggestions.py`), which costs one test outside of jobs. job/
registers the overloads and must not be known here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable)

BUILDING: ContextVar[Any] = ContextVar("the job function that is being built", default=None)
OVERLOADED: dict[str, Callable] = {}  # "flow.sort" -> its definition
RESOLVERS: list[Callable[[str, tuple, Mapping[str, Any]], Callable | None]] = []  # empty, or the resolver of job/


def overloaded(function: F, name: str = "") -> F:
    """Decorator: mark a function whose public name has an overload. name: the public name, if it differs."""
    OVERLOADED[f"flow.{name or function.__name__}"] = function
    return function


def find_overload(name: str, args: tuple, kwargs: Mapping[str, Any]) -> Callable | None:
    """The overload that a call with these arguments means, or None for the definition. name: "flow.sort"."""
    return RESOLVERS[0](name, args, kwargs) if RESOLVERS else None
