"""The names of a function's arguments, read from its code: `inspect.signature` of a thousand functions takes as long
as half of numpy's import."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType


def argument_names(function: Callable) -> tuple[str, ...]:
    """As `inspect.signature` has them; of a plain function without `*args` and `**kwargs`."""
    while type(function) is FunctionType and [*vars(function)] == ["__wrapped__"]:
        function = vars(function)["__wrapped__"]
    if type(function) is not FunctionType or vars(function):
        return tuple(inspect.signature(function).parameters)
    code = function.__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
