"""Matrix products that are bound by memory: few rows, or few terms of a sum, and one large matrix.

The large matrix is read or written once, in place; packing it, as `gemm.py` does, would take as long as the product.
With few rows (a batch of two, a single query) it is the right side: its columns are multiplied by the rows of the left
one (`dots_of_columns`) or, if its rows are contiguous, added to the rows of the result (`sums_of_rows`). With few terms
(the gradient of a weight) it is the result. The order of sums depends on shapes alone. Read next: `gemm.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....core.ops.linalg import THIN, THIN_ROWS, THIN_TERMS, matmul
from ....core.spec import Spec, float32 as float32_dtype
from ..codegen.jit import compiled, float32
from ..codegen.llvm import LANES, number_at, put
from ..codegen.vectors import BYTES, filled, load, load_some, multiply_add, store, store_some
from ..lowering import lowers
from ..runtime.instructions import instruction
from ..runtime.tasks import Task, Workspace
from .elementwise_loops import sum_of_lanes
from .gemm import layout_of, product, transposed

STEP = LANES * BYTES
FEW_ROWS = 8  # at most; more are worth packing the right side
WIDE = 64  # columns, at least, and terms of dot products
BESIDE = 4  # columns whose dot products are computed together
STRIP = 1 << 10  # columns of a strip; four rows of it stay in the first-level cache
CHUNK = 1 << 18  # elements of the large matrix that a chunk reads or writes


# ---- few rows, columns of the right side contiguous ------------------------------------------------------------------


@compiled
def dots(x, y, b, b_column, length, c, d):
    """Dot products of two rows, at x and y, with four columns of b, from c and from d on.

    b_column: bytes between columns; 0 to compute one column.
    """
    zeros = filled(float32(0))
    x0 = x1 = x2 = x3 = y0 = y1 = y2 = y3 = zeros
    p, q, r = b + b_column, b + 2 * b_column, b + 3 * b_column
    whole, left = length // LANES * STEP, length % LANES
    for i in range(0, whole, STEP):
        u, v = load(x + i), load(y + i)
        w = load(b + i)
        x0, y0 = multiply_add(u, w, x0), multiply_add(v, w, y0)
        w = load(p + i)
        x1, y1 = multiply_add(u, w, x1), multiply_add(v, w, y1)
        w = load(q + i)
        x2, y2 = multiply_add(u, w, x2), multiply_add(v, w, y2)
        w = load(r + i)
        x3, y3 = multiply_add(u, w, x3), multiply_add(v, w, y3)
    if left:
        u, v = load_some(x + whole, left, zeros), load_some(y + whole, left, zeros)
        w = load_some(b + whole, left, zeros)
        x0, y0 = multiply_add(u, w, x0), multiply_add(v, w, y0)
        w = load_some(p + whole, left, zeros)
        x1, y1 = multiply_add(u, w, x1), multiply_add(v, w, y1)
        w = load_some(q + whole, left, zeros)
        x2, y2 = multiply_add(u, w, x2), multiply_add(v, w, y2)
        w = load_some(r + whole, left, zeros)
        x3, y3 = multiply_add(u, w, x3), multiply_add(v, w, y3)
    put(c, 0, sum_of_lanes(x0))
    put(d, 0, sum_of_lanes(y0))
    if b_column:
        put(c, 1, sum_of_lanes(x1))
        put(c, 2, sum_of_lanes(x2))
        put(c, 3, sum_of_lanes(x3))
        put(d, 1, sum_of_lanes(y1))
        put(d, 2, sum_of_lanes(y2))
        put(d, 3, sum_of_lanes(y3))


@instruction
def dots_of_columns(chunk, scratch, a, a_row, b, b_column, out, rows, length, columns, chunk_columns):
    """Compute some columns of out = a @ b. a_row, b_column: bytes between rows of a, and between columns of b."""
    last = min((chunk + 1) * chunk_columns, columns)
    for j in range(chunk * chunk_columns, last, BESIDE):
        for row in range(0, rows, 2):
            other = min(row + 1, rows - 1)
            x, y, c, d = a + row * a_row, a + other * a_row, out + row * columns * BYTES, out + other * columns * BYTES
            if last - j >= BESIDE:
                dots(x, y, b + j * b_column, b_column, length, c + j * BYTES, d + j * BYTES)
            else:
                for k in range(j, last):
                    dots(x, y, b + k * b_column, 0, length, c + k * BYTES, d + k * BYTES)


# ---- few rows or few terms, rows of the right side contiguous --------------------------------------------------------


@compiled
def add_row(out, a, b, columns):
    """Add a * b, a number times a row, to `out`."""
    u, zeros, whole = filled(a), filled(float32(0)), columns // LANES * STEP
    for i in range(0, whole, STEP):
        store(out + i, multiply_add(u, load(b + i), load(out + i)))
    left = columns % LANES
    if left:
        total = multiply_add(u, load_some(b + whole, left, zeros), load_some(out + whole, left, zeros))
        store_some(out + whole, left, total)


@compiled
def write_two_rows(out, a, c, b, d, columns):
    """Compute out = a * b + c * d, numbers times rows."""
    u, v, zeros, whole = filled(a), filled(c), filled(float32(0)), columns // LANES * STEP
    for i in range(0, whole, STEP):
        store(out + i, multiply_add(v, load(d + i), u * load(b + i)))
    left = columns % LANES
    if left:
        total = u * load_some(b + whole, left, zeros)
        store_some(out + whole, left, multiply_add(v, load_some(d + whole, left, zeros), total))


@compiled
def add_four_rows(out, a, a_column, b, b_row, columns, fresh):
    """Add four numbers of a, `a_column` bytes apart, times four rows of b to `out`; or write their sum (fresh)."""
    zeros = filled(float32(0))
    u, v = filled(number_at(a, 0)), filled(number_at(a + a_column, 0))
    w, x = filled(number_at(a + 2 * a_column, 0)), filled(number_at(a + 3 * a_column, 0))
    p, q, r = b + b_row, b + 2 * b_row, b + 3 * b_row
    whole, left = columns // LANES * STEP, columns % LANES
    if fresh:
        for i in range(0, whole, STEP):
            total = multiply_add(v, load(p + i), u * load(b + i))
            store(out + i, multiply_add(x, load(r + i), multiply_add(w, load(q + i), total)))
    else:
        for i in range(0, whole, STEP):
            total = multiply_add(v, load(p + i), multiply_add(u, load(b + i), load(out + i)))
            store(out + i, multiply_add(x, load(r + i), multiply_add(w, load(q + i), total)))
    if left:
        total = zeros if fresh else load_some(out + whole, left, zeros)
        total = multiply_add(u, load_some(b + whole, left, zeros), total)
        total = multiply_add(v, load_some(p + whole, left, zeros), total)
        total = multiply_add(w, load_some(q + whole, left, zeros), total)
        store_some(out + whole, left, multiply_add(x, load_some(r + whole, left, zeros), total))


@instruction
def sums_of_rows(chunk, scratch, a, a_row, a_column, b, b_row, out, rows, terms, columns, chunk_rows):
    """Compute some rows of a strip of out = a @ b. a_row, a_column, b_row: bytes from one to the next."""
    strips = (columns + STRIP - 1) // STRIP
    left = chunk % strips * STRIP
    wide, top = min(STRIP, columns - left), chunk // strips * chunk_rows
    end, fours = min(top + chunk_rows, rows), terms // 4 * 4
    source, target = b + left * BYTES, out + left * BYTES
    for k in range(0, fours, 4):
        for row in range(top, end):
            place, row_a = target + row * columns * BYTES, a + row * a_row + k * a_column
            add_four_rows(place, row_a, a_column, source + k * b_row, b_row, wide, k == 0)
    for row in range(top, end if fours < terms else top):
        place, row_a, done = target + row * columns * BYTES, a + row * a_row, fours
        if not done:
            x, y = number_at(row_a, 0), number_at(row_a + a_column, 0)
            write_two_rows(place, x, y, source, source + b_row, wide)
            done = 2
        for k in range(done, terms):
            add_row(place, number_at(row_a + k * a_column, 0), source + k * b_row, wide)


# ---- builder ---------------------------------------------------------------------------------------------------------


def thin(arrays: Sequence, outs: Sequence, workspace: Workspace, ta: bool, tb: bool) -> list[Task] | None:
    left, right = arrays
    (a, b), (out,) = transposed(left, right, ta, tb), outs
    if not all([x.dtype == np.float32 and x.ndim == 2 for x in (a, b, out)]) or not out.flags.c_contiguous:
        return None
    (rows, terms), columns = a.shape, b.shape[1]
    if not is_thin(rows, terms, columns, tb):
        return None
    if rows > FEW_ROWS and terms > THIN_TERMS:
        return product(a, b, out, workspace)
    if None in (layout_of(a.shape, a.strides, ()), layout_of(b.shape, b.strides, ())):
        return None
    if b.strides[1] == BYTES:
        some = rows if rows <= FEW_ROWS else max(1, CHUNK // min(columns, STRIP))
        chunks = -(-columns // STRIP) * -(-rows // some)
        return [sums_of_rows(chunks, a, *a.strides, b, b.strides[0], out, rows, terms, columns, some)]
    if a.strides[1] != BYTES or rows > FEW_ROWS:
        return None
    some = -(-CHUNK // terms // BESIDE) * BESIDE
    return [dots_of_columns(-(-columns // some), a, a.strides[0], b, b.strides[1], out, rows, terms, columns, some)]


def is_thin(rows: int, terms: int, columns: int, tb: bool) -> bool:
    """True if BLAS is slower. tb: True if the right side is transposed, so its columns are contiguous, not its rows."""
    if terms < 2 or columns < WIDE:
        return False
    if rows <= FEW_ROWS:
        return terms * columns >= THIN and (terms >= WIDE or not tb)
    if terms <= THIN_TERMS:
        return rows * columns >= THIN and not tb
    return tb and rows <= THIN_ROWS and terms * columns >= THIN and terms >= WIDE


def accepts(a: Spec, b: Spec, ta: bool, tb: bool) -> bool:
    if not a.ndim == b.ndim == 2 or not a.dtype is b.dtype is float32_dtype or a.placement is not None:
        return False
    rows, terms = reversed(a.shape) if ta else a.shape
    return is_thin(rows, terms, b.shape[0 if tb else 1], tb)


lowers(matmul, thin, accepts=accepts)
