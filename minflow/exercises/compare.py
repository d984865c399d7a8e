"""Compare a result with the expected one and describe the most informative difference.

Values are compared as NumPy arrays: a tensor, an array and a list with the same elements are equal, unless the exercise
asks for exact types. Integers and booleans differ from floats. Independent of exercises. Read next: `judge.py`.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import numbers
from typing import Any

import numpy as np

from .i18n import say

KIND_NAMES = {
    "b": "truth values",
    "i": "whole numbers",
    "u": "whole numbers",
    "f": "numbers with a fraction",
    "c": "complex numbers",
    "V": "numbers with a fraction",
}
FORMS = {
    "array": "a NumPy array",
    "tensor": "a tensor",
    "number": "a number",
    "list": "a list",
    "generator": "a generator",
    "method": "a method (are its parentheses missing?)",
}
MAX_LIST = 1_000_000  # longest list that is converted to an array
MAX_CHARS = 76  # characters of a displayed value


@dataclasses.dataclass(frozen=True)
class Difference:
    """Difference between a result and the expected one.

    kind: "type", "length", "keys", "shape", "dtype", "nan" or "value". text: a sentence, or "".
    size: largest absolute difference; relative: size divided by the largest expected number. where: index or keys.
    """

    kind: str
    text: str = ""
    size: float = math.inf
    relative: float = math.inf
    where: tuple = ()


def form(value: Any) -> str:
    """Form of a result, which a question states: a key of FORMS, or "" for other objects."""
    if isinstance(value, np.ndarray):
        return "array" if value.ndim else "number"
    if hasattr(value, "detach") and hasattr(value, "numpy"):
        return "tensor"
    if isinstance(value, numbers.Number | np.generic):
        return "number"
    if isinstance(value, list | tuple | range):
        return "list"
    if hasattr(value, "__next__"):
        return "generator"
    return "method" if callable(value) and not isinstance(value, type) else ""


def form_difference(got: Any, expected: Any) -> Difference | None:
    """Difference of form: a list where a tensor is asked for, a tensor of one number instead of a number."""
    mine, right = form(got), form(expected)
    if mine == right or not mine or not right or (mine, right) == ("array", "list"):
        return None
    return Difference(
        "type", say("It must be {expected}, got {got}.", expected=say(FORMS[right]), got=say(FORMS[mine]))
    )


def difference(got: Any, expected: Any, tolerance: tuple[float, float], exact_types: bool = False) -> Difference | None:
    """Compare `got` with `expected`; None if they agree. allowed: (absolute, relative) error."""
    if isinstance(expected, dict):
        return compare_dicts(got, expected, tolerance, exact_types)
    if isinstance(expected, str | bytes | set | frozenset | type | None):
        if isinstance(got, type(expected)) and got == expected:
            return None
        same = isinstance(got, type(expected))
        return Difference("value" if same else "type", "" if same else type_text(got, expected))
    if to_array(expected) is None and isinstance(expected, list | tuple):
        return compare_sequences(got, expected, tolerance, exact_types)
    right = to_array(expected)
    if right is None:
        return (
            None
            if same_object(got, expected)
            else Difference("value" if type(got) is type(expected) else "type", type_text(got, expected))
        )
    if exact_types and type(got) is not type(expected):
        return Difference("type", type_text(got, expected))
    mine = to_array(got)
    if mine is None and isinstance(got, list | tuple) and isinstance(expected, list | tuple):
        return compare_sequences(
            got, expected, tolerance, exact_types
        )  # rows of different lengths, or elements that are not numbers
    if mine is None:
        return Difference("type", type_text(got, expected))
    if isinstance(got, list | tuple) and isinstance(expected, list | tuple) and len(got) != len(expected):
        return Difference("length", length_text(len(got), len(expected)))
    if isinstance(expected, numbers.Number) and isinstance(got, list | tuple):
        return Difference(
            "type",
            say("It must be a single number, got a {got} of {entries}.", got=type(got).__name__, entries=len(got)),
        )
    if isinstance(expected, list | tuple) and mine.ndim == 0:
        return Difference("type", say("It must be a list of {expected}, got a single number.", expected=len(expected)))
    return compare_arrays(mine, right, tolerance, exact_types)


def length_text(got: int, expected: int) -> str:
    return say("The number of entries must be {expected}, got {got}.", got=got, expected=expected)


def compare_dicts(got: Any, expected: dict, tolerance: tuple[float, float], exact_types: bool) -> Difference | None:
    if not isinstance(got, dict):
        return Difference("type", type_text(got, expected))
    if got.keys() != expected.keys():
        missing, more = [key for key in expected if key not in got], [key for key in got if key not in expected]
        return Difference(
            "keys", say("Missing: {missing}. Unexpected: {more}.", missing=join_names(missing), more=join_names(more))
        )
    for key, value in expected.items():
        if diff := difference(got[key], value, tolerance, exact_types):
            return dataclasses.replace(diff, where=(key, *diff.where))
    return None


def compare_sequences(got: Any, expected: Any, tolerance: tuple[float, float], exact_types: bool) -> Difference | None:
    if isinstance(got, np.ndarray) or hasattr(got, "numpy"):
        got = list(got)
    if not isinstance(got, list | tuple):
        return Difference("type", type_text(got, expected))
    if len(got) != len(expected):
        return Difference("length", length_text(len(got), len(expected)))
    for i, (item, other) in enumerate(zip(got, expected)):
        if diff := difference(item, other, tolerance, exact_types):
            return dataclasses.replace(diff, where=(i, *diff.where))
    return None


def compare_arrays(
    got: np.ndarray, expected: np.ndarray, tolerance: tuple[float, float], exact: bool
) -> Difference | None:
    if got.shape != expected.shape:
        return Difference(
            "shape", say("Its shape must be {expected}, got {got}.", got=got.shape, expected=expected.shape)
        )
    mine, right = (kind_of(array) for array in (got, expected))
    if got.size and (mine != right if "b" in (mine, right) or exact else right == "i" and mine != "i"):
        if (exact and got.dtype != expected.dtype) or mine != right:
            return Difference(
                "dtype",
                say(
                    "It must contain {expected}, got {got}.",
                    got=say(KIND_NAMES[got.dtype.kind]),
                    expected=say(KIND_NAMES[expected.dtype.kind]),
                ),
                *max_difference(got, expected),
            )
    if exact and got.dtype != expected.dtype:
        return Difference(
            "dtype", say("Its dtype must be {expected}, got {got}.", got=got.dtype, expected=expected.dtype)
        )
    size, relative = max_difference(got, expected)
    with np.errstate(all="ignore"):
        x, y = got.astype(wide_dtype(got)), expected.astype(wide_dtype(expected))
        right_there = np.isclose(x, y, rtol=tolerance[1], atol=tolerance[0], equal_nan=True)
    if right_there.all():
        return None
    where = tuple(int(i) for i in np.argwhere(~right_there)[0]) if got.ndim else ()
    if np.isnan(x).any() and not np.isnan(y).any():
        text = say("There is NaN in it: 0/0, inf - inf or the log of a negative number.")
        return Difference("nan", text, where=where)
    return Difference("value", "", size, relative, where)


def max_difference(got: np.ndarray, expected: np.ndarray) -> tuple[float, float]:
    """(largest absolute difference, that divided by the largest expected number)."""
    if not got.size or kind_of(expected) == "b":
        return 0.0, 0.0
    with np.errstate(all="ignore"):
        x, y = got.astype(wide_dtype(got)), expected.astype(wide_dtype(expected))
        distance = np.abs(np.where(x == y, 0, x - y))
        largest = float(np.max(np.where(np.isnan(distance), np.where(np.isnan(x) & np.isnan(y), 0, np.inf), distance)))
        scale = float(np.max(np.abs(y), where=np.isfinite(y), initial=0))
    return largest, largest / scale if scale else largest


def clue(got: Any, expected: Any, diff: Difference) -> str:
    """Describe a pattern in a wrong result: shape, sign, factor, transposed, reversed, constant offset; or ""."""
    mine, right = to_array(got), to_array(expected)
    if diff.kind != "value" or mine is None or right is None:
        if diff.kind == "shape" and mine is not None and right is not None:
            if mine.ndim == 2 and mine.T.shape == right.shape and close(mine.T, right):
                return say("It is the right answer with rows and columns swapped.")
            if mine.size == right.size > 1 and close(mine.reshape(right.shape), right):
                return say("The numbers are right, but their shape is not.")
        return ""
    if "b" in (kind_of(mine), kind_of(right)) or not np.isfinite(mine.astype(wide_dtype(mine))).all():
        return ""
    x, y = mine.astype(wide_dtype(mine)), right.astype(wide_dtype(right))
    if close(-x, y):
        return say("Only the sign is wrong.")
    if x.ndim == 2 and x.shape[0] == x.shape[1] and close(x.T, y):
        return say("It is the right answer with rows and columns swapped.")
    if x.size > 1 and close(x[::-1], y):
        return say("It is the right answer in the opposite order.")
    if (y != 0).any() and not (x[y == 0] != 0).any():
        factors = x[y != 0] / y[y != 0]
        if (
            close(factors, np.full_like(factors, factors[0]))
            and x.size > 1
            and factors[0]
            and format_number(factors[0]) != "1"
        ):
            return say("Each number is {factor} times the right one.", factor=format_number(factors[0]))
    if x.size > 1 and close(x - y, np.full_like(x, (x - y).flat[0])):
        return say("Each number is off by {offset}.", offset=format_number((x - y).flat[0]))
    return ""


def close(x: np.ndarray, y: np.ndarray) -> bool:
    return x.shape == y.shape and bool(np.allclose(x, y, rtol=1e-4, atol=1e-9))


def to_array(value: Any) -> np.ndarray | None:
    """Convert numbers, tensors and lists of numbers to an array; None for other values and lists of millions."""
    try:
        array = as_array(value)
    except (Exception, SystemExit):  # the learner's own object, or a list that contains itself
        return None
    return array if array is not None and array.dtype.kind in "biufcV" else None


def as_array(value: Any) -> np.ndarray | None:
    if isinstance(value, np.ndarray | np.generic | numbers.Number | range):
        return np.asarray(value)
    if hasattr(value, "detach") and hasattr(value, "numpy"):
        return np.asarray(value.detach().numpy())
    if isinstance(value, list | tuple) and 0 < len(value) <= MAX_LIST:
        arrays = list(itertools.takewhile(lambda array: array is not None, map(to_array, value)))
        if len(arrays) == len(value):
            return np.asarray(arrays)  # raises for rows of different lengths
    return None


def kind_of(array: np.ndarray) -> str:
    """Kind of the elements: "b" for booleans, "i" for integers, "f" for others."""
    return {"b": "b", "i": "i", "u": "i"}.get(array.dtype.kind, "f")


def wide_dtype(array: np.ndarray) -> Any:
    return np.complex128 if array.dtype.kind == "c" else np.float64


def same_object(got: Any, expected: Any) -> bool:
    try:
        return got is expected or bool(type(got) is type(expected) and got == expected)
    except Exception:  # the learner's own __eq__ may raise
        return False


def type_text(got: Any, expected: Any) -> str:
    if got is None:
        return say("It is None: did you forget a return?")
    return say("Its type must be {expected}, got {got}.", got=type(got).__name__, expected=type(expected).__name__)


# ---- values as text -------------------------------------------------------------------------------------------------


def format_value(value: Any) -> str:
    """Format a value on one line: `float32[3]  [4 4 4]`, `3.01`, `'error'`."""
    try:
        array = None if isinstance(value, list | tuple | range) else to_array(value)
        if array is None:
            return shorten(format_plain(value))
    except (Exception, SystemExit) as error:  # the learner's own object, or a list that contains itself
        return f"<{type(value).__name__}, its repr raises {type(error).__name__}>"
    if array.ndim == 0:
        return format_number(array[()])
    text = format_elements(array)
    return shorten(f"{array.dtype.name}{list(array.shape)}  {text}")


def format_elements(array: np.ndarray) -> str:
    """Format the elements of an array on one line; if they are all equal, one of them."""
    flat = array.reshape(-1)
    if flat.size > 4 and (flat == flat[0]).all():
        return say("all {value}", value=format_number(flat[0]))
    if array.ndim == 1 or flat.size == 0:
        most = 8
        parts = [format_number(x) for x in flat[:most]] + ["..."] * (flat.size > most)
        return f"[{' '.join(parts)}]"
    parts = [format_row(row) for row in array[:4]] + ["..."] * (len(array) > 4)
    return f"[{' '.join(parts)}]"


def format_row(row: np.ndarray) -> str:
    parts = [format_number(x) if np.ndim(x) == 0 else format_row(x) for x in row[:6]] + ["..."] * (len(row) > 6)
    return f"[{' '.join(parts)}]"


def format_plain(value: Any) -> str:
    """Format a value that is not an array, like repr but shortened."""
    if isinstance(value, range):
        return repr(value)
    if isinstance(value, list | tuple):
        inside = [format_plain(item) for item in value[:12]] + ["..."] * (len(value) > 12)
        text = ", ".join(inside)
        return f"[{text}]" if isinstance(value, list) else f"({text}{',' * (len(value) == 1)})"
    if isinstance(value, dict):
        return (
            "{" + ", ".join(f"{format_plain(key)}: {format_plain(item)}" for key, item in list(value.items())[:8]) + "}"
        )
    if to_array(value) is not None:
        return format_value(value)
    return repr(value)


def format_number(number: Any) -> str:
    """Format a number with up to six digits: 3.31, 2e-11, 7."""
    if isinstance(number, bool | np.bool_) or not isinstance(number, numbers.Real | np.floating):
        return str(number)
    if isinstance(number, numbers.Integral):
        return str(int(number))
    return f"{float(number):.6g}"


def shorten(text: str) -> str:
    text = " ".join(text.split("\n"))
    return text if len(text) <= MAX_CHARS else f"{text[: MAX_CHARS - 4]} ..."


def join_names(names: list) -> str:
    return ", ".join(map(str, names)) or say("nothing")
