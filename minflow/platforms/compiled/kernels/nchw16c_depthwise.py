"""Depthwise convolutions and their gradients, of images in blocks.

Uses the tables and loops of `depthwise.py` without conversion: blocks already have the layout that they read. A group
of images stays in the first-level cache. Semantics: `../passes/nchw16c.py`. Read next: `nchw16c_depthwise3x3.py`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..codegen.jit import compiled, float32
from ..codegen.llvm import LANES, number_at, put
from ..codegen.vectors import BOUNDS, BYTES, clipped, filled, load, load_some, rounded, store, widened
from ..passes.nchw16c import result_shape
from ..runtime.instructions import instruction, word_at
from ..runtime.pointers import BlockSplit, split_blocks
from ..runtime.tasks import Task, Workspace
from .depthwise import PAIR, STEP, T0, T1, T2, TAP0, TAP1, TAP2, tables, weigh
from .nchw16c_depthwise3x3 import RUN, flush, slide, slide_back, slide_products
from .nchw16c_norm import fits

TOGETHER = 128  # pixels of a group of images
MOST, LEAST = 8192, 4096  # most and fewest pixels of a chunk
FILTERS = 32  # blocks of filters that are combined in a chunk


class TapTable(NamedTuple):
    """`depthwise.TapTables` as parameters of an instruction: arrays, and their lengths.

    empty: pixels without a tap.  size: taps of a filter.  group: images that are processed together.  reads, writes:
    pixels of an image that is read, and of one that is written.
    """

    classes: np.ndarray
    taps: np.ndarray
    places: np.ndarray
    without: np.ndarray
    class_count: int
    empty: int
    size: int
    group: int
    reads: int
    writes: int


def tap_table(images: tuple, filters: tuple, back: bool, **window) -> TapTable:
    """The table for images and filters of these shapes; back: for the gradient of the images."""
    pixels = max(math.prod(images[2:]), math.prod(result_shape(images, filters, **window)[2:]))
    together = max(1, min(images[0], TOGETHER // pixels))
    t = tables(together, tuple(images[2:]), tuple(filters[2:]), **window, back=back)
    return TapTable(
        t.classes, t.taps, t.places, t.without, len(t.classes), len(t.without), t.size, t.together, t.reads, t.writes
    )


@compiled
def load_filters(w, size, channels, rotate, target):
    """Convert the filters (channels, size) of a block to [tap][16]; rotate: last tap first."""
    for t in range(size):
        store(target + t * STEP, filled(float32(0)))
        for i in range(channels):
            put(target, t * LANES + i, number_at(w, i * size + (size - 1 - t if rotate else t)))


@instruction
def depthwise_conv(
    chunk,
    scratch,
    x,
    w,
    bias,
    y,
    table: TapTable,
    images,
    channels,
    x_block,
    y_block,
    split: BlockSplit,
    low: float,
    high: float,
    height,
    width,
    stride,
    back,
):
    """Convolve some images of some blocks of 16 channels, and clip to [low, high].

    w: (channels, 1, KH, KW).  bias: (channels,), or 0.  x_block, y_block: bytes from block to block.  height, width: of
    the images.  stride: that of 3x3 filters with unrolled code, or 0.  back: 1 for the gradient of the images: x is the
    cotangent.  scratch: three vectors and the filters of a block.
    """
    low, high = filled(float32(low)), filled(float32(high))
    zeros, ends, weights = filled(float32(0)), scratch, scratch + 3 * STEP
    store(ends + STEP, low)
    store(ends + 2 * STEP, high)
    piece, first = chunk % split.pieces, chunk // split.pieces * split.chunk_blocks
    for block in range(first, min(first + split.chunk_blocks, split.blocks)):
        c, left = block * LANES, min(LANES, channels - block * LANES)
        store(ends, load_some(bias + c * BYTES, left, zeros) if bias else zeros)
        load_filters(w + c * table.size * BYTES, table.size, left, stride and back, weights)
        last = (piece + 1) * images // split.pieces
        for n in range(piece * images // split.pieces, last, table.group):
            source, target = x + block * x_block + n * table.reads * STEP, y + block * y_block + n * table.writes * STEP
            some = min(table.group, last - n)
            if stride:
                if stride == 2 and back:
                    slide_back(source, weights, some, height, width, target)
                else:
                    slide(source, weights, some, height, width, stride, target, ends)
                continue
            for k in range(0, table.class_count * 32, 32):
                tap, met = table.taps + word_at(table.classes + k, 0) * PAIR, word_at(table.classes + k, 1)
                place = table.places + word_at(table.classes + k, 2) * PAIR
                several = word_at(table.classes + k, 3) // table.group * some
                weigh(source, weights, tap, met, place, several, target, ends)
            for k in range(table.empty // table.group * some):
                store(target + word_at(table.without, k) * BYTES, clipped(load(ends), low, high))


def blocks_conv2d(arrays: list, outs: list, workspace: Workspace, shape, groups, act, **window) -> list[Task] | None:
    x, w, bias = arrays
    return filtered(x, w, bias, outs[0], shape, window, False, BOUNDS[act])


def blocks_conv2d_input_grad(
    arrays: list, outs: list, workspace: Workspace, shape, groups, **window
) -> list[Task] | None:
    grad, w = arrays
    return filtered(grad, w, 0, outs[0], shape, window, True, BOUNDS[""])


def filtered(x, w, bias, y, shape: tuple, window: dict, back: bool, bounds: tuple) -> list[Task] | None:
    """Build the one task of a convolution.

    shape: of the images.  back: True for the gradient of the images.
    """
    images, channels = shape[:2]
    if w.shape[:2] != (channels, 1) or not fits([x, w, bias], [y]) or x.ndim == 4 or not x.size:
        return None
    t = tap_table(shape, w.shape, back, **window)
    rows = images * max(t.reads, t.writes)
    split = split_blocks(len(y), rows, MOST, LEAST, images)
    bias = bias if isinstance(bias, np.ndarray) else 0
    return [
        depthwise_conv(
            split.chunks,
            x,
            w,
            bias,
            y,
            t,
            images,
            channels,
            x.strides[0],
            y.strides[0],
            split,
            *bounds,
            *shape[2:],
            slides(shape, w.shape[2:], **window),
            back,
            scratch=(3 + t.size) * LANES,
        )
    ]


def slides(shape: tuple, kernel: tuple, stride: tuple, padding: tuple, dilation: tuple) -> int:
    """The stride, if `nchw16c_depthwise3x3` supports this geometry; otherwise 0."""
    fits = tuple(kernel) == (3, 3) and stride[0] == stride[1] <= 2 and tuple(padding) == tuple(dilation) == (1, 1)
    return stride[0] if fits and min(shape[2:]) > 1 else 0


# ---- gradient of the filters -----------------------------------------------------------------------------------------


@instruction
def depthwise_weight_grad(
    chunk,
    scratch,
    grad,
    x,
    parts,
    table: TapTable,
    images,
    x_block,
    grad_block,
    split: BlockSplit,
    height,
    width,
    stride,
):
    """Compute parts[piece, block, tap, 16] = the sum over some images of cotangent times the tap's input.

    x_block, grad_block: bytes from block to block.  Others: see `depthwise_conv`.  scratch: the filters of a block.
    """
    zeros, piece, first = filled(float32(0)), chunk % split.pieces, chunk // split.pieces * split.chunk_blocks
    for block in range(first, min(first + split.chunk_blocks, split.blocks)):
        sums = parts + (piece * split.blocks + block) * table.size * STEP
        for t in range(table.size):
            store(sums + t * STEP, zeros)
            store(scratch + t * STEP, zeros)
        last, met = (piece + 1) * images // split.pieces, 0
        for n in range(piece * images // split.pieces, last, table.group):
            source = x + block * x_block + n * table.reads * STEP
            target = grad + block * grad_block + n * table.writes * STEP
            some = min(table.group, last - n)
            if stride == 1:
                slide_products(source, target, some, height, width, scratch, sums)
                continue
            for k in range(0, table.class_count * 32, 32):
                end = word_at(table.classes + k, 3) // table.group * some
                for begin in range(0, end, RUN):
                    tap, left = table.taps + word_at(table.classes + k, 0) * PAIR, word_at(table.classes + k, 1)
                    place, run = table.places + (word_at(table.classes + k, 2) + begin) * PAIR, min(RUN, end - begin)
                    while left >= T0:
                        TAP0(source, target, place, run, tap, scratch)
                        tap, left = tap + T0 * PAIR, left - T0
                    while left >= T1:
                        TAP1(source, target, place, run, tap, scratch)
                        tap, left = tap + T1 * PAIR, left - T1
                    while left >= T2:
                        TAP2(source, target, place, run, tap, scratch)
                        tap, left = tap + T2 * PAIR, left - T2
                    met += run
                    if met >= RUN:
                        flush(scratch, sums, table.size)
                        met = 0
        flush(scratch, sums, table.size)


@instruction
def add_depthwise_parts(chunk, scratch, parts, w, size, channels, blocks, pieces):
    """Add parts (pieces, blocks, size, 16) over pieces, to w (channels, size), for the filters of some blocks.

    scratch: a vector.
    """
    for block in range(chunk * FILTERS, min((chunk + 1) * FILTERS, blocks)):
        for t in range(size):
            total = filled(0.0)
            for k in range(pieces):
                total = total + widened(load(parts + ((k * blocks + block) * size + t) * STEP))
            store(scratch, rounded(total))
            for i in range(min(LANES, channels - block * LANES)):
                put(w, (block * LANES + i) * size + t, number_at(scratch, i))


def blocks_conv2d_weight_grad(
    arrays: list, outs: list, workspace: Workspace, shape, images, groups, **window
) -> list[Task] | None:
    grad, x = arrays
    if tuple(shape[:2]) != (images[1], 1) or not fits(arrays, outs) or x.ndim == 4 or not (x.size and grad.size):
        return None
    blocks, t = len(x), tap_table(images, shape, False, **window)
    split = split_blocks(blocks, images[0] * max(t.reads, t.writes), MOST, LEAST, images[0])
    parts = workspace.take(blocks * split.pieces * t.size * LANES)
    return [
        depthwise_weight_grad(
            split.chunks,
            grad,
            x,
            parts,
            t,
            images[0],
            x.strides[0],
            grad.strides[0],
            split,
            *images[2:],
            slides(images, shape[2:], **window),
            scratch=t.size * LANES,
        ),
        add_depthwise_parts(
            -(-blocks // FILTERS), parts, outs[0], t.size, images[1], blocks, split.pieces, scratch=LANES
        ),
    ]
