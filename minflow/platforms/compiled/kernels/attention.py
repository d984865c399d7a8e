"""Attention and its gradient, tiled: the scores of a few queries at a time stay in the cache.

A chunk takes query rows of one item (a head of an example); in the gradient, all rows. Keys and values are packed once.
Scores are written as [16 keys][query][16], the packed layout of a left side, so weights @ v needs no repacking. The
gradient recomputes them, and their largest and their sum. Keys after the last one visible to any query of the tile are
skipped. Semantics: `core/ops/attention.py`. Source: Dao et al. 2022 (arXiv:2205.14135), without its running sums, since
all scores of a row are at hand. Read next: `gemm.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ....core.ops.attention import scaled_dot_product_attention
from ....core.spec import Spec, bool_, float32
from ..codegen import llvm
from ..codegen.jit import compiled, emits, ir, types
from ..codegen.llvm import LANES, clear, copy_transposed, number_at, put
from ..codegen.micro_kernels import PANEL, ROWS, VECTORS
from ..codegen.vectors import BYTES, below, filled, load, multiply_add, store, store_some, vector
from ..lowering import lowers
from ..runtime.instructions import instruction, run_routine, word_at
from ..runtime.tasks import Task, Workspace
from .cross_entropy import exp, max_ignoring_nan
from .elementwise import flat
from .elementwise_loops import byte_at, masks_in
from .gemm import TILE, MatrixLayout, MatrixOperand, block_stride, layout_of, pack_left, pack_right
from .gemm_tiles import outer as accumulate, product as multiply

STEP = LANES * BYTES
SCORES = 3 << 14  # elements of a tile of scores
SPLIT = 8  # fewest chunks, if there are enough rows
LEAST = 16  # fewest keys; below, a batch of BLAS products takes less time
WIDEST = 256  # most elements of a query or value vector


@emits(vector, vector, vector, vector, vector)
def hidden(builder, x, mask, zero, instead):
    """Return `instead` in lanes where the mask is zero, x in the others."""
    return builder.select(builder.fcmp_ordered("==", mask, zero), instead, x)


@emits(vector, vector, types.int64, vector)
def ended(builder, x, count, beyond):
    """Return the first `count` lanes of x; `beyond` in the others."""
    return builder.select(below(builder, count), x, beyond)


def in_pairs(builder, combined, x):
    """Reduce 16 lanes to one number as a tree, by halves."""
    none = ir.Constant(llvm.VECTOR, ir.Undefined)
    for step in (8, 4, 2, 1):
        lanes = ir.Constant(ir.VectorType(llvm.INT, LANES), [(i + step) % LANES for i in range(LANES)])
        x = combined(x, builder.shuffle_vector(x, none, lanes))
    return builder.extract_element(x, ir.Constant(llvm.INT, 0))


@emits(types.float32, vector)
def summed(builder, x):
    return in_pairs(builder, builder.fadd, x)


@emits(types.float32, vector)
def max_of_lanes(builder, x):
    """Maximum of the lanes, none of which may be NaN."""
    return in_pairs(builder, lambda x, y: builder.select(builder.fcmp_ordered(">", x, y), x, y), x)


# ---- one tile of queries ---------------------------------------------------------------------------------------------


class AttentionSizes(NamedTuple):
    """Sizes of one item, as a parameter of both instructions.

    rows: queries.  keys: of `width` elements, with values of `depth` elements.  tile: queries of a tile.  block:
    elements from 16 keys of a tile to the next 16.  factor: of the scores.  nowhere: True if a query
    whose keys are all hidden has weights 0, not NaN.
    """

    rows: int
    keys: int
    width: int
    depth: int
    tile: int
    block: int
    factor: float
    nowhere: bool


class Mask(NamedTuple):
    """Mask of the keys, bytes (..., rows, keys).

    array: address, or 0.  row: bytes from row to row.  offsets: int64 table of the offset of each item, or 0.
    """

    array: np.ndarray | int
    row: int
    offsets: np.ndarray | int


@compiled
def mask_of(mask, item, row):
    """Address of a row of the mask of an item; 0 if there is none."""
    if not mask.array:
        return 0
    return mask.array + (word_at(mask.offsets, item) if mask.offsets else 0) + row * mask.row


@compiled
def pack_whole(operand, item, flip, depth, columns, target, spare):
    """Pack a whole item as the right side of micro-kernels. flip: pack its transpose."""
    panel = (depth + 2 * LANES - 1) // LANES * TILE * VECTORS
    transposed = (operand.transposed != 0) != flip
    right = MatrixOperand(operand.array, operand.stride, transposed, operand.offsets, 0)
    pack_right(right, item, 0, columns, 0, depth, target, panel, spare)


@compiled
def multiplied(multiply, table, rows, left, depth, right, packed, columns, out, row, beside):
    """Compute out = left @ right, with `packed` terms of the sum packed, of which `depth` are used.

    row: elements from row to row of the result.  beside: from 16 columns to the next 16.
    """
    panel = (packed + 2 * LANES - 1) // LANES * TILE * VECTORS
    for j in range(0, columns, PANEL):
        run_routine(
            multiply,
            rows,
            left,
            right + j // PANEL * panel * BYTES,
            table,
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
def visible_keys(mask, tile_mask, rows, keys):
    """Number of keys up to the last one visible to any of these queries, rounded up to a panel."""
    if not tile_mask:
        return keys
    for j in range((keys - 1) // PANEL * PANEL, 0, -PANEL):
        end = min(j + PANEL, keys)
        for r in range(rows - 1, -1, -1):
            for i in range(j, end):
                if byte_at(tile_mask + r * mask.row + i) != 0:
                    return end
    return min(PANEL, keys)


@compiled
def scale_row(sizes, place, count, row_mask, spare):
    """Scale and mask the scores of one query in place; return the largest, ignoring NaN."""
    block, least = sizes.block * BYTES, filled(np.float32(-np.inf))
    factor, most, zero = filled(np.float32(sizes.factor)), least, filled(np.float32(0))
    if row_mask:
        masks_in(row_mask, spare, count)
    for j in range(0, count, LANES):
        x = load(place) * factor
        if row_mask:
            x = hidden(x, load(spare + j * BYTES), zero, least)
        x = ended(x, count - j, least)
        store(place, x)
        most = max_ignoring_nan(x, most)
        place += block
    largest_one = max_of_lanes(most)
    return np.float32(0) if sizes.nowhere and largest_one == -np.inf else largest_one


@compiled
def raise_row(block, place, count, top):
    """Replace each score x by exp(x - top); return 1 / their sum, or 0 if all are 0."""
    stride, zero, top = block * BYTES, filled(np.float32(0)), filled(top)
    sums = zero
    for j in range(0, count, LANES):
        x = ended(exp(load(place) - top), count - j, zero)
        store(place, x)
        sums = sums + x
        place += stride
    whole = summed(sums)
    return np.float32(0) if whole == 0 else np.float32(1) / whole


@compiled
def slope_row(sizes, weights, place, count, row_mask, spare):
    """Replace the gradients of a query's weights by those of its scores. spare: its mask, already unpacked."""
    block, zero, sums = sizes.block * BYTES, filled(np.float32(0)), filled(np.float32(0))
    blocks = (count + LANES - 1) // LANES
    for j in range(blocks):
        sums = multiply_add(load(weights + j * block), load(place + j * block), sums)
    mean, factor = filled(summed(sums)), filled(np.float32(sizes.factor))
    for j in range(blocks):
        x = load(weights + j * block) * (load(place + j * block) - mean)
        if row_mask:
            x = hidden(x, load(spare + j * STEP), zero, zero)
        store(place + j * block, ended(x * factor, count - j * LANES, zero))


