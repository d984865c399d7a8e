"""A step: the handle that a call of a job function returns, and the latches on which callers wait.

Uses the stream only to wait, to enqueue deferred callbacks and to clear errors. Read next: `stream.py`.
"""

from __future__ import annotations

import inspect
import threading
from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

from ...core.base.errors import JobError, MinflowError, clean
from ...core.base.interrupts import uninterrupted
from ...core.source_location import here
from ...diagnosis.frames import message_of, raised_at
from .handle import Handle
from .records import Record, clock

POLL_INTERVAL = 0.1  # seconds between two checks of the clock while waiting


class Latch:
    """A one-shot latch, closed until `open()`. Waiting holds no lock, so an interrupt cannot leave one locked."""

    def __init__(self) -> None:
        self.opened = False
        self.waiters: deque[SimpleQueue] = deque()

    def open(self) -> None:
        self.opened = True
        for waiter in tuple(self.waiters):
            waiter.put(None)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the latch is open. Returns True, or False after `timeout` seconds."""
        if self.opened:
            return True
        waiter: SimpleQueue = SimpleQueue()
        self.waiters.append(waiter)
        end = None if timeout is None else clock() + timeout
        try:
            while not self.opened:
                left = POLL_INTERVAL if end is None else min(POLL_INTERVAL, end - clock())
                if left <= 0:
                    return False
                try:
                    waiter.get(timeout=left)
                except Empty:
                    pass
            return True
        finally:
            self.waiters.remove(waiter)


Gate = Latch  # the name that copies of the reading tours import


class OnceFlag:
    """A flag that exactly one of several threads can take."""

    def __init__(self) -> None:
        self.taken = threading.Lock()

    def take(self) -> bool:
        return self.taken.acquire(blocking=False)


class Step(Handle):
    """One call of a job function: a handle on its result. record: its times.

    `step(callback)` hands the result to `callback(result)` on the worker, in the order of the calls.
    """

    def __init__(
        self, stream: Any, name: str, number: int, work: Callable[[], Any], owner: Any = None, submitter: Any = None
    ):
        self.stream, self.work, self.owner = stream, work, owner
        self.submitter = submitter  # the run or thread whose queued steps its error cancels, and to whom it is raised
        self.record = Record(name, number, in_run=getattr(submitter, "submitted", None))
        self.job: Any = None  # the job function that was called
        self.reads: frozenset = frozenset()  # storages that its plan captures: see `ordering.py`
        self.writes: frozenset | None = None  # those that a graph writes; None for a job
        self.waited_for = False  # True if the call is synchronous
        self.cell: object = None  # the notebook cell that submitted it
        self.result: Any = None
        self.error: BaseException | None = None
        self.callback: Callable | None = None
        self.before_callback: Callable[[Any], None] | None = None  # handlers of watches; run before the callback
        self.callback_checked = False  # True once the worker has checked for a callback
        self.start_once, self.call_once = OnceFlag(), OnceFlag()
        # taken when its error is raised: to its caller, to another thread
        self.error_once, self.shown_once = OnceFlag(), OnceFlag()
        self.computed, self.finished = Latch(), Latch()  # opened at the end of its work; of its callback

    name = property(lambda self: self.record.name)
    number = property(lambda self: self.record.number)
    state = property(lambda self: self.record.state)
    label = property(lambda self: f"{'job' if self.writes is None else 'graph'} {self.name}")

    # ---- the caller's side -------------------------------------------------------------------------------------------

    def __call__(self, callback: Callable[[Any], Any] | None = None) -> None:
        """Call `callback(result)` once, on the worker, after all earlier callbacks."""
        if not callable(callback):
            what = f"the callback of {self.name} is not callable"
            hint = f"{self.call}(callback) with a function of one argument"
            raise JobError(what, values={"got": repr(callback)[:60]}, where=here(), hint=hint)
        check_arity(self.name, callback)
        if self.callback is not None:
            what = f"step {self.number} of {self.name} has a callback already"
            hint = "one callback for each call; it may call several functions"
            raise JobError(what, where=here(), values={"its callback": name_of(self.callback)}, hint=hint)
        with uninterrupted():  # otherwise Ctrl-C could leave a callback that is never called
            self.callback = callback
            if self.callback_checked and self.call_once.take():
                self.stream.enqueue_callback(self)
        if self.waited_for:
            self.stream.wait_until_idle(submitter=self.submitter)

    async_get = __call__

    def get(self, timeout: float | None = None) -> Any:
        """Wait for the result and return it. Raises JobError if the step failed or was cancelled, and TimeoutError
        after `timeout` seconds.
        """
        self.stream.check_can_wait(f"waiting for a step of {self.name}")
        check_timeout(timeout)
        if not self.stream.wait_for(self.computed, timeout):
            raise TimeoutError(f"step {self.number} of {self.name} did not end in {timeout} s; it is {self.state}")
        self.stream.callers.record_result(self.record)
        if self.error is not None:
            if self.error_once.take():
                self.stream.forget(self.submitter, self)
            raise self.error
        if self.state == "cancelled":
            raise cancelled_error(self)
        return self.result

    def done(self) -> bool:
        """True if the work of the step has ended, successfully or not."""
        return self.computed.opened

    def wait_before_use(self) -> None:
        """Wait until the step of a graph has ended, before the program uses the tensors of that graph."""
        self.stream.wait_before_use(self)

    def cancel(self) -> bool:
        """Remove the step from the queue. Returns True if it will not run, False if it is running or has run."""
        return self.cancel_with()

    def cancel_with(self, error: BaseException | None = None) -> bool:
        """Cancel the step. error: raised by `get`."""
        if not self.start_once.take():
            return self.state == "cancelled"
        self.record.state, self.work, self.error = "cancelled", do_nothing, error
        self.computed.open()
        return True

    def __repr__(self) -> str:
        return clean(f"<step {self.number} of {self.name}: {self.state}>")


class DeferredCallback:
    """A callback that was registered after its step had ended; a separate entry of the queue."""

    def __init__(self, step: Step):
        self.step, self.submitter, self.state, self.finished = step, step.submitter, "late", Latch()
        self.name, self.label, self.reads, self.writes, self.waited_for = step.name, step.label, step.reads, None, False


class Stopped(Exception):
    """Raised in the loop of a run that was stopped while waiting for a free slot in the queue."""


def do_nothing() -> None:
    return None


def check_timeout(timeout: Any) -> None:
    """Raise JobError unless `timeout` is None or a number of seconds. NaN is refused, since such a wait would never
    end.
    """
    if timeout is not None and not (isinstance(timeout, int | float) and timeout == timeout):
        what = "timeout must be a number of seconds, or None to wait forever"
        raise JobError(what, values={"got": repr(timeout)[:60]}, where=here(), hint="timeout=10.0")


def name_of(function: Any) -> str:
    return getattr(function, "__name__", None) or type(function).__name__


CANCELLED_HINT = "correct the function, and submit the cancelled steps again: the step itself has finished"


def step_error(step: Step, error: BaseException, what: str = "") -> JobError:
    """Wrap the original error of a step. The values and the hint of a minflow error stay separate parts."""
    parts = error if isinstance(error, MinflowError) else MinflowError(message_of(error))
    result = JobError(
        f"{what or 'the work'} of step {step.number} of {step.name} raised {type(error).__name__}: {parts.what}",
        values={**parts.values, "then": f"the steps that {owner_text(step)} had queued behind it were cancelled"},
        where=parts.where or (what and raised_at(error)),
        hint=parts.hint
        or (CANCELLED_HINT if what else "correct it and submit again: variables are those of the last finished step"),
    )
    result.__cause__ = error
    result.step = step.number
    return result


def owner_text(step: Step) -> str:
    return "the same run" if step.owner is not None else "the same caller"


def cancelled_error(step: Step, failed: Step | None = None) -> JobError:
    why = (
        f"step {failed.number} of {failed.name} failed before it"
        if failed is not None
        else "it was taken out of the queue"
    )
    return JobError(f"step {step.number} of {step.name} was cancelled", values={"why": why}, hint="call the job again")


def check_arity(name: str, callback: Callable) -> None:
    """Raise JobError unless the callback takes one argument: early, rather than many steps later on the worker."""
    try:
        inspect.signature(callback).bind(None)
    except ValueError:  # a builtin without a signature
        return
    except TypeError:
        takes = str(inspect.signature(callback))
        what = f"the callback {name_of(callback)} of {name} cannot be called with one argument"
        hint = "a function of one argument, the result; several results come as one tuple"
        raise JobError(what, where=here(), values={"it takes": takes}, hint=hint) from None
