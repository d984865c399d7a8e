"""Functions written as LLVM IR on vectors of 16 float32, callable from code that numba compiles.

Addresses are int64, in bytes; offsets and strides are in float32. LLVM splits a vector into two or four registers if
the processor's are narrower. Read next: `micro_kernels.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..compile_cache import processor
from .jit import emits, ir, types

LANES = 16
FLOAT, WORD, INT = ir.FloatType(), ir.IntType(64), ir.IntType(32)
VECTOR = ir.VectorType(FLOAT, LANES)
WIDE = "+avx512f" in processor()[1]  # 32 registers of 16 lanes, not 16 of 8


def define(module: ir.Module, name: str, count: int, body: Callable, inline: bool = True) -> ir.Function:
    """Add a function of `count` int64 to a module; `body(builder, *arguments)` emits its code."""
    function_ir = ir.Function(module, ir.FunctionType(ir.VoidType(), [WORD] * count), name)
    function_ir.attributes.add("alwaysinline" if inline else "noinline")
    inner = ir.IRBuilder(function_ir.append_basic_block("entry"))
    body(inner, *function_ir.args)
    inner.ret_void()
    return function_ir


def function(name: str, count: int, inline: bool = True) -> Callable:
    """Decorates a body of `define`, to be called from compiled code; emitted once per module."""

    def written(body: Callable) -> Callable:
        @emits(types.void, *[types.int64] * count)
        def code(builder, *arguments):
            function_ir = builder.module.globals.get(name)
            if function_ir is None:
                function_ir = define(builder.module, name, count, body, inline)
                function_ir.linkage = "linkonce_odr"
            builder.call(function_ir, arguments)

        return code

    return written


# ---- helpers for bodies ----------------------------------------------------------------------------------------------


def called(builder, name: str, result, *arguments, fastmath: Sequence[str] = ()):
    """Call an LLVM intrinsic by name. fastmath: LLVM's flags."""
    intrinsic_ir = builder.module.globals.get(name)
    if intrinsic_ir is None:
        kind = ir.FunctionType(result, [a.type for a in arguments])
        intrinsic_ir = ir.Function(builder.module, kind, name)
    return builder.call(intrinsic_ir, arguments, fastmath=fastmath)


def word(number: int) -> ir.Constant:
    return ir.Constant(WORD, int(number))


def filled(number: float) -> ir.Constant:
    return ir.Constant(VECTOR, [float(number)] * LANES)


def place(builder: ir.IRBuilder, base, distance=None, fixed: int = 0):
    """Pointer to an element: base + distance (a value, or None) + fixed."""
    pointer = base if isinstance(base.type, ir.PointerType) else builder.inttoptr(base, FLOAT.as_pointer())
    if distance is not None:
        pointer = builder.gep(pointer, [distance])
    return builder.gep(pointer, [word(fixed)]) if fixed else pointer


def load(builder: ir.IRBuilder, base, distance=None, fixed: int = 0):
    return builder.load(builder.bitcast(place(builder, base, distance, fixed), VECTOR.as_pointer()), align=4)


def store(builder: ir.IRBuilder, value, base, distance=None, fixed: int = 0) -> None:
    builder.store(value, builder.bitcast(place(builder, base, distance, fixed), VECTOR.as_pointer()), align=4)


def prefetch(builder: ir.IRBuilder, base, distance, write: int = 1) -> None:
    """Prefetch a cache line that will be read, or (write) written."""
    pointer = builder.bitcast(place(builder, base, distance), ir.IntType(8).as_pointer())
    called(builder, "llvm.prefetch.p0", ir.VoidType(), pointer, *[ir.Constant(INT, n) for n in (write, 3, 1)])


def spread(builder: ir.IRBuilder, number):
    """Broadcast a scalar to a vector."""
    nothing = ir.Constant(ir.VectorType(number.type, LANES), ir.Undefined)
    first = builder.insert_element(nothing, number, ir.Constant(INT, 0))
    return builder.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(INT, LANES), [0] * LANES))


def multiply_add(builder: ir.IRBuilder, a, b, c):
    """Compute a * b + c, rounded once (FMA)."""
    return called(builder, f"llvm.fma.v{LANES}f{32 if a.type.element == FLOAT else 64}", a.type, a, b, c)


def loop(builder: ir.IRBuilder, count, carried: Sequence, body: Callable, perhaps: bool = False) -> list:
    """Emit `for k in range(count): carried = body(k, carried)`; `carried` stays in registers.

    count must be at least 1, unless `perhaps` is True.
    """
    before = builder.block
    head, after = builder.append_basic_block("loop"), builder.append_basic_block("after")
    if perhaps:
        builder.cbranch(builder.icmp_signed("<", word(0), count), head, after)
    else:
        builder.branch(head)
    builder.position_at_end(head)
    k = builder.phi(WORD)
    k.add_incoming(word(0), before)
    here = []
    for value in carried:
        here.append(builder.phi(value.type))
        here[-1].add_incoming(value, before)
    results, end = body(k, here), builder.block
    after_this = builder.add(k, word(1))
    k.add_incoming(after_this, end)
    for phi, value in zip(here, results):
        phi.add_incoming(value, end)
    write_once(builder.module, builder.cbranch(builder.icmp_signed("<", after_this, count), head, after))
    builder.position_at_end(after)
    if not perhaps:
        return list(results)
    phis = []
    for value, result in zip(carried, results):
        phis.append(builder.phi(value.type))
        phis[-1].add_incoming(value, before)
        phis[-1].add_incoming(result, end)
    return phis


