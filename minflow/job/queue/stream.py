"""The one queue that all job functions run through, and the only threads of the package.

A step is submitted by the caller's thread, runs on the worker, and is followed there by its callback; then the next one
starts. At most `depth` steps are in flight, counted until their callback has ended, so a caller that is faster waits.
The caller may be interrupted at any instruction: what is submitted changes by one atomic `deque.append`, and every wait
is a `SimpleQueue.get`. Knows nothing of graphs: a step's work is a function.

Who submitted a step, a thread or a run, owns it: after an error or Ctrl-C only what the same owner has queued is
cancelled.

Who may hold what. The worker takes `executor.LOCK` for each step, and no lock while a callback runs. So nobody waits
for a step who holds LOCK (a build, a kernel of a running plan), nor the worker itself, nor a thread that one of these
waits for (a loader's worker, which inherits `executor.INSIDE`): `refuse_inside` raises. `submitting` is held by one
caller, while it waits for room, too; who holds it and submits (a `__del__`, a signal handler) is refused. `starting` is
held while the worker is started, and by none who waits for it. A thread of the user's own that is started and joined
inside a build cannot be seen here.

Read next: `../function.py`, which submits; `../run.py`, whose loops submit from a thread of their own.
"""

from __future__ import annotations

import atexit
import itertools
import os
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from typing import Any

from ...compiler.executor import INSIDE, held
from ...core.base import events
from ...core.base.errors import JobError
from ...core.base.interrupts import uninterrupted
from ...core.source_location import here
from ...diagnosis.notebook import follow_cells, show_traceback
from .events import JobStepped
from .records import Callers, Record, clock
from .step import Gate, Late, Step, Stopped, cancelled, name_of, nothing, seconds, step_error

DEPTH = 2  # steps in flight: one runs, one waits
# seconds a thread waits for one that holds Python, while steps are in flight (5 ms otherwise): see docs/performance.md
SWITCH = 0.0001
EXIT = 60.0  # seconds that the end of the program waits for a step to end, then it goes without it
RECORDS = 10_000  # steps that the timeline remembers
CALLBACK = "a callback"


