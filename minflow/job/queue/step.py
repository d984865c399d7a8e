"""A step: the handle that a call of a job function gives, and the gates at which callers wait for it.

Knows the stream as what it asks to wait, to call late and to forget. Read next: `stream.py`.
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

SLICE = 0.1  # seconds between two looks at the clock while waiting


class Gate:
    """Closed until `open()`. Waiting at it holds no lock, so that an interrupt leaves nothing behind."""

    def __init__(self) -> None:
        self.opened = False
        self.waiters: deque[SimpleQueue] = deque()

    def open(self) -> None:
        self.opened = True
        for waiter in tuple(self.waiters):
            waiter.put(None)

    def wait(self, timeout: float | None = None) -> bool:
        """True once it is open, False after `timeout` seconds."""
        if self.opened:
            return True
        waiter: SimpleQueue = SimpleQueue()
        self.waiters.append(waiter)
        end = None if timeout is None else clock() + timeout
        try:
            while not self.opened:
                left = SLICE if end is None else min(SLICE, end - clock())
                if left <= 0:
                    return False
                try:
                    waiter.get(timeout=left)
                except Empty:
                    pass
            return True
        finally:
            self.waiters.remove(waiter)


class Claim:
    """What exactly one of several threads gets."""

    def __init__(self) -> None:
        self.taken = threading.Lock()

    def take(self) -> bool:
        return self.taken.acquire(blocking=False)


class Step(Handle):
    """One call of a job function: a handle on its result. record: its times.

    `step(callback)` hands the result to `callback(result)` on the worker, in the order of the calls.
    """

    def __init__(self, stream: Any, name: str, number: int, work: Callable[[], Any], owner: Any = None, by: Any = None):
        self.stream, self.work, self.owner = stream, work, owner
        self.by = by  # what its errors cancel, and to whom they are raised: the run, or the thread that submitted it
        self.record = Record(name, number)
        self.job: Any = None  # the job function that was called
        self.reads: frozenset = frozenset()  # what its plan captures: see `ordering.py`
        self.waited_for = False  # True if the call itself waits for it
        self.cell = None  # the notebook cell that submitted it
        self.result: Any = None
        self.error: BaseException | None = None
        self.callback: Callable | None = None
        self.before_callback: Callable[[Any], None] | None = None  # what watches: runs before the callback
        self.looked = False  # the worker has looked for a callback
        self.start_claim, self.call_claim = Claim(), Claim()
        self.error_claim, self.shown_claim = Claim(), Claim()  # its error was raised: to its caller, to another thread
        self.computed, self.over = Gate(), Gate()  # its work has ended; its callback too

    name = property(lambda self: self.record.name)
    number = property(lambda self: self.record.number)
    state = property(lambda self: self.record.state)

    # ---- what a caller does with it ----------------------------------------------------------------------------------

    def __call__(self, callback: Callable[[Any], Any] | None = None) -> None:
        """Hand the result to `callback(result)`: on the worker, once, after all earlier callbacks."""
        if not callable(callback):
            what = f"the callback of {self.name} is not callable"
            hint = f"{self.name}(...)(callback) with a function of one argument"
            raise JobError(what, values={"got": repr(callback)[:60]}, where=here(), hint=hint)
        check_arity(self.name, callback)
        if self.callback is not None:
            what = f"step {self.number} of {self.name} has a callback already"
            hint = "one callback for each call; it may call several functions"
            raise JobError(what, where=here(), values={"its callback": name_of(self.callback)}, hint=hint)
        with uninterrupted():  # else Ctrl-C leaves a callback that nobody calls
            self.callback = callback
            if self.looked and self.call_claim.take():
                self.stream.call_late(self)

    async_get = __call__

    def get(self, timeout: float | None = None) -> Any:
        """The result; waits for it. Raises JobError if the step failed or was cancelled, TimeoutError after `timeout`
        s."""
        self.stream.refuse_inside(f"waiting for a step of {self.name}")
        seconds(timeout)
        if not self.stream.waiting(self.computed, timeout):
            raise TimeoutError(f"step {self.number} of {self.name} did not end in {timeout} s; it is {self.state}")
        self.stream.callers.got(self.record)
        if self.error is not None:
            if self.error_claim.take():
                self.stream.forget(self.by, self)
            raise self.error
        if self.state == "cancelled":
            raise cancelled(self)
        return self.result

    def done(self) -> bool:
        """Has its work ended, well or badly?"""
        return self.computed.opened

    def cancel(self) -> bool:
        """Take it out of the queue. True if it will not run; False if it runs or has run."""
        return self.strike()

    def strike(self, error: BaseException | None = None) -> bool:
        """Cancel it, with the error that its `get` raises."""
        if not self.start_claim.take():
            return self.state == "cancelled"
        self.record.state, self.work, self.error = "cancelled", nothing, error
        self.computed.open()
        return True

    def __repr__(self) -> str:
        return clean(f"<step {self.number} of {self.name}: {self.state}>")


class Late:
    """A callback that was registered after its step had ended: a place in the queue of its own."""

    def __init__(self, step: Step):
        self.step, self.by, self.state, self.over = step, step.by, "late", Gate()
        self.name, self.reads, self.waited_for = step.name, step.reads, False


class Stopped(Exception):
    """Tells the loop of a run that it was stopped while it waited for room."""


def nothing() -> None:
    return None


def seconds(timeout: Any) -> None:
    """Refuse a timeout that is no number of seconds; after NaN seconds no wait would end."""
    if timeout is not None and not (isinstance(timeout, int | float) and timeout == timeout):
        what = "a timeout is a number of seconds, or None to wait for ever"
        raise JobError(what, values={"got": repr(timeout)[:60]}, where=here(), hint="timeout=10.0")


def name_of(function: Any) -> str:
    return getattr(function, "__name__", None) or type(function).__name__


BEHIND = "correct the function, and submit the cancelled steps again: the step itself has finished"


def step_error(step: Step, error: BaseException, what: str = "") -> JobError:
    """The error of a step, from the original one; of one of ours the values and the hint stay parts of their own."""
    parts = error if isinstance(error, MinflowError) else MinflowError(message_of(error))
    result = JobError(
        f"{what or 'the work'} of step {step.number} of {step.name} raised {type(error).__name__}: {parts.what}",
        values={**parts.values, "then": f"the steps that {whose(step)} had queued behind it were cancelled"},
        where=parts.where or (what and raised_at(error)),
        hint=parts.hint
        or (BEHIND if what else "correct it and submit again: variables are those of the last finished step"),
    )
    result.__cause__ = error
    result.step = step.number
    return result


def whose(step: Step) -> str:
    return "the same run" if step.owner is not None else "the same caller"


def cancelled(step: Step, by: Step | None = None) -> JobError:
    why = f"step {by.number} of {by.name} failed before it" if by is not None else "it was taken out of the queue"
    return JobError(f"step {step.number} of {step.name} was cancelled", values={"why": why}, hint="call the job again")


def check_arity(name: str, callback: Callable) -> None:
    """A callback takes one argument; say so here and not on the worker, many steps later."""
    try:
        inspect.signature(callback).bind(None)
    except ValueError:  # a builtin without a signature
        return
    except TypeError:
        takes = str(inspect.signature(callback))
        what = f"the callback {name_of(callback)} of {name} cannot be called with one argument"
        hint = "a function of one argument, the result; several results come as one tuple"
        raise JobError(what, where=here(), values={"it takes": takes}, hint=hint) from None
