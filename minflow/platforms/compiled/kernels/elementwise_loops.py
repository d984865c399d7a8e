"""Operations of fused elementwise kernels: loops over blocks of elements, and over the rows of a block.

An operation is a number in OPCODES; `operate` runs those on vectors. Read next: `elementwise_fusion.py`, the
interpreter.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..codegen import llvm, vector_math
from ..codegen.jit import CompiledFunction, compiled, emits, float32, ir, types
from ..codegen.llvm import FLOAT, LANES, VECTOR, WORD, called, function, number_at, put
from ..codegen.vectors import filled, load, load_some, multiply_add, store, store_some, vector
from .conv import BYTES

STEP = LANES * BYTES


def maximum_of(builder, a, b):
    """Maximum; NaN if either is."""
    greater = builder.select(builder.fcmp_ordered("<", b, a), a, b)
    return builder.select(builder.fcmp_unordered("uno", a, a), a, greater)


def minimum_of(builder, a, b):
    less = builder.select(builder.fcmp_ordered(">", b, a), a, b)
    return builder.select(builder.fcmp_unordered("uno", a, a), a, less)


def relu6_grad(builder, x, y):
    flat = builder.or_(builder.fcmp_ordered("<=", y, llvm.filled(0)), builder.fcmp_ordered(">=", y, llvm.filled(6)))
    return builder.fmul(x, builder.select(flat, llvm.filled(0), llvm.filled(1)))


def pair(first: str, second: str) -> Callable:
    """Operation on three vectors: `second(first(a, b), c)`; "taken" is c - first(a, b).

    Products that are added are rounded once (FMA). If `second` is a function, there are two operands.
    """

    def body(builder, a, b, *c):
        if first == "mul" and second in ("add", "sub", "taken"):
            a, c = builder.fneg(a) if second == "taken" else a, builder.fneg(*c) if second == "sub" else c[0]
            return llvm.multiply_add(builder, a, b, c)
        inner = getattr(builder, "f" + first)(a, b)
        if second in AFTER:
            return getattr(vector_math, second)(builder, inner)
        return builder.fsub(*c, inner) if second == "taken" else getattr(builder, "f" + second)(inner, *c)

    return body


def compare(symbol: str) -> Callable:
    """Comparison of two vectors: 1 where it holds, else 0, also for NaN."""
    return lambda builder, x, y: builder.select(builder.fcmp_ordered(symbol, x, y), llvm.filled(1), llvm.filled(0))


def rounding(name: str) -> Callable:
    return lambda builder, x: called(builder, f"llvm.{name}.v{LANES}f32", VECTOR, x)


# Function -> operations that it can be fused with.
PAIRED, AFTER = ("add", "sub", "mul"), {"exp": ("sub", "mul"), "erf": ("mul",)}
BODIES: dict[str, tuple[int, Callable]] = {  # (number of operands, IR from vectors to a vector)
    "copy": (1, lambda builder, x: x),
    "add": (2, lambda builder, x, y: builder.fadd(x, y)),
    "sub": (2, lambda builder, x, y: builder.fsub(x, y)),
    "mul": (2, lambda builder, x, y: builder.fmul(x, y)),
    "div": (2, lambda builder, x, y: builder.fdiv(x, y)),
    "maximum": (2, maximum_of),
    "minimum": (2, minimum_of),
    "relu": (1, lambda builder, x: builder.select(builder.fcmp_ordered("<=", x, llvm.filled(0)), llvm.filled(0), x)),
    "relu_grad": (
        2,
        lambda builder, x, y: builder.fmul(
            x, builder.select(builder.fcmp_unordered("!=", y, llvm.filled(0)), llvm.filled(1), llvm.filled(0))
        ),
    ),
    "relu6": (1, lambda builder, x: vector_math.clamp(builder, x, 0, 6)),
    "relu6_grad": (2, relu6_grad),
    "where": (3, lambda builder, mask, x, y: builder.select(builder.fcmp_ordered("==", mask, llvm.filled(0)), y, x)),
    **{f"{first}_{second}": (3, pair(first, second)) for first in PAIRED for second in (*PAIRED, "taken")},
    **{f"{first}_{second}": (2, pair(first, second)) for second, firsts in AFTER.items() for first in firsts},
    "leak": (
        3,
        lambda builder, grad, x, slope: builder.select(
            builder.fcmp_ordered(">", x, llvm.filled(0)), grad, builder.fmul(grad, slope)
        ),
    ),
    **{name: (2, compare(symbol)) for name, symbol in (("lt", "<"), ("le", "<="), ("eq", "=="))},
    **{name: (1, rounding(name)) for name in ("floor", "ceil", "rint", "trunc")},
    "abs": (1, vector_math.size_of),
    "sqrt": (1, lambda builder, x: called(builder, f"llvm.sqrt.v{LANES}f32", VECTOR, x)),
    "exp": (1, vector_math.exp),
    "sigmoid": (1, vector_math.sigmoid),
    "log": (1, vector_math.log),
    "tanh": (1, vector_math.tanh),
    "erf": (1, vector_math.erf),
}
OPCODES = {
    name: number for number, name in enumerate((*BODIES, "spread", "row_sum", "row_max", "row_dot", "column_sum"))
}
NAMES = [*OPCODES]
MUL, SPREAD, ROW_SUM, ROW_MAX, ROW_DOT = [OPCODES[x] for x in ("mul", "spread", "row_sum", "row_max", "row_dot")]
# In place of the step of an operand: it has one element per row; it is one row, read again for each.
BY_ROW, AGAIN = 1, 2


@function("operate", 9, inline=False)
def operate(builder, code, out, a, b, c, a_step, b_step, c_step, count):
    """Compute out = code(a, b, c) for `count` vectors; a step of 0 broadcasts an operand of one vector."""
    done = builder.append_basic_block("done")
    choice = builder.switch(code, done)
    for number, (operands, body) in enumerate(BODIES.values()):
        block = builder.append_basic_block("case")
        choice.add_case(llvm.word(number), block)
        builder.position_at_end(block)
        steps = [llvm.word(STEP), *(a_step, b_step, c_step)[:operands]]

        def once(k, places, operands=operands, body=body, steps=steps):
            target, *sources = places
            llvm.store(builder, body(builder, *[llvm.load(builder, x) for x in sources]), target)
            return [builder.add(x, step) for x, step in zip(places, steps)]

        llvm.loop(builder, count, [out, *(a, b, c)[:operands]], once)
        builder.branch(done)
    builder.position_at_end(done)


@CompiledFunction
def operation_routine(code, out, a, b, c, a_step, b_step, c_step, count, _, _1, _2):
    """`operate` as a routine, for all instructions."""
    operate(code, out, a, b, c, a_step, b_step, c_step, count)


def reduce_lanes(builder, name: str, x, flag: str, *start):
    """Reduce the lanes of a vector, in pairs."""
    return called(builder, f"llvm.vector.reduce.{name}.v{LANES}f32", FLOAT, *start, x, fastmath=(flag,))


@emits(types.float32, vector)
def sum_of_lanes(builder, x):
    return reduce_lanes(builder, "fadd", x, "reassoc", ir.Constant(FLOAT, -0.0))


@emits(types.float32, vector)
def max_of_lanes(builder, x):
    """Maximum of the lanes; NaN if any is."""
    lanes = builder.fcmp_unordered("uno", x, x)
    some = builder.icmp_unsigned("!=", builder.bitcast(lanes, ir.IntType(LANES)), ir.IntType(LANES)(0))
    return builder.select(some, FLOAT(math.nan), reduce_lanes(builder, "fmax", x, "nnan"))


@emits(vector, vector, vector)
def maximum(builder, x, y):
    return maximum_of(builder, x, y)


@emits(vector, types.int64)
def mask_at(builder, base):
    """16 bytes as float32: 1 where a byte is not 0."""
    kind = ir.VectorType(ir.IntType(8), LANES)
    mask = builder.load(builder.inttoptr(base, kind.as_pointer()), align=1)
    nothing = ir.Constant(kind, [0] * LANES)
    return builder.select(builder.icmp_unsigned("!=", mask, nothing), llvm.filled(1), llvm.filled(0))


@emits(types.int64, types.int64)
def byte_at(builder, base):
    pointer = builder.inttoptr(base, ir.IntType(8).as_pointer())
    return builder.zext(builder.load(pointer), WORD)


@emits(types.void, types.int64, types.int64, types.int64)
def put_word(builder, words, i, word):
    pointer = builder.inttoptr(words, WORD.as_pointer())
    builder.store(word, builder.gep(pointer, [i]))


@compiled
def copy_in(source, target, count):
    """Copy `count` elements, and zeros up to a whole vector."""
    for i in range(0, count, LANES):
        store(target + i * BYTES, load_some(source + i * BYTES, count - i, filled(float32(0))))


@compiled
def copy_out(source, target, count):
    for i in range(0, count, LANES):
        store_some(target + i * BYTES, count - i, load(source + i * BYTES))


@compiled
def masks_in(source, target, count):
    whole = count // LANES * LANES
    for i in range(0, whole, LANES):
        store(target + i * BYTES, mask_at(source + i))
    for i in range(whole, count):
        put(target, i, float32(1) if byte_at(source + i) else float32(0))


@compiled
def spread_rows(out, a, rows, columns):
    """Broadcast each element over its row; what is written beyond a row is overwritten by the next."""
    for r in range(rows):
        number, p = filled(number_at(a, r)), out + r * columns * BYTES
        for q in range(p, p + columns * BYTES, STEP):
            store(q, number)


@compiled
def sum_rows(out, a, rows, columns):
    zeros, left, whole = filled(float32(0)), columns % LANES, columns // (4 * LANES) * 4 * STEP
    for r in range(rows):
        p = a + r * columns * BYTES
        end = p + columns // LANES * STEP
        total = load_some(end, left, zeros) if left else zeros
        u = v = w = zeros
        for q in range(p, p + whole, 4 * STEP):
            total, u = total + load(q), u + load(q + STEP)
            v, w = v + load(q + 2 * STEP), w + load(q + 3 * STEP)
        for q in range(p + whole, end, STEP):
            total = total + load(q)
        put(out, r, sum_of_lanes(total + u + (v + w)))


@compiled
def sum_products(out, a, b, rows, columns):
    """Dot product of two rows, for each row."""
    zeros, left, whole = filled(float32(0)), columns % LANES, columns // (2 * LANES) * 2 * STEP
    for r in range(rows):
        p, distance = a + r * columns * BYTES, b - a
        end = p + columns // LANES * STEP
        total = other = zeros
        if left:
            total = load_some(end, left, zeros) * load_some(end + distance, left, zeros)
        for q in range(p, p + whole, 2 * STEP):
            total = multiply_add(load(q), load(q + distance), total)
            other = multiply_add(load(q + STEP), load(q + STEP + distance), other)
        for q in range(p + whole, end, STEP):
            total = multiply_add(load(q), load(q + distance), total)
        put(out, r, sum_of_lanes(total + other))


@compiled
def max_of_rows(out, a, rows, columns):
    least, left, whole = filled(float32(-np.inf)), columns % LANES, columns // (2 * LANES) * 2 * STEP
    for r in range(rows):
        p = a + r * columns * BYTES
        end = p + columns // LANES * STEP
        most = load_some(end, left, least) if left else least
        other = least
        for q in range(p, p + whole, 2 * STEP):
            most, other = maximum(most, load(q)), maximum(other, load(q + STEP))
        for q in range(p + whole, end, STEP):
            most = maximum(most, load(q))
        put(out, r, max_of_lanes(maximum(most, other)))


@compiled
def sum_columns(out, a, rows, columns):
    """out += the sum of these rows, which is computed first: sums of sums round less."""
    zeros, left, end, row = filled(float32(0)), columns % LANES, columns // LANES * STEP, columns * BYTES
    for q in range(0, end, STEP):
        total = zeros
        for p in range(a + q, a + q + rows * row, row):
            total = total + load(p)
        store(out + q, load(out + q) + total)
    if left:
        total = zeros
        for p in range(a + end, a + end + rows * row, row):
            total = total + load_some(p, left, zeros)
        store(out + end, load(out + end) + total)


@compiled
def operand(place, step, r, columns, spare):
    """Address of row r of an operand; one element per row is broadcast first."""
    if step == BY_ROW:
        store(spare, filled(number_at(place, r)))
        return spare
    return place + r * columns * BYTES if step == STEP else place


@compiled
def step_in_row(step):
    """Step of an operand from one vector of a row to the next."""
    return STEP if step == AGAIN else step // STEP * STEP
