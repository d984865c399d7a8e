"""Checks of elements on a device other than the CPU, which wait for the next value that the program reads.

A check on the CPU reads the elements. Elsewhere that would wait for all earlier work, so a check keeps the few numbers
that decide it on the device. They are read before the next value that the program reads (`backend.to_host`); the check
then raises its error with the line where it began. Equal checks at one line share their numbers, by the elementwise
maximum, so a loop that reads nothing does not let them grow. Read next: `ops/checks.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from contextvars import ContextVar
from typing import NamedTuple

from .backend import BEFORE_READ, Array, Backend, backend_of_array
from .base.errors import MinflowError
from .base.locks import new_lock
from .context import PerContext
from .source_location import here

MAX_PENDING = 256  # number of checks at which they are read, even if the program reads nothing


class Check(NamedTuple):
    """A check that waits.

    numbers: the numbers that decide it, a float64 array (n,) on the device.  report: takes them as floats, and returns
    the error, or None; it may warn.  where: the line where the check began, for the error.
    """

    backend: Backend
    numbers: Array
    report: Callable[..., MinflowError | None]
    where: str


pending: PerContext[dict[Hashable, Check]] = PerContext(dict)
LOCK = new_lock()  # of all pending checks: the worker of a Context runs kernels beside its other threads
PLACE: ContextVar[Callable[[], str] | None] = ContextVar("place", default=None)  # of the call that a plan runs
# While calls are captured: their keys and checks, each of which waits again after every launch.
CAPTURED: ContextVar[list[tuple[Hashable, Check]] | None] = ContextVar("captured", default=None)


def defer(key: Hashable, numbers: Sequence[Array], report: Callable[..., MinflowError | None]) -> None:
    """Check 0-d arrays of a device when the program reads a value.

    key: checks with equal keys at one line are equal.  report: see `Check`; it gets the largest of each number.
    """
    backend, checks, place = backend_of_array(numbers[0]), pending(), PLACE.get()
    xp, where = backend.namespace, here() if place is None else place()
    check = Check(backend, xp.stack([x.astype("float64") for x in numbers]), report, where)
    if (captured := CAPTURED.get()) is not None:
        captured.append(((key, where, backend), check))
        return
    if len(checks) >= MAX_PENDING:
        report_pending(backend)
    add((key, where, backend), check)


def add(key: Hashable, check: Check) -> None:
    """Let a check wait, or its numbers join those of an equal one."""
    with LOCK:
        known = pending().setdefault(key, check)
        if known is not check:
            check.backend.namespace.maximum(known.numbers, check.numbers, out=known.numbers)


def repeat(key: Hashable, check: Check) -> None:
    """Let a check of captured calls wait, whose next launch overwrites its numbers."""
    add(key, check._replace(numbers=check.backend.copy(check.numbers)))


def report_pending(backend: Backend) -> None:
    """Raise the error of the first check on this device that has failed."""
    with LOCK:
        checks = pending()
        mine = [checks.pop(key) for key, check in list(checks.items()) if check.backend is backend]
    if not mine:
        return
    numbers = iter(backend.to_host(backend.namespace.concatenate([check.numbers for check in mine])).tolist())
    for check in mine:
        error = check.report(*[next(numbers) for _ in range(check.numbers.size)])
        if error is not None:
            error.where = check.where
            raise error


BEFORE_READ.append(report_pending)
