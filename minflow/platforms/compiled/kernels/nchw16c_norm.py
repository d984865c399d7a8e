"""Batch norm of images in blocks, with the following activation, and its gradients.

If the rows of a block fit into the second-level cache, one chunk computes statistics and writes the result. For larger
blocks each chunk leaves partial statistics, which a second task combines in chunk order. The statistics are accurate
for any mean: for a tile of rows in the first-level cache first the mean, then the squared deviations, combined in
float64. Source: Chan, Golub & LeVeque 1983, for combining. Semantics: `../passes/nchw16c.py`. Read next:
`row_norms.py`.
"""

from __future__ import annotations

import math

import numpy as np

from ..codegen.jit import float32, inlined
from ..codegen.vectors import (
    BOUNDS,
    BYTES,
    WIDE_BYTES,
    clipped,
    filled,
    first_of,
    inside,
    load,
    load_some,
    load_wide,
    multiply_add,
    root,
    rounded,
    store,
    store_some,
    store_wide,
    widened,
)
from ..lowering import lowers
from ..passes import nchw16c
from ..passes.nchw16c import LANES
from ..runtime.instructions import instruction
from ..runtime.pointers import BlockSplit, split_blocks
from ..runtime.tasks import Task, Workspace

STEP = LANES * BYTES
TILE = 128  # rows of a tile, which is read twice
# MOST: most rows of a chunk, with at least MANY blocks.  LEAST: most rows with fewer blocks, and fewest rows.
MOST, LEAST, MANY = 16384, 4096, 4
FOUND = 4 * LANES  # float32 of the statistics of a chunk: two vectors of float64
BOTH, FIRST, SECOND = range(3)  # which half of the work a chunk does


# ---- statistics ------------------------------------------------------------------------------------------------------


@inlined
def join(state, before, other, count):
    """Combine the mean and squared deviations of `before` rows, in `state`, with those of `count` more."""
    mean, part = load_wide(state), filled(count / (before + count))
    difference = load_wide(other) - mean
    squares = load_wide(state + WIDE_BYTES) + load_wide(other + WIDE_BYTES)
    store_wide(state, multiply_add(difference, part, mean))
    store_wide(state + WIDE_BYTES, multiply_add(difference * difference, part * filled(float(before)), squares))


@inlined
def clear(state):
    store_wide(state, filled(0.0))
    store_wide(state + WIDE_BYTES, filled(0.0))


@inlined
def add_to(state, first, second):
    """Add two vectors of float64 to the pair of them in `state`."""
    store_wide(state, load_wide(state) + first)
    store_wide(state + WIDE_BYTES, load_wide(state + WIDE_BYTES) + second)


@inlined
def moments(x, rows, state, tile):
    """Mean and squared deviations of rows, combined into `state`. tile: scratch for those of one tile."""
    clear(state)
    for first in range(0, rows, TILE):
        count = min(TILE, rows - first)
        p = x + first * STEP
        whole, end = p + count // 4 * 4 * STEP, p + count * STEP
        a = b = c = d = filled(float32(0))
        for q in range(p, whole, 4 * STEP):
            a, b = a + load(q), b + load(q + STEP)
            c, d = c + load(q + 2 * STEP), d + load(q + 3 * STEP)
        for q in range(whole, end, STEP):
            a = a + load(q)
        mean = widened(a + b + (c + d)) * filled(1.0 / count)
        center = rounded(mean)
        a = b = c = d = filled(float32(0))
        for q in range(p, whole, 4 * STEP):
            u, v = load(q) - center, load(q + STEP) - center
            s, t = load(q + 2 * STEP) - center, load(q + 3 * STEP) - center
            a, b, c, d = multiply_add(u, u, a), multiply_add(v, v, b), multiply_add(s, s, c), multiply_add(t, t, d)
        for q in range(whole, end, STEP):
            u = load(q) - center
            a = multiply_add(u, u, a)
        store_wide(tile, mean)
        store_wide(tile + WIDE_BYTES, widened(a + b + (c + d)))
        join(state, first, tile, count)


@inlined
def normalized(x, y, rows, center, scale, shift, low, high):
    for i in range((rows - 1) * STEP, -1, -STEP):  # in reverse: the rows read last are still in the cache
        store(y + i, clipped(multiply_add(load(x + i) - center, scale, shift), low, high))


