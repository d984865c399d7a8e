"""A named history of numbers, and the few points of it that a picture needs.

A series remembers what it has thinned out already, so that a long run costs no more per update than a short one. Knows
nothing of notebooks or drawing. Read next: `curve_svg.py`, which draws series as a still picture.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from itertools import compress

import numpy as np

from minflow.views.text.listing import clean

POINTS = 800  # of the raw line, at most
MEANS = 200  # of the smoothed line, at most; together the 1,000 points that a series may send
LARGEST = 3.4e38  # that a float32 holds: a line to beyond ends there, rather than in a gap
SMOOTH_FROM = 50  # values, below which a mean line would only repeat the raw one
WIDE = 1e4  # times as large as the smallest: values so far apart are drawn on a log scale, if nobody has chosen one
SPAN = 5  # how many of the MEANS windows one smoothed value covers

HIGHER_IS_BETTER = ("acc", "accuracy", "f1", "precision", "recall", "score", "auc")
START = np.zeros(1, int)
SMALL = ("lr", "norm")  # words of what is drawn in a strip below the others; neither better nor worse


class Series:
    """The values of one name, in the order in which they came. Not thread-safe: the curve holds a lock.

    zero: the `time.perf_counter` from which its times count.  every: n, where it has a value of every n-th step only.
    """

    def __init__(self, name: str, zero: float = 0.0):
        self.name, self.zero, self.every = name, zero, 1
        self.word = word_of(name)  # series with one word share a panel
        self.count, self.moved = 0, False  # moved: was there a value unlike the first?
        self.table = np.empty((3, 256))  # steps, values, seconds; grown by doubling
        # how far its steps went forward in all; how often they went back, as at a new epoch
        self.walked, self.returns = 0.0, 0
        # (step, value, seconds) of the first that is NaN or infinite
        self.bad: tuple[float, float, float] | None = None
        self.best: tuple[float, float] | None = None  # (value, step)
        self.sign = -1.0 if self.word in HIGHER_IS_BETTER else 1.0
        self.thinned, self.summed = Thinned(), Summed()
        self.waits: list[tuple[float, int]] = []  # the longest times between two values, and after which one
        self.waited = 0  # among how many values

    def add(self, step: float, value: float, seconds: float = 0.0) -> None:
        at = self.count
        if at == self.table.shape[1]:
            self.table = np.concatenate([self.table, np.empty_like(self.table)], axis=1)
        table = self.table
        table[0, at], table[1, at], table[2, at] = step, value, seconds
        if at and (ahead := step - table.item(0, at - 1)) >= 0:
            self.walked += ahead
        elif at:
            self.returns += 1
        self.count = at + 1
        self.moved = self.moved or bool(value != table[1, 0])
        if value - value != 0.0:  # NaN or infinite
            self.bad = self.bad or (step, value, seconds)
        elif self.best is None or self.sign * value < self.sign * self.best[0]:
            self.best = value, step

    def extend(self, steps: Sequence[float], values: Sequence[float], times: Sequence[float]) -> None:
        """Add many at once. times: of `time.perf_counter`."""
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
        self.walked += float(ahead[ahead >= 0].sum())
        self.returns += int((ahead < 0).sum())
        self.count = end
        if not math.isfinite(sum(values)):
            good = [math.isfinite(value) for value in values]
            if not all(good):
                first = good.index(False)
                self.moved, self.bad = True, self.bad or (steps[first], values[first], times[first] - self.zero)
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
        """Step, value and seconds of the first and of the last."""
        item, last = self.table.item, self.count - 1  # six floats cost less than a row of an array
        return [[item(row, at) for row in range(3)] for at in (0, last)]

    def within(self, other: Series) -> bool:
        """Has the other, at the first and the last step of this one, the same times? Then one clock tells both."""
        if not self.count or self.zero != other.zero:
            return False
        ends = self.table[::2, [0, self.count - 1]]
        at = other.steps.searchsorted(ends[0])
        return bool(at.max() < other.count and (other.table[::2, at] == ends).all())

    def stride(self) -> float:
        """By how much the step grows from one value to the next, where it grows."""
        forward = self.count - 1 - self.returns
        return self.walked / forward if forward > 0 and self.walked > 0 else 1.0

    def across(self, x: str) -> np.ndarray:
        """Where its values stand on the x axis: "step" or "time"."""
        return self.steps if x == "step" else self.seconds

    # ---- in words --------------------------------------------------------------------------------------------------

    def now(self, latest: float | None = None) -> str:
        """`loss 0.0512`; `gradient norm 0.4 at step 20` where that is not the `latest` step."""
        if not self.count:
            return f"{clean(self.name)} -"
        old = self.word == "norm" and latest is not None and self.steps[-1] != latest
        return f"{clean(self.name)} {number(self.values[-1])}" + (f" at step {number(self.steps[-1])}" if old else "")

    def label(self, latest: float | None = None) -> str:
        """`loss 0.0512 · lowest 0.048 at step 688`"""
        text = self.now(latest)
        if self.best is not None and self.count > 1 and self.word not in SMALL:
            text += f" · {'highest' if self.sign < 0 else 'lowest'} {number(self.best[0])} at step {number(self.best[1])}"
        return text

    def sampled(self) -> str:
        """`norm of every 20th step`, or nothing where it is of each."""
        return f"{self.word} of every {self.every:,}{'nd' if self.every == 2 else 'th'} step" if self.every > 1 else ""

    def warning(self) -> str:
        """`NaN from step 12`, `NaN first at step 12` where numbers came again, or nothing."""
        if not self.bad:
            return ""
        since = "first at" if np.isfinite(self.values[-1]) else "from"
        return f"{number(self.bad[1])} {since} step {number(self.bad[0])}"

    # ---- what is drawn ---------------------------------------------------------------------------------------------

    def points(self, x: str = "step") -> tuple[np.ndarray, np.ndarray]:
        """x and y of at most POINTS values, spikes kept; what is not finite is NaN, a gap in the line."""
        at = self.thinned.indices(self.values, POINTS if self.word not in SMALL else POINTS // 4)
        y = self.values[at]
        return self.across(x)[at], np.where(np.isfinite(y), y, np.nan) if self.bad else y

    def means(self, x: str = "step") -> tuple[np.ndarray, np.ndarray, int]:
        """x and y of the smoothed line, and over how many values each is the mean (0: no such line)."""
        if self.count < SMOOTH_FROM or self.word == "lr":
            return np.empty(0), np.empty(0), 0
        steps, means, seconds, window = self.summed.means(self.table[:, : self.count], MEANS)
        return (steps if x == "step" else seconds), means, window

    def clock(self, limit: int = 24) -> list[list[float]]:
        """A few (step, seconds) between which a line tells when a step was; none where steps do not grow.

        Spread evenly, and on both sides of the longest waits, such as a pause.
        """
        n, seconds = self.count, self.seconds
        if self.returns:
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
        if any(a >= b for a, b in zip(steps, steps[1:])):
            return []
        return [[a, round(b, 3)] for a, b in zip(steps, times)]

    def thin(self) -> Series:
        """A copy of the points that are drawn, for the next run to be compared with."""
        copy = Series(self.name)
        at = decimate(self.values, POINTS // 2)
        copy.table, copy.count, copy.bad = self.table[:, at], len(at), self.bad
        return copy


class Thinned:
    """Indices of the least and the greatest value of each bucket; the buckets that are full are looked at once."""

    def __init__(self) -> None:
        self.size, self.full, self.found = 0, 0, np.empty(0, int)

    def indices(self, values: np.ndarray, limit: int) -> np.ndarray:
        """At most `limit` of them, growing; first and last are there. A bucket without finite values keeps one, as a
        gap."""
        n = len(values)
        if n <= limit:
            return np.arange(n)
        size = bucket_size(n, (limit - 4) // 2)
        if size != self.size:
            self.size, self.full, self.found = size, 0, np.empty(0, int)
        full = n // size
        if full > self.full:
            new = extremes(values[self.full * size : full * size].reshape(-1, size)) + self.full * size
            self.found, self.full = np.concatenate([self.found, new]), full
        rest = values[full * size :]
        tail = extremes(rest.reshape(1, -1)) + full * size if len(rest) else self.found[:0]
        at = np.concatenate([START, self.found, tail, [n - 1, n]])
        return at[:-1][at[1:] != at[:-1]]


def bucket_size(n: int, buckets: int) -> int:
    """The least power of two with which `buckets` buckets hold n values: it seldom changes while n grows."""
    return 1 << (-(-n // buckets) - 1).bit_length()


def extremes(rows: np.ndarray) -> np.ndarray:
    """Indices, counted through all rows and growing, of the least and the greatest finite value of each: two of each
    row."""
    finite = np.isfinite(rows)
    least, greatest = (rows, rows) if finite.all() else (np.where(finite, rows, np.inf), np.where(finite, rows, -np.inf))
    pairs = np.array([least.argmin(1), greatest.argmax(1)])
    pairs.sort(0)
    return (pairs.T + np.arange(0, rows.size, rows.shape[1])[:, None]).ravel()


class Summed:
    """Sums over buckets of step, value, seconds and one; the buckets that are full are summed once."""

    def __init__(self) -> None:
        self.size, self.full, self.sums = 0, 0, np.empty((4, 0))

    def means(self, table: np.ndarray, limit: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
        """At most `limit` means over overlapping windows: steps, values, seconds, and the number of values in a window.

        Step and value are means of the same window, also where it is cut short at the ends, so the line has no false
        start. Sums are taken window by window, never as differences of a running sum: one spike of 1e30 stays where it
        is.
        """
        n = table.shape[1]
        size = bucket_size(n, limit)
        if size != self.size:
            self.size, self.full, self.sums = size, 0, np.empty((4, 0))
        full = n // size
        if full > self.full:
            self.sums = np.concatenate([self.sums, summed(table[:, self.full * size : full * size], size)], axis=1)
            self.full = full
        rest = table[:, full * size :]
        sums = np.concatenate([self.sums, summed(rest, rest.shape[1])], axis=1) if rest.shape[1] else self.sums
        count = sums.shape[1]
        wide = np.zeros((4, count + SPAN - 1))
        wide[:, SPAN // 2 : SPAN // 2 + count] = sums
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            steps, values, seconds, finite = sum([wide[:, k : k + count] for k in range(SPAN)])
            return steps / finite, values / finite, seconds / finite, SPAN * size


def summed(table: np.ndarray, size: int) -> np.ndarray:
    sums, finite = np.empty((4, table.shape[1] // size)), np.isfinite(table[1])
    with np.errstate(over="ignore"):
        if finite.all():
            sums[:3], sums[3] = table.reshape(3, -1, size).sum(2), size
        else:
            sums[:3], sums[3] = np.where(finite, table, 0.0).reshape(3, -1, size).sum(2), finite.reshape(-1, size).sum(1)
    return sums


def word_of(name: str) -> str:
    """The last word of a name: "loss" of "val_loss"."""
    return name.lower().rsplit("_", 1)[-1].rsplit(" ", 1)[-1]


def number(x: float) -> str:
    """Four digits, without an exponent where it can be read without; curve_panel.js writes the same."""
    x = float(x)  # numpy's own numbers warn of inf - inf
    if x - x != 0.0:
        return "NaN" if x != x else "inf" if x > 0 else "-inf"
    return f"{x:,.0f}" if 9_999.5 <= abs(x) < 1e9 else f"{x:.4g}"


def decimate(values: np.ndarray, limit: int) -> np.ndarray:
    """Indices of at most `limit` values that draw the same line: the least and the greatest of each bucket."""
    return Thinned().indices(values, limit)


def smooth(steps: np.ndarray, values: np.ndarray, limit: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Steps and values of at most `limit` means, and the number of values in a window."""
    found = Summed().means(np.stack([steps, values, steps]), limit)
    return found[0], found[1], found[3]


