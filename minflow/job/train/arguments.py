"""Arguments of optimizers and schedules of job functions: each is declared once, with its check and default.

A class lists the arguments that it takes, in order; its signature, constructor and repr follow from that. Read next:
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
from ...core.messages.suggestions import signature_error
from ...core.source_location import fail


class DeclaredArgument(NamedTuple):
    """An argument of a constructor: its check, which returns the value to store, and its type in the signature."""

    check: Callable[[str, str, Any], Any]  # (class name, argument name, value) -> value
    annotation: str
    default: Any = Parameter.empty


class DeclaredArguments:
    """Base class of objects with declared arguments, which are class attributes until they are set.

    arguments: names of the constructor's arguments, in order.
    """

    arguments: ClassVar[str] = ""
    takes: ClassVar[Signature] = Signature()
    __signature__: ClassVar[Signature]

    def __init_subclass__(cls) -> None:
        by_place = Parameter.POSITIONAL_OR_KEYWORD
        declared = [(name, getattr(cls, name)) for name in cls.arguments.split()]
        cls.takes = Signature(
            [Parameter(name, by_place, default=it.default, annotation=it.annotation) for name, it in declared]
        )
        own = signature(cls.__init__)  # a user's subclass may have its own constructor
        rest = own.replace(parameters=list(own.parameters.values())[1:])
        cls.__signature__ = cls.takes if cls.__init__ is DeclaredArguments.__init__ else rest

    def __init__(self, *args: Any, **options: Any):
        owner = type(self)
        try:
            bound = owner.takes.bind(*args, **options)
        except TypeError as error:
            raise signature_error(owner, args, options, f"flow.optimizer.{owner.__name__}", error) or error from None
        bound.apply_defaults()
        for name, value in bound.arguments.items():
            check, _, default = getattr(owner, name)
            setattr(self, name, None if value is None and default is None else check(owner.__name__, name, value))
        self.complete()

    def complete(self) -> None:
        """Called when all arguments are set."""

    def __repr__(self) -> str:
        shown = {name: getattr(self, name, None) for name in signature(type(self)).parameters}
        inside = ", ".join([f"{name}={value!r}" for name, value in shown.items() if value is not None])
        return f"{type(self).__name__}({inside})"


def float_argument(default: Any = Parameter.empty, low: float = -math.inf, high: float = math.inf, **ends: Any) -> Any:
    """Declare a float in a range. ends: open_low, open_high. Like `dataclasses.field`, it has the type of the value."""
    check = partial(check_number, low=low, high=high, **ends)
    return DeclaredArgument(check, "float | None" if default is None else "float", default)


def integer_argument(low: int) -> Any:
    """Declare an int of at least `low`."""
    return DeclaredArgument(partial(check_integer, low=low), "int")


def flag_argument(default: bool) -> Any:
    return DeclaredArgument(lambda owner, name, value: bool(value), "bool", default)


def instance_argument(kind: type, hint: str, expected: str = "", default: Any = None) -> Any:
    """Declare an instance of a class. expected: names the instance in the error; default: the class."""

    def check(owner: str, name: str, value: Any) -> Any:
        if not isinstance(value, kind):
            what = f"{owner}: {name} must be {expected or kind.__name__}, got a {type(value).__name__}"
            fail(OptimError, what, hint, **{name: value})
        return value

    return DeclaredArgument(check, f"{kind.__name__} | None" if default is None else kind.__name__, default)


def check_number(
    owner: str,
    name: str,
    value: Any,
    low: float = -math.inf,
    high: float = math.inf,
    *,
    open_low: bool = False,
    open_high: bool = False,
) -> float:
    """Convert to a float between `low` and `high`; each is optional. Raises OptimError."""
    try:
        result = float(value)
    except (TypeError, ValueError):
        what = f"{owner}: {name} must be a number, got a {type(value).__name__}"
        fail(OptimError, what, f"{name}=0.1", **{name: value})
    if (
        not low <= result <= high
        or math.isinf(result)
        or (open_low and result == low)
        or (open_high and result == high)
    ):
        what = f"{owner}: {name} must be {range_text(low, high, open_low, open_high)}, got {result:g}"
        fail(OptimError, what, f"{name}={example_value(low, high):g}", **{name: value})
    return result


def range_text(low: float, high: float, open_low: bool, open_high: bool) -> str:
    """The range in words, such as "more than 0 and below 1"."""
    ends = []
    if math.isfinite(low):
        ends.append(f"{'more than' if open_low else 'at least'} {low:g}")
    if math.isfinite(high):
        ends.append(f"{'below' if open_high else 'at most'} {high:g}")
    return " and ".join(ends) or "finite"


def example_value(low: float, high: float) -> float:
    """An example value from the range, for a hint."""
    return (low + high) / 2 if high <= 100 and math.isfinite(low) else max(0.1, low + 1)


def check_integer(owner: str, name: str, value: Any, low: int) -> int:
    """Convert to an int of at least `low`. Raises OptimError."""
    try:
        result = operator.index(value)
    except TypeError:
        what = f"{owner}: {name} must be an integer, got {value!r}"
        fail(OptimError, what, f"{name}=100", **{name: value})
    if result < low:
        what = f"{owner}: {name} must be at least {low}, got {result}"
        fail(OptimError, what, f"{name}={max(low, 100)}", **{name: value})
    return result
