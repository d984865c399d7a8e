"""Vectors of 16 float32 as values of code that numba compiles: sums stay in registers, and the code reads like Python.

Addresses are int64, in bytes. Read next: `norm.py`.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core.datamodel.models import PrimitiveModel
from numba.extending import intrinsic, register_model

from . import llvm
from .llvm import FLOAT, INT, LANES, VECTOR

BYTES = 4
MASK = ir.VectorType(ir.IntType(1), LANES)


class Vector(types.Type):
    def __init__(self):
        super().__init__(f"{LANES} float32")


@register_model(Vector)
class VectorModel(PrimitiveModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, VECTOR)


vector = Vector()


def called(builder, name: str, result, *arguments):
    """Call an instruction that LLVM knows by a name."""
    found = builder.module.globals.get(name)
    if found is None:
        kind = ir.FunctionType(result, [a.type for a in arguments])
        found = ir.Function(builder.module, kind, name)
    return builder.call(found, arguments)


def below(builder, count, lanes: int = LANES):
    """Which lanes are below a number."""
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
    called(builder, f"llvm.masked.store.v{lanes}{kind}.p0", ir.VoidType(), value, pointer,
           ir.Constant(INT, 4 if kind == "f32" else 8), mask)


@intrinsic
def load(context, base):
    return vector(types.int64), lambda context, builder, _, a: llvm.load(builder, *a)


@intrinsic
def load_some(context, base, count, other):
    """The first `count` numbers; lanes beyond hold those of `other`."""
    return vector(types.int64, types.int64, vector), lambda context, builder, _, a: masked_load(
        builder, a[0], below(builder, a[1]), a[2])


@intrinsic
def store(context, base, value):
    def code(context, builder, signature, a):
        llvm.store(builder, a[1], a[0])
        return context.get_dummy_value()
    return types.void(types.int64, vector), code


@intrinsic
def store_some(context, base, count, value):
    def code(context, builder, signature, a):
        masked_store(builder, a[2], a[0], below(builder, a[1]))
        return context.get_dummy_value()
    return types.void(types.int64, types.int64, vector), code


@intrinsic
def filled(context, number):
    return vector(types.float32), lambda context, builder, _, a: llvm.spread(builder, *a)


@intrinsic
def add(context, x, y):
    return vector(vector, vector), lambda context, builder, _, a: builder.fadd(*a)


@intrinsic
def subtract(context, x, y):
    return vector(vector, vector), lambda context, builder, _, a: builder.fsub(*a)


@intrinsic
def multiply_add(context, x, y, z):
    """x * y + z, rounded once."""
    return vector(vector, vector, vector), lambda context, builder, _, a: llvm.multiply_add(builder, *a)


@intrinsic
def clipped(context, x, low, high):
    """x between two bounds. NaN stays; a bound that is NaN is none."""
    return vector(vector, vector, vector), lambda context, builder, _, a: clip(builder, *a)


def clip(builder, x, low, high):
    x = builder.select(builder.fcmp_ordered(">", low, x), low, x)
    return builder.select(builder.fcmp_ordered("<", high, x), high, x)


@intrinsic
def total(context, x):
    """The sum of the lanes, in order, in float64."""
    def code(context, builder, signature, a):
        double = ir.DoubleType()
        wide = builder.fpext(a[0], ir.VectorType(double, LANES))
        return called(builder, f"llvm.vector.reduce.fadd.v{LANES}f64", double, ir.Constant(double, 0.0), wide)
    return types.float64(vector), code
