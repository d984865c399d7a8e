"""Vectors of 16 float32 or float64 as a type of numba, so that kernels read like Python and sums stay in registers.

Two vectors of one type have the operators + - * and /. Addresses are int64, in bytes. Read next:
`platforms/compiled/kernels/norm.py`.
"""

from __future__ import annotations

import math
import operator

from . import llvm
from .jit import PrimitiveModel, emits, intrinsic, ir, lower_builtin, register_model, type_callable, types
from .llvm import FLOAT, INT, LANES, VECTOR, called

BYTES = 4
WIDE_BYTES = 8 * LANES  # bytes of a vector of float64
DOUBLE = ir.DoubleType()
WIDE_VECTOR = ir.VectorType(DOUBLE, LANES)
MASK = ir.VectorType(ir.IntType(1), LANES)


class Vector(types.Type):
    def __init__(self, number: types.Type):
        super().__init__(f"{LANES} {number}")
        self.number = number


@register_model(Vector)
class VectorModel(PrimitiveModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, VECTOR if kind.number == types.float32 else WIDE_VECTOR)


vector, wide = Vector(types.float32), Vector(types.float64)


def below(builder, count, lanes: int = LANES):
    """Mask of the lanes below `count`."""
    kind = ir.VectorType(INT, lanes)
    nothing = ir.Constant(kind, ir.Undefined)
    first = builder.insert_element(nothing, builder.trunc(count, INT), ir.Constant(INT, 0))
    bound = builder.shuffle_vector(first, nothing, ir.Constant(kind, [0] * lanes))
    return builder.icmp_signed("<", ir.Constant(kind, list(range(lanes))), bound)


def masked_load(builder, base, mask, other):
    pointer = builder.inttoptr(base, VECTOR.as_pointer())
    return called(builder, "llvm.masked.load.v16f32.p0", VECTOR, pointer, ir.Constant(INT, BYTES), mask, other)


def masked_store(builder, value, base, mask) -> None:
    lanes, kind = value.type.count, "f32" if value.type.element == FLOAT else "i64"
    pointer = builder.inttoptr(base, value.type.as_pointer())
    called(
        builder,
        f"llvm.masked.store.v{lanes}{kind}.p0",
        ir.VoidType(),
        value,
        pointer,
        ir.Constant(INT, 4 if kind == "f32" else 8),
        mask,
    )


@emits(vector, types.int64)
def load(builder, base):
    """Load 16 float32."""
    return llvm.load(builder, base)


@emits(vector, types.int64, types.int64, vector)
def load_some(builder, base, count, other):
    """Load the first `count` elements; the other lanes are those of `other`."""
    return masked_load(builder, base, below(builder, count), other)


@emits(types.void, types.int64, vector)
def store(builder, base, value):
    """Store 16 float32."""
    llvm.store(builder, value, base)


@emits(types.void, types.int64, types.int64, vector)
def store_some(builder, base, count, value):
    """Store the first `count` lanes."""
    masked_store(builder, value, base, below(builder, count))


@emits(wide, types.int64)
def load_wide(builder, base):
    """Load 16 float64."""
    return builder.load(builder.inttoptr(base, WIDE_VECTOR.as_pointer()), align=8)


@emits(types.void, types.int64, wide)
def store_wide(builder, base, value):
    """Store 16 float64."""
    builder.store(value, builder.inttoptr(base, WIDE_VECTOR.as_pointer()), align=8)


@intrinsic
def filled(context, number):
    """Broadcast a number, in its precision."""
    return Vector(number)(number), lambda context, builder, _, a: llvm.spread(builder, *a)


@emits(wide, vector)
def widened(builder, x):
    """Convert to float64."""
    return builder.fpext(x, WIDE_VECTOR)


@emits(vector, wide)
def rounded(builder, x):
    """Round to float32."""
    return builder.fptrunc(x, VECTOR)


def define_operator(operation, instruction: str) -> None:
    """Define an operator of two vectors of one type."""

    @type_callable(operation)
    def result(context):
        return lambda x, y: x if isinstance(x, Vector) and x == y else None

    @lower_builtin(operation, Vector, Vector)
    def code(context, builder, signature, a):
        return getattr(builder, instruction)(*a)


for operation in (operator.add, operator.sub, operator.mul, operator.truediv):
    define_operator(operation, f"f{operation.__name__.removeprefix('true')}")


@intrinsic
def multiply_add(context, x, y, z):
    """Compute x * y + z, rounded once (FMA)."""
    return x(x, x, x), lambda context, builder, _, a: llvm.multiply_add(builder, *a)


@emits(vector, vector)
def root(builder, x):
    """Square root of each lane."""
    return called(builder, f"llvm.sqrt.v{LANES}f32", VECTOR, x)


@emits(vector, vector, types.int64)
def first_of(builder, x, count):
    """Return the first `count` lanes of x, and zeros."""
    return builder.select(below(builder, count), x, llvm.filled(0))


@emits(vector, vector, vector, vector)
def clipped(builder, x, low, high):
    """Clamp x to [low, high]. NaN stays; a bound of NaN means no bound."""
    return clip(builder, x, low, high)


BOUNDS = {"": (math.nan, math.nan), "relu": (0.0, math.nan), "relu6": (0.0, 6.0)}  # activation -> bounds for `clipped`


def clip(builder, x, low, high):
    x = builder.select(builder.fcmp_ordered(">", low, x), low, x)
    return builder.select(builder.fcmp_ordered("<", high, x), high, x)


@emits(vector, vector, vector, vector, vector)
def inside(builder, x, y, low, high):
    """Return x in lanes where y is strictly between the bounds of `clipped`, or NaN; 0 in the others."""
    beyond = builder.or_(builder.fcmp_ordered("<=", y, low), builder.fcmp_ordered(">=", y, high))
    return builder.select(beyond, llvm.filled(0), x)


@emits(types.float64, vector)
def total(builder, x):
    """Sum the lanes in order, in float64."""
    values = builder.fpext(x, WIDE_VECTOR)
    return called(builder, f"llvm.vector.reduce.fadd.v{LANES}f64", DOUBLE, ir.Constant(DOUBLE, 0.0), values)


@emits(types.float64, vector)
def sum_by_halves(builder, x):
    """Sum the lanes in float64 as a tree, which has fewer dependent additions than `total`."""
    values, lanes = builder.fpext(x, WIDE_VECTOR), LANES
    while lanes > 1:
        lanes //= 2
        low, high = [
            builder.shuffle_vector(
                values, values, ir.Constant(ir.VectorType(INT, lanes), [*range(start, start + lanes)])
            )
            for start in (0, lanes)
        ]
        values = builder.fadd(low, high)
    return builder.extract_element(values, ir.Constant(INT, 0))
