"""Names of a function's arguments, read from its code object: `inspect.signature` for a thousand functions would take
half of numpy's import time.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any


def argument_names(function: Callable) -> tuple[str, ...]:
    """The names of the parameters, in order; for a plain function without `*args` and `**kwargs`."""
    while type(function) is FunctionType and [*vars(function)] == ["__wrapped__"]:
        function = vars(function)["__wrapped__"]
    if type(function) is not FunctionType or vars(function):
        return tuple(inspect.signature(function).parameters)
    code = function.__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def rename(function: Any, qualname: str) -> None:
    """Rename a Python function and its code object, whose name debuggers and tracebacks show."""
    name = qualname.rpartition(".")[2]
    function.__name__, function.__qualname__ = name, qualname
    function.__code__ = function.__code__.replace(co_name=name, co_qualname=qualname)


class MethodSignature:
    """The `__wrapped__` of a method that runs a function: the signature of that function, with `self` for its first
    parameter, computed on demand.
    """

    def __init__(self, function: Callable):
        self.__wrapped__ = function

    @property
    def __signature__(self) -> inspect.Signature:
        signature = inspect.signature(self.__wrapped__)
        first, *others = signature.parameters.values()
        return signature.replace(parameters=[first.replace(name="self", annotation="Tensor"), *others])
