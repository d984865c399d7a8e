"""Products of any size from tiles of micro-kernels: routines that are compiled once, and called by address.

Read next: `gemm.py` and `conv.py`, whose instructions call them.
"""

from __future__ import annotations

from ..codegen.jit import CompiledFunction
from ..codegen.llvm import LANES
from ..codegen.micro_kernels import CHANNELS, DEEP, PANEL, PIXELS, ROWS, VECTORS

R0, R1, R2, R3 = ROWS
WIDE0, WIDE1, WIDE2, WIDE3 = [PIXELS[p, VECTORS] for p in ROWS]
ONE0, ONE1, ONE2, ONE3 = [PIXELS[p, 1] for p in ROWS]
DEEP_WIDE, DEEP_ONE = CHANNELS[VECTORS], CHANNELS[1]
BYTES = 4


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
            x, y, z = a + i * LANES * BYTES, c + i * c_row * BYTES, origin + i * row * BYTES
            if vectors == VECTORS:
                WIDE0(x, b, table, count, far, LANES, length, y, c_row, c_beside, z, row, beside)
            else:
                ONE0(x, b, table, count, far, LANES, length, y, c_row, c_beside, z, row, beside)
        elif left >= R1 or (left > R2 and rows >= R1 and not from_c):
            i, done = min(done, rows - R1), done + R1
            x, y, z = a + i * LANES * BYTES, c + i * c_row * BYTES, origin + i * row * BYTES
            if vectors == VECTORS:
                WIDE1(x, b, table, count, far, LANES, length, y, c_row, c_beside, z, row, beside)
            else:
                ONE1(x, b, table, count, far, LANES, length, y, c_row, c_beside, z, row, beside)
        elif left >= R2 or (left > R3 and rows >= R2 and not from_c):
            i, done = min(done, rows - R2), done + R2
            x, y, z = a + i * LANES * BYTES, c + i * c_row * BYTES, origin + i * row * BYTES
            if vectors == VECTORS:
                WIDE2(x, b, table, count, far, LANES, length, y, c_row, c_beside, z, row, beside)
            else:
                ONE2(x, b, table, count, far, LANES, length, y, c_row, c_beside, z, row, beside)
        else:
            i, done = done, done + R3
            x, y, z = a + i * LANES * BYTES, c + i * c_row * BYTES, origin + i * row * BYTES
            if vectors == VECTORS:
                WIDE3(x, b, table, count, far, LANES, length, y, c_row, c_beside, z, row, beside)
            else:
                ONE3(x, b, table, count, far, LANES, length, y, c_row, c_beside, z, row, beside)


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
