"""Writes to tensors that job functions capture, ordered with the steps in flight.

A step reads a captured tensor when it runs, on the worker, and has to find it as it was when the step was submitted. A
write by an op waits until the steps that read the storage have ended, their callbacks too (`before_write` in
`core/functionalize.py` asks here). This costs nothing where nothing is written; a copy for each step would cost as much
as the tensors are large. Memory that NumPy shares can be written unseen, so of such a tensor each step takes a copy
when it is submitted (`../build.py: JobTrace.held`). A tensor that gets another storage (`x.data = y`, an attribute that
names a new tensor) needs nothing: a plan holds the storage it was built for.

Read next: `stream.py`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

from ...compiler.executor import INSIDE, held
from ...core.base.errors import JobError
from ...core.ir import Outside
from ...core.source_location import here
from .stream import CALLBACK, STREAM


class Order:
    """Before a storage is written: waits for the steps in flight that read it.

    jobs: gives all jobs that are alive.
    """

    def __init__(self, jobs: Callable[[], Iterable[Any]]):
        self.jobs = jobs

    def in_callback(self) -> bool:
        """True on the worker, and in threads that a callback has started: they cannot wait for steps."""
        return STREAM.on_worker() or INSIDE.get() == CALLBACK

    def before_write(self, outside: Outside) -> None:
        """Return when the storage may be written. Refuses a write whose place among the steps is left to chance."""
        readers = [entry for entry in tuple(STREAM.queue) if outside in entry.reads]
        if self.in_callback():
            self.refuse_in_callback(outside, readers)
        elif readers and (held() or INSIDE.get()):
            mine = [step for step in readers if step.by is threading.current_thread()]
            if mine or INSIDE.get():
                what = f"a tensor that job {readers[0].name} captures is written where its steps cannot be waited for"
                hint = "flow.sync_default_session() before the call of the graph or job"
                raise JobError(what, values={"inside": INSIDE.get() or "an operation"}, where=here(), hint=hint)
        else:
            for entry in readers:
                STREAM.waiting(entry.over)

    def refuse_in_callback(self, outside: Outside, readers: list[Any]) -> None:
        """The callback of a call that waits may write, if no other step reads the tensor; any other may not."""
        running = next(iter(tuple(STREAM.queue)), None)
        others = [entry for entry in readers if entry is not running]
        names = [job.name for job in self.jobs() if any(outside in plan.reads for plan in list(job.plans.values()))]
        if others or names and not (running is not None and running.waited_for):
            name = others[0].name if others else names[0]
            what = f"a callback writes a tensor that job {name} captures"
            values = {"why": "steps that were submitted before and after the write would be told apart by chance"}
            hint = (
                "append to a list in the callback, and write after flow.sync_default_session(); or give the tensor to "
                "the job as an argument"
            )
            raise JobError(what, values=values, where=here(), hint=hint)
