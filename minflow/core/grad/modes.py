"""Grad modes: turn the recording of gradients and the check for NaN on and off. Read next: `../autograd.py`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, overload

from ..base.interrupts import ContextVarScope
from ..mode import MODE, Mode

F = TypeVar("F", bound=Callable)


class GradMode(ContextVarScope):
    """Base class: turns the recording of gradients on or off, as a context or as a decorator."""

    variable, wanted = MODE, True

    def value(self) -> Mode:
        return MODE.get().replace(grad=self.wanted)

    def __call__(self, function: F) -> F:
        if inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def generator(*args, **kwargs):
                source = function(*args, **kwargs)
                while True:  # the mode is set while the generator runs, not while its caller does
                    with self.clone():
                        try:
                            item = next(source)
                        except StopIteration as stop:
                            return stop.value
                    yield item

            return generator

        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            with self.clone():
                return function(*args, **kwargs)

        return wrapped

    def clone(self):
        """A new context of the same kind; a decorator uses one per call."""
        twin = type(self).__new__(type(self))
        ContextVarScope.__init__(twin)
        twin.wanted = self.wanted
        return twin


class no_grad(GradMode):
    """Do not record gradients: `with flow.no_grad(): ...`, or `@flow.no_grad()` on a function."""

    wanted = False

    @overload
    def __new__(cls, function: None = None) -> no_grad: ...
    @overload
    def __new__(cls, function: F) -> F: ...
    def __new__(cls, function: Any = None) -> Any:
        self = super().__new__(cls)
        if function is None:
            return self
        ContextVarScope.__init__(self)
        return self(function)  # @flow.no_grad without the parentheses

    def __init__(self, function: Callable | None = None) -> None:
        super().__init__()


class inference_mode(no_grad):
    """An alias of `no_grad`; `inference_mode(False)` changes nothing."""

    @overload
    def __new__(cls, mode: bool = True) -> inference_mode: ...
    @overload
    def __new__(cls, mode: F) -> F: ...
    def __new__(cls, mode: Any = True) -> Any:
        self = super().__new__(cls) if not callable(mode) else super().__new__(cls, mode)
        if isinstance(mode, bool) and not mode:
            self.wanted = MODE.get().grad
        return self

    def __init__(self, mode: Any = True) -> None:
        GradMode.__init__(self)


class enable_grad(GradMode):
    """Record gradients, also inside `no_grad`."""

    wanted = True


class set_grad_enabled(GradMode):
    """Turn recording on or off immediately; as a context, until its end."""

    def __init__(self, mode: bool) -> None:
        super().__init__()
        self.wanted = bool(mode)
        super().__enter__()

    def __enter__(self):
        return self

    def __call__(self, function: F) -> F:
        self.close()  # as a decorator it applies inside the function only
        return super().__call__(function)

    def clone(self):
        """A new context of the same kind; a decorator uses one per call."""
        twin = GradMode()
        twin.wanted = self.wanted
        return twin


def is_grad_enabled() -> bool:
    """True if gradients are recorded now."""
    return MODE.get().grad


class set_detect_anomaly(GradMode):
    """Turn the check of `detect_anomaly` on or off immediately; as a context, until its end.

    check_nan: False turns it off too.
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        super().__init__()
        self.check = bool(mode) and check_nan
        super().__enter__()

    def value(self) -> Mode:
        return MODE.get().replace(anomaly=self.check)

    def __enter__(self) -> set_detect_anomaly:
        return self


class detect_anomaly(GradMode):
    """Check every gradient in backward: the first NaN raises NonFiniteError with the op and the line that made it."""

    def __init__(self, check_nan: bool = True) -> None:
        super().__init__()
        self.check = check_nan

    def value(self) -> Mode:
        return MODE.get().replace(anomaly=self.check)

    def clone(self):
        """A new context of the same kind; a decorator uses one per call."""
        return detect_anomaly(self.check)
