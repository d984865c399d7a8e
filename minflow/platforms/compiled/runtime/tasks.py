"""Tasks: compiled kernels with their packed arguments, split into chunks.

An *instruction* is a compiled C function of three integers: the address of its packed arguments (`words`: addresses of
arrays, sizes, tables), the chunk to compute, and the address of the thread's scratch memory. A *task* (`Task`) is an
instruction with its words. Chunks depend on shapes alone and write disjoint memory, so any thread may run any of them;
a task starts when the one before is finished. The *builder* of an op returns the tasks for arrays at fixed addresses: a
plan calls it once, then runs them without Python. Read next: `threads.py`.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ..codegen.jit import CompiledFunction, intrinsic, ir, types
from ..codegen.llvm import WORD
from .pointers import at
from .task_scheduler import ALIGN, Program, rounded
from .threads import RECORDERS, number

DOUBLE = ir.DoubleType()
BYTES = 4  # bytes of an element
ARGUMENTS = 12  # of a routine: code that instructions call by an address among their words


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


NOTHING_TO_DO = 0, 0  # code and words of an absent task


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


Builder = Callable[..., "list[Task] | None"]  # (arrays, outs, room, **attrs) -> tasks; None for arrays without a kernel


def instruction(function: Callable) -> Callable[..., Task]:
    """Decorates a compiled kernel `(words, chunk, scratch)`; returns a function that creates tasks of it."""
    code = CompiledFunction(function)

    def step(chunks: int, *words: object, scratch: int = 0) -> Task:
        """Create a task.

        words: arrays (passed as addresses), ints, floats (read by `real_at`), and tasks that this one runs itself
        (passed as code and words, 0 and 0 for None). scratch: in float32.
        """
        inner = [word for word in words if isinstance(word, Task)]
        words = tuple(
            [
                x
                for word in words
                for x in (word[:2] if isinstance(word, Task) else NOTHING_TO_DO if word is None else (word,))
            ]
        )
        holds = tuple([word for word in words if isinstance(word, np.ndarray)])
        return Task(
            code.address,
            np.array([as_word(word) for word in words], "i8"),
            chunks,
            scratch * BYTES,
            function.__name__,
            sum([step.holds for step in inner], holds),
        )

    step.__name__, step.__doc__ = function.__name__, inspect.getdoc(function)
    return step


def as_word(word: object) -> int:
    if isinstance(word, np.ndarray):
        return at(word)
    return int(np.float64(word).view("i8")) if isinstance(word, float) else int(word)


class PreparedTasks:
    """The tasks of one op for arrays at fixed addresses, to be run by a call.

    The ops of a plan share one workspace, since they run one after the other: `join`. bytes, scratch: of the workspace,
    and of the scratch memory of all threads that may run the tasks.
    """

    def __init__(self, build: Callable[[Workspace], list[Task] | None]):
        room = Workspace()
        self.build, self.steps, self.bytes = build, build(room), room.used
        self.scratch = number() * max([step.scratch for step in self.steps or ()], default=0)
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
    found = PreparedTasks(lambda room: builder(arrays, outs, room, **attrs))
    return None if found.steps is None else found


class CheckedTasks:
    """A call of tasks that may refuse the elements of an array; then NumPy's kernel runs, and raises the error."""

    def __init__(self, found: PreparedTasks, plain: Callable):
        self.found, self.plain = found, plain
        found.settle(np.empty(found.bytes + ALIGN, np.uint8))
        self.steps = found.steps or []
        self.refused = [step.refused for step in self.steps if step.refused is not None]

    def __call__(self) -> None:
        self.found()
        for refused in self.refused:
            if any(refused.tolist()):
                self.plain()


# ---- access to words -------------------------------------------------------------------------------------------------


@intrinsic
def word_at(context, words, i):
    """Load word i as int64."""

    def code(context, builder, signature, arguments):
        return builder.load(builder.gep(builder.inttoptr(arguments[0], WORD.as_pointer()), [arguments[1]]))

    return types.int64(types.int64, types.int64), code


@intrinsic
def real_at(context, words, i):
    """Load word i as float64."""

    def code(context, builder, signature, arguments):
        return builder.load(builder.gep(builder.inttoptr(arguments[0], DOUBLE.as_pointer()), [arguments[1]]))

    return types.float64(types.int64, types.int64), code


@intrinsic
def put_real(context, words, i, real):
    """Store a float64 as word i, for `real_at`."""

    def code(context, builder, signature, arguments):
        pointer = builder.inttoptr(arguments[0], DOUBLE.as_pointer())
        builder.store(arguments[2], builder.gep(pointer, [arguments[1]]))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.float64), code


@intrinsic
def run_routine(context, address, a, b, c, d, e, f, g, h, i, j, k, m):
    """Call a routine by its address."""

    def written(context, builder, signature, arguments):
        kind = ir.FunctionType(ir.VoidType(), [WORD] * ARGUMENTS)
        builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), arguments[1:])
        return context.get_dummy_value()

    return types.void(*[types.int64] * (ARGUMENTS + 1)), written


@intrinsic
def words_from(context, address):
    """Return a pointer to words, to be indexed like an array."""

    def code(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], WORD.as_pointer())

    return types.CPointer(types.int64)(types.int64), code
