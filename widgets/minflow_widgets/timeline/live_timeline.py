"""watch_timeline: when each thread is busy, drawn while jobs run and kept as a picture when they end.

    with watch_timeline():          # all jobs in the block; a sync and an async loop end side by side
        for x, y in loader: job(x, y)
    watch_timeline(run)             # of flow.start: the cell returns, the picture comes at the end
    watch_timeline(*runs)           # of two runs: their lanes on one clock, with the gain so far
    live = watch_timeline(); live   # once shown, it follows all jobs of all cells until live.stop()

It only reads the records of the stream, at most ten times per second; jobs are not aware of it.
Read next: `minflow/introspection/job/timeline.py`; `../frontends.py`, the front ends that can show it.
"""

from __future__ import annotations

import functools
import threading
import time
from typing import Any

from minflow.core.base.display import BundleDisplay
from minflow.core.base.errors import JobError
from minflow.diagnosis import notebook
from minflow.introspection.job.timeline import (
    Timeline,
    TimelineComparison,
    record_of,
    records_for,
    split_into_loops,
    step_times,
)
from minflow.job.function import Job
from minflow.job.queue.stream import current_stream
from minflow.job.run import Run
from minflow.nn.graph import Graph
from minflow.views.text.listing import clean
from minflow.views.timeline.record import (
    StepTimes,
    TimelineRecord,
    bars,
    formula_text,
    gain_so_far,
    ms,
    ordered_pair,
    time_range,
)
from minflow.views.timeline.svg import live_pair_svg, live_svg

from .. import frontends
from ..update_thread import EndGuard, UpdateThread

RECENT_STEPS = 60  # steps in the live statistics
SEARCHED_STEPS = 600  # latest steps of all jobs among which they are searched
PAIR_STEPS = 6  # steps of the slower of two runs in their live picture
NOT_WATCHING_TEXT = (
    "not watching yet: `with watch_timeline(): ...` follows the jobs of a block; "
    "`live = watch_timeline(); live.start()` those from then on, until `live.stop()`"
)
WATCHED_TIMELINES: set[LiveTimeline] = set()  # keeps timelines of runs alive


