"""A named history of numbers, and the few points of it that a picture needs.

Knows nothing of notebooks or drawing. Read next: `figure.py`, which draws series as a still picture.
"""

from __future__ import annotations

import json

import numpy as np

POINTS = 800  # of the raw line, at most
MEANS = 200  # of the smoothed line, at most; together the 1,000 points that a series may send
SMOOTH_FROM = 50  # values, below which a mean line would only repeat the raw one
SPAN = 5  # how many of the MEANS windows one smoothed value covers

HIGHER_IS_BETTER = ("acc", "accuracy", "f1", "precision", "recall", "score", "auc")


class Series:
    """The values of one name, in the order in which they came. Not thread-safe: the curve holds a lock."""

    def __init__(self, name: str):
        self.name = name
        self.count = 0
        self.table = np.empty((2, 256))  # steps, values; grown by doubling
        self.bad: tuple[float, float] | None = None  # (step, value) of the first that is NaN or infinite
        self.best: tuple[float, float] | None = None  # (value, step)
        self.sign = -1.0 if self.word in HIGHER_IS_BETTER else 1.0

    @property
    def word(self) -> str:
        """The last word of the name: `loss` of `val_loss`. Series with the same word share a panel."""
        return self.name.lower().rsplit("_", 1)[-1].rsplit(" ", 1)[-1]

    def add(self, step: float, value: float) -> None:
        if self.count == self.table.shape[1]:
            self.table = np.concatenate([self.table, np.empty_like(self.table)], axis=1)
        self.table[0, self.count] = step
        self.table[1, self.count] = value
        self.count += 1
        if value - value != 0.0:  # NaN or infinite
            self.bad = self.bad or (step, value)
        elif self.best is None or self.sign * value < self.sign * self.best[0]:
            self.best = value, step

    @property
    def steps(self) -> np.ndarray:
        return self.table[0, : self.count]

    @property
    def values(self) -> np.ndarray:
        return self.table[1, : self.count]

    def now(self) -> str:
        """`loss 0.0512`"""
        return f"{self.name} {number(self.values[-1])}" if self.count else f"{self.name} -"

    def label(self) -> str:
        """`loss 0.0512 · lowest 0.048 at 688`"""
        text = self.now()
        if self.best is not None and self.count > 1:
            text += f" · {'highest' if self.sign < 0 else 'lowest'} {number(self.best[0])} at {number(self.best[1])}"
        return text

    def warning(self) -> str:
        """`NaN from step 12`, or nothing."""
        return f"{number(self.bad[1])} from step {number(self.bad[0])}" if self.bad else ""

    def points(self) -> tuple[np.ndarray, np.ndarray]:
        """Steps and values of at most POINTS values, spikes kept; what is not finite is NaN, a gap in the line."""
        at = decimate(self.values, POINTS)
        y = self.values[at]
        return self.steps[at], np.where(np.isfinite(y), y, np.nan)

    def means(self) -> tuple[np.ndarray, np.ndarray, int]:
        """Steps and values of the smoothed line, and over how many values each is the mean (0: no such line)."""
        if self.count < SMOOTH_FROM:
            return np.empty(0), np.empty(0), 0
        return smooth(self.steps, self.values, MEANS)


def number(x: float) -> str:
    """Four digits, without an exponent where it can be read without; whole numbers whole."""
    x = float(x)  # numpy's own numbers warn of inf - inf
    if x - x != 0.0:
        return "NaN" if x != x else "inf" if x > 0 else "-inf"
    return f"{x:,.0f}" if x == round(x) and 10_000 <= abs(x) < 1e9 else f"{x:.4g}"


def decimate(values: np.ndarray, limit: int) -> np.ndarray:
    """Indices of at most `limit` values that draw the same line: the least and the greatest of each bucket.

    The first and the last value are always there; a bucket without finite values keeps one of them, as a gap.
    """
    n = len(values)
    if n <= limit:
        return np.arange(n)
    buckets = (limit - 2) // 2
    size = -(-n // buckets)
    finite = np.isfinite(values)
    low = np.full(buckets * size, np.inf)
    high = np.full(buckets * size, -np.inf)
    low[:n] = np.where(finite, values, np.inf)
    high[:n] = np.where(finite, values, -np.inf)
    start = np.arange(buckets) * size
    lowest = start + low.reshape(buckets, size).argmin(1)
    highest = start + high.reshape(buckets, size).argmax(1)
    at = np.unique(np.concatenate([[0, n - 1], lowest, highest]))
    return at[at < n]


def smooth(steps: np.ndarray, values: np.ndarray, limit: int) -> tuple[np.ndarray, np.ndarray, int]:
    """At most `limit` means over overlapping windows: steps, values, and the number of values in a window.

    Step and value are means of the same window, also where it is cut short at the ends, so the line has no false
    start. Sums are taken window by window, never as differences of a running sum: one spike of 1e30 stays where it is.
    """
    size = -(-len(values) // limit)
    starts = np.arange(0, len(values), size)
    finite = np.isfinite(values)
    ones = np.ones(SPAN)

    def total(x: np.ndarray) -> np.ndarray:
        sums = np.add.reduceat(np.where(finite, x, 0.0), starts)
        return np.convolve(sums, ones)[SPAN // 2 : SPAN // 2 + len(sums)]

    count = total(finite.astype(float))
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        return total(steps) / count, total(values) / count, SPAN * size


def panels(series: list[Series]) -> list[str]:
    """The titles of the panels, in order of appearance."""
    return list(dict.fromkeys(s.word for s in series))


def encode(series: list[Series], status: str) -> bytes:
    """All that the front end needs to draw, in one piece: length of the header, header as JSON, float32 numbers.

    For each series: n steps, n values, m steps of the means, m means.
    """
    titles, entries, arrays = panels(series), [], []
    for s in series:
        x, y = s.points()
        mx, my, window = s.means()
        arrays += [x, y, mx, my]
        entries.append(
            {"panel": titles.index(s.word), "label": s.label(), "n": len(x), "m": len(mx), "window": window}
            | ({"bad": s.bad[0], "warning": s.warning()} if s.bad else {})
        )
    header = json.dumps({"status": status, "panels": titles, "series": entries}).encode()
    header += b" " * (-len(header) % 4)
    with np.errstate(over="ignore"):
        body = np.concatenate([np.empty(0), *arrays]).astype("<f4")
    return len(header).to_bytes(4, "little") + header + body.tobytes()
