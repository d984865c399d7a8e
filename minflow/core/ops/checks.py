"""Checks of element values. A kernel calls them before it writes, so eager, graphs and jobs refuse the same inputs.

An error names the wrong element and its position; in a graph the executor adds the module and the line. On another
device than the CPU it is raised with the next value that the program reads, and names the most extreme element.
Shapes, dtypes and axes are checked earlier, in `rules.py`. Read next: `index.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from ..backend import backend_of_array, namespace, on_host, to_host
from ..base.dtypes import ArrayDType
from ..base.errors import DivisionError, MinflowError, OutOfRangeError
from ..deferred import defer
from ..source_location import here
from ..spec import DEVICE_OF_ARRAY, Spec, spec_of

UNSIGNED = {size: ArrayDType(f"u{size}") for size in (1, 2, 4, 8)}  # negative numbers become huge ones
# callers for which -1 is the last index, as in PyTorch
FROM_THE_END = ("indexing", "take", "take_along_dim", "index_fill")


def first_wrong(xp, numbers, wrong, name: str) -> tuple:
    """(12, " (at position 3 of the index)"): the first wrong element, and its position."""
    wrong = xp.broadcast_to(wrong, xp.shape(numbers))
    place = tuple(xp.argwhere(wrong)[0].tolist())
    return numbers[place].item(), f" (at position {place if len(place) > 1 else place[0]} of {name})" if place else ""


def refuse(error: MinflowError) -> NoReturn:
    error.where = here()
    raise error


def check_range(x, low: float, high: float, error: Callable[[float, float], MinflowError], key: tuple) -> None:
    """Refuse elements of an array on another device that are outside [low, high], or NaN, by error(smallest, largest).

    key: checks with equal keys at one line are equal.
    """

    def report(negative: float, most: float) -> MinflowError | None:
        return None if -negative >= low and most <= high else error(-negative, most)

    if x.size:
        defer((*key, low, high, spec_of(x)), [-x.min().astype("float64"), x.max()], report)


def check_bounds(xp, by: str, index, size: int, axis: int, x=None) -> None:
    """Refuse an index outside [0, size), or [-size, size) if `by` counts negative indices from the end."""
    low, kind = -size if by in FROM_THE_END else 0, index.__class__
    if kind in DEVICE_OF_ARRAY:  # `not on_host`, inlined
        if index.size and not size:  # every index is wrong, and a kernel cannot run
            return check_bounds(namespace(), by, to_host(index), size, axis, x)
        specs = spec_of(index), None if x is None else spec_of(x)

        def error(least: float, most: float) -> OutOfRangeError:
            return bounds_error(by, int(least if least < low else most), "", int(most), size, axis, *specs)

        check_range(index, low, size - 1, error, (by, axis))
    elif (
        index.size
        and xp.maximum.reduce(index.view(UNSIGNED[index.itemsize]), None) >= size
        and (low == 0 or index.max() >= size or index.min() < low)
    ):
        wrong, at = first_wrong(xp, index, (index >= size) | (index < low), "the index")
        rows = None if x is None else spec_of(x)
        refuse(bounds_error(by, wrong, at, int(index.max()), size, axis, spec_of(index), rows))


def bounds_error(
    by: str, wrong: int, at: str, most: int, size: int, axis: int, index: Spec, rows: Spec | None
) -> OutOfRangeError:
    """The error of an index. at: its position.  most: the largest index.  rows: the array that it selects from."""
    if by == "embedding" and rows is not None and rows.ndim > 1:
        return OutOfRangeError(
            f"embedding: index {wrong}{at} is outside 0 to {size - 1}, the rows of the weight",
            values={"input": index, "weight": rows},
            hint=f"nn.Embedding({max(most + 1, size)}, {rows.shape[1]}), if there are that many; indices start at 0",
        )
    hint = f"indices from 0 to {size - 1}" if size else "the axis is empty"
    if size:
        hint += (
            f", or from {-size} to -1 to count from the end"
            if by in FROM_THE_END
            else "; x[index] counts negative ones from the end"
        )
    what = f"{by}: index {wrong}{at} is outside axis {axis}, which has size {size}"
    return OutOfRangeError(what, values={"index": index}, hint=hint)


def check_labels(xp, name: str, labels, classes: int, ignore_index: int) -> None:
    """Refuse class indices outside [0, classes) that are not `ignore_index`; name the first one and its position."""
    if not on_host(labels):
        if labels.size and backend_of_array(labels).has_elements:
            spec, limits, keep = spec_of(labels), xp.iinfo(labels.dtype), labels != ignore_index
            low, high = xp.where(keep, labels, limits.max).min(), xp.where(keep, labels, limits.min).max()
            defer(
                (name, classes, ignore_index, spec),
                [-low.astype("float64"), high],
                lambda negative, high: (
                    None
                    if negative <= 0 and high < classes
                    else labels_error(name, int(-negative), int(high), classes, spec, "")
                ),
            )
        return
    if not labels.size or xp.maximum.reduce(labels.view(UNSIGNED[labels.itemsize]), None) < classes:
        return
    outside, counted = (labels != ignore_index) & ((labels < 0) | (labels >= classes)), labels[labels != ignore_index]
    if outside.any():
        wrong, at = first_wrong(xp, labels, outside, "the labels")
        first = f"; the first outside is {wrong}{at}"
        refuse(labels_error(name, int(counted.min()), int(counted.max()), classes, spec_of(labels), first))


def labels_error(name: str, low: int, high: int, classes: int, labels: Spec, first: str) -> OutOfRangeError:
    hint = (
        f"ignore_index={low}, if that number means no label"
        if low < 0
        else f"a last layer with {high + 1} outputs, if there are that many classes"
    )
    if low and high - low < classes:
        hint = f"target {'-' if low > 0 else '+'} {abs(low)}: classes count from 0; or {hint}"
    return OutOfRangeError(
        f"{name}: labels go from {low} to {high}, and the input has {classes} classes: 0 to {classes - 1}{first}",
        values={"target": labels, "expected": f"target from 0 to {classes - 1}"},
        hint=hint,
    )


def check_divisor(xp, op: str, a, b) -> None:
    """Refuse division of integers by 0, which is undefined (floats give inf or NaN)."""
    if (a if hasattr(a, "dtype") else b).dtype.kind == "f" or (on_host(b) and (b.all() if hasattr(b, "dtype") else b)):
        return
    if not getattr(a, "size", 1):  # nothing is divided
        return
    values = {name: spec_of(x) if hasattr(x, "dtype") else x for name, x in (("a", a), ("b", b))}

    def error(at: str) -> DivisionError:
        hint = "a.float() first gives inf or NaN there; or b.clamp(min=1)"
        return DivisionError(f"{op}: integers cannot be divided by 0{at}", values=values, hint=hint)

    if not on_host(b):
        defer((op, *values.values()), [(b == 0).any()], lambda wrong: error("") if wrong else None)
    else:
        refuse(error(first_wrong(xp, b, xp.equal(b, 0), "b")[1] if hasattr(b, "dtype") else ""))


def check_unit(xp, op: str, name: str, numbers, hint: str) -> None:
    """Refuse values that are not probabilities: below 0, above 1, or NaN."""
    if on_host(numbers):
        numbers = xp.asarray(numbers)
        if not numbers.size or (numbers.min() >= 0 and numbers.max() <= 1):
            return
    spec = spec_of(numbers)

    def error(least: float, most: float, first: str = "") -> OutOfRangeError:
        what = f"{op}: {name} must be probabilities from 0 to 1, got {least:.4g} to {most:.4g}{first}"
        return OutOfRangeError(what, values={name: spec}, hint=hint)

    if not on_host(numbers):
        return check_range(numbers, 0, 1, error, (op, name))
    wrong, at = first_wrong(xp, numbers, ~((numbers >= 0) & (numbers <= 1)), name)
    refuse(error(float(numbers.min()), float(numbers.max()), f"; the first outside is {wrong:.4g}{at}"))