def wide(word: str, values: Sequence[np.ndarray]) -> bool:
    """Would a linear scale flatten these values of a panel, and a logarithmic one not hide some? A twentieth may be
    smaller."""
    numbers = np.concatenate([np.empty(0), *values])
    numbers = numbers[np.isfinite(numbers)]
    if word == "lr" or not numbers.size or numbers.min() < 0:
        return False
    few = len(numbers) // 20
    if numbers.max() / WIDE <= numbers.min():
        return False
    least = np.partition(numbers, few)[few]
    return bool(0 < least < numbers.max() / WIDE)


def latest(series: list[Series], s: Series) -> float | None:
    """The last step of those that are told with this one, under the same prefix."""
    prefix = s.name.rpartition(" ")[0].removesuffix("gradient")
    return max([one.steps[-1] for one in series if one.count and one.name.startswith(prefix)], default=None)


def drawn(series: list[Series], declared: tuple[str, ...] = ()) -> list[Series]:
    """The series that are lines: a small one that never changed is only a number, unless room is kept for it."""
    return [s for s in series if s.moved or s.word not in SMALL or s.word in declared] or ([] if declared else series)


def panels(series: list[Series], declared: tuple[str, ...] = ()) -> list[str]:
    """The titles of the panels: those declared, then the others in order of appearance."""
    return list(dict.fromkeys([*declared, *[s.word for s in drawn(series, declared)]]))


