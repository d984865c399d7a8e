"""The argument `name=` of legacy functions: a scope, so that views and errors show the user's name for their ops.

Independent of jobs: the functions of `math.py` and `arrays.py` also run on eager tensors. Read next: `math.py`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from ...core.base.errors import DTypeError
from ...core.messages.suggestions import signature_error
from ...core.mode import MODE
from ...core.source_location import fail

Function = TypeVar("Function", bound=Callable)
NAME = inspect.Parameter("name", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation="str | None")


def takes_name(
    function: Callable, otherwise: str = "", place: int | None = None, default: str | None = None
) -> Callable:
    """Decorate a function to accept `name`, and to run in a scope of that name; by default in the scope `otherwise`.

    place: position of the added parameter; it is the last one by default.  default: its default in the signature, which
    names no scope. Raises DTypeError unless name is a string.
    """
    signature = inspect.signature(function)
    parameters = [*signature.parameters.values()]
    place = len(parameters) if place is None else place
    least, most = sum([each.default is each.empty for each in parameters]), len(parameters) + 1

    @functools.wraps(function)
    def scoped(*args, **options):
        if len(args) <= place:
            name = options.pop("name", None)
        elif len(args) <= most:
            name, args = args[place], (*args[:place], *args[place + 1 :])
        else:  # counted as Python does
            count = f"from {least} to {most} positional arguments but {len(args)} were given"
            raise TypeError(f"{function.__name__}() takes {count}")
        if name is None and not otherwise:
            return call(function, args, options)
        if name is not None and not isinstance(name, str):
            hint = f'name="{function.__name__}1"; pass several sizes as one list: [2, 3]'
            what = f"{function.__name__}: argument {place + 1} is the name, and {name!r} is not a string"
            fail(DTypeError, what, hint, name=name)
        mode = MODE.get()
        try:
            MODE.set(mode.replace(scope=f"{mode.scope}/{name or otherwise}" if mode.scope else name or otherwise))
            return call(function, args, options)
        finally:
            MODE.set(mode)

    parameters.insert(place, NAME.replace(default=default))
    scoped.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return scoped


def call(function: Callable, args: tuple, options: dict) -> Any:
    """Call a function of jobs; an argument that it does not have raises CallError."""
    try:
        return function(*args, **options)
    except TypeError as error:
        if (better := signature_error(function, args, options, function.__name__, error)) is None:
            raise
        raise better from error


def with_call_errors(function: Function) -> Function:
    """Decorate a function of jobs that has a `name` of its own, see `call`."""

    @functools.wraps(function)
    def checked(*args, **options):
        return call(function, args, options)

    return checked  # type: ignore[return-value]  # `wraps` keeps the signature


def described(function: Callable, name: str, doc: str | None = None) -> Callable:
    """Name a function that a factory returns. doc: its docstring; by default it keeps its own."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc or function.__doc__
    return function


def also_called(**others: str) -> Callable:
    """Accept keywords of later OneFlow versions: input="x" renames the keyword input to x."""

    def decorated(function: Callable) -> Callable:
        @functools.wraps(function)
        def either(*args, **options):
            for later, name in others.items():
                if later in options and name not in options:
                    options[name] = options.pop(later)
            return function(*args, **options)

        return either

    return decorated


def public(names: dict) -> Callable:
    """A `__dir__` for a module of legacy functions that lists only them, not its imports. names: globals() of the
    module.
    """

    def is_legacy(thing) -> bool:
        return (
            inspect.isfunction(thing)
            and hasattr(thing, "__wrapped__")
            and "name" in inspect.signature(thing).parameters
        )

    return lambda: sorted([name for name, thing in names.items() if is_legacy(thing)])


def folded(function: Callable) -> Callable:
    """Like takes_name; without a name the ops run in a scope named after the function, which views fold into one
    row.
    """
    return takes_name(function, function.__name__)
