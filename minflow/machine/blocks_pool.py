"""The largest pixel of each window, and the mean of all, of images in blocks, with their gradients.

Sixteen channels are compared at a time, each pixel of a window with the largest before it. Windows of 2 x 2 have code
of their own, all others share a loop. What it computes: `../compiler/fusion/blocks.py`.
"""

from __future__ import annotations

import math

import numpy as np

from ..core.ops.conv import positions
from . import llvm
from .blocks_norm import STEP, TILE, fits
from .depthwise import word_at as table_at
from .jit import float32, inlined, ir
from .llvm import INT, LANES, function, word
from .memory import cut
from .steps import Room, Step, instruction, word_at
from .vectors import BYTES, add, divide, filled, load, multiply, rounded, store, widened

MOST, LEAST = 8192, 4096  # pixels of a chunk
NUMBERS, SMALL = ir.VectorType(INT, LANES), ir.VectorType(ir.IntType(8), LANES)
MANY = 256  # pixels of a window that a byte tells apart
FOUR = 4  # pixels of the window that has code of its own


# ---- windows ---------------------------------------------------------------------------------------------------------

def numbers(builder, k):
    """The number of a pixel of the window, for all channels."""
    if isinstance(k, int):
        return ir.Constant(NUMBERS, [k] * LANES)
    return llvm.spread(builder, builder.trunc(k, INT))


def over_window(builder, pixels: int | None, count, carried: list, body) -> list:
    """carried = body(k, carried) for each pixel k of a window: so many, or `count`."""
    if pixels is None:
        return llvm.loop(builder, count, carried, body)
    for k in range(pixels):
        carried = body(k, carried)
    return carried


def largest(pixels: int | None):
    """For windows side by side, `step` numbers apart: the largest of the pixels that stand `offsets` further, and which
    it was; the first of equal ones, but NaN wins, the last one."""

    @function(f"largest_of_{pixels}", 7, inline=False)
    def code(builder, x, offsets, count, step, windows, y, places):
        def window(i, nothing):
            base = llvm.place(builder, x, builder.mul(i, step))

            def pixel(k, before):
                best, chosen = before
                value = llvm.load(builder, base, table_at(builder, offsets, word(k) if isinstance(k, int) else k))
                nan = builder.fcmp_unordered("uno", value, value)
                better = builder.or_(builder.fcmp_ordered(">", value, best), nan)
                return [builder.select(better, value, best), builder.select(better, numbers(builder, k), chosen)]

            start = [llvm.load(builder, base, table_at(builder, offsets, word(0))), numbers(builder, 0)]
            best, chosen = over_window(builder, pixels, count, start, pixel)
            llvm.store(builder, best, y, builder.mul(i, word(LANES)))
            target = builder.inttoptr(builder.add(places, builder.mul(i, word(LANES))), SMALL.as_pointer())
            builder.store(builder.trunc(chosen, SMALL), target, align=1)
            return []

        llvm.loop(builder, windows, [], window)

    return code


def returned(pixels: int | None):
    """For windows side by side, `step` numbers apart: the cotangent of each goes to the pixel of its place. Where there
    is code for so many pixels, windows are apart, and their other pixels get 0; else it is added."""

    @function(f"returned_to_{pixels}", 7, inline=False)
    def code(builder, grad, places, windows, offsets, count, step, gx):
        def window(i, nothing):
            base, k = llvm.place(builder, gx, builder.mul(i, step)), builder.mul(i, word(LANES))
            g, source = llvm.load(builder, grad, k), builder.inttoptr(builder.add(places, k), SMALL.as_pointer())
            chosen = builder.zext(builder.load(source, align=1), NUMBERS)

            def pixel(k, nothing):
                here = builder.icmp_signed("==", chosen, numbers(builder, k))
                value = builder.select(here, g, llvm.filled(0))
                offset = table_at(builder, offsets, word(k) if isinstance(k, int) else k)
                if pixels is None:
                    value = builder.fadd(value, llvm.load(builder, base, offset))
                llvm.store(builder, value, base, offset)
                return []

            over_window(builder, pixels, count, [], pixel)
            return []

        llvm.loop(builder, windows, [], window)

    return code


