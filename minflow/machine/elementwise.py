"""Arithmetic, activations, copies and sums over rows as steps, so that a plan need not leave its program for them.

What they compute is what NumPy computes, bit for bit: eager keeps NumPy's kernels. Nearly all are one instruction, that
goes along rows: what repeats (a bias, a literal) is a row that is read again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from . import llvm
from .jit import compiled, intrinsic
from .llvm import LANES, number_at, put
from .shared import publish
from .steps import Room, Step, instruction, word_at
from .vectors import (BYTES, add as plus, clipped, filled, load, load_some, multiply as times, store, store_some,
                      subtract as minus)

WIDTH, CHUNK = 1 << 10, 1 << 14  # numbers: of a row where none is given; that a thread takes
ADD, SUB, MUL, RELU, RELU6, RELU_GRAD, RELU6_GRAD, CLONE = range(8)
COLUMNS = 64  # that are summed in a chunk
EXACT = 1 << 24  # whole numbers below are float32
LARGEST = float(np.finfo("f4").max)


@intrinsic
def is_not(context, y, number):
    """1 where y is another number, or NaN, else 0."""
    def code(context, builder, signature, a):
        return builder.select(builder.fcmp_unordered("!=", *a), llvm.filled(1), llvm.filled(0))
    return y(y, y), code


@intrinsic
def is_between(context, y, high):
    """1 where y is between 0 and `high`, or NaN, else 0."""
    def code(context, builder, signature, a):
        flat = builder.or_(builder.fcmp_ordered("<=", a[0], llvm.filled(0)), builder.fcmp_ordered(">=", *a))
        return builder.select(flat, llvm.filled(0), llvm.filled(1))
    return y(y, y), code


@compiled
def result(kind, x, y):
    """What an operation makes of two vectors."""
    zero = filled(np.float32(0))
    if kind == ADD:
        return plus(x, y)
    if kind == SUB:
        return minus(x, y)
    if kind == MUL:
        return times(x, y)
    if kind == RELU:
        return plus(clipped(x, zero, filled(np.float32(np.nan))), zero)  # of -0 it makes 0, as NumPy's maximum
    if kind == RELU6:
        return clipped(x, zero, filled(np.float32(6)))
    if kind == RELU_GRAD:
        return times(x, is_not(y, zero))
    if kind == RELU6_GRAD:
        return times(x, is_between(y, filled(np.float32(6))))
    return x


@instruction
def elementwise(words, chunk, scratch):
    """out = a and b, joined as `kind` says: words kind, a, numbers to its next row, b, to its next row, out, width of
    a row, numbers in all, rows of a chunk."""
    kind, width, count, rows = word_at(words, 0), word_at(words, 6), word_at(words, 7), word_at(words, 8)
    zero = filled(np.float32(0))
    for row in range(chunk * rows, min((chunk + 1) * rows, (count + width - 1) // width)):
        a = word_at(words, 1) + BYTES * word_at(words, 2) * row
        b = word_at(words, 3) + BYTES * word_at(words, 4) * row
        out = word_at(words, 5) + BYTES * width * row
        size = BYTES * min(width, count - width * row)
        whole = size - size % (BYTES * LANES)
        for i in range(0, whole, BYTES * LANES):
            store(out + i, result(kind, load(a + i), load(b + i)))
        left = (size - whole) // BYTES
        if left:
            x, y = load_some(a + whole, left, zero), load_some(b + whole, left, zero)
            store_some(out + whole, left, result(kind, x, y))


@instruction
def copy_apart(words, chunk, scratch):
    """Copy numbers that lie apart: words x, its four sizes, its four strides (bytes), out, rows of a chunk."""
    n1, n2, n3 = word_at(words, 2), word_at(words, 3), word_at(words, 4)
    step = word_at(words, 8)
    zero = filled(np.float32(0))
    for row in range(chunk * word_at(words, 10), min((chunk + 1) * word_at(words, 10), word_at(words, 1) * n1 * n2)):
        x = word_at(words, 0) + row // (n1 * n2) * word_at(words, 5) + row // n2 % n1 * word_at(words, 6)
        x, out = x + row % n2 * word_at(words, 7), word_at(words, 9) + BYTES * n3 * row
        if step == BYTES:
            for i in range(0, n3, LANES):
                store_some(out + BYTES * i, n3 - i, load_some(x + BYTES * i, n3 - i, zero))
        else:
            for i in range(n3):
                put(out, i, number_at(x + step * i, 0))


@instruction
def count_up(words, chunk, scratch):
    """Add a number to whole ones: words x, number, out, count."""
    for i in range(word_at(words, 3)):
        publish(word_at(words, 2) + 8 * i, word_at(word_at(words, 0), i) + word_at(words, 1))


@instruction
def sum_rows(words, chunk, scratch):
    """The sum of all rows, one after the other: words x, out, rows, width, columns of a chunk."""
    rows, width, columns = word_at(words, 2), word_at(words, 3), word_at(words, 4)
    zero = filled(np.float32(0))
    for first in range(chunk * columns, min((chunk + 1) * columns, width), LANES):
        some = min(LANES, width - first)
        x = word_at(words, 0) + BYTES * first
        found = load_some(x, some, zero)
        if some == LANES:
            for row in range(1, rows):
                found = plus(found, load(x + BYTES * width * row))
        else:
            for row in range(1, rows):
                found = plus(found, load_some(x + BYTES * width * row, some, zero))
        store_some(word_at(words, 1) + BYTES * first, some, found)


# ---- builders --------------------------------------------------------------------------------------------------------

def flat(*arrays) -> bool:
    """Are they of float32, and their numbers side by side?"""
    return all([isinstance(a, np.ndarray) and a.dtype == np.float32 and a.flags.c_contiguous for a in arrays])


def row_of(x, shape: tuple) -> np.ndarray | None:
    """The row that x repeats where it is met by `shape`; None where it does not."""
    if isinstance(x, float) or (isinstance(x, int) and abs(x) < EXACT):
        return None if LARGEST < abs(x) < math.inf else np.full(min(WIDTH, math.prod(shape)), x, "f4")
    if not flat(x):
        return None
    own = x.shape[next((i for i, n in enumerate(x.shape) if n != 1), x.ndim) :]
    return x if own and own == shape[len(shape) - len(own) :] else None


def joined(kind: int, a, b, out: np.ndarray) -> list[Step] | None:
    """Of two arrays or numbers, one of which is as large as the result."""
    if not flat(out):
        return None
    rows = [x if flat(x) and x.size == out.size else row_of(x, out.shape) for x in (a, b)]
    if rows[0] is None or rows[1] is None or out.size > max(rows[0].size, rows[1].size):
        return None
    least = min(row.size for row in rows)
    width = WIDTH if least == out.size else least
    return along(kind, *rows, out, width, *[0 if row.size < out.size else width for row in rows])


def along(kind: int, a, b, out, width: int, a_next: int, b_next: int) -> list[Step]:
    rows = max(1, CHUNK // width) if width else 1
    chunks = -(-out.size // (width * rows)) if width else 0
    return [elementwise(chunks, kind, a, a_next, b, b_next, out, width, out.size, rows)]


def same(kind: int, a, b, out: np.ndarray) -> list[Step] | None:
    """Of arrays of one shape."""
    if not flat(a, b, out) or not a.shape == b.shape == out.shape:
        return None
    return along(kind, a, b, out, WIDTH, WIDTH, WIDTH)


def add(arrays: Sequence, outs: Sequence, room: Room) -> list[Step] | None:
    (x, number), (out,) = arrays, outs
    if isinstance(number, int) and out.dtype == np.int64 and out.flags.c_contiguous and x.size < WIDTH:
        return [count_up(1, x, number, out, x.size)] if x.dtype == out.dtype and x.flags.c_contiguous else None
    return joined(ADD, *arrays, out)


def sub(arrays: Sequence, outs: Sequence, room: Room) -> list[Step] | None:
    return joined(SUB, *arrays, *outs)


def mul(arrays: Sequence, outs: Sequence, room: Room) -> list[Step] | None:
    return joined(MUL, *arrays, *outs)


def relu(arrays: Sequence, outs: Sequence, room: Room) -> list[Step] | None:
    return same(RELU, *arrays, *arrays, *outs)


def relu6(arrays: Sequence, outs: Sequence, room: Room) -> list[Step] | None:
    return same(RELU6, *arrays, *arrays, *outs)


def clone(arrays: Sequence, outs: Sequence, room: Room) -> list[Step] | None:
    """Of a view that lies apart, too: of the heads of an attention."""
    (x,), (out,) = arrays, outs
    if flat(x) or not flat(out) or not isinstance(x, np.ndarray) or x.dtype != out.dtype or x.ndim > 4:
        return same(CLONE, x, x, out)
    more = (1,) * (4 - x.ndim)
    rows = max(1, CHUNK // x.shape[-1]) if x.size else 1
    chunks = -(-x.size // (x.shape[-1] * rows)) if x.size else 0
    return [copy_apart(chunks, x, *more, *x.shape, *more, *x.strides, out, rows)]


def relu_grad(arrays: Sequence, outs: Sequence, room: Room) -> list[Step] | None:
    return same(RELU_GRAD, *arrays, *outs)


def relu6_grad(arrays: Sequence, outs: Sequence, room: Room) -> list[Step] | None:
    return same(RELU6_GRAD, *arrays, *outs)


def sum_to(arrays: Sequence, outs: Sequence, room: Room, shape: tuple) -> list[Step] | None:
    """Over leading axes alone."""
    (x,), (out,) = arrays, outs
    width = math.prod(shape)
    if not flat(x, out) or x.ndim <= len(shape) or x.shape[x.ndim - len(shape) :] != shape or width < 2 or not x.size:
        return None
    return [sum_rows(-(-width // COLUMNS), x, out, x.size // width, width, COLUMNS)]