def rows(titles: list[str]) -> list[list[int]]:
    """Which panels stand side by side: two to a row, then those of SMALL words in one row of strips."""
    large = [i for i, title in enumerate(titles) if title not in SMALL]
    small = [i for i, title in enumerate(titles) if title in SMALL]
    return [large[i : i + 2] for i in range(0, len(large), 2)] + ([small] if small else [])


def encode(series: list[Series], status: str, declared: tuple[str, ...] = (), before: Sequence[Series] = (), **more) -> bytes:
    """All that the front end needs to draw, in one piece: length of the header, header as JSON, float32 numbers.

    For each series: n steps, n values, m steps of the means, m means; steps are told from its `zero` on, since a
    float32 has only 24 bits. Its clock is that of the header, where it has none of its own; where steps do not grow, no
    clock can tell times, and n and m seconds follow ("timed"). before: of the previous run, which share the scales.
    more: further entries of the header.
    """
    titles, lines, entries, arrays = panels(series, declared), drawn(series, declared), [], []
    heights: dict[str, list] = {title: [] for title in titles}
    for s in before:
        if s.name in {one.name for one in lines}:
            heights[s.word].append(s.points()[1])
    longest = max(lines, key=lambda s: s.count, default=None)
    times = longest.clock() if lines else []
    for s in lines:
        x, y = s.points()
        heights[s.word].append(y)
        mx, my, window = s.means()
        zero = float(x[0]) if len(x) else 0.0
        arrays += [x - zero, y, mx - zero, my]
        clock = times if s is longest or times and s.within(longest) else s.clock()
        if not clock and s.count:
            arrays += [s.points("time")[0], s.means("time")[0]]
        label = s.label(latest(series, s))
        entries.append(
            {"panel": titles.index(s.word), "name": clean(s.name), "label": label, "n": len(x), "m": len(mx), "window": window}
            | ({"zero": zero} if zero else {})
            | ({"every": s.sampled()} if s.every > 1 else {})
            | ({} if clock is times else {"clock": clock})
            | ({} if clock or not s.count else {"timed": True})
            | ({"bad": s.bad[0], "late": s.bad[2], "warning": s.warning()} if s.bad else {})
        )
    small = [i for i, title in enumerate(titles) if title in SMALL]
    logs = [i for i, title in enumerate(titles) if wide(title, heights[title])]
    header = {"status": status, "panels": titles, "rows": rows(titles), "small": small, "logs": logs, "series": entries}
    header |= {"clock": times} | more
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 4)
    with np.errstate(over="ignore"):
        body = np.concatenate([np.empty(0), *arrays]).clip(-LARGEST, LARGEST).astype("<f4")
    return len(text).to_bytes(4, "little") + text + body.tobytes()
