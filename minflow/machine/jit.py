"""What this room compiles, and numba, which compiles it; where everything is kept, neither is needed.

To import numba takes half a second. A process that finds all kernels compiled (`kept.py`) does without: what numba is
called by in this room's files then stands for nothing. Read next: `llvm.py`.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any

from llvmlite import ir as ir

from . import kept


class Unneeded:
    """In place of numba's names where nothing is compiled: it decorates, is called, and is derived from, to no effect.
    """

    def __init__(self, *arguments: object, **named: object):
        pass

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *arguments: object, **named: object) -> Any:
        return self

    def __mro_entries__(self, bases: tuple) -> tuple:
        return (Unneeded,)


COMPILES = not kept.load() or "numba" in sys.modules  # a program that has imported numba may bring code of its own
numba: Any
if COMPILES:
    import numba
    from numba import carray as carray, float32 as float32, float64 as float64, types as types
    from numba.core.datamodel.models import PrimitiveModel as PrimitiveModel
    from numba.extending import intrinsic as intrinsic, register_model as register_model
else:
    numba = carray = float32 = float64 = types = intrinsic = register_model = PrimitiveModel = Unneeded()

# Called by other compiled code alone.
compiled = numba.njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
inlined = numba.njit(inline="always")  # written into who calls it, instead of being compiled apart, and again there
CODES: list[Code] = []  # of this room


class Code:
    """Decorates a function of int64 that is called by its address, and that was compiled or is to be."""

    def __init__(self, function: Callable):
        self.function: Callable = function
        self.result: Any = None
        self.name = f"{function.__module__}.{function.__qualname__}"
        if function.__module__.startswith(f"{__package__}."):
            CODES.append(self)

    @functools.cached_property
    def address(self) -> int:
        return self in CODES and kept.ADDRESSES.get(self.name) or self.compile()

    @functools.cached_property
    def call(self) -> Callable[..., None]:
        """For Python, which holds no lock of its own meanwhile."""
        return ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * self.function.__code__.co_argcount)(self.address)

    def compile(self) -> int:
        """Now, for this process."""
        if not COMPILES:
            raise RuntimeError(f"{self.name} is not among the compiled kernels: import numba before minflow.machine")
        kind = types.void(*[types.int64] * self.function.__code__.co_argcount)
        self.result = numba.cfunc(kind, error_model="numpy")(self.function)
        return self.result.address

    def kept(self) -> tuple[str, bytes]:
        """What LLVM calls it, and its machine code. Asked after `compile`."""
        return self.result.native_name, self.result._library.serialize_using_object_code()[2][0]

    def needed(self) -> list[str]:
        """What it calls or reads of others: of Python, numba, and the system."""
        module = self.result._library._final_module
        return [one.name for one in (*module.functions, *module.global_variables)
                if one.is_declaration and not one.name.startswith("llvm.")]


def compile_part(part: int) -> None:
    """Compile what is to be in a part of what is kept, and keep it."""
    codes = part_of(part)
    for code in codes:
        kept.ADDRESSES[code.name] = code.compile()
    kept.save(part, {code.name: code.kept() for code in codes}, {name for code in codes for name in code.needed()})


def part_of(part: int) -> list[Code]:
    """By files, since the functions of one call the same others, which a process compiles once; what has more
    instructions of Python's takes longer."""
    files: dict[str, list[Code]] = {}
    for code in CODES:
        files.setdefault(code.function.__module__, []).append(code)
    all_met = {name: {one for code in codes for one in met(code.function)} for name, codes in files.items()}
    parts: list[tuple[list[Code], set]] = [([], set()) for _ in kept.PARTS]
    for name in sorted(files, key=lambda name: (-length(all_met[name]), name)):
        codes, known = min(parts, key=lambda one: length(one[1] | all_met[name]))
        codes += files[name]
        known |= all_met[name]
    return parts[part][0]


def met(function: Callable) -> Iterator[Callable]:
    """It, and what it calls that is compiled."""
    yield function
    for name in function.__code__.co_names:
        called = getattr(function.__globals__.get(name), "py_func", None)
        if called is not None:
            yield from met(called)


def length(functions: set[Callable]) -> int:
    """Bytes of their instructions for Python."""
    return sum([len(function.__code__.co_code) for function in functions])
