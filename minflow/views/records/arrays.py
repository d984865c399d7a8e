"""An array as short text: all elements if it is small, else minimum, mean and maximum. Read next: `tape.py`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.backend import to_host

MAX_SHOWN_ELEMENTS = 8  # arrays with at most this many elements are written out


def gradient_text(array: Any) -> str:
    """Elements of a gradient, with the norm for a large one. A gradient of zeros is reported as such, because it stops
    learning.
    """
    text = numbers_text(array)
    if array is None or array.size <= MAX_SHOWN_ELEMENTS:
        return text
    array = to_host(array)
    if not array.any():
        return "all 0"
    with np.errstate(all="ignore"):
        return f"{text}, norm {np.sqrt(np.square(array, dtype=np.float64).sum()):.4g}"


def numbers_text(array: Any) -> str:
    """All elements if the array is small, else minimum, mean and maximum."""
    if array is None:
        return "(symbolic)"
    array = to_host(array)
    if array.size == 0:
        return "(empty)"
    if array.size <= MAX_SHOWN_ELEMENTS:
        each = {"float_kind": lambda x: f"{x:.4g}"}  # one by one: numpy writes all as 1e-04 if one is small
        return np.array2string(
            array, separator=", ", threshold=MAX_SHOWN_ELEMENTS, max_line_width=10_000, formatter=each
        ).replace("\n", "")
    if array.dtype == bool:
        return f"{int(array.sum())} of {array.size} true"
    with np.errstate(all="ignore"):
        wide = array.astype(np.float64)
        finite = wide[np.isfinite(wide)]
        bad = f", {wide.size - finite.size} not finite" if finite.size < wide.size else ""
        if not finite.size:
            return f"none of {wide.size} finite"
        return f"{finite.min():.4g} .. {finite.max():.4g}, mean {finite.mean():.4g}{bad}"
