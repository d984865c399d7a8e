"""Ops with a formula: one generated loop, for arrays of any strides, and numbers as arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from ....core.backend import Array
from ....core.ir import NUMBERS
from ....core.kernels import Kernel, register
from ....core.op import OPS, Op
from ....core.ops.shape import cast
from ....core.scalar import UnsupportedOperation, operations_of
from ..device_code import FLOATS, blocks_for, cuda_backend_of
from ..elementwise import (
    SMALL_INDEX,
    Access,
    CudaFormula,
    LoopWriter,
    computing_type,
    formula_dtype,
    loop_over,
    sizes_and_strides,
)

THREADS = 256
CACHED = 1 << 12  # calls of an op
# Operations that are rounded once, as NumPy's are.
EXACT = frozenset(
    """add sub mul div neg abs max min floor ceil round trunc sqrt fmod copysign nextafter eq ne lt le gt ge isnan isinf
    isfinite signbit and_ or_ not_ select""".split()
)
LITERAL = object()
TOLERANCE = 8  # functions of CUDA's library, and float16 that is rounded once and not after each operation


class Prepared(NamedTuple):
    """A call of a loop on arrays of some dtypes, shapes and strides.

    size: number of elements.  kinds: None if all operands are arrays; otherwise, for each, the class to which a number
    is converted, None for an array, or LITERAL for a number that is in the source.  rest: the last arguments.
    """

    run: Callable
    grid: tuple[int]
    size: int
    kinds: list | None
    rest: list[int]

    def arguments(self, operands: Sequence, out: Array) -> list:
        if self.kinds is not None:
            given = zip(self.kinds, operands)
            operands = [x if kind is None else kind(x) for kind, x in given if kind is not LITERAL]
        return [self.size, *operands, out, *self.rest]


class LoopKernel:
    """The kernel of an elementwise op.

    prepared: its calls by dtypes, shapes and strides; None for those that it declines.
    """

    def __init__(self, op: Op):
        self.op, self.has_power = op, "pow" in operations_of(op)
        self.prepared: dict[tuple, Prepared | None] = {}

    def find(self, operands: Sequence, out: Array, attrs: Mapping) -> Prepared | None:
        parts: list[Any] = [out.dtype, out.strides, *attrs.values()]  # its shape follows from the operands
        for x in operands:
            if x.__class__ in NUMBERS:
                parts.append(x if self.has_power and x in (2, 3) else x.__class__)
            else:
                parts += x.dtype, x.shape, x.strides
        key = tuple(parts)
        try:
            return self.prepared[key]
        except KeyError:
            if len(self.prepared) >= CACHED:
                self.prepared.clear()
            self.prepared[key] = found = self.prepare(operands, out, attrs)
            return found

    def prepare(self, operands: Sequence, out: Array, attrs: Mapping) -> Prepared | None:
        """The call for these operands; None if there is no loop for them."""
        arrays = [x for x in operands if x.__class__ not in NUMBERS]
        dtype = formula_dtype(self.op, [x.dtype.name for x in arrays], out.dtype.name)
        loop = loop_over([*arrays, out]) if dtype else None
        if loop is None or complex in map(type, operands):
            return None
        accesses = loop.accesses([*arrays, out])
        own, convert, small = iter(accesses), float if dtype in FLOATS else int, out.size < SMALL_INDEX
        kinds = [
            None if x.__class__ not in NUMBERS else LITERAL if self.has_power and x in (2, 3) else convert
            for x in operands
        ]
        reads = [next(own) if kind is None else x if kind is LITERAL else None for kind, x in zip(kinds, operands)]
        try:
            source = source_of(self.op, dtype, tuple(reads), accesses[-1], len(loop.sizes), small, tuple(attrs.items()))
        except UnsupportedOperation:
            return None
        run = cuda_backend_of(out).generated(source, f"loop_{self.op.name}")
        plain = len(arrays) == len(operands)
        rest = sizes_and_strides(loop, accesses)
        return Prepared(run, (max(blocks_for(out.size), 1),), out.size, None if plain else kinds, rest)

    def __call__(self, *operands: Any, out: Array = None, **attrs: Any) -> Any:
        found = None if out is None else self.find(operands, out, attrs)
        if found is None:
            return NotImplemented
        if found.size:
            found.run(found.grid, (THREADS,), found.arguments(operands, out))
        return out


class LoopLowering(NamedTuple):
    """Prepares the calls of a plan. It never asks for copies of inputs at fixed places (`steady`), nor for a kernel of
    the CPU on few elements (`lone`).
    """

    kernel: LoopKernel
    steady: int = 0
    lone: bool = True

    def __call__(self, operands: Sequence, outs: Sequence[Array], **attrs: Any) -> Callable | None:
        found = self.kernel.find(operands, outs[0], attrs)
        if found is None or not found.size:
            return None
        return partial(found.run, found.grid, (THREADS,), found.arguments(operands, outs[0]))


@functools.cache
def source_of(
    op: Op, dtype: str, operands: tuple[Access | float | None, ...], out: Access, axes: int, small: bool, attrs: tuple
) -> str:
    """The source of an op's loop. operands: arrays, numbers that are in the source, and None for other numbers."""
    writer = LoopWriter(axes, small)
    formula = CudaFormula(writer.lines, dtype)
    values: list[Any] = []
    for x in operands:
        values.append(writer.load(x) if isinstance(x, Access) else writer.number(dtype) if x is None else x)
    if op is cast and isinstance(operands[0], Access):
        writer.store(out, values[0], computing_type(operands[0].dtype))
    elif op.scalar is not None:
        result = op.scalar(formula, *values, **dict(attrs))
        writer.store(out, formula.literal(result), "bool" if op.elementwise == "bool" else formula.type)
    return writer.source(f"loop_{op.name}")


def register_loops() -> None:
    """Register the loop of each op that has a formula, and of casts."""
    for op in OPS.values():
        operations = operations_of(op)
        if operations or op is cast:
            exact = op is cast or (len(operations) == 1 and EXACT.issuperset(operations))
            loop = LoopKernel(op)
            options: dict = {"tolerance": 0.0 if exact else TOLERANCE, "bfloat16": "nextafter" not in operations}
            register(op, "cupy", Kernel(loop, lower=LoopLowering(loop), declines=True, **options))


register_loops()