@compiled
def write(source, line, rows, columns, transposed, out, spare):
    """Write rows, or (transposed) their transpose, to contiguous memory.

    line: elements from row to row.  spare: scratch for 16x16 elements.
    """
    for i in range(0, rows, LANES):
        for j in range(0, columns, LANES):
            here, high, wide = source + (i * line + j) * BYTES, min(LANES, rows - i), min(LANES, columns - j)
            if transposed:
                copy_transposed(here, line, spare, LANES)
                for c in range(wide):
                    store_some(out + ((j + c) * rows + i) * BYTES, high, load(spare + c * STEP))
            else:
                for r in range(high):
                    store_some(out + ((i + r) * columns + j) * BYTES, wide, load(here + r * line * BYTES))


@instruction
def attend(
    chunk,
    scratch,
    sizes: AttentionSizes,
    mask: Mask,
    q: MatrixOperand,
    k: MatrixOperand,
    v: MatrixOperand,
    table,
    multiply,
    groups,
    out,
):
    """Attention of some queries of one item.

    k: (width, keys).  table: offsets of each 16 terms of a sum in packed rows.  multiply: the routine.  groups: chunks
    of an item.  out: (items, rows, depth).
    """
    keys, width, depth, block, tile = sizes.keys, sizes.width, sizes.depth, sizes.block, sizes.tile
    item, blocks = chunk // groups, (keys + LANES - 1) // LANES
    each = (sizes.rows + groups * tile - 1) // (groups * tile) * tile
    line = (depth + PANEL - 1) // PANEL * PANEL
    spare, masks = scratch, scratch + TILE * BYTES
    queries = masks + blocks * STEP
    scores = queries + (width + LANES - 1) // LANES * block * BYTES
    means = scores + (blocks + VECTORS) * block * BYTES
    shares = means + tile * line * BYTES
    right = shares + (tile + LANES - 1) // LANES * STEP
    values = right + (keys + PANEL - 1) // PANEL * ((width + 2 * LANES - 1) // LANES) * TILE * VECTORS * BYTES
    first = chunk % groups * each
    if first < sizes.rows:
        pack_whole(k, item, False, width, keys, right, spare)
        pack_whole(v, item, False, keys, depth, values, spare)
    for top in range(first, min(first + each, sizes.rows), tile):
        rows, tile_mask = min(tile, sizes.rows - top), mask_of(mask, item, top)
        pack_left(q, item, top, rows, 0, width, queries, block, spare)
        count = visible_keys(mask, tile_mask, rows, keys)
        multiplied(multiply, table, rows, queries, width, right, width, count, scores, LANES, block)
        for r in range(rows):
            place, row_mask = scores + r * STEP, tile_mask + r * mask.row if tile_mask else 0
            top_score = scale_row(sizes, place, count, row_mask, masks)
            put(shares, r, raise_row(block, place, count, top_score))
        multiplied(multiply, table, rows, scores, count, values, keys, depth, means, line, LANES)
        for r in range(rows):
            factor = filled(number_at(shares, r))
            for j in range(0, depth, LANES):
                place = means + (r * line + j) * BYTES
                store(place, load(place) * factor)
        write(means, line, rows, depth, False, out + (item * sizes.rows + top) * depth * BYTES, spare)