def write_once(module: ir.Module, branch: ir.Instruction) -> None:
    """Disable unrolling of a loop: it would take most of the compile time and gain little."""
    mark = ir.MDValue(module, (), str(len(module.metadata)))
    mark.operands = mark, module.add_metadata(["llvm.loop.unroll.disable"])
    branch.set_metadata("llvm.loop", mark)


def transpose(builder, rows: list) -> list:
    """Transpose 16x16 elements, in four rounds of shuffles."""
    for step in (8, 4, 2, 1):
        done = list(rows)
        for i in range(LANES):
            if not i & step:
                low = [j if not j & step else LANES + j - step for j in range(LANES)]
                high = [j + step if not j & step else LANES + j for j in range(LANES)]
                for target_place, mask in ((i, low), (i + step, high)):
                    constant = ir.Constant(ir.VectorType(INT, LANES), mask)
                    done[target_place] = builder.shuffle_vector(rows[i], rows[i + step], constant)
        rows = done
    return rows


@function("copy_transposed", 4, inline=False)
def copy_transposed(builder, source, source_row, target, target_row):
    """Transpose 16x16 elements: target[j, i] = source[i, j]."""
    rows = [load(builder, source, builder.mul(source_row, word(i))) for i in range(LANES)]
    for j, row in enumerate(transpose(builder, rows)):
        store(builder, row, target, builder.mul(target_row, word(j)))


def fours(back: bool):
    """Convert 16 planes of 4 pixels to [pixel][16], or (back) the reverse."""

    @function(f"fours_{'out' if back else 'in'}", 2, inline=False)
    def code(builder, source, target):
        rows = [load(builder, source, fixed=i * LANES) for i in range(4)]
        mask = lambda lanes: ir.Constant(ir.VectorType(INT, len(lanes)), lanes)
        for j in range(4):
            if back:  # elements 16 j to 16 j + 15: four channels, each of the four rows
                low, high = [
                    builder.shuffle_vector(
                        rows[i], rows[i + 1], mask([4 * j + k // 2 + k % 2 * LANES for k in range(8)])
                    )
                    for i in (0, 2)
                ]
                places = [k // 4 * 2 + k % 4 % 2 + (8 if k % 4 > 1 else 0) for k in range(LANES)]
            else:
                low, high = [
                    builder.shuffle_vector(rows[i], rows[i + 1], mask([4 * k + j for k in range(8)])) for i in (0, 2)
                ]
                places = list(range(LANES))
            store(builder, builder.shuffle_vector(low, high, mask(places)), target, fixed=j * LANES)

    return code


fours_in, fours_out = fours(False), fours(True)


@function("gather_transposed", 5, inline=False)
def gather_transposed(builder, source, table, count, zeros, target):
    """Transpose 16 rows at the offsets of a table, as `copy_transposed`; rows from `count` on are zeros."""
    offsets, rows = builder.inttoptr(table, WORD.as_pointer()), []
    for i in range(LANES):
        offset = builder.load(builder.gep(offsets, [word(i)]))
        there = builder.add(source, builder.mul(offset, word(4)))
        rows.append(load(builder, builder.select(builder.icmp_signed("<", word(i), count), there, zeros)))
    for j, row in enumerate(transpose(builder, rows)):
        store(builder, row, target, word(j * LANES))


@function("copy_pairs", 3)
def copy_pairs(builder, source, even, odd):
    """Split 16 pairs into their first and their second elements."""
    one, other = load(builder, source), load(builder, source, fixed=LANES)
    for target, first in ((even, 0), (odd, 1)):
        mask = ir.Constant(ir.VectorType(INT, LANES), list(range(first, 2 * LANES, 2)))
        store(builder, builder.shuffle_vector(one, other, mask), target)


@function("prefetch_rows", 3)
def prefetch_rows(builder, source, row, ahead):
    """Prefetch the lines that `copy_transposed` will read `ahead` elements further on."""
    for i in range(LANES):
        prefetch(builder, source, builder.add(builder.mul(row, word(i)), ahead), 0)


@function("copy_tile", 4, inline=False)
def copy_tile(builder, source, source_row, target, target_row):
    """Copy 16x16 elements."""
    for i in range(LANES):
        store(
            builder, load(builder, source, builder.mul(source_row, word(i))), target, builder.mul(target_row, word(i))
        )


@function("clear", 1)
def clear(builder, target):
    """Write 16 zeros."""
    store(builder, filled(0), target)


@function("copy", 2)
def copy(builder, target, source):
    """Copy 16 elements."""
    store(builder, load(builder, source), target)


@emits(types.float32, types.int64, types.int64)
def number_at(builder, base, distance):
    """Load the float32 at base + distance."""
    return builder.load(place(builder, base, distance), align=4)


@emits(types.void, types.int64, types.int64, types.float32)
def put(builder, base, distance, value):
    """Store a float32 at base + distance."""
    builder.store(value, place(builder, base, distance), align=4)
