"""Events: frozen records of what happened, and their listeners.

Records are made only if there are listeners: `if StepDone in LISTENERS: emit(StepDone(...))`. Views and widgets
subscribe; the engine must not import them. Exceptions of a listener
are not caught here.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from threading import RLock
from typing import Any, NamedTuple

from ..context import current_context
from .locks import new_lock

LISTENERS: dict[type, tuple[Callable, ...]] = {}  # class of an event -> its listeners, if it has any
LOCK = new_lock(RLock)  # reentrant: the garbage collector may end a subscription during another one


class BackwardDone(NamedTuple):
    """A call of backward has ended. nodes: number of gradients it computed.  where: the line that called it, for
    `ir.where_text`.  outputs: the tensors that it started from.
    """

    nodes: int
    where: tuple | None
    outputs: tuple = ()
    rank: int = 0


class StepDone(NamedTuple):
    """An optimizer has updated its parameters. step: index of this step, from 1.  lr: learning rate per group."""

    optimizer: object
    step: int
    lr: tuple[float, ...]
    rank: int = 0


class LoaderPassed(NamedTuple):
    """A DataLoader has returned its last batch. started: `time.perf_counter()` when the first was requested."""

    loader: object
    started: float
    rank: int = 0


class GraphCompiled(NamedTuple):
    """An nn.Graph has made a plan. number: index of the plan, from 0.  changes: (what, old, new), the reasons for a
    plan after the first.  seconds: "trace", "passes" and "plan" -> duration.
    """

    graph: object
    number: int
    changes: tuple[tuple[str, str, str], ...]
    seconds: dict[str, float]
    rank: int = 0


def emit(record: Any) -> None:
    """Call all listeners of the record's class. Sets its `rank` to that of this thread."""
    record = record._replace(rank=current_context().rank)
    for listener in LISTENERS.get(type(record), ()):
        listener(record)


@contextmanager
def subscribe(kind: type, listener: Callable):
    """Call `listener(record)` for every record of the class `kind` that is emitted within the block."""
    with LOCK:
        LISTENERS[kind] = (*LISTENERS.get(kind, ()), listener)
    try:
        yield
    finally:
        with LOCK:
            left = list(LISTENERS[kind])
            left.remove(listener)
            LISTENERS[kind] = tuple(left)  # in one assignment, since `emit` does not take the lock
            if not left:
                del LISTENERS[kind]
