"""What is remembered of each step, and of each thread that submits steps: when it came back, and when it only waited.

Knows nothing of queues: `stream.py` fills these in. Read next: `../inspect/timeline.py`, which makes pictures of them.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import deque
from dataclasses import dataclass

WAITS = 100  # that are remembered between two submissions of a thread
clock = time.perf_counter


@dataclass(slots=True)
class Record:
    """What the timeline knows of a step.

    name: of the job.  number: the number of this call of that job, from 1.  state: "queued", "running", "done",
    "failed" or "cancelled".  submitted, started, ended, called, finished: `time.perf_counter` seconds: handed in; its
    work starts and ends; its callback starts and ends (None where that has not happened).  blocked: seconds that the
    caller waited for room.
    caller: a number for the thread that submitted it.  since: when that thread had submitted the step before (None:
    there was none, or it was in an earlier cell).  waits: the seconds (from, to) in which it waited for results since
    then.  got: when that thread had waited for this step, and with that had its result.  others: seconds that other
    jobs of the loop took between the step before and this one, of loading and of work; the timeline fills it in.
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


class Callers(threading.local):
    """Of the thread that looks: its number, when it last submitted, and when it has waited since."""

    numbers = itertools.count(1)

    def __init__(self) -> None:
        self.number = next(self.numbers)
        self.since: float | None = None
        self.waits: deque[tuple[float, float]] = deque(maxlen=WAITS)

    def waited(self, start: float) -> None:
        """It has waited from `start` until now."""
        self.waits.append((start, clock()))

    def got(self, record: Record) -> None:
        """It has waited for the end of this step."""
        if record.caller == self.number and record.got is None:
            record.got = clock()

    def submits(self, record: Record, start: float, now: float) -> None:
        """It asked at `start` to submit the step, and there is room `now`. Waits for room are in `blocked`."""
        record.submitted, record.blocked, record.caller, record.since = now, now - start, self.number, self.since
        record.waits = tuple([wait for wait in self.waits if wait[0] < start])
        self.since = now
        self.waits.clear()

    def forget(self) -> None:
        """A new cell: what was between its first step and the cell before was a user who thought."""
        self.since = None
        self.waits.clear()
