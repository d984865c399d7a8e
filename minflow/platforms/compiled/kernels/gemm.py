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

from ....compiler.fusion import gemm_epilogue
from ..codegen.jit import compiled
from ..codegen.llvm import LANES, clear, copy_tile, copy_turned
from ..codegen.micro_kernels import PANEL, ROWS, VECTORS
from ..codegen.vectors import BOUNDS, BYTES, clipped, filled, load, load_some, multiply_add, store, store_some
from ..lowering import lowers
from ..runtime.instructions import instruction, real_at, run_routine, word_at
from ..runtime.tasks import Task, Workspace
from .gemm_tiles import product as multiply

TILE = LANES * LANES
QUAD = 4  # micro-kernels sum a multiple of this many terms
DEEPEST = 800  # terms of a sum that are packed at a time
BLOCK = 100_000  # float32 of packed rows; leaves room for a panel in the second-level cache
WORK = 6 << 20  # multiplications of a chunk, some 100 us
MOST = 32  # most chunks, unless they would be too large for the cache
LEAST_TILES = 4  # fewest tiles of rows of a chunk
PACKED = 200_000  # elements that a chunk packs, some 20 us


# ---- packing ---------------------------------------------------------------------------------------------------------


@compiled
def pack(source, row, rows, columns, turned, target, line, block, far, spare):
    """Pack rows x columns elements with contiguous columns for micro-kernels, padded to multiples of 16 by zeros.

    Element (r, c) goes to target[c / PANEL * far + c % PANEL / 16 * block + r * line + c % 16]. turned: pack the
    transpose.
    """
    nothing, pair = filled(np.float32(0)), PANEL // LANES
    for i in range(0, rows, LANES):
        for j in range(0, columns, LANES):
            here, spread, along = source + (i * row + j) * BYTES, (i if turned else j) // LANES, j if turned else i
            place = target + (spread // pair * far + spread % pair * block + along * line) * BYTES
            if rows - i >= LANES and columns - j >= LANES:
                if turned:
                    copy_turned(here, row, place, line)
                else:
                    copy_tile(here, row, place, line)
                continue
            for r in range(LANES):
                clear(spare + r * LANES * BYTES)
            for r in range(min(LANES, rows - i)):
                store(spare + r * LANES * BYTES, load_some(here + r * row * BYTES, min(LANES, columns - j), nothing))
            if turned:
                copy_turned(spare, LANES, place, line)
            else:
                copy_tile(spare, LANES, place, line)


# ---- multiplying -----------------------------------------------------------------------------------------------------


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


@instruction
def gemm_pack(words, chunk, scratch):
    """Pack some rows of one side for all chunks; words: those of `pack`, rows in all, rows of a chunk."""
    each, line = word_at(words, 8), word_at(words, 1)
    first = chunk * each
    if word_at(words, 3):
        target = word_at(words, 4) + first // PANEL * word_at(words, 7) * BYTES
    else:
        target = word_at(words, 4) + first * word_at(words, 5) * BYTES
    pack(
        word_at(words, 0) + first * line * BYTES,
        line,
        min(each, word_at(words, 9) - first),
        word_at(words, 2),
        word_at(words, 3) != 0,
        target,
        word_at(words, 5),
        word_at(words, 6),
        word_at(words, 7),
        scratch,
    )


(
    A,
    A_LINE,
    A_TURNED,
    A_PLACES,
    A_PACKED,
    B,
    B_LINE,
    B_TURNED,
    B_PLACES,
    B_PACKED,
    C,
    N,
    K,
    P,
    ITEMS,
    TOGETHER,
    HIGH,
    WIDE,
    DEEP,
    TABLE,
    APART,
    FAR,
    MULTIPLY,
    BIAS,
    LOW,
    HIGHEST,
    WEIGHT,
    UPDATED,
    RATE,
) = range(29)


@instruction
def gemm_chunk(words, chunk, scratch):  # noqa: C901
    """Compute c = a @ b of some items, or of HIGH rows and WIDE columns of one; the words are named above.

    PLACES: table of offsets of the items, or 0.  PACKED: address of a side that is packed already, or 0.  TABLE:
    offsets of each 16 terms of the sum in packed rows, APART elements from each other.  FAR: elements of a panel.
    WEIGHT: if not 0, UPDATED becomes WEIGHT - RATE * c, and C may be 0 if c is not an output.
    """
    n, k, p, depth = word_at(words, N), word_at(words, K), word_at(words, P), word_at(words, DEEP)
    high, wide, apart, far = word_at(words, HIGH), word_at(words, WIDE), word_at(words, APART), word_at(words, FAR)
    downs, acrosses = (n + high - 1) // high, (p + wide - 1) // wide
    across, down = chunk % acrosses, chunk // acrosses % downs
    first = chunk // (acrosses * downs) * word_at(words, TOGETHER)
    top, left = down * high, across * wide
    rows, right = min(high, n - top), min(p, left + wide)
    weight, bias = word_at(words, WEIGHT), word_at(words, BIAS)
    low, highest = np.float32(real_at(words, LOW)), np.float32(real_at(words, HIGHEST))
    rate = np.float32(real_at(word_at(words, RATE), 0)) if weight else np.float32(0)
    multiply, table, nothing = word_at(words, MULTIPLY), word_at(words, TABLE), filled(np.float32(0))
    spare, a_own, b_own = scratch, word_at(words, A_PACKED) == 0, word_at(words, B_PACKED) == 0
    packed = panels = spare + TILE * BYTES
    if a_own:
        panels += (depth + LANES - 1) // LANES * apart * BYTES
    held = panels
    if b_own:
        held += (wide + PANEL - 1) // PANEL * far * BYTES
    for item in range(first, min(first + word_at(words, TOGETHER), word_at(words, ITEMS))):
        a, b = word_at(words, A), word_at(words, B)
        c = word_at(words, C)
        if c:
            c += item * n * p * BYTES
        if word_at(words, A_PLACES):
            a += word_at(word_at(words, A_PLACES), item) * BYTES
        if word_at(words, B_PLACES):
            b += word_at(word_at(words, B_PLACES), item) * BYTES
        for begin in range(0, k, depth):
            length = min(depth, k - begin)
            full, rest = length // LANES, (length % LANES + QUAD - 1) // QUAD * QUAD
            line = word_at(words, A_LINE)
            if not a_own:
                packed = word_at(words, A_PACKED) + (begin // LANES * apart + top * LANES) * BYTES
            elif word_at(words, A_TURNED):
                pack(
                    a + (begin * line + top) * BYTES,
                    line,
                    length,
                    rows,
                    True,
                    packed,
                    LANES,
                    apart,
                    VECTORS * apart,
                    spare,
                )
            else:
                pack(
                    a + (top * line + begin) * BYTES,
                    line,
                    rows,
                    length,
                    False,
                    packed,
                    LANES,
                    apart,
                    VECTORS * apart,
                    spare,
                )
            line = word_at(words, B_LINE)
            if not b_own:
                panels = word_at(words, B_PACKED) + (left // PANEL * far + begin * PANEL) * BYTES
            elif word_at(words, B_TURNED):
                pack(
                    b + (left * line + begin) * BYTES,
                    line,
                    right - left,
                    length,
                    True,
                    panels,
                    PANEL,
                    LANES,
                    far,
                    spare,
                )
            else:
                pack(
                    b + (begin * line + left) * BYTES,
                    line,
                    length,
                    right - left,
                    False,
                    panels,
                    PANEL,
                    LANES,
                    far,
                    spare,
                )
            for j in range(left, right, PANEL):
                columns, panel = min(PANEL, right - j), panels + (j - left) // PANEL * far * BYTES
                vectors = VECTORS if columns > LANES else 1
                to = (top * p + j) * BYTES
                target, target_row, kept = c + to, p, c == 0 or columns % LANES != 0
                if kept:  # written to scratch memory, which has room for whole vectors
                    target, target_row = held + (0 if c else (j - left) * rows * BYTES), PANEL
                origin = target if begin else 0
                if bias and not begin:
                    origin = spare
                    for v in range(0, columns, LANES):
                        store(spare + v * BYTES, load_some(bias + (j + v) * BYTES, min(LANES, columns - v), nothing))
                if full:
                    run_routine(
                        multiply,
                        rows,
                        packed,
                        panel,
                        table,
                        full,
                        LANES * PANEL,
                        LANES,
                        target,
                        target_row,
                        vectors,
                        LANES,
                        origin,
                    )
                    origin = target
                if rest:
                    run_routine(
                        multiply,
                        rows,
                        packed + full * apart * BYTES,
                        panel + full * LANES * PANEL * BYTES,
                        table,
                        1,
                        LANES * PANEL,
                        rest,
                        target,
                        target_row,
                        vectors,
                        LANES,
                        origin,
                    )
                if begin + length < k:
                    continue
                if c and (kept or low == low):
                    finish(target, target_row, c + to, p, rows, columns, low, highest, 0, rate)
                if weight:
                    finish(
                        target,
                        target_row,
                        word_at(words, UPDATED) + to,
                        p,
                        rows,
                        columns,
                        low,
                        highest,
                        weight + to,
                        rate,
                    )


# ---- builders --------------------------------------------------------------------------------------------------------


class MatrixLayout(NamedTuple):
    """One side of a product.

    line: elements from row to row, or (turned) from column to column; each is contiguous.  places: offsets of the
    items, or None if all are the same.
    """

    line: int
    turned: bool
    places: np.ndarray | None


@functools.lru_cache(1 << 10)
def side(shape: tuple, strides: tuple, batch: tuple) -> MatrixLayout | None:
    """Describe an input (..., rows, columns), with strides in bytes, for a batch; None if no axis is contiguous."""
    if any(step % BYTES for step in strides):
        return None
    strides = tuple(step // BYTES for step in strides)
    turned = strides[-1] != 1 and shape[-1] > 1
    if turned and strides[-2] != 1 and shape[-2] > 1:
        return None
    places = None
    if math.prod(shape[:-2]) > 1:
        steps = [0] * (len(batch) - len(shape) + 2) + [s if n > 1 else 0 for s, n in zip(strides, shape[:-2])]
        places = np.zeros(batch, "i8")
        for axis, step in enumerate(steps):
            places += np.arange(batch[axis]).reshape(-1, *[1] * (len(batch) - axis - 1)) * step
    return MatrixLayout(strides[-1] if turned else strides[-2], turned, places)


class ChunkSplit(NamedTuple):
    """How a product is split.

    together: items of a chunk.  high, wide: rows and columns of a chunk.  deep: terms of the sum at a time.
    """

    together: int
    high: int
    wide: int
    deep: int
    chunks: int


@functools.lru_cache(1 << 10)
def cut(items: int, n: int, k: int, p: int) -> ChunkSplit:
    """Split a product into chunks of similar work.

    Splits the longer side of the result, each part of which is packed by its chunk; both sides if the chunks would be
    too few, or too large for the cache.
    """
    deep = -(-k // -(-k // DEEPEST))
    deep += -deep % LANES if deep < k else 0
    tiles, panels, wanted = -(-n // ROWS[0]), -(-p // PANEL), min(MOST, -(-n * k * p // WORK))
    downs, acrosses = -(-n * deep // BLOCK), -(-panels * PANEL * deep // BLOCK)
    if n > p:
        downs = max(downs, min(wanted, tiles // LEAST_TILES))
        acrosses = max(acrosses, min(wanted // downs, panels), 1)
    else:
        acrosses = max(acrosses, min(wanted, panels))
        downs = max(downs, min(wanted // acrosses, tiles // LEAST_TILES), 1)
    high, wide = n if downs == 1 else -(-tiles // downs) * ROWS[0], -(-panels // acrosses) * PANEL
    together = max(1, min(items, WORK // (n * k * p)))
    return ChunkSplit(together, high, wide, deep, -(-items // together) * -(-n // high) * -(-p // wide))


def product(
    a, b, out, room: Workspace, bias=0, act="", weight=None, rate=None, updated=None, packed_a: int = 0
) -> list[Task] | None:
    """Tasks of out = act(a @ b + bias), and of updated = weight - rate * out, with rate an array of one float64.

    a, b: float32 (..., rows, columns); None if one has neither contiguous rows nor columns.  out: None if only the
    update is needed.  packed_a: address of a packed by `packed_rows`, or 0.
    """
    (n, k), p = a.shape[-2:], b.shape[-1]
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    results = [x for x in (out, updated, weight) if x is not None]
    if a.dtype != np.float32 or b.dtype != np.float32 or not results[0].size * k:
        return None
    if not all(x.flags.c_contiguous for x in results):
        return None
    if batch and math.prod(b.shape[:-2]) == 1:  # all rows of a meet the same b
        rows = a.size // k
        if rows == n * math.prod(batch) and all(
            a.strides[i] == a.strides[i + 1] * a.shape[i + 1] for i in range(a.ndim - 2)
        ):
            a, n, batch = np.lib.stride_tricks.as_strided(a, (rows, k), a.strides[-2:]), rows, ()
    left, right = side(a.shape, a.strides, batch), side(b.shape, b.strides, batch)
    if left is None or right is None:
        return None
    items = math.prod(batch)
    c = cut(items, n, k, p)
    a_shared, b_shared = packed_a != 0 or (items == 1 and c.wide < p), items == 1 and c.high < n
    sum_blocks = -(-(k if a_shared else c.deep) // LANES)
    apart = apart_of(n if a_shared else c.high)
    far = (-(-(k if b_shared else c.deep) // LANES) + 1) * LANES * PANEL
    panels = -(-(p if b_shared else c.wide) // PANEL)
    steps, packed = [], [packed_a, 0]
    if a_shared and not packed_a:
        more, packed[0] = packed_rows(a, room)
        steps += more
    if b_shared:
        packed[1] = room.take(panels * far)
        steps.append(packing(b, right, k, p, packed[1], PANEL, LANES, far))
    scratch = (
        TILE
        + (0 if a_shared else sum_blocks * apart)
        + (0 if b_shared else panels * far)
        + c.high * PANEL * (-(-c.wide // PANEL) if out is None else 1)
    )
    sides = []
    for x, found, whole in ((a, left, packed[0]), (b, right, packed[1])):
        sides += [x, found.line, found.turned, 0 if found.places is None else found.places, whole]
    after = [0 if x is None else x for x in (weight, updated, rate)]
    steps.append(
        gemm_chunk(
            c.chunks,
            *sides,
            0 if out is None else out,
            n,
            k,
            p,
            items,
            c.together,
            c.high,
            c.wide,
            c.deep,
            np.arange(-(-c.deep // LANES), dtype="i8") * apart,
            apart,
            far,
            multiply.address,
            bias,
            *BOUNDS[act],
            *after,
            scratch=scratch,
        )
    )
    return steps


def apart_of(rows: int) -> int:
    """Elements from 16 terms of the sum of packed rows to the next 16."""
    return (-(-rows // LANES) * LANES + 1) * LANES


def packed_rows(a: np.ndarray, room: Workspace) -> tuple[list[Task], int]:
    """Tasks that pack a whole matrix as the left side of products, and its address."""
    (n, k), apart = a.shape[-2:], apart_of(a.shape[-2])
    place = room.take(-(-k // LANES) * apart)
    return [packing(a, side(a.shape, a.strides, ()), n, k, place, LANES, apart, VECTORS * apart)], place


def packing(x, found: MatrixLayout, rows: int, columns: int, target: int, line: int, block: int, far: int) -> Task:
    """Task that packs a whole side; rows and columns as in the product."""
    if found.turned:
        rows, columns = columns, rows
    each = -(-PACKED // columns // PANEL) * PANEL
    return gemm_pack(
        -(-rows // each), x, found.line, columns, found.turned, target, line, block, far, each, rows, scratch=TILE
    )


def turned(a, b, ta: bool, tb: bool) -> tuple:
    return a.swapaxes(-1, -2) if ta else a, b.swapaxes(-1, -2) if tb else b


def linear(arrays, outs, room: Workspace, ta: bool, tb: bool, act: str) -> list[Task] | None:
    *sides, bias = arrays
    return product(*turned(*sides, ta, tb), *outs, room, bias if isinstance(bias, np.ndarray) else 0, act)


def sgd_linear(arrays, outs, room: Workspace, ta: bool, tb: bool) -> list[Task] | None:
    weight, *sides, rate = arrays
    updated, *grad = outs
    return product(*turned(*sides, ta, tb), *(grad or [None]), room, weight=weight, rate=rate, updated=updated)


lowers(gemm_epilogue.linear, linear)
lowers(gemm_epilogue.sgd_linear, sgd_linear)
lowers(gemm_epilogue.sgd_linear_shown, sgd_linear)
