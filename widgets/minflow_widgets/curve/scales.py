"""Scales of a plot: limits, round tick values, and gaps of lines.

Pure functions of numbers. Read next: `curve_svg.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from minflow.views.draw.lanes import round_step

from .series import number

MIN_LIMIT, MAX_LIMIT = 1e-300, 1e300  # limits of a scale, so that differences and quotients do not overflow


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """About `count` round numbers within low..high, and at least two, because one does not make a scale."""
    if not high - low > MIN_LIMIT:
        return [low]
    step = round_step(high - low, count)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    if last <= first and count < 32:
        return ticks(low, high, 2 * count)
    return [k * step for k in range(first, last + 1)]


def limits(arrays: list[np.ndarray]) -> tuple[float, float]:
    """The finite minimum and maximum, separated if they are equal."""
    numbers = np.concatenate([np.empty(0), *arrays])
    numbers = numbers[np.isfinite(numbers)]
    low, high = (
        (max(float(numbers.min()), -MAX_LIMIT), min(float(numbers.max()), MAX_LIMIT)) if numbers.size else (0.0, 1.0)
    )
    if high - low > MIN_LIMIT:
        return low, high
    room = abs(low) * 0.1
    room = room if room > MIN_LIMIT else 1.0
    return low - room, high + room


def levels(low: float, high: float, log: bool, count: int) -> list[tuple[float, str]]:
    """Positions and labels of the lines across the plot. With log, low and high are exponents of ten."""
    if not log:
        return [(y, number(y)) for y in ticks(low, high, count)]
    low, high = max(low, -300.0), min(high, 300.0)  # beyond, ten to that power is not a float
    first, last = math.ceil(low - 1e-9), math.floor(high + 1e-9)
    if last - first < 2:  # too few powers of ten
        near = [m * 10.0**k for k in range(first - 1, last + 1) for m in (1, 2, 5)]
        near = [y for y in near if 10.0**low * (1 - 1e-9) <= y <= 10.0**high * (1 + 1e-9)]
        if len(near) > 1:
            return [(math.log10(y), number(y)) for y in near]
    if last > first:
        return [(float(y), number(10.0**y)) for y in range(first, last + 1, math.ceil((last - first) / count))]
    between = [y for y in ticks(10.0**low, 10.0**high, count) if y > 0]
    return [(math.log10(y), number(y)) for y in between]


def with_gaps(x: np.ndarray, y: np.ndarray, gaps: Sequence) -> tuple[np.ndarray, np.ndarray]:
    """The points, with a gap in the line at each gap of the axis."""
    for a, b in gaps:
        inside, middle = (x > a) & (x < b), (a + b) / 2
        at = int(x.searchsorted(middle))
        x, y = np.insert(x, at, middle), np.insert(np.where(inside, np.nan, y), at, np.nan)
    return x, y


def isolated(x: np.ndarray, y: np.ndarray) -> list[tuple[float, float]]:
    """The points between two gaps, which no line reaches."""
    there = np.concatenate([[False], np.isfinite(y), [False]])
    at = np.flatnonzero(there[1:-1] & ~there[:-2] & ~there[2:])
    return list(zip(x[at].tolist(), y[at].tolist()))


def apart(x: np.ndarray, y: np.ndarray, least: float) -> list[tuple[float, float]]:
    """The points that are at least `least` away from the next ones, or have a gap there, and so can be told apart."""
    there = np.isfinite(y)
    far = (np.abs(np.diff(x)) >= least) | ~there[1:] | ~there[:-1]
    at = np.flatnonzero(np.append(True, far) & np.append(far, True) & there) if len(x) else np.empty(0, int)
    return list(zip(x[at].tolist(), y[at].tolist()))


def from_zero(low: float, high: float) -> float:
    """The start of a scale: 0 if positive values nearly reach it."""
    return 0.0 if 0.0 < low < 0.2 * high else low
