"""Padding with elements of the input: reflected, replicated edge, or circular. Read next: `shape.py`, for pad."""

from __future__ import annotations

import numpy as np

from ...core.base.errors import ShapeError
from ...core.functions.creation import from_numpy
from ...core.ops.index import take
from ...core.source_location import fail
from ...core.tensor import Tensor

INDEX_MAPS = {  # name -> the index in an axis of size n for position i, which may be below 0 or above n - 1
    "reflect": lambda i, n: np.where(np.abs(i) < n, np.abs(i), 2 * (n - 1) - i),
    "replicate": lambda i, n: np.clip(i, 0, n - 1),
    "circular": lambda i, n: i % max(n, 1),
}
PADDING_LIMITS = {"reflect": (-1, "less than"), "circular": (0, "at most")}  # limits of the padding on one side


def pad_from_input(input: Tensor, widths: list[int], mode: str, value: float | None) -> Tensor:
    """pad in one of MODES. widths: (left, right) of the last axis, then of the one before it, ..."""
    ndim, axes = input.spec.ndim, len(widths) // 2
    if mode not in INDEX_MAPS:
        what = f"pad: mode is {mode!r}"
        fail(ShapeError, what, f'"constant", {", ".join(map(repr, INDEX_MAPS))}', input=input)
    if value:
        what = f"pad: mode {mode!r} takes its elements from the input, and value is {value!r}"
        fail(ShapeError, what, 'mode="constant"', input=input)
    if len(widths) % 2 or not 1 <= axes <= 3 or ndim not in (axes + 1, axes + 2):
        what = f"pad: {len(widths)} widths for {ndim} axes in mode {mode!r}"
        fail(ShapeError, what, "2 widths for (N, C, L), 4 for (N, C, H, W), 6 for (N, C, D, H, W)", input=input)
    out, shares = input, True
    for i in range(axes):
        axis, before, after = ndim - 1 - i, widths[2 * i], widths[2 * i + 1]
        if mode == "circular" and min(before, after) < 0:  # crop first, then wrap around the rest
            left, right = max(-before, 0), max(-after, 0)
            out = out.narrow(axis, left, max(out.spec.shape[axis] - left - right, 0))
            before, after = max(before, 0), max(after, 0)
        n = out.spec.shape[axis]
        limit, words = PADDING_LIMITS.get(mode, (max(before, after), "at most"))
        if (
            max(before, after) > n + limit
            or n + before + after < (mode != "circular")
            or (not n and mode != "circular")
        ):
            what = f"pad: {before} and {after} in mode {mode!r} for axis {axis} of size {n}"
            fail(ShapeError, what, f"{words} {n} on each side, and something left", input=input)
        if before or after:
            places = INDEX_MAPS[mode](np.arange(-before, n + after), n)
            out, shares = take(out, from_numpy(places), axis=axis), False
    return out.clone() if shares else out
