"""Checks of element values. A kernel calls them before it writes, so eager, graphs and jobs refuse the same inputs.

An error names the wrong element and its position; in a graph the executor adds the module and the line.
Shapes, dtypes and axes are checked earlier, in `rules.py`. Read next: `index.py`.
"""

from __future__ import annotations

import numpy as np

from ..base.errors import DivisionError, OutOfRangeError
from ..source_location import fail, here
from ..spec import spec_of

UNSIGNED = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}  # negative numbers become huge ones
# callers for which -1 is the last index, as in PyTorch
FROM_THE_END = ("indexing", "take", "take_along_dim", "index_fill")


def first_wrong(xp, numbers, wrong, name: str) -> tuple:
    """(12, " (at position 3 of the index)"): the first wrong element, and its position."""
    wrong = xp.broadcast_to(wrong, xp.shape(numbers))
    place = tuple(xp.argwhere(wrong)[0].tolist())
    return numbers[place].item(), f" (at position {place if len(place) > 1 else place[0]} of {name})" if place else ""


def check_bounds(xp, by: str, index, size: int, axis: int, x=None) -> None:
    """Refuse an index outside [0, size), or [-size, size) if `by` counts negative indices from the end."""
    low = -size if by in FROM_THE_END else 0
    if (
        index.size
        and xp.maximum.reduce(index.view(UNSIGNED[index.itemsize]), None) >= size
        and (low == 0 or index.max() >= size or index.min() < low)
    ):
        wrong, at = first_wrong(xp, index, (index >= size) | (index < low), "the index")
        if by == "embedding" and x is not None and x.ndim > 1:
            fail(
                OutOfRangeError,
                f"embedding: index {wrong}{at} is outside 0 to {size - 1}, the rows of the weight",
                f"nn.Embedding({max(int(index.max()) + 1, size)}, {x.shape[1]}), if there are that many; indices start "
                "at 0",
                input=spec_of(index),
                weight=spec_of(x),
            )
        hint = f"indices from 0 to {size - 1}" if size else "the axis is empty"
        if size:
            hint += (
                f", or from {-size} to -1 to count from the end"
                if low
                else ("; x[index] counts negative ones from the end")
            )
        fail(
            OutOfRangeError,
            f"{by}: index {wrong}{at} is outside axis {axis}, which has size {size}",
            hint,
            index=spec_of(index),
        )


def check_labels(xp, name: str, labels, classes: int, ignore_index: int) -> None:
    """Refuse class indices outside [0, classes) that are not `ignore_index`; name the first one and its position."""
    if not labels.size or xp.maximum.reduce(labels.view(UNSIGNED[labels.itemsize]), None) < classes:
        return
    outside, counted = (labels != ignore_index) & ((labels < 0) | (labels >= classes)), labels[labels != ignore_index]
    if not outside.any():
        return
    low, high, (wrong, at) = int(counted.min()), int(counted.max()), first_wrong(xp, labels, outside, "the labels")
    hint = (
        f"ignore_index={low}, if that number means no label"
        if low < 0
        else f"a last layer with {high + 1} outputs, if there are that many classes"
    )
    if low and high - low < classes:
        hint = f"target {'-' if low > 0 else '+'} {abs(low)}: classes count from 0; or {hint}"
    raise OutOfRangeError(
        f"{name}: labels go from {low} to {high}, and the input has {classes} classes: 0 to "
        f"{classes - 1}; "
        f"the first outside is {wrong}{at}",
        where=here(),
        values={"target": spec_of(labels), "expected": f"target from 0 to {classes - 1}"},
        hint=hint,
    )


def check_divisor(xp, op: str, a, b) -> None:
    """Refuse division of integers by 0, which is undefined (floats give inf or NaN)."""
    if (a if hasattr(a, "dtype") else b).dtype.kind == "f" or xp.all(b):
        return
    at = first_wrong(xp, b, xp.equal(b, 0), "b")[1] if hasattr(b, "dtype") else ""
    fail(
        DivisionError,
        f"{op}: integers cannot be divided by 0{at}",
        "a.float() first gives inf or NaN there; or b.clamp(min=1)",
        a=spec_of(a) if hasattr(a, "dtype") else a,
        b=spec_of(b) if hasattr(b, "dtype") else b,
    )


def check_unit(xp, op: str, name: str, numbers, hint: str) -> None:
    """Refuse values that are not probabilities: below 0, above 1, or NaN."""
    numbers = xp.asarray(numbers)
    if not numbers.size or (numbers.min() >= 0 and numbers.max() <= 1):
        return
    wrong, at = first_wrong(xp, numbers, ~((numbers >= 0) & (numbers <= 1)), name)
    fail(
        OutOfRangeError,
        f"{op}: {name} must be probabilities from 0 to 1, got {float(numbers.min()):.4g} to "
        f"{float(numbers.max()):.4g}; the first outside is {wrong:.4g}{at}",
        hint,
        **{name: spec_of(numbers)},
    )
