"""Arithmetic, activations and sums over rows as tasks, so that a plan need not interrupt a program for them.

Results have the bits of NumPy (except erf), so eager mode keeps NumPy's kernels if they are as fast. Nearly all are one
instruction that runs along rows; a broadcast operand (a bias, a literal) is a row that is read again. Read next:
`elementwise_fusion.py`, for several ops at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ....core.op import OPS
from ..codegen.atomics import publish
from ..codegen.llvm import LANES
from ..codegen.vectors import BYTES, filled, load, load_some, store, store_some
from ..lowering import MEDIUM, SMALL, lowers
from ..runtime.instructions import instruction, run_routine, word_at
from ..runtime.tasks import Task, Workspace
from .elementwise_fusion import FULL, ROW, Bytecode
from .elementwise_loops import OPCODES, operation_routine

WIDTH, CHUNK = 1 << 10, 1 << 14  # elements of a row without a broadcast operand; elements of a chunk
COLUMNS = 64  # columns that are summed in a chunk
EXACT = 1 << 24  # integers below are exact in float32
LARGEST = float(np.finfo("f4").max)


@instruction
def elementwise(chunk, scratch, code, a, a_next, b, b_next, out, width, count, chunk_rows, routine):
    """Compute out = a op b, row by row.

    code: of the op.  a_next, b_next: elements from a row of a or b to the next; 0 to read the same row again.  width:
    of a row.  count: elements of out.  routine: `operation_routine`.  scratch: two vectors.
    """
    zero, step = filled(np.float32(0)), BYTES * LANES
    for row in range(chunk * chunk_rows, min((chunk + 1) * chunk_rows, (count + width - 1) // width)):
        a_row = a + BYTES * a_next * row
        b_row = b + BYTES * b_next * row
        out_row = out + BYTES * width * row
        size = BYTES * min(width, count - width * row)
        whole = size - size % (BYTES * LANES)
        left = (size - whole) // BYTES
        if whole:
            run_routine(routine, code, out_row, a_row, b_row, a_row, step, step, step, whole // step, 0, 0, 0)
        if left:
            store(scratch, load_some(a_row + whole, left, zero))
            store(scratch + step, load_some(b_row + whole, left, zero))
            run_routine(routine, code, scratch, scratch, scratch + step, a_row, step, step, step, 1, 0, 0, 0)
            store_some(out_row + whole, left, load(scratch))


@instruction
def add_number(chunk, scratch, x, number, out, count):
    """Compute out = x + number, for `count` int64."""
    for i in range(count):
        publish(out + 8 * i, word_at(x, i) + number)


@instruction
def sum_rows(chunk, scratch, x, out, rows, width, chunk_columns):
    """Sum x (rows, width) over its rows, in order."""
    zero = filled(np.float32(0))
    for first in range(chunk * chunk_columns, min((chunk + 1) * chunk_columns, width), LANES):
        some = min(LANES, width - first)
        first_row = x + BYTES * first
        total = zero + load_some(first_row, some, zero)  # starting at 0 as NumPy does, so that a sum of -0 is 0
        if some == LANES:
            for row in range(1, rows):
                total = total + load(first_row + BYTES * width * row)
        else:
            for row in range(1, rows):
                total = total + load_some(first_row + BYTES * width * row, some, zero)
        store_some(out + BYTES * first, some, total)


# ---- builders --------------------------------------------------------------------------------------------------------


def flat(*arrays) -> bool:
    """True if all are contiguous float32."""
    return all([isinstance(a, np.ndarray) and a.dtype == np.float32 and a.flags.c_contiguous for a in arrays])


def row_of(x, shape: tuple) -> np.ndarray | None:
    """The row that x repeats when it is broadcast to `shape`; None if it does not."""
    if isinstance(x, float) or (isinstance(x, int) and abs(x) < EXACT):
        return None if LARGEST < abs(x) < math.inf else np.full(min(WIDTH, math.prod(shape)), x, "f4")
    if not flat(x):
        return None
    own = x.shape[next((i for i, n in enumerate(x.shape) if n != 1), x.ndim) :]
    return x if own and own == shape[len(shape) - len(own) :] else None


def binary(name: str, a, b, out: np.ndarray, workspace: Workspace) -> list[Task] | None:
    """Binary op of arrays or numbers, one of which has the size of the output."""
    if not flat(out):
        return None
    rows = [x if flat(x) and x.size == out.size else row_of(x, out.shape) for x in (a, b)]
    if rows[0] is None or rows[1] is None or out.size > max(rows[0].size, rows[1].size):
        return by_channel(name, a, b, out, workspace)
    least = min(row.size for row in rows)
    width = WIDTH if least == out.size else least
    return row_tasks(name, *rows, out, width, *[0 if row.size < out.size else width for row in rows])


def by_channel(name: str, a, b, out: np.ndarray, workspace: Workspace) -> list[Task] | None:
    """Binary op of images (N, C, ...) and one element per channel, (1, C, 1, ...)."""
    if not flat(a, b) or out.ndim < 3 or not out.size or out.shape[1] == 1:
        return None
    channels, pixels = out.shape[1], math.prod(out.shape[2:])
    alike = (1, channels, *[1] * (out.ndim - 2))
    if {(1,) * (out.ndim - x.ndim) + x.shape for x in (a, b)} != {out.shape, alike}:
        return None
    bytecode = Bytecode(len(out) * channels, pixels)
    operands = [
        bytecode.input(i, FULL, bytecode.rows) if x.shape == out.shape else bytecode.input(i, ROW, channels)
        for i, x in enumerate((a, b))
    ]
    bytecode.output(bytecode(name, *operands), FULL)
    return bytecode.finish().steps([a, b], [out], workspace)


def row_tasks(name: str, a, b, out, width: int, a_next: int, b_next: int) -> list[Task]:
    rows = max(1, CHUNK // width) if width else 1
    chunks = -(-out.size // (width * rows)) if width else 0
    return [
        elementwise(
            chunks,
            OPCODES[name],
            a,
            a_next,
            b,
            b_next,
            out,
            width,
            out.size,
            rows,
            operation_routine.address,
            scratch=2 * LANES,
        )
    ]


def same_shape(name: str, a, b, out: np.ndarray) -> list[Task] | None:
    """Binary op of arrays of one shape."""
    if not flat(a, b, out) or not a.shape == b.shape == out.shape:
        return None
    return row_tasks(name, a, b, out, WIDTH, WIDTH, WIDTH)


def add(arrays: Sequence, outs: Sequence, workspace: Workspace) -> list[Task] | None:
    (x, number), (out,) = arrays, outs
    if isinstance(number, int) and out.dtype == np.int64 and out.flags.c_contiguous and x.size < WIDTH:
        return [add_number(1, x, number, out, x.size)] if x.dtype == out.dtype and x.flags.c_contiguous else None
    return binary("add", *arrays, out, workspace)


def sub(arrays: Sequence, outs: Sequence, workspace: Workspace) -> list[Task] | None:
    return binary("sub", *arrays, *outs, workspace)


def mul(arrays: Sequence, outs: Sequence, workspace: Workspace) -> list[Task] | None:
    return binary("mul", *arrays, *outs, workspace)


def relu(arrays: Sequence, outs: Sequence, workspace: Workspace) -> list[Task] | None:
    return same_shape("relu", *arrays, *arrays, *outs)


def relu6(arrays: Sequence, outs: Sequence, workspace: Workspace) -> list[Task] | None:
    return same_shape("relu6", *arrays, *arrays, *outs)


def erf(arrays: Sequence, outs: Sequence, workspace: Workspace) -> list[Task] | None:
    return same_shape("erf", *arrays, *arrays, *outs)


def relu_grad(arrays: Sequence, outs: Sequence, workspace: Workspace) -> list[Task] | None:
    return same_shape("relu_grad", *arrays, *outs)


def relu6_grad(arrays: Sequence, outs: Sequence, workspace: Workspace) -> list[Task] | None:
    return same_shape("relu6_grad", *arrays, *outs)


def sum_to(arrays: Sequence, outs: Sequence, workspace: Workspace, shape: tuple) -> list[Task] | None:
    """Sum over leading axes only."""
    (x,), (out,) = arrays, outs
    width = math.prod(shape)
    if not flat(x, out) or x.ndim <= len(shape) or x.shape[x.ndim - len(shape) :] != shape or width < 2 or not x.size:
        return None
    return [sum_rows(-(-width // COLUMNS), x, out, x.size // width, width, COLUMNS)]


def adds_to_channels(x, y) -> bool:
    """True if y has one element for each channel of images x, of a size at which NumPy's loop is slow."""
    return (
        x.__class__ is y.__class__ is np.ndarray
        and x.ndim > 2
        and x.size >= SMALL
        and y.size == x.shape[1]
        and not 4 < x[0, 0].size < 256
        and x[0, 0].size > 1
    )


for op, builder in (("add", add), ("sub", sub), ("mul", mul)):
    lowers(OPS[op], builder, eager=adds_to_channels, lone=False, tolerance=0)
lowers(OPS["erf"], erf, eager=lambda x: x.size >= SMALL, same_rule=True)
lowers(OPS["relu6_grad"], relu6_grad, eager=lambda x, y: np.size(x) >= SMALL, tolerance=0)
for op, builder in (("relu", relu), ("relu_grad", relu_grad)):
    lowers(OPS[op], builder, eager=lambda x, *rest: np.size(x) >= MEDIUM, tolerance=0)
lowers(OPS["relu6"], relu6, eager=False, tolerance=0)
lowers(OPS["sum_to"], sum_to, eager=False, tolerance=0)
