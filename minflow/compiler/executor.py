"""Run a graph: one call of a prepared plan, with the kernels of eager mode, on C-contiguous arrays as in eager mode.

The `plan_lock` of a Context is held while a graph or job is built, while a plan runs (so in the kernel of a custom op,
and in a scheduler's step at the end of a training step), while variables are copied or loaded, and during a fork. It is
reentrant, and its owner may build and run other plans, but must not wait for the worker of the job functions, which
needs it for every step: `job/queue/stream.py` refuses that. A running plan cannot be run inside itself, since its arena
is in use. Ranks that run in one process have a lock each, so a plan may wait for that of another rank.

BUILD_LOCK is process-wide and held while a graph or job is built, inside the `plan_lock`: a build watches functions of
other modules, and stops the cycle collector. Its owner must not wait for another rank.

Read next: `passes/`, `plan.py`.
"""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from contextvars import ContextVar

from ..core.backend import Array, largest_tensors
from ..core.base.errors import ContextError, GraphError, MinflowError, OutOfMemoryError, clean
from ..core.base.interrupts import ContextVarScope
from ..core.context import PROCESS_CONTEXT, Context, current_context
from ..core.deferred import PLACE
from ..core.host.float_warnings import QUIET, get_errors, set_errors
from ..core.ir import Node, where_text
from ..core.kernels import launch
from ..core.source_location import here
from ..core.spec import cpu
from .memory_limit import HINT

BUILD_LOCK = threading.RLock()
# Why the current code must not wait for the end of a step: "the build of G_0". Workers of a loader inherit it.
INSIDE: ContextVar[str] = ContextVar("inside", default="")


def run_node(node: Node, arrays: list) -> list[Array]:
    outs = launch(node.op, arrays, node.attrs, node.out_specs)
    return list(outs) if node.op.many else [outs]


class collector_waiting(ContextVarScope):
    """Disable the cycle collector.

    A trace and its passes keep all that they create, so scanning it again and again is wasted time.
    """

    def __init__(self) -> None:
        pass

    def __enter__(self) -> None:
        self.close = gc.enable if gc.isenabled() else gc.disable
        try:
            gc.disable()
        except BaseException:  # an interrupt just after acquiring
            self.close()
            raise


MANY_OBJECTS = 100_000  # of a build: scanning them takes as much time as a step
last_aging = [-1]  # number of full collections when objects were aged last


def age_objects() -> None:
    """Move the objects of a large build to the oldest generation, so that the next collections do not scan them.

    At most once between two full collections, which free what was not in use.
    """
    full = gc.get_stats()[-1]["collections"]
    if gc.get_count()[0] > MANY_OBJECTS and not gc.get_freeze_count() and last_aging[0] != full:
        gc.freeze()
        gc.unfreeze()
        last_aging[0] = full


# ---- a step of a plan ------------------------------------------------------------------------------------------------


def holds_lock() -> bool:
    """True if this thread holds the lock of plans: it builds a graph, runs a plan, or copies variables."""
    return current_context().plan_lock._is_owned()  # Python's Condition relies on this method of RLock, too


def fork_context() -> Context:
    with suppress(ContextError):  # a fork must not fail
        return current_context()
    return PROCESS_CONTEXT


def hold_plans() -> None:
    """Before a fork: wait for the running step and build, so that the child has their complete results."""
    fork_context().plan_lock.acquire()
    BUILD_LOCK.acquire()


def release_plans() -> None:
    BUILD_LOCK.release()
    fork_context().plan_lock.release()


if hasattr(os, "register_at_fork"):  # Windows cannot fork
    os.register_at_fork(before=hold_plans, after_in_parent=release_plans, after_in_child=release_plans)


def run(plan, arrays: Sequence[Array], timed: bool = False, watch=None) -> list[Array]:
    """Run a `plan.Plan` once; return its results in new arrays.

    An error of a kernel names the module and line of its node.
    """
    if plan.busy:
        raise GraphError(
            "a graph is called while it runs, by an operation of its own or a __del__",
            where=here(),
            values={"it runs": f"{plan.failed and plan.failed.op} {place_of(plan.failed)}"},
            hint="call it before or after; a graph of its own for the inner call",
        )
    before = get_errors()
    place = None if plan.device is cpu else PLACE.set(lambda: place_of(plan.failed))
    try:
        set_errors(QUIET)
        plan.busy = True
        if plan.capture is not None:
            plan.capture.before_run(plan)
        return run_static(plan, arrays) if plan.static_io and not (timed or watch) else plan.run(arrays, timed, watch)
    except MinflowError as error:
        error.where = place_of(plan.failed) or error.where
        raise
    except MemoryError as error:
        raise OutOfMemoryError(
            f"{plan.failed and plan.failed.op} found no memory for what it computes with: {error}",
            values={} if plan.device is cpu else largest_tensors(plan.device),
            where=place_of(plan.failed),
            hint=HINT,
        ) from error
    except Exception as error:
        error.add_note(clean(f"in the graph: {plan.failed and plan.failed.op} {place_of(plan.failed)}"))
        raise
    finally:
        set_errors(before)
        if place is not None:
            PLACE.reset(place)
        plan.busy = False
        if plan.forgotten:
            plan.forget()


def run_static(plan, arrays: Sequence[Array]) -> list[Array]:
    """Run a plan that is `static_io`, as `Plan.run` does."""
    calls, plan.node_of = plan.units
    plan.running = left = iter(calls)
    plan.runs += 1
    if plan.direct is not None:
        next(left)
        return plan.direct(arrays)
    places, results = plan.static_io
    for place, array in zip(places, arrays):
        place[...] = array
    for call in left:
        call()
    return [results[0].copy()] if len(results) == 1 else [array.copy() for array in results]


def place_of(node: Node | None) -> str:
    """ "in model.fc1, called at In[9]:5"."""
    if node is None:
        return ""
    line = where_text(node.where)
    return f"in {node.scope.lstrip('/')}, called at {line}" if node.scope else f"at {line}"