@compiled
def add_outer(accumulate, zero_table, rows, left, blocks, block, right, columns, out, row):
    """Add left^T @ right to out, for `blocks` blocks of 16 rows of the result; the sum runs over `rows` queries."""
    for j in range(blocks):
        a, c = left + j * block * BYTES, out + j * LANES * row * BYTES
        run_routine(accumulate, LANES, a, right, zero_table, 1, 0, rows, c, row, columns, block, 1)


@compiled
def slopes_of(sizes, mask, tile_mask, rows, count, weights, slopes, spare):
    """Replace the scores of a tile by weights, and the gradients of these by those of the scores."""
    block = sizes.block * BYTES
    for r in range(rows):
        row_mask, row_weights = tile_mask + r * mask.row if tile_mask else 0, weights + r * STEP
        top = scale_row(sizes, row_weights, count, row_mask, spare)
        share = filled(raise_row(sizes.block, row_weights, count, top))
        for j in range((count + LANES - 1) // LANES):
            store(row_weights + j * block, load(row_weights + j * block) * share)
        slope_row(sizes, row_weights, slopes + r * STEP, count, row_mask, spare)


@instruction
def attend_back(
    chunk,
    scratch,
    sizes: AttentionSizes,
    mask: Mask,
    q: MatrixOperand,
    k: MatrixOperand,
    v: MatrixOperand,
    table,
    multiply,
    grad: MatrixOperand,
    gq,
    gk,
    gv,
    accumulate,
    zero_table,
):
    """Gradients gq, gk and gv of one item.

    grad: of the output, (rows, depth).  gk: (keys, width).  accumulate: the routine of outer products.  zero_table:
    address of a zero.  Others: see `attend`.
    """
    keys, width, depth, block, tile = sizes.keys, sizes.width, sizes.depth, sizes.block, sizes.tile
    wide, deep = (width + PANEL - 1) // PANEL * PANEL, (depth + PANEL - 1) // PANEL * PANEL
    blocks = (keys + LANES - 1) // LANES
    spare, masks = scratch, scratch + TILE * BYTES
    queries = masks + blocks * STEP
    grads = queries + (width + LANES - 1) // LANES * block * BYTES
    weights = grads + (depth + LANES - 1) // LANES * block * BYTES
    slopes = weights + (blocks + VECTORS) * block * BYTES
    of_queries = slopes + (blocks + VECTORS) * block * BYTES
    of_keys = of_queries + tile * wide * BYTES
    of_values = of_keys + blocks * LANES * wide * BYTES
    right = of_values + blocks * LANES * deep * BYTES
    back = right + (keys + PANEL - 1) // PANEL * ((width + 2 * LANES - 1) // LANES) * TILE * VECTORS * BYTES
    values = back + wide // PANEL * ((keys + 2 * LANES - 1) // LANES) * TILE * VECTORS * BYTES
    for place in range(of_keys, right, STEP):
        clear(place)
    pack_whole(k, chunk, False, width, keys, right, spare)
    pack_whole(k, chunk, True, keys, width, back, spare)
    pack_whole(v, chunk, True, depth, keys, values, spare)
    for top in range(0, sizes.rows, tile):
        rows, tile_mask = min(tile, sizes.rows - top), mask_of(mask, chunk, top)
        pack_left(q, chunk, top, rows, 0, width, queries, block, spare)
        pack_left(grad, chunk, top, rows, 0, depth, grads, block, spare)
        count = visible_keys(mask, tile_mask, rows, keys)
        multiplied(multiply, table, rows, queries, width, right, width, count, weights, LANES, block)
        multiplied(multiply, table, rows, grads, depth, values, depth, count, slopes, LANES, block)
        slopes_of(sizes, mask, tile_mask, rows, count, weights, slopes, masks)
        multiplied(multiply, table, rows, slopes, count, back, keys, width, of_queries, wide, LANES)
        write(of_queries, wide, rows, width, False, gq + (chunk * sizes.rows + top) * width * BYTES, spare)
        used = (count + LANES - 1) // LANES
        add_outer(accumulate, zero_table, rows, slopes, used, block, queries, width, of_keys, wide)
        add_outer(accumulate, zero_table, rows, weights, used, block, grads, depth, of_values, deep)
    write(of_keys, wide, keys, width, False, gk + chunk * keys * width * BYTES, spare)
    write(of_values, deep, keys, depth, False, gv + chunk * keys * depth * BYTES, spare)


# ---- builders --------------------------------------------------------------------------------------------------------


def common(q, k, v, mask, scale: float, nowhere: bool) -> dict | None:
    """Arguments of both instructions, or None if an array has unsupported strides."""
    (rows, width), (keys, depth), batch = q.shape[-2:], v.shape[-2:], q.shape[:-2]
    layouts = [layout(x) for x in (q, k.swapaxes(-1, -2), v)]
    if None in layouts or not q.size * v.size:
        return None
    masked = Mask(0, 0, 0)
    if isinstance(mask, np.ndarray):
        whole = np.broadcast_to(mask, (*batch, rows, keys))
        if mask.shape[-1] != keys or mask.strides[-1] != 1:
            return None
        offsets = np.zeros(batch, "i8")
        for axis, (n, step) in enumerate(zip(batch, whole.strides)):
            offsets += np.arange(n).reshape(-1, *[1] * (len(batch) - axis - 1)) * step
        masked = Mask(mask, whole.strides[-2], offsets)
    tile = max(ROWS[0], min(4, SCORES // keys // ROWS[0]) * ROWS[0])
    block = block_stride(tile)
    return {
        "sizes": AttentionSizes(rows, keys, width, depth, tile, block, scale, nowhere),
        "mask": masked,
        **{name: side.operand(x) for name, x, side in zip("qkv", (q, k, v), layouts)},
        "table": np.arange(-(-max(keys, width, depth) // LANES), dtype="i8") * block,
        "multiply": multiply.address,
    }


def layout(x: np.ndarray) -> MatrixLayout | None:
    return layout_of(x.shape, x.strides, x.shape[:-2]) if x.dtype == np.float32 else None


def panels(columns: int, depth: int) -> int:
    """Elements of a right side packed in panels."""
    return -(-columns // PANEL) * (-(-depth // LANES) + 1) * TILE * VECTORS


def attention(arrays: Sequence, outs: Sequence, workspace: Workspace, scale: float, nowhere: bool) -> list[Task] | None:
    (q, k, v, mask), (out,) = arrays, outs
    items, (rows, width), (keys, depth) = math.prod(q.shape[:-2]), q.shape[-2:], v.shape[-2:]
    groups = max(1, min(-(-SPLIT // max(items, 1)), rows // (8 * ROWS[0])))
    arguments = common(q, k, v, mask, scale, nowhere)
    if arguments is None or not flat(out):
        return None
    sizes = arguments["sizes"]
    blocks, line = -(-keys // LANES), -(-depth // PANEL) * PANEL
    scratch = (
        TILE
        + blocks * LANES
        + (-(-width // LANES) + blocks + VECTORS) * sizes.block
        + sizes.tile * line
        + -(-sizes.tile // LANES) * LANES
        + panels(keys, width)
        + panels(depth, keys)
    )
    return [attend(items * groups, **arguments, groups=groups, out=out, scratch=scratch)]


def attention_grad(
    arrays: Sequence, outs: Sequence, workspace: Workspace, scale: float, nowhere: bool, needs: int
) -> list[Task] | None:
    grad, q, k, v, mask = arrays
    gq, gk, gv = outs[:3]
    items, width, (keys, depth) = math.prod(q.shape[:-2]), q.shape[-1], v.shape[-2:]
    arguments, of_grad = common(q, k, v, mask, scale, nowhere), layout(grad)
    if arguments is None or of_grad is None or not flat(gq, gk, gv):
        return None
    sizes = arguments["sizes"]
    blocks, wide, deep = -(-keys // LANES), -(-width // PANEL) * PANEL, -(-depth // PANEL) * PANEL
    scratch = (
        TILE
        + blocks * LANES
        + (-(-width // LANES) - (-depth // LANES) + 2 * (blocks + VECTORS)) * sizes.block
        + sizes.tile * wide
        + blocks * LANES * (wide + deep)
        + panels(keys, width)
        + panels(width, keys)
        + panels(keys, depth)
    )
    return [
        attend_back(
            items,
            **arguments,
            grad=of_grad.operand(grad),
            gq=gq,
            gk=gk,
            gv=gv,
            accumulate=accumulate.address,
            zero_table=np.zeros(1, "i8"),
            scratch=scratch,
        )
    ]


def is_large(query: Spec, key: Spec, value: Spec, mask: Spec | type, **attrs) -> bool:
    """True if the tiled kernel pays: float32 of one batch, many keys, and no mask that is added."""
    (*batch, rows, width), (keys, depth) = query.shape, value.shape[-2:]
    if isinstance(mask, Spec):
        if mask.dtype is not bool_ or mask.shape[-1:] != (keys,) or mask.ndim > query.ndim:
            return False
    alike = [x.dtype is float32 and [*x.shape[:-2]] == batch and x.placement is None for x in (query, key, value)]
    return all(alike) and rows > 0 and 0 < max(width, depth) <= WIDEST and keys >= LEAST


lowers(scaled_dot_product_attention, attention, accepts=is_large)
lowers(
    scaled_dot_product_attention.gradient,
    attention_grad,
    accepts=lambda grad, *inputs, needs, **attrs: is_large(*inputs) and not needs >> 3,
)
