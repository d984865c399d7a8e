"""`flow.utils.benchmark`: time a statement with a warm-up, several measurements and units: Timer and Compare.

An op on the CPU has ended when its call returns. Read next: `profile` of an nn.Graph, which times each op.
"""

from __future__ import annotations

import statistics
import timeit as _timeit
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..core.base.errors import OutOfRangeError, StateError
from ..core.host.blas import library, set_threads
from ..core.messages.suggestions import name_hints as _name_hints
from ..core.source_location import fail

__all__ = ["Compare", "Measurement", "TaskSpec", "Timer", "select_unit"]
timer = _timeit.default_timer
UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


def select_unit(t: float) -> tuple[str, float]:
    """(unit, its seconds), in which a duration is a number from 1 to 1000."""
    unit = next((name for name, seconds in UNITS.items() if t < 1000 * seconds), "s")
    return unit, UNITS[unit]


class TaskSpec(NamedTuple):
    """The task of a Timer."""

    stmt: str
    setup: str = "pass"
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label, or the statement without one."""
        return ": ".join(filter(None, [self.label or self.stmt.strip(), self.sub_label]))


@dataclass
class Measurement:
    """Durations of a statement. raw_times: seconds, each of number_per_run runs."""

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict | None = field(default=None, repr=False)

    @property
    def times(self) -> list[float]:
        """Seconds of one run, one per measurement."""
        return [t / self.number_per_run for t in self.raw_times]

    median = property(lambda self: statistics.median(self.times), doc="The median of `times`, in seconds.")
    mean = property(lambda self: statistics.fmean(self.times), doc="The mean of `times`, in seconds.")

    @property
    def iqr(self) -> float:
        """The range of the middle half of `times`, in seconds."""
        low, _, high = statistics.quantiles(self.times, n=4, method="inclusive") if len(self.times) > 1 else (0, 0, 0)
        return high - low

    def __getattr__(self, name: str) -> Any:
        if name in TaskSpec._fields or name == "title":
            return getattr(self.task_spec, name)
        raise AttributeError(name)

    def meets_confidence(self, threshold: float = 0.1) -> bool:
        """True if the middle half of the times differ by less than this part of the median."""
        return self.iqr / self.median < threshold

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """Join the measurements of the same task."""
        grouped: dict[TaskSpec, list[Measurement]] = {}
        for one in measurements:
            grouped.setdefault(one.task_spec, []).append(one)
        return [Measurement(1, [t for m in many for t in m.times], spec) for spec, many in grouped.items()]

    def __repr__(self) -> str:
        unit, seconds = select_unit(self.median)
        count = len(self.raw_times)
        lines = [self.title, *([f"setup: {self.setup}"] if self.setup != "pass" else [])]
        lines += [f"  {'Median: ' if count > 1 else ''}{self.median / seconds:.2f} {unit}"]
        lines += [f"  IQR:    {self.iqr / seconds:.2f} {unit}"] if count > 3 else []
        runs = f"{self.number_per_run} run{'s' * (self.number_per_run != 1)} per measurement"
        threads = f"{self.num_threads} thread{'s' * (self.num_threads != 1)}"
        return "\n".join([*lines, f"  {count} measurement{'s' * (count != 1)}, {runs}, {threads}"])


class Timer:
    """Time a statement, on one thread of matrix products unless num_threads says otherwise.

    stmt, setup: Python code.  globals: its variables.  label, sub_label, description: the table, row and column of
    `Compare`.
    """

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Any = "python",
    ):
        if str(language).lower() not in ("python", "py", "language.python"):
            fail(OutOfRangeError, "Timer: only Python is timed", 'language="python"', language=language)
        self._timer = _timeit.Timer(stmt, setup, timer, dict(globals or {}))
        self._task_spec = TaskSpec(stmt, setup, global_setup, label, sub_label, description, env, num_threads)

    def run(self, number: int) -> float:
        """Seconds of `number` runs."""
        blas = library()
        before = blas.get() if blas is not None else 0
        set_threads(self._task_spec.num_threads)
        try:
            return self._timer.timeit(number)
        finally:
            set_threads(before)

    def measurement(self, number: int, times: list[float]) -> Measurement:
        """The Measurement of these seconds, each of `number` runs."""
        return Measurement(number, times, self._task_spec)

    def timeit(self, number: int = 1000000) -> Measurement:
        """Time `number` runs together, after a warm-up."""
        self.run(max(number // 100, 1))
        return self.measurement(number, [self.run(number)])

    def autorange(self) -> int:
        """The number of runs, a power of 10, that take a millisecond or more."""
        number = 1
        while self.run(number) < 1e-3:
            number *= 10
        return number

    def blocked_autorange(
        self, callback: Callable[[int, float], Any] | None = None, min_run_time: float = 0.2
    ) -> Measurement:
        """Repeat blocks of runs until they have taken min_run_time, in seconds."""
        number, times = self.autorange(), [0.0][:0]
        while sum(times) < min_run_time or not times:
            times.append(self.run(number))
            if callback is not None:
                callback(number, times[-1])
        return self.measurement(number, times)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callable[[int, float], Any] | None = None,
    ) -> Measurement:
        """blocked_autorange until the middle half of the times differ by less than `threshold` of the median, or for
        max_run_time.
        """
        found = self.blocked_autorange(callback, min_run_time)
        while sum(found.raw_times) < max_run_time and (len(found.times) < 4 or not found.meets_confidence(threshold)):
            found.raw_times.append(self.run(found.number_per_run))
        return found

    def collect_callgrind(self, number: int = 100, **options: Any) -> Any:
        """Raise StateError: instructions are not counted."""
        fail(StateError, "Timer.collect_callgrind: instructions are not counted", "timer.blocked_autorange()")


class Compare:
    """Table of measurements: a row for each sub_label, a column for each description."""

    def __init__(self, results: Sequence[Measurement]):
        self._results: list[Measurement] = []
        self.extend_results(results)
        self.trim = False

    def extend_results(self, results: Sequence[Measurement]) -> None:
        """Add measurements."""
        self._results += Measurement.merge(results)

    def trim_significant_figures(self) -> None:
        """Write two significant figures."""
        self.trim = True

    def colorize(self, rowwise: bool = False) -> None:
        """Do nothing: the table is plain text."""

    highlight_warnings = colorize

    def print(self) -> None:
        """Print the table."""
        print(self)

    def __str__(self) -> str:
        tables = {m.label: [n for n in self._results if n.label == m.label] for m in self._results}
        return "\n".join(self.table(label, found) for label, found in tables.items())

    def table(self, label: str | None, found: list[Measurement]) -> str:
        """The table of the measurements of one label."""
        unit, seconds = select_unit(min(m.median for m in found))
        columns = list(dict.fromkeys(m.description or m.stmt for m in found))
        rows = [["", *columns]]
        for threads in sorted({m.num_threads for m in found}):
            rows.append([f"{threads} threads:", *[""] * len(columns)])
            for name in dict.fromkeys(m.sub_label or "" for m in found if m.num_threads == threads):
                cells = {
                    m.description or m.stmt: m.median / seconds
                    for m in found
                    if m.num_threads == threads and (m.sub_label or "") == name
                }
                text = [f"{cells[c]:{'.2g' if self.trim else '.1f'}}" if c in cells else "" for c in columns]
                rows.append([f"      {name}", *text])
        widths = [max(len(row[i]) for row in rows) for i in range(len(columns) + 1)]
        lines = [
            "  |  ".join(cell.ljust(w) if not i else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths)))
            for row in rows
        ]
        title = f"[{f' {label} ' if label else ''}]".replace("[", "[-").replace("]", "-]")
        return "\n".join([title, *lines, "", f"Times are in {unit}."])


__getattr__ = _name_hints("flow.utils.benchmark", globals())
