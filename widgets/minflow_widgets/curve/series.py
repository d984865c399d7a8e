"""A named series of values: its history, its description in words, and its downsampled points.

Independent of notebooks and drawing. Read next: `downsampling.py`, then `panels.py`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import compress, pairwise
from typing import NamedTuple

import numpy as np

from minflow.views.text.listing import clean
from minflow.views.words import say

from .downsampling import ExtremesCache, WindowMeans, decimate, means_over_steps

MAX_POINTS = 800  # largest number of points of the raw line
MAX_MEANS = 200  # points of the smoothed line, at most; with MAX_POINTS, the 1,000 points that a series may send
MAX_SPANS = 50  # spans of steps of the smoothed line if values are unevenly spaced
SMOOTH_FROM = 50  # with fewer values, a mean line would only repeat the raw one
HIGHER_IS_BETTER = ("acc", "accuracy", "f1", "precision", "recall", "score", "auc")
NAME_PART = re.compile(r"(gradient|group \d+)$")  # part of a name before its last word
STRIP_WORDS = ("lr", "norm")  # words of series in a strip below the others; neither better nor worse when larger


class Mean(NamedTuple):
    """The mean over an epoch: its number from 1, and the index range [start, stop) of its values."""

    number: int
    start: int
    stop: int
    mean: float


class Series:
    """The values of one name in order of arrival. Not thread-safe: the curve holds a lock.

    zero: the `time.perf_counter` value at which its times start.  every: n if it had only every n-th step at times.
    """

    def __init__(self, name: str, zero: float = 0.0):
        self.name, self.zero, self.every = name, zero, 1
        # name in the legend, if different; index of its color, if not its position: equal for all series of a run
        self.shown = ""
        self.style: int | None = None
        self.word = last_word(name)  # series with the same word share a panel
        self.count, self.moved = 0, False  # moved: True if a value differed from the first
        self.table = np.empty((3, 256))  # steps, values, seconds; grown by doubling
        # sum of the increases of its steps; number of decreases, as at a new epoch
        self.total_increase, self.decreases = 0.0, 0
        # (step, value, seconds) of the first value that is NaN or infinite
        self.first_nonfinite: tuple[float, float, float] | None = None
        self.best: tuple[float, float] | None = None  # (value, step)
        self.sign = -1.0 if self.word in HIGHER_IS_BETTER else 1.0
        self.epochs: list[Mean] = []  # finished epochs
        self.ended = 0  # number of ends processed
        self.extremes, self.window_means = ExtremesCache(), WindowMeans()
        self.waits: list[tuple[float, int]] = []  # longest intervals between two values: (seconds, index of the first)
        self.waited = 0  # number of values processed for that

    def add(self, step: float, value: float, seconds: float = 0.0) -> None:
        at = self.count
        if at == self.table.shape[1]:
            self.table = np.concatenate([self.table, np.empty_like(self.table)], axis=1)
        table = self.table
        table[0, at], table[1, at], table[2, at] = step, value, seconds
        if at and (ahead := step - table.item(0, at - 1)) >= 0:
            self.total_increase += ahead
        elif at:
            self.decreases += 1
        self.count = at + 1
        self.moved = self.moved or bool(value != table[1, 0])
        if value - value != 0.0:  # NaN or infinite
            self.first_nonfinite = self.first_nonfinite or (step, value, seconds)
        elif self.best is None or self.sign * value < self.sign * self.best[0]:
            self.best = value, step

    def extend(self, steps: Sequence[float], values: Sequence[float], times: Sequence[float]) -> None:
        """Add many values at once. times: from `time.perf_counter`."""
        if len(steps) < 8:
            for step, value, time in zip(steps, values, times):
                self.add(step, value, time - self.zero)
            return
        start, end = self.count, self.count + len(steps)
        while end > self.table.shape[1]:
            self.table = np.concatenate([self.table, np.empty_like(self.table)], axis=1)
        self.table[:, start:end] = steps, values, times
        self.table[2, start:end] -= self.zero
        ahead = np.diff(self.table[0, max(start - 1, 0) : end])
        self.total_increase += float(ahead[ahead >= 0].sum())
        self.decreases += int((ahead < 0).sum())
        self.count = end
        if not math.isfinite(sum(values)):
            good = [math.isfinite(value) for value in values]
            if not all(good):
                first = good.index(False)
                self.moved, self.first_nonfinite = (
                    True,
                    self.first_nonfinite or (steps[first], values[first], times[first] - self.zero),
                )
                steps, values = list(compress(steps, good)), list(compress(values, good))
        if not values:
            return
        low, high = min(values), max(values)
        self.moved = self.moved or not low == high == self.table[1, 0]
        value = high if self.sign < 0 else low
        if self.best is None or self.sign * value < self.sign * self.best[0]:
            self.best = value, float(steps[values.index(value)])

    @property
    def steps(self) -> np.ndarray:
        return self.table[0, : self.count]

    @property
    def values(self) -> np.ndarray:
        return self.table[1, : self.count]

    @property
    def seconds(self) -> np.ndarray:
        return self.table[2, : self.count]

    def ends(self) -> list[list[float]]:
        """Step, value and seconds of the first and of the last value."""
        item, last = self.table.item, self.count - 1  # six floats are faster than a row of an array
        return [[item(row, at) for row in range(3)] for at in (0, last)]

    @property
    def prefix(self) -> str:
        """Name of the source, if several are watched: "sync" in "sync gradient norm"."""
        return NAME_PART.sub("", self.name.rpartition(" ")[0]).rstrip()

    def within_run(self, name: str) -> None:
        """Assign a panel for several runs: each name has its own, and the legend names the run."""
        self.word = self.word if self.word in STRIP_WORDS else clean(name)

    def at(self, step: float) -> float:
        """Its value at a step, or the last one before."""
        before = np.flatnonzero(self.steps <= step)
        return float(self.values[before[-1] if len(before) else 0])

    def within(self, other: Series) -> bool:
        """True if the other series has the same times at this one's first and last step, so that they share a clock."""
        if not self.count or self.zero != other.zero:
            return False
        ends = self.table[::2, [0, self.count - 1]]
        at = other.steps.searchsorted(ends[0])
        return bool(at.max() < other.count and (other.table[::2, at] == ends).all())

    def stride(self) -> float:
        """Mean increase of the step from one value to the next, where it increases."""
        forward = self.count - 1 - self.decreases
        return self.total_increase / forward if forward > 0 and self.total_increase > 0 else 1.0

    def across(self, x: str) -> np.ndarray:
        """The x coordinates of its values: "step" or "time"."""
        return self.steps if x == "step" else self.seconds

    # ---- text ------------------------------------------------------------------------------------------------------

    def now(self, latest: float | None = None) -> str:
        """`loss 0.0512`; `gradient norm 0.4 at step 20` if that is not the `latest` step."""
        if not self.count:
            return f"{clean(self.name)} -"
        old = self.word == "norm" and latest is not None and self.steps[-1] != latest
        return f"{clean(self.name)} {number(self.values[-1])}" + (f" at step {number(self.steps[-1])}" if old else "")

    def label(self, latest: float | None = None) -> str:
        """`loss 0.0512 · lowest 0.048 at step 688`."""
        text = self.now(latest)
        if self.best is not None and self.count > 1 and self.word not in STRIP_WORDS:
            text = say(
                "{now} · highest {best} at step {step}" if self.sign < 0 else "{now} · lowest {best} at step {step}",
                now=text,
                best=number(self.best[0]),
                step=number(self.best[1]),
            )
        return text

    def legend(self, latest: float | None = None) -> str:
        """The label in a panel of its own: with only the run's name if there are several runs."""
        text = self.label(latest)
        return clean(self.shown) + text[len(clean(self.name)) :] if self.shown else text

    def epoch_now(self) -> str:
        """`epoch 5: mean 0.0612 · epoch 4: 0.0701`; empty if no epoch has ended."""
        words = [f"epoch {one.number}: {number(one.mean)}" for one in self.epochs[:-3:-1]]
        return " · ".join(words).replace(": ", ": mean ", 1)

    def epoch_means(self, most: int = 8) -> str:
        """`mean of epochs 1 to 5: 0.9, 0.5, 0.31, 0.07, 0.06`; if there are many, the first and the last ones."""
        if not self.epochs:
            return ""
        means = [number(one.mean) for one in self.epochs]
        first, last = self.epochs[0].number, self.epochs[-1].number
        means = means if len(means) <= most else [*means[:2], "...", *means[3 - most :]]
        which = f"epochs {first} to {last}" if first != last else f"epoch {first}"
        return f"mean of {which}: {', '.join(means)}"

    def epoch_ends(self, most: int = 100) -> list[list]:
        """For at most `most` epochs: last step, mean (None if not finite), and that step in seconds."""
        some = self.epochs[:: -max(-(-len(self.epochs) // most), 1)][::-1]
        steps, _, seconds = self.table[:, [one.stop - 1 for one in some]].tolist()
        return [
            [step, one.mean if math.isfinite(one.mean) else None, second]
            for step, one, second in zip(steps, some, seconds)
        ]

    def sampled(self) -> str:
        """`norm of every 20th step`, `norm measured every 1 to 20 steps`; empty if every step has a value.

        The last value is that of the last step, whichever that is.
        """
        if self.every == 1 or self.count < 3:
            return ""
        apart = np.diff(self.steps[:-1])
        least, most = int(apart.min()), int(apart.max())
        if least < most:
            return f"{self.word} measured every {least:,} to {most:,} steps"
        return f"{self.word} of every {most:,}{'nd' if most == 2 else 'th'} step" if most > 1 else ""

    def warning(self) -> str:
        """`NaN from step 12`, `NaN first at step 12` if finite values followed; empty if all are finite."""
        if not self.first_nonfinite:
            return ""
        since = "first at" if np.isfinite(self.values[-1]) else "from"
        return f"{number(self.first_nonfinite[1])} {since} step {number(self.first_nonfinite[0])}"

    # ---- points ----------------------------------------------------------------------------------------------------

    def points(self, x: str = "step", most: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """x and y of at most `most` or MAX_POINTS values, with spikes kept; NaN (a gap) if a value is not finite."""
        if most:
            at = decimate(self.values, most)
        else:
            at = self.extremes.indices(self.values, MAX_POINTS if self.word not in STRIP_WORDS else MAX_POINTS // 4)
        y = self.values[at]
        return self.across(x)[at], np.where(np.isfinite(y), y, np.nan) if self.first_nonfinite else y

    def means(self, x: str = "step") -> tuple[np.ndarray, np.ndarray, int]:
        """x and y of the smoothed line, and the number of values per mean (0: no such line); of steps if `sampled`."""
        if self.count < SMOOTH_FROM or self.word == "lr":
            return np.empty(0), np.empty(0), 0
        if self.sampled() and not self.decreases:
            (steps, means, seconds), width = means_over_steps(self.table[:, : self.count], MAX_SPANS)
            return (steps if x == "step" else seconds), means, width
        steps, means, seconds, window = self.window_means.means(self.table[:, : self.count], MAX_MEANS)
        return (steps if x == "step" else seconds), means, window

    def clock(self, limit: int = 24) -> list[list[float]]:
        """A few (step, seconds) pairs to interpolate the time of a step; empty if steps do not increase.

        Evenly spaced, and on both sides of the longest waits, such as a pause.
        """
        n, seconds = self.count, self.seconds
        if self.decreases:
            return []
        at = {k * (n - 1) // (limit - 1) for k in range(limit)} if n > limit else set(range(n))
        if n > limit:
            first = max(self.waited - 1, 0)
            new, self.waited = seconds[first + 1 :] - seconds[first:-1], n
            if len(new) and (len(self.waits) < 4 or new.max() > self.waits[0][0]):
                longest = new.argpartition(-4)[-4:] if len(new) > 4 else new.argsort()
                self.waits = sorted(self.waits + list(zip(new[longest].tolist(), (longest + first).tolist())))[-4:]
            at.update([end for _, i in self.waits for end in (i, i + 1)])
        steps, times = self.table[::2, sorted(at)].tolist()
        if any(a >= b for a, b in pairwise(steps)):
            return []
        return [[a, round(b, 3)] for a, b in zip(steps, times)]

    def downsampled(self) -> Series:
        """A downsampled copy, for comparison with the next run."""
        copy = Series(self.name)
        at = decimate(self.values, MAX_POINTS // 2)
        copy.table, copy.count, copy.first_nonfinite = self.table[:, at], len(at), self.first_nonfinite
        return copy


def last_word(name: str) -> str:
    """The last word of a name: "loss" for "val_loss"."""
    return name.lower().rsplit("_", 1)[-1].rsplit(" ", 1)[-1]


def number(x: float) -> str:
    """Four digits, without an exponent if it is readable without; curve_panel.js does the same."""
    x = float(x)  # NumPy scalars warn about inf - inf
    if x - x != 0.0:
        return "NaN" if x != x else "inf" if x > 0 else "-inf"
    return f"{x:,.0f}" if 9_999.5 <= abs(x) < 1e9 else f"{x:.4g}"
