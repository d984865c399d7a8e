"""The micro-kernels: a few rows times a few vectors of a product, kept in registers while the sum runs.

    C[p, v] = C0[p, v] + sum over o < count, k < K of
              A[table[o] + k * step + p * row] * B[o * far + k * near + v * beside]

Everything that multiplies matrices is this sum: a convolution without im2col (o runs over the positions of the filter
and blocks of channels, and `table` says where each begins in the images), its gradients, the products within
Winograd's algorithm, a dense layer. Source: Goto & van de Geijn 2008, for tiles of registers and packed panels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from . import llvm
from .llvm import LANES, WORD, function, word


class Family(NamedTuple):
    """Which tiles there are: of so many rows (the last ones of a product are fewer), of so many vectors, of so many
    channels for the gradient of filters; and steps of the sum that an inner loop makes at a time.
    """

    rows: tuple[int, ...]
    vectors: int
    deep: int
    unroll: int


# The sums of the largest tile, the vectors that it multiplies and one number for all lanes: 28 + 2 + 2 of 32 registers
# of 16 numbers; 12 + 2 + 1 of 16 of 8 (AVX2); 24 + 4 + 1 of 32 of 4 (ARM, where four steps at a time no longer fit).
FAMILIES = {True: Family((14, 8, 4, 1), 2, 8, 4), False: Family((6, 4, 2, 1), 1, 4, 2)}
ROWS, VECTORS, DEEP, _ = HERE = FAMILIES[llvm.WIDE]
ARGUMENTS = 13


def instructions(rows: int, vectors: int, row: int, step: int, near: int, unroll: int) -> Callable:
    """The body of the kernel of one shape of tile, with three distances fixed, so that the inner loop counts few
    pointers up.

    Arguments: a, b, table (of int64), count, far, beside, K (a multiple of unroll), c, the distance of C's rows, that
    of its vectors; where C0 is (C itself, or a bias), or 0 for zeros, and the two distances there.
    """

    def kernel(builder, a, b, table, count, far, beside, length, c, c_row, c_beside, origin, origin_row, origin_beside):
        tiles = [(p, v) for p in range(rows) for v in range(vectors)]
        target = {(p, v): builder.add(builder.mul(c_row, word(p)), builder.mul(c_beside, word(v))) for p, v in tiles}
        start, kept, begin = builder.block, builder.append_basic_block("kept"), builder.append_basic_block("begin")
        builder.cbranch(builder.icmp_signed("!=", origin, word(0)), kept, begin)
        builder.position_at_end(kept)
        before = [
            llvm.load(
                builder, origin, builder.add(builder.mul(origin_row, word(p)), builder.mul(origin_beside, word(v)))
            )
            for p, v in tiles
        ]
        builder.branch(begin)
        builder.position_at_end(begin)
        sums = []
        for old in before:
            sums.append(builder.phi(llvm.VECTOR))
            sums[-1].add_incoming(llvm.filled(0), start)
            sums[-1].add_incoming(old, kept)
        if step == 1:  # of pixels there are many, which the cache does not hold
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


def along_pixels(family: Family) -> dict:
    """Rows are pixels, the sum runs over the 16 channels of a block; weights are packed `vectors` side by side."""
    return dict(row=LANES, step=1, near=family.vectors * LANES, unroll=family.unroll)


# Rows are channels of a block, the sum runs over the pixels of a row: for the gradient of filters.
ALONG_CHANNELS = dict(row=1, step=LANES, near=LANES, unroll=1)
PANEL = VECTORS * LANES  # filters side by side in packed weights
PIXELS = {(p, v): micro(p, v, **along_pixels(HERE)) for p in ROWS for v in {VECTORS, 1}}
CHANNELS = {v: micro(DEEP, v, **ALONG_CHANNELS) for v in {VECTORS, 1}}
