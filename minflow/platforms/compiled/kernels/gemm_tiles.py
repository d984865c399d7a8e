"""Products of any size from tiles of micro-kernels: routines that are compiled once, and called by address.

Read next: `gemm.py` and `conv.py`, whose instructions call them.
"""

from __future__ import annotations

from ..codegen.jit import CompiledFunction, inlined
from ..codegen.llvm import LANES
from ..codegen.micro_kernels import CHANNELS, DEEP, PANEL, PIXELS, ROWS, VECTORS

R0, R1, R2, R3 = ROWS
DEEP_WIDE, DEEP_ONE = CHANNELS[VECTORS], CHANNELS[1]
BYTES = 4


def tile_of_rows(rows: int):
    """Multiply `rows` rows from row i on by one panel of filters; other arguments: see `product`."""
    wide, one = PIXELS[rows, VECTORS], PIXELS[rows, 1]

    @inlined
    def tile(i, a, b, table, count, far, length, c, c_row, vectors, c_beside, origin, row, beside):
        x, y, z = a + i * LANES * BYTES, c + i * c_row * BYTES, origin + i * row * BYTES
        if vectors == VECTORS:
            wide(x, b, table, count, far, LANES, length, y, c_row, c_beside, z, row, beside)
        else:
            one(x, b, table, count, far, LANES, length, y, c_row, c_beside, z, row, beside)

    return tile


TILE0, TILE1, TILE2, TILE3 = [tile_of_rows(rows) for rows in ROWS]


@CompiledFunction
def product(rows, a, b, table, count, far, length, c, c_row, vectors, c_beside, origin):
    """Multiply `rows` contiguous rows by one panel of filters.

    origin: 0, or the address of the initial sums: c, or a bias of the panel. The last tile of rows starts earlier if it
    would overrun, so some rows are computed twice: faster than row by row, but wrong if the sums start from c.
    """
    done, from_c = 0, origin == c
    row, beside = (c_row, c_beside) if from_c else (0, LANES)
    while done < rows:
        left = rows - done
        if left >= R0 or (left > R1 + R2 and rows >= R0 and not from_c):
            i, done = min(done, rows - R0), done + R0
            TILE0(i, a, b, table, count, far, length, c, c_row, vectors, c_beside, origin, row, beside)
        elif left >= R1 or (left > R2 and rows >= R1 and not from_c):
            i, done = min(done, rows - R1), done + R1
            TILE1(i, a, b, table, count, far, length, c, c_row, vectors, c_beside, origin, row, beside)
        elif left >= R2 or (left > R3 and rows >= R2 and not from_c):
            i, done = min(done, rows - R2), done + R2
            TILE2(i, a, b, table, count, far, length, c, c_row, vectors, c_beside, origin, row, beside)
        else:
            i, done = done, done + R3
            TILE3(i, a, b, table, count, far, length, c, c_row, vectors, c_beside, origin, row, beside)


@CompiledFunction
def outer(rows, a, b, table, count, far, length, c, c_row, columns, b_beside, adds):
    """Multiply at most 16 rows, which are channels of a block, by all columns; the sum runs over pixels."""
    for i in range(0, rows, DEEP):
        for j in range(0, columns, PANEL):
            x, y, z = a + i * BYTES, b + j // LANES * b_beside * BYTES, c + (i * c_row + j) * BYTES
            if columns - j > LANES and VECTORS > 1:
                DEEP_WIDE(x, y, table, count, far, b_beside, length, z, c_row, LANES, z if adds else 0, c_row, LANES)
            else:
                DEEP_ONE(x, y, table, count, far, b_beside, length, z, c_row, LANES, z if adds else 0, c_row, LANES)
