"""`flow.compile` and `flow.jit`: the function or model is given back as it is, and that is said once.

nn.Graph is what compiles here; it is shown, listed and debugged. What saves a compiled program is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

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
    """`model` itself, or a decorator that gives back its function. All options are accepted."""
    if model is None:
        return lambda function: compile(function, disable=disable)
    if not disable:
        warn("compile: the model is given back as it is", GRAPH)
    return model


def script(obj: Any, optimize: Any = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None) -> Any:
    """`obj` itself: a function, a module or a class."""
    warn("jit.script: it is given back as it is", GRAPH)
    return obj


def trace(func: Any, example_inputs: Any = None, optimize: Any = None, check_trace: bool = True, **options: Any) -> Any:
    """`func` itself, a function or a module."""
    warn("jit.trace: it is given back as it is", GRAPH)
    return func


def trace_module(mod: Any, inputs: Any, **options: Any) -> Any:
    """`mod` itself."""
    return trace(mod)


def ignore(drop: Any = False, **options: Any) -> Any:
    """A decorator without effect, with or without options."""
    return drop if callable(drop) else lambda function: function


def unused(fn: Any) -> Any:
    """A decorator without effect."""
    return fn


export = script_if_tracing = _script_if_tracing = interface = unused


def is_scripting() -> bool:
    """False"""
    return False


def is_tracing() -> bool:
    """False"""
    return False


def annotate(the_type: Any, the_value: Any) -> Any:
    """the_value"""
    return the_value


@contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """Accepted."""
    yield


def fork(func: Callable, *args: Any, **kwargs: Any) -> Any:
    """The result, computed at once; `wait` gives it."""
    return func(*args, **kwargs)


def wait(future: Any) -> Any:
    """What `fork` gave."""
    return future


class Attribute(tuple):
    """Attribute(value, type): a pair."""

    def __new__(cls, value: Any, type: Any = None):
        return super().__new__(cls, (value, type))

    value = property(lambda self: self[0], doc="Its value.")
    type = property(lambda self: self[1], doc="Its type, as annotated.")


Final = Any

__all__ = [
    "Attribute",
    "annotate",
    "compile",
    "export",
    "fork",
    "ignore",
    "interface",
    "is_scripting",
    "is_tracing",
    "optimized_execution",
    "script",
    "script_if_tracing",
    "trace",
    "trace_module",
    "unused",
    "wait",
]
__getattr__ = _name_hints("flow.jit", globals())
