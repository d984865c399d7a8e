"""watch_timeline: when each thread is busy, drawn while jobs run and kept as a picture when they end.

    with watch_timeline():          # all jobs in the block; a sync and an async loop end side by side
        for x, y in loader: job(x, y)
    watch_timeline(run)             # of flow.start: the cell returns, the picture comes at the end
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
from minflow.introspection.job.timeline import Timeline, TimelineComparison, record_of, records_for, split_into_loops
from minflow.job.function import Job
from minflow.job.queue.stream import current_stream
from minflow.job.run import Run
from minflow.views.text.listing import clean
from minflow.views.timeline.record import TimelineRecord, bars, formula_text, ms, ordered_pair, time_range
from minflow.views.timeline.svg import live_svg

from .. import frontends
from ..update_thread import EndGuard, UpdateThread

RECENT_STEPS = 60  # steps in the live statistics
SEARCHED_STEPS = 600  # latest steps of all jobs among which they are searched
NOT_WATCHING_TEXT = (
    "not watching yet: `with watch_timeline(): ...` follows the jobs of a block; "
    "`live = watch_timeline(); live.start()` those from then on, until `live.stop()`"
)
WATCHED_TIMELINES: set[LiveTimeline] = set()  # keeps timelines of runs alive


class LiveTimeline(BundleDisplay):
    """Result of `watch_timeline`. timeline: a Timeline, a TimelineComparison of two loops, or None
    before the first step.
    """

    def __init__(self, job: Job | Run | str | None = None):
        if not isinstance(job, Job | Run | str | None):
            hint = "with watch_timeline(): ... watches every job in the block"
            values = {"got": type(job).__name__}
            raise JobError("watch_timeline takes a job function, its name or a run", values=values, hint=hint)
        self.job, self.begun = job, time.perf_counter()
        self.seen: Any = None
        self.front: Any = None
        self.update_thread: Any = None
        self.note, self.cell = "", ("", "")
        self.ending, self.finished = EndGuard(), False
        self.seconds = 0.0  # width of the live picture, which changes calmly
        if isinstance(job, Run):
            self.begun = job.started
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
        if not isinstance(self.job, Run) and threading.current_thread() is not current_stream().thread:
            current_stream().wait_until_idle(60.0)

    def __enter__(self) -> LiveTimeline:
        if not isinstance(self.job, Run):
            if self.finished:
                hint = "a new one for each block: with watch_timeline() as live"
                raise JobError("This timeline has ended", values={"timeline": self.line()[:60]}, hint=hint)
            self.begun = time.perf_counter()
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: Any) -> None:
        """Wait for the steps in flight, so that they are in the picture; not after an error."""
        try:
            if kind is None and isinstance(self.job, Run):
                self.job.finished.wait()
            elif kind is None:
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

    def records(self) -> list:
        """The records of all jobs since the block began."""
        return [r for r in current_stream().history() if r.submitted >= self.begun]

    @property
    def timeline(self) -> Timeline | TimelineComparison | None:
        """The whole timeline: a sync and an async loop side by side, otherwise the last loop."""
        records = self.records()
        runs = []
        for name in dict.fromkeys([r.name for r in records]) if self.job is None else [self.job]:
            runs += split_into_loops(records_for(name, records))
        if not runs:
            return None
        runs.sort(key=lambda loop: loop[-1].submitted)
        last = [record_of(loop, since=self.begun) for loop in runs[-2:]]
        if len(last) == 2 and {one.mode for one in last} == {"sync", "async"}:
            return TimelineComparison(ordered_pair(*last))
        return Timeline(last[-1])

    def now(self):
        """The latest steps of the job that ran last, or None."""
        recent = [r for r in current_stream().history()[-SEARCHED_STEPS:] if r.submitted >= self.begun]
        steps = records_for(self.job, recent)[-RECENT_STEPS:]
        return record_of(steps, since=self.begun) if steps else None

    def _take_new_values(self) -> bool | None:
        """True if there is something new; None if its run, and therefore the timeline, has ended."""
        if isinstance(self.job, Run) and self.job.done():
            self.finish("" if self.job.error is None else f"stopped by {type(self.job.error).__name__}")
            return None
        last = current_stream().records[-1] if current_stream().records else None
        state, before = last and (last.caller, last.number, last.submitted, last.ended, last.finished), self.seen
        self.seen = state
        return state != before

    def _update(self) -> None:
        self.front.update(self)

    def _cpu_share(self) -> float:
        return 0.01  # share of a processor: some eight pictures per second

    def line(self) -> str:
        """The current state in one line."""
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
            raise NotImplementedError
        if not new and not (self.cell[1] and self.cell == notebook.running_cell()):
            self.front.show(self)

    def encode(self) -> bytes:
        """The current picture, for the front end."""
        record = self.now() or TimelineRecord("waiting for the first step", ())
        status, formula = "call a job, here or in another cell: its steps are drawn here", ""
        if record.ended:
            status = f"step {record.steps[-1].number:,} · a step every {ms(record.step)}"
            formula = f"async at best: {formula_text(record)} times as fast as sync"
        start, stop = time_range(bars(record.shown))
        calm = 0.97 * self.seconds if self.seconds < 2 * (stop - start) else 0.0
        self.seconds = max(stop - start, calm, 1e-9)
        return live_svg(record, status, formula, self.seconds).encode("utf-8", "replace")


def watch_timeline(job: Job | Run | str | None = None) -> LiveTimeline:
    """Follow the lanes of jobs: loader, queue, compute, callback. `with watch_timeline() as live: ...`, then
    `live.timeline`.

    job: a job function or its name; default: every job in the block. The end of the block waits for the steps in flight
    and leaves a picture. A run of `flow.start` needs no block: it starts at once and ends with the run. Without either,
    showing it in the last line of a cell starts it, and it follows the jobs of every cell until `stop()`, or until it
    is garbage collected. Elsewhere use `start()` and `stop()`.
    """
    return LiveTimeline(job)


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
