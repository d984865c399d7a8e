"""The threads of a step: the calls of the plan, and the chunks of work that each thread took.

Read next: `profiling.py`, which records them; `../../../views/renderers/threads.py`, the picture.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from ....core.base.errors import GraphError
from ....core.source_location import fail
from ....platforms.compiled.runtime import threads as machine
from ....views.records.reports import ThreadBar, Threads
from ....views.text.reports import Report
from .reports import require_compiled


def threads_report(graph: Any) -> Report:
    compiled = require_compiled(graph)
    if compiled.recorded is None:
        what = f"{graph.name}: no call has been watched yet"
        fail(GraphError, what, "graph.profile(), then call the graph", graph=graph.name)
    caller, calls, chunks, _ = compiled.recorded
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
    at_once = min(len(number), machine.number())
    return Report(Threads(title, len(number), at_once, seconds, tuple(bars), compiled.timing))


def uncovered(start: float, end: float, covered: Iterable[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """The parts of [start, end] outside all intervals: the caller works alone then, in kernels that are not split."""
    for first, last in sorted(covered):
        if first > start:
            yield start, first
        start = max(start, last)
    if end > start:
        yield start, end
