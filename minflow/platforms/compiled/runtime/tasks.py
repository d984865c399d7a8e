"""Steps: what a compiled kernel is, cut into chunks, before anybody runs it.

A kernel of the machine is an *instruction*: a compiled C function of three numbers, the address of the words that it
reads (addresses of arrays, sizes, tables), which chunk it is to do, and the address of memory that is its thread's
alone. A *step* is an instruction with its words. Chunks depend on shapes alone and write apart from each other, so any
thread may do any of them; a step begins when all chunks of the one before are done. An op's *builder* gives the steps
for arrays that stay where they are: a plan asks it once, and then runs steps without Python. Read next: `threads.py`.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ..codegen.jit import Code, intrinsic, ir, types
from ..codegen.llvm import WORD
from .pointers import at
from .task_scheduler import ALIGN, Program, rounded
from .threads import RECORDERS, number

DOUBLE = ir.DoubleType()
BYTES = 4  # of a number
ARGUMENTS = 12  # of a routine: code that instructions call by its address, which is among their words


class Step(NamedTuple):
    """code: address of an instruction.  words: int64, what it reads.  chunks: how many there are.

    scratch: bytes of memory that each thread needs for itself.  name: for listings.  holds: what must stay alive.
    refused: None, or int64 for each chunk, which is not 0 where an array holds what NumPy's kernel is to refuse; who
    runs the step looks at it.
    """

    code: int
    words: np.ndarray
    chunks: int
    scratch: int
    name: str
    holds: tuple = ()
    refused: np.ndarray | None = None


NOTHING_TO_DO = 0, 0  # in place of a step's code and words


class Room:
    """Memory that the steps of one op share: packed filters, a partial sum for each chunk. A builder takes from it.

    The first time a builder runs with base 0, to learn how much it takes; what it gives then is thrown away.
    """

    def __init__(self, base: int = 0):
        self.base, self.used = base, 0

    def take(self, count: int) -> int:
        """The address of so many float32, which hold anything."""
        self.used, start = self.used + rounded(count * BYTES, ALIGN), self.used
        return self.base + start

    def array(self, shape: tuple[int, ...]) -> np.ndarray:
        """float32, which hold anything, as an array of NumPy."""
        place = self.take(math.prod(shape))
        return np.asarray(Placed(place, shape)) if self.base else np.empty(shape, "f4")


class Placed:
    """float32 at an address, of which NumPy makes an array."""

    def __init__(self, address: int, shape: tuple[int, ...]):
        self.__array_interface__ = {"data": (address, False), "shape": shape, "typestr": "<f4", "version": 3}


Builder = Callable[..., "list[Step] | None"]  # (arrays, outs, room, **attrs); None where it does not fit


def instruction(function: Callable) -> Callable[..., Step]:
    """Decorates a compiled kernel `(words, chunk, scratch)`; gives a function that makes steps of it."""
    code = Code(function)

    def step(chunks: int, *words: object, scratch: int = 0) -> Step:
        """words: arrays (their addresses), ints, and floats, which are read by `real_at`; of a step that this one does
        itself, its code and its words (0 and 0 where there is none). scratch: in float32.
        """
        inner = [word for word in words if isinstance(word, Step)]
        words = tuple(
            [
                x
                for word in words
                for x in (word[:2] if isinstance(word, Step) else NOTHING_TO_DO if word is None else (word,))
            ]
        )
        holds = tuple([word for word in words if isinstance(word, np.ndarray)])
        return Step(
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


class Prepared:
    """What is to be done for one op whose arrays stay where they are; a call does it.

    The prepared ops of a plan share their rooms, since they run one after the other: `join`.
    bytes, scratch: of the room, and of what all threads that may run it take for themselves.
    """

    def __init__(self, build: Callable[[Room], list[Step] | None]):
        room = Room()
        self.build, self.steps, self.bytes = build, build(room), room.used
        self.scratch = number() * max([step.scratch for step in self.steps or ()], default=0)
        self.program: Program | None = None

    def settle(self, memory: np.ndarray) -> None:
        """Have the room there."""
        if self.bytes:
            steps = self.build(Room(rounded(at(memory), ALIGN))) or []
            self.steps = [step._replace(holds=(*step.holds, memory)) for step in steps]

    def __call__(self) -> None:
        if RECORDERS:
            RECORDERS[0].run(self.steps or [])
            return
        self.program = self.program or Program(self.steps or [])
        self.program()

    @staticmethod
    def join(groups: Sequence[Sequence[Prepared]]) -> list[Program]:
        """A call for each group of neighbours; together they are all that a plan has."""
        memory = np.empty(max([one.bytes for group in groups for one in group]) + ALIGN, np.uint8)
        for group in groups:
            for one in group:
                one.settle(memory)
        return [Program([step for one in group for step in one.steps or []]) for group in groups]


def prepared(builder: Builder, arrays: Sequence, outs: Sequence[np.ndarray], **attrs) -> Prepared | None:
    """None where the builder finds that it does not fit. It has no room before `settle` or `join`."""
    found = Prepared(lambda room: builder(arrays, outs, room, **attrs))
    return None if found.steps is None else found


class Checked:
    """A call of its own, of steps that may refuse what an array holds: then NumPy's kernel is called, which says so."""

    def __init__(self, found: Prepared, plain: Callable):
        self.found, self.plain = found, plain
        found.settle(np.empty(found.bytes + ALIGN, np.uint8))
        self.refused = [step.refused for step in found.steps or [] if step.refused is not None]

    def __call__(self) -> None:
        self.found()
        for refused in self.refused:
            if any(refused.tolist()):
                self.plain()


# ---- what instructions read ------------------------------------------------------------------------------------------


@intrinsic
def word_at(context, words, i):
    """Word number i, an int64."""

    def code(context, builder, signature, arguments):
        return builder.load(builder.gep(builder.inttoptr(arguments[0], WORD.as_pointer()), [arguments[1]]))

    return types.int64(types.int64, types.int64), code


@intrinsic
def real_at(context, words, i):
    """Word number i, a float64."""

    def code(context, builder, signature, arguments):
        return builder.load(builder.gep(builder.inttoptr(arguments[0], DOUBLE.as_pointer()), [arguments[1]]))

    return types.float64(types.int64, types.int64), code


@intrinsic
def put_real(context, words, i, real):
    """Write a float64 where `real_at` reads it."""

    def code(context, builder, signature, arguments):
        pointer = builder.inttoptr(arguments[0], DOUBLE.as_pointer())
        builder.store(arguments[2], builder.gep(pointer, [arguments[1]]))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.float64), code


@intrinsic
def run_routine(context, address, a, b, c, d, e, f, g, h, i, j, k, m):
    """Run a routine."""

    def written(context, builder, signature, arguments):
        kind = ir.FunctionType(ir.VoidType(), [WORD] * ARGUMENTS)
        builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), arguments[1:])
        return context.get_dummy_value()

    return types.void(*[types.int64] * (ARGUMENTS + 1)), written


@intrinsic
def words_from(context, address):
    """A pointer to words, which is read as an array is."""

    def code(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], WORD.as_pointer())

    return types.CPointer(types.int64)(types.int64), code
