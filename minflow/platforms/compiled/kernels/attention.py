"""Attention and its gradient, tiled: the scores of a few queries at a time stay in the cache.

A chunk takes query rows of one item (a head of an example); in the gradient, all rows. Keys and values are packed once.
Scores are written as [16 keys][query][16], the packed layout of a left side, so weights @ v needs no repacking. The
gradient recomputes them. Keys after the last one visible to any query of the tile are skipped. Semantics:
`compiler/fusion/attention.py`. Source: Dao et al. 2022 (arXiv:2205.14135), without its running sums, since all scores
of a row are at hand. Read next: `gemm.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ....compiler.fusion import attention as fusion
from ..codegen import llvm
from ..codegen.jit import compiled, intrinsic, ir
from ..codegen.llvm import LANES, clear, copy_turned, number_at, put
from ..codegen.micro_kernels import PANEL, ROWS, VECTORS
from ..codegen.vectors import (
    BYTES,
    add,
    below,
    filled,
    load,
    multiply as times,
    multiply_add,
    store,
    store_some,
    subtract,
)
from ..lowering import lowers
from ..runtime.instructions import instruction, real_at, run_routine, word_at
from ..runtime.tasks import Task, Workspace
from .cross_entropy import exp, larger
from .elementwise import flat
from .elementwise_loops import byte_at, masks_in
from .gemm import TILE, MatrixLayout, apart_of, pack, side
from .gemm_tiles import outer as accumulate, product as multiply

STEP = LANES * BYTES
SCORES = 3 << 14  # elements of a tile of scores
SPLIT = 8  # fewest chunks, if there are enough rows
NOTHING = 104.0  # exp(-NOTHING) is 0


@intrinsic
def hidden(context, x, mask, hides, instead):
    """Return `instead` in lanes where the mask equals `hides`, x in the others."""
    return x(x, x, x, x), lambda context, builder, _, a: builder.select(
        builder.fcmp_ordered("==", a[1], a[2]), a[3], a[0]
    )


@intrinsic
def ended(context, x, count, beyond):
    """Return the first `count` lanes of x; `beyond` in the others."""
    return x(x, count, x), lambda context, builder, _, a: builder.select(below(builder, a[1]), a[0], a[2])


def in_pairs(combined, x_of):
    """Reduce 16 lanes to one number as a tree, by halves."""

    def code(context, builder, signature, arguments):
        x, none = arguments[0], ir.Constant(llvm.VECTOR, ir.Undefined)
        for step in (8, 4, 2, 1):
            lanes = ir.Constant(ir.VectorType(llvm.INT, LANES), [(i + step) % LANES for i in range(LANES)])
            x = combined(builder, x, builder.shuffle_vector(x, none, lanes))
        return builder.extract_element(x, ir.Constant(llvm.INT, 0))

    return x_of.number(x_of), code


@intrinsic
def summed(context, x):
    return in_pairs(lambda builder, x, y: builder.fadd(x, y), x)


@intrinsic
def largest(context, x):
    """Maximum of the lanes, none of which may be NaN."""
    return in_pairs(lambda builder, x, y: builder.select(builder.fcmp_ordered(">", x, y), x, y), x)


# ---- one tile of queries ---------------------------------------------------------------------------------------------

# Words of both instructions. Four for each of Q, K and V: address, elements from line to line, 1 if transposed, and a
# table of offsets of the items or 0. ROWS_OF queries, KEYS of WIDTH elements, values of DEPTH; HEIGHT: queries of a
# tile; APART: elements from 16 keys of a tile to the next 16; MASK: address or 0; MASK_LINE: bytes from row to row.
(
    ROWS_OF,
    KEYS,
    WIDTH,
    DEPTH,
    HEIGHT,
    APART,
    GROUPS,
    TABLE,
    MULTIPLY,
    FACTOR,
    FILL,
    HIDES,
    MASK,
    MASK_LINE,
    MASK_PLACES,
    STATS,
    Q,
    K,
    V,
) = [*range(17), 20, 24]
OUT = 28
GRAD, GQ, GK, GV, K_TURNED, ACCUMULATE, ZERO = 28, 32, 33, 34, 35, 36, 37


@compiled
def begins(words, which, item):
    """Address of an item of Q, K or V."""
    places = word_at(words, which + 3)
    return word_at(words, which) + (word_at(places, item) * BYTES if places else 0)


@compiled
def mask_of(words, item):
    mask, places = word_at(words, MASK), word_at(words, MASK_PLACES)
    return mask + word_at(places, item) if mask and places else mask


@compiled
def pack_left(words, which, item, top, rows, depth, target, spare):
    """Pack `rows` rows as the left side of micro-kernels, which is read element by element."""
    source, line, apart = begins(words, which, item), word_at(words, which + 1), word_at(words, APART)
    turned = word_at(words, which + 2) != 0
    if turned:
        pack(source + top * BYTES, line, depth, rows, turned, target, LANES, apart, VECTORS * apart, spare)
    else:
        pack(source + top * line * BYTES, line, rows, depth, turned, target, LANES, apart, VECTORS * apart, spare)


@compiled
def pack_right(words, which, item, turn, depth, columns, target, spare):
    """Pack a whole item as the right side of micro-kernels. turn: pack its transpose."""
    line, far = word_at(words, which + 1), (depth + 2 * LANES - 1) // LANES * TILE * VECTORS
    if (word_at(words, which + 2) != 0) != turn:
        pack(begins(words, which, item), line, columns, depth, True, target, PANEL, LANES, far, spare)
    else:
        pack(begins(words, which, item), line, depth, columns, False, target, PANEL, LANES, far, spare)


@compiled
def multiplied(words, rows, left, depth, right, packed, columns, out, row, beside):
    """Compute out = left @ right, with `packed` terms of the sum packed, of which `depth` are used.

    row: elements from row to row of the result.  beside: from 16 columns to the next 16.
    """
    far = (packed + 2 * LANES - 1) // LANES * TILE * VECTORS
    for j in range(0, columns, PANEL):
        run_routine(
            word_at(words, MULTIPLY),
            rows,
            left,
            right + j // PANEL * far * BYTES,
            word_at(words, TABLE),
            (depth + LANES - 1) // LANES,
            LANES * PANEL,
            LANES,
            out + j // LANES * beside * BYTES,
            row,
            VECTORS if columns - j > LANES else 1,
            beside,
            0,
        )


@compiled
def seen(words, mask, rows):
    """Number of keys up to the last one visible to any of these queries, rounded up to a panel."""
    keys, line, hides = word_at(words, KEYS), word_at(words, MASK_LINE), word_at(words, HIDES)
    if not mask:
        return keys
    for j in range((keys - 1) // PANEL * PANEL, 0, -PANEL):
        end = min(j + PANEL, keys)
        for r in range(rows - 1, -1, -1):
            for i in range(j, end):
                if byte_at(mask + r * line + i) != hides:
                    return end
    return min(PANEL, keys)


@compiled
def scale_row(words, place, count, mask, spare):
    """Scale and mask the scores of one query in place; return the largest, ignoring NaN."""
    apart, least = word_at(words, APART) * BYTES, filled(np.float32(-np.inf))
    factor, most = filled(np.float32(real_at(words, FACTOR))), least
    fill, hides = filled(np.float32(real_at(words, FILL))), filled(np.float32(word_at(words, HIDES)))
    if mask:
        masks_in(mask, spare, count)
    for j in range(0, count, LANES):
        x = times(load(place), factor)
        if mask:
            x = hidden(x, load(spare + j * BYTES), hides, fill)
        x = ended(x, count - j, least)
        store(place, x)
        most = larger(x, most)
        place += apart
    return largest(most)


@compiled
def raise_row(words, place, count, top, factor):
    """Replace each score x by exp(x - top) * factor; return their sum."""
    apart, zero, top, factor = word_at(words, APART) * BYTES, filled(np.float32(0)), filled(top), filled(factor)
    sums = zero
    for j in range(0, count, LANES):
        x = ended(times(exp(subtract(load(place), top)), factor), count - j, zero)
        store(place, x)
        sums = add(sums, x)
        place += apart
    return summed(sums)


@compiled
def slope_row(words, weights, place, count, mask, spare):
    """Replace the gradients of a query's weights by those of its scores. spare: its mask, already unpacked."""
    apart, zero, sums = word_at(words, APART) * BYTES, filled(np.float32(0)), filled(np.float32(0))
    blocks = (count + LANES - 1) // LANES
    for j in range(blocks):
        sums = multiply_add(load(weights + j * apart), load(place + j * apart), sums)
    mean, factor = filled(summed(sums)), filled(np.float32(real_at(words, FACTOR)))
    hides = filled(np.float32(word_at(words, HIDES)))
    for j in range(blocks):
        x = times(load(weights + j * apart), subtract(load(place + j * apart), mean))
        if mask:
            x = hidden(x, load(spare + j * STEP), hides, zero)
        store(place + j * apart, ended(times(x, factor), count - j * LANES, zero))


