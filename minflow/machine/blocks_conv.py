"""Dense convolutions of images in blocks of 16 channels (`compiler/fusion/blocks.py`), as steps.

Of 1x1 pixels: one product over the pixels of all images, which are read where they stand; a chunk is so many pixels
times so many filters, which it packs itself, since a pass over them costs little beside the product. The gradient of
the images is the same product with filters turned; that of the filters sums over pixels, within a chunk and then over
chunks in their order. Read next: `conv.py`, for filters of more pixels.
"""

from __future__ import annotations

import math

import numpy as np

from . import blocks_depthwise
from .conv import BYTES, DEEP_ONE, DEEP_WIDE, ROWS, compiled, product, row_in, row_out, zero
from .llvm import LANES, ask_for, clear, copy, copy_turned, number_at, put
from .micro import DEEP, PANEL, VECTORS
from .steps import instruction, real_at, word_at
from .vectors import BOUNDS, add, clipped, filled, load, load_some, store, store_some

WORK = 1 << 21  # multiplications of a chunk
PIXELS_MOST = 1024  # pixels that a chunk adds up for the gradient of filters: that rounds less, too
NEAR = 128  # pixels at a time, which stay in the first-level cache
LEAST = 210  # pixels of a chunk
CACHE = 1 << 17  # numbers of a chunk's images, which stay in the second-level cache
MOVED = 1 << 15  # numbers that a chunk reads, where little is computed with them
AHEAD = 64  # numbers
SUMMED = 2048  # pixels that are added up one after the other, in four sums
NOTHING = np.zeros(1, "i8")


# ---- filters --------------------------------------------------------------------------------------------------------

