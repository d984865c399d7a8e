"""The arguments of optimizers and schedules of job functions: each is declared once, with its check and its default.

A class names those that it takes, in order; from that come its signature, its constructor and how it prints. Read next:
`schedule.py`, `optimizer_base.py`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import partial
from inspect import Parameter, Signature, signature
from typing import Any, ClassVar, NamedTuple

from ...core.base.errors import OptimError
from ...core.messages.suggestions import misfit
from ...core.source_location import fail


class Argument(NamedTuple):
    """An argument of a constructor: its check, which gives the value that is kept, and its type in the signature."""

    check: Callable[[str, str, Any], Any]  # of the class's name, the argument's name and the value
    annotation: str
    default: Any = Parameter.empty


class Declared:
    """Base class of what is made from declared arguments, which are class attributes until they are set.

    arguments: the names of those that the constructor takes, in order.
    """

    arguments: ClassVar[str] = ""
    takes: ClassVar[Signature] = Signature()

    def __init_subclass__(cls) -> None:
        by_place = Parameter.POSITIONAL_OR_KEYWORD
        declared = [(name, getattr(cls, name)) for name in cls.arguments.split()]
        cls.takes = Signature(
            [Parameter(name, by_place, default=it.default, annotation=it.annotation) for name, it in declared]
        )
        own = signature(cls.__init__)  # a learner's subclass may have a constructor of its own
        rest = own.replace(parameters=list(own.parameters.values())[1:])
        cls.__signature__ = cls.takes if cls.__init__ is Declared.__init__ else rest

    def __init__(self, *args: Any, **options: Any):
        owner = type(self)
        try:
            bound = owner.takes.bind(*args, **options)
        except TypeError as error:
            raise misfit(owner, args, options, f"flow.optimizer.{owner.__name__}", error) or error from None
        bound.apply_defaults()
        for name, value in bound.arguments.items():
            check, _, default = getattr(owner, name)
            setattr(self, name, None if value is None and default is None else check(owner.__name__, name, value))
        self.complete()

    def complete(self) -> None:
        """What is to be done when all arguments are there."""

    def __repr__(self) -> str:
        shown = {name: getattr(self, name, None) for name in signature(type(self)).parameters}
        inside = ", ".join([f"{name}={value!r}" for name, value in shown.items() if value is not None])
        return f"{type(self).__name__}({inside})"


def real(default: Any = Parameter.empty, low: float = -math.inf, high: float = math.inf, **ends: bool) -> Argument:
    """A float in a range. ends: open_low, open_high."""
    check = partial(number, low=low, high=high, **ends)
    return Argument(check, "float | None" if default is None else "float", default)


def integer(low: int) -> Argument:
    """An int of at least low."""
    return Argument(partial(whole, low=low), "int")


def flag(default: bool) -> Argument:
    return Argument(lambda owner, name, value: bool(value), "bool", default)


def instance(kind: type, hint: str, wanted: str = "", default: Any = None) -> Argument:
    """An object of a class. wanted: what the error says after the class that it has."""

    def check(owner: str, name: str, value: Any) -> Any:
        if not isinstance(value, kind):
            fail(OptimError, f"{owner}: {name} is a {type(value).__name__}{wanted}", hint, **{name: value})
        return value

    return Argument(check, f"{kind.__name__} | None" if default is None else kind.__name__, default)


def number(
    owner: str,
    name: str,
    value: Any,
    low: float = -math.inf,
    high: float = math.inf,
    *,
    open_low: bool = False,
    open_high: bool = False,
) -> float:
    """value as a float between low and high, of which either may be left out, or OptimError."""
    try:
        result = float(value)
    except (TypeError, ValueError):
        what = f"{owner}: {name} is a {type(value).__name__}, where a number is wanted"
        fail(OptimError, what, f"{name}=0.1", **{name: value})
    if not low <= result <= high or math.isinf(result) or open_low and result == low or open_high and result == high:
        what = f"{owner}: {name} is {result:g}, and must be {between(low, high, open_low, open_high)}"
        fail(OptimError, what, f"{name}={inside(low, high):g}", **{name: value})
    return result


def between(low: float, high: float, open_low: bool, open_high: bool) -> str:
    """The range in words: "more than 0 and below 1"."""
    ends = []
    if math.isfinite(low):
        ends.append(f"{'more than' if open_low else 'at least'} {low:g}")
    if math.isfinite(high):
        ends.append(f"{'below' if open_high else 'at most'} {high:g}")
    return " and ".join(ends) or "finite"


def inside(low: float, high: float) -> float:
    """A number of the range, to show in a hint."""
    return (low + high) / 2 if high <= 100 and math.isfinite(low) else max(0.1, low + 1)


def whole(owner: str, name: str, value: Any, low: int) -> int:
    """value as an int of at least low, or OptimError."""
    try:
        result = operator.index(value)
    except TypeError:
        what = f"{owner}: {name} is {value!r}, where a whole number is wanted"
        fail(OptimError, what, f"{name}=100", **{name: value})
    if result < low:
        what = f"{owner}: {name} is {result}, and must be at least {low}"
        fail(OptimError, what, f"{name}={max(low, 100)}", **{name: value})
    return result
