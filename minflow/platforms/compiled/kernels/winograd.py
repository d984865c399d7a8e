"""Winograd convolution: 36 multiplications instead of 100 or 144 per tile, for the output and both gradients.

A tile of m x m outputs of an r x r filter is known from n = m + r - 1 points per axis: transform the input tile, V =
B^T x B, and the filter, U = G w G^T; multiply over channels, point by point; then Y = A^T M A. The gradient of the
filters is its transpose: dw = G^T (sum V^T (A dY A^T)) G. The points are exact in binary and the best of some dozens:
errors are two to six times NumPy's, 1e-6 to 2e-6 of the output (more with 0, +-1, +-2). Sources: Lavin & Gray 2016
(arXiv:1509.09308); points: Barabasz et al. 2020 (arXiv:1803.10986). Read next: `conv.py`.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from ..codegen import llvm
from ..codegen.jit import compiled
from ..codegen.llvm import LANES, function, number_at, put, word
from ..codegen.micro_kernels import PANEL, VECTORS
from ..codegen.vectors import add, load, store
from ..runtime.instructions import instruction, real_at, run_routine, word_at
from ..runtime.task_scheduler import call
from .conv import (
    BLOCKS,
    HQ,
    IMAGE_IN,
    OH,
    OUTER,
    OW,
    PRODUCT,
    SPARE,
    WQ,
    Y_ROOM,
    F,
    finish,
    line_in,
    pack_panel,
    plane_in,
    plane_out,
    sizes_of,
    zero,
)
from .gemm_tiles import BYTES

RESULTS = {5: 3, 3: 4}  # size of the filter -> size of a tile of outputs
M5 = RESULTS[5]
POINTS = {5: ("1/4", "-1/4", "7/8", "-7/8", "7/4", "-7/4"), 3: ("0", "3/4", "-3/4", "3/2", "-3/2")}  # and infinity


def matrices(m: int, r: int) -> tuple:
    """(A^T of m x n, G of n x r, B^T of n x n) as fractions: Y = A^T ((G g) * (B^T d)); the last point is infinity."""
    points = [Fraction(p) for p in POINTS[r]]
    last = [Fraction(0)] * len(points) + [Fraction(1)]

    def with_roots(roots):
        found = [Fraction(1)]
        for root in roots:
            found = [x - root * y for x, y in zip([Fraction(0), *found], [*found, Fraction(0)])]
        return found

    results = [[p**i for p in points] + [Fraction(int(i == m - 1))] for i in range(m)]
    filters, data = [], []
    for i, p in enumerate(points):
        others = points[:i] + points[i + 1 :]
        scale = Fraction(1)
        for q in others:
            scale *= p - q
        filters.append([p**j / scale for j in range(r)])
        data.append([*with_roots(others), Fraction(0)])
    filters.append(last[-r:])
    data.append(with_roots(points))
    return tuple(np.array(rows, dtype=object) for rows in (results, filters, data))


# ---- transforms: a small constant matrix times vectors ---------------------------------------------------------------


def combination(builder, factors, vectors):
    terms = sorted(((f, v) for f, v in zip(factors, vectors) if f), key=lambda term: term[0] != 1)
    factor, found = terms[0]
    if factor != 1:
        found = builder.fmul(found, llvm.filled(factor))
    for factor, vector in terms[1:]:
        found = (
            builder.fadd(found, vector)
            if factor == 1
            else builder.fsub(found, vector)
            if factor == -1
            else llvm.multiply_add(builder, vector, llvm.filled(factor), found)
        )
    return found


def pairs(rows) -> list[tuple[int, int]]:
    """Adjacent rows that differ only in signs: those of the points p and -p."""
    neighbors = [(i, i + 1, list(zip(rows[i], rows[i + 1]))) for i in range(len(rows) - 1)]
    return [
        (i, j) for i, j, both in neighbors if all(abs(x) == abs(y) for x, y in both) and any(x != y for x, y in both)
    ]


def times(builder, matrix, vectors: list) -> list:
    """Compute matrix @ vectors.

    Rows of p and -p share their even and odd halves; columns of p and -p, sum and difference.
    """
    found: list = [None] * len(matrix)
    for i, j in pairs(matrix):
        even = combination(builder, (matrix[i] + matrix[j]) / 2, vectors)
        odd = combination(builder, (matrix[i] - matrix[j]) / 2, vectors)
        found[i], found[j] = builder.fadd(even, odd), builder.fsub(even, odd)
    if all(one is None for one in found):
        matrix, vectors = matrix.copy(), list(vectors)
        for i, j in pairs(matrix.T):
            vectors[i], vectors[j] = builder.fadd(vectors[i], vectors[j]), builder.fsub(vectors[i], vectors[j])
            both = (matrix[:, i] + matrix[:, j]) / 2, (matrix[:, i] - matrix[:, j]) / 2
            matrix[:, i], matrix[:, j] = both
    return [combination(builder, row, vectors) if one is None else one for one, row in zip(found, matrix)]


def transform(name: str, matrix):
    """target[i] = sum of matrix[i, j] * source[j], 16 elements each. Arguments: source, target, with their strides."""

    @function(f"winograd_{name}", 4)
    def code(builder, source, source_step, target, target_step):
        vectors = [llvm.load(builder, source, builder.mul(source_step, word(j))) for j in range(matrix.shape[1])]
        for i, vector in enumerate(times(builder, matrix, vectors)):
            llvm.store(builder, vector, target, builder.mul(target_step, word(i)))

    return code


A5, G5, DATA5 = matrices(RESULTS[5], 5)
A3, G3, DATA3 = matrices(RESULTS[3], 3)
values5, data5, results5, filter5, spread5 = [
    transform(f"{name}5", m)
    for name, m in (
        ("filters", G5),
        ("data", DATA5),
        ("results", A5),
        ("filters_back", G5.T.copy()),
        ("results_back", A5.T.copy()),
    )
]
values3, data3, results3, filter3, spread3 = [
    transform(f"{name}3", m)
    for name, m in (
        ("filters", G3),
        ("data", DATA3),
        ("results", A3),
        ("filters_back", G3.T.copy()),
        ("results_back", A3.T.copy()),
    )
]


# ---- compiled code ---------------------------------------------------------------------------------------------------


@compiled
def filters_values(packed, r, n, panel, panels, count, values, strip):
    """U = G w G^T of a packed panel of filters, from [tap][count elements] to [point][panel][count elements].

    strip: n * r vectors.
    """
    every = panels * count
    for i in range(0, count, LANES):
        for x in range(r):
            source = packed + (x * count + i) * BYTES
            if r == 5:
                values5(source, r * count, strip + x * LANES * BYTES, r * LANES)
            else:
                values3(source, r * count, strip + x * LANES * BYTES, r * LANES)
        for y in range(n):
            source, target = strip + y * r * LANES * BYTES, values + (y * n * every + panel * count + i) * BYTES
            if r == 5:
                values5(source, LANES, target, every)
            else:
                values3(source, LANES, target, every)


@compiled
def images_values(image, s, m, n, first, rows, across, room, values, strip):
    """V = B^T x B of `rows` rows of tiles, to [point][block][room tiles][16]. strip: n * WQ vectors."""
    for block in range(s[BLOCKS]):
        for i in range(rows):
            top = image + (block * s[HQ] + (first + i) * m) * s[WQ] * LANES * BYTES
            for x in range(s[WQ]):
                source, target = top + x * LANES * BYTES, strip + x * LANES * BYTES
                if m == M5:
                    data5(source, s[WQ] * LANES, target, s[WQ] * LANES)
                else:
                    data3(source, s[WQ] * LANES, target, s[WQ] * LANES)
            for y in range(n):
                for j in range(across):
                    source = strip + (y * s[WQ] + j * m) * LANES * BYTES
                    target = values + ((y * n * s[BLOCKS] + block) * room + i * across + j) * LANES * BYTES
                    if m == M5:
                        data5(source, LANES, target, s[BLOCKS] * room * LANES)
                    else:
                        data3(source, LANES, target, s[BLOCKS] * room * LANES)


@compiled
def results_of(values, blocks, m, n, first, rows, across, room, results, apart, strip):
    """Y = A^T M A of `rows` rows of tiles, from [point][block][room tiles][16] to [row][across * m][16].

    apart: elements between two blocks of the output.
    """
    width = across * m * LANES
    for block in range(blocks):
        for i in range(rows):
            for j in range(across):
                for x in range(n):
                    source = values + ((x * blocks + block) * room + i * across + j) * LANES * BYTES
                    if m == M5:
                        results5(source, n * blocks * room * LANES, strip + x * LANES * BYTES, n * LANES)
                    else:
                        results3(source, n * blocks * room * LANES, strip + x * LANES * BYTES, n * LANES)
                for y in range(m):
                    target = results + (block * apart + ((first + i) * m + y) * width + j * m * LANES) * BYTES
                    if m == M5:
                        results5(strip + y * n * LANES * BYTES, LANES, target, LANES)
                    else:
                        results3(strip + y * n * LANES * BYTES, LANES, target, LANES)


@compiled
def grads_values(grads, apart, blocks, m, n, first, rows, across, room, values, strip):
    """D = A dY A^T, from [row][across * m][16] to [point][block][room tiles][16].

    apart: elements between two blocks of the cotangent.
    """
    width = across * m * LANES
    for block in range(blocks):
        for i in range(rows):
            for j in range(across):
                source = grads + (block * apart + (first + i) * m * width + j * m * LANES) * BYTES
                for x in range(m):
                    if m == M5:
                        spread5(source + x * LANES * BYTES, width, strip + x * LANES * BYTES, m * LANES)
                    else:
                        spread3(source + x * LANES * BYTES, width, strip + x * LANES * BYTES, m * LANES)
                for y in range(n):
                    target = values + ((y * n * blocks + block) * room + i * across + j) * LANES * BYTES
                    if m == M5:
                        spread5(strip + y * m * LANES * BYTES, LANES, target, blocks * room * LANES)
                    else:
                        spread3(strip + y * m * LANES * BYTES, LANES, target, blocks * room * LANES)


@compiled
def filters_back(values, r, n, count, found, strip):
    """Compute G^T dU G, from [point][count elements] to [tap][count elements]."""
    for i in range(0, count, LANES):
        for x in range(n):
            source = values + (x * count + i) * BYTES
            if r == 5:
                filter5(source, n * count, strip + x * LANES * BYTES, n * LANES)
            else:
                filter3(source, n * count, strip + x * LANES * BYTES, n * LANES)
        for y in range(r):
            source, target = strip + y * n * LANES * BYTES, found + (y * r * count + i) * BYTES
            if r == 5:
                filter5(source, LANES, target, count)
            else:
                filter3(source, LANES, target, count)


# ---- forward and gradients -------------------------------------------------------------------------------------------


@instruction
def filters_valued(words, chunk, scratch):
    """Transform one panel of filters to U, [point][panel][block][16][PANEL].

    scratch: 16 vectors, a packed panel, a strip.
    """
    w, target, filters, channels = word_at(words, 0), word_at(words, 1), word_at(words, 2), word_at(words, 3)
    turned, r, panels, each = word_at(words, 4), word_at(words, 5), word_at(words, 6), word_at(words, 7)
    points, order = word_at(words, 8), word_at(words, 9)
    panel = scratch + LANES * LANES * BYTES
    pack_panel(w, chunk * PANEL, filters, channels, r * r, turned, order, panel, scratch)
    filters_values(panel, r, points, chunk, panels, each, target, panel + r * r * each * BYTES)


@instruction
def images_filtered(words, chunk, scratch):
    """Convolve some images; if blocked, apply bias and bounds.

    values: U.  at_once: rows of tiles that are processed together, for the cache.  after: task that is applied to each
    output instead of bias and bounds.  scratch: an image, V, M, outputs, a strip, spare memory.
    """
    s = sizes_of(words)
    values, y, bias, table = word_at(words, 3), word_at(words, 4), word_at(words, 5), word_at(words, 6)
    images, some, low, high = word_at(words, 7), word_at(words, 8), real_at(words, 9), real_at(words, 10)
    m, points, down, across = word_at(words, 11), word_at(words, 12), word_at(words, 13), word_at(words, 14)
    at_once, clear = word_at(words, 15), word_at(words, 16)
    seen, products = scratch + clear * BYTES, scratch + word_at(words, 17) * BYTES
    results, strip = scratch + word_at(words, 18) * BYTES, scratch + word_at(words, 19) * BYTES
    after, panels, blocks = word_at(words, 20), (s[F] + PANEL - 1) // PANEL, (s[F] + LANES - 1) // LANES
    tiles, far = at_once * across, LANES * PANEL
    width, pixels, room = across * m, s[OH] * s[OW], s[Y_ROOM]
    in_place = room > 0 and down * m == s[OH] and width == s[OW]  # the tiles cover the output exactly
    apart = (room if in_place else down * m * width) * LANES
    zero(scratch, clear)
    for n in range(chunk * some, min((chunk + 1) * some, images)):
        call(s[IMAGE_IN], words, n, scratch)
        target = y + n * pixels * LANES * BYTES
        found = target if in_place else results
        for row in range(0, down, at_once):
            rows = min(at_once, down - row)
            images_values(scratch, s, m, points, row, rows, across, tiles, seen, strip)
            for place in range(points * points):
                a = seen + place * s[BLOCKS] * tiles * LANES * BYTES
                for panel in range(panels):
                    vectors = VECTORS if s[F] - panel * PANEL > LANES else 1
                    b = values + (place * panels + panel) * s[BLOCKS] * far * BYTES
                    c = products + (place * blocks * LANES + panel * PANEL) * tiles * BYTES
                    run_routine(
                        s[PRODUCT],
                        rows * across,
                        a,
                        b,
                        table,
                        s[BLOCKS],
                        far,
                        LANES,
                        c,
                        LANES,
                        vectors,
                        tiles * LANES,
                        0,
                    )
            results_of(products, blocks, m, points, row, rows, across, tiles, found, apart, strip)
        if after != 0:
            call(after, word_at(words, 21), n, found)
            continue
        for block in range(blocks):
            source, filters = found + block * apart * BYTES, s[F] - block * LANES
            if room == 0:
                to = y + (n * s[F] + block * LANES) * pixels * BYTES
                plane_out(
                    source,
                    width * LANES,
                    min(LANES, filters),
                    pixels,
                    s[OH],
                    s[OW],
                    to,
                    scratch + word_at(words, SPARE) * BYTES,
                )
                continue
            more = bias + block * LANES * BYTES if bias != 0 else 0
            lines, length = (1, pixels) if in_place else (s[OH], s[OW])
            for i in range(lines):
                finish(
                    source + i * width * LANES * BYTES,
                    target + (block * room + i * length) * LANES * BYTES,
                    length,
                    more,
                    filters,
                    low,
                    high,
                )


@instruction
def images_filters_grad(words, chunk, scratch):
    """part[point][channel][filter] = the sum over some images of V^T D.

    nothing: address of a zero.  before: task that computes the cotangents of each image.  scratch: an image, V, D,
    cotangents, a strip, spare memory.
    """
    s = sizes_of(words)
    grad, parts, nothing, part = word_at(words, 3), word_at(words, 4), word_at(words, 5), word_at(words, 6)
    images, some = word_at(words, 7), word_at(words, 8)
    m, points, down, across = word_at(words, 9), word_at(words, 10), word_at(words, 11), word_at(words, 12)
    at_once, clear = word_at(words, 13), word_at(words, 14)
    seen, spread = scratch + clear * BYTES, scratch + word_at(words, 15) * BYTES
    grads, strip = scratch + word_at(words, 16) * BYTES, scratch + word_at(words, 17) * BYTES
    before, blocks = word_at(words, 18), (s[F] + LANES - 1) // LANES
    padded, tiles, width, pixels = blocks * LANES, at_once * across, across * m, s[OH] * s[OW]
    in_place = s[Y_ROOM] > 0 and down * m == s[OH] and width == s[OW]
    apart = (s[Y_ROOM] if in_place else down * m * width) * LANES
    target = parts + chunk * part * BYTES
    zero(scratch, clear)
    zero(grads, 0 if in_place else blocks * apart)
    zero(target, part)
    for n in range(chunk * some, min((chunk + 1) * some, images)):
        call(s[IMAGE_IN], words, n, scratch)
        found = grad + n * pixels * LANES * BYTES if in_place else grads
        if before != 0:
            call(before, word_at(words, 19), n, grads)
        for block in range(0 if in_place or before != 0 else blocks):
            to = grads + block * apart * BYTES
            if s[Y_ROOM] == 0:
                source = grad + (n * s[F] + block * LANES) * pixels * BYTES
                plane_in(
                    source,
                    min(LANES, s[F] - block * LANES),
                    pixels,
                    s[OH],
                    s[OW],
                    to,
                    width * LANES,
                    scratch + word_at(words, SPARE) * BYTES,
                )
                continue
            for i in range(s[OH]):
                source = grad + (block * s[Y_ROOM] + n * pixels + i * s[OW]) * LANES * BYTES
                line_in(source, 1, s[OW], to + i * width * LANES * BYTES)
        for row in range(0, down, at_once):
            rows = min(at_once, down - row)
            images_values(scratch, s, m, points, row, rows, across, tiles, seen, strip)
            grads_values(found, apart, blocks, m, points, row, rows, across, tiles, spread, strip)
            for o in range(points * points * s[BLOCKS]):
                run_routine(
                    s[OUTER],
                    LANES,
                    seen + o * tiles * LANES * BYTES,
                    spread + o // s[BLOCKS] * padded * tiles * BYTES,
                    nothing,
                    1,
                    0,
                    rows * across,
                    target + o * LANES * padded * BYTES,
                    padded,
                    padded,
                    tiles * LANES,
                    1,
                )


@instruction
def filters_from_values(words, chunk, scratch):
    """out (filters, channels, taps) = G^T dU G of the sum of the parts, for one channel.

    A part is [point][channel][row of filters]. scratch: vectors of all points, a strip, vectors of all taps.
    """
    parts, out, count, part = word_at(words, 0), word_at(words, 1), word_at(words, 2), word_at(words, 3)
    filters, channels, row, room = word_at(words, 4), word_at(words, 5), word_at(words, 6), word_at(words, 7)
    r, points = word_at(words, 8), word_at(words, 9)
    places = points * points
    strip = scratch + places * LANES * BYTES
    found = strip + places * LANES * BYTES
    for f in range(0, filters, LANES):
        for place in range(places):
            source = parts + ((place * room + chunk) * row + f) * BYTES
            total = load(source)
            for k in range(1, count):
                total = add(total, load(source + k * part * BYTES))
            store(scratch + place * LANES * BYTES, total)
        filters_back(scratch, r, points, LANES, found, strip)
        for i in range(min(LANES, filters - f)):
            for tap in range(r * r):
                put(out, ((f + i) * channels + chunk) * r * r + tap, number_at(found, tap * LANES + i))