@compiled
def write(source, line, rows, columns, turned, out, spare):
    """Write rows, or (turned) their transpose, to contiguous memory."""
    for i in range(0, rows, LANES):
        for j in range(0, columns, LANES):
            here, high, wide = source + (i * line + j) * BYTES, min(LANES, rows - i), min(LANES, columns - j)
            if turned:
                copy_turned(here, line, spare, LANES)
                for c in range(wide):
                    store_some(out + ((j + c) * rows + i) * BYTES, high, load(spare + c * STEP))
            else:
                for r in range(high):
                    store_some(out + ((i + r) * columns + j) * BYTES, wide, load(here + r * line * BYTES))


@instruction
def attend(words, chunk, scratch):
    """Attention of some queries of one item; words: those of both, then OUT."""
    keys, width, depth = word_at(words, KEYS), word_at(words, WIDTH), word_at(words, DEPTH)
    apart = word_at(words, APART)
    groups, height, all_rows = word_at(words, GROUPS), word_at(words, HEIGHT), word_at(words, ROWS_OF)
    item, blocks = chunk // groups, (keys + LANES - 1) // LANES
    each = (all_rows + groups * height - 1) // (groups * height) * height
    line, fill = (depth + PANEL - 1) // PANEL * PANEL, np.float32(real_at(words, FILL))
    spare, masks = scratch, scratch + TILE * BYTES
    queries = masks + blocks * STEP
    scores = queries + (width + LANES - 1) // LANES * apart * BYTES
    means = scores + (blocks + VECTORS) * apart * BYTES
    right = means + height * line * BYTES
    values = right + (keys + PANEL - 1) // PANEL * ((width + 2 * LANES - 1) // LANES) * TILE * VECTORS * BYTES
    first = chunk % groups * each
    if first < all_rows:
        pack_right(words, K, item, False, width, keys, right, spare)
        pack_right(words, V, item, False, keys, depth, values, spare)
    for top in range(first, min(first + each, all_rows), height):
        rows, mask = min(height, all_rows - top), mask_of(words, item)
        stats = word_at(words, STATS) + (item * all_rows + top) * 2 * BYTES
        if mask:
            mask += top * word_at(words, MASK_LINE)
        pack_left(words, Q, item, top, rows, width, queries, spare)
        count = seen(words, mask, rows)
        r = 0
        while r < rows:
            if r == 0:
                multiplied(words, rows, queries, width, right, width, count, scores, LANES, apart)
            place, row_mask = scores + r * STEP, mask + r * word_at(words, MASK_LINE) if mask else 0
            largest_one = scale_row(words, place, count, row_mask, masks)
            if count < keys and not largest_one - fill > NOTHING:
                # Masked keys have weight too, as exp(fill - max) is not 0: redo the tile with all keys.
                count, r = keys, 0
                continue
            whole = raise_row(words, place, count, largest_one, np.float32(1))
            put(stats, 2 * r, largest_one)
            put(stats, 2 * r + 1, np.float32(1) / whole)
            r += 1
        multiplied(words, rows, scores, count, values, keys, depth, means, line, LANES)
        for r in range(rows):
            factor = filled(number_at(stats, 2 * r + 1))
            for j in range(0, depth, LANES):
                place = means + (r * line + j) * BYTES
                store(place, times(load(place), factor))
        write(means, line, rows, depth, False, word_at(words, OUT) + (item * all_rows + top) * depth * BYTES, spare)


