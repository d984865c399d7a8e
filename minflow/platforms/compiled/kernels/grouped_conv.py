"""Micro-kernels of grouped convolution, with 4 or 8 channels and as many filters per group.

As `platforms/compiled/codegen/micro_kernels.py`, but instead of broadcasting one element, each lane takes a channel of
its own group. A block of 16 channels holds whole groups, so permuting the lanes of a vector within groups gives the
channels that 16 filters read. No zeros are multiplied, and groups stay independent. Read next: `conv.py`.
"""

from __future__ import annotations

from ..codegen import llvm
from ..codegen.jit import CompiledFunction, ir
from ..codegen.llvm import INT, LANES, WORD, function, word
from ..codegen.micro_kernels import ROWS
from ..passes.nchw16c import GROUPS

SMALL, LARGE = GROUPS
SEVERAL, BYTES = ROWS[1], 4  # pixels at a time


def channel(builder, pixel, size: int, k: int):
    """Permute a pixel so that each lane holds channel k of its group."""
    lanes = ir.Constant(ir.VectorType(INT, LANES), [lane // size * size + k for lane in range(LANES)])
    return builder.shuffle_vector(pixel, pixel, lanes)


def grouped(size: int, rows: int):
    """Sum over taps for `rows` contiguous pixels; outputs are c_row elements apart."""

    @function(f"grouped_{size}x{rows}", 6, inline=False)
    def code(builder, a, b, table, count, c, c_row):
        offsets = builder.inttoptr(table, WORD.as_pointer())

        def tap(o, sums):
            first = llvm.place(builder, a, builder.load(builder.gep(offsets, [o])))
            weights = llvm.place(builder, b, builder.mul(o, word(size * LANES)))
            pixels, sums = [llvm.load(builder, first, fixed=p * LANES) for p in range(rows)], list(sums)
            for k in range(size):
                weight = llvm.load(builder, weights, fixed=k * LANES)
                sums = [
                    llvm.multiply_add(builder, channel(builder, pixel, size, k), weight, s)
                    for pixel, s in zip(pixels, sums)
                ]
            return sums

        for p, value in enumerate(llvm.loop(builder, count, [llvm.filled(0)] * rows, tap)):
            llvm.store(builder, value, c, builder.mul(c_row, word(p)))

    return code


def grouped_back(size: int):
    """c += the sum over lines of pixels of cotangent times each channel of the group."""

    @function(f"grouped_back_{size}", 8, inline=False)
    def code(builder, a, grad, table, lines, far, width, c, c_row):
        offsets = builder.inttoptr(table, WORD.as_pointer())

        def line(i, sums):
            first = llvm.place(builder, a, builder.load(builder.gep(offsets, [i])))
            grads = llvm.place(builder, grad, builder.mul(i, far))

            def pixel(j, sums):
                j = builder.mul(j, word(LANES))
                x, g = llvm.load(builder, first, j), llvm.load(builder, grads, j)
                return [llvm.multiply_add(builder, channel(builder, x, size, k), g, s) for k, s in enumerate(sums)]

            return llvm.loop(builder, width, sums, pixel)

        places = [builder.mul(c_row, word(k)) for k in range(size)]
        before = [llvm.load(builder, c, place) for place in places]
        for value, place in zip(llvm.loop(builder, lines, before, line), places):
            llvm.store(builder, value, c, place)

    return code


(SMALL_SEVERAL, SMALL_ONE), (LARGE_SEVERAL, LARGE_ONE) = [[grouped(n, p) for p in (SEVERAL, 1)] for n in GROUPS]
SMALL_BACK, LARGE_BACK = [grouped_back(n) for n in GROUPS]


@CompiledFunction
def group_product(rows, a, b, table, count, far, length, c, c_row, vectors, c_beside, origin):
    """As `gemm_tiles.product`, for one vector of filters. length: channels of a group."""
    done = 0
    while done < rows:
        i = max(0, min(done, rows - SEVERAL))
        x, y = a + i * LANES * BYTES, c + i * c_row * BYTES
        if rows < SEVERAL:
            x, y, done = a + done * LANES * BYTES, c + done * c_row * BYTES, done + 1
            if length == SMALL:
                SMALL_ONE(x, b, table, count, y, c_row)
            else:
                LARGE_ONE(x, b, table, count, y, c_row)
        else:
            done += SEVERAL
            if length == SMALL:
                SMALL_SEVERAL(x, b, table, count, y, c_row)
            else:
                LARGE_SEVERAL(x, b, table, count, y, c_row)


@CompiledFunction
def group_outer(rows, a, b, table, count, far, length, c, c_row, columns, b_beside, adds):
    """As `gemm_tiles.outer`, added to c. rows: channels of a group."""
    if rows == SMALL:
        SMALL_BACK(a, b, table, count, far, length, c, c_row)
    else:
        LARGE_BACK(a, b, table, count, far, length, c, c_row)
