"""Depthwise convolutions and their gradients, of images in blocks.

Uses the tables and loops of `depthwise.py` without conversion: blocks already have the layout that they read. A group
of images stays in the first-level cache. Semantics: `compiler/fusion/nchw16c.py`. Read next: `nchw16c_depthwise3x3.py`.
"""

from __future__ import annotations

import math

import numpy as np

from ....core.ops.conv import positions
from ..codegen.jit import float32
from ..codegen.llvm import LANES, number_at, put
from ..codegen.vectors import BOUNDS, BYTES, add, clipped, filled, load, load_some, rounded, store, widened
from ..runtime.instructions import instruction, real_at, word_at
from ..runtime.pointers import cut
from ..runtime.tasks import Task, Workspace
from .depthwise import PAIR, STEP, T0, T1, T2, TAP0, TAP1, TAP2, tables, weigh
from .nchw16c_depthwise3x3 import RUN, flush, slide, slide_back, slide_products
from .nchw16c_norm import fits

TOGETHER = 128  # pixels of a group of images
MOST, LEAST = 8192, 4096  # most and fewest pixels of a chunk
FILTERS = 32  # blocks of filters that are combined in a chunk


@instruction
def depthwise_filtered(words, chunk, scratch):
    x, w, bias, y = word_at(words, 0), word_at(words, 1), word_at(words, 2), word_at(words, 3)
    classes, taps, places, without = word_at(words, 4), word_at(words, 5), word_at(words, 6), word_at(words, 7)
    count, size, empty, group = word_at(words, 8), word_at(words, 9), word_at(words, 10), word_at(words, 11)
    images, reads, writes, channels = word_at(words, 12), word_at(words, 13), word_at(words, 14), word_at(words, 15)
    x_far, y_far, blocks = word_at(words, 16), word_at(words, 17), word_at(words, 18)
    together, pieces = word_at(words, 19), word_at(words, 20)
    low, high = filled(float32(real_at(words, 21))), filled(float32(real_at(words, 22)))
    height, width, stride, back = word_at(words, 23), word_at(words, 24), word_at(words, 25), word_at(words, 26)
    zeros, ends, weights = filled(float32(0)), scratch, scratch + 3 * STEP
    store(ends + STEP, low)
    store(ends + 2 * STEP, high)
    piece, first = chunk % pieces, chunk // pieces * together
    for block in range(first, min(first + together, blocks)):
        c, left = block * LANES, min(LANES, channels - block * LANES)
        store(ends, load_some(bias + c * BYTES, left, zeros) if bias else zeros)
        for t in range(size):
            store(weights + t * STEP, zeros)
            for i in range(left):
                put(weights, t * LANES + i, number_at(w, (c + i) * size + (size - 1 - t if stride and back else t)))
        last = (piece + 1) * images // pieces
        for n in range(piece * images // pieces, last, group):
            source, target = x + block * x_far + n * reads * STEP, y + block * y_far + n * writes * STEP
            some = min(group, last - n)
            if stride:
                if stride == 2 and back:
                    slide_back(source, weights, some, height, width, target)
                else:
                    slide(source, weights, some, height, width, stride, target, ends)
                continue
            for k in range(0, count * 32, 32):
                tap, met = taps + word_at(classes + k, 0) * PAIR, word_at(classes + k, 1)
                place, several = places + word_at(classes + k, 2) * PAIR, word_at(classes + k, 3) // group * some
                weigh(source, weights, tap, met, place, several, target, ends)
            for k in range(empty // group * some):
                store(target + word_at(without, k) * BYTES, clipped(load(ends), low, high))


def blocks_conv2d(
    arrays: list, outs: list, room: Workspace, shape, stride, padding, dilation, groups, act
) -> list[Task] | None:
    x, w, bias = arrays
    size = positions(shape[2:], w.shape[2:], stride, padding, dilation)
    return filtered(x, w, bias, outs[0], shape, size, (stride, padding, dilation), False, BOUNDS[act])


def blocks_conv2d_input_grad(
    arrays: list, outs: list, room: Workspace, shape, stride, padding, dilation, groups
) -> list[Task] | None:
    grad, w = arrays
    size = positions(shape[2:], w.shape[2:], stride, padding, dilation)
    return filtered(grad, w, 0, outs[0], shape, size, (stride, padding, dilation), True, BOUNDS[""])


def filtered(x, w, bias, y, shape, size, geometry, back, bounds):
    """Build the one task of a convolution.

    shape: of the images.  size: of the output.  back: True for the gradient of the images.
    """
    images, channels = shape[:2]
    if w.shape[:2] != (channels, 1) or not fits([x, w, bias], [y]) or x.ndim == 4 or not x.size:
        return None
    t = tables(group_of(shape, size), tuple(shape[2:]), tuple(w.shape[2:]), *map(tuple, geometry), back)
    rows = images * max(t.reads, t.writes)
    together, pieces = cut(len(y), rows, MOST, LEAST)
    pieces = min(pieces, images)
    bias = bias if isinstance(bias, np.ndarray) else 0
    return [
        depthwise_filtered(
            -(-len(y) // together) * pieces,
            x,
            w,
            bias,
            y,
            t.classes,
            t.taps,
            t.places,
            t.without,
            len(t.classes),
            t.size,
            len(t.without),
            t.together,
            images,
            t.reads,
            t.writes,
            channels,
            x.strides[0],
            y.strides[0],
            len(y),
            together,
            pieces,
            *bounds,
            *shape[2:],
            slides(shape, w.shape[2:], geometry),
            back,
            scratch=(3 + t.size) * LANES,
        )
    ]


def slides(shape: tuple, kernel: tuple, geometry: tuple) -> int:
    """The stride, if `nchw16c_depthwise3x3` supports this geometry; otherwise 0."""
    (stride, across), *others = geometry
    fits = tuple(kernel) == (3, 3) and stride == across <= 2 and [tuple(v) for v in others] == [(1, 1), (1, 1)]
    return stride if fits and min(shape[2:]) > 1 else 0


def group_of(shape: tuple, size: tuple) -> int:
    """Images of a group."""
    return max(1, min(shape[0], TOGETHER // max(math.prod(shape[2:]), math.prod(size))))


# ---- gradient of the filters -----------------------------------------------------------------------------------------


@instruction
def depthwise_multiplied(words, chunk, scratch):
    grad, x, parts = word_at(words, 0), word_at(words, 1), word_at(words, 2)
    classes, taps, places = word_at(words, 3), word_at(words, 4), word_at(words, 5)
    count, size, group, images = word_at(words, 6), word_at(words, 7), word_at(words, 8), word_at(words, 9)
    reads, writes, x_far, g_far = word_at(words, 10), word_at(words, 11), word_at(words, 12), word_at(words, 13)
    blocks, together, pieces = word_at(words, 14), word_at(words, 15), word_at(words, 16)
    height, width, stride = word_at(words, 17), word_at(words, 18), word_at(words, 19)
    zeros, piece, first = filled(float32(0)), chunk % pieces, chunk // pieces * together
    for block in range(first, min(first + together, blocks)):
        sums = parts + (piece * blocks + block) * size * STEP
        for t in range(size):
            store(sums + t * STEP, zeros)
            store(scratch + t * STEP, zeros)
        last, met = (piece + 1) * images // pieces, 0
        for n in range(piece * images // pieces, last, group):
            source, target = x + block * x_far + n * reads * STEP, grad + block * g_far + n * writes * STEP
            some = min(group, last - n)
            if stride == 1:
                slide_products(source, target, some, height, width, scratch, sums)
                continue
            for k in range(0, count * 32, 32):
                end = word_at(classes + k, 3) // group * some
                for begin in range(0, end, RUN):
                    tap, left = taps + word_at(classes + k, 0) * PAIR, word_at(classes + k, 1)
                    place, run = places + (word_at(classes + k, 2) + begin) * PAIR, min(RUN, end - begin)
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
                        flush(scratch, sums, size)
                        met = 0
        flush(scratch, sums, size)


@instruction
def depthwise_joined(words, chunk, scratch):
    """Add the parts of all chunks, for the filters of some blocks."""
    parts, w, size, channels = word_at(words, 0), word_at(words, 1), word_at(words, 2), word_at(words, 3)
    blocks, pieces = word_at(words, 4), word_at(words, 5)
    for block in range(chunk * FILTERS, min((chunk + 1) * FILTERS, blocks)):
        for t in range(size):
            found = filled(0.0)
            for k in range(pieces):
                found = add(found, widened(load(parts + ((k * blocks + block) * size + t) * STEP)))
            store(scratch, rounded(found))
            for i in range(min(LANES, channels - block * LANES)):
                put(w, (block * LANES + i) * size + t, number_at(scratch, i))


def blocks_conv2d_weight_grad(
    arrays: list, outs: list, room: Workspace, shape, images, stride, padding, dilation, groups
) -> list[Task] | None:
    grad, x = arrays
    if tuple(shape[:2]) != (images[1], 1) or not fits(arrays, outs) or x.ndim == 4 or not (x.size and grad.size):
        return None
    size, blocks = positions(images[2:], shape[2:], stride, padding, dilation), len(x)
    t = tables(
        group_of(images, size),
        tuple(images[2:]),
        tuple(shape[2:]),
        tuple(stride),
        tuple(padding),
        tuple(dilation),
        False,
    )
    together, pieces = cut(blocks, images[0] * max(t.reads, t.writes), MOST, LEAST)
    pieces = min(pieces, images[0])
    parts = room.take(blocks * pieces * t.size * LANES)
    return [
        depthwise_multiplied(
            -(-blocks // together) * pieces,
            grad,
            x,
            parts,
            t.classes,
            t.taps,
            t.places,
            len(t.classes),
            t.size,
            t.together,
            images[0],
            t.reads,
            t.writes,
            x.strides[0],
            grad.strides[0],
            blocks,
            together,
            pieces,
            *images[2:],
            slides(images, shape[2:], (stride, padding, dilation)),
            scratch=t.size * LANES,
        ),
        depthwise_joined(-(-blocks // FILTERS), parts, outs[0], t.size, images[1], blocks, pieces, scratch=LANES),
    ]
