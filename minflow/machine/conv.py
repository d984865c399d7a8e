"""Convolutions by micro-kernels: images in blocks of 16 channels, filters in packed panels, no im2col.

An image (C, H, W) is copied into scratch memory as [block][phase][H][W][16], with its border of zeros. With stride 2
`phase` keeps even rows and columns apart from odd ones, and so on: then the pixels that a filter position meets along
a row always lie side by side. Where an image has few channels, all that a filter meets at a pixel becomes its channels.
One image at a time, so that what is copied stays in the second-level cache.
Source: Georganas et al. 2018 (arXiv:1808.05567), for blocks of channels. Read next: `kernels.py`, who calls this.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from .llvm import LANES, clear, copy, copy_turned, number_at, put
from .micro import CHANNELS, DEEP, PANEL, PIXELS, ROWS, VECTORS

compiled = njit(nogil=True, cache=True, error_model="numpy")
R0, R1, R2, R3 = ROWS
WIDE0, WIDE1, WIDE2, WIDE3 = [PIXELS[p, VECTORS] for p in ROWS]
ONE0, ONE1, ONE2, ONE3 = [PIXELS[p, 1] for p in ROWS]
DEEP_WIDE, DEEP_ONE = CHANNELS[VECTORS], CHANNELS[1]
BYTES = 4
FULL = 64  # pixels of a row that is long enough to be turned alone
# Sizes of one convolution, in this order, in an array of int64 (`kernels.Sizes`).
C, H, W, F, KH, KW, OH, OW, STRIDE_H, STRIDE_W, TOP, LEFT, DILATION_H, DILATION_W, BLOCKS, HQ, WQ = range(17)


@compiled
def product(rows, a, b, table, count, far, length, c, c_row, vectors, c_beside):
    """So many rows side by side, of one panel of filters. The last tile of rows begins earlier where it would reach too
    far: some rows are then computed twice, which is quicker than row by row."""
    done = 0
    while done < rows:
        left = rows - done
        if (left >= R0 or left > R1 + R2) and rows >= R0:
            i, done = min(done, rows - R0), done + R0
            x, y = a + i * LANES * BYTES, c + i * c_row * BYTES
            if vectors == VECTORS:
                WIDE0(x, b, table, count, far, LANES, length, y, c_row, c_beside, 0)
            else:
                ONE0(x, b, table, count, far, LANES, length, y, c_row, c_beside, 0)
        elif left > R2 and rows >= R1:
            i, done = min(done, rows - R1), done + R1
            x, y = a + i * LANES * BYTES, c + i * c_row * BYTES
            if vectors == VECTORS:
                WIDE1(x, b, table, count, far, LANES, length, y, c_row, c_beside, 0)
            else:
                ONE1(x, b, table, count, far, LANES, length, y, c_row, c_beside, 0)
        elif left > R3 and rows >= R2:
            i, done = min(done, rows - R2), done + R2
            x, y = a + i * LANES * BYTES, c + i * c_row * BYTES
            if vectors == VECTORS:
                WIDE2(x, b, table, count, far, LANES, length, y, c_row, c_beside, 0)
            else:
                ONE2(x, b, table, count, far, LANES, length, y, c_row, c_beside, 0)
        else:
            x, y = a + done * LANES * BYTES, c + done * c_row * BYTES
            done += R3
            if vectors == VECTORS:
                WIDE3(x, b, table, count, far, LANES, length, y, c_row, c_beside, 0)
            else:
                ONE3(x, b, table, count, far, LANES, length, y, c_row, c_beside, 0)


# ---- in and out of blocks -------------------------------------------------------------------------------------------

@compiled
def zero(base, count):
    """count: a multiple of 16."""
    for i in range(0, count, LANES):
        clear(base + i * BYTES)


@compiled
def row_in(x, channels, plane, width, target):
    """A row of pixels of up to 16 channels, which lie `plane` apart, to [pixel][16]."""
    i = 0
    if channels == LANES:
        while i + LANES <= width:
            copy_turned(x + i * BYTES, plane, target + i * LANES * BYTES, LANES)
            i += LANES
    for c in range(channels):
        for j in range(i, width):
            put(target, j * LANES + c, number_at(x, c * plane + j))


@compiled
def row_out(source, channels, plane, width, y):
    """[pixel][16] to rows of up to 16 channels."""
    i = 0
    if channels == LANES:
        while i + LANES <= width:
            copy_turned(source + i * LANES * BYTES, LANES, y + i * BYTES, plane)
            i += LANES
    for c in range(channels):
        for j in range(i, width):
            put(y, c * plane + j, number_at(source, j * LANES + c))


@compiled
def plane_in(x, channels, plane, height, width, target, target_row, spare):
    """Pixels of up to 16 channels to [row][pixel][16], the rows some distance apart. spare: scratch for a plane."""
    if target_row == width * LANES:
        row_in(x, channels, plane, height * width, target)
    elif width >= FULL or width % LANES == 0:
        for i in range(height):
            row_in(x + i * width * BYTES, channels, plane, width, target + i * target_row * BYTES)
    else:  # short rows are turned together
        row_in(x, channels, plane, height * width, spare)
        for i in range(height):
            for j in range(0, width * LANES, LANES):
                copy(target + (i * target_row + j) * BYTES, spare + (i * width * LANES + j) * BYTES)


@compiled
def plane_out(source, source_row, channels, plane, height, width, y, spare):
    """[row][pixel][16], the rows some distance apart, to pixels of up to 16 channels."""
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
def blocks_in(x, s, target, spare):
    """One image (C, H, W) to [block][phase][HQ][WQ][16], of which the border and the channels beyond C are zeros."""
    sh, sw, plane = s[STRIDE_H], s[STRIDE_W], s[H] * s[W]
    quarter = s[HQ] * s[WQ] * LANES
    for block in range(s[BLOCKS]):
        channels, base = min(LANES, s[C] - block * LANES), x + block * LANES * plane * BYTES
        if sh == 1 and sw == 1:
            plane_in(base, channels, plane, s[H], s[W],
                     target + (block * quarter + (s[TOP] * s[WQ] + s[LEFT]) * LANES) * BYTES, s[WQ] * LANES, spare)
            continue
        for row in range(s[H]):
            i, source = row + s[TOP], base + row * s[W] * BYTES
            for first in range(min(sw, s[W])):  # each phase begins at one of the first pixels
                j = first + s[LEFT]
                place = ((block * sh + i % sh) * sw + j % sw) * quarter + ((i // sh) * s[WQ] + j // sw) * LANES
                for c in range(channels):
                    n = 0
                    for q in range(first, s[W], sw):
                        put(target, place + n * LANES + c, number_at(source, c * plane + q))
                        n += 1


@compiled
def columns_in(x, s, target, rows):
    """One image of few channels to [block][1][1][OH * OW][16]: the channels of a pixel are what a filter meets there.
    rows: scratch for 16 of those, each as an image of its own."""
    depth, pixels, stride = s[C] * s[KH] * s[KW], s[OH] * s[OW], s[STRIDE_W]
    for block in range(s[BLOCKS]):
        channels = min(LANES, depth - block * LANES)
        for k in range(channels):
            d = block * LANES + k
            c, u, v = d // (s[KH] * s[KW]), d // s[KW] % s[KH], d % s[KW]
            offset = v * s[DILATION_W] - s[LEFT]
            first = min(s[OW], max(0, -(offset // stride)))  # pixels before this and from `end` on meet the border
            end = max(first, min(s[OW], (s[W] - 1 - offset) // stride + 1))
            for i in range(s[OH]):
                row = i * s[STRIDE_H] + u * s[DILATION_H] - s[TOP]
                place, source = rows + (k * pixels + i * s[OW]) * BYTES, x + ((c * s[H] + row) * s[W] + offset) * BYTES
                if row < 0 or row >= s[H]:
                    for j in range(s[OW]):
                        put(place, j, np.float32(0))
                    continue
                for j in range(first):
                    put(place, j, np.float32(0))
                for j in range(first, end):
                    put(place, j, number_at(source, j * stride))
                for j in range(end, s[OW]):
                    put(place, j, np.float32(0))
        for j in range(channels * pixels, LANES * pixels):
            put(rows, j, np.float32(0))
        row_in(rows, LANES, pixels, pixels, target + block * pixels * LANES * BYTES)


@compiled
def result_out(source, s, y):
    """[block][OH * OW][16] to (F, OH, OW)."""
    pixels = s[OH] * s[OW]
    for block in range((s[F] + LANES - 1) // LANES):
        channels = min(LANES, s[F] - block * LANES)
        row_out(source + block * pixels * LANES * BYTES, channels, pixels, pixels,
                y + block * LANES * pixels * BYTES)


@compiled
def pack(w, filters, channels, taps, turned, target):
    """Filters (F, C, taps) to [panel][tap][block][16][PANEL]; turned: those of the gradient of the images, (C, F, taps)
    from the last tap to the first."""
    blocks = (channels + LANES - 1) // LANES
    for f in range(filters):
        for c in range(channels):
            base = ((f // PANEL * taps * blocks + c // LANES) * LANES + c % LANES) * PANEL + f % PANEL
            for tap in range(taps):
                value = number_at(w, (c * filters + f) * taps + taps - 1 - tap if turned else
                                  (f * channels + c) * taps + tap)
                put(target, base + tap * blocks * LANES * PANEL, value)


# ---- the three directions -------------------------------------------------------------------------------------------

@compiled
def forward(x, packed, y, first, last, s, taps, table, columns, images, sums, rows):
    """Images first to last: y = x with filters. images, sums, rows: scratch for one image, its result, 16 planes."""
    count, pixels = taps * s[BLOCKS], s[OH] * s[OW]
    far = LANES * PANEL
    for n in range(first, last):
        if columns:
            columns_in(x + n * s[C] * s[H] * s[W] * BYTES, s, images, rows)
        else:
            blocks_in(x + n * s[C] * s[H] * s[W] * BYTES, s, images, rows)
        for f in range(0, s[F], PANEL):
            vectors = VECTORS if s[F] - f > LANES else 1
            b = packed + f // PANEL * count * far * BYTES
            to = sums + f * pixels * BYTES
            if s[WQ] == s[OW] or columns:  # the rows lie side by side: one long row
                product(pixels, images, b, table, count, far, LANES, to, LANES, vectors, pixels * LANES)
            else:
                for i in range(s[OH]):
                    product(s[OW], images + i * s[WQ] * LANES * BYTES, b, table, count, far, LANES,
                            to + i * s[OW] * LANES * BYTES, LANES, vectors, pixels * LANES)
        result_out(sums, s, y + n * s[F] * pixels * BYTES)


@compiled
def filters_grad(x, grad, part, first, last, s, taps, table, starts, columns, images, grads, rows):
    """part[tap][channel][filter] = the gradient of the filters from images first to last. starts: where each row of
    pixels begins in an image."""
    pixels, padded = s[OH] * s[OW], (s[F] + LANES - 1) // LANES * LANES
    size = taps * s[BLOCKS] * LANES * padded
    lines, width = (1, pixels) if columns or s[WQ] == s[OW] else (s[OH], s[OW])
    zero(part, size)
    for n in range(first, last):
        if columns:
            columns_in(x + n * s[C] * s[H] * s[W] * BYTES, s, images, rows)
        else:
            blocks_in(x + n * s[C] * s[H] * s[W] * BYTES, s, images, rows)
        for block in range(padded // LANES):
            row_in(grad + (n * s[F] + block * LANES) * pixels * BYTES, min(LANES, s[F] - block * LANES), pixels, pixels,
                   grads + block * pixels * LANES * BYTES)
        for o in range(taps * s[BLOCKS]):
            for c in range(0, LANES, DEEP):
                a = images + (table[o] + c) * BYTES
                for f in range(0, padded, PANEL):
                    to = part + ((o * LANES + c) * padded + f) * BYTES
                    b = grads + f * pixels * BYTES
                    if padded - f > LANES and VECTORS > 1:
                        DEEP_WIDE(a, b, starts, lines, width * LANES, pixels * LANES, width, to, padded, LANES, 1)
                    else:
                        DEEP_ONE(a, b, starts, lines, width * LANES, pixels * LANES, width, to, padded, LANES, 1)
