"""Names of a function's arguments, read from its code object: `inspect.signature` for a thousand functions would take
half of numpy's import time.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType


def argument_names(function: Callable) -> tuple[str, ...]:
    """The names of the parameters, in order; for a plain function without `*args` and `**kwargs`."""
    while type(function) is FunctionType and [*vars(function)] == ["__wrapped__"]:
        function = vars(function)["__wrapped__"]
    if type(function) is not FunctionType or vars(function):
        return tuple(inspect.signature(function).parameters)
    code = function.__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
