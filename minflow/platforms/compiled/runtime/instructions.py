"""Instructions: compiled kernels with named parameters, called by address with packed arguments.

A thread runs a chunk of any task by three integers, so all instructions have one C signature: the address of the
packed arguments (`words`, 64 bits each), the chunk to compute, and the address of the thread's scratch memory.
`@instruction` generates this entry: it loads the arguments in the order of the declared parameters, and calls the
kernel, which LLVM inlines. In Python, calling an instruction packs its arguments into a task. Read next: `threads.py`.
"""

from __future__ import annotations

import functools
import inspect
import struct
from collections.abc import Callable
from typing import Any, NamedTuple, get_type_hints

import numpy as np

from ..codegen.jit import CompiledFunction, compiled, emits, ir, types
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
        self.declared, self.names = [*self.kinds.items()], (*self.kinds,)
        self.signature = inspect.Signature(
            [p.replace(kind=p.VAR_POSITIONAL) if self.kinds[p.name] is Words else p for p in parameters]
        )
        self.__name__, self.__doc__ = function.__name__, inspect.getdoc(function)

    def __call__(self, chunks: int, *arguments: object, scratch: int = 0, **named: object) -> Task:
        """Create a task of `chunks` chunks, each with `scratch` float32 of scratch memory.

        Arguments are arrays, passed as addresses, and numbers. Raises TypeError if one is missing, unknown, or of the
        wrong type.
        """
        names = self.names[len(arguments) :]
        if len(arguments) + len(named) == len(self.names) and all([name in named for name in names]):
            arguments = (*arguments, *[named[name] for name in names])  # as `bind` does, in less time
        else:
            try:
                arguments = self.signature.bind(*arguments, **named).args
            except TypeError as error:
                raise TypeError(f"instruction {self.__name__}: {error}") from None
        words: list[int] = []
        holds: list[np.ndarray] = []
        further = self.declared[-1:] * (len(arguments) - len(self.declared))  # those of a parameter `Words`
        for (name, kind), argument in zip(self.declared + further, arguments):
            if kind is None and argument.__class__ is int:
                words.append(argument)
            else:
                self.pack(name, kind, argument, words, holds)
        return Task(self.address, np.array(words, "i8"), chunks, scratch * BYTES, self.__name__, tuple(holds))

    def pack(self, name: str, kind: Any, argument: Any, words: list[int], holds: list[np.ndarray]) -> None:
        """Append the words of an argument, and the arrays that it keeps alive."""
        if kind is None or kind is Words:
            if isinstance(argument, np.ndarray):
                words.append(at(argument))
                holds.append(argument)
            elif isinstance(argument, (int, np.integer, np.bool_)):
                words.append(int(argument))
            else:
                raise TypeError(f"instruction {self.__name__}: {name} must be an array or an integer, got {argument!r}")
        elif kind is float and isinstance(argument, (float, int, np.number)):
            words += struct.unpack("q", struct.pack("d", argument))
        elif kind is InnerTask and argument is None:
            words += NO_TASK
        elif kind is InnerTask and isinstance(argument, Task):
            words += argument.code, at(argument.words)
            holds += argument.words, *argument.holds
        elif kind is not InnerTask and isinstance(argument, kind):
            for (field, of), value in zip(fields_of(kind).items(), argument):
                self.pack(f"{name}.{field}", of, value, words, holds)
        else:
            raise TypeError(f"instruction {self.__name__}: {name} must be {kind.__name__}, got {argument!r}")

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


# ---- for kernels: access to words, and calls by address --------------------------------------------------------------


@emits(types.int64, types.int64, types.int64)
def word_at(builder, words, i):
    """Load word i as int64."""
    return builder.load(builder.gep(builder.inttoptr(words, WORD.as_pointer()), [i]))


@emits(types.float64, types.int64, types.int64)
def real_at(builder, words, i):
    """Load word i as float64."""
    return builder.load(builder.gep(builder.inttoptr(words, DOUBLE.as_pointer()), [i]))


@emits(types.void, types.int64, types.int64, types.float64)
def put_real(builder, words, i, real):
    """Store a float64 as word i, for `real_at`."""
    pointer = builder.inttoptr(words, DOUBLE.as_pointer())
    builder.store(real, builder.gep(pointer, [i]))


@emits(types.void, *[types.int64] * (ROUTINE_ARGUMENTS + 1))
def run_routine(builder, address, a, b, c, d, e, f, g, h, i, j, k, m):
    """Call a routine by its address."""
    kind = ir.FunctionType(ir.VoidType(), [WORD] * ROUTINE_ARGUMENTS)
    builder.call(builder.inttoptr(address, kind.as_pointer()), [a, b, c, d, e, f, g, h, i, j, k, m])


@emits(types.CPointer(types.int64), types.int64)
def words_from(builder, address):
    """Return a pointer to words, to be indexed like an array."""
    return builder.inttoptr(address, WORD.as_pointer())
