"""The Context of a rank: what each rank has of its own, so that several can run in one process, each on its threads.

A Context has its own random numbers, plans, job functions, names of graphs and history of warnings. Modules and
tensors belong to whoever has them; a compiled graph and a job run on their own rank only. Process-wide, on purpose: the
mutation counter, since a module that any thread changes must invalidate plans; listeners of events, which carry the
rank, since a view hears all ranks; compiled code and the worker pool. A program without ranks has one Context.
Must not know what a Context holds: modules that have state of a rank keep it in a `PerContext`.
"""

from __future__ import annotations

import contextvars
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Generic, TypeVar

from .base.errors import ContextError
from .base.interrupts import ContextVarScope

T = TypeVar("T")


class Context:
    """The state of one rank.

    rank: its index among `world_size` ranks.  plan_lock: held while a plan of this Context runs, see
    `compiler/executor.py`.  values: what `PerContext` keeps.  communicator: how it reaches other ranks, or None.
    here: returns the user's line for an error; `source_location.py` sets it.
    """

    communicator: Any = None
    here: Callable[[], str] = str

    def __init__(self, rank: int = 0, world_size: int = 1):
        self.rank, self.world_size = rank, world_size
        self.plan_lock = threading.RLock()
        self.values: dict[PerContext, Any] = {}
        CONTEXTS[id(self)] = self

    def spawn(self, function: Callable, *args: Any, name: str | None = None, start: bool = True) -> threading.Thread:
        """Start a daemon thread that runs `function(*args)` in this Context, with the default modes.

        start: False to return a thread that is not started yet.
        """
        variables = contextvars.Context()
        variables.run(CURRENT.set, self)
        thread = threading.Thread(target=variables.run, args=(function, *args), name=name, daemon=True)
        if start:
            thread.start()
        return thread

    def __repr__(self) -> str:
        return f"Context(rank={self.rank}, world_size={self.world_size})"


CONTEXTS: weakref.WeakValueDictionary[int, Context] = weakref.WeakValueDictionary()  # all of this process, by id
PROCESS_CONTEXT = Context()  # of every thread that has not entered another one
CURRENT: ContextVar[Context | None] = ContextVar("context", default=None)
SUBMIT: list[Callable[..., Any]] = []  # job/ fills it with the function behind `graph.submit`
WORLD: list[Callable[[], Any]] = []  # distributed/ fills it with `world.world`
VIRTUAL: list[Context] = []  # the Contexts of virtual ranks, while they are open


def current_context() -> Context:
    """The Context of this thread. Raises ContextError in a thread of unknown rank while virtual ranks are open."""
    return CURRENT.get() or (context_of_unbound_thread() if VIRTUAL else PROCESS_CONTEXT)


def world() -> Any:
    """The communicator of all ranks. The ranks that a launcher has started join at its first use."""
    return WORLD[0]()


def context_of_unbound_thread() -> Context:
    if threading.current_thread() is not threading.main_thread():
        raise ContextError(
            f"this thread belongs to none of the {len(VIRTUAL)} virtual ranks, which are open",
            values={"thread": threading.current_thread().name},
            where=Context.here(),
            hint="start it with current_context().spawn(function) in the code of a rank",
        )
    return PROCESS_CONTEXT


class entered(ContextVarScope):
    """Run the block in a Context."""

    variable = CURRENT

    def __init__(self, context: Context):
        super().__init__()
        self.context = context

    def value(self) -> Context:
        return self.context


@contextmanager
def virtual_contexts(count: int) -> Iterator[list[Context]]:
    """Open the Contexts of `count` virtual ranks. In the block, threads must be started by `Context.spawn`."""
    contexts = [Context(rank, count) for rank in range(count)]
    VIRTUAL[:], before = contexts, VIRTUAL[:]
    try:
        yield contexts
    finally:
        VIRTUAL[:] = before


class PerContext(Generic[T]):
    """A value that each Context has of its own. Calling it gives that of the current Context; `make` makes it then."""

    def __init__(self, make: Callable[[], T]):
        self.make = make

    def __call__(self) -> T:
        values = current_context().values
        try:
            return values[self]
        except KeyError:
            return values.setdefault(self, self.make())

    def known(self) -> list[T]:
        """Those of all Contexts that have one."""
        references = CONTEXTS.valuerefs()  # copied at once: other threads add Contexts meanwhile
        contexts = [context for reference in references if (context := reference()) is not None]
        return [context.values[self] for context in contexts if self in context.values]