class LiveTimeline(BundleDisplay):
    """Result of `watch_timeline`. timeline: a Timeline, a TimelineComparison of two loops, or None
    before the first step.
    """

    def __init__(self, *jobs: Job | Graph | Run | str | None):
        kinds: Any = Job | Graph | Run | str | None if len(jobs) < 2 else Run
        if len(jobs) > 2 or not all([isinstance(job, kinds) for job in jobs]):
            what = "watch_timeline takes a job function, a graph, its name, a run or two runs"
            hint = "with watch_timeline(): ... watches every job in the block; watch_timeline(*runs) two of flow.start"
            values = {"got": ", ".join([type(job).__name__ for job in jobs])}
            raise JobError(what, values=values, hint=hint)
        self.job = jobs[0] if jobs else None
        self.followed = [FollowedRun(job) for job in jobs if isinstance(job, Run)]
        self.begun = min([one.run.started for one in self.followed], default=time.perf_counter())
        self.seen: Any = None
        self.front: Any = None
        self.update_thread: Any = None
        self.note, self.cell = "", ("", "")
        self.ending, self.finished = EndGuard(), False
        self.seconds = 0.0  # width of the live picture, which changes calmly
        if self.followed:
            WATCHED_TIMELINES.add(self)
            self.start()

    def start(self) -> None:
        """Show it and follow the jobs from now on. Called by a block, for a run, and when shown in a notebook."""
        if self.front is None:
            self.cell = notebook.running_cell()
            self.front = frontends.choose_frontend(
                lambda: frontends.Widget(self, widget_class()(data=self.encode())), Lines
            )
            self.update_thread = UpdateThread(self, idle=0.0)

    def stop(self) -> None:
        """Wait for the steps in flight, then leave the picture. A run continues."""
        if not self.finished:
            self.settle()
        self.finish()  # waits if the update thread is just leaving the picture

    def settle(self) -> None:
        if not self.followed and threading.current_thread() is not current_stream().thread:
            current_stream().wait_until_idle(60.0)

    def __enter__(self) -> LiveTimeline:
        if not self.followed:
            if self.finished:
                hint = "a new one for each block: with watch_timeline() as live"
                raise JobError("This timeline has ended", values={"timeline": self.line()[:60]}, hint=hint)
            self.begun = time.perf_counter()
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: Any) -> None:
        """Wait for the steps in flight, so that they are in the picture; not after an error."""
        try:
            for one in self.followed if kind is None else ():
                one.run.finished.wait()
            if kind is None:
                self.settle()
        except BaseException as interrupt:
            kind = type(interrupt)
            raise
        finally:
            with frontends.delay_interrupts():
                self.finish("" if kind is None else f"stopped by {kind.__name__}")

    def finish(self, note: str = "") -> None:
        """Replace the live picture with the static one."""
        if not self.ending.claim(self.update_thread):
            return
        self.finished, self.note = True, note
        try:
            self.start()
            if self.update_thread is not None:  # None if called during its start
                self.update_thread.stop()
            frontends.finish_safely(self.front, self)
        finally:
            self.ending.done.set()
            WATCHED_TIMELINES.discard(self)

    # ---- data --------------------------------------------------------------------------------------------------------

    def records(self, stream: Any) -> list:
        """The records of all jobs of a stream since the block began."""
        return [r for r in stream.history() if r.submitted >= self.begun]

    @property
    def timeline(self) -> Timeline | TimelineComparison | None:
        """The whole timeline: a sync and an async loop, or two runs, side by side; otherwise the last loop."""
        if self.followed:
            loops = [records_for(one.run, self.records(one.run.stream)) for one in self.followed]
        else:
            records, loops = self.records(current_stream()), []
            for name in dict.fromkeys([r.name for r in records]) if self.job is None else [self.job]:
                loops += split_into_loops(records_for(name, records))
            loops.sort(key=lambda loop: loop[-1].submitted)
        last = [record_of(loop, since=self.begun) for loop in loops[-2:] if loop]
        if len(last) == 2 and (self.followed or {one.mode for one in last} == {"sync", "async"}):
            return TimelineComparison(ordered_pair(*last))
        return Timeline(last[-1]) if last else None

    def now(self, job: Any = None):
        """The latest steps of a job, by default of that which ran last, or None."""
        job = self.job if job is None else job
        stream = job.stream if isinstance(job, Run) else current_stream()
        recent = [r for r in stream.history()[-SEARCHED_STEPS:] if r.submitted >= self.begun]
        steps = records_for(job, recent)[-RECENT_STEPS:]
        return record_of(steps, since=self.begun) if steps else None

    def gain(self) -> str:
        """Gain of the second of two runs over the first so far; the async one is the second if the other is sync."""
        for one in self.followed:
            one.take()
        first, second = sorted(self.followed, key=lambda one: one.mode == "async") if self.differ else self.followed
        if not (first.count and second.count):
            return "no two steps of both runs have ended yet"
        (step, load, work), (other, _, _) = first.means(), second.means()
        names = ("sync", "async") if self.differ else (first.run.job.name, second.run.job.name)
        return gain_so_far(names, (step, other), load, work, self.differ)

    differ = property(lambda self: {one.mode for one in self.followed} == {"sync", "async"})

    def _take_new_values(self) -> bool | None:
        """True if there is something new; None if its run, and therefore the timeline, has ended."""
        if self.followed and all([one.run.done() for one in self.followed]):
            errors = [type(one.run.error).__name__ for one in self.followed if one.run.error is not None]
            self.finish(f"stopped by {errors[0]}" if errors else "")
            return None
        last = [s.records[-1] for s in [one.run.stream for one in self.followed] or [current_stream()] if s.records]
        state, before = [(r.caller, r.number, r.submitted, r.ended, r.finished) for r in last], self.seen
        self.seen = state
        return state != before

    def _update(self) -> None:
        self.front.update(self)

    def _cpu_share(self) -> float:
        return 0.01 * max(len(self.followed), 1)  # share of a processor: some eight pictures per second, five of two

    def line(self) -> str:
        """The current state in one line."""
        if len(self.followed) > 1:
            return self.gain()
        record = self.now()
        if record is None or not record.ended:
            return "no step has ended yet"
        step = f"step {record.steps[-1].number:,} · a step every {ms(record.step)}"
        return f"{record.title}: {step} · {formula_text(record)} at best"

    def text(self) -> str:
        timeline = self.timeline
        none = (
            NOT_WATCHING_TEXT
            if self.front is None
            else "no step has run" + ("" if self.finished else " so far: call a job")
        )
        return "\n".join([none if timeline is None else timeline.text, *([self.note] if self.note else [])])

    def __repr__(self) -> str:
        return self.text()

    def bundle(self) -> dict[str, str]:
        """The static picture in all MIME types."""
        timeline = self.timeline
        return {"text/plain": self.text()} if timeline is None else timeline.bundle(self.note)

    def _ipython_display_(self) -> None:
        """Start when shown in a notebook. A timeline that is already shown in the same cell is not repeated."""
        if self.finished or not notebook.in_notebook():
            raise NotImplementedError  # IPython then uses the picture or the text
        new = self.front is None
        self.start()
        if isinstance(self.front, frontends.StaticPicture):  # no widgets here: show the current picture
            if self.followed:  # it comes when they have ended
                return
            raise NotImplementedError
        if not new and not (self.cell[1] and self.cell == notebook.running_cell()):
            self.front.show(self)

    def encode(self) -> bytes:
        """The current picture, for the front end."""
        if len(self.followed) > 1:
            return self.encode_runs()
        record = self.now() or TimelineRecord("waiting for the first step", ())
        status, formula = "call a job, here or in another cell: its steps are drawn here", ""
        if record.ended:
            status = f"step {record.steps[-1].number:,} · a step every {ms(record.step)}"
            formula = f"async at best: {formula_text(record)} times as fast as sync"
        start, stop = time_range(bars(record.shown))
        calm = 0.97 * self.seconds if self.seconds < 2 * (stop - start) else 0.0
        self.seconds = max(stop - start, calm, 1e-9)
        return live_svg(record, status, formula, self.seconds).encode("utf-8", "replace")

    def encode_runs(self) -> bytes:
        """The latest steps of the runs on one clock."""
        records = [self.now(one.run) or TimelineRecord(one.run.job.name, ()) for one in self.followed]
        wide = PAIR_STEPS * max([one.step for one in records])
        stop = max([time_range(bars(one.steps))[1] for one in records])
        if not 0.8 * self.seconds < wide < 1.25 * self.seconds:
            self.seconds = max(wide, 1e-9)
        return live_pair_svg(records, stop - self.seconds, self.seconds, self.gain()).encode("utf-8", "replace")


