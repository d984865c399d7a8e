"""Frozen records of what happens, and who listens.

Nothing is recorded for nobody: `if StepDone in LISTENERS: emit(StepDone(...))`. Views and widgets subscribe; the engine
never knows them. A listener that raises is not caught here: it is the caller's own code.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from threading import RLock
from typing import NamedTuple

from .locks import new_lock

LISTENERS: dict[type, tuple[Callable, ...]] = {}  # of each class that somebody listens to
LOCK = new_lock(RLock)  # a listener that Python frees may end its subscription in the middle of another one


class BackwardDone(NamedTuple):
    """A call of backward has ended. nodes: how many nodes it visited.  where: the line that called it, by
    `ir.where_text`.
    outputs: the tensors that it started from.
    """

    nodes: int
    where: tuple | None
    outputs: tuple = ()


class StepDone(NamedTuple):
    """An optimizer has updated its parameters. step: number of this step, from 1; lr: of each group."""

    optimizer: object
    step: int
    lr: tuple[float, ...]


class LoaderPassed(NamedTuple):
    """A DataLoader has given its last batch. started: when the first was asked for, by `time.perf_counter`."""

    loader: object
    started: float


class GraphCompiled(NamedTuple):
    """An nn.Graph has made a plan. number: from 0; above 0, `changes` says why: (what, old, new).

    seconds: of "trace", "passes" and "plan".
    """

    graph: object
    number: int
    changes: tuple[tuple[str, str, str], ...]
    seconds: dict[str, float]


def emit(record: object) -> None:
    """Hand a record to everybody who subscribed to its class."""
    for listener in LISTENERS.get(type(record), ()):
        listener(record)


@contextmanager
def subscribe(kind: type, listener: Callable):
    """Within the block, `listener(record)` is called for every record of the class `kind`."""
    with LOCK:
        LISTENERS[kind] = (*LISTENERS.get(kind, ()), listener)
    try:
        yield
    finally:
        with LOCK:
            left = list(LISTENERS[kind])
            left.remove(listener)
            LISTENERS[kind] = tuple(left)  # at once: others emit without the lock, and who stays must hear all
            if not left:
                del LISTENERS[kind]
