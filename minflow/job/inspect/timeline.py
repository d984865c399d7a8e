"""flow.timeline: who was busy when in the last steps of a job, from the records of the stream.

    sync = flow.timeline(steps=20)          # after a loop with a job that waits
    sync.compare(flow.timeline(steps=20))   # after the same loop with a job that does not

Read next: `../views/timeline/record.py`, what it says and draws; `../queue/records.py`, what is remembered of a step.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...core.files.atomic import write
from ...core.base.errors import JobError
from ...core.source_location import here
from ...views.html.page import picture_bundle
from ...views.timeline.record import StepTimes, TimelinePair, TimelineRecord, pair, pair_verdict, trimmed, verdict
from ...views.timeline.svg import pair_svg, timeline_svg
from ...views.timeline.text import pair_text, timeline_text
from ..function import Job
from ..queue.records import WAITS, Record
from ..run import Run
from ..signature import described
from ..queue.stream import STREAM, clock


class Shown:
    """Shows itself: a picture in a notebook, text in a terminal. record: the plain data."""

    record: Any
    text = property(lambda self: timeline_text(self.record), doc="The lanes and numbers as text.")
    svg = property(lambda self: timeline_svg(self.record), doc="The picture.")
    verdict = property(lambda self: verdict(self.record), doc="What one learns from it, in a sentence or two.")

    def save(self, path: str | Path) -> None:
        """Write the picture (.svg) or the text (.txt) to a file. Raises FileError if it cannot be written."""
        path = Path(path)
        if path.suffix not in (".svg", ".txt"):
            what = f"a timeline cannot be saved as {path.name!r}"
            raise JobError(what, where=here(), hint="a name that ends in .svg or .txt")
        write(path, self.svg if path.suffix == ".svg" else self.text + "\n", "save", here)

    def __repr__(self) -> str:
        return self.text

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        try:
            return picture_bundle(self.svg, f"{self.text.splitlines()[0]}; {self.verdict}", self.text, fold_text=True)
        except Exception as error:  # showing a thing must not break a cell
            return {"text/plain": f"<{type(self).__name__}>\n(no picture: {type(error).__name__}: {error})"}


class Timeline(Shown):
    """Steps of one job. load, compute, callback, step: means in seconds; best: the formula; overlap: what ran at
    once."""

    def __init__(self, record: TimelineRecord):
        self.record = record

    mode = property(lambda self: self.record.mode, doc='"sync" or "async"; "" for a single step.')
    load = property(
        lambda self: self.record.load, doc="Seconds that the caller needs for a batch; waiting is not counted."
    )
    compute = property(lambda self: self.record.compute, doc="Seconds that the worker computes a step.")
    callback = property(lambda self: self.record.callback, doc="Seconds of a callback; it runs on the worker too.")
    step = property(lambda self: self.record.step, doc="Seconds from the end of a step to the end of the next.")
    best = property(
        lambda self: self.record.best, doc="(load + work) / max(load, work), where work is compute and callback."
    )
    overlap = property(lambda self: self.record.overlap, doc="Seconds of loading and computing in one second.")

    def __len__(self) -> int:
        return len(self.record.steps)

    def compare(self, other: Timeline) -> Comparison:
        """Both on the same seconds, sync above async, with the gain that was possible and the one that was measured."""
        if not isinstance(other, Timeline):
            hint = "flow.timeline(sync_job).compare(flow.timeline(async_job))"
            raise JobError("compare takes another timeline", values={"got": described(other)}, where=here(), hint=hint)
        return Comparison(pair(self.record, other.record))


class Comparison(Shown):
    """Two timelines. first, second: sync and async.  best: what the formula promises; gain: what was measured."""

    def __init__(self, record: TimelinePair):
        self.record = record

    first = property(lambda self: Timeline(self.record.first))
    second = property(lambda self: Timeline(self.record.second))
    best = property(lambda self: self.record.first.best)
    gain = property(lambda self: self.record.gain)
    text = property(lambda self: pair_text(self.record))
    svg = property(lambda self: pair_svg(self.record))
    verdict = property(lambda self: pair_verdict(self.record))


def timeline(job: Job | Run | str | None = None, steps: int | range | None = None) -> Timeline:
    """Who was busy when: loader, queue, compute and callback of the last steps of a job.

    job: a job function, its name, or the run of `flow.start`; default: the job whose step ran last.  steps: how many,
    the last ones, or a range of their numbers; default: those of the last loop. A picture has at most 33 steps.
    The loader is the time in which the thread that calls the job neither waits nor calls it. Raises JobError if no step
    has run.
    """
    if not isinstance(job, Job | Run | str | None):
        what = "flow.timeline takes a job function, its name or a run"
        raise JobError(what, values={"got": described(job)}, where=here(), hint="flow.timeline(train_job)")
    if not isinstance(steps, int | range | None) or isinstance(steps, bool) or (isinstance(steps, int) and steps < 1):
        what = "steps is a number above 0, or a range of step numbers"
        raise JobError(what, values={"got": repr(steps)[:60]}, where=here(), hint="steps=20, or steps=range(100, 120)")
    records = known(job, STREAM.history())
    selected = (
        list(records) if isinstance(steps, int) or isinstance(job, Run) else loops(records)[-1] if records else []
    )
    if isinstance(steps, range):
        selected = [record for record in selected if record.number in steps]
    elif steps is not None:
        selected = selected[-steps:]
    if not selected:
        what = "no step" + (f" of {name_of(job)}" if job is not None else "") + " is remembered"
        hint = "call the job first; the last 10,000 steps are remembered"
        values = {"asked for": f"steps {steps}"} if isinstance(steps, range) else None
        raise JobError(what, where=here(), values=values, hint=hint)
    return Timeline(record_of(selected, asked=steps is not None))


def known(job: Job | Run | str | None, records: Sequence[Record]) -> list[Record]:
    """The records of a job, a run, or the job whose step ran last.

    Where a loop calls several jobs, each remembers the waits since the one before: those between two steps of the same
    job go with the second of them, as that is when its loop waited. So does what the other jobs took meanwhile.
    """
    name = name_of(job) if job is not None else records[-1].name if records else ""
    # between: waits and others of each thread, since its last step that is asked for
    completed, between, now = [], {}, clock()
    for r in records:
        waits, others = between.pop(r.caller, ((), (0.0, 0.0))) if r.since is not None else ((), (0.0, 0.0))
        if r.name != name or (isinstance(job, Run) and r.caller != job.caller):
            step = times(r, 0.0, now)
            between[r.caller] = ((*waits, *step.waits)[-WAITS:], (others[0] + step.load, others[1] + step.work))
        else:
            completed.append(replace(r, waits=(*waits, *r.waits), others=others) if waits or any(others) else r)
    return completed


def name_of(job: Job | Run | str) -> str:
    return job if isinstance(job, str) else job.job.name if isinstance(job, Run) else job.name


def loops(records: Iterable[Record]) -> list[list[Record]]:
    """Records of a job, parted where a loop ends: another thread or cell, or a session that begins anew."""
    groups: list[list[Record]] = []
    for record in records:
        last = groups[-1][-1] if groups else None
        if last is None or record.caller != last.caller or record.since is None or record.number <= last.number:
            groups.append([])
        groups[-1].append(record)
    return groups


def record_of(
    records: list[Record], asked: bool = False, since: float = 0.0, now: float | None = None
) -> TimelineRecord:
    """Records as what the views draw. since: nothing begins before it.  now: where the bars of what still runs end."""
    name = records[-1].name if records else ""
    now = clock() if now is None else now
    return TimelineRecord(name, tuple(trimmed([times(r, since, now) for r in records])), cores(), asked)


def times(r: Record, since: float, now: float) -> StepTimes:
    asked = r.submitted - r.blocked  # when the caller came with it
    begun = max(asked if r.since is None else r.since, since)
    waits = [(max(a, since), min(b, asked)) for a, b in r.waits if b > since and a < asked]
    loads, at = [], begun
    for a, b in sorted(waits):
        loads.append((at, a))
        at = max(at, b)
    loads.append((at, asked))
    waits += [(asked, r.submitted)] if r.blocked > 0 else []
    working = (r.started, r.ended if r.ended is not None else now) if r.started is not None else None
    calling = (r.called, r.finished if r.finished is not None else now) if r.called is not None else None
    return StepTimes(
        r.number,
        tuple([x for x in loads if x[1] > x[0]]),
        tuple(waits),
        (r.submitted, r.started or now),
        working,
        calling,
        r.state == "failed",
        r.got,
        r.others,
    )


def cores() -> int:
    """That this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
