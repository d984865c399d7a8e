"""Sequences of numbers in a line of text: curves and histograms for terminals, logs and screen readers.

Independent of tensors and runs. Read next: `../renderers/tensor.py` and `../renderers/tape_memory.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from .listing import clean

BARS = "▁▂▃▄▅▆▇█"
SHADES = " ░▒▓█"
NONFINITE_SIGN = "×"  # a number that is NaN or infinite
DEFAULT_WIDTH = 48


def sparkline(values: Iterable[float], width: int = DEFAULT_WIDTH) -> str:
    """The values as at most `width` bars, the lowest bar for the least; a bar may be the mean of several values, × is
    not finite.

    >>> sparkline([1, 2, 3, 2, float("nan")])
    '▁▅█▅×'
    """
    array = np.asarray(list(values) if not hasattr(values, "__len__") else values, dtype=np.float64).reshape(-1)
    if not array.size or width < 1:
        return ""
    groups = np.array_split(array, min(width, array.size))
    bad = [not np.isfinite(group).all() for group in groups]
    with np.errstate(all="ignore"):
        means = np.array([group.mean() if not b else np.nan for group, b in zip(groups, bad, strict=True)])
        usable = np.isfinite(means)
        low, high = (means[usable].min(), means[usable].max()) if usable.any() else (0.0, 0.0)
        share = (
            (means - low) / (high - low) if high > low and math.isfinite(high - low) else np.where(usable, 0.0, np.nan)
        )
    return "".join(BARS[min(int(x * len(BARS)), len(BARS) - 1)] if x == x else NONFINITE_SIGN for x in share.tolist())


def shaded(rows: Sequence[Sequence[float]]) -> list[str]:
    """A grid of numbers as lines of shades, two characters per number, the greatest darkest."""
    finite = [x for row in rows for x in row if math.isfinite(x)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 0.0)
    span = (high - low) or 1.0

    def shade(x: float) -> str:
        return SHADES[min(int((x - low) / span * len(SHADES)), len(SHADES) - 1)] if math.isfinite(x) else NONFINITE_SIGN

    return ["".join(shade(x) * 2 for x in row).rstrip() for row in rows]


def short_number(x: float) -> str:
    """Four digits; NaN and inf by name.

    >>> short_number(0.000123456), short_number(2.0)
    ('0.0001235', '2')
    """
    x = float(x)
    return "NaN" if x != x else f"{x:.4g}"


def curve_line(name: str, steps: Sequence[float], values: Sequence[float], width: int = DEFAULT_WIDTH) -> str:
    """One series in a line: name, bars, last value, minimum and maximum with their steps, count of values that are not
    finite.

    >>> curve_line("loss", [1, 2, 3], [0.9, 0.5, 0.6])
    'loss █▁▂ 0.6  min 0.5 at 2, max 0.9 at 1'
    """
    steps, values = np.asarray(steps, np.float64), np.asarray(values, np.float64)
    if not values.size:
        return f"{clean(name)} (no values)"
    parts = [f"{clean(name)} {sparkline(values, width)} {short_number(values[-1])}"]
    finite = np.isfinite(values)
    notes = []
    if finite.any():
        least, most = np.where(finite, values, np.inf).argmin(), np.where(finite, values, -np.inf).argmax()
        notes.append(f"min {short_number(values[least])} at {short_number(steps[least])}")
        notes.append(f"max {short_number(values[most])} at {short_number(steps[most])}")
    if not finite.all():
        first = int(np.argmin(finite))
        notes.append(
            f"{short_number(values[first])} from step {short_number(steps[first])} ({int((~finite).sum())} not finite)"
        )
    return "  ".join([*parts, ", ".join(notes)])
