"""Checks of values from a file. Each returns the value or raises Malformed, which has the expected value, the actual
one, and the place, such as `nodes[12].attrs.axis`.

    node = fields(x, "nodes[12]", ("op", "inputs"), optional=("line",))
    inputs = each(node["inputs"], "nodes[12].inputs", lambda value, place: whole(value, place, 0, 11), most=64)

`refuse` and `checking_file` turn it into a GraphFormatError. Independent of files and graphs. Read next:
`core/base/errors.py`.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Collection
from typing import Any, NoReturn, TypeVar

from ..core.base.errors import GraphFormatError
from ..core.source_location import here
from ..core.symbolic_shapes import SymInt
from ..io import tree

T = TypeVar("T")
Check = Callable[[Any, str], Any]  # (value, its place) -> the value, or Malformed
MAX_INT64 = 2**63 - 1
MAX_MAGNITUDE = 2**62  # beyond any size, step or memory offset
NONFINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
MAX_NAME_CHARS = 255  # characters of a name, as many as an error shows
RESAVE_HINT = "save the graph or copy the folder again; flow.save never leaves half of one, so it was damaged later"

SHORT_REPR = reprlib.Repr()
SHORT_REPR.maxstring = SHORT_REPR.maxother = 60
SHORT_REPR.maxlevel = 3


class Malformed(tree.MalformedStructure):
    """A wrong value at a place in a file. expected: describes a valid value.  actual: truncated repr of the value."""

    def __init__(self, expected: str, value: Any, place: str = ""):
        super().__init__(expected, None)
        self.actual, self.place = SHORT_REPR.repr(value), place

    def __str__(self) -> str:
        return f"{self.place or 'the whole file'} must be {self.expected}, got {self.actual}"


def refuse(what: str, hint: str = "", error: BaseException | None = None, /, **values: object) -> NoReturn:
    """Raise a GraphFormatError with these named values."""
    named = {name.replace("_", " "): value for name, value in values.items()}
    raise GraphFormatError(what, values=named, where=here(), hint=hint or RESAVE_HINT) from error


class checking_file:
    """Context manager: `with checking_file("graph.json"):` turns a Malformed in the block into a GraphFormatError about
    the file.
    """

    def __init__(self, file: object, hint: str = ""):
        self.file, self.hint = file, hint

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Malformed):
            place = error.place or "the whole file"
            what = f"{self.file}: {place} must be {error.expected}"
            refuse(what, self.hint, error, place=place, found=error.actual)


def check_bool(x: Any, place: str) -> bool:
    if type(x) is not bool:
        raise Malformed("true or false", x, place)
    return x


def check_int(x: Any, place: str, low: int = 0, high: int = MAX_INT64) -> int:
    """An integer from `low` to `high` inclusive; true and 1.0 are refused."""
    if type(x) not in (int, SymInt) or not low <= x <= high:
        limits = f"from {low} to {high}" if high != MAX_INT64 else f"from {low}"
        raise Malformed(f"a whole number {limits}", x, place)
    return x


def encode_float(x: float) -> float | dict[str, str]:
    """A float as JSON: {"float": "nan"} if it is not finite."""
    return x if math.isfinite(x) else {"float": str(x)}


def check_real(x: Any, place: str, low: float | None = None) -> int | float:
    """Decode the result of `encode_float`; an int is kept. low: the minimum, which also excludes NaN."""
    if type(x) is dict:
        x = NONFINITE[check_choice(check_fields(x, place, ("float",))["float"], place, NONFINITE)]
    elif type(x) is not float or not math.isfinite(x):
        check_int(x, place, -MAX_MAGNITUDE, MAX_MAGNITUDE)
    if low is not None and not x >= low:
        raise Malformed("a number" if low == -math.inf else f"a number from {low:g} on", x, place)
    return x


def check_text(x: Any, place: str, max_length: int = MAX_NAME_CHARS, min_length: int = 0, lines: bool = False) -> str:
    """A printable string of `min_length` to `max_length` characters. lines: True if it may contain line breaks."""
    if type(x) is not str or not min_length <= len(x) <= max_length:
        raise Malformed(f"a text of {min_length} to {max_length} characters", x, place)
    if not (x.replace("\n", "").replace("\t", "") if lines else x).isprintable():
        raise Malformed("a text without control characters", x, place)
    return x


def check_choice(x: Any, place: str, allowed: Collection[str]) -> str:
    """One of the allowed strings."""
    if type(x) is not str or x not in allowed:
        known = ", ".join(sorted(allowed)[:12]) + (f" or one of {len(allowed) - 12} more" if len(allowed) > 12 else "")
        raise Malformed(f"one of {known}", x, place)
    return x


def choice_of(*allowed: str) -> Check:
    return lambda x, place: check_choice(x, place, allowed)


def optional_of(check: Check) -> Check:
    """Accept None in addition to the values that `check` accepts."""
    return lambda x, place: None if x is None else check(x, place)


def check_list(x: Any, place: str, max_length: int = MAX_INT64, min_length: int = 0) -> list:
    """A list of `min_length` to `max_length` entries."""
    if type(x) is not list or not min_length <= len(x) <= max_length:
        count = f"{min_length} to {max_length}"
        if min_length == max_length or max_length == MAX_INT64:
            count = f"at least {min_length}" if min_length != max_length else str(min_length)
        raise Malformed(f"a list of {count} entries", x, place)
    return x


def check_each(
    x: Any, place: str, check: Callable[[Any, str], T], max_length: int = MAX_INT64, min_length: int = 0
) -> list[T]:
    """A list, with each entry replaced by `check(entry, its place)`."""
    return [check(entry, f"{place}[{i}]") for i, entry in enumerate(check_list(x, place, max_length, min_length))]


def check_fields(x: Any, place: str, names: Collection[str], optional: Collection[str] = ()) -> dict[str, Any]:
    """A dict with all keys in `names`, any in `optional`, and no others."""
    if type(x) is not dict:
        raise Malformed(f"an object with {', '.join(names) or 'nothing in it'}", x, place)
    if missing := [name for name in names if name not in x]:
        raise Malformed(f"an object with {', '.join(missing)}", sorted(x), place)
    if more := [name for name in x if name not in names and name not in optional]:
        raise Malformed(f"an object with {', '.join([*names, *optional])} and nothing else", more, place)
    return x


def check_mapping(x: Any, place: str, check: Callable[[Any, str], T], max_length: int = MAX_INT64) -> dict[str, T]:
    """A dict of at most `max_length` names, with each value replaced by `check(value, its place)`."""
    if type(x) is not dict or len(x) > max_length:
        raise Malformed(
            "an object" if max_length == MAX_INT64 else f"an object of at most {max_length} names", x, place
        )
    for name in x:
        check_text(name, f"a name in {place}", min_length=1)
    return {name: check(value, f"{place}.{name}") for name, value in x.items()}
