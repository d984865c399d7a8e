"""Winograd convolution: 36 multiplications instead of 100 or 144 per tile, for the output and both gradients.

A tile of m x m outputs of an r x r filter is known from n = m + r - 1 points per axis: transform the input tile, V =
B^T x B, and the filter, U = G w G^T; multiply over channels, point by point; then Y = A^T M A. The gradient of the
filters is its transpose: dw = G^T (sum V^T (A dY A^T)) G. The points are exact in binary and the best of some dozens:
errors are two to six times NumPy's, 1e-6 to 2e-6 of the output (more with 0, +-1, +-2). Sources: Lavin & Gray 2016
(arXiv:1509.09308); points: Barabasz et al. 2020 (arXiv:1803.10986). Read next: `conv.py`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from ..codegen import llvm
from ..codegen.jit import compiled, inlined
from ..codegen.llvm import LANES, function, number_at, put, word
from ..codegen.micro_kernels import PANEL, VECTORS
from ..codegen.vectors import load, store
from ..runtime.instructions import InnerTask, instruction, run_routine, words_from
from ..runtime.task_scheduler import call
from .conv import (
    BLOCKS,
    HQ,
    IMAGE_IN,
    OH,
    OUTER,
    OW,
    PRODUCT,
    WQ,
    Y_BLOCK_ROWS,
    F,
    ImageInput,
    finish,
    line_in,
    pack_panel,
    plane_in,
    plane_out,
    zero,
)
from .gemm_tiles import BYTES

RESULTS = {5: 3, 3: 4}  # size of the filter -> size of a tile of outputs
POINTS = {5: ("1/4", "-1/4", "7/8", "-7/8", "7/4", "-7/4"), 3: ("0", "3/4", "-3/4", "3/2", "-3/2")}  # and infinity
POINTS_OF_FIVE = len(POINTS[5]) + 1  # of a tile, in one direction, for filters of size 5


def matrices(m: int, r: int) -> tuple:
    """(A^T of m x n, G of n x r, B^T of n x n) as fractions: Y = A^T ((G g) * (B^T d)); the last point is infinity."""
    points = [Fraction(p) for p in POINTS[r]]
    last = [Fraction(0)] * len(points) + [Fraction(1)]

    def with_roots(roots):
        polynomial = [Fraction(1)]
        for root in roots:
            polynomial = [x - root * y for x, y in zip([Fraction(0), *polynomial], [*polynomial, Fraction(0)])]
        return polynomial

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
    factor, total = terms[0]
    if factor != 1:
        total = builder.fmul(total, llvm.filled(factor))
    for factor, vector in terms[1:]:
        total = (
            builder.fadd(total, vector)
            if factor == 1
            else builder.fsub(total, vector)
            if factor == -1
            else llvm.multiply_add(builder, vector, llvm.filled(factor), total)
        )
    return total


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
    results: list = [None] * len(matrix)
    for i, j in pairs(matrix):
        even = combination(builder, (matrix[i] + matrix[j]) / 2, vectors)
        odd = combination(builder, (matrix[i] - matrix[j]) / 2, vectors)
        results[i], results[j] = builder.fadd(even, odd), builder.fsub(even, odd)
    if all(one is None for one in results):
        matrix, vectors = matrix.copy(), list(vectors)
        for i, j in pairs(matrix.T):
            vectors[i], vectors[j] = builder.fadd(vectors[i], vectors[j]), builder.fsub(vectors[i], vectors[j])
            both = (matrix[:, i] + matrix[:, j]) / 2, (matrix[:, i] - matrix[:, j]) / 2
            matrix[:, i], matrix[:, j] = both
    return [combination(builder, row, vectors) if one is None else one for one, row in zip(results, matrix)]


def transform(name: str, matrix):
    """target[i] = sum of matrix[i, j] * source[j], 16 elements each. Arguments: source, target, with their strides."""

    @function(f"winograd_{name}", 4)
    def code(builder, source, source_step, target, target_step):
        vectors = [llvm.load(builder, source, builder.mul(source_step, word(j))) for j in range(matrix.shape[1])]
        for i, vector in enumerate(times(builder, matrix, vectors)):
            llvm.store(builder, vector, target, builder.mul(target_step, word(i)))

    return code


def transform_of_size(name: str, matrix5, matrix3):
    """A transform for both sizes of filters. n: points of a tile in one direction."""
    five, three = transform(f"{name}5", matrix5), transform(f"{name}3", matrix3)

    @inlined
    def code(n, source, source_step, target, target_step):
        if n == POINTS_OF_FIVE:
            five(source, source_step, target, target_step)
        else:
            three(source, source_step, target, target_step)

    return code


(A5, G5, DATA5), (A3, G3, DATA3) = matrices(RESULTS[5], 5), matrices(RESULTS[3], 3)
filters_to_points = transform_of_size("filters", G5, G3)
images_to_points = transform_of_size("data", DATA5, DATA3)
points_to_results = transform_of_size("results", A5, A3)
points_to_filters = transform_of_size("filters_back", G5.T.copy(), G3.T.copy())
results_to_points = transform_of_size("results_back", A5.T.copy(), A3.T.copy())


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
            filters_to_points(n, source, r * count, strip + x * LANES * BYTES, r * LANES)
        for y in range(n):
            source, target = strip + y * r * LANES * BYTES, values + (y * n * every + panel * count + i) * BYTES
            filters_to_points(n, source, LANES, target, every)


@compiled
def images_values(image, s, grid, first, rows, values, strip):
    """V = B^T x B of `rows` rows of tiles, to [point][block][tile][16]. strip: points * WQ vectors."""
    m, n, across, count = grid.m, grid.points, grid.across, grid.rows * grid.across
    for block in range(s[BLOCKS]):
        for i in range(rows):
            top = image + (block * s[HQ] + (first + i) * m) * s[WQ] * LANES * BYTES
            for x in range(s[WQ]):
                source, target = top + x * LANES * BYTES, strip + x * LANES * BYTES
                images_to_points(n, source, s[WQ] * LANES, target, s[WQ] * LANES)
            for y in range(n):
                for j in range(across):
                    source = strip + (y * s[WQ] + j * m) * LANES * BYTES
                    target = values + ((y * n * s[BLOCKS] + block) * count + i * across + j) * LANES * BYTES
                    images_to_points(n, source, LANES, target, s[BLOCKS] * count * LANES)


@compiled
def results_of(values, blocks, grid, first, rows, results, stride, strip):
    """Y = A^T M A of `rows` rows of tiles, from [point][block][tile][16] to [row][across * m][16].

    stride: elements between two blocks of the output.
    """
    m, n, across, count = grid.m, grid.points, grid.across, grid.rows * grid.across
    width = across * m * LANES
    for block in range(blocks):
        for i in range(rows):
            for j in range(across):
                for x in range(n):
                    source = values + ((x * blocks + block) * count + i * across + j) * LANES * BYTES
                    points_to_results(n, source, n * blocks * count * LANES, strip + x * LANES * BYTES, n * LANES)
                for y in range(m):
                    target = results + (block * stride + ((first + i) * m + y) * width + j * m * LANES) * BYTES
                    points_to_results(n, strip + y * n * LANES * BYTES, LANES, target, LANES)


@compiled
def grads_values(grads, stride, blocks, grid, first, rows, values, strip):
    """D = A dY A^T, from [row][across * m][16] to [point][block][tile][16].

    stride: elements between two blocks of the cotangent.
    """
    m, n, across, count = grid.m, grid.points, grid.across, grid.rows * grid.across
    width = across * m * LANES
    for block in range(blocks):
        for i in range(rows):
            for j in range(across):
                source = grads + (block * stride + (first + i) * m * width + j * m * LANES) * BYTES
                for x in range(m):
                    results_to_points(n, source + x * LANES * BYTES, width, strip + x * LANES * BYTES, m * LANES)
                for y in range(n):
                    target = values + ((y * n * blocks + block) * count + i * across + j) * LANES * BYTES
                    results_to_points(n, strip + y * m * LANES * BYTES, LANES, target, blocks * count * LANES)


@compiled
def filters_back(values, r, n, count, out, strip):
    """Compute G^T dU G, from [point][count elements] to [tap][count elements]."""
    for i in range(0, count, LANES):
        for x in range(n):
            source = values + (x * count + i) * BYTES
            points_to_filters(n, source, n * count, strip + x * LANES * BYTES, n * LANES)
        for y in range(r):
            source, target = strip + y * n * LANES * BYTES, out + (y * r * count + i) * BYTES
            points_to_filters(n, source, LANES, target, count)


# ---- forward and gradients -------------------------------------------------------------------------------------------


@instruction
def transform_filters(chunk, scratch, w, target, filters, channels, transposed, r, panels, panel_size, points, order):
    """Transform one panel of filters to U, [point][panel][block][16][PANEL].

    panels: of U, of `panel_size` elements each.  scratch: 16 vectors, a packed panel, a strip.
    """
    panel = scratch + LANES * LANES * BYTES
    pack_panel(w, chunk * PANEL, filters, channels, r * r, transposed, order, panel, scratch)
    filters_values(panel, r, points, chunk, panels, panel_size, target, panel + r * r * panel_size * BYTES)


class TileGrid(NamedTuple):
    """Tiles of an image: m x m outputs of points x points inputs, down x across of them; `rows` rows at a time."""

    m: int
    points: int
    down: int
    across: int
    rows: int


class TileScratch(NamedTuple):
    """Offsets in scratch memory, in elements, after an image.

    transformed: V.  products: M, or D.  images: outputs, or cotangents.  strip: of a transform.
    """

    transformed: int
    products: int
    images: int
    strip: int


@instruction
def conv_images(
    chunk,
    scratch,
    words,
    source: ImageInput,
    values,
    y,
    bias,
    table,
    images,
    chunk_images,
    low: float,
    high: float,
    grid: TileGrid,
    offsets: TileScratch,
    after: InnerTask,
):
    """Convolve some images; if blocked, add the bias and clip to [low, high].

    values: U.  table: offset of each block of V.  after: task that is applied to each output instead of bias and
    bounds.  scratch: an image, then as `offsets`, then spare memory.
    """
    s, blocks = words_from(source.sizes), (words_from(source.sizes)[F] + LANES - 1) // LANES
    transformed, products = scratch + offsets.transformed * BYTES, scratch + offsets.products * BYTES
    results, strip = scratch + offsets.images * BYTES, scratch + offsets.strip * BYTES
    in_place = covers_output(s, grid)
    stride = (s[Y_BLOCK_ROWS] if in_place else grid.down * grid.m * grid.across * grid.m) * LANES
    zero(scratch, offsets.transformed)
    for n in range(chunk * chunk_images, min((chunk + 1) * chunk_images, images)):
        call(s[IMAGE_IN], words, n, scratch)
        target = y + n * s[OH] * s[OW] * LANES * BYTES
        out = target if in_place else results
        for row in range(0, grid.down, grid.rows):
            rows = min(grid.rows, grid.down - row)
            images_values(scratch, s, grid, row, rows, transformed, strip)
            multiply_points(s, grid, rows, transformed, values, table, products)
            results_of(products, blocks, grid, row, rows, out, stride, strip)
        if after.code != 0:
            call(after.code, after.words, n, out)
        elif s[Y_BLOCK_ROWS] == 0:
            spare = scratch + source.spare * BYTES
            write_planes(s, out, grid.across * grid.m, stride, y + n * s[F] * s[OH] * s[OW] * BYTES, spare)
        else:
            write_blocks(s, out, grid.across * grid.m, stride, target, in_place, bias, low, high)


@compiled
def covers_output(s, grid):
    """True if the output is in blocks, and the tiles cover it exactly."""
    return s[Y_BLOCK_ROWS] > 0 and grid.down * grid.m == s[OH] and grid.across * grid.m == s[OW]


@compiled
def multiply_points(s, grid, rows, transformed, values, table, products):
    """M = V U, point by point, for `rows` rows of tiles."""
    panels, blocks = (s[F] + PANEL - 1) // PANEL, (s[F] + LANES - 1) // LANES
    count, panel_block = grid.rows * grid.across, LANES * PANEL
    for point in range(grid.points * grid.points):
        a = transformed + point * s[BLOCKS] * count * LANES * BYTES
        for panel in range(panels):
            vectors = VECTORS if s[F] - panel * PANEL > LANES else 1
            b = values + (point * panels + panel) * s[BLOCKS] * panel_block * BYTES
            c = products + (point * blocks * LANES + panel * PANEL) * count * BYTES
            run_routine(
                s[PRODUCT],
                rows * grid.across,
                a,
                b,
                table,
                s[BLOCKS],
                panel_block,
                LANES,
                c,
                LANES,
                vectors,
                count * LANES,
                0,
            )


@compiled
def write_planes(s, source, width, stride, y, spare):
    """Convert the output of one image, [block][row][width][16], to planes; blocks are `stride` elements apart."""
    pixels = s[OH] * s[OW]
    for block in range((s[F] + LANES - 1) // LANES):
        channels, to = min(LANES, s[F] - block * LANES), y + block * LANES * pixels * BYTES
        plane_out(source + block * stride * BYTES, width * LANES, channels, pixels, s[OH], s[OW], to, spare)


@compiled
def write_blocks(s, source, width, stride, y, in_place, bias, low, high):
    """Add bias and clip the output of one image, to blocks. Its blocks are `stride` elements apart."""
    lines, length = (1, s[OH] * s[OW]) if in_place else (s[OH], s[OW])
    for block in range((s[F] + LANES - 1) // LANES):
        block_bias = bias + block * LANES * BYTES if bias != 0 else 0
        for i in range(lines):
            line = source + (block * stride + i * width * LANES) * BYTES
            to = y + (block * s[Y_BLOCK_ROWS] + i * length) * LANES * BYTES
            finish(line, to, length, block_bias, s[F] - block * LANES, low, high)


@instruction
def conv_weight_grad(
    chunk,
    scratch,
    words,
    source: ImageInput,
    grad,
    parts,
    zero_table,
    part,
    images,
    chunk_images,
    grid: TileGrid,
    offsets: TileScratch,
    before: InnerTask,
):
    """parts[chunk][point][channel][filter] = the sum over some images of V^T D.

    zero_table: address of a zero.  part: elements of a part.  before: task that computes the cotangent of each
    image.  scratch: an image, then as `offsets`, then spare memory.
    """
    s, blocks = words_from(source.sizes), (words_from(source.sizes)[F] + LANES - 1) // LANES
    transformed, products = scratch + offsets.transformed * BYTES, scratch + offsets.products * BYTES
    grads, strip = scratch + offsets.images * BYTES, scratch + offsets.strip * BYTES
    count, in_place = grid.rows * grid.across, covers_output(s, grid)
    stride = (s[Y_BLOCK_ROWS] if in_place else grid.down * grid.m * grid.across * grid.m) * LANES
    target = parts + chunk * part * BYTES
    zero(scratch, offsets.transformed)
    zero(grads, 0 if in_place else blocks * stride)
    zero(target, part)
    for n in range(chunk * chunk_images, min((chunk + 1) * chunk_images, images)):
        call(s[IMAGE_IN], words, n, scratch)
        cotangent = grad + n * s[OH] * s[OW] * LANES * BYTES if in_place else grads
        if before.code != 0:
            call(before.code, before.words, n, grads)
        elif not in_place:
            read_grads(s, grad, n, grid.across * grid.m, stride, grads, scratch + source.spare * BYTES)
        for row in range(0, grid.down, grid.rows):
            rows = min(grid.rows, grid.down - row)
            images_values(scratch, s, grid, row, rows, transformed, strip)
            grads_values(cotangent, stride, blocks, grid, row, rows, products, strip)
            for o in range(grid.points * grid.points * s[BLOCKS]):
                run_routine(
                    s[OUTER],
                    LANES,
                    transformed + o * count * LANES * BYTES,
                    products + o // s[BLOCKS] * blocks * LANES * count * BYTES,
                    zero_table,
                    1,
                    0,
                    rows * grid.across,
                    target + o * LANES * blocks * LANES * BYTES,
                    blocks * LANES,
                    blocks * LANES,
                    count * LANES,
                    1,
                )


@compiled
def read_grads(s, grad, n, width, stride, grads, spare):
    """Convert the cotangent of image n to [block][row][width][16]; blocks are `stride` elements apart."""
    pixels = s[OH] * s[OW]
    for block in range((s[F] + LANES - 1) // LANES):
        to = grads + block * stride * BYTES
        if s[Y_BLOCK_ROWS] == 0:
            source = grad + (n * s[F] + block * LANES) * pixels * BYTES
            plane_in(source, min(LANES, s[F] - block * LANES), pixels, s[OH], s[OW], to, width * LANES, spare)
            continue
        for i in range(s[OH]):
            source = grad + (block * s[Y_BLOCK_ROWS] + n * pixels + i * s[OW]) * LANES * BYTES
            line_in(source, 1, s[OW], to + i * width * LANES * BYTES)


@instruction
def inverse_transform_filters(
    chunk, scratch, parts, out, count, part, filters, channels, row, part_channels, r, points
):
    """out (filters, channels, taps) = G^T dU G of the sum of `count` parts of `part` elements, for one channel.

    A part is [point][part_channels][row of filters].  scratch: vectors of all points, a strip, vectors of all taps.
    """
    places = points * points
    strip = scratch + places * LANES * BYTES
    taps = strip + places * LANES * BYTES
    for f in range(0, filters, LANES):
        for place in range(places):
            source = parts + ((place * part_channels + chunk) * row + f) * BYTES
            total = load(source)
            for k in range(1, count):
                total = total + load(source + k * part * BYTES)
            store(scratch + place * LANES * BYTES, total)
        filters_back(scratch, r, points, LANES, taps, strip)
        for i in range(min(LANES, filters - f)):
            for tap in range(r * r):
                put(out, ((f + i) * channels + chunk) * r * r + tap, number_at(taps, tap * LANES + i))