class Stream:
    """The queue and its worker. records: the last steps, oldest first."""

    def __init__(self, depth: int = DEPTH):
        self.depth = depth
        self.queue: deque[Any] = deque()  # the head runs; it leaves when its callback has ended
        self.wake: SimpleQueue = SimpleQueue()
        self.errors: deque[tuple[Step, BaseException]] = deque()
        self.records: deque[Record] = deque(maxlen=RECORDS)
        self.runs: list[Any] = []
        self.thread: threading.Thread | None = None
        self.starting, self.submitting = threading.RLock(), threading.RLock()
        self.interval: float | None = None
        self.cell = None
        self.hooked = False
        self.counts: dict[str, itertools.count] = {}
        self.callers = Callers()
        self.failed_at_exit = False

    # ---- the caller's side -------------------------------------------------------------------------------------------

    def submit(
        self,
        name: str,
        work: Callable[[], Any],
        callback: Callable | None = None,
        before_callback: Callable | None = None,
        owner: Any = None,
        depth: int | None = None,
        job: Any = None,
        reads: frozenset = frozenset(),
        waited_for: bool = False,
    ) -> Step:
        """Put one step into the queue; waits while it is full. Raises an error that an earlier step has left.

        reads, waited_for: see `Step`.
        """
        self.refuse_inside(f"calling {name}")
        self.notebook()
        start, depth, by = clock(), depth or self.depth, owner or threading.current_thread()
        with self.submitting:  # two callers at once: one after the other
            while True:
                if owner is None:
                    self.raise_errors()
                elif owner.ending():
                    raise Stopped
                if len(self.queue) < depth:
                    break
                try:
                    self.waiting(self.queue[0].over)
                except IndexError:  # it has ended meanwhile
                    pass
            number = next(self.counts.setdefault(name, itertools.count(1)))
            step = Step(self, name, number, work, owner, by)
            step.job, step.callback, step.before_callback = job, callback, before_callback
            step.reads, step.waited_for = reads, waited_for
            step.cell = None if owner is not None else self.cell
            self.callers.submits(step.record, start, clock())
            with uninterrupted():  # an interrupt after the append would leave the worker asleep
                self.ready()
                self.queue.append(step)
                self.wake.put(None)
        return step

    def waiting(self, gate: Gate, timeout: float | None = None) -> bool:
        """Wait at a gate. See `interrupted` for Ctrl-C."""
        if gate.opened:
            return True
        start = clock()
        try:
            return gate.wait(timeout)
        except KeyboardInterrupt:
            self.interrupted()
            raise
        finally:
            self.callers.waited(start)

    def interrupted(self) -> None:
        """Ctrl-C while waiting: of this caller's steps those that are queued are cancelled, and the one that runs
        ends."""
        me = threading.current_thread()
        self.cancel_queued(me)
        self.idle(EXIT, me)

    def sync(self, timeout: float | None = None, everybody: bool = False) -> None:
        """Wait until every step and callback has ended, then raise what is left; `everybody`: as for
        `raise_errors`."""
        self.refuse_inside("waiting for the queue")
        seconds(timeout)
        start, steps = clock(), [entry.step if isinstance(entry, Late) else entry for entry in tuple(self.queue)]
        try:
            ended = self.idle(timeout)
        except KeyboardInterrupt:
            self.interrupted()
            raise
        finally:
            self.callers.waited(start)
        if not ended:
            what = "the queue did not end in time"
            hint = "does a callback wait for a lock that the caller holds?"
            values = {"seconds": timeout, "in flight": self.list() or "callbacks"}
            raise JobError(what, values=values, where=self.where_threads_stand(), hint=hint)
        for step in steps:
            self.callers.got(step.record)
        self.raise_errors(everybody)

    def settle(self) -> None:
        """Before numbers are read: wait as `sync` does. In a callback there is nothing to wait for: it stands between
        two steps."""
        if held() or not self.on_worker():
            self.sync()

    def on_worker(self) -> bool:
        return self.thread is not None and threading.get_ident() == self.thread.ident

    def idle(self, timeout: float | None = None, by: Any = None) -> bool:
        """Wait until all that is in the queue now has ended; of what is added meanwhile only late callbacks are waited
        for.

        by: wait for what is left of this owner alone.
        """
        end = None if timeout is None else clock() + timeout
        entries = [entry for entry in tuple(self.queue) if by is None or entry.by is by and entry.state != "cancelled"]
        while entries:
            if not entries[-1].over.wait(None if end is None else end - clock()):
                return False
            entries = [
                entry for entry in tuple(self.queue) if isinstance(entry, Late) and (by is None or entry.by is by)
            ]
        return True

    @contextmanager
    def idling(self) -> Iterator[None]:
        """Run the block while no step is in flight and none can be submitted."""
        with self.submitting:
            self.idle()
            yield

    def raise_errors(self, everybody: bool = False) -> None:
        """Raise the first error of this caller's steps that was not raised yet; once.

        What is left of a thread that has ended is anybody's. everybody: the errors of all threads, which their own
        callers still get too.
        """
        me = threading.current_thread()
        for step, error in tuple(self.errors):
            mine, left = step.by is me, not step.by.is_alive()
            if mine or left or everybody:
                with uninterrupted():  # it is raised, or still to be raised
                    if mine or left:
                        self.forget(step.by)
                    if (not (mine or left) or step.error_claim.take()) and (mine or step.shown_claim.take()):
                        raise error

    def forget(self, by: Any, step: Step | None = None) -> None:
        """The errors of this owner have been raised, or that of one of its steps."""
        for entry in tuple(self.errors):
            if entry[0].by is by and step in (None, entry[0]):
                with suppress(ValueError):  # another thread has taken it
                    self.errors.remove(entry)

    def cancel_queued(self, by: Any) -> int:
        """Cancel the steps of an owner that have not started. How many there were."""
        waiting = [
            step for step in tuple(self.queue) if isinstance(step, Step) and step.by is by and step.state == "queued"
        ]
        return sum([step.cancel() for step in waiting])

    def refuse_inside(self, what: str) -> None:
        """Raise JobError where waiting would never end: see the docstring of this file."""
        inside = INSIDE.get()
        if inside and inside != CALLBACK:
            what = f"{what} inside {inside}: no step runs while it is built"
            raise JobError(what, where=here(), hint="it says what a step computes; call the job before or after")
        if held():
            text = "inside an operation of a graph or job that runs or is built: no step starts before its end"
            hint = "do it before or after the call, and hand in what comes of it as an input"
            raise JobError(f"{what} {text}", where=here(), hint=hint)
        if self.submitting._is_owned():
            what = f"{what} inside another call of a job, which waits for room"
            raise JobError(what, where=here(), hint="a __del__ or a signal handler appends to a list, or sets a flag")
        if inside or self.on_worker():
            hint = "append to a list in the callback, and go on after flow.sync_default_session()"
            raise JobError(f"{what} inside a callback: the queue would wait for itself", where=here(), hint=hint)

    def list(self) -> list[Any]:
        """Handles of what is in flight: steps, then runs."""
        steps = [
            entry.step if isinstance(entry, Late) else entry
            for entry in tuple(self.queue)
            if entry.state != "cancelled"
        ]
        return steps + [run for run in self.runs if not run.done()]

    def history(self) -> tuple[Record, ...]:
        """The records, oldest first, while the worker may be adding one."""
        while True:
            with suppress(RuntimeError):  # it did, in the middle of the copy
                return tuple(self.records)

    def background(self, run: Any) -> None:
        """Run `run.loop` on a thread of its own."""
        self.notebook()
        run.thread = threading.Thread(target=run.loop, name=f"minflow run of {run.job.name}", daemon=True)
        with uninterrupted():
            self.runs = [known for known in self.runs if not known.done()] + [run]
            run.thread.start()

    def call_late(self, step: Step) -> None:
        self.ready()
        self.queue.append(Late(step))
        self.wake.put(None)

    # ---- the worker --------------------------------------------------------------------------------------------------

    def ready(self) -> None:
        """There is a worker. It is a daemon: `drain` waits for it at the end of the program."""
        if self.thread is not None and self.thread.is_alive():
            return
        with self.starting:
            if self.thread is None or not self.thread.is_alive():
                self.thread = threading.Thread(target=self.loop, name="minflow jobs", daemon=True)
                self.thread.start()

    def loop(self) -> None:
        INSIDE.set(CALLBACK)
        while True:
            self.wake.get()
            if threading.current_thread() is not self.thread:  # an interrupt in `ready` may have started two
                self.wake.put(None)
                return
            if self.queue:
                self.hurry(True)
            while self.queue:
                head = self.queue[0]
                try:
                    if isinstance(head, Late):
                        self.call(head.step)
                    else:
                        self.work(head)
                finally:
                    self.queue.popleft()
                    head.over.open()
                    del head  # an idle worker keeps no result
            self.hurry(False)

    def work(self, step: Step) -> None:
        record = step.record
        if not step.start_claim.take():
            record.state, step.looked = "cancelled", True
            step.computed.open()  # whoever cancelled it may have been interrupted there
            return
        failed = next((known for known, _ in tuple(self.errors) if known.by is step.by), None)
        if failed is not None:  # submitted by one who had looked for errors just before there was one
            record.state, step.looked, step.work, step.error = "cancelled", True, nothing, cancelled(step, failed)
            step.computed.open()
            return
        record.state, record.started = "running", clock()
        self.records.append(record)
        try:
            step.result = step.work()
        except BaseException as error:
            record.ended = clock()
            self.fail(step, error if isinstance(error, JobError) else step_error(step, error))
            return
        finally:
            step.work = nothing  # it holds the inputs
        record.state, record.ended = "done", clock()
        if step.before_callback is not None:  # before the result is there: what it watched is, when a sync call returns
            try:
                step.before_callback(step.result)
            except BaseException as error:
                self.fail(step, step_error(step, error, "a watch handler"))
                return
        if JobStepped in events.LISTENERS:
            try:
                events.emit(JobStepped(step.job, step.name, step.number, step.owner, step.result, record))
            except BaseException as error:
                self.fail(step, step_error(step, error, "who listens to JobStepped"))
                return
        step.computed.open()
        step.looked = True
        if step.callback is not None and step.call_claim.take():
            self.call(step)

    def call(self, step: Step) -> None:
        """Run the callback of a step."""
        if step.state != "done":
            return
        step.record.called = clock()
        try:
            step.callback(step.result)
        except BaseException as error:
            # the learner's, which the run calls in its own
            callback = step.owner.callback if step.owner is not None else None
            self.fail(step, step_error(step, error, f"the callback {name_of(callback or step.callback)}"))
        finally:
            step.record.finished = clock()

    def fail(self, step: Step, error: BaseException) -> None:
        """Keep the error, cancel what its owner has queued: for it the parameters stay at the last finished step."""
        if step.state == "running":
            step.record.state = "failed"
        if step.owner is not None:
            step.owner.failed(error)
        else:
            self.errors.append((step, error))
        step.error = error  # after the append: `get` of another thread may raise it, and then it is to be forgotten
        for queued in tuple(self.queue):
            if isinstance(queued, Step) and queued.by is step.by and queued.state == "queued":
                queued.strike(cancelled(queued, step))
        step.computed.open()

    def hurry(self, active: bool) -> None:
        """Switch threads more often while steps are in flight; afterwards as it was."""
        if active and self.interval is None and sys.getswitchinterval() > SWITCH:
            self.interval = sys.getswitchinterval()
            sys.setswitchinterval(SWITCH)
        elif not active and self.interval is not None:
            if abs(sys.getswitchinterval() - SWITCH) < SWITCH / 10:  # nobody else has set it meanwhile
                sys.setswitchinterval(self.interval)
            self.interval = None

    # ---- notebooks, forks and the end --------------------------------------------------------------------------------

    def notebook(self) -> None:
        """In IPython the end of a cell waits for the steps of that cell, so that what they print lands there."""
        if not self.hooked and follow_cells(self.cell_starts, self.cell_ends):
            self.hooked, self.cell = True, object()

    def cell_starts(self, *info: Any) -> None:
        self.cell = object()
        self.callers.forget()

    def cell_ends(self, *info: Any) -> None:
        try:
            for step in tuple(self.queue):
                if isinstance(step, Late) or step.cell is self.cell:
                    self.waiting(step.over)
            self.raise_errors(True)
        except JobError as error:
            show_traceback(error)

    def drain(self) -> None:
        """The end of the program: runs are stopped, steps end, errors are printed. Never hangs on a step that does not
        end."""
        for run in self.runs:
            run.stop()
        try:
            ended = all([run.over.wait(EXIT) for run in self.runs]) and self.idle(EXIT)
            for run in self.runs:
                if run.error is not None and not run.raised:
                    raise run.error
            if not ended:
                self.failed_at_exit = True
                print(f"minflow: {self.list()} did not end within {EXIT:g} s of the program's end", file=sys.stderr)
                print(self.where_threads_stand(), file=sys.stderr)
            self.raise_errors(True)
        except KeyboardInterrupt:
            for entry in tuple(self.queue):
                if isinstance(entry, Step):
                    entry.cancel()
        except BaseException as error:
            self.failed_at_exit = True
            traceback.print_exception(error)

    def where_threads_stand(self) -> str:
        frames = sys._current_frames()
        names = {t.ident: t.name for t in threading.enumerate()}
        of = (threading.main_thread().ident, threading.get_ident(), self.thread and self.thread.ident)
        ours = [i for i in dict.fromkeys(of) if i in frames]
        return "\n".join(f"{names[i]}:\n" + "".join(traceback.format_stack(frames[i])[-4:]) for i in ours)

    def forked(self) -> None:
        """In a child process there is no worker, and what was queued belongs to the parent."""
        for step in tuple(self.queue):
            if isinstance(step, Step) and not step.cancel() and not step.done():  # it had just been started
                step.record.state = "cancelled"
                step.computed.open()
        self.queue.clear()
        self.errors.clear()
        self.runs.clear()
        self.hurry(False)
        self.wake, self.thread = SimpleQueue(), None
        self.starting, self.submitting = threading.RLock(), threading.RLock()
        if INSIDE.get() == CALLBACK:  # the worker has forked: what goes on here is no callback of this stream
            INSIDE.set("")


STREAM = Stream()


@atexit.register
def end_with_the_right_code() -> None:
    """Registered first, so run last: a program whose last steps failed ends with code 1, as one that raised does."""
    if STREAM.failed_at_exit:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)


atexit.register(STREAM.drain)
if hasattr(os, "register_at_fork"):  # Windows cannot fork
    os.register_at_fork(after_in_child=STREAM.forked)
