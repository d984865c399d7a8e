"""Matrix products: chunks pack both sides as they go, and micro-kernels write the result in place.

A chunk is a block of rows by some panels of columns of one product, or several small products. It packs its rows of a
as [16 of the sum][row][16], then panel after panel of b as [sum][PANEL]; each panel meets all rows while it is in the
second-level cache. Transposed sides are packed by 16x16 shuffles. Long sums are split, so that a block of rows stays in
that cache. Epilogues (bias, activation, update of weights) run panel by panel. The order of sums depends on shapes
alone. Source: Goto & van de Geijn 2008. Read next: `platforms/compiled/codegen/micro_kernels.py`.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np

from ..codegen.jit import compiled
from ..codegen.llvm import LANES, clear, copy_tile, copy_transposed
from ..codegen.micro_kernels import PANEL, ROWS, VECTORS
from ..codegen.vectors import BOUNDS, BYTES, clipped, filled, load, load_some, multiply_add, store, store_some
from ..lowering import lowers
from ..passes import gemm_epilogue
from ..runtime.instructions import instruction, real_at, run_routine, word_at
from ..runtime.tasks import Task, Workspace
from .gemm_tiles import product as multiply

TILE = LANES * LANES
QUAD = 4  # micro-kernels sum a multiple of this many terms
DEEPEST = 800  # terms of a sum that are packed at a time
BLOCK = 100_000  # float32 of packed rows; leaves space for a panel in the second-level cache
WORK = 6 << 20  # multiplications of a chunk, some 100 us
MOST = 32  # most chunks, unless they would be too large for the cache
LEAST_TILES = 4  # fewest tiles of rows of a chunk
PACKED = 200_000  # elements that a chunk packs, some 20 us


# ---- packing ---------------------------------------------------------------------------------------------------------


@compiled
def pack(source, source_row, rows, columns, transposed, target, row, block, panel, spare):
    """Pack rows x columns elements with contiguous columns for micro-kernels, padded to multiples of 16 by zeros.

    Element (r, c) goes to target[c / PANEL * panel + c % PANEL / 16 * block + r * row + c % 16].  transposed: pack the
    transpose.  spare: scratch for 16x16 elements.
    """
    zeros, pair = filled(np.float32(0)), PANEL // LANES
    for i in range(0, rows, LANES):
        for j in range(0, columns, LANES):
            here = source + (i * source_row + j) * BYTES
            across, along = (i if transposed else j) // LANES, j if transposed else i
            place = target + (across // pair * panel + across % pair * block + along * row) * BYTES
            if rows - i >= LANES and columns - j >= LANES:
                if transposed:
                    copy_transposed(here, source_row, place, row)
                else:
                    copy_tile(here, source_row, place, row)
                continue
            for r in range(LANES):
                clear(spare + r * LANES * BYTES)
            for r in range(min(LANES, rows - i)):
                store(
                    spare + r * LANES * BYTES, load_some(here + r * source_row * BYTES, min(LANES, columns - j), zeros)
                )
            if transposed:
                copy_transposed(spare, LANES, place, row)
            else:
                copy_tile(spare, LANES, place, row)


@instruction
def gemm_pack(chunk, scratch, source, source_row, columns, transposed, target, row, block, panel, chunk_rows, rows):
    """Pack some rows of one side for all chunks: see `pack`. scratch: 16x16 elements."""
    first = chunk * chunk_rows
    if transposed:
        target += first // PANEL * panel * BYTES
    else:
        target += first * row * BYTES
    source += first * source_row * BYTES
    count = min(chunk_rows, rows - first)
    pack(source, source_row, count, columns, transposed != 0, target, row, block, panel, scratch)


# ---- multiplying -----------------------------------------------------------------------------------------------------


class MatrixOperand(NamedTuple):
    """One side of products, as a parameter of an instruction.

    stride: elements from row to row, or (transposed) from column to column.  offsets: int64 table of the offset of each
    item, or 0.  packed: address of the side if it is packed already, or 0.
    """

    array: np.ndarray | int
    stride: int
    transposed: int
    offsets: np.ndarray | int
    packed: int = 0


class ProductSplit(NamedTuple):
    """How a product is split: items, rows and columns of a chunk; terms of the sum at a time (depth)."""

    items: int
    rows: int
    columns: int
    depth: int
    chunks: int


class Epilogue(NamedTuple):
    """Bias, bounds, and update of weights: see `gemm_chunk`."""

    bias: int
    low: np.float32
    high: np.float32
    weight: int
    updated: int
    rate: np.float32


@compiled
def address_of(operand, item):
    """Address of an item of an operand."""
    return operand.array + (word_at(operand.offsets, item) * BYTES if operand.offsets else 0)


@compiled
def pack_left(a, item, top, rows, begin, length, target, block, spare):
    """Pack `rows` rows of a, from `top` on, and `length` terms of the sum; return the address of the packed rows."""
    if a.packed:
        return a.packed + (begin // LANES * block + top * LANES) * BYTES
    source = address_of(a, item)
    if a.transposed:
        source += (begin * a.stride + top) * BYTES
        pack(source, a.stride, length, rows, True, target, LANES, block, VECTORS * block, spare)
    else:
        source += (top * a.stride + begin) * BYTES
        pack(source, a.stride, rows, length, False, target, LANES, block, VECTORS * block, spare)
    return target


@compiled
def pack_right(b, item, left, columns, begin, length, target, panel, spare):
    """Pack `columns` columns of b, from `left` on, and `length` terms of the sum; return the address of the panels."""
    if b.packed:
        return b.packed + (left // PANEL * panel + begin * PANEL) * BYTES
    source = address_of(b, item)
    if b.transposed:
        source += (left * b.stride + begin) * BYTES
        pack(source, b.stride, columns, length, True, target, PANEL, LANES, panel, spare)
    else:
        source += (begin * b.stride + left) * BYTES
        pack(source, b.stride, length, columns, False, target, PANEL, LANES, panel, spare)
    return target


@compiled
def multiply_panel(multiply, rows, packed, panel, table, length, block, target, target_row, vectors, origin):
    """Multiply packed rows by one panel: first whole blocks of 16 terms of the sum, then the others.

    origin: 0, or the address of the initial sums.
    """
    full, rest = length // LANES, (length % LANES + QUAD - 1) // QUAD * QUAD
    far = LANES * PANEL
    if full:
        run_routine(multiply, rows, packed, panel, table, full, far, LANES, target, target_row, vectors, LANES, origin)
        origin = target
    if rest:
        packed += full * block * BYTES
        panel += full * far * BYTES
        run_routine(multiply, rows, packed, panel, table, 1, far, rest, target, target_row, vectors, LANES, origin)


@compiled
def bias_of(epilogue, column, columns, spare):
    """Copy the bias of a panel to scratch memory, padded with zeros; return its address."""
    for v in range(0, columns, LANES):
        more = load_some(epilogue.bias + (column + v) * BYTES, min(LANES, columns - v), filled(np.float32(0)))
        store(spare + v * BYTES, more)
    return spare


@compiled
def finish(source, source_row, target, target_row, rows, columns, low, high, weight, rate):
    """Epilogue of up to PANEL columns: target = clip(source), or with a weight, weight - rate * source."""
    step, least, most = filled(-rate), filled(low), filled(high)
    for i in range(rows):
        for j in range(0, columns, LANES):
            some, place = min(LANES, columns - j), (i * target_row + j) * BYTES
            value = load(source + (i * source_row + j) * BYTES)
            if weight:
                value = multiply_add(value, step, load_some(weight + place, some, value))
            store_some(target + place, some, clipped(value, least, most))


@compiled
def finish_panel(epilogue, source, source_row, c, at, p, rows, columns, in_place):
    """Apply the epilogue to a panel of the result, `at` bytes from the start of an output."""
    low, high, weight, rate = epilogue.low, epilogue.high, epilogue.weight, epilogue.rate
    if c and (not in_place or low == low):
        finish(source, source_row, c + at, p, rows, columns, low, high, 0, rate)
    if weight:
        finish(source, source_row, epilogue.updated + at, p, rows, columns, low, high, weight + at, rate)


@instruction
def gemm_chunk(
    chunk,
    scratch,
    a: MatrixOperand,
    b: MatrixOperand,
    c,
    n,
    k,
    p,
    items,
    split: ProductSplit,
    table,
    block,
    panel,
    multiply,
    bias,
    low: float,
    high: float,
    weight,
    updated,
    rate,
):
    """Compute c = clip(a @ b + bias) of some items, or of some rows and columns of one.

    a: (n, k).  b: (k, p).  table: offsets of each 16 terms in packed rows.  block, panel: elements between these, and
    of a panel.  multiply: the routine.  bias: (p,), or 0.  weight: if not 0, updated = weight - rate * c, and c may be
    0 if it is not an output.  rate: address of a float64.
    """
    downs, acrosses = (n + split.rows - 1) // split.rows, (p + split.columns - 1) // split.columns
    top, left = chunk // acrosses % downs * split.rows, chunk % acrosses * split.columns
    rows, right = min(split.rows, n - top), min(p, left + split.columns)
    first = chunk // (acrosses * downs) * split.items
    step = np.float32(real_at(rate, 0)) if weight else np.float32(0)
    epilogue = Epilogue(bias, np.float32(low), np.float32(high), weight, updated, step)
    own_rows = scratch + TILE * BYTES
    own_panels = own_rows + (0 if a.packed else (split.depth + LANES - 1) // LANES * block * BYTES)
    results = own_panels + (0 if b.packed else (split.columns + PANEL - 1) // PANEL * panel * BYTES)
    for item in range(first, min(first + split.items, items)):
        c_item = c + item * n * p * BYTES if c else 0
        for begin in range(0, k, split.depth):
            length = min(split.depth, k - begin)
            packed = pack_left(a, item, top, rows, begin, length, own_rows, block, scratch)
            panels = pack_right(b, item, left, right - left, begin, length, own_panels, panel, scratch)
            for j in range(left, right, PANEL):
                columns, at = min(PANEL, right - j), (top * p + j) * BYTES
                vectors, in_place = VECTORS if columns > LANES else 1, c_item != 0 and columns % LANES == 0
                target, target_row = c_item + at, p
                if not in_place:  # written to scratch memory, in whole vectors
                    target, target_row = results + (0 if c_item else (j - left) * rows * BYTES), PANEL
                origin = target if begin else 0
                if bias and not begin:
                    origin = bias_of(epilogue, j, columns, scratch)
                right_panel = panels + (j - left) // PANEL * panel * BYTES
                multiply_panel(
                    multiply, rows, packed, right_panel, table, length, block, target, target_row, vectors, origin
                )
                if begin + length == k:
                    finish_panel(epilogue, target, target_row, c_item, at, p, rows, columns, in_place)


# ---- builders --------------------------------------------------------------------------------------------------------


class PackedMatrix(NamedTuple):
    """A side of a product that another task packs: its shape, and the address of the packed elements."""

    shape: tuple[int, int]
    address: int


class MatrixLayout(NamedTuple):
    """One side of a product.

    stride: elements from row to row, or (transposed) from column to column; each is contiguous.  offsets: of the items,
    or None if all are the same.
    """

    stride: int
    transposed: bool
    offsets: np.ndarray | None

    def operand(self, x: np.ndarray | PackedMatrix) -> MatrixOperand:
        array, packed = (0, x.address) if isinstance(x, PackedMatrix) else (x, 0)
        return MatrixOperand(array, self.stride, self.transposed, 0 if self.offsets is None else self.offsets, packed)


@functools.lru_cache(1 << 10)
def layout_of(shape: tuple, strides: tuple, batch: tuple) -> MatrixLayout | None:
    """Describe an input (..., rows, columns), with strides in bytes, for a batch; None if no axis is contiguous."""
    if any(step % BYTES for step in strides):
        return None
    strides = tuple(step // BYTES for step in strides)
    transposed = strides[-1] != 1 and shape[-1] > 1
    if transposed and strides[-2] != 1 and shape[-2] > 1:
        return None
    offsets = None
    if math.prod(shape[:-2]) > 1:
        steps = [0] * (len(batch) - len(shape) + 2) + [s if n > 1 else 0 for s, n in zip(strides, shape[:-2])]
        offsets = np.zeros(batch, "i8")
        for axis, step in enumerate(steps):
            offsets += np.arange(batch[axis]).reshape(-1, *[1] * (len(batch) - axis - 1)) * step
    return MatrixLayout(strides[-1] if transposed else strides[-2], transposed, offsets)


@functools.lru_cache(1 << 10)
def split_product(items: int, n: int, k: int, p: int, rows_only: bool = False) -> ProductSplit:
    """Split a product into chunks of similar work.

    Splits the longer side of the result, each part of which is packed by its chunk; both sides if the chunks would be
    too few, or too large for the cache; only the rows if the other side is packed.
    """
    depth = -(-k // -(-k // DEEPEST))
    depth += -depth % LANES if depth < k else 0
    tiles, panels, wanted = -(-n // ROWS[0]), -(-p // PANEL), min(MOST, -(-n * k * p // WORK))
    downs, acrosses = -(-n * depth // BLOCK), -(-panels * PANEL * depth // BLOCK)
    if rows_only:
        downs, acrosses = max(downs, min(wanted, 2 * tiles // LEAST_TILES), 1), 1
    elif n > p:
        downs = max(downs, min(wanted, tiles // LEAST_TILES))
        acrosses = max(acrosses, min(wanted // downs, panels), 1)
    else:
        acrosses = max(acrosses, min(wanted, panels))
        downs = max(downs, min(wanted // acrosses, tiles // LEAST_TILES), 1)
    rows, columns = n if downs == 1 else -(-tiles // downs) * ROWS[0], -(-panels // acrosses) * PANEL
    chunk_items = max(1, min(items, WORK // (n * k * p)))
    chunks = -(-items // chunk_items) * -(-n // rows) * -(-p // columns)
    return ProductSplit(chunk_items, rows, columns, depth, chunks)


def product(a, b, out, workspace: Workspace, bias=0, act="", weight=None, rate=None, updated=None) -> list[Task] | None:
    """Tasks of out = act(a @ b + bias), and of updated = weight - rate * out, with rate an array of one float64.

    a, b: float32 (..., rows, columns), or packed matrices; None if one has neither contiguous rows nor columns.  out:
    None if only the update is needed.
    """
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    results = [x for x in (out, updated, weight) if x is not None]
    if not results[0].size * a.shape[-1] or not all(x.flags.c_contiguous for x in results):
        return None
    if batch and math.prod(b.shape[:-2]) == 1:  # all rows of a meet the same b
        a, batch = flattened(a, batch)
    left, right = side_layout(a, batch), side_layout(b, batch)
    if left is None or right is None:
        return None
    (n, k), p, items = a.shape[-2:], b.shape[-1], math.prod(batch)
    split = split_product(items, n, k, p, isinstance(b, PackedMatrix) and not isinstance(a, PackedMatrix))
    # A side that several chunks read is packed once, by a task of its own.
    tasks: list[Task] = []
    if isinstance(a, np.ndarray) and items == 1 and split.columns < p:
        tasks, a = packed_rows(a, workspace)
    if isinstance(b, np.ndarray) and items == 1 and split.rows < n:
        task, b = packed_panels(b, right, workspace)
        tasks = [*tasks, task]
    a_packed, b_packed = isinstance(a, PackedMatrix), isinstance(b, PackedMatrix)
    sum_blocks = -(-split.depth // LANES)
    block = block_stride(n if a_packed else split.rows)
    panel = panel_stride(k if b_packed else split.depth)
    panels = -(-split.columns // PANEL)
    scratch = (
        TILE
        + (0 if a_packed else sum_blocks * block)
        + (0 if b_packed else panels * panel)
        + split.rows * PANEL * (panels if out is None else 1)
    )
    table = np.arange(sum_blocks, dtype="i8") * block
    tasks.append(
        gemm_chunk(
            split.chunks,
            left.operand(a),
            right.operand(b),
            0 if out is None else out,
            *(n, k, p, items),
            split,
            table,
            block,
            panel,
            multiply.address,
            bias,
            *BOUNDS[act],
            *[0 if x is None else x for x in (weight, updated, rate)],
            scratch=scratch,
        )
    )
    return tasks


def side_layout(x: np.ndarray | PackedMatrix, batch: tuple) -> MatrixLayout | None:
    """The layout of a side of a product; None if it is not supported."""
    if isinstance(x, PackedMatrix):
        return MatrixLayout(0, False, None)
    return layout_of(x.shape, x.strides, batch) if x.dtype == np.float32 else None


def flattened(a: np.ndarray, batch: tuple) -> tuple[np.ndarray, tuple]:
    """Merge the batch of a into its rows, if that needs no copy; returns a and the batch that is left."""
    (n, k), rows = a.shape[-2:], a.size // a.shape[-1]
    axes = range(a.ndim - 2)
    if rows == n * math.prod(batch) and all(a.strides[i] == a.strides[i + 1] * a.shape[i + 1] for i in axes):
        return np.lib.stride_tricks.as_strided(a, (rows, k), a.strides[-2:]), ()
    return a, batch


def block_stride(rows: int) -> int:
    """Elements from 16 terms of the sum of packed rows to the next 16."""
    return (-(-rows // LANES) * LANES + 1) * LANES


def panel_stride(rows: int) -> int:
    """Elements of a packed panel of this many terms of the sum."""
    return (-(-rows // LANES) + 1) * LANES * PANEL


def packed_rows(a: np.ndarray, workspace: Workspace) -> tuple[list[Task], PackedMatrix]:
    """Tasks that pack a whole matrix as the left side of products, and the packed matrix."""
    (n, k), block = a.shape[-2:], block_stride(a.shape[-2])
    target = workspace.take(-(-k // LANES) * block)
    layout = layout_of(a.shape, a.strides, ())
    return [packing(a, layout, n, k, target, LANES, block, VECTORS * block)], PackedMatrix((n, k), target)


def packed_panels(b: np.ndarray, layout: MatrixLayout, workspace: Workspace) -> tuple[Task, PackedMatrix]:
    """The task that packs a whole matrix as the right side of products, and the packed matrix."""
    (k, p), panel = b.shape[-2:], panel_stride(b.shape[-2])
    target = workspace.take(-(-p // PANEL) * panel)
    return packing(b, layout, k, p, target, PANEL, LANES, panel), PackedMatrix((k, p), target)


def packing(x, layout: MatrixLayout, rows: int, columns: int, target: int, row: int, block: int, panel: int) -> Task:
    """Task that packs a whole side: see `pack`; rows and columns as in the product."""
    if layout.transposed:
        rows, columns = columns, rows
    chunk_rows, transposed = -(-PACKED // columns // PANEL) * PANEL, layout.transposed
    chunks = -(-rows // chunk_rows)
    return gemm_pack(
        chunks, x, layout.stride, columns, transposed, target, row, block, panel, chunk_rows, rows, scratch=TILE
    )


def transposed(a, b, ta: bool, tb: bool) -> tuple:
    return a.swapaxes(-1, -2) if ta else a, b.swapaxes(-1, -2) if tb else b


def linear(arrays, outs, workspace: Workspace, ta: bool, tb: bool, act: str) -> list[Task] | None:
    x, y, bias = arrays
    a, b = transposed(x, y, ta, tb)
    return product(a, b, outs[0], workspace, bias if isinstance(bias, np.ndarray) else 0, act)


def sgd_linear(arrays, outs, workspace: Workspace, ta: bool, tb: bool) -> list[Task] | None:
    weight, x, y, rate = arrays
    a, b = transposed(x, y, ta, tb)
    grad = outs[1] if len(outs) > 1 else None
    return product(a, b, grad, workspace, weight=weight, rate=rate, updated=outs[0])


lowers(gemm_epilogue.linear, linear)
lowers(gemm_epilogue.sgd_linear, sgd_linear)
lowers(gemm_epilogue.sgd_linear_shown, sgd_linear)
