"""Public names with a second meaning: while a job function is built, `flow.sort(blob)` is that generation's function.

`@two_meanings` stands at the definition, and inside minflow the name always means that definition. Only the public
name, `flow.sort`, asks for the other meaning (see `../messages/suggestions.py`); outside a job that is one test. The
other meanings are registered by job/, which nothing here knows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable)

BUILDING: ContextVar[Any] = ContextVar("the job function that is being built", default=None)
SHARED: dict[str, Callable] = {}  # "flow.sort" -> its definition
CHOICES: list[Callable[[str, tuple, Mapping[str, Any]], Callable | None]] = []  # the one, once job/ has registered it


def two_meanings(function: F, name: str = "") -> F:
    """The function itself, whose public name has a second meaning. name: where it is not that of the definition."""
    SHARED[f"flow.{name or function.__name__}"] = function
    return function


def other_meaning(name: str, args: tuple, kwargs: Mapping[str, Any]) -> Callable | None:
    """The function that a call means by its arguments, where that is not the definition. name: "flow.sort"."""
    return CHOICES[0](name, args, kwargs) if CHOICES else None
