"""Epochs of a run: where each one ends, and the mean of a series over it.

The ends are given by the user (`epoch=100` steps), else by `mark()`, else by a run of `flow.start`, or by the end of a
DataLoader's pass around the steps. Read next: `loss_curve.py`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .series import STRIP_WORDS, Mean, Series

MAX_MARKS = 40  # epochs that are marked, at most; if there are more, every second one, and so on


class End(NamedTuple):
    """The last step of an epoch, or another mark. prefix: prefix of the watched source; None for all sources.  counted:
    True if it ends an epoch.
    """

    step: float
    seconds: float
    text: str
    prefix: str | None = None
    counted: bool = True


class Epochs:
    """Ends and means of the epochs of a run.

    every: steps per epoch, if given.  marks: set by the user.  passes: ends of observed passes.
    """

    def __init__(self, every: float | None = None):
        self.every = every
        self.marks: list[End] = []
        self.passes: list[End] = []

    def mark(self, step: float, seconds: float, text: str | None) -> None:
        counted = text is None or text == ""
        text = str(len(self.marks) + 1) if counted else str(text)
        self.marks.append(End(step, seconds, text, None, counted))

    def passed(self, prefix: str, step: float, seconds: float) -> None:
        """Record that an epoch of the series with this prefix ended with this step."""
        before = [end for end in self.passes if end.prefix == prefix]
        if not before or before[-1][:2] != (step, seconds):
            self.passes.append(End(step, seconds, str(len(before) + 1), prefix))

    def ends(self, prefix: str) -> list[End]:
        """Ends of the epochs of the series with a prefix, if `every` is not given."""
        marked = [end for end in self.marks if end.counted]
        return marked or [end for end in self.passes if end.prefix == prefix]

    def known(self, prefix: str) -> bool:
        return bool(self.every or self.ends(prefix))

    def shown(self, longest: Series | None) -> list[tuple[float, float, str]]:
        """(step, seconds, text) of the ends, at most MAX_MARKS."""
        marks = [end[:3] for end in self.marks]
        if self.every and longest is not None:
            count = max(int(longest.steps[-1] / self.every), 0)
            ends = np.arange(1, count + 1, 1 + count // MAX_MARKS)
            when = np.interp(ends * self.every, longest.steps, longest.seconds) if len(ends) else ends
            marks += [(float(k * self.every), float(t), str(k)) for k, t in zip(ends.tolist(), when)]
        elif not any(end.counted for end in self.marks):
            marks += [one for _, one in sorted({end.step: end[:3] for end in reversed(self.passes)}.items())]
        return marks[:: 1 + len(marks) // (MAX_MARKS + 1)]

    def average(self, s: Series) -> None:
        """Update `s.epochs`: the means over finished epochs with two values or more."""
        stops = self.stops(s) if s.count and s.word not in STRIP_WORDS else ()
        if not len(stops) or s.count < 2 * (s.ended + len(stops)):
            return
        stops = np.maximum.accumulate(stops)
        first = s.epochs[-1].stop if s.epochs else 0
        starts = np.concatenate([[first], stops[:-1]])
        numbers = np.flatnonzero(stops > starts)
        if len(numbers):
            with np.errstate(all="ignore"):
                means = np.add.reduceat(s.values[: stops[-1]], starts[numbers]) / (stops - starts)[numbers]
            each = numbers + s.ended + 1, starts[numbers], stops[numbers], means
            s.epochs += [Mean(*one) for one in zip(*[column.tolist() for column in each])]
        s.ended += len(stops)

    def stops(self, s: Series):
        """Number of its values before each end that was not processed yet."""
        if not self.every:
            ends = self.ends(s.prefix)[s.ended :]
            return (
                s.seconds.searchsorted([end.seconds for end in ends], "right")
                if s.decreases
                else s.steps.searchsorted([end.step for end in ends], "right")
            )
        first = float(s.steps[0] == 0)  # a loop that counts from 0 ends its first epoch one step earlier
        count = min((s.steps[-1] + first) / self.every, s.count)
        if s.decreases or count > s.count / 2:
            return ()
        return s.steps.searchsorted(np.arange(s.ended + 1, int(count) + 1) * self.every - first, "right")

    def numbers(self, prefix: str, first: float, steps: np.ndarray, seconds: np.ndarray) -> np.ndarray:
        """The epoch of each step, from 1; `first` is the first step of the run."""
        if self.every:
            number = np.floor(steps / self.every) + 1 if first == 0 else np.ceil(steps / self.every)
            return np.maximum(number, 1).astype(int)
        ends = self.ends(prefix)
        at = np.array([end.step for end in ends])
        if (np.diff(at) <= 0).any():
            return np.array([end.seconds for end in ends]).searchsorted(seconds) + 1
        return at.searchsorted(steps) + 1