@compiled
def pack_panel(w, first, filters, channels, turned, target):
    """Filters (F, C) from `first` on, at most PANEL, to [block][16][PANEL]; turned: (C, F). Channels beyond C are
    zeros."""
    for block in range((channels + LANES - 1) // LANES):
        c, some = block * LANES, min(LANES, channels - block * LANES)
        for f in range(first, min(first + PANEL, filters), LANES):
            to, count = target + (c * PANEL + f - first) * BYTES, min(LANES, filters - f)
            if not turned and some == LANES and count == LANES:
                ask_for(w + (f * channels + c) * BYTES, channels, AHEAD)
                copy_turned(w + (f * channels + c) * BYTES, channels, to, PANEL)
                continue
            if turned:
                ask_for(w + (c * filters + f) * BYTES, filters, 2 * LANES * filters)
            for k in range(LANES):
                if turned and k < some:
                    source = w + ((c + k) * filters + f) * BYTES
                    if count == LANES:
                        copy(to + k * PANEL * BYTES, source)
                    else:
                        store(to + k * PANEL * BYTES, load_some(source, count, filled(np.float32(0))))
                    continue
                clear(to + k * PANEL * BYTES)
                if k < some:
                    for j in range(count):
                        put(to, k * PANEL + j, number_at(w, (f + j) * channels + c + k))


@compiled
def finish(y, rows, row, bias, count, low, high):
    """y + bias between two bounds, for 16 channels of pixels `row` numbers apart, of which `count` have a bias.
    bias: its address, or 0."""
    if bias == 0 and low != low:
        return
    zero, low, high = filled(np.float32(0)), filled(np.float32(low)), filled(np.float32(high))
    more = load_some(bias, count, zero) if bias != 0 else zero
    for i in range(rows):
        place = y + i * row * BYTES
        store(place, clipped(add(load(place), more), low, high))


# ---- 1x1 pixels -----------------------------------------------------------------------------------------------------

@instruction
def pixels_filtered(words, chunk, scratch):
    """y = act(x filtered + bias) for some pixels and panels of filters. scratch: a panel."""
    x, w, y, bias, table = word_at(words, 0), word_at(words, 1), word_at(words, 2), word_at(words, 3), word_at(words, 4)
    pixels, channels, filters, room = word_at(words, 5), word_at(words, 6), word_at(words, 7), word_at(words, 8)
    at_once, panels, turned, count = word_at(words, 9), word_at(words, 10), word_at(words, 11), word_at(words, 12)
    length, low, high = word_at(words, 13), real_at(words, 14), real_at(words, 15)
    parts = ((filters + PANEL - 1) // PANEL + panels - 1) // panels
    first, begin = chunk // parts * at_once, chunk % parts * panels * PANEL
    rows = min(at_once, pixels - first)
    for f in range(begin, min(begin + panels * PANEL, filters), PANEL):
        vectors = VECTORS if filters - f > LANES else 1
        pack_panel(w, f, filters, channels, turned, scratch)
        to = y + (f * room + first * LANES) * BYTES
        product(rows, x + first * LANES * BYTES, scratch, table, count, length * PANEL, length, to, LANES, vectors,
                room * LANES)
        for v in range(vectors):
            finish(to + v * room * LANES * BYTES, rows, LANES, bias + (f + v * LANES) * BYTES if bias != 0 else 0,
                   filters - f - v * LANES, low, high)


@instruction
def pixels_filters_grad(words, chunk, scratch):
    """part[filter][channel] = the sum over some pixels of cotangent times x, for some filters."""
    grad, x, parts, nothing = word_at(words, 0), word_at(words, 1), word_at(words, 2), word_at(words, 3)
    pixels, filters, channels, room = word_at(words, 4), word_at(words, 5), word_at(words, 6), word_at(words, 7)
    at_once, several, part, row = word_at(words, 8), word_at(words, 9), word_at(words, 10), word_at(words, 11)
    groups = (filters + several - 1) // several
    first, begin = chunk // groups * at_once, chunk % groups * several
    last = min(first + at_once, pixels)
    target = parts + chunk // groups * part * BYTES
    if pixels == 0:
        zero(target, part)
    for i in range(first, last, NEAR):
        rows = min(NEAR, last - i)
        for f in range(begin, min(begin + several, filters), DEEP):
            a = grad + ((f // LANES * room + i) * LANES + f % LANES) * BYTES
            for c in range(0, channels, PANEL):
                b, to = x + (c * room + i * LANES) * BYTES, target + (f * row + c) * BYTES
                if channels - c > LANES and VECTORS > 1:
                    DEEP_WIDE(a, b, nothing, 1, 0, room * LANES, rows, to, row, LANES, i - first)
                else:
                    DEEP_ONE(a, b, nothing, 1, 0, room * LANES, rows, to, row, LANES, i - first)


@instruction
def parts_added(words, chunk, scratch):
    """out = the sum of the parts, for some rows. A part has `rows` rows of `columns` numbers, `row` numbers apart. out
    is as these are, with taps 0; else (columns, rows, taps), from [tap][room of rows]."""
    parts, out, count, part = word_at(words, 0), word_at(words, 1), word_at(words, 2), word_at(words, 3)
    rows, columns, row, at_once = word_at(words, 4), word_at(words, 5), word_at(words, 6), word_at(words, 7)
    taps, room = word_at(words, 8), word_at(words, 9)
    for i in range(chunk * at_once, min((chunk + 1) * at_once, rows * max(taps, 1))):
        tap, c = i // rows, i % rows
        source = parts + (tap * room + c) * row * BYTES
        for j in range(0, columns, LANES):
            total, some = filled(np.float32(0)), min(LANES, columns - j)
            for k in range(count):
                total = add(total, load(source + (k * part + j) * BYTES))
            if taps == 0:
                store_some(out + (i * columns + j) * BYTES, some, total)
                continue
            store(scratch, total)
            for f in range(some):
                put(out, ((j + f) * rows + c) * taps + tap, number_at(scratch, f))


def filtered_pixels(x, weight, bias, out, pixels, turned, act=""):
    """Steps for filters of 1x1 pixels."""
    channels, filters = weight.shape[:2] if turned else weight.shape[1::-1]
    all_panels = -(-filters // PANEL)
    at_once = max(LEAST, min(CACHE // channels, WORK // (channels * filters)))
    at_once = over(-(-pixels // max(1, pixels // at_once)) or 1, ROWS[0])  # chunks of nearly the same size
    panels = max(1, min(all_panels, WORK // (at_once * channels * PANEL)))
    length = min((4, 8, LANES), key=lambda n: (-(-channels // n) * n, -n))  # as few channels beyond C as there can be
    table = np.arange(0, channels, length, dtype="i8")
    table = table // LANES * (x.shape[1] * LANES) + table % LANES
    return [pixels_filtered(-(-pixels // at_once) * -(-all_panels // panels), x, weight, out, bias, table, pixels,
                            channels, filters, x.shape[1], at_once, panels, turned, len(table), length, *BOUNDS[act],
                            scratch=len(x) * LANES * PANEL)]


def pixels_grad(grad, x, out, room, pixels):
    """Steps for the gradient of filters of 1x1 pixels. Which of both is read number by number is free: that of which
    less is done in vain."""
    turned = over(out.shape[1], DEEP) * over(out.shape[0], LANES) < over(out.shape[0], DEEP) * over(out.shape[1], LANES)
    grad, x, filters, channels = (x, grad, *out.shape[1::-1]) if turned else (grad, x, *out.shape[:2])
    row = len(x) * LANES
    at_once = max(1, min(pixels, PIXELS_MOST))
    several = max(1, WORK // (at_once * row * LANES)) * LANES
    parts = max(1, -(-pixels // at_once))
    direct = parts == 1 and channels == row and filters % DEEP == 0 and not turned and pixels
    part = len(grad) * LANES * row
    target = out if direct else room.take(parts * part)
    steps = [pixels_filters_grad(parts * -(-filters // several), grad, x, target, NOTHING, pixels, filters, channels,
                                 x.shape[1], at_once, several, part, row)]
    return steps if direct else [*steps, sum_of_parts(target, out, parts, part, filters, channels, row, int(turned))]


def sum_of_parts(parts, out, count, part, rows, columns, row, taps=0, room=0):
    at_once = max(1, MOVED // (count * row))
    return parts_added(-(-rows * max(taps, 1) // at_once), parts, out, count, part, rows, columns, row, at_once, taps,
                       room, scratch=LANES)


def over(count, size):
    """The next multiple."""
    return -(-count // size) * size


# ---- in, out, and sums of channels ----------------------------------------------------------------------------------

@instruction
def turned_in(words, chunk, scratch):
    """Some images (C, pixels), 16 channels of them, into blocks."""
    x, y, images, channels = word_at(words, 0), word_at(words, 1), word_at(words, 2), word_at(words, 3)
    pixels, room, at_once = word_at(words, 4), word_at(words, 5), word_at(words, 6)
    blocks = (channels + LANES - 1) // LANES
    block, first = chunk % blocks, chunk // blocks * at_once
    some = min(LANES, channels - block * LANES)
    for n in range(first, min(first + at_once, images)):
        source = x + (n * channels + block * LANES) * pixels * BYTES
        target = y + (block * room + n * pixels) * LANES * BYTES
        if pixels == 1:
            store(target, load_some(source, some, filled(np.float32(0))))
            continue
        if some < LANES:
            zero(target, pixels * LANES)
        row_in(source, some, pixels, pixels, target)


@instruction
def turned_out(words, chunk, scratch):
    """16 channels of some images, out of blocks."""
    x, y, images, channels = word_at(words, 0), word_at(words, 1), word_at(words, 2), word_at(words, 3)
    pixels, room, at_once = word_at(words, 4), word_at(words, 5), word_at(words, 6)
    blocks = (channels + LANES - 1) // LANES
    block, first = chunk % blocks, chunk // blocks * at_once
    some = min(LANES, channels - block * LANES)
    for n in range(first, min(first + at_once, images)):
        source = x + (block * room + n * pixels) * LANES * BYTES
        target = y + (n * channels + block * LANES) * pixels * BYTES
        if pixels == 1:
            store_some(target, some, load(source))
        else:
            row_out(source, some, pixels, pixels, target)


@instruction
def channels_summed(words, chunk, scratch):
    """part[channel] = the sum of some pixels, in four sums."""
    x, parts, pixels, blocks = word_at(words, 0), word_at(words, 1), word_at(words, 2), word_at(words, 3)
    room, at_once = word_at(words, 4), word_at(words, 5)
    first, base = chunk // blocks * at_once, x + chunk % blocks * room * LANES * BYTES
    last = min(first + at_once, pixels)
    a = b = c = d = filled(np.float32(0))
    while first + 4 <= last:
        place = base + first * LANES * BYTES
        a, b = add(a, load(place)), add(b, load(place + LANES * BYTES))
        c, d = add(c, load(place + 2 * LANES * BYTES)), add(d, load(place + 3 * LANES * BYTES))
        first += 4
    for i in range(first, last):
        a = add(a, load(base + i * LANES * BYTES))
    store(parts + chunk * LANES * BYTES, add(add(a, b), add(c, d)))


def turning(instruction, blocks, images, shape):
    n, channels, pixels = *shape[:2], math.prod(shape[2:])
    arrays = (images, blocks) if instruction is turned_in else (blocks, images)
    at_once = max(1, MOVED // (LANES * max(1, pixels)))
    return [instruction(-(-n // at_once) * len(blocks), *arrays, n, channels, pixels, blocks.shape[1], at_once)]


# ---- builders -------------------------------------------------------------------------------------------------------

def is_plain(kernel, stride, padding) -> bool:
    return tuple(kernel) == tuple(stride) == (1, 1) and tuple(padding) == (0, 0)


def blocks_conv2d(arrays, outs, room, shape, stride, padding, dilation, groups, act):
    if groups > 1:
        return blocks_depthwise.blocks_conv2d(arrays, outs, room, shape, stride, padding, dilation, groups, act)
    x, weight, bias = arrays
    if not is_plain(weight.shape[2:], stride, padding) or x.ndim == 4:
        return None
    bias = bias if isinstance(bias, np.ndarray) else 0
    return filtered_pixels(x, weight, bias, outs[0], shape[0] * math.prod(shape[2:]), False, act)


def blocks_conv2d_input_grad(arrays, outs, room, shape, stride, padding, dilation, groups):
    if groups > 1:
        return blocks_depthwise.blocks_conv2d_input_grad(arrays, outs, room, shape, stride, padding, dilation, groups)
    grad, weight = arrays
    if not is_plain(weight.shape[2:], stride, padding):
        return None
    return filtered_pixels(grad, weight, 0, outs[0], shape[0] * math.prod(shape[2:]), True)


def blocks_conv2d_weight_grad(arrays, outs, room, shape, images, stride, padding, dilation, groups):
    if groups > 1:
        return blocks_depthwise.blocks_conv2d_weight_grad(arrays, outs, room, shape, images, stride, padding, dilation,
                                                          groups)
    grad, x = arrays
    if not is_plain(shape[2:], stride, padding) or x.ndim == 4:
        return None
    return pixels_grad(grad, x, outs[0], room, images[0] * math.prod(images[2:]))


def to_blocks(arrays, outs, room):
    (x,), (out,) = arrays, outs
    return turning(turned_in, out, x, x.shape) if x.dtype == np.float32 and x.flags.c_contiguous else None


def from_blocks(arrays, outs, room, shape):
    return turning(turned_out, arrays[0], outs[0], shape)


def blocks_channel_sum(arrays, outs, room, shape, to):
    (x,), pixels = arrays, shape[0] * math.prod(shape[2:])
    parts, each = max(1, -(-pixels // SUMMED)), len(x) * LANES
    target = room.take(parts * each)
    return [channels_summed(parts * len(x), x, target, pixels, len(x), x.shape[1], SUMMED),
            sum_of_parts(target, outs[0], parts, each, 1, shape[1], each)]
