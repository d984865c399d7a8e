"""The queue through which all job functions run, and the only threads of the package.

A step is submitted by the caller's thread and runs on the worker, followed there by its callback; then the next one
starts. At most `depth` steps are in flight, counted until their callback has ended, so a faster caller waits
(back-pressure). The caller may be interrupted at any instruction: a submission is one atomic `deque.append`, and every
wait is a `SimpleQueue.get`. Independent of graphs: a step's work is a function.

The thread or run that submitted a step owns it: an error or Ctrl-C cancels only the queued steps of the same owner.

Locking. The worker takes the `plan_lock` of its Context for each step, and holds no lock while a callback runs. A wait
for a step would deadlock if the waiter holds that lock (a build, a kernel of a running plan), is the worker itself, or
is a thread that one of these waits for (a loader's worker, which inherits `executor.INSIDE`); `check_can_wait` raises
in these cases.
`submitting` is held by one caller, also while it waits for a free slot; a second submission by its holder (a
`__del__`, a signal handler) is refused. `starting` is held while the worker is started, and never by a thread that
waits for the worker. A user's thread that is started and joined inside a build cannot be detected.

Read next: `../function.py`, which submits; `../run.py`, whose loops submit from their own threads.
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

from ...compiler.executor import INSIDE, holds_lock
from ...core.base import events
from ...core.base.errors import JobError
from ...core.base.interrupts import uninterrupted
from ...core.context import PerContext, current_context
from ...core.in_flight import set_in_flight
from ...core.source_location import here
from ...diagnosis.notebook import follow_cells, show_traceback
from .events import JobStepped
from .records import CallerState, Record, clock
from .step import (
    DeferredCallback,
    Latch,
    Step,
    Stopped,
    cancelled_error,
    check_timeout,
    do_nothing,
    name_of,
    step_error,
)

DEPTH = 2  # steps in flight: one runs, one waits
# switch interval of Python's threads in seconds while steps are in flight (default 5 ms): see docs/performance.md
SWITCH_INTERVAL = 0.0001
EXIT_TIMEOUT = 60.0  # seconds that the program's exit waits for a step
MAX_RECORDS = 10_000  # steps kept for the timeline
CALLBACK = "a callback"


class Stream:
    """The queue and its worker, of one Context. records: records of the last steps, oldest first."""

    def __init__(self, depth: int = DEPTH):
        self.depth, self.context = depth, current_context()
        self.queue: deque[Any] = deque()  # the head is running; it is removed when its callback has ended
        self.wake: SimpleQueue = SimpleQueue()
        self.errors: deque[tuple[Step, BaseException]] = deque()
        self.records: deque[Record] = deque(maxlen=MAX_RECORDS)
        self.runs: list[Any] = []
        self.thread: threading.Thread | None = None
        self.starting, self.submitting = threading.RLock(), threading.RLock()
        self.interval: float | None = None
        self.cell: object = None
        self.hooked = False
        self.counts: dict[str, itertools.count] = {}
        self.callers = CallerState()
        self.failed_at_exit = False
        self.working = False  # True while the worker runs a step, not its callback

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
        writes: frozenset | None = None,
    ) -> Step:
        """Append a step to the queue, waiting while it is full. Raises the pending error of an earlier step.

        reads, waited_for, writes: see `Step`.
        """
        self.check_can_wait(f"calling {name}")
        self.register_notebook()
        start, depth, submitter = clock(), depth or self.depth, owner or threading.current_thread()
        with self.submitting:  # serializes concurrent callers
            while True:
                if owner is None:
                    self.raise_errors()
                elif owner.is_ending():
                    raise Stopped
                if len(self.queue) < depth:
                    break
                try:
                    self.wait_for(self.queue[0].finished)
                except IndexError:  # it has ended in the meantime
                    pass
            number = next(self.counts.setdefault(name, itertools.count(1)))
            step = Step(self, name, number, work, owner, submitter)
            step.job, step.callback, step.before_callback = job, callback, before_callback
            step.reads, step.waited_for, step.writes = reads, waited_for, writes
            step.cell = None if owner is not None else self.cell
            self.callers.record_submission(step.record, start, clock())
            with uninterrupted():  # an interrupt after the append would not wake the worker
                self.start_worker()
                self.queue.append(step)
                if writes is not None:
                    set_in_flight(step, True)
                self.wake.put(None)
        return step

    def wait_for(self, latch: Latch, timeout: float | None = None) -> bool:
        """Wait for a latch. See `handle_interrupt` for Ctrl-C."""
        if latch.opened:
            return True
        start = clock()
        try:
            return latch.wait(timeout)
        except KeyboardInterrupt:
            self.handle_interrupt()
            raise
        finally:
            self.callers.record_wait(start)

    def handle_interrupt(self) -> None:
        """Handle Ctrl-C during a wait: cancel this caller's queued steps and let the running one finish."""
        me = threading.current_thread()
        self.cancel_queued(me)
        self.wait_until_idle(EXIT_TIMEOUT, me)

    def sync(self, timeout: float | None = None, all_threads: bool = False) -> None:
        """Wait until every step and callback has ended, then raise pending errors. all_threads: see `raise_errors`."""
        self.check_can_wait("waiting for the queue")
        check_timeout(timeout)
        start = clock()
        steps = [entry.step if isinstance(entry, DeferredCallback) else entry for entry in tuple(self.queue)]
        try:
            ended = self.wait_until_idle(timeout)
        except KeyboardInterrupt:
            self.handle_interrupt()
            raise
        finally:
            self.callers.record_wait(start)
        if not ended:
            what = "the queue did not end in time"
            hint = "does a callback wait for a lock that the caller holds?"
            values = {"seconds": timeout, "in flight": self.list() or "callbacks"}
            raise JobError(what, values=values, where=self.thread_locations(), hint=hint)
        for step in steps:
            self.callers.record_result(step.record)
        self.raise_errors(all_threads)

    def sync_for_read(self) -> None:
        """Wait as `sync` does before a variable is read. A callback need not wait: it runs between two steps."""
        if holds_lock() or not self.on_worker():
            self.sync()

    def on_worker(self) -> bool:
        return self.thread is not None and threading.get_ident() == self.thread.ident

    def wait_before_use(self, step: Step) -> None:
        """Wait for a step of a graph, and raise its error, before its caller uses the graph or its tensors.

        Not in a callback, which runs between two steps, in an operation of a plan, or on another rank.
        """
        inside = self.on_worker() or INSIDE.get() or holds_lock()
        if self is current_stream() and not inside:
            self.wait_for(step.finished)
            self.raise_errors()

    def wait_until_idle(self, timeout: float | None = None, submitter: Any = None) -> bool:
        """Wait until all current entries of the queue, and deferred callbacks added in the meantime, have ended.

        submitter: wait only for its entries.
        """
        end = None if timeout is None else clock() + timeout
        entries = [
            entry
            for entry in tuple(self.queue)
            if submitter is None or (entry.submitter is submitter and entry.state != "cancelled")
        ]
        while entries:
            if not entries[-1].finished.wait(None if end is None else end - clock()):
                return False
            entries = [
                entry
                for entry in tuple(self.queue)
                if isinstance(entry, DeferredCallback) and (submitter is None or entry.submitter is submitter)
            ]
        return True

    @contextmanager
    def hold_idle(self) -> Iterator[None]:
        """Context manager: no step is in flight in the block, and none can be submitted."""
        with self.submitting:
            self.wait_until_idle()
            yield

    def raise_errors(self, all_threads: bool = False) -> None:
        """Raise the first error of this caller's steps that was not raised yet, once.

        Errors of threads that have ended are raised to any caller. all_threads: include the errors of all threads;
        their own callers still get them too.
        """
        me = threading.current_thread()
        for step, error in tuple(self.errors):
            mine, left = step.submitter is me, not step.submitter.is_alive()
            if mine or left or all_threads:
                with uninterrupted():  # either it is raised or it stays pending
                    if mine or left:
                        self.forget(step.submitter)
                    if (not (mine or left) or step.error_once.take()) and (mine or step.shown_once.take()):
                        raise error

    def forget(self, submitter: Any, step: Step | None = None) -> None:
        """Discard the errors of this owner, or of one of its steps: they have been raised."""
        for entry in tuple(self.errors):
            if entry[0].submitter is submitter and step in (None, entry[0]):
                with suppress(ValueError):  # another thread has removed it
                    self.errors.remove(entry)

    def cancel_queued(self, submitter: Any) -> int:
        """Cancel the steps of an owner that have not started. Returns their number."""
        waiting = [
            step
            for step in tuple(self.queue)
            if isinstance(step, Step) and step.submitter is submitter and step.state == "queued"
        ]
        return sum([step.cancel() for step in waiting])

    def check_can_wait(self, what: str) -> None:
        """Raise JobError if a wait here would never end: see the docstring of this module."""
        inside = INSIDE.get()
        if inside and inside != CALLBACK:
            what = f"{what} inside {inside}: no step runs while it is built"
            raise JobError(
                what, where=here(), hint="the function only describes a step; call the job before or after it"
            )
        if holds_lock():
            text = "inside an operation of a graph or job that runs or is built: no step starts before its end"
            hint = "do it before or after the call, and pass the result as an input"
            raise JobError(f"{what} {text}", where=here(), hint=hint)
        if self.submitting._is_owned():  # type: ignore[attr-defined]
            what = f"{what} inside another call of a job, which waits for a free slot in the queue"
            raise JobError(what, where=here(), hint="a __del__ or a signal handler appends to a list, or sets a flag")
        if inside or self.on_worker():
            hint = "append to a list in the callback, and continue after flow.sync_default_session()"
            raise JobError(f"{what} inside a callback: the queue would wait for itself", where=here(), hint=hint)

    def list(self) -> list[Any]:
        """Handles of everything in flight: steps, then runs."""
        steps = [
            entry.step if isinstance(entry, DeferredCallback) else entry
            for entry in tuple(self.queue)
            if entry.state != "cancelled"
        ]
        return steps + [run for run in self.runs if not run.done()]

    def history(self) -> tuple[Record, ...]:
        """Copy of the records, oldest first. The worker may be adding one."""
        while True:
            with suppress(RuntimeError):  # it added one during the copy
                return tuple(self.records)

    def start_run(self, run: Any) -> None:
        """Run `run.loop` on a new thread."""
        self.register_notebook()
        run.thread = run.stream.context.spawn(run.loop, name=f"minflow run of {run.job.name}", start=False)
        with uninterrupted():
            self.runs = [known for known in self.runs if not known.done()] + [run]
            run.thread.start()

    def enqueue_callback(self, step: Step) -> None:
        self.start_worker()
        self.queue.append(DeferredCallback(step))
        self.wake.put(None)

    # ---- the worker --------------------------------------------------------------------------------------------------

    def start_worker(self) -> None:
        """Start the worker if there is none. It is a daemon thread: `drain` waits for it at exit."""
        if self.thread is not None and self.thread.is_alive():
            return
        with self.starting:
            if self.thread is None or not self.thread.is_alive():
                self.thread = self.context.spawn(self.loop, name="minflow jobs", start=False)
                self.thread.start()

    def end_worker(self) -> None:
        """End the thread of an idle worker; the next step starts another one."""
        with self.starting:
            self.thread = None
            self.wake.put(None)

    def loop(self) -> None:
        INSIDE.set(CALLBACK)
        while True:
            self.wake.get()
            if (
                threading.current_thread() is not self.thread
            ):  # an interrupt in `start_worker` may have started two workers
                self.wake.put(None)
                return
            if self.queue:
                self.set_switch_interval(True)
            while self.queue:
                head = self.queue[0]
                try:
                    if isinstance(head, DeferredCallback):
                        self.call(head.step)
                    else:
                        self.work(head)
                finally:
                    self.queue.popleft()
                    if head.writes is not None:
                        set_in_flight(head, False)
                    head.finished.open()
                    del head  # so that an idle worker keeps no result alive
            self.set_switch_interval(False)

    def work(self, step: Step) -> None:
        record = step.record
        if not step.start_once.take():
            record.state, step.callback_checked = "cancelled", True
            step.computed.open()  # the canceller may have been interrupted before it did this
            return
        failed = next((known for known, _ in tuple(self.errors) if known.submitter is step.submitter), None)
        if failed is not None:  # submitted by a caller that had checked for errors just before this one
            record.state, step.callback_checked, step.work, step.error = (
                "cancelled",
                True,
                do_nothing,
                cancelled_error(step, failed),
            )
            step.computed.open()
            return
        record.state, record.started = "running", clock()
        self.records.append(record)
        try:
            self.working = True
            step.result = step.work()
        except BaseException as error:
            record.ended = clock()
            self.fail(step, error if isinstance(error, JobError) else step_error(step, error))
            return
        finally:
            self.working = False
            step.work = do_nothing  # releases the inputs
        record.state, record.ended = "done", clock()
        if step.before_callback is not None:  # before the result: when a sync call returns, its handlers have run
            try:
                step.before_callback(step.result)
            except BaseException as error:
                self.fail(step, step_error(step, error, "a watch handler"))
                return
        if JobStepped in events.LISTENERS:
            try:
                events.emit(JobStepped(step.job, step.name, step.number, step.owner, step.result, record))
            except BaseException as error:
                self.fail(step, step_error(step, error, "a listener of JobStepped"))
                return
        step.computed.open()
        step.callback_checked = True
        if step.callback is not None and step.call_once.take():
            self.call(step)

    def call(self, step: Step) -> None:
        """Run the callback of a step."""
        if step.state != "done" or step.callback is None:
            return
        step.record.called = clock()
        try:
            step.callback(step.result)
        except BaseException as error:
            # name the user's callback, which the run's own callback calls
            callback = step.owner.callback if step.owner is not None else None
            self.fail(step, step_error(step, error, f"the callback {name_of(callback or step.callback)}"))
        finally:
            step.record.finished = clock()

    def fail(self, step: Step, error: BaseException) -> None:
        """Keep the error and cancel the owner's queued steps, so that its parameters stay at the last finished step."""
        if step.state == "running":
            step.record.state = "failed"
        if step.owner is not None:
            step.owner.failed(error)
        else:
            self.errors.append((step, error))
        step.error = error  # after the append: `get` in another thread may raise it and then discards it
        for queued in tuple(self.queue):
            if isinstance(queued, Step) and queued.submitter is step.submitter and queued.state == "queued":
                queued.cancel_with(cancelled_error(queued, step))
        step.computed.open()

    def set_switch_interval(self, active: bool) -> None:
        """Shorten Python's switch interval while steps are in flight, and restore it afterwards."""
        if active and self.interval is None and sys.getswitchinterval() > SWITCH_INTERVAL:
            self.interval = sys.getswitchinterval()
            sys.setswitchinterval(SWITCH_INTERVAL)
        elif not active and self.interval is not None:
            if others := [s for s in current_stream.known() if s.queue and s is not self]:
                others[0].interval, self.interval = self.interval, None  # restored when the steps of that rank end
                return
            if (
                abs(sys.getswitchinterval() - SWITCH_INTERVAL) < SWITCH_INTERVAL / 10
            ):  # unless it was set elsewhere in the meantime
                sys.setswitchinterval(self.interval)
            self.interval = None

    # ---- notebooks, forks and exit -----------------------------------------------------------------------------------

    def register_notebook(self) -> None:
        """Register with IPython: the end of a cell waits for the steps of that cell, so that their output appears
        there.
        """
        if not self.hooked and follow_cells(self.on_cell_start, self.on_cell_end):
            self.hooked, self.cell = True, object()

    def on_cell_start(self, *info: Any) -> None:
        self.cell = object()
        self.callers.forget()

    def on_cell_end(self, *info: Any) -> None:
        try:
            for step in tuple(self.queue):
                if isinstance(step, DeferredCallback) or step.cell is self.cell:
                    self.wait_for(step.finished)
            self.raise_errors(True)
        except JobError as error:
            show_traceback(error)

    def drain(self) -> None:
        """At exit, stop runs, wait for steps and print errors. Does not hang on a step that does not end."""
        for run in self.runs:
            run.stop()
        try:
            ended = all([run.finished.wait(EXIT_TIMEOUT) for run in self.runs]) and self.wait_until_idle(EXIT_TIMEOUT)
            for run in self.runs:
                if run.error is not None and not run.raised:
                    raise run.error
            if not ended:
                self.failed_at_exit = True
                print(
                    f"minflow: {self.list()} did not end within {EXIT_TIMEOUT:g} s of the program's end",
                    file=sys.stderr,
                )
                print(self.thread_locations(), file=sys.stderr)
            self.raise_errors(True)
        except KeyboardInterrupt:
            for entry in tuple(self.queue):
                if isinstance(entry, Step):
                    entry.cancel()
        except BaseException as error:
            self.failed_at_exit = True
            traceback.print_exception(error)

    def thread_locations(self) -> str:
        frames = sys._current_frames()
        names = {t.ident: t.name for t in threading.enumerate()}
        of = (threading.main_thread().ident, threading.get_ident(), self.thread and self.thread.ident)
        ours = [i for i in dict.fromkeys(of) if i in frames]
        return "\n".join(f"{names[i]}:\n" + "".join(traceback.format_stack(frames[i])[-4:]) for i in ours)

    def reset_after_fork(self) -> None:
        """Reset after a fork: the child process has no worker, and queued steps belong to the parent."""
        for step in tuple(self.queue):
            set_in_flight(step, False)
            if isinstance(step, Step) and not step.cancel() and not step.done():  # it had just started
                step.record.state = "cancelled"
                step.computed.open()
        self.queue.clear()
        self.errors.clear()
        self.runs.clear()
        self.set_switch_interval(False)
        self.wake, self.thread = SimpleQueue(), None
        self.starting, self.submitting = threading.RLock(), threading.RLock()
        if INSIDE.get() == CALLBACK:  # the worker has forked: the child is not in a callback of this stream
            INSIDE.set("")


current_stream = PerContext(Stream)


@atexit.register
def set_exit_code() -> None:
    """Exit with code 1 if the last steps failed, as after an exception. Registered first, so that it runs last."""
    if any([stream.failed_at_exit for stream in current_stream.known()]):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)


@atexit.register
def drain_all() -> None:
    for stream in current_stream.known():
        stream.drain()


def reset_all_after_fork() -> None:
    for stream in current_stream.known():
        stream.reset_after_fork()


if hasattr(os, "register_at_fork"):  # Windows cannot fork
    os.register_at_fork(after_in_child=reset_all_after_fork)
