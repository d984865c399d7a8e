"""Data movement: strided copies, gather and scatter, cumulative sums, top-k; bit for bit as NumPy.

A copy runs along contiguous rows if both arrays have them; if their contiguous axes differ, by 16x16 tiles that are
transposed in registers. Items have four or eight bytes. Read next: `elementwise.py`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from functools import partial, reduce
from typing import NamedTuple

import numpy as np

from ....core.op import OPS
from ....core.ops.checks import FROM_THE_END
from ....core.ops.shape import pad_slices
from ..codegen.atomics import publish
from ..codegen.jit import compiled, inlined
from ..codegen.llvm import LANES, copy_transposed, number_at, put
from ..codegen.vectors import BYTES, filled, load, load_some, store, store_some
from ..lowering import COPY_SETUP, SMALL, lowers
from ..runtime.instructions import instruction, word_at, words_from
from ..runtime.tasks import Task, Workspace
from .elementwise_fusion import FULL, MASK, Bytecode
from .elementwise_loops import put_word

WORD = 8  # bytes
CHUNK = 1 << 15  # elements of a chunk
WIDE = 1 << 12  # elements of a row that are copied at once
ALIGNED = 256  # elements from which on a run is aligned to cache lines of the target
COLUMNS = 256  # columns that are summed at once
FEW = 16  # elements kept in order while a row is scanned (top-k)
LEAST_RUN = 4  # contiguous items of eight bytes; NumPy copies shorter runs as fast
# Kinds of `gather_items`, besides the bytes of an item: runs of elements; elements that are added to others.
TOGETHER, ADDED = 0, 1


@inlined
def copy_run(source, target, count, zero):
    """Copy `count` contiguous elements; align long runs to cache lines."""
    head = -target // BYTES % LANES if count > ALIGNED else 0
    if head:
        store_some(target, head, load_some(source, head, zero))
    whole = count - (count - head) % LANES
    for i in range(head, whole, LANES):
        store(target + BYTES * i, load(source + BYTES * i))
    if whole < count:
        store_some(target + BYTES * whole, count - whole, load_some(source + BYTES * whole, count - whole, zero))


class FourAxes(NamedTuple):
    """Sizes or strides of four axes."""

    first: int
    second: int
    third: int
    last: int


@instruction
def copy_strided(
    chunk,
    scratch,
    x,
    out,
    row,
    strip,
    strip_step,
    x_step,
    out_step,
    columns,
    strips,
    chunk_strips,
    shape: FourAxes,
    x_strides: FourAxes,
    out_strides: FourAxes,
):
    """Copy rows of elements, or strips of rows.

    row, strip: elements of each.  strip_step: elements from strip to strip, 0 if a row has one.  x_step, out_step:
    bytes between elements.  columns: of strips that are transposed, or 0.  strips: in all. shape, strides (in bytes):
    of the other axes; the last one is that of strips, if a row has several.
    """
    first, last = chunk * chunk_strips, min((chunk + 1) * chunk_strips, strips)
    (_, n1, n2, n3), zero = shape, filled(np.float32(0))
    (x0, x1, x2, x3), (out0, out1, out2, out3) = x_strides, out_strides
    while first < last:
        i, j, k, m = first // (n1 * n2 * n3), first // (n2 * n3) % n1, first // n3 % n2, first % n3
        source = x + i * x0 + j * x1 + k * x2 + m * x3
        target = out + i * out0 + j * out1 + k * out2 + m * out3
        end = min(n3, m + last - first)
        first += end - m
        for place in range(m, end):
            high = min(strip, row - place * strip_step)
            if columns and high == LANES:
                for c in range(0, columns, LANES):
                    c = min(c, columns - LANES)
                    copy_transposed(source + c * x_step, x_step // BYTES, target + c * BYTES, out_step // BYTES)
            elif columns:
                for r in range(high):
                    for c in range(columns):
                        put(target + r * out_step, c, number_at(source + c * x_step, r))
            elif x_step == BYTES and out_step == BYTES:
                copy_run(source, target, high, zero)
            elif x_step == 0 and out_step == BYTES:
                for c in range(0, high, LANES):
                    store_some(target + c * BYTES, high - c, filled(number_at(source, 0)))
            else:
                for c in range(high):
                    put(target + c * out_step, 0, number_at(source + c * x_step, 0))
            source += x3
            target += out3


@compiled
def pick_items(source, target, places, start, end, size, index_step, k_step, kind):
    """Gather, or add to their targets, the items of a row from `start` to `end`: see `gather_items`."""
    for k in range(start, end):
        place = (places[k] + (size if places[k] < 0 else 0)) * index_step + k * k_step
        if kind == BYTES:
            put(target, k, number_at(source, place))
        elif kind == WORD:
            put_word(target, k, word_at(source, place))
        else:
            put(source, place, number_at(source, place) + number_at(target, k))


@instruction
def gather_items(
    chunk,
    scratch,
    x,
    index,
    out,
    n,
    index_row,
    size,
    low,
    index_step,
    k_step,
    x_row,
    per,
    run,
    kind,
    items,
    chunk_items,
    refused,
):
    """Gather: out[row, k] = x[row, index[row, k]]. Indices out of range are reported in `refused`.

    n: items of a row.  index_row: elements from a row of the index to the next, 0 if all share one.  size: of the
    axis.  low: the least valid index.  index_step: elements of x between two indices; k_step: between two k.  x_row:
    bytes between rows of x, each of which is read for `per` rows of out.  run: elements of an item.  kind: bytes of an
    item, TOGETHER or ADDED.  items: in all.
    """
    zero = filled(np.float32(0))
    first, last, wrong = chunk * chunk_items, min((chunk + 1) * chunk_items, items), 0
    looked, least = 0, 0
    while first < last:
        row = first // n
        start, end = first - row * n, min(n, last - row * n)
        first += end - start
        places = words_from(index + WORD * row * index_row)
        # An index shared by all rows is checked for a part of the first row and for the second.
        if index_row or looked < 2:
            least, most = 0 if index_row else least, 0
            for k in range(start, end):
                least, most = min(least, places[k]), max(most, places[k])
            looked += 1
            if least < low or most >= size:
                wrong = 1
        if wrong:
            break
        source, target = x + row // per * x_row, out + row * n * run * BYTES
        if kind == BYTES and least >= 0 and index_step == 1 and k_step == 0:
            for k in range(start, end):
                put(target, k, number_at(source, places[k]))
        elif kind == TOGETHER:
            for k in range(start, end):
                place = (places[k] + (size if places[k] < 0 else 0)) * index_step
                copy_run(source + place * BYTES, target + k * run * BYTES, run, zero)
        else:
            pick_items(source, target, places, start, end, size, index_step, k_step, kind)
    publish(refused + WORD * chunk, wrong)


@instruction
def cumsum_rows(chunk, scratch, x, out, rows, positions, width, chunk_rows):
    """Cumulative sums of x (rows, positions, width) over positions.

    If width is not 1, a row of a chunk is a strip of up to COLUMNS columns.
    """
    first, last = chunk * chunk_rows, min((chunk + 1) * chunk_rows, rows)
    zero = filled(np.float32(0))
    if width == 1:
        for row in range(first, last, 4):  # four rows at once, since additions of one row depend on each other
            p, q = row * positions * BYTES, min(row + 1, last - 1) * positions * BYTES
            r, s = min(row + 2, last - 1) * positions * BYTES, min(row + 3, last - 1) * positions * BYTES
            a, b, c, d = number_at(x + p, 0), number_at(x + q, 0), number_at(x + r, 0), number_at(x + s, 0)
            put(out + p, 0, a)
            put(out + q, 0, b)
            put(out + r, 0, c)
            put(out + s, 0, d)
            for j in range(1, positions):
                a, b = a + number_at(x + p, j), b + number_at(x + q, j)
                c, d = c + number_at(x + r, j), d + number_at(x + s, j)
                put(out + p, j, a)
                put(out + q, j, b)
                put(out + r, j, c)
                put(out + s, j, d)
        return
    pieces = (width + COLUMNS - 1) // COLUMNS
    for strip in range(first, last):
        start = (strip // pieces * positions * width + strip % pieces * COLUMNS) * BYTES
        columns = min(COLUMNS, width - strip % pieces * COLUMNS)
        copy_run(x + start, out + start, columns, zero)
        for j in range(1, positions):
            after = start + j * width * BYTES
            for c in range(0, columns, LANES):
                before = load_some(out + after - width * BYTES + c * BYTES, columns - c, zero)
                store_some(
                    out + after + c * BYTES, columns - c, before + load_some(x + after + c * BYTES, columns - c, zero)
                )


@inlined
def ahead(a, b, descending):
    """True if a sorts before b. NaN counts as the largest number."""
    return (a > b) | ((a != a) & (b == b)) if descending else (a < b) | ((a == a) & (b != b))


@instruction
def topk_rows(chunk, scratch, x, values, indices, rows, n, k, descending, chunk_rows):
    """Find the first k elements of each row (rows, n) in sorted order (stable), and their indices (int64)."""
    for row in range(chunk * chunk_rows, min((chunk + 1) * chunk_rows, rows)):
        row_start = x + BYTES * n * row
        row_values, row_indices = values + BYTES * k * row, indices + WORD * k * row
        for i in range(n):
            number, place = number_at(row_start, i), min(i, k)
            if place == k and not ahead(number, number_at(row_values, k - 1), descending):
                continue
            place = min(place, k - 1)
            while place and ahead(number, number_at(row_values, place - 1), descending):
                put(row_values, place, number_at(row_values, place - 1))
                put_word(row_indices, place, word_at(row_indices, place - 1))
                place -= 1
            put(row_values, place, number)
            put_word(row_indices, place, i)


# ---- builders --------------------------------------------------------------------------------------------------------


def whole(*arrays) -> bool:
    return all([isinstance(a, np.ndarray) and a.flags.c_contiguous for a in arrays])


def collapsed(shape: Sequence, *strides: Sequence) -> list[list]:
    """Merge adjacent axes that all arrays can treat as one; returns [size, stride of each array]."""
    merged: list[list] = []
    for axis in reversed([[n, *steps] for n, *steps in zip(shape, *strides) if n != 1]):
        if merged and all([far == merged[0][0] * near for far, near in zip(axis[1:], merged[0][1:])]):
            merged[0][0] *= axis[0]
        else:
            merged.insert(0, axis)
    return merged or [[1, *[BYTES] * len(strides)]]


def copy(x, out: np.ndarray) -> list[Task] | None:
    """Copy one array to another of its shape, with any strides."""
    if not isinstance(x, np.ndarray) or x.dtype != out.dtype or x.itemsize not in (BYTES, WORD):
        return None
    more = (x.itemsize // BYTES,)
    *outer, (many, step, far) = (
        collapsed(x.shape + more, (*x.strides, BYTES), (*out.strides, BYTES)) if x.size else [[0, BYTES, BYTES]]
    )
    if (
        any([s % BYTES for s in (step, far)])
        or any([s % BYTES for _, *both in outer for s in both])
        or (many < LEAST_RUN * more[0] and more[0] > 1)
    ):
        return None
    columns, transposable = 0, [axis for axis in outer if axis[1] == BYTES and axis[0] >= LANES]
    if step != BYTES and far == BYTES and many >= LANES and transposable:
        outer.remove(transposable[0])
        columns, strip, (many, _, far) = many, LANES, transposable[0]
        axis = [-(-many // strip), strip * BYTES, strip * far]
    else:
        strip = min(WIDE, max(many, 1))
        axis = [-(-many // strip), strip * step, strip * far]
    several = axis[0] != 1
    axes = [*outer, axis] if several else outer
    if len(axes) > 4:
        return None
    axes = [*[[1, 0, 0]] * (4 - len(axes)), *axes]
    strips = math.prod([n for n, *_ in axes])
    some = max(1, CHUNK // (strip * max(columns, 1)))
    return [
        copy_strided(
            -(-strips // some),
            x,
            out,
            many,
            strip,
            several * strip,
            step,
            far,
            columns,
            strips,
            some,
            *[FourAxes(*[axis[i] for axis in axes]) for i in range(3)],
        )
    ]


def clone(arrays: Sequence, outs: Sequence, workspace: Workspace) -> list[Task] | None:
    return copy(*arrays, *outs)


def cat(arrays: Sequence, outs: Sequence, workspace: Workspace, dim: int) -> list[Task] | None:
    tasks: list[Task] = []
    start, (out,) = 0, outs
    for x in arrays:
        end = start + x.shape[dim]
        more = copy(x, out[(*[slice(None)] * dim, slice(start, end))]) if x.size else []
        if more is None:
            return None
        tasks, start = tasks + more, end
    return tasks


def stack(arrays: Sequence, outs: Sequence, workspace: Workspace, dim: int) -> list[Task] | None:
    return cat([np.expand_dims(x, dim) for x in arrays], outs, workspace, dim)


def pad(arrays: Sequence, outs: Sequence, workspace: Workspace, widths: tuple, value) -> list[Task] | None:
    """Write the padding of each side, then the interior."""
    (x,), (out,) = arrays, outs
    _, inside, beside = pad_slices(x.shape, widths)
    number = np.full((), value, x.dtype)
    places = [(np.broadcast_to(number, out[place].shape), out[place]) for place in beside] + [(x, out[inside])]
    tasks = [copy(source, target) for source, target in places if target.size]
    return None if None in tasks else reduce(operator.iadd, tasks, [])


def pick(
    x,
    index,
    out,
    rows: int,
    n: int,
    index_row: int,
    size: int,
    by: str,
    index_step: int,
    k_step: int,
    per: int,
    run: int,
    kind: int,
    chunk: int,
) -> list[Task]:
    """Build `gather_items`. x: the array that indices point into, also if it is the one that is written."""
    chunks = -(-rows * n // chunk)
    refused = np.zeros(chunks, "i8")
    groups = rows // per
    low, x_row = -size if by in FROM_THE_END else 0, x.nbytes // groups if groups else 0
    layout = n, index_row, size, low, index_step, k_step, x_row, per, run, kind
    task = gather_items(chunks, x, index, out, *layout, items=rows * n, chunk_items=chunk, refused=refused)
    return [task._replace(refused=refused)]


def take(arrays: Sequence, outs: Sequence, workspace: Workspace, axis: int, by: str = "indexing") -> list[Task] | None:
    (x, index), (out,) = arrays, outs
    if not whole(x, index, out) or index.dtype != np.int64 or x.itemsize not in (BYTES, WORD) or not out.size:
        return None
    rows, inner = math.prod(x.shape[:axis]), math.prod(x.shape[axis + 1 :])
    run = inner * x.itemsize // BYTES
    kind, index_step = (x.itemsize, 1) if inner == 1 else (TOGETHER, run)
    return pick(x, index, out, rows, index.size, 0, x.shape[axis], by, index_step, 0, 1, run, kind, -(-CHUNK // run))


def element_by_element(x, index, out, src, dim: int, by: str, kind: int) -> list[Task] | None:
    """Gather from an array, or scatter to it, by an index along an axis."""
    if (
        not whole(x, index, src)
        or index.dtype != np.int64
        or not src.size
        or not isinstance(index, np.ndarray)
        or (any([n != m for d, (n, m) in enumerate(zip(index.shape, x.shape)) if d != dim]))
    ):
        return None
    outer, many, inner = math.prod(x.shape[:dim]), index.shape[dim], math.prod(x.shape[dim + 1 :])
    rows, n, per, k_step = (outer, many, 1, 0) if inner == 1 else (outer * many, inner, many, 1)
    least = per * n if kind == ADDED else 1  # elements that may be added to one target belong to one chunk
    return pick(
        x,
        index,
        src,
        rows,
        n,
        n,
        x.shape[dim],
        by,
        inner,
        k_step,
        per,
        src.itemsize // BYTES,
        kind,
        max(CHUNK // least, 1) * least,
    )


def gather(arrays: Sequence, outs: Sequence, workspace: Workspace, dim: int, by: str = "indexing") -> list[Task] | None:
    (x, index), (out,) = arrays, outs
    return None if x.itemsize not in (BYTES, WORD) else element_by_element(x, index, out, out, dim, by, x.itemsize)


def scatter_add(
    arrays: Sequence, outs: Sequence, workspace: Workspace, dim: int, by: str = "indexing"
) -> list[Task] | None:
    """Add in the order of the source."""
    (x, index, src), (out,) = arrays, outs
    if not whole(out) or out.dtype != np.float32 or not isinstance(src, np.ndarray):
        return None
    copying, adding = copy(x, out), element_by_element(out, index, out, src, dim, by, ADDED)
    return copying + adding if copying and adding else None


def cumsum(arrays: Sequence, outs: Sequence, workspace: Workspace, axis: int) -> list[Task] | None:
    (x,), (out,) = arrays, outs
    if not whole(x, out) or not x.dtype == out.dtype == np.float32 or not x.size:
        return None
    rows, many, wide = math.prod(x.shape[:axis]), x.shape[axis], math.prod(x.shape[axis + 1 :])
    strips = rows if wide == 1 else rows * -(-wide // COLUMNS)
    some = max(4, CHUNK // (many * min(wide, COLUMNS))) if wide == 1 else max(1, CHUNK // (many * min(wide, COLUMNS)))
    return [cumsum_rows(-(-strips // some), x, out, strips, many, wide, some)]


def topk(
    arrays: Sequence, outs: Sequence, workspace: Workspace, k: int, axis: int, descending: bool
) -> list[Task] | None:
    (x,), n = arrays, arrays[0].shape[axis]
    if not whole(x, *outs) or x.dtype != np.float32 or axis != x.ndim - 1 or not 0 < k <= FEW or not x.size:
        return None
    some = max(1, CHUNK // 4 // n)
    return [topk_rows(-(-(x.size // n) // some), x, *outs, x.size // n, n, k, descending, some)]


def triangle(lower: bool, arrays: Sequence, outs: Sequence, workspace: Workspace, diagonal: int) -> list[Task] | None:
    """tril or triu of small matrices, by a cached mask."""
    (x,), (out,) = arrays, outs
    rows, columns = out.shape[-2:]
    if not whole(x, out) or x.dtype != np.float32 or not 0 < rows * columns <= CHUNK:
        return None
    mask = np.tri(rows, columns, diagonal if lower else diagonal - 1, bool) == lower
    bytecode = Bytecode(out.size // columns, columns)
    operands = [bytecode.input(mask, MASK, rows), bytecode.input(0, FULL, bytecode.rows), 0.0]
    bytecode.output(bytecode("where", *operands), FULL)
    return bytecode.finish().steps([x], [out], workspace)


tril, triu = partial(triangle, True), partial(triangle, False)


def is_transposed(x) -> bool:
    """True for an array whose innermost axis is not contiguous, which NumPy copies slowly."""
    return x.__class__ is np.ndarray and x.size >= SMALL and x.itemsize in x.strides[:-1]


for op, builder, eager in (
    ("clone", clone, is_transposed),
    ("cat", cat, False),
    ("stack", stack, False),
    ("pad", pad, False),
    ("take", take, False),
    ("gather", gather, True),
    ("scatter_add", scatter_add, True),
    ("cumsum", cumsum, lambda x: x.size >= SMALL),
    ("tril", tril, False),
    ("triu", triu, False),
    ("topk", topk, True),
):
    lowers(OPS[op], builder, eager=eager, steady=COPY_SETUP, tolerance=0)
