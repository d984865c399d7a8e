"""Instructions: compiled kernels with named parameters, called by address with packed arguments.

A thread runs a chunk of any task by three integers, so all instructions have one C signature: the address of the
packed arguments (`words`, 64 bits each), the chunk to compute, and the address of the thread's scratch memory.
`@instruction` generates this entry: it loads the arguments in the order of the declared parameters, and calls the
kernel, which LLVM inlines. In Python, calling an instruction packs its arguments into a task. Read next: `threads.py`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, get_type_hints

import numpy as np

from ..codegen.jit import CompiledFunction, compiled, intrinsic, ir, types
from ..codegen.llvm import WORD
from .pointers import at
from .tasks import BYTES, Task

DOUBLE = ir.DoubleType()
WORD_BYTES = 8
ROUTINE_ARGUMENTS = 12  # of a routine: code that instructions call by an address among their arguments


class InnerTask(NamedTuple):
    """Parameter of an instruction that runs another task itself; packed from a Task, or from None as zeros."""

    code: int
    words: int


NO_TASK = InnerTask(0, 0)


class Words:
    """Annotation of the last parameter of an instruction: the address of all further arguments."""


class Instruction(CompiledFunction):
    """Decorates a kernel `(chunk, scratch, *parameters)`; calling it creates a task.

    A parameter is an int64: the address of an array, a size, a flag. Annotated as `float`, it is a float64; as a
    NamedTuple class, a tuple of these; as `Words`, the address of any number of further arguments. A third parameter
    `words` is not passed: it is the address of all packed arguments.
    """

    arguments = 3

    def __init__(self, function: Callable):
        super().__init__(function)
        _, _, *declared = inspect.signature(function).parameters.values()
        self.takes_words = any([p.name == "words" for p in declared])
        parameters = [p for p in declared if p.name != "words"]
        # name -> None (an int64), float, Words or a NamedTuple class
        hints = get_type_hints(function)
        self.kinds: dict[str, Any] = {p.name: hints.get(p.name) for p in parameters}
        self.signature = inspect.Signature(
            [p.replace(kind=p.VAR_POSITIONAL) if self.kinds[p.name] is Words else p for p in parameters]
        )
        self.__name__, self.__doc__ = function.__name__, inspect.getdoc(function)

    def __call__(self, chunks: int, *arguments: object, scratch: int = 0, **named: object) -> Task:
        """Create a task of `chunks` chunks, each with `scratch` float32 of scratch memory.

        Arguments are arrays, passed as addresses, and numbers. Raises TypeError if one is missing, unknown, or of the
        wrong type.
        """
        if named or len(arguments) != len(self.kinds):
            try:
                arguments = self.signature.bind(*arguments, **named).args
            except TypeError as error:
                raise TypeError(f"instruction {self.__name__}: {error}") from None
        values: list[object] = []
        kinds = [*self.kinds.items()]
        for i, argument in enumerate(arguments):
            values += self.values(*kinds[min(i, len(kinds) - 1)], argument)
        holds = [v for v in values if isinstance(v, np.ndarray)]
        for task in [a for a in arguments if isinstance(a, Task)]:
            holds += task.holds
        words = np.array([as_word(v) for v in values], "i8")
        return Task(self.address, words, chunks, scratch * BYTES, self.__name__, tuple(holds))

    def values(self, name: str, kind: Any, argument: Any) -> Sequence:
        """The values of the words of an argument."""
        if kind is float:
            return (float(argument),)
        if kind is InnerTask and (argument is None or isinstance(argument, Task)):
            return NO_TASK if argument is None else argument[:2]
        if kind in (None, Words) and isinstance(argument, (np.ndarray, int, np.integer, np.bool_)):
            return (argument,)
        if kind in (None, Words, InnerTask) or not isinstance(argument, kind):
            wanted = "an array or an integer" if kind in (None, Words) else kind.__name__
            raise TypeError(f"instruction {self.__name__}: {name} must be {wanted}, got {argument!r}")
        fields = zip(fields_of(kind).items(), argument)
        return [value for (field, of), x in fields for value in self.values(f"{name}.{field}", of, x)]

    def entry(self) -> Callable:
        """Generate `(words, chunk, scratch)`, which loads all arguments and calls the kernel."""
        scope: dict[str, Any] = {"kernel": compiled(self.function), "word_at": word_at, "real_at": real_at}
        loads, position = ["chunk", "scratch", *["words"] * self.takes_words], 0
        for kind in self.kinds.values():
            if kind is Words:
                loads.append(f"words + {position * WORD_BYTES}")
                continue
            fields = [kind] if kind in (None, float) else [*fields_of(kind).values()]
            load = [f"{'real' if x is float else 'word'}_at(words, {position + i})" for i, x in enumerate(fields)]
            if kind in (None, float):
                loads += load
            else:
                scope[kind.__name__] = kind
                loads.append(f"{kind.__name__}({', '.join(load)})")
            position += len(fields)
        exec(f"def {self.__name__}(words, chunk, scratch):\n    kernel({', '.join(loads)})", scope)
        return scope[self.__name__]


instruction = Instruction


@functools.cache
def fields_of(kind: type) -> dict[str, Any]:
    """Kind of each field of a NamedTuple class: float, or None for an int64."""
    return {field: float if hint is float else None for field, hint in get_type_hints(kind).items()}


def as_word(value: Any) -> int:
    """An argument as an int64: the address of an array, or the bits of a float64."""
    if isinstance(value, np.ndarray):
        return at(value)
    return int(np.float64(value).view("i8")) if isinstance(value, float) else int(value)


# ---- for kernels: access to words, and calls by address --------------------------------------------------------------


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
        kind = ir.FunctionType(ir.VoidType(), [WORD] * ROUTINE_ARGUMENTS)
        builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), arguments[1:])
        return context.get_dummy_value()

    return types.void(*[types.int64] * (ROUTINE_ARGUMENTS + 1)), written


@intrinsic
def words_from(context, address):
    """Return a pointer to words, to be indexed like an array."""

    def code(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], WORD.as_pointer())

    return types.CPointer(types.int64)(types.int64), code