@instruction
def batch_norm_blocks(
    chunk,
    scratch,
    x,
    weight,
    bias,
    y,
    means,
    variances,
    parts,
    eps: float,
    low: float,
    high: float,
    phase,
    split: BlockSplit,
    channels,
    rows,
    block_bytes,
):
    """Normalize some rows of blocks of 16 channels, and clip to [low, high].

    x, y: blocks of `rows` rows of 16 channels, `block_bytes` bytes apart.  parts: statistics of each piece of a block,
    FOUND float32 each.  phase: BOTH, FIRST or SECOND.
    """
    eps = filled(float32(eps))
    low, high = filled(float32(low)), filled(float32(high))
    if phase == SECOND:
        # In reverse: the split.blocks that the first task read last are still in the cache.
        chunk = split.blocks * split.pieces - 1 - chunk
    piece = chunk % split.pieces
    begin, end = piece * rows // split.pieces, (piece + 1) * rows // split.pieces
    zeros, state, tile = filled(float32(0)), scratch, scratch + 2 * WIDE_BYTES
    first = chunk // split.pieces * split.chunk_blocks
    for block in range(first, min(first + split.chunk_blocks, split.blocks)):
        here, c = block * block_bytes + begin * STEP, block * LANES
        mine = parts + block * split.pieces * 2 * WIDE_BYTES
        if phase == FIRST:
            state = mine + piece * 2 * WIDE_BYTES
        if phase != SECOND:
            moments(x + here, end - begin, state, tile)
        else:
            clear(state)
            for k in range(split.pieces):
                before = k * rows // split.pieces
                join(state, before, mine + k * 2 * WIDE_BYTES, (k + 1) * rows // split.pieces - before)
        if phase != FIRST:
            left = channels - c
            mean = rounded(load_wide(state))
            var = rounded(load_wide(state + WIDE_BYTES) * filled(1.0 / rows))
            if piece == 0:
                store_some(means + c * BYTES, left, mean)
                store_some(variances + c * BYTES, left, var)
            scale = load_some(weight + c * BYTES, left, zeros) / root(var + eps)
            shift = load_some(bias + c * BYTES, left, zeros)
            normalized(x + here, y + here, end - begin, mean, first_of(scale, left), shift, low, high)


def blocks_batch_norm(arrays: list, outs: list, workspace: Workspace, shape, eps, act) -> list[Task] | None:
    return steps(batch_norm_blocks, arrays, outs, workspace, shape, eps, act)


# ---- gradients -------------------------------------------------------------------------------------------------------


@inlined
def products(grad, x, rows, center, scale, shift, low, high, state):
    """Sum the cotangents before the activation, and their products with x - center."""
    clear(state)
    for first in range(0, rows, TILE):
        a = b = c = d = filled(float32(0))
        count = min(TILE, rows - first)
        start, end = first * STEP, (first + count) * STEP
        whole = start + count // 2 * 2 * STEP
        for i in range(start, whole, 2 * STEP):
            u, v = load(x + i) - center, load(x + i + STEP) - center
            g = inside(load(grad + i), multiply_add(u, scale, shift), low, high)
            h = inside(load(grad + i + STEP), multiply_add(v, scale, shift), low, high)
            a, b, c, d = a + g, b + h, multiply_add(g, u, c), multiply_add(h, v, d)
        for i in range(whole, end, STEP):
            u = load(x + i) - center
            g = inside(load(grad + i), multiply_add(u, scale, shift), low, high)
            a, c = a + g, multiply_add(g, u, c)
        add_to(state, widened(a + b), widened(c + d))


@inlined
def write_input_grad(grad, x, gx, rows, center, scale, shift, low, high, size, slope, offset):
    for i in range((rows - 1) * STEP, -1, -STEP):  # in reverse: the rows read last are still in the cache
        u = load(x + i) - center
        g = inside(load(grad + i), multiply_add(u, scale, shift), low, high)
        store(gx + i, multiply_add(g, size, multiply_add(u, slope, offset)))


@inlined
def add_parts(parts, pieces, state):
    """Add the sums of all pieces of a block."""
    clear(state)
    for part in range(parts, parts + pieces * 2 * WIDE_BYTES, 2 * WIDE_BYTES):
        add_to(state, load_wide(part), load_wide(part + WIDE_BYTES))


@instruction
def batch_norm_grad_blocks(
    chunk,
    scratch,
    grad,
    x,
    weight,
    bias,
    means,
    variances,
    gx,
    gweight,
    gbias,
    parts,
    eps: float,
    low: float,
    high: float,
    phase,
    split: BlockSplit,
    channels,
    rows,
    block_bytes,
):
    """Compute the gradients gx, gweight and gbias of some rows of blocks of 16 channels.

    Parameters: see `batch_norm_blocks`.
    """
    eps = filled(float32(eps))
    low, high = filled(float32(low)), filled(float32(high))
    if phase == SECOND:
        chunk = split.blocks * split.pieces - 1 - chunk
    piece = chunk % split.pieces
    begin, end = piece * rows // split.pieces, (piece + 1) * rows // split.pieces
    zeros, state = filled(float32(0)), scratch
    first = chunk // split.pieces * split.chunk_blocks
    for block in range(first, min(first + split.chunk_blocks, split.blocks)):
        here, c, left = block * block_bytes + begin * STEP, block * LANES * BYTES, channels - block * LANES
        mean, var = load_some(means + c, left, zeros), load_some(variances + c, left, zeros)
        numbers, shift = load_some(weight + c, left, zeros), load_some(bias + c, left, zeros)
        deviation = root(var + eps)
        scale = first_of(numbers / deviation, left)
        mine = parts + block * split.pieces * 2 * WIDE_BYTES
        if phase == FIRST:
            state = mine + piece * 2 * WIDE_BYTES
        if phase != SECOND:
            products(grad + here, x + here, end - begin, mean, scale, shift, low, high, state)
        else:
            add_parts(mine, split.pieces, state)
        if phase != FIRST:
            sums = load_wide(state)
            weight_sums = load_wide(state + WIDE_BYTES) / widened(deviation)
            if piece == 0:
                store_some(gbias + c, left, rounded(sums))
                store_some(gweight + c, left, rounded(weight_sums))
            size, part = widened(scale), filled(-1.0 / rows)
            slope = first_of(rounded(size * weight_sums / widened(deviation) * part), left)
            offset = rounded(size * sums * part)
            write_input_grad(
                grad + here, x + here, gx + here, end - begin, mean, scale, shift, low, high, scale, slope, offset
            )


def blocks_batch_norm_grad(arrays: list, outs: list, workspace: Workspace, shape, eps, act) -> list[Task] | None:
    return steps(batch_norm_grad_blocks, arrays, outs, workspace, shape, eps, act)


# ---- both tasks ------------------------------------------------------------------------------------------------------


def steps(
    make, arrays: list, outs: list, workspace: Workspace, shape: tuple, eps: float, act: str
) -> list[Task] | None:
    if not fits(arrays, outs):
        return None
    blocks, (channels, rows) = len(outs[0]), (shape[1], pixels_of(shape))
    split = split_blocks(blocks, rows, MOST if blocks >= MANY else LEAST, LEAST)
    parts = workspace.take(blocks * split.pieces * FOUND) if split.pieces > 1 else 0
    low, high = BOUNDS[act]
    return [
        make(
            split.chunks,
            *arrays,
            *outs,
            parts,
            eps,
            low,
            high,
            phase,
            split,
            channels,
            rows,
            outs[0].strides[0],
            scratch=2 * FOUND,
        )
        for phase in ((FIRST, SECOND) if split.pieces > 1 else (BOTH,))
    ]


def fits(arrays: list, outs: list) -> bool:
    """True if all arrays have fixed addresses and there is something to compute."""
    return (
        all(a.flags.c_contiguous for a in (*arrays, *outs) if isinstance(a, np.ndarray))
        and min(a.size for a in outs) > 0
    )


def pixels_of(shape: tuple) -> int:
    return shape[0] * math.prod(shape[2:])


lowers(nchw16c.blocks_batch_norm, blocks_batch_norm)
lowers(nchw16c.blocks_batch_norm_grad, blocks_batch_norm_grad)