LARGEST_OF_FOUR, LARGEST = largest(FOUR), largest(None)
RETURNED_TO_FOUR, RETURNED = returned(FOUR), returned(None)


@instruction
def windows_compared(words, chunk, scratch):
    x, y, places, offsets, count = (word_at(words, 0), word_at(words, 1), word_at(words, 2), word_at(words, 3),
                                    word_at(words, 4))
    x_far, y_far, blocks, together, pieces = (word_at(words, 5), word_at(words, 6), word_at(words, 7),
                                              word_at(words, 8), word_at(words, 9))
    images, height, width, pixels = word_at(words, 10), word_at(words, 11), word_at(words, 12), word_at(words, 13)
    down, across = word_at(words, 14), word_at(words, 15)
    piece, first = chunk % pieces, chunk // pieces * together
    for block in range(first, min(first + together, blocks)):
        for n in range(piece * images // pieces, (piece + 1) * images // pieces):
            source, to = x + block * x_far + n * pixels * STEP, block * y_far + n * height * width * STEP
            for i in range(height):
                target, chosen = y + to, places + to // BYTES
                if count == FOUR:
                    LARGEST_OF_FOUR(source, offsets, count, across, width, target, chosen)
                else:
                    LARGEST(source, offsets, count, across, width, target, chosen)
                source, to = source + down * BYTES, to + width * STEP


@instruction
def windows_returned(words, chunk, scratch):
    """apart: windows of FOUR pixels that do not meet; whole: each pixel is in one. reach: bytes of the rows of one."""
    grad, places, gx, offsets, count = (word_at(words, 0), word_at(words, 1), word_at(words, 2), word_at(words, 3),
                                        word_at(words, 4))
    x_far, y_far, blocks, together, pieces = (word_at(words, 5), word_at(words, 6), word_at(words, 7),
                                              word_at(words, 8), word_at(words, 9))
    images, height, width, pixels = word_at(words, 10), word_at(words, 11), word_at(words, 12), word_at(words, 13)
    down, across, reach = word_at(words, 14), word_at(words, 15), word_at(words, 16)
    apart, whole = word_at(words, 17), word_at(words, 18)
    zeros, piece, first = filled(float32(0)), chunk % pieces, chunk // pieces * together
    for block in range(first, min(first + together, blocks)):
        for n in range(piece * images // pieces, (piece + 1) * images // pieces):
            start, source = gx + block * x_far + n * pixels * STEP, block * y_far + n * height * width * STEP
            target, clear, end = start, start, start + pixels * STEP
            for i in range(height):
                if not whole:  # up to the last row that these windows reach, or to the end behind the last ones
                    until = end if i == height - 1 else target + reach
                    for p in range(clear, until, STEP):
                        store(p, zeros)
                    clear = max(clear, until)
                if apart:
                    RETURNED_TO_FOUR(grad + source, places + source // BYTES, width, offsets, count, across, target)
                else:
                    RETURNED(grad + source, places + source // BYTES, width, offsets, count, across, target)
                target, source = target + down * BYTES, source + width * STEP


def windows(shape, kernel_size, stride) -> tuple:
    """(how many windows along height and width, words that both directions end with)."""
    size = positions(shape[2:], kernel_size, stride, (0, 0))
    row = shape[3] * LANES
    return size, (shape[0], *size, shape[2] * shape[3], stride[0] * row, stride[1] * LANES)


def offsets_of(shape, kernel_size) -> np.ndarray:
    """Where the pixels of a window stand, from its first."""
    rows, columns = [np.arange(n, dtype="i8") for n in kernel_size]
    return np.ascontiguousarray((rows[:, None] * shape[3] + columns).reshape(-1) * LANES)


def blocks_max_pool2d(arrays: list, outs: list, room: Room, shape, kernel_size, stride) -> list[Step] | None:
    (x,), (y, places) = arrays, outs
    if not fits(arrays, outs) or math.prod(kernel_size) > MANY:
        return None
    _, sizes = windows(shape, kernel_size, stride)
    together, pieces = shares(len(x), shape)
    offsets = offsets_of(shape, kernel_size)
    return [windows_compared(-(-len(x) // together) * pieces, x, y, places, offsets, len(offsets), x.strides[0],
                             y.strides[0], len(x), together, pieces, *sizes)]


def blocks_max_pool2d_grad(arrays: list, outs: list, room: Room, shape, kernel_size, stride) -> list[Step] | None:
    (grad, places), (gx,) = arrays, outs
    if not fits(arrays, outs) or math.prod(kernel_size) > MANY:
        return None
    size, sizes = windows(shape, kernel_size, stride)
    together, pieces = shares(len(gx), shape)
    offsets = offsets_of(shape, kernel_size)
    apart = len(offsets) == FOUR and all(s >= k for s, k in zip(stride, kernel_size))
    whole = apart and all(m * s == n and s == k for m, s, n, k in zip(size, stride, shape[2:], kernel_size))
    return [windows_returned(-(-len(gx) // together) * pieces, grad, places, gx, offsets, len(offsets), gx.strides[0],
                             grad.strides[0], len(gx), together, pieces, *sizes, kernel_size[0] * shape[3] * STEP,
                             apart, whole)]


def shares(blocks: int, shape: tuple) -> tuple[int, int]:
    """(blocks of a chunk, chunks of a block), at most one for each image."""
    together, pieces = cut(blocks, shape[0] * math.prod(shape[2:]), MOST, LEAST)
    return together, min(pieces, shape[0])


# ---- the mean --------------------------------------------------------------------------------------------------------

@inlined
def mean_of(p, pixels):
    found = filled(0.0)
    for first in range(0, pixels, TILE):
        a = b = filled(float32(0))
        end = p + min(first + TILE, pixels) * STEP
        whole = end - (end - p) // STEP % 2 * STEP
        for q in range(p + first * STEP, whole, 2 * STEP):
            a, b = add(a, load(q)), add(b, load(q + STEP))
        for q in range(whole, end, STEP):
            a = add(a, load(q))
        found = add(found, widened(add(a, b)))
    return rounded(multiply(found, filled(1.0 / pixels)))


@instruction
def averaged(words, chunk, scratch):
    """x: images, y: a number for each; back: what y says is written to each pixel of x, as its part."""
    x, y, x_far, y_far = word_at(words, 0), word_at(words, 1), word_at(words, 2), word_at(words, 3)
    blocks, together, pieces = word_at(words, 4), word_at(words, 5), word_at(words, 6)
    images, pixels, back = word_at(words, 7), word_at(words, 8), word_at(words, 9)
    piece, first, count = chunk % pieces, chunk // pieces * together, filled(float32(pixels))
    for block in range(first, min(first + together, blocks)):
        for n in range(piece * images // pieces, (piece + 1) * images // pieces):
            p, q = x + block * x_far + n * pixels * STEP, y + block * y_far + n * STEP
            if back:
                value = divide(load(q), count)
                for r in range(p, p + pixels * STEP, STEP):
                    store(r, value)
            else:
                store(q, mean_of(p, pixels))


def blocks_average(arrays: list, outs: list, room: Room, shape) -> list[Step] | None:
    return average(arrays, outs, arrays[0], outs[0], shape, False)


def blocks_average_grad(arrays: list, outs: list, room: Room, shape) -> list[Step] | None:
    return average(arrays, outs, outs[0], arrays[0], shape, True)


def average(arrays: list, outs: list, x, y, shape: tuple, back: bool) -> list[Step] | None:
    if not fits(arrays, outs) or not math.prod(shape):
        return None
    together, pieces = shares(len(x), shape)
    return [averaged(-(-len(x) // together) * pieces, x, y, x.strides[0], y.strides[0], len(x), together, pieces,
                     shape[0], math.prod(shape[2:]), back)]
