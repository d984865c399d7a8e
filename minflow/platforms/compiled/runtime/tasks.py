"""Tasks: compiled kernels with their packed arguments, split into chunks.

A *task* is an instruction (`instructions.py`) with its arguments: addresses of arrays, sizes, tables. Chunks depend on
shapes alone and write disjoint memory, so any thread may run any of them; a task starts when the one before is
finished. The *builder* of an op returns the tasks for arrays at fixed addresses: a plan calls it once, then runs them
without Python. Read next: `instructions.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from .pointers import at
from .task_scheduler import ALIGN, Program, rounded
from .threads import RECORDERS, number

BYTES = 4  # bytes of an element


class Task(NamedTuple):
    """A task.

    code: address of its instruction.  words: int64, its packed arguments.  chunks: number of chunks.  scratch: bytes
    per thread.  name: for listings.  holds: arrays to keep alive.  refused: None, or one int64 per chunk that is
    nonzero if an array has elements that the op refuses; whoever runs the task checks it, and calls NumPy's kernel for
    the error.
    """

    code: int
    words: np.ndarray
    chunks: int
    scratch: int
    name: str
    holds: tuple = ()
    refused: np.ndarray | None = None


class Workspace:
    """Workspace that the tasks of one op share: packed filters, a partial sum per chunk. Builders allocate from it.

    A builder first runs with base 0, only to compute the size of the workspace; that result is discarded.
    """

    def __init__(self, base: int = 0):
        self.base, self.used = base, 0

    def take(self, count: int) -> int:
        """Allocate `count` float32, uninitialized; return their address."""
        self.used, start = self.used + rounded(count * BYTES, ALIGN), self.used
        return self.base + start

    def array(self, shape: tuple[int, ...]) -> np.ndarray:
        """Allocate uninitialized float32 as a NumPy array."""
        place = self.take(math.prod(shape))
        return np.asarray(PointerArray(place, shape)) if self.base else np.empty(shape, "f4")


class PointerArray:
    """float32 at an address, as NumPy's array interface."""

    def __init__(self, address: int, shape: tuple[int, ...]):
        self.__array_interface__ = {"data": (address, False), "shape": shape, "typestr": "<f4", "version": 3}


Builder = Callable[
    ..., "list[Task] | None"
]  # (arrays, outs, workspace, **attrs) -> tasks; None for arrays without a kernel


class PreparedTasks:
    """The tasks of one op for arrays at fixed addresses, to be run by a call.

    The ops of a plan share one workspace, since they run one after the other: `join`. bytes, scratch: of the workspace,
    and of the scratch memory of all threads that may run the tasks.
    """

    __slots__ = ("build", "steps", "bytes", "scratch", "program")

    def __init__(self, build: Callable[[Workspace], list[Task] | None]):
        workspace = Workspace()
        self.build, self.steps, self.bytes = build, build(workspace), workspace.used
        scratch = max([step.scratch for step in self.steps or ()], default=0)
        self.scratch = number() * scratch if scratch else 0
        self.program: Program | None = None

    def settle(self, memory: np.ndarray) -> None:
        """Rebuild the tasks with their workspace in `memory`."""
        if self.bytes:
            steps = self.build(Workspace(rounded(at(memory), ALIGN))) or []
            self.steps = [step._replace(holds=(*step.holds, memory)) for step in steps]

    def __call__(self) -> None:
        if RECORDERS:
            RECORDERS[0].run(self.steps or [])
            return
        self.program = self.program or Program(self.steps or [])
        self.program()

    @staticmethod
    def join(groups: Sequence[Sequence[PreparedTasks]]) -> list[Program]:
        """Merge each group of adjacent ops into one program.

        The groups must be all of a plan, since they share one workspace.
        """
        memory = np.empty(max([one.bytes for group in groups for one in group]) + ALIGN, np.uint8)
        for group in groups:
            for one in group:
                one.settle(memory)
        return [Program([step for one in group for step in one.steps or []]) for group in groups]


def prepared(builder: Builder, arrays: Sequence, outs: Sequence[np.ndarray], **attrs) -> PreparedTasks | None:
    """Prepare an op; None if its builder has no tasks for these arrays. The workspace is set by `settle` or `join`."""
    tasks = PreparedTasks(partial(builder, arrays, outs, **attrs))
    return None if tasks.steps is None else tasks


class CheckedTasks:
    """A call of tasks that may refuse the elements of an array; then NumPy's kernel runs, and raises the error."""

    def __init__(self, tasks: PreparedTasks, numpy_call: Callable):
        self.tasks, self.numpy_call = tasks, numpy_call
        tasks.settle(np.empty(tasks.bytes + ALIGN, np.uint8))
        self.steps = tasks.steps or []
        self.refused = [step.refused for step in self.steps if step.refused is not None]

    def __call__(self) -> None:
        self.tasks()
        for refused in self.refused:
            if any(refused.tolist()):
                self.numpy_call()
