"""What optimizers and schedules of job functions ask of a number that they take, and how they print.

Read next: `schedule.py`, `optimizer_base.py`.
"""

from __future__ import annotations

import inspect
import math
import operator
from typing import Any

from ...core.base.errors import OptimError
from ...core.where import fail


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
        found = float(value)
    except (TypeError, ValueError):
        fail(OptimError, f"{owner}: {name} is a {type(value).__name__}, where a number is wanted", f"{name}=0.1", **{name: value})
    if not low <= found <= high or math.isinf(found) or (open_low and found == low) or (open_high and found == high):
        fail(OptimError, f"{owner}: {name} is {found:g}, and must be {between(low, high, open_low, open_high)}",
             f"{name}={inside(low, high):g}", **{name: value})  # fmt: skip
    return found


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
        found = operator.index(value)
    except TypeError:
        fail(OptimError, f"{owner}: {name} is {value!r}, where a whole number is wanted", f"{name}=100", **{name: value})
    if found < low:
        fail(OptimError, f"{owner}: {name} is {found}, and must be at least {low}", f"{name}={max(low, 100)}", **{name: value})
    return found


def said(x: Any) -> str:
    """The call that makes x, as far as its attributes are named as the arguments: "SGD(momentum=0.9)"."""
    given = {name: getattr(x, name, None) for name in inspect.signature(type(x)).parameters}
    inside = ", ".join([f"{name}={value!r}" for name, value in given.items() if value is not None])
    return f"{type(x).__name__}({inside})"
