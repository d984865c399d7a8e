"""Padding with elements of the input, as one composite op: reflected, replicated edge, or circular.

Read next: `shape.py` for `pad`, which inserts one value.
"""

from __future__ import annotations

from ..backend import namespace
from ..base.errors import ShapeError
from ..op import define
from ..spec import Spec
from .examples import case, floats, ints, strided
from .index import take
from .shape import clone, constant_beside

Widths = tuple[tuple[int, int], ...]
INDEX_MAPS = {  # mode -> the index in an axis of size n for position i, which may be below 0 or above n - 1
    "reflect": lambda i, n: namespace().where(abs(i) < n, abs(i), 2 * (n - 1) - i),
    "replicate": lambda i, n: i.clip(0, n - 1),
    "circular": lambda i, n: i % max(n, 1),
}
PADDING_LIMITS = {"reflect": (-1, "less than"), "circular": (0, "at most")}  # limits of the padding on one side


def cropped(before: int, after: int, mode: str) -> tuple[int, int]:
    """The elements to cut off before padding: "circular" crops first, then wraps around the rest."""
    return (max(-before, 0), max(-after, 0)) if mode == "circular" else (0, 0)


def padding_spec(input: Spec, widths: Widths, mode: str) -> Spec:
    shape, first = [*input.shape], input.ndim - len(widths)
    if first < 0:
        raise ShapeError(f"pad: {len(widths)} widths for {input.ndim} axes", hint="(before, after) for each axis")
    for axis, (before, after) in reversed([*enumerate(widths, first)]):
        left, right = cropped(before, after, mode)
        n = max(shape[axis] - left - right, 0)
        before, after = before + left, after + right
        limit, words = PADDING_LIMITS.get(mode, (max(before, after), "at most"))
        if (
            left > shape[axis]
            or max(before, after) > n + limit
            or n + before + after < (mode != "circular")
            or (not n and mode != "circular")
        ):
            what = f"pad: {before} and {after} in mode {mode!r} for axis {axis} of size {n}"
            raise ShapeError(what, hint=f"{words} {n} on each side, and something left")
        shape[axis] = n + before + after
    return input.replace(shape=tuple(shape))


def padding_parts(input, widths, mode):
    out, shares = input, True
    for axis, (before, after) in reversed([*enumerate(widths, input.spec.ndim - len(widths))]):
        left, right = cropped(before, after, mode)
        n = max(out.spec.shape[axis] - left - right, 0)
        if left or right:
            out = out.narrow(axis, left, n)
        if before + left or after + right:
            places = INDEX_MAPS[mode](namespace().arange(-before - left, n + after + right), n)
            out, shares = take(out, constant_beside(out, places), axis=axis), False
    return clone(out) if shares else out


pad_from_input = define(
    "pad_from_input(input; widths, mode)",
    padding_spec,
    decompose=padding_parts,
    domain="complex",
    attr_kinds={"widths": "pairs of integers", "mode": "padding mode"},
    examples=[
        case(floats(2, 3, 4), widths=((2, 1), (0, 3)), mode="reflect"),
        case(strided(2, 3), widths=((1, 2),), mode="replicate"),
        case(ints(1, 3, 2), widths=((2, -1), (1, 2)), mode="circular"),
        case(floats(2, 4), widths=((-1, 2),), mode="reflect"),
        case(floats(2, 3), widths=((0, 0),), mode="replicate"),
        case(floats(3, 2), widths=((0, -1), (0, 0)), mode="circular"),
    ],
    doc="input with a border of its own elements: reflected, its edge, or those of the other end. widths: (before, "
    "after) for each of the last axes.",
)
