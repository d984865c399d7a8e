"""WriteOrdering orders reads and writes of tensors with the steps in flight that use them.

A step reads a captured tensor when it runs, on the worker, and must see it as it was when the step was submitted. A
write by an op therefore waits until the steps that read the storage have ended, including their callbacks
(`before_write` in `core/functionalize.py` calls this). A step of a graph also writes tensors: a read by an op waits for
it (`before_read` in `core/in_flight.py`). This costs nothing if nothing is written, whereas a copy per
step would cost time in proportion to the tensor's size. Memory shared with NumPy can be written unnoticed, so each step
copies such a tensor when it is submitted (`../build.py: JobTrace.state_buffer`). A tensor that gets another storage
(`x.data = y`, an attribute that names a new tensor) needs no ordering: a plan keeps the storage it was built for. Read
next: `stream.py`.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable
from typing import Any

from ...compiler.executor import INSIDE, holds_lock
from ...core.base.errors import JobError
from ...core.ir import ExternalUsers
from ...core.source_location import here
from .stream import CALLBACK, Stream


class WriteOrdering:
    """Makes writes to a storage wait for the steps of a stream that use it, and reads for those that write it.

    jobs: returns all live jobs.  graphs: those that were submitted.
    """

    def __init__(self, stream: Stream, jobs: Callable[[], Iterable[Any]]):
        self.stream, self.jobs = stream, jobs
        self.graphs: weakref.WeakSet = weakref.WeakSet()

    def in_callback(self) -> bool:
        """True on the worker and in threads that a callback has started: these cannot wait for steps."""
        return self.stream.on_worker() or INSIDE.get() == CALLBACK

    def before_read(self, users: ExternalUsers) -> None:
        """Return when the storage may be read."""
        for entry in tuple(self.stream.queue):
            if users in (entry.writes or ()) and not self.in_callback() and not holds_lock():
                self.stream.wait_for(entry.computed)

    def before_write(self, users: ExternalUsers) -> None:
        """Return when the storage may be written. Raises JobError if the order of the write and the steps would be
        undefined.
        """
        readers = [entry for entry in tuple(self.stream.queue) if users in entry.reads]
        if self.in_callback():
            if not self.stream.working:  # otherwise the write is part of the step
                self.refuse_in_callback(users, readers)
        elif readers and (holds_lock() or INSIDE.get()):
            own_steps = [step for step in readers if step.submitter is threading.current_thread()]
            if own_steps or INSIDE.get():
                what = f"a tensor that {readers[0].label} captures is written where its steps cannot be waited for"
                hint = "flow.sync_default_session() before the call of the graph or job"
                raise JobError(what, values={"inside": INSIDE.get() or "an operation"}, where=here(), hint=hint)
        else:
            for entry in readers:
                self.stream.wait_for(entry.finished)

    def refuse_in_callback(self, users: ExternalUsers, readers: list[Any]) -> None:
        """Raise JobError unless this is the callback of a synchronous call and no other step reads the tensor."""
        running = next(iter(tuple(self.stream.queue)), None)
        others = [entry for entry in readers if entry is not running]
        captured = [(f"job {job.name}", plan.reads) for job in self.jobs() for plan in list(job.plans.values())]
        captured += [(f"graph {g.name}", plan.storages[0]) for g in self.graphs for plan in list(g._plans.values())]
        names = [name for name, storages in captured if users in storages]
        if others or (names and not (running is not None and running.waited_for)):
            name = others[0].label if others else names[0]
            what = f"a callback writes a tensor that {name} captures"
            values = {"why": "steps that were submitted before and after the write would be told apart by chance"}
            hint = (
                "append to a list in the callback, and write after flow.sync_default_session(); or give the tensor to "
                "the call as an argument"
            )
            raise JobError(what, values=values, where=here(), hint=hint)
