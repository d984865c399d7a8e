"""Steps of graphs in flight, which write tensors of the program on another thread (`graph.submit`).

While there are some, the dispatcher asks `OrderedReads` for the mode; at other times an op costs nothing more. Read
next: `job/queue/ordering.py`, which waits.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from . import dispatch
from .mode import current


class OrderedReads:
    """In place of the current mode while steps of graphs are in flight: an op that reads a tensor waits for the steps
    that write it.
    """

    @property
    def trace(self) -> Any:
        return current().trace

    def run(self, op: Any, inputs: Sequence, attrs: Mapping[str, Any]) -> Any:
        mode = current()
        if mode.trace is None:
            for x in inputs:
                before_read(x)
        return mode.run(op, inputs, attrs)


IN_FLIGHT: list[Any] = []  # steps of graphs that were submitted and whose callbacks have not ended
IN_FLIGHT_LOCK = threading.Lock()
# (worker's thread, generator) -> key and first counter of each run of the step, drawn when it was submitted
DRAWS: dict[tuple[int, Any], list[Any]] = {}


def set_in_flight(step: Any, active: bool) -> None:
    """Add a step of a graph to those in flight, or remove it."""
    with IN_FLIGHT_LOCK:
        if active:
            IN_FLIGHT.append(step)
        elif step in IN_FLIGHT:
            IN_FLIGHT.remove(step)
        dispatch.current = OrderedReads if IN_FLIGHT else current  # type: ignore[assignment]  # it has `run`, too


def wait_for_steps() -> None:
    """Wait for the steps of graphs in flight: before something that reads or writes more than single tensors."""
    for step in tuple(IN_FLIGHT):
        step.wait_before_use()


def before_read(x: Any) -> None:
    """Call before a read of a tensor: wait for the steps in flight that write its storage."""
    if IN_FLIGHT and (counter := getattr(x, "_version_counter", None)) is not None:
        users = (counter.storage or counter).external_users
        if users is not None and users.order is not None:
            users.order.before_read(users)


def next_draw(generator: Any, count: int) -> Any:
    """Key and first counter of the random numbers of a run of a plan."""
    submitted = DRAWS.get((threading.get_ident(), generator))
    return submitted.pop(0) if submitted else generator.draw(count)