@instruction
def attend_back(words, chunk, scratch):
    """Gradients of one item; words: those of both, then GRAD to ZERO."""
    keys, width, depth = word_at(words, KEYS), word_at(words, WIDTH), word_at(words, DEPTH)
    apart = word_at(words, APART)
    height, all_rows, blocks = word_at(words, HEIGHT), word_at(words, ROWS_OF), (keys + LANES - 1) // LANES
    wide, deep = (width + PANEL - 1) // PANEL * PANEL, (depth + PANEL - 1) // PANEL * PANEL
    panels, fill = (keys + PANEL - 1) // PANEL, np.float32(real_at(words, FILL))
    spare, masks = scratch, scratch + TILE * BYTES
    queries = masks + blocks * STEP
    grads = queries + (width + LANES - 1) // LANES * apart * BYTES
    weights = grads + (depth + LANES - 1) // LANES * apart * BYTES
    slopes = weights + (blocks + VECTORS) * apart * BYTES
    found = slopes + (blocks + VECTORS) * apart * BYTES
    of_keys = found + height * wide * BYTES
    of_values = of_keys + blocks * LANES * wide * BYTES
    right = of_values + blocks * LANES * deep * BYTES
    back = right + panels * ((width + 2 * LANES - 1) // LANES) * TILE * VECTORS * BYTES
    values = back + wide // PANEL * ((keys + 2 * LANES - 1) // LANES) * TILE * VECTORS * BYTES
    for place in range(of_keys, right, STEP):
        clear(place)
    pack_right(words, K, chunk, False, width, keys, right, spare)
    pack_right(words, K, chunk, True, keys, width, back, spare)
    pack_right(words, V, chunk, True, depth, keys, values, spare)
    for top in range(0, all_rows, height):
        rows, mask = min(height, all_rows - top), mask_of(words, chunk)
        stats = word_at(words, STATS) + (chunk * all_rows + top) * 2 * BYTES
        if mask:
            mask += top * word_at(words, MASK_LINE)
        pack_left(words, Q, chunk, top, rows, width, queries, spare)
        pack_left(words, GRAD, chunk, top, rows, depth, grads, spare)
        count = seen(words, mask, rows)
        for r in range(rows):
            if not number_at(stats, 2 * r) - fill > NOTHING:
                count = keys
        multiplied(words, rows, queries, width, right, width, count, weights, LANES, apart)
        multiplied(words, rows, grads, depth, values, depth, count, slopes, LANES, apart)
        for r in range(rows):
            row_mask = mask + r * word_at(words, MASK_LINE) if mask else 0
            scale_row(words, weights + r * STEP, count, row_mask, masks)
            raise_row(words, weights + r * STEP, count, number_at(stats, 2 * r), number_at(stats, 2 * r + 1))
            slope_row(words, weights + r * STEP, slopes + r * STEP, count, row_mask, masks)
        multiplied(words, rows, slopes, count, back, keys, width, found, wide, LANES)
        write(found, wide, rows, width, False, word_at(words, GQ) + (chunk * all_rows + top) * width * BYTES, spare)
        for j in range((count + LANES - 1) // LANES):
            run_routine(
                word_at(words, ACCUMULATE),
                LANES,
                slopes + j * apart * BYTES,
                queries,
                word_at(words, ZERO),
                1,
                0,
                rows,
                of_keys + j * LANES * wide * BYTES,
                wide,
                width,
                apart,
                1,
            )
            run_routine(
                word_at(words, ACCUMULATE),
                LANES,
                weights + j * apart * BYTES,
                grads,
                word_at(words, ZERO),
                1,
                0,
                rows,
                of_values + j * LANES * deep * BYTES,
                deep,
                depth,
                apart,
                1,
            )
    write(
        of_keys,
        wide,
        keys,
        width,
        word_at(words, K_TURNED) != 0,
        word_at(words, GK) + chunk * keys * width * BYTES,
        spare,
    )
    write(of_values, deep, keys, depth, False, word_at(words, GV) + chunk * keys * depth * BYTES, spare)


# ---- builders --------------------------------------------------------------------------------------------------------


def common(q, k, v, mask, stats, factor: float, fill: float, hides: bool, tb: bool, groups: int):
    """Return (words of both instructions, HEIGHT, APART), or None if an array has unsupported strides."""
    (rows, width), (keys, depth), batch = q.shape[-2:], v.shape[-2:], q.shape[:-2]
    sides = [side_of(x) for x in (q, k.swapaxes(-1, -2) if tb else k, v)]
    if None in sides or not flat(stats) or not q.size * v.size:
        return None
    place = line = 0
    if isinstance(mask, np.ndarray):
        whole = np.broadcast_to(mask, (*batch, rows, keys))
        if mask.shape[-1] != keys or mask.strides[-1] != 1:
            return None
        place, line = (
            sum(
                [
                    np.arange(n).reshape(-1, *[1] * (len(batch) - axis - 1)) * step
                    for axis, (n, step) in enumerate(zip(batch, whole.strides))
                ],
                np.zeros(batch, "i8"),
            ),
            whole.strides[-2],
        )
    height = max(ROWS[0], min(4, SCORES // keys // ROWS[0]) * ROWS[0])
    apart, table = apart_of(height), np.arange(-(-max(keys, width, depth) // LANES), dtype="i8") * apart_of(height)
    words = [
        rows,
        keys,
        width,
        depth,
        height,
        apart,
        groups,
        table,
        multiply.address,
        float(factor),
        float(fill),
        hides,
        mask,
        line,
        place,
        stats,
    ]
    for x, found in zip((q, k, v), sides):
        words += [x, found.line, found.turned, 0 if found.places is None else found.places]
    return words, height, apart


def side_of(x: np.ndarray) -> MatrixLayout | None:
    return side(x.shape, x.strides, x.shape[:-2]) if x.dtype == np.float32 else None


def panels(columns: int, depth: int) -> int:
    """Elements of a right side packed in panels."""
    return -(-columns // PANEL) * (-(-depth // LANES) + 1) * TILE * VECTORS


def attention(
    arrays: Sequence, outs: Sequence, room: Workspace, tb: bool, factor: float, fill: float, hides: bool
) -> list[Task] | None:
    q, k, v, mask = arrays
    out, stats = outs
    items, (rows, width), (keys, depth) = math.prod(q.shape[:-2]), q.shape[-2:], v.shape[-2:]
    groups = max(1, min(-(-SPLIT // max(items, 1)), rows // (8 * ROWS[0])))
    found = common(q, k, v, mask, stats, factor, fill, hides, tb, groups)
    if found is None or not flat(out):
        return None
    words, height, apart = found
    blocks, line = -(-keys // LANES), -(-depth // PANEL) * PANEL
    scratch = (
        TILE
        + blocks * LANES
        + (-(-width // LANES) + blocks + VECTORS) * apart
        + height * line
        + panels(keys, width)
        + panels(depth, keys)
    )
    return [attend(items * groups, *words, out, scratch=scratch)]


def attention_grad(
    arrays: Sequence, outs: Sequence, room: Workspace, tb: bool, factor: float, fill: float, hides: bool
) -> list[Task] | None:
    grad, q, k, v, mask, stats = arrays
    items, width, (keys, depth) = math.prod(q.shape[:-2]), q.shape[-1], v.shape[-2:]
    found, of_grad = common(q, k, v, mask, stats, factor, fill, hides, tb, 1), side_of(grad)
    if found is None or of_grad is None or not flat(*outs):
        return None
    words, height, apart = found
    blocks, wide, deep = -(-keys // LANES), -(-width // PANEL) * PANEL, -(-depth // PANEL) * PANEL
    scratch = (
        TILE
        + blocks * LANES
        + (-(-width // LANES) - (-depth // LANES) + 2 * (blocks + VECTORS)) * apart
        + height * wide
        + blocks * LANES * (wide + deep)
        + panels(keys, width)
        + panels(width, keys)
        + panels(keys, depth)
    )
    return [
        attend_back(
            items,
            *words,
            grad,
            of_grad.line,
            of_grad.turned,
            0 if of_grad.places is None else of_grad.places,
            *outs,
            not tb,
            accumulate.address,
            np.zeros(1, "i8"),
            scratch=scratch,
        )
    ]


lowers(fusion.attend, attention)
lowers(fusion.attend_grad, attention_grad)
