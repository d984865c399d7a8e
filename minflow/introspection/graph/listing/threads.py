"""The threads of a step: the calls of the plan, and the chunks of work that each thread took.

Read next: `platforms/compiled/runtime/threads.py` and `platforms/compiled/runtime/recorder.py`, which record the
chunks.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ....core.base.errors import GraphError
from ....core.context import current_context
from ....core.source_location import fail
from ....platforms.compiled.runtime import threads as machine
from ....views.records.reports import ThreadBar, Threads
from ....views.text.reports import Report
from .reports import phases_of, require_compiled

CallTime = tuple[str, str, float, float]  # of a call: its name, its phase, start and end


def new_recorder() -> machine.Recorder:
    """A recorder that records tasks too, if compiled kernels are available."""
    if "minflow.platforms.compiled.runtime.tasks" not in sys.modules:
        return machine.Recorder()
    from ....platforms.compiled.runtime.recorder import StepRecorder

    return StepRecorder()


@contextmanager
def recording(compiled: Any) -> Iterator[None]:
    """Record in `compiled.recorded` the start and end of each call in the block, and the chunks of each thread."""
    call_times: list[CallTime] = []
    clock = time.perf_counter

    def timed(call: Callable, name: str, phase: str) -> Callable:
        def run() -> None:
            start = clock()
            call()
            call_times.append((name, phase, start, clock()))

        return run

    watch = new_recorder()
    with current_context().plan_lock:
        plans = [part.plan for part in compiled.parts]
        before = [plan.calls for plan in plans]
        machine.RECORDERS.append(watch)
        try:
            for part in compiled.parts:
                phases = phases_of(part.graph.nodes)
                part.plan.calls = [
                    timed(call, part.names[node], phases[node]) for call, node in zip(part.plan.calls, part.plan.nodes)
                ]
            yield
            compiled.recorded = threading.get_ident(), call_times, sorted(watch.notes, key=lambda note: note[2])
        finally:
            machine.RECORDERS.remove(watch)
            for plan, calls in zip(plans, before):
                plan.calls = calls


def threads_report(graph: Any) -> Report:
    recorded = require_compiled(graph).recorded
    if recorded is None:
        what = f"{graph.name}: no call has been watched yet"
        fail(GraphError, what, "graph.profile(), then call the graph", graph=graph.name)
    caller, calls, chunks = recorded
    begun = calls[0][2] if calls else 0.0
    number = {caller: 0}
    bars, rest = [], deque(chunks)
    for name, phase, start, end in calls:
        own = []
        while rest and rest[0][2] < end:
            own.append(rest.popleft())
        work = [(number.setdefault(thread, len(number)), first, last) for thread, _, first, last in own]
        work += [(0, first, last) for first, last in uncovered(start, end, [note[1:] for note in work])]
        bars.append(ThreadBar(-1, name, phase, start - begun, end - begun))
        bars += [
            ThreadBar(thread, name, phase, first - begun, last - begun)
            for thread, first, last in sorted(work, key=lambda bar: bar[1])
        ]
    seconds = calls[-1][3] - begun if calls else 0.0
    title = f"{graph.name}: threads of one step"
    return Report(Threads(title, len(number), min(len(number), machine.number()), seconds, tuple(bars)))


def uncovered(start: float, end: float, covered: Iterable[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """The parts of [start, end] outside all intervals: the caller works alone then, in kernels that are not split."""
    for first, last in sorted(covered):
        if first > start:
            yield start, first
        start = max(start, last)
    if end > start:
        yield start, end
