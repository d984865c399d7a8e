"""`flow.compile` and `flow.jit`: return the function or model unchanged, with one warning.

In minflow, nn.Graph compiles, and its graphs can be displayed, listed and debugged. Functions that save a compiled
program are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final as Final

from ...core.messages.suggestions import name_hints as _name_hints
from ...core.source_location import warn

GRAPH = "it runs eagerly; nn.Graph compiles a model, and flow.show(graph) draws it"


def compile(
    model: Callable | None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = "inductor",
    mode: str | None = None,
    options: Any = None,
    disable: bool = False,
) -> Any:
    """Return `model` unchanged, or a decorator that returns its function. All options are accepted."""
    if model is None:
        return lambda function: compile(function, disable=disable)
    if not disable:
        warn("compile: the model is returned unchanged", GRAPH)
    return model


def script(obj: Any, optimize: Any = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None) -> Any:
    """Return `obj`, a function, module or class, unchanged."""
    warn("jit.script: the object is returned unchanged", GRAPH)
    return obj


def trace(func: Any, example_inputs: Any = None, optimize: Any = None, check_trace: bool = True, **options: Any) -> Any:
    """Return `func`, a function or module, unchanged."""
    warn("jit.trace: the function is returned unchanged", GRAPH)
    return func


def trace_module(mod: Any, inputs: Any, **options: Any) -> Any:
    """Return `mod` unchanged."""
    return trace(mod)


def ignore(drop: Any = False, **options: Any) -> Any:
    """Decorator, with or without options, that returns the function unchanged."""
    return drop if callable(drop) else lambda function: function


def unused(fn: Any) -> Any:
    """Decorator that returns the function unchanged."""
    return fn


export = script_if_tracing = _script_if_tracing = interface = unused


def do_nothing(*args: Any, **options: Any) -> None:
    """Do nothing, and return None: no compiled code depends on the size or the address of a tensor, or on a fuser."""


Dict, List, Tuple = dict, list, tuple  # names of jit.annotations


def is_scripting() -> bool:
    """Return False."""
    return False


def is_tracing() -> bool:
    """Return False."""
    return False


def annotate(the_type: Any, the_value: Any) -> Any:
    """Return the_value."""
    return the_value


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None, **options: Any) -> Any:
    """Decorator, with or without options, that returns the function unchanged."""
    return ignore(fn or False)


def is_compiling() -> bool:
    """Return False."""
    return False


def reset() -> None:
    """Do nothing: there are no compiled functions to forget."""


@contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """Context manager that does nothing."""
    yield


def fork(func: Callable, *args: Any, **kwargs: Any) -> Any:
    """Call `func` at once and return its result; `wait` returns it again."""
    return func(*args, **kwargs)


def wait(future: Any) -> Any:
    """Return the result of `fork`."""
    return future


class Attribute(tuple):
    """Pair of a value and its type."""

    def __new__(cls, value: Any, type: Any = None):
        return super().__new__(cls, (value, type))

    value = property(lambda self: self[0], doc="Its value.")
    type = property(lambda self: self[1], doc="Its type, as annotated.")


__all__ = [
    "Attribute",
    "annotate",
    "compile",
    "disable",
    "export",
    "fork",
    "ignore",
    "interface",
    "is_compiling",
    "is_scripting",
    "is_tracing",
    "optimized_execution",
    "reset",
    "script",
    "script_if_tracing",
    "trace",
    "trace_module",
    "unused",
    "wait",
]
__getattr__ = _name_hints("flow.jit", globals())
