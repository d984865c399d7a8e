"""Compare a result with the expected one and describe the most informative difference.

Values are compared as NumPy arrays: a tensor, an array and a list with the same elements are equal, unless the exercise
asks for exact types. Integers and booleans differ from floats. Knows nothing of exercises. Read next: `judge.py`.
"""

from __future__ import annotations

import dataclasses
import math
import numbers
from typing import Any

import numpy as np

from .i18n import say

KIND = {
    "b": "truth values",
    "i": "whole numbers",
    "u": "whole numbers",
    "f": "numbers with a fraction",
    "c": "complex numbers",
    "V": "numbers with a fraction",
}
MANY = 1_000_000  # longest list that is converted to an array
LINE = 76  # characters of a displayed value


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


def difference(got: Any, wanted: Any, allowed: tuple[float, float], exact_types: bool = False) -> Difference | None:
    """Compare `got` with `wanted`; None if they agree. allowed: (absolute, relative) error."""
    if isinstance(wanted, dict):
        return of_dicts(got, wanted, allowed, exact_types)
    if isinstance(wanted, str | bytes | set | frozenset | type | None):
        if isinstance(got, type(wanted)) and got == wanted:
            return None
        same = isinstance(got, type(wanted))
        return Difference("value" if same else "type", "" if same else other_type(got, wanted))
    if array_of(wanted) is None and isinstance(wanted, list | tuple):
        return of_sequences(got, wanted, allowed, exact_types)
    right = array_of(wanted)
    if right is None:
        return (
            None
            if same_object(got, wanted)
            else Difference("value" if type(got) is type(wanted) else "type", other_type(got, wanted))
        )
    if exact_types and type(got) is not type(wanted):
        return Difference("type", other_type(got, wanted))
    mine = array_of(got)
    if mine is None and isinstance(got, list | tuple) and isinstance(wanted, list | tuple):
        return of_sequences(
            got, wanted, allowed, exact_types
        )  # rows of different lengths, or elements that are not numbers
    if mine is None:
        return Difference("type", other_type(got, wanted))
    if isinstance(got, list | tuple) and isinstance(wanted, list | tuple) and len(got) != len(wanted):
        return Difference("length", lengths(len(got), len(wanted)))
    if isinstance(wanted, numbers.Number) and isinstance(got, list | tuple):
        return Difference(
            "type",
            say("A single number is wanted; it is a {got} of {entries}.", got=type(got).__name__, entries=len(got)),
        )
    if isinstance(wanted, list | tuple) and mine.ndim == 0:
        return Difference("type", say("It is a single number; a list of {wanted} is wanted.", wanted=len(wanted)))
    return of_arrays(mine, right, allowed, exact_types)


def lengths(got: int, wanted: int) -> str:
    return say("Number of entries: {got}. Wanted: {wanted}.", got=got, wanted=wanted)


def of_dicts(got: Any, wanted: dict, allowed: tuple[float, float], exact_types: bool) -> Difference | None:
    if not isinstance(got, dict):
        return Difference("type", other_type(got, wanted))
    if got.keys() != wanted.keys():
        missing, more = [key for key in wanted if key not in got], [key for key in got if key not in wanted]
        return Difference(
            "keys", say("Missing: {missing}. Not wanted: {more}.", missing=listed(missing), more=listed(more))
        )
    for key, value in wanted.items():
        if found := difference(got[key], value, allowed, exact_types):
            return dataclasses.replace(found, where=(key, *found.where))
    return None


def of_sequences(got: Any, wanted: Any, allowed: tuple[float, float], exact_types: bool) -> Difference | None:
    if isinstance(got, np.ndarray) or hasattr(got, "numpy"):
        got = list(got)
    if not isinstance(got, list | tuple):
        return Difference("type", other_type(got, wanted))
    if len(got) != len(wanted):
        return Difference("length", lengths(len(got), len(wanted)))
    for i, (one, other) in enumerate(zip(got, wanted)):
        if found := difference(one, other, allowed, exact_types):
            return dataclasses.replace(found, where=(i, *found.where))
    return None