class FollowedRun:
    """A run, and sums over its steps that have ended so far. mode: "sync" if its job waits, else "async"."""

    def __init__(self, run: Run):
        self.run, self.mode = run, "sync" if run.job.style == "sync" else "async"
        self.last: StepTimes | None = None
        self.count, self.sums = 0, (0.0, 0.0, 0.0)

    def take(self) -> None:
        """Add the steps that have ended since the last call, with callbacks. The first one only starts the clock."""
        done, new = self.last.number if self.last is not None else 0, []
        for record in reversed(self.run.stream.history()):
            if record.caller == self.run.caller and record.number <= done:
                break
            if record.caller == self.run.caller and record.finished is not None:
                new.append(step_times(record, self.run.started, record.finished))
        steps = ([] if self.last is None else [self.last]) + new[::-1]
        if len(steps) > 1:
            piece, n = TimelineRecord(self.run.job.name, tuple(steps)), len(steps) - 1
            a, b, c = self.sums
            self.count, self.sums = self.count + n, (a + n * piece.step, b + n * piece.load, c + n * piece.work)
        self.last = steps[-1] if steps else None

    def means(self) -> tuple[float, ...]:
        """Seconds of a step, of its loading, and of its work on the worker."""
        return tuple([total / self.count for total in self.sums])


def watch_timeline(*jobs: Job | Graph | Run | str | None) -> LiveTimeline:
    """Follow the lanes of jobs: loader, queue, compute, callback. `with watch_timeline() as live: ...`, then
    `live.timeline`.

    jobs: a job function, a graph that is submitted, or its name; default: every job in the block. The end of the block
    waits for the steps in flight and leaves a picture. A run of `flow.start` needs no block: it starts at once and ends
    with the run. Two runs are drawn on one clock, with the gain of the second over the first so far. Without either,
    showing it in the last line of a cell starts it, and it follows the jobs of every cell until `stop()`, or until it
    is garbage collected. Elsewhere use `start()` and `stop()`.
    """
    return LiveTimeline(*jobs)


# ---- front ends ------------------------------------------------------------------------------------------------------


class Lines(frontends.Lines):
    """Text. At the end it writes the lanes, several lines."""

    def finish(self, timeline: LiveTimeline) -> None:
        if self.terminal and self.width:
            self.write("\r" + " " * self.width + "\r")
        self.write("\n".join([clean(line) for line in timeline.text().splitlines()]) + "\n")


@functools.cache
def widget_class():
    """The anywidget class: one trait holds the whole picture, so a reloaded page shows it again."""
    import anywidget
    import traitlets

    class LiveLanes(frontends.RestrictedTraits, anywidget.AnyWidget):
        _esm = frontends.script("timeline/live_timeline.js")
        data = traitlets.Bytes(b"").tag(sync=True)

        def __repr__(self) -> str:  # without the address, so that executed notebooks are reproducible
            return "timeline (live)"

    return LiveLanes
