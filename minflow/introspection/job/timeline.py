"""flow.timeline: when each thread was busy in the last steps of a job, from the records of the stream.

    sync = flow.timeline(steps=20)          # after a loop with a job that waits
    sync.compare(flow.timeline(steps=20))   # after the same loop with a job that does not

Read next: `../../views/timeline/record.py`, which draws it; `../../job/queue/records.py`, the record of a step.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...core.base.display import BundleDisplay
from ...core.base.errors import JobError
from ...core.files.atomic import write
from ...core.source_location import here
from ...job.function import Job
from ...job.queue.records import MAX_WAITS, Record
from ...job.queue.stream import clock, current_stream
from ...job.run import Run
from ...job.signature import describe
from ...nn.graph import Graph
from ...views.html.page import picture_bundle
from ...views.timeline.record import (
    StepTimes,
    TimelinePair,
    TimelineRecord,
    ordered_pair,
    pair_verdict,
    trim_first_load,
    verdict,
)
from ...views.timeline.svg import pair_svg, timeline_svg
from ...views.timeline.text import pair_text, timeline_text


class Displayable(BundleDisplay):
    """Base class of objects that display as a picture in a notebook and as text in a terminal. record: the plain
    data.
    """

    record: Any
    text = property(lambda self: timeline_text(self.record), doc="Lanes and numbers as text.")
    svg = property(lambda self: timeline_svg(self.record), doc="The picture.")
    verdict = property(lambda self: verdict(self.record), doc="Conclusion in one or two sentences.")

    def save(self, path: str | Path) -> None:
        """Write the picture (.svg) or the text (.txt) to a file. Raises FileError if it cannot be written."""
        path = Path(path)
        if path.suffix not in (".svg", ".txt"):
            what = f"a timeline cannot be saved as {path.name!r}"
            raise JobError(what, where=here(), hint="a name that ends in .svg or .txt")
        write(path, self.svg if path.suffix == ".svg" else self.text + "\n", "save", here)

    def __repr__(self) -> str:
        return self.text

    def bundle(self, note: str = "") -> dict[str, str]:
        """MIME type -> data. note: words after the conclusion."""
        text = "\n".join(filter(None, (self.text, note)))
        alt = f"{self.text.splitlines()[0]}; {self.verdict}" + (f" ({note})" if note else "")
        return picture_bundle(self.svg, alt, text, fold_text=True, live=True)


class Timeline(Displayable):
    """Steps of one job. load, compute, callback, step: means in seconds.  best: the possible gain.  overlap:
    concurrency.
    """

    def __init__(self, record: TimelineRecord):
        self.record = record

    mode = property(lambda self: self.record.mode, doc='"sync" or "async"; "" for a single step.')
    load = property(lambda self: self.record.load, doc="Seconds in which the caller prepares a batch, without waiting.")
    compute = property(lambda self: self.record.compute, doc="Seconds in which the worker computes a step.")
    callback = property(lambda self: self.record.callback, doc="Seconds of a callback, which also runs on the worker.")
    step = property(lambda self: self.record.step, doc="Seconds from the end of one step to the end of the next.")
    best = property(
        lambda self: self.record.best, doc="(load + work) / max(load, work), where work = compute + callback."
    )
    overlap = property(lambda self: self.record.overlap, doc="Seconds of loading and computing per second.")

    def __len__(self) -> int:
        return len(self.record.steps)

    def compare(self, other: Timeline) -> TimelineComparison:
        """Draw both on the same time axis, sync above async, with the possible and the measured gain."""
        if not isinstance(other, Timeline):
            hint = "flow.timeline(sync_job).compare(flow.timeline(async_job))"
            what = "Timeline.compare: other must be a timeline"
            raise JobError(what, values={"got": describe(other)}, where=here(), hint=hint)
        return TimelineComparison(ordered_pair(self.record, other.record))


class TimelineComparison(Displayable):
    """Two timelines. first, second: sync and async.  best: the gain that the formula predicts.  gain: the measured
    one.
    """

    def __init__(self, record: TimelinePair):
        self.record = record

    first = property(lambda self: Timeline(self.record.first))
    second = property(lambda self: Timeline(self.record.second))
    best = property(lambda self: self.record.first.best)
    gain = property(lambda self: self.record.gain)
    text = property(lambda self: pair_text(self.record))
    svg = property(lambda self: pair_svg(self.record))
    verdict = property(lambda self: pair_verdict(self.record))


def timeline(job: Job | Graph | Run | str | None = None, steps: int | range | None = None) -> Timeline:
    """Timeline of the last steps of a job: loader, queue, compute and callback.

    job: a job function, a graph that was submitted, its name, or the run of `flow.start`; default: the job whose step
    ran last.  steps: the number
    of last steps, or a range of step numbers; default: the steps of the last loop. A picture has at most 33 steps.
    Loader time is the time in which the thread that calls the job neither waits for it nor calls it. Raises JobError if
    no step has run.
    """
    if not isinstance(job, Job | Graph | Run | str | None):
        what = "flow.timeline: job must be a job function, a graph, its name or a run"
        raise JobError(what, values={"got": describe(job)}, where=here(), hint="flow.timeline(train_job)")
    if not isinstance(steps, int | range | None) or isinstance(steps, bool) or (isinstance(steps, int) and steps < 1):
        what = "steps must be an integer above 0 or a range of step numbers"
        raise JobError(what, values={"got": repr(steps)[:60]}, where=here(), hint="steps=20, or steps=range(100, 120)")
    stream = job.stream if isinstance(job, Run) else current_stream()
    records = records_for(job, stream.history())
    selected = (
        list(records)
        if isinstance(steps, int) or isinstance(job, Run)
        else split_into_loops(records)[-1]
        if records
        else []
    )
    if isinstance(steps, range):
        selected = [record for record in selected if record.number in steps]
    elif steps is not None:
        selected = selected[-steps:]
    if not selected:
        what = "no step" + (f" of {name_of(job)}" if job is not None else "") + " is recorded"
        hint = "call the job first; the last 10,000 steps are recorded"
        values = {"asked for": f"steps {steps}"} if isinstance(steps, range) else None
        raise JobError(what, where=here(), values=values, hint=hint)
    return Timeline(record_of(selected, asked=steps is not None))


def records_for(job: Job | Graph | Run | str | None, records: Sequence[Record]) -> list[Record]:
    """The records of a job, of a run, or of the job whose step ran last.

    The steps of a run are numbered from 1, as those of its curve.
    If a loop calls several jobs, each record has only the waits since the call before it. So all waits between two
    steps of the same job are added to the second step, as is the time that other jobs took.
    """
    name = name_of(job) if job is not None else records[-1].name if records else ""
    # between: thread -> waits and time of other jobs since its last selected step
    completed, between, now = [], {}, clock()
    for r in records:
        waits, others = between.pop(r.caller, ((), (0.0, 0.0))) if r.since is not None else ((), (0.0, 0.0))
        if r.name != name or (isinstance(job, Run) and r.caller != job.caller):
            step = step_times(r, 0.0, now)
            between[r.caller] = ((*waits, *step.waits)[-MAX_WAITS:], (others[0] + step.load, others[1] + step.work))
        else:
            completed.append(replace(r, waits=(*waits, *r.waits), others=others) if waits or any(others) else r)
    return [replace(r, number=r.in_run or r.number) for r in completed] if isinstance(job, Run) else completed


def name_of(job: Job | Graph | Run | str) -> str:
    return job if isinstance(job, str) else job.job.name if isinstance(job, Run) else job.name


def split_into_loops(records: Iterable[Record]) -> list[list[Record]]:
    """Split the records of a job at the ends of loops: at another thread or cell, or a cleared session."""
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
    """Convert records to the data that the views draw. since: no bar begins earlier.  now: the end of the bars of
    unfinished steps.
    """
    name = records[-1].name if records else ""
    now = clock() if now is None else now
    steps = trim_first_load([step_times(r, since, now) for r in records])
    return TimelineRecord(name, tuple(steps), core_count(), asked)


def step_times(r: Record, since: float, now: float) -> StepTimes:
    asked = r.submitted - r.blocked  # when the caller asked to submit it
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
        r.gpu,
    )


def core_count() -> int:
    """Number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
