"""Records of each step, and of each thread that submits steps: when it submitted and when it waited.

Independent of queues: `stream.py` fills these in. Read next: `../../introspection/job/timeline.py`, which draws them.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import deque
from dataclasses import dataclass

MAX_WAITS = 100  # waits recorded between two submissions of a thread
clock = time.perf_counter


@dataclass(slots=True)
class Record:
    """Times of a step, in seconds of `time.perf_counter`; None if it has not happened.

    name: name of the job.  number: index of this call of the job, from 1.  in_run: that in its run of `flow.start`;
    None for other calls.  state: "queued", "running", "done", "failed"
    or "cancelled".  submitted; started, ended: its work; called, finished: its callback.  blocked: how long the caller
    waited for a free slot in the queue.
    caller: index of the thread that submitted it.  since: when that thread submitted its previous step (None: there
    was none, or it was in an earlier cell).  waits: intervals (from, to) since then in which it waited for results.
    got: when that thread received the result of this step, after waiting for it.  gpu: when the GPU computed it; None
    on the CPU.  others: (loading, work) of other jobs
    in the loop between the previous step and this one; filled in by the timeline.
    """

    name: str
    number: int
    submitted: float = 0.0
    blocked: float = 0.0
    state: str = "queued"
    started: float | None = None
    ended: float | None = None
    called: float | None = None
    finished: float | None = None
    caller: int = 0
    since: float | None = None
    waits: tuple[tuple[float, float], ...] = ()
    got: float | None = None
    others: tuple[float, float] = (0.0, 0.0)
    gpu: tuple[float, float] | None = None
    in_run: int | None = None


class CallerState(threading.local):
    """Per-thread state of the calling thread: its number, when it last submitted, and when it has waited since."""

    numbers = itertools.count(1)

    def __init__(self) -> None:
        self.number = next(self.numbers)
        self.since: float | None = None
        self.waits: deque[tuple[float, float]] = deque(maxlen=MAX_WAITS)

    def record_wait(self, start: float) -> None:
        """Record a wait from `start` until now."""
        self.waits.append((start, clock()))

    def record_result(self, record: Record) -> None:
        """Record that the caller has waited for the end of this step."""
        if record.caller == self.number and record.got is None:
            record.got = clock()

    def record_submission(self, record: Record, start: float, now: float) -> None:
        """Record a submission requested at `start` and granted at `now`. The wait for a free slot is in `blocked`."""
        record.submitted, record.blocked, record.caller, record.since = now, now - start, self.number, self.since
        record.waits = tuple([wait for wait in self.waits if wait[0] < start])
        self.since = now
        self.waits.clear()

    def forget(self) -> None:
        """Reset for a new cell: the time between two cells is not loading time."""
        self.since = None
        self.waits.clear()
