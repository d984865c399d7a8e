"""LossCurve: values of a training run, drawn while it runs and kept as a picture when it ends.

`add` only appends; the update thread shows new values at most ten times per second, and always the last one.
Independent of display, which is in `live_curve.py`. Read next: `../watch.py`, which fills a curve automatically;
`series.py`, the data that is sent.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from minflow.core.base.locks import new_lock
from minflow.core.files.atomic import write
from minflow.core.source_location import here
from minflow.diagnosis import notebook
from minflow.views.text.listing import clean
from minflow.views.words import say

from .. import frontends
from ..control import LoopControl
from ..runs.log import OPEN_CURVES, RunLog
from ..runs.saved_runs import gather_runs, series_of
from ..update_thread import EndGuard, UpdateThread, clock
from . import live_curve, previous_run
from .arguments import as_number, check_name, check_options, panel_words
from .epochs import Epochs
from .feed import Feed
from .legend import describe, is_problem, latest_step, series_warnings
from .panels import encode, line_series, panels
from .series import Series, number

BY_BUTTON = "stopped by the stop button"  # note of a curve
BEAT = 5.0  # seconds after which a page is told that nothing is new
MAX_HEARD = 8  # messages of pages that are acknowledged
MAX_EARLIER_RUNS = 4  # earlier runs drawn with a live one
UPDATE_SHARE = 0.007  # share of a processor for updates; if one costs more than 0.7 ms, there are fewer
MIN_UPDATE_SHARE = 0.003  # share of a processor that updates always get, however much of the budget recording uses
CPU_SHARE = 0.016  # share of a processor for recording and updates; sending messages takes another 2 ms per second
RATE_SECONDS = 5.0  # seconds over which the rate is measured


class LossCurve:
    """A live curve: `with LossCurve() as curve: curve.add(step, loss=..., accuracy=...)`.

    In a notebook it is a canvas that follows the run. When the block ends, even by an error or an interrupt, a static
    picture replaces it, which a saved notebook keeps, with values under the pointer and zoom where scripts run. In a
    terminal it is a line of text. `MINFLOW_LIVE=0` shows only the final state. Series whose names end in the same word
    (`loss`, `val_loss`) share a panel.

    A reloaded page shows the curve as in the last saved file. If that was saved while the curve was live: during a run
    of `flow.start` it is complete at once, moves, and its buttons work; while a cell trains, "Loading widget..." is
    shown until that cell ends, then the whole curve. If it was not saved, the output is lost, but not the curve:
    `curve.explore()` shows it again, and `curve` in the last line of a cell shows the picture of one that has ended.

    total: number of steps of the run, to show the time left.  epoch: steps per epoch; each end is marked, and the mean
    over the epoch drawn and reported. Without it, an epoch ends at `mark()`, or, under `watch`, with a DataLoader's
    pass around the steps.  x: "step", or "time" in seconds since each series began.  log: logarithmic scale of the
    values; by default if they span more than four decades, which the picture mentions.
    panels: last words of the names of later series, such as ("loss", "lr"), to reserve space from the start.
    log may also be a folder: the values are then kept there as a table `NAME.csv` that is written during the run (see
    `../runs/log.py`), and `compare` shows such runs side by side.  name: name of the run and of its file, numbered if
    that file exists.  config: hyperparameters by name, kept with the run.
    compare: earlier runs to draw with it: a folder of them (the newest four), tables, or curves.
    control: target of the buttons, with `pause()`, `resume()`, `stop()` and `state`. Default: the loop that fills the
    curve. It is held between two steps (in `add`, or in the watched call), and `stop` raises KeyboardInterrupt there,
    as an interrupt does. Front ends that handle no clicks while a cell runs say so beside the buttons.
    >>> curve = LossCurve()
    >>> curve.data
    {}
    """

    def __init__(
        self,
        *,
        total: float | None = None,
        epoch: float | None = None,
        x: str = "step",
        log: bool | str | os.PathLike | None = None,
        panels: tuple[str, ...] = (),
        control: Any = None,
        name: str | None = None,
        config: Mapping[str, Any] | None = None,
        compare: Any = (),
    ):
        check_options(total, epoch, x, control)
        self.total, self.x, self.panels = total, x, panel_words(panels)
        self.control = LoopControl() if control is None else control
        self._loop = self.control if isinstance(self.control, LoopControl) else LoopControl()  # obeyed by its loops
        self.name, self.configs = name, {"": check_name(name, config)}  # prefix -> hyperparameters
        kept = isinstance(log, str | os.PathLike)
        self.log = None if log is None or kept else bool(log)
        self._log = RunLog(log) if isinstance(log, str | os.PathLike) else None
        runs, self._left_out = gather_runs([compare], MAX_EARLIER_RUNS, needed=False) if compare else ([], "")
        self._others = series_of(runs, 1)  # drawn with its own
        self.smooth = 1  # how smooth the page draws its lines
        self._epochs = Epochs(epoch)
        self._pauses: list[list[float]] = []  # [start, end] of pauses of the control, as seen by the update thread
        self._series: dict[str, Series] = {}
        self._feeds: list[Feed] = []  # filled by fast loops, emptied by the update thread
        # guards the series; held while the front end starts, not while it shows something
        self._lock = new_lock(threading.RLock)
        self._front: Any = None
        self._update_thread: Any = None
        # the last messages of pages that have arrived; time of the last update
        self._heard: deque[str] = deque(maxlen=MAX_HEARD)
        self._sent = clock()
        self._place = previous_run.CurveSlot([], 0, [])
        self._cell = ("", "")  # cell of the first display, and the run of that cell
        self._source: Any = None  # fills the curve automatically: `../watch.py`
        self._within: list = []  # the same inside `with` blocks of the caller
        self._note = ""
        self._finished, self._left, self._ending = False, False, EndGuard()  # left: its `with` block ended
        # processor seconds that feeds have cost their loops; time of the last look
        self._recording, self._recorded = 0.0, (clock(), 0.0)
        self._started = clock()
        self._ended: float | None = None

    # -- called by a training loop

    def add(self, step: float | None = None, **values: float) -> None:
        """Append one value per name at `step`. Default: the current step of other names, else the next one.

        So `curve.add(loss=loss)` in each step and `curve.add(val_loss=...)` now and then share the same x.
        A value is anything that `float()` takes: a number, an array or a Tensor with one element. NaN and infinity are
        kept and drawn as a gap, and their first step is marked. Raises DTypeError for anything else, and for a step
        that is not finite.
        """
        numbers = {name: as_number(name, value) for name, value in values.items()}
        at = None if step is None else as_number("step", step)
        if at is not None and at - at != 0.0:
            from minflow.core.base.errors import DTypeError

            hint = "curve.add(step, loss=...)"
            raise DTypeError("LossCurve.add: a step is a finite number", values={"step": str(at)}, hint=hint)
        self.put(at, numbers)
        if self._loop.asked != "running" and not self._finished:
            self._loop.hold()

    def put(
        self, at: float | None, numbers: dict[str, float], when: float | None = None, zero: float | None = None
    ) -> None:
        """`add` for values that are floats already, at time `when` of `time.perf_counter`; `zero` is the start of the
        series.
        """
        with self._lock:
            if self._front is None and not self._finished:
                self._start()
            self._take()
            if at is None:
                at = max((s.steps[-1] for s in self._series.values() if s.count), default=0.0)
                here = [self._series[name] for name in numbers if name in self._series]
                at += any([s.count and s.steps[-1] >= at for s in here])
            when = clock() if when is None else when
            for name, value in numbers.items():
                series = self._series.get(name)
                if series is None:
                    series = self._new(name, zero)
                series.add(at, value, when - series.zero)
            if self._finished:
                return
        self._update_thread.wake()

    def _new(self, name: str, zero: float | None) -> Series:
        series = Series(name)
        began = [one.zero for one in self._series.values() if one.prefix == series.prefix]  # of the same run
        series.zero = zero if zero is not None else began[0] if began else self._started
        self._series[name] = series
        if self._others:  # like those: one panel per name, one style per run
            prefix = self._prefix_of(series)
            series.shown, series.style = f"{prefix or self.name or 'this run'}:", None if prefix else 0
            series.within_run(name[len(prefix) :])
        return series

    def feed(self, prefix: str = "", zero: float | None = None) -> Feed:
        """A queue that a fast loop fills at a lower cost than by `add`."""
        feed = Feed(prefix, zero)
        with self._lock:
            self._feeds.append(feed)
        return feed

    def close(self, feeds: Sequence[Feed]) -> None:
        """Take the remaining values of these feeds and detach them."""
        closed = {id(feed) for feed in feeds}
        with self._lock:
            self._take()
            self._feeds = [one for one in self._feeds if id(one) not in closed]

    def _take(self) -> bool:
        """Move values from the feeds into the series. Return True if there were any. The caller holds the lock."""
        fresh = False
        for feed in self._feeds:
            for names, steps, times, columns in feed.take():
                fresh = True
                self._recording += feed.cost * len(steps)
                if feed.zero is None:
                    feed.zero = times[0] if feed.prefix else self._started
                for name, values in dict(zip(names, columns)).items():
                    series = self._series.get(feed.prefix + name)
                    if series is None:
                        series = self._new(feed.prefix + name, feed.zero)
                    series.extend(steps, values, times)
                    series.every = max(series.every, feed.every)
        return fresh

    def _add_note(self, note: str) -> None:
        """Add a note under the picture, without duplicates."""
        if note not in self._note:
            self._note = "; ".join(filter(None, [self._note, note]))

    def mark(self, text: str = "") -> None:
        """Mark the current step, such as the end of an epoch, with a faint line; `text` defaults to its number."""
        with self._lock:
            self._take()
            self._epochs.mark(*self._now(), text)

    @property
    def data(self) -> dict[str, tuple]:
        """All values so far: name -> (steps, values), two float64 arrays of the same length."""
        with self._lock:
            self._take()
            return {name: (s.steps.copy(), s.values.copy()) for name, s in self._series.items()}

    @property
    def paths(self) -> list[Path]:
        """The tables of this run if it is kept; empty before the first value."""
        return self._log.paths if self._log is not None else []

    @property
    def epochs(self) -> dict[str, tuple]:
        """Means over finished epochs: name -> (epoch numbers, from 1; means), two arrays of equal length.

        For each series with at least two values per epoch, if the ends of epochs are known.
        """
        with self._lock:
            self._take()
            means = {s.name: [(one.number, one.mean) for one in s.epochs] for s in self._averaged() if s.epochs}
        return {name: tuple(map(np.array, zip(*pairs))) for name, pairs in means.items()}

    def csv(self, path: str | os.PathLike | None = None) -> str:
        """All values as a table with columns series, step, seconds, value; also written to the file `path`."""
        import csv
        import io

        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["series", "step", "seconds", "value"])
        with self._lock:
            self._take()
            for name, s in self._series.items():
                rows = s.table[:, : s.count].T.tolist()
                writer.writerows([[name, f"{step:.17g}", f"{t:.6f}", repr(value)] for step, value, t in rows])
        if path is not None:
            write(path, out.getvalue(), "curve.csv", here)
        return out.getvalue()

    def finish(self, note: str = "") -> None:
        """Show the last values, and replace the live picture with the static one. Called when the `with` block ends."""
        if self._source is not None:
            self._source.end()  # takes the remaining values and stops listening
        self._loop.resume_loops()
        if not self._ending.claim(self._update_thread):
            return
        try:
            with self._lock:
                self._take()
                ended = self._source.ended() if self._source is not None else None
                self._finished, self._ended = True, ended or clock()
                self._add_note(note or ("" if self._series or self._source is None else self._source.note()))
                if self._front is None:
                    self._front = live_curve.start_frontend(self) if self._series else None
                    self._cell = notebook.running_cell()
                self._place.keep([s.downsampled() for s in self._series.values() if s.count])
            try:
                if self._update_thread is not None:
                    self._update_thread.stop()
                if self._log is not None:
                    self._log.write(self, self._note)
                    self._add_note(self._log.problem)
            finally:  # show the picture even if the wait for the update thread is interrupted
                if self._front is not None:
                    frontends.finish_safely(self._front, self)
        finally:
            self._ending.done.set()
            if self._source is not None:
                self._source.release()

    def explore(self) -> None:
        """Show the curve again as a canvas with hover values and a log scale; it is live while the curve is."""
        live_curve.explore(self)

    def __enter__(self) -> LossCurve:
        if self._left:
            from minflow.core.base.errors import MinflowError

            hint = "a new one for each block: with LossCurve() as curve, with watch(graph) as curve"
            raise MinflowError("This curve has ended with its block", values={"curve": self.text()[:60]}, hint=hint)
        with self._lock:
            if self._front is None and not self._finished:
                self._start()
        if self._source is not None:
            self._source.begin()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: Any) -> None:
        self._left = True
        try:
            if kind is None and self._source is not None:
                self._source.wait()
        except BaseException as error:  # most likely an interrupt
            kind = type(error)
            raise
        finally:
            with frontends.delay_interrupts():
                stopped = kind is KeyboardInterrupt and self._loop.stopped
                notes = [] if kind is None else [BY_BUTTON if stopped else f"stopped by {kind.__name__}"]
                if self._source is not None:
                    self._source.end()  # takes the remaining values; its note is only complete after that
                    notes.append(self._source.note())
                self.finish("; ".join(filter(None, notes)))

    def _start(self) -> None:
        self._started = clock()
        self._place = previous_run.claim_slot()
        self._cell = notebook.running_cell()
        self._front = live_curve.start_frontend(self)
        self._update_thread = UpdateThread(self)
        if self._log is not None:
            OPEN_CURVES.add(self)

    # -- display

    def _update(self) -> None:
        self._sent = clock()
        self._front.update(self)

    def _take_new_values(self) -> bool | None:
        """True if there is something new; None if its source, and therefore the curve, has ended."""
        if self._source is not None and not self._source.take_new_values():
            self.finish(self._source.note())
            return None
        for source in tuple(self._within):
            source.take_new_values()
        self._record_pauses()
        with self._lock:
            fresh = self._take()
        if self._log is not None:
            self._log.write(self)
        # a page without news for a while says that the kernel may be gone
        return fresh or (isinstance(self._front, frontends.Widget) and clock() - self._sent > BEAT)

    def _record_pauses(self) -> None:
        open_ = bool(self._pauses) and len(self._pauses[-1]) == 1
        if (getattr(self.control, "state", "running") == "paused") != open_:
            self._pauses[-1:] = [[*self._pauses[-1], clock()]] if open_ else [*self._pauses[-1:], [clock()]]

    def _paused(self, since: float, until: float) -> float:
        """Total seconds of pauses between two times."""
        ends = [(pause[0], pause[1] if pause[1:] else until) for pause in self._pauses]
        return sum([max(min(end, until) - max(start, since), 0.0) for start, end in ends])

    def _gaps(self) -> list[list[float]]:
        """Spans of seconds without a line: pauses, from the last value before to the first one after, slightly
        shortened.
        """
        longest: Any = self._longest()
        result: list[list[float]] = []
        for pause in self._pauses if longest is not None else []:
            at = int(longest.seconds.searchsorted(sum(pause) / 2 - longest.zero)) if pause[1:] else 0
            if 0 < at < longest.count:
                a, b = longest.seconds[at - 1 : at + 1].tolist()
                result.append([a + 0.1 * (b - a), b - 0.1 * (b - a)])
        return result

    def _cpu_share(self) -> float:
        """Share of a processor for updates: the budget minus the cost of recording."""
        (since, before), self._recorded = self._recorded, (clock(), self._recording)
        recording = (self._recording - before) / max(self._recorded[0] - since, 1e-9)
        return min(UPDATE_SHARE, max(CPU_SHARE - recording, MIN_UPDATE_SHARE))

    def _now(self) -> tuple[float, float]:
        """The last step of all series, and its seconds."""
        return max(((s.steps[-1], s.seconds[-1]) for s in self._series.values() if s.count), default=(0.0, 0.0))

    def _averaged(self) -> list[Series]:
        """All series, with updated means of epochs."""
        for s in self._series.values():
            self._epochs.average(s)
        return list(self._series.values())

    def _prefix_of(self, s: Series) -> str:
        """The longest recorded prefix of its name, including the final space; usually empty."""
        return max([prefix for prefix in self.configs if s.name.startswith(prefix)], key=len)

    def _passed(self, since: float, prefix: str) -> None:
        """A loader's pass that began at `since` has ended: an epoch if steps were recorded in it."""
        with self._lock:
            self._take()
            longest = max(
                (s for s in self._series.values() if s.count and s.prefix == prefix),
                key=lambda s: s.count,
                default=None,
            )
            if longest is not None and longest.zero + longest.ends()[1][2] >= since:
                step, _, seconds = longest.ends()[1]
                self._epochs.passed(prefix, step, seconds)

    def marks(self) -> list[tuple[float, float, str]]:
        """(step, seconds, text) of the ends of epochs, downsampled."""
        return self._epochs.shown(self._longest())

    def encode(self) -> bytes:
        """The downsampled curve in the binary form of the front end."""
        with self._lock:
            self._take()
            note = self._note if self._finished else getattr(self.control, "problem", "")
            state = "ended" if self._finished else getattr(self.control, "state", "running")
            more = {"marks": self.marks(), "note": note, "state": state, "gaps": self._gaps()}
            if self._finished:
                more |= {"problem": is_problem(note)}
            else:
                more |= {"controls": not note, "heard": list(self._heard), "sent": round(clock() - self._started, 1)}
            before = [*self._place.before, *self._others]
            return encode(self._averaged(), self._status(), self.panels, before, self._runs(), **more)

    def encode_before(self) -> bytes:
        """The same for the previous run of the cell, and for earlier runs; empty if there are none."""
        before = [*self._place.before, *self._others]
        return encode(before, "earlier runs", tuple(panels(before))) if before else b""

    def _longest(self) -> Series | None:
        return max((s for s in self._series.values() if s.count), key=lambda s: s.count, default=None)

    def _status(self) -> str:
        """`step 120 of 900 · 52 steps/s · 2 s · 15 s left`, and values without a line: ` · lr 0.01`."""
        longest = self._longest()
        if longest is None:
            return ""
        n, (_, (step, _, now)) = longest.count, longest.ends()  # Python floats: faster than NumPy's
        ended, state = self._ended or clock(), getattr(self.control, "state", "running")
        spent, paused = ended - self._started, self._paused(self._started, ended)
        # The number of values is not the number of steps: a loop may record only every hundredth, or continue at step
        # 1000 of an earlier run.
        each = longest.stride()
        rate = n * each / max(spent - paused, 1e-9)
        if not self._finished:  # the current rate, if the run is long enough
            first = min(int(longest.seconds.searchsorted(now - RATE_SECONDS)), n - 1)
            before, _, since = longest.table[:, first].tolist()
            idle = self._paused(since + longest.zero, now + longest.zero)
            if now - since - idle > RATE_SECONDS / 2:
                rate = ((n - 1 - first) * each if longest.decreases else step - before) / (now - since - idle)
        values = {"step": number(step), "total": number(self.total or 0)}
        parts = [say("step {step} of {total}" if self.total else "step {step}", **values)]
        runs = self._runs()  # each has its own speed, in the legend; a common one would be wrong for all
        parts += [say("{n} runs", n=len(runs)) if len(runs) > 1 else per_second(rate), duration(spent)]
        parts += [f"{duration(paused)} of pauses"] if paused >= 0.05 and state != "paused" else []
        if self.total and not self._finished and rate > 0 and state != "paused":
            done = n * each if longest.decreases else step
            parts.append(say("{time} left", time=duration(max(self.total - done, 0) / rate)))
        lines = {s.name for s in line_series(list(self._series.values()), self.panels)}
        others = [s for s in self._series.values() if s.name not in lines]
        parts += common_values(others) if len(runs) > 1 else [s.now() for s in others]
        kept = self.paths if len(self.paths) < 2 else [f"{len(self.paths)} tables in {self.paths[0].parent}"]
        parts += [clean(str(path)) for path in kept] + [self._left_out] * bool(self._left_out)
        return " · ".join(parts + ([state] if state == "paused" else []))

    def _runs(self) -> dict[str, dict[str, str]]:
        """Prefix of each source -> its speed, its time and values without a line, by title, if there are several."""
        longest: dict[str, Series] = {}
        series = list(self._series.values())
        for s in series:
            if s.count > 1 and s.prefix and s.count > getattr(longest.get(s.prefix), "count", 0):
                longest[s.prefix] = s
        if len({s.zero for s in longest.values()}) < 2 and len(self.configs) < 3:  # names with a space, not sources
            return {}
        lines = {s.name for s in line_series(series, self.panels)}
        others = [s for s in series if s.count and s.name not in lines]
        common = common_values(others)
        runs = {}
        for prefix, s in longest.items():
            took, steps = s.ends()[1][2], s.stride() * s.count
            moving = took - self._paused(s.zero, s.zero + took)
            rate = per_second(steps / moving).removesuffix(" steps/s") if moving > 0 and steps > 0 else "-"
            values = {one.word: number(one.values[-1]) for one in others if one.prefix == prefix and not common}
            runs[prefix] = {"steps/s": rate, "time": duration(took)} | {
                word: value for word, value in values.items() if f"{word} {value}" not in prefix
            }
        return runs

    def line(self) -> str:
        """The state of the run in one line: `step 120  loss 0.0512  accuracy 0.991`."""
        with self._lock:
            self._take()
            last = max((s.steps[-1] for s in self._series.values() if s.count), default=None)
            total = f" of {number(self.total)}" if self.total else ""
            parts = [] if last is None else [f"step {number(last)}{total}"]
            every = list(self._series.values())
            parts += [
                s.now(latest_step(every, s))
                + (f" ({': '.join(series_warnings(every, s))})" if s.first_nonfinite else "")
                for s in every
            ]
        return "  ".join(parts) or "no values yet"

    def text(self) -> str:
        """The whole run in words: the last and the best value of each series."""
        with self._lock:
            self._take()
            empty = not (self._note or self._finished or self._series)
            note = self._source.note() if self._source is not None and empty else self._note
            kept = f"kept in {', '.join(map(str, self.paths))}" if self.paths else ""
            return describe(self._averaged(), "; ".join(filter(None, [note, kept])))

    def __repr__(self) -> str:
        return clean(f"LossCurve({self.text()})")

    def svg(self) -> str:
        """The curve as a static picture."""
        from .curve_svg import draw

        with self._lock:
            self._take()
            look: dict[str, Any] = {"x": self.x, "log": self.log, "before": self._place.before, "gaps": self._gaps()}
            look["runs"] = self._runs()
            series, known = self._averaged(), panels(list(self._series.values()), self.panels)
            series += [s for s in self._others if s.word in known]
            return draw(series, self._note, self.panels, self._status(), self.marks(), **look)

    def bundle(self) -> dict[str, str]:
        """The static picture in all MIME types; once the curve has ended, a page with scripts makes it a canvas."""
        from minflow.views.html.page import picture_bundle

        try:
            bundle = picture_bundle(self.svg(), f"Curves: {self.text()}", repr(self))
            return {**bundle, "text/html": live_curve.still(self, bundle["text/html"])} if self._finished else bundle
        except Exception as error:  # a failed display must not break the cell
            return {"text/plain": f"{self!r}\n(no picture: {type(error).__name__}: {error})"}

    def _ipython_display_(self) -> None:
        """Display for the last line of a cell. A curve that is already shown in that cell is not repeated."""
        if self._front is not None and self._cell[1] and self._cell == notebook.running_cell():
            return
        if self._front is not None and not self._finished:
            self.explore()
            return
        notebook.display(self.bundle(), raw=True)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        if self._front is not None and not self._finished:  # it is already on the page, live
            return {"text/plain": f"{self!r}, live; .explore() shows it here too"}
        return self.bundle()


def common_values(series: list[Series]) -> list[str]:
    """`lr 0.01` if that is the value of all runs; else nothing."""
    values = {f"{clean(s.word)} {number(s.values[-1])}" for s in series if s.count}
    return sorted(values) if len(values) == 1 else []


def per_second(rate: float) -> str:
    """Format a rate: `52.1 steps/s`, `0.03 steps/s`."""
    return f"{number(round(rate, 1) if rate >= 10 else float(f'{rate:.2g}'))} steps/s"


def duration(seconds: float) -> str:
    """Format a duration: `0.8 s`, `47 s`, `3 min 20 s`, `2 h 5 min`."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{int(seconds) // 60} min {int(seconds) % 60} s"
    return f"{minutes // 60} h {minutes % 60} min"