def of_arrays(got: np.ndarray, wanted: np.ndarray, allowed: tuple[float, float], exact: bool) -> Difference | None:
    if got.shape != wanted.shape:
        return Difference("shape", say("Its shape is {got}; {wanted} is wanted.", got=got.shape, wanted=wanted.shape))
    mine, right = (kind_of(array) for array in (got, wanted))
    if got.size and (mine != right if "b" in (mine, right) or exact else right == "i" and mine != "i"):
        if exact and got.dtype != wanted.dtype or mine != right:
            return Difference(
                "dtype",
                say(
                    "It holds {got}; {wanted} are wanted.",
                    got=say(KIND[got.dtype.kind]),
                    wanted=say(KIND[wanted.dtype.kind]),
                ),
                *apart(got, wanted),
            )
    if exact and got.dtype != wanted.dtype:
        return Difference("dtype", say("Its dtype is {got}; {wanted} is wanted.", got=got.dtype, wanted=wanted.dtype))
    size, relative = apart(got, wanted)
    with np.errstate(all="ignore"):
        x, y = got.astype(wide(got)), wanted.astype(wide(wanted))
        right_there = np.isclose(x, y, rtol=allowed[1], atol=allowed[0], equal_nan=True)
    if right_there.all():
        return None
    where = tuple(int(i) for i in np.argwhere(~right_there)[0]) if got.ndim else ()
    if np.isnan(x).any() and not np.isnan(y).any():
        text = say("There is NaN in it: 0/0, inf - inf or the log of a negative number.")
        return Difference("nan", text, where=where)
    return Difference("value", "", size, relative, where)


def apart(got: np.ndarray, wanted: np.ndarray) -> tuple[float, float]:
    """(largest absolute difference, that divided by the largest expected number)"""
    if not got.size or kind_of(wanted) == "b":
        return 0.0, 0.0
    with np.errstate(all="ignore"):
        x, y = got.astype(wide(got)), wanted.astype(wide(wanted))
        away = np.abs(np.where(x == y, 0, x - y))
        largest = float(np.max(np.where(np.isnan(away), np.where(np.isnan(x) & np.isnan(y), 0, np.inf), away)))
        scale = float(np.max(np.abs(y), where=np.isfinite(y), initial=0))
    return largest, largest / scale if scale else largest


def clue(got: Any, wanted: Any, found: Difference) -> str:
    """Describe a pattern in a wrong result: shape, sign, factor, transposed, reversed, constant offset; or ""."""
    mine, right = array_of(got), array_of(wanted)
    if found.kind != "value" or mine is None or right is None:
        if found.kind == "shape" and mine is not None and right is not None:
            if mine.ndim == 2 and mine.T.shape == right.shape and close(mine.T, right):
                return say("It is the right answer turned: rows and columns are swapped.")
            if mine.size == right.size > 1 and close(mine.reshape(right.shape), right):
                return say("The numbers are right; only their shape is not.")
        return ""
    if "b" in (kind_of(mine), kind_of(right)) or not np.isfinite(mine.astype(wide(mine))).all():
        return ""
    x, y = mine.astype(wide(mine)), right.astype(wide(right))
    if close(-x, y):
        return say("Only the sign is wrong.")
    if x.ndim == 2 and x.shape[0] == x.shape[1] and close(x.T, y):
        return say("It is the right answer turned: rows and columns are swapped.")
    if x.size > 1 and close(x[::-1], y):
        return say("It is the right answer in the opposite order.")
    if (y != 0).any() and not (x[y == 0] != 0).any():
        factors = x[y != 0] / y[y != 0]
        if close(factors, np.full_like(factors, factors[0])) and x.size > 1 and factors[0] and short(factors[0]) != "1":
            return say("Each number is {factor} times what is wanted.", factor=short(factors[0]))
    if x.size > 1 and close(x - y, np.full_like(x, (x - y).flat[0])):
        return say("Each number is off by {offset}.", offset=short((x - y).flat[0]))
    return ""


