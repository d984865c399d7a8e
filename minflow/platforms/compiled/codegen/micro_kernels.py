"""Micro-kernels: the innermost loops of all products, with a tile of rows x vectors accumulated in registers.

    C[p, v] = C0[p, v] + sum over o < count, k < K of
              A[table[o] + k * step + p * row] * B[o * far + k * near + v * beside]

All products are this sum: a convolution without im2col (o runs over filter taps and blocks of channels, and `table`
holds their offsets in the image), its gradients, the products within Winograd's algorithm, a dense layer. Must not know
which: callers pass addresses and strides. Source: Goto & van de Geijn 2008, for register tiles and packed panels.
Read next: `../kernels/gemm.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from . import llvm
from .llvm import LANES, WORD, function, word


class MicroKernelFamily(NamedTuple):
    """Register blocking of one kind of processor.

    rows: heights of tiles, largest first; smaller ones are for the remainder.  vectors: width of a tile.  deep:
    channels of a tile in the gradient of filters.  unroll: steps of the sum per iteration of the innermost loop.
    """

    rows: tuple[int, ...]
    vectors: int
    deep: int
    unroll: int


# Registers of the largest tile: accumulators, vectors of B, and a broadcast element of A. 28 + 2 + 2 of 32 registers
# with 16 lanes (AVX-512); 12 + 2 + 1 of 16 with 8 (AVX2); 24 + 4 + 1 of 32 with 4 (ARM, without room to unroll by
# four).
FAMILIES = {True: MicroKernelFamily((14, 8, 4, 1), 2, 8, 4), False: MicroKernelFamily((6, 4, 2, 1), 1, 4, 2)}
ROWS, VECTORS, DEEP, _ = HERE = FAMILIES[llvm.WIDE]
ARGUMENTS = 13


def initial_sums(builder, origin, offsets: list) -> list:
    """Load the vectors at these offsets from `origin`; zeros if it is 0."""
    start, resumed = builder.block, builder.append_basic_block("resumed")
    begin = builder.append_basic_block("begin")
    builder.cbranch(builder.icmp_signed("!=", origin, word(0)), resumed, begin)
    builder.position_at_end(resumed)
    before = [llvm.load(builder, origin, offset) for offset in offsets]
    builder.branch(begin)
    builder.position_at_end(begin)
    sums = []
    for old in before:
        sums.append(builder.phi(llvm.VECTOR))
        sums[-1].add_incoming(llvm.filled(0), start)
        sums[-1].add_incoming(old, resumed)
    return sums


def instructions(rows: int, vectors: int, row: int, step: int, near: int, unroll: int) -> Callable:
    """Return the body of a micro-kernel for one shape of tile.

    Three strides are compile-time constants, so that the innermost loop increments few pointers. Arguments: a, b, table
    (of int64), count, far, beside, K (a multiple of unroll), c and its strides between rows and between vectors;
    origin, the address of C0 (C itself, or a bias) or 0 for zeros, and its two strides.
    """

    def kernel(builder, a, b, table, count, far, beside, length, c, c_row, c_beside, origin, origin_row, origin_beside):
        tiles = [(p, v) for p in range(rows) for v in range(vectors)]
        target = {(p, v): builder.add(builder.mul(c_row, word(p)), builder.mul(c_beside, word(v))) for p, v in tiles}
        strides = [builder.add(builder.mul(origin_row, word(p)), builder.mul(origin_beside, word(v))) for p, v in tiles]
        sums = initial_sums(builder, origin, strides)
        if step == 1:  # a result of pixels is too large for the cache
            for tile in tiles:
                llvm.prefetch(builder, c, target[tile])
        offsets = builder.inttoptr(table, WORD.as_pointer())

        def block(o, sums):
            first = llvm.place(builder, a, builder.load(builder.gep(offsets, [o])))
            beside_all = [
                llvm.place(builder, b, builder.add(builder.mul(o, far), builder.mul(beside, word(v))))
                for v in range(vectors)
            ]

            def inner(k, carried):
                left, right, sums = carried[0], carried[1 : 1 + vectors], list(carried[1 + vectors :])
                for u in range(unroll):
                    values = [llvm.load(builder, pointer, fixed=u * near) for pointer in right]
                    for p in range(rows):
                        number = builder.load(llvm.place(builder, left, fixed=u * step + p * row), align=4)
                        number = llvm.spread(builder, number)
                        for v in range(vectors):
                            i = p * vectors + v
                            sums[i] = llvm.multiply_add(builder, number, values[v], sums[i])
                return [
                    llvm.place(builder, left, fixed=unroll * step),
                    *[llvm.place(builder, pointer, fixed=unroll * near) for pointer in right],
                    *sums,
                ]

            steps = builder.sdiv(length, word(unroll))
            return llvm.loop(builder, steps, [first, *beside_all, *sums], inner)[1 + vectors :]

        for tile, value in zip(tiles, llvm.loop(builder, count, sums, block)):
            llvm.store(builder, value, c, target[tile])

    return kernel


def micro(rows: int, vectors: int, row: int, step: int, near: int, unroll: int) -> Callable:
    body = instructions(rows, vectors, row, step, near, unroll)
    return function(f"micro_{rows}x{vectors}_{row}_{step}_{near}", ARGUMENTS, inline=False)(body)


def along_pixels(family: MicroKernelFamily) -> dict:
    """Strides for rows that are pixels, with the sum over the 16 channels of a block; filters are packed in panels."""
    return dict(row=LANES, step=1, near=family.vectors * LANES, unroll=family.unroll)


# For the gradient of filters: rows are the channels of a block, the sum runs over the pixels of a row.
ALONG_CHANNELS = dict(row=1, step=LANES, near=LANES, unroll=1)
PANEL = VECTORS * LANES  # filters of a panel
PIXELS = {(p, v): micro(p, v, **along_pixels(HERE)) for p in ROWS for v in {VECTORS, 1}}
CHANNELS = {v: micro(DEEP, v, **ALONG_CHANNELS) for v in {VECTORS, 1}}
