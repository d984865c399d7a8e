"""Direct convolution by micro-kernels: images in blocks of 16 channels, filters in packed panels, no im2col.

An image (NCHW or blocked) is copied to scratch memory as [block][phase][H][W][16], with its zero padding. With stride
2, `phase` separates even from odd rows and columns (and so on), so that the pixels which a tap reads along a row are
always contiguous. If there are few channels, all that a filter reads at a pixel become its channels. One image at a
time, so that the copy stays in the second-level cache. Source: Georganas et al. 2018 (arXiv:1808.05567), for blocks of
channels. Read next: `conv_geometry.py` and `nchw16c_conv.py`, the callers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..codegen.jit import compiled
from ..codegen.llvm import (
    LANES,
    clear,
    copy,
    copy_pairs,
    copy_transposed,
    fours_in,
    fours_out,
    gather_transposed,
    number_at,
    prefetch_rows,
    put,
)
from ..codegen.micro_kernels import PANEL, VECTORS
from ..codegen.vectors import clipped, filled, first_of, load, load_some, store, store_some
from ..runtime.instructions import InnerTask, instruction, run_routine, word_at, words_from
from ..runtime.task_scheduler import call
from .gemm_tiles import BYTES

AHEAD = 64  # elements between a prefetch and its load
FULL, FOUR = 64, 4  # pixels of rows that are transposed alone; of planes, 16 of which are four vectors
# Sizes of one convolution, in this order, as int64 (`conv_geometry.ConvGeometry`). X_BLOCK_ROWS, Y_BLOCK_ROWS: rows of
# a block of the input and of the output, or 0 for NCHW.  FEW: 1 if there are few channels.  LENGTH: channels summed per
# entry of the table.  WIDTH, PACKED: filters and elements of a panel.  PANEL_STRIDE: elements between the inputs of two
# panels; 0 if all read all channels.  PRODUCT, OUTER: addresses of routines.  IMAGE_IN: of an instruction. After these
# COUNT words comes the table of `columns_in`.
(
    C,
    H,
    W,
    F,
    KH,
    KW,
    OH,
    OW,
    STRIDE_H,
    STRIDE_W,
    TOP,
    LEFT,
    DILATION_H,
    DILATION_W,
    BLOCKS,
    HQ,
    WQ,
    X_BLOCK_ROWS,
    Y_BLOCK_ROWS,
    TAPS,
    FEW,
    LENGTH,
    WIDTH,
    PACKED,
    PANEL_STRIDE,
    PRODUCT,
    OUTER,
    IMAGE_IN,
    COUNT,
) = range(29)
PART = 8  # words of a FilterPart


class ImageInput(NamedTuple):
    """First parameter of the instructions that read images by `image_in`.

    x: images.  sizes: of the convolution.  spare: offset of spare scratch memory, in elements.
    """

    x: np.ndarray
    sizes: np.ndarray
    spare: int


# ---- layout conversion -----------------------------------------------------------------------------------------------


@compiled
def over(count, size):
    """Round up to a multiple of `size`."""
    return (count + size - 1) // size * size


@compiled
def zero(base, count):
    """Write zeros. count: a multiple of 16."""
    for i in range(0, count, LANES):
        clear(base + i * BYTES)


@compiled
def row_in(x, channels, plane, width, target):
    """Convert a row of pixels of up to 16 channels, `plane` elements apart, to [pixel][16]."""
    if channels == LANES and width >= LANES:
        for start in range(0, width, LANES):
            i = min(start, width - LANES)
            copy_transposed(x + i * BYTES, plane, target + i * LANES * BYTES, LANES)
    elif channels == LANES and plane == width == FOUR:
        fours_in(x, target)
    else:
        for c in range(channels):
            for j in range(width):
                put(target, j * LANES + c, number_at(x, c * plane + j))


@compiled
def row_out(source, channels, plane, width, y):
    """Convert [pixel][16] to rows of up to 16 channels."""
    if channels == LANES and width >= LANES:
        for start in range(0, width, LANES):
            i = min(start, width - LANES)
            copy_transposed(source + i * LANES * BYTES, LANES, y + i * BYTES, plane)
    elif channels == LANES and plane == width == FOUR:
        fours_out(source, y)
    else:
        for c in range(channels):
            for j in range(width):
                put(y, c * plane + j, number_at(source, j * LANES + c))


@compiled
def plane_in(x, channels, plane, height, width, target, target_row, spare):
    """Convert up to 16 channels to [row][pixel][16], with `target_row` elements per row. spare: scratch for a plane."""
    if target_row == width * LANES:
        row_in(x, channels, plane, height * width, target)
    elif width >= FULL or width % LANES == 0:
        for i in range(height):
            row_in(x + i * width * BYTES, channels, plane, width, target + i * target_row * BYTES)
    else:  # short rows are transposed together
        if channels < LANES:
            zero(spare, height * width * LANES)
        row_in(x, channels, plane, height * width, spare)
        for i in range(height):
            for j in range(0, width * LANES, LANES):
                copy(target + (i * target_row + j) * BYTES, spare + (i * width * LANES + j) * BYTES)


@compiled
def plane_out(source, source_row, channels, plane, height, width, y, spare):
    """Convert [row][pixel][16], with `source_row` elements per row, to up to 16 channels."""
    if source_row == width * LANES:
        row_out(source, channels, plane, height * width, y)
    elif width >= FULL or width % LANES == 0:
        for i in range(height):
            row_out(source + i * source_row * BYTES, channels, plane, width, y + i * width * BYTES)
    else:
        for i in range(height):
            for j in range(0, width * LANES, LANES):
                copy(spare + (i * width * LANES + j) * BYTES, source + (i * source_row + j) * BYTES)
        row_out(spare, channels, plane, height * width, y)


@compiled
def line_in(source, step, count, target):
    """Gather pixels of 16 channels, `step` pixels apart."""
    for j in range(count):
        copy(target + j * LANES * BYTES, source + j * step * LANES * BYTES)


@compiled
def row_in_phases(source, i, width, s, target):
    """Copy a row of pixels of 16 channels to row i of the image, split by phases. target: the first phase."""
    sh, sw, left = s[STRIDE_H], s[STRIDE_W], s[LEFT]
    base = target + (i % sh * sw * s[HQ] + i // sh) * s[WQ] * LANES * BYTES
    for first in range(min(sw, width)):
        place = (first + left) % sw * s[HQ] * s[WQ] + (first + left) // sw
        line_in(source + first * LANES * BYTES, sw, (width - first + sw - 1) // sw, base + place * LANES * BYTES)


@compiled
def blocks_in(x, n, s, target, spare):
    """Copy image n, (C, H, W) or blocked, to [block][phase][HQ][WQ][16]; padding and channels beyond C become zeros."""
    height, width, plane = s[H], s[W], s[H] * s[W]
    size = s[STRIDE_H] * s[STRIDE_W] * s[HQ] * s[WQ] * LANES * BYTES
    for block in range(s[BLOCKS]):
        to, channels = target + block * size, min(LANES, s[C] - block * LANES)
        base = x + (n * s[C] + block * LANES) * plane * BYTES
        if s[X_BLOCK_ROWS] > 0:
            base = x + (block * s[X_BLOCK_ROWS] + n * plane) * LANES * BYTES
        elif s[STRIDE_H] == 1 and s[STRIDE_W] == 1:
            plane_in(
                base,
                channels,
                plane,
                height,
                width,
                to + (s[TOP] * s[WQ] + s[LEFT]) * LANES * BYTES,
                s[WQ] * LANES,
                spare,
            )
            continue
        else:
            if channels < LANES:
                zero(spare, plane * LANES)
            if width < LANES:  # short rows are transposed together
                row_in(base, channels, plane, plane, spare)
        for row in range(height):
            source = (base if s[X_BLOCK_ROWS] > 0 else spare) + row * width * LANES * BYTES
            if s[X_BLOCK_ROWS] == 0 and width >= LANES:
                row_in(base + row * width * BYTES, channels, plane, width, source)
            row_in_phases(source, row + s[TOP], width, s, to)


@compiled
def columns_in(x, s, table, target, spare):
    """Convert an image of few channels to [block][1][1][OH * OW][16]; channels are all elements read at a pixel.

    table: offset of each of these among padded planes, [channel][phase][row][column], which are made first. Pixels are
    transposed 16 at a time; those beyond a row are overwritten by the next one.
    """
    depth, pixels, sw = s[C] * s[KH] * s[KW], s[OH] * s[OW], s[STRIDE_W]
    height, across = s[H] + 2 * s[TOP], (s[W] + 2 * s[LEFT] + sw - 1) // sw
    planes = spare + LANES * BYTES  # after zeros
    zero(spare, LANES + over(s[C] * sw * height * across, LANES))
    for c in range(s[C]):
        for row in range(s[H]):
            source, base, q = x + (c * s[H] + row) * s[W] * BYTES, (c * sw * height + row + s[TOP]) * across, 0
            if sw == 1:
                while q + LANES <= s[W]:
                    copy(planes + (base + s[LEFT] + q) * BYTES, source + q * BYTES)
                    q += LANES
            elif sw == 2:
                one, other = base + s[LEFT] % 2 * height * across, base + (s[LEFT] + 1) % 2 * height * across
                while q + 2 * LANES <= s[W]:
                    copy_pairs(
                        source + q * BYTES,
                        planes + (one + (s[LEFT] + q) // 2) * BYTES,
                        planes + (other + (s[LEFT] + 1 + q) // 2) * BYTES,
                    )
                    q += 2 * LANES
            for j in range(s[LEFT] + q, s[LEFT] + s[W]):
                put(planes, base + j % sw * height * across + j // sw, number_at(source, j - s[LEFT]))
    for block in range(s[BLOCKS]):
        for i in range(s[OH]):
            for j in range(0, s[OW], LANES):
                gather_transposed(
                    planes + (i * s[STRIDE_H] * across + j) * BYTES,
                    table + block * LANES * 8,
                    depth - block * LANES,
                    spare,
                    target + (block * pixels + i * s[OW] + j) * LANES * BYTES,
                )


@instruction
def image_in(n, scratch, images: ImageInput):
    """Copy image n, as blocks or as columns, to the start of scratch memory.

    Called by instructions whose first parameter is the same.
    """
    s, spare = words_from(images.sizes), scratch + images.spare * BYTES
    if s[FEW]:
        columns_in(images.x + n * s[C] * s[H] * s[W] * BYTES, s, images.sizes + COUNT * 8, scratch, spare)
    else:
        blocks_in(images.x, n, s, scratch, spare)


@compiled
def result_out(source, s, y):
    """Convert [block][OH * OW][16] to (F, OH, OW)."""
    pixels = s[OH] * s[OW]
    for block in range((s[F] + LANES - 1) // LANES):
        channels = min(LANES, s[F] - block * LANES)
        row_out(source + block * pixels * LANES * BYTES, channels, pixels, pixels, y + block * LANES * pixels * BYTES)


@compiled
def pack_panel(w, first, filters, channels, taps, transposed, order, target, spare):
    """Pack at most PANEL filters of (F, C, taps), from `first` on, to [tap][block][16][PANEL].

    transposed: for the gradient of the images, from (C, F, taps). Channels beyond C are zeros.  order: target of each
    tap.  spare: scratch for 16 vectors.
    """
    depth = (channels + LANES - 1) // LANES * LANES
    if depth > channels or first + PANEL > filters:
        zero(target, taps * depth * PANEL)
    for f in range(first, min(first + PANEL, filters), LANES):
        to, lanes = target + (f - first) * BYTES, min(LANES, filters - f)
        rows, columns = (channels, taps) if transposed else (1, channels * taps)
        if transposed and taps == 1 and lanes == LANES:
            for c in range(channels):
                if c % LANES == 0:
                    prefetch_rows(w + (c * filters + f) * BYTES, filters, 2 * LANES * filters)
                copy(to + c * PANEL * BYTES, w + (c * filters + f) * BYTES)
            continue
        for row in range(rows):
            source = w + (row * filters + f) * columns * BYTES
            # 16 columns may be read even if fewer are left
            beyond = transposed and (row < rows - 1 or (filters - f - LANES) * columns >= LANES)
            for j in range(0, columns, LANES):
                start = max(0, min(j, columns - LANES))
                c, tap = row + start // taps, start % taps
                if lanes == LANES and (columns >= LANES or beyond):
                    prefetch_rows(source + start * BYTES, columns, AHEAD)
                    if taps == 1:
                        copy_transposed(source + start * BYTES, columns, to + start * PANEL * BYTES, PANEL)
                        continue
                    copy_transposed(source + start * BYTES, columns, spare, LANES)
                else:
                    for k in range(min(LANES, columns)):
                        for i in range(lanes):
                            put(spare, k * LANES + i, number_at(source, i * columns + start + k))
                        for i in range(lanes, LANES):
                            put(spare, k * LANES + i, np.float32(0))
                for k in range(min(LANES, columns)):
                    place = word_at(order, tap) * depth + c
                    copy(to + place * PANEL * BYTES, spare + k * LANES * BYTES)
                    tap += 1
                    if tap == taps:
                        c, tap = c + 1, 0


@compiled
def finish(source, y, rows, bias, count, low, high):
    """Epilogue: y = clip(source + bias), for the pixels of 16 channels, of which `count` exist.

    bias: address, or 0; a bound of NaN means no bound. Lanes beyond the channels are cleared: an infinite pixel times
    the zeros of their filters is NaN.
    """
    if bias == 0 and low != low and source == y and count >= LANES:
        return
    zero, low, high = filled(np.float32(0)), filled(np.float32(low)), filled(np.float32(high))
    more = load_some(bias, count, zero) if bias != 0 else zero
    for i in range(0, rows * LANES * BYTES, LANES * BYTES):
        store(y + i, first_of(clipped(load(source + i) + more, low, high), count))


# ---- forward and gradients -------------------------------------------------------------------------------------------


@instruction
def pack_filters(chunk, scratch, w, target, filters, channels, taps, transposed, panel_size, order):
    """Pack one panel of filters: see `pack_panel`.

    panel_size: elements of a packed panel.  scratch: 16 vectors.
    """
    pack_panel(
        w, chunk * PANEL, filters, channels, taps, transposed, order, target + chunk * panel_size * BYTES, scratch
    )


@instruction
def pack_group_filters(block, scratch, w, target, filters, size, taps, transposed, order):
    """Pack 16 filters (F, size, taps) of groups with as many filters as channels, to [tap][channel][16].

    transposed: 1 for the gradient of the images.  order: target of each tap.
    """
    to = target + block * taps * size * LANES * BYTES
    zero(to, taps * size * LANES)
    for f in range(block * LANES, min((block + 1) * LANES, filters)):
        for c in range(size):
            source = (f // size * size + c) * size + f % size if transposed else f * size + c
            for tap in range(taps):
                put(to, (word_at(order, tap) * size + c) * LANES + f % LANES, number_at(w, source * taps + tap))


class FilterPart(NamedTuple):
    """Pixels of the output that read the same taps, at equal distances along both axes.

    first, entries: of the table.  lines, width: number of pixels.  source, target: offsets of the first
    pixel's input and output.  line, step: output elements from row to row and from column to column.
    """

    first: int
    entries: int
    lines: int
    width: int
    source: int
    target: int
    line: int
    step: int = LANES


@compiled
def part_at(parts, i):
    """Load a part from a table of parts."""
    part = parts + i * PART * 8
    return FilterPart(
        word_at(part, 0),
        word_at(part, 1),
        word_at(part, 2),
        word_at(part, 3),
        word_at(part, 4),
        word_at(part, 5),
        word_at(part, 6),
        word_at(part, 7),
    )


@compiled
def convolve_panel(s, image, filters, table, part, out, block_rows, vectors):
    """Convolve an image with a panel of filters, for one part of the output; write zeros if no tap is read."""
    entry, source, target = s[LENGTH] * s[WIDTH], image + part.source * BYTES, out + part.target * BYTES
    for i in range(part.lines):
        place = target + i * part.line * BYTES
        if part.entries:
            run_routine(
                s[PRODUCT],
                part.width,
                source + i * s[WQ] * LANES * BYTES,
                filters + part.first * entry * BYTES,
                table + part.first * 8,
                part.entries,
                entry,
                s[LENGTH],
                place,
                part.step,
                vectors,
                block_rows * LANES,
                0,
            )
        for j in range(0 if part.entries else part.width * vectors):
            zero(place + (j // vectors * part.step + j % vectors * block_rows * LANES) * BYTES, LANES)


@instruction
def conv_images(
    chunk,
    scratch,
    words,
    source: ImageInput,
    packed,
    y,
    bias,
    table,
    images,
    chunk_images,
    low: float,
    high: float,
    clear,
    results_at,
    after: InnerTask,
    split,
    parts,
):
    """Convolve some images; if blocked, add the bias and clip to [low, high].

    packed: filters.  table: offset of the pixels of each entry.  clear: elements of a padded image.  results_at: offset
    of the output in scratch memory.  after: task that is applied to each output instead of bias and bounds.  split:
    `parts` parts of the output with a set of taps each.  scratch: an image, its output, spare memory.
    """
    s = words_from(source.sizes)
    pixels = s[OH] * s[OW]
    block_rows = s[Y_BLOCK_ROWS] if s[Y_BLOCK_ROWS] > 0 else pixels
    zero(scratch, clear)
    for n in range(chunk * chunk_images, min((chunk + 1) * chunk_images, images)):
        call(s[IMAGE_IN], words, n, scratch)
        results = y + n * pixels * LANES * BYTES if s[Y_BLOCK_ROWS] > 0 else scratch + results_at * BYTES
        for f in range(0, s[F], s[WIDTH]):
            vectors, panel = VECTORS if min(s[F] - f, s[WIDTH]) > LANES else 1, f // s[WIDTH]
            image, filters = scratch + panel * s[PANEL_STRIDE] * BYTES, packed + panel * s[PACKED] * BYTES
            for i in range(parts):
                part, out = part_at(split, i), results + f * block_rows * BYTES
                convolve_panel(s, image, filters, table, part, out, block_rows, vectors)
        if after.code != 0:
            call(after.code, after.words, n, results)
        elif s[Y_BLOCK_ROWS] == 0:
            result_out(results, s, y + n * s[F] * pixels * BYTES)
        else:
            for f in range(0, s[F], LANES):
                to = results + f * block_rows * BYTES
                finish(to, to, pixels, bias + f * BYTES if bias != 0 else 0, s[F] - f, low, high)


@compiled
def cotangent_in(grad, s, target):
    """Convert the cotangent (F, OH, OW) of an image to [block][OH * OW][16]."""
    pixels = s[OH] * s[OW]
    for block in range((s[F] + LANES - 1) // LANES):
        channels, offset = min(LANES, s[F] - block * LANES), block * LANES * pixels * BYTES
        row_in(grad + offset, channels, pixels, pixels, target + offset)


@instruction
def conv_weight_grad(
    chunk,
    scratch,
    words,
    source: ImageInput,
    grad,
    parts,
    table,
    starts,
    images,
    chunk_images,
    part,
    clear,
    grads_at,
    before: InnerTask,
):
    """Sum the gradient of the filters over some images, to parts[chunk][tap][channel][filter].

    table: offset of the pixels of each entry.  starts: offset of each row of pixels in an image.  part: elements of a
    part.  clear: elements of a padded image.  grads_at: offset of the cotangent in scratch memory.  before: task that
    computes the cotangent of an image.  scratch: an image, its cotangent, spare memory.
    """
    s = words_from(source.sizes)
    pixels, padded = s[OH] * s[OW], (s[F] + LANES - 1) // LANES * LANES
    block_rows = s[Y_BLOCK_ROWS] if s[Y_BLOCK_ROWS] > 0 else pixels
    entries, rows, columns = (s[TAPS], s[LENGTH], LANES) if s[PANEL_STRIDE] else (s[TAPS] * s[BLOCKS], LANES, padded)
    lines, width = (1, pixels) if s[FEW] or s[WQ] == s[OW] else (s[OH], s[OW])
    target = parts + chunk * part * BYTES
    zero(scratch, clear)
    zero(target, part)
    for n in range(chunk * chunk_images, min((chunk + 1) * chunk_images, images)):
        call(s[IMAGE_IN], words, n, scratch)
        grads = grad + n * pixels * LANES * BYTES if s[Y_BLOCK_ROWS] > 0 else scratch + grads_at * BYTES
        if before.code != 0:
            call(before.code, before.words, n, grads)
        elif s[Y_BLOCK_ROWS] == 0:
            cotangent_in(grad + n * s[F] * pixels * BYTES, s, grads)
        for f in range(0, padded if s[PANEL_STRIDE] else 1, LANES):
            a, b = scratch + f // LANES * s[PANEL_STRIDE] * BYTES, grads + f * block_rows * BYTES
            for o in range(entries):
                run_routine(
                    s[OUTER],
                    rows,
                    a + word_at(table, o) * BYTES,
                    b,
                    starts,
                    lines,
                    width * LANES,
                    width,
                    target + (f + o * rows * padded) * BYTES,
                    padded,
                    columns,
                    block_rows * LANES,
                    1,
                )


@instruction
def add_conv_parts(chunk, scratch, parts, out, count, part, rows, columns, row, chunk_rows, taps, part_rows):
    """Sum `count` parts of `part` elements, for some rows.

    A part has `rows` rows of `columns` elements, `row` elements apart. With taps 0, out has the layout of a part;
    otherwise (columns, rows, taps), from [tap][part_rows].  scratch: a vector.
    """
    for i in range(chunk * chunk_rows, min((chunk + 1) * chunk_rows, rows * max(taps, 1))):
        tap, c = i // rows, i % rows
        source = parts + (tap * part_rows + c) * row * BYTES
        for j in range(0, columns, LANES):
            total, some = load(source + j * BYTES), min(LANES, columns - j)
            for k in range(1, count):
                total = total + load(source + (k * part + j) * BYTES)
            if taps == 0:
                store_some(out + (i * columns + j) * BYTES, some, total)
                continue
            store(scratch, total)
            for f in range(some):
                put(out, ((j + f) * rows + c) * taps + tap, number_at(scratch, f))