def close(x: np.ndarray, y: np.ndarray) -> bool:
    return x.shape == y.shape and bool(np.allclose(x, y, rtol=1e-4, atol=1e-9))


def array_of(value: Any) -> np.ndarray | None:
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
    if isinstance(value, list | tuple) and 0 < len(value) <= MANY and all(array_of(one) is not None for one in value):
        return np.asarray([array_of(one) for one in value])  # raises for rows of different lengths
    return None


def kind_of(array: np.ndarray) -> str:
    """Kind of the elements: "b" for booleans, "i" for integers, "f" for others."""
    return {"b": "b", "i": "i", "u": "i"}.get(array.dtype.kind, "f")


def wide(array: np.ndarray) -> Any:
    return np.complex128 if array.dtype.kind == "c" else np.float64


def same_object(got: Any, wanted: Any) -> bool:
    try:
        return got is wanted or bool(type(got) is type(wanted) and got == wanted)
    except Exception:  # the learner's own __eq__ may raise
        return False


def other_type(got: Any, wanted: Any) -> str:
    if got is None:
        return say("It is None: is there a return?")
    return say("Its type is {got}; {wanted} is wanted.", got=type(got).__name__, wanted=type(wanted).__name__)


# ---- values as text -------------------------------------------------------------------------------------------------


def shown(value: Any) -> str:
    """Format a value on one line: `float32[3]  [4 4 4]`, `3.01`, `'error'`."""
    try:
        array = None if isinstance(value, list | tuple | range) else array_of(value)
        if array is None:
            return cut(plain(value))
    except (Exception, SystemExit) as error:  # the learner's own object, or a list that contains itself
        return f"<{type(value).__name__}, its repr raises {type(error).__name__}>"
    if array.ndim == 0:
        return short(array[()])
    text = entries(array)
    return cut(f"{array.dtype.name}{list(array.shape)}  {text}")


def entries(array: np.ndarray) -> str:
    """Format the elements of an array on one line; if they are all equal, one of them."""
    flat = array.reshape(-1)
    if flat.size > 4 and (flat == flat[0]).all():
        return say("all {value}", value=short(flat[0]))
    if array.ndim == 1 or flat.size == 0:
        most = 8
        parts = [short(x) for x in flat[:most]] + ["..."] * (flat.size > most)
        return f"[{' '.join(parts)}]"
    parts = [entries_of_row(row) for row in array[:4]] + ["..."] * (len(array) > 4)
    return f"[{' '.join(parts)}]"


def entries_of_row(row: np.ndarray) -> str:
    parts = [short(x) if np.ndim(x) == 0 else entries_of_row(x) for x in row[:6]] + ["..."] * (len(row) > 6)
    return f"[{' '.join(parts)}]"


def plain(value: Any) -> str:
    """Format a value that is not an array, like repr but shortened."""
    if isinstance(value, range):
        return repr(value)
    if isinstance(value, list | tuple):
        inside = [plain(one) for one in value[:12]] + ["..."] * (len(value) > 12)
        text = ", ".join(inside)
        return f"[{text}]" if isinstance(value, list) else f"({text}{',' * (len(value) == 1)})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{plain(key)}: {plain(one)}" for key, one in list(value.items())[:8]) + "}"
    if array_of(value) is not None:
        return shown(value)
    return repr(value)


def short(number: Any) -> str:
    """Format a number with up to six digits: 3.31, 2e-11, 7."""
    if isinstance(number, bool | np.bool_) or not isinstance(number, numbers.Real | np.floating):
        return str(number)
    if isinstance(number, numbers.Integral):
        return str(int(number))
    return f"{float(number):.6g}"


def cut(text: str) -> str:
    text = " ".join(text.split("\n"))
    return text if len(text) <= LINE else f"{text[: LINE - 4]} ..."


def listed(names: list) -> str:
    return ", ".join(map(str, names)) or say("nothing")
