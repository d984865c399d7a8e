"""Winograd's algorithm for convolutions: 36 multiplications where 100 or 144 were, in all three directions.

A tile of m x m results of a filter of r x r pixels is a product of polynomials in two variables, so it is known from
its values at n = m + r - 1 points in each: values of the tile of images V = B^T x B, of the filter U = G w G^T, then
one product of matrices over the channels for each of the n * n places, and back by Y = A^T M A. The gradient of the
filters is the transpose of that: dw = G^T (sum V^T (A dY A^T)) G. With the points 0, +-3/4, +-3/2 and infinity, exact
in binary, errors are two to five times NumPy's: 1e-6 of the results' size; with 0, +-1, +-2 they are four times that.
Source: Lavin & Gray 2016 (arXiv:1509.09308); the points: Barabasz et al. 2020 (arXiv:1803.10986).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from . import llvm
from .conv import (
    BLOCKS, BYTES, C, F, H, HQ, OH, OW, W, WQ, DEEP_ONE, DEEP_WIDE, blocks_in, compiled, plane_in, plane_out,
    product, zero,
)
from .llvm import LANES, function, word
from .micro import DEEP, PANEL, VECTORS

POINTS = [Fraction(p) for p in ("0", "3/4", "-3/4", "3/2", "-3/2")]
N = len(POINTS) + 1
RESULTS = {5: 2, 3: 4}  # size of the filter -> size of a tile of results


def matrices(m: int, r: int) -> tuple:
    """(A^T of m x n, G of n x r, B^T of n x n) in fractions: Y = A^T ((G g) * (B^T d)), the last point infinity."""
    last = [Fraction(0)] * (N - 1) + [Fraction(1)]

    def with_roots(roots):
        found = [Fraction(1)]
        for root in roots:
            found = [x - root * y for x, y in zip([Fraction(0), *found], [*found, Fraction(0)])]
        return found

    results = [[p**i for p in POINTS] + [Fraction(int(i == m - 1))] for i in range(m)]
    filters, data = [], []
    for i, p in enumerate(POINTS):
        others = POINTS[:i] + POINTS[i + 1:]
        scale = Fraction(1)
        for q in others:
            scale *= p - q
        filters.append([p**j / scale for j in range(r)])
        data.append([*with_roots(others), Fraction(0)])
    filters.append(last[-r:])
    data.append(with_roots(POINTS))
    return tuple(np.array(rows, dtype=object) for rows in (results, filters, data))


# ---- a small matrix times vectors, as instructions -------------------------------------------------------------------

def combination(builder, factors, vectors):
    terms = sorted(((f, v) for f, v in zip(factors, vectors) if f), key=lambda term: term[0] != 1)
    factor, found = terms[0]
    if factor != 1:
        found = builder.fmul(found, llvm.filled(factor))
    for factor, vector in terms[1:]:
        found = (builder.fadd(found, vector) if factor == 1 else builder.fsub(found, vector) if factor == -1
                 else llvm.multiply_add(builder, vector, llvm.filled(factor), found))
    return found


def pairs(rows) -> list[tuple[int, int]]:
    """Neighbours that differ in signs alone: those of the points p and -p."""
    neighbours = [(i, i + 1, list(zip(rows[i], rows[i + 1]))) for i in range(len(rows) - 1)]
    return [(i, j) for i, j, both in neighbours
            if all(abs(x) == abs(y) for x, y in both) and any(x != y for x, y in both)]


def times(builder, matrix, vectors: list) -> list:
    """matrix @ vectors. Rows of p and -p share their even and odd halves; columns of p and -p, sum and difference."""
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
    """target[i] = sum of matrix[i, j] * source[j], each 16 numbers. Arguments: source, target, with their distances."""

    @function(f"winograd_{name}", 4)
    def code(builder, source, source_step, target, target_step):
        vectors = [llvm.load(builder, source, builder.mul(source_step, word(j))) for j in range(matrix.shape[1])]
        for i, vector in enumerate(times(builder, matrix, vectors)):
            llvm.store(builder, vector, target, builder.mul(target_step, word(i)))

    return code


A5, G5, DATA = matrices(RESULTS[5], 5)
A3, G3, _ = matrices(RESULTS[3], 3)
data_values = transform("data", DATA)
values5, results5, filter5, spread5 = [
    transform(f"{name}5", m) for name, m in (("filters", G5), ("results", A5), ("filters_back", G5.T.copy()),
                                             ("results_back", A5.T.copy()))]
values3, results3, filter3, spread3 = [
    transform(f"{name}3", m) for name, m in (("filters", G3), ("results", A3), ("filters_back", G3.T.copy()),
                                             ("results_back", A3.T.copy()))]


# ---- steps ----------------------------------------------------------------------------------------------------------

@compiled
def filters_values(packed, r, panels, count, values, strip):
    """U = G w G^T of packed filters [panel][tap][count numbers] to [place][panel][count numbers]; strip: n * r
    vectors."""
    every = panels * count
    for i in range(0, every, LANES):
        for x in range(r):
            source = packed + ((i // count * r * r + x) * count + i % count) * BYTES
            if r == 5:
                values5(source, r * count, strip + x * LANES * BYTES, r * LANES)
            else:
                values3(source, r * count, strip + x * LANES * BYTES, r * LANES)
        for y in range(N):
            source, target = strip + y * r * LANES * BYTES, values + (y * N * every + i) * BYTES
            if r == 5:
                values5(source, LANES, target, every)
            else:
                values3(source, LANES, target, every)


@compiled
def images_values(image, s, m, first, rows, across, room, values, strip):
    """V = B^T x B of `rows` rows of tiles, to [place][block][room tiles][16]; strip: n * WQ vectors."""
    for block in range(s[BLOCKS]):
        for i in range(rows):
            top = image + (block * s[HQ] + (first + i) * m) * s[WQ] * LANES * BYTES
            for x in range(s[WQ]):
                data_values(top + x * LANES * BYTES, s[WQ] * LANES, strip + x * LANES * BYTES, s[WQ] * LANES)
            for y in range(N):
                for j in range(across):
                    data_values(strip + (y * s[WQ] + j * m) * LANES * BYTES, LANES,
                                values + ((y * N * s[BLOCKS] + block) * room + i * across + j) * LANES * BYTES,
                                s[BLOCKS] * room * LANES)


@compiled
def results_of(values, blocks, m, first, rows, across, down, room, results, strip):
    """Y = A^T M A of `rows` rows of tiles: [place][block][room tiles][16] to [block][down * m][across * m][16]."""
    width = across * m * LANES
    for block in range(blocks):
        for i in range(rows):
            for j in range(across):
                for x in range(N):
                    source = values + ((x * blocks + block) * room + i * across + j) * LANES * BYTES
                    if m == 2:
                        results5(source, N * blocks * room * LANES, strip + x * LANES * BYTES, N * LANES)
                    else:
                        results3(source, N * blocks * room * LANES, strip + x * LANES * BYTES, N * LANES)
                for y in range(m):
                    target = results + ((block * down + first + i) * m + y) * width * BYTES + j * m * LANES * BYTES
                    if m == 2:
                        results5(strip + y * N * LANES * BYTES, LANES, target, LANES)
                    else:
                        results3(strip + y * N * LANES * BYTES, LANES, target, LANES)


@compiled
def grads_values(grads, blocks, m, first, rows, across, down, room, values, strip):
    """D = A dY A^T: from [block][down * m][across * m][16] to [place][block][room tiles][16]."""
    width = across * m * LANES
    for block in range(blocks):
        for i in range(rows):
            for j in range(across):
                source = grads + ((block * down + first + i) * m * width + j * m * LANES) * BYTES
                for x in range(m):
                    if m == 2:
                        spread5(source + x * LANES * BYTES, width, strip + x * LANES * BYTES, m * LANES)
                    else:
                        spread3(source + x * LANES * BYTES, width, strip + x * LANES * BYTES, m * LANES)
                for y in range(N):
                    target = values + ((y * N * blocks + block) * room + i * across + j) * LANES * BYTES
                    if m == 2:
                        spread5(strip + y * m * LANES * BYTES, LANES, target, blocks * room * LANES)
                    else:
                        spread3(strip + y * m * LANES * BYTES, LANES, target, blocks * room * LANES)


@compiled
def filters_back(values, r, count, found, strip):
    """G^T dU G: from [place][count numbers] to [tap][count numbers]."""
    for i in range(0, count, LANES):
        for x in range(N):
            source = values + (x * count + i) * BYTES
            if r == 5:
                filter5(source, N * count, strip + x * LANES * BYTES, N * LANES)
            else:
                filter3(source, N * count, strip + x * LANES * BYTES, N * LANES)
        for y in range(r):
            source, target = strip + y * N * LANES * BYTES, found + (y * r * count + i) * BYTES
            if r == 5:
                filter5(source, LANES, target, count)
            else:
                filter3(source, LANES, target, count)


# ---- the three directions -------------------------------------------------------------------------------------------

@compiled
def forward(x, values, y, first, last, s, m, down, across, at_once, table, images, seen, products, results, strip,
            spare):
    """Images first to last. values: U, [place][panel][block][16][PANEL].  at_once: rows of tiles that fit into the
    cache together."""
    panels, blocks = (s[F] + PANEL - 1) // PANEL, (s[F] + LANES - 1) // LANES
    room, far = at_once * across, LANES * PANEL
    width, pixels = across * m, s[OH] * s[OW]
    for n in range(first, last):
        blocks_in(x + n * s[C] * s[H] * s[W] * BYTES, s, images, spare)
        for row in range(0, down, at_once):
            rows = min(at_once, down - row)
            images_values(images, s, m, row, rows, across, room, seen, strip)
            for place in range(N * N):
                a = seen + place * s[BLOCKS] * room * LANES * BYTES
                for panel in range(panels):
                    vectors = VECTORS if s[F] - panel * PANEL > LANES else 1
                    b = values + (place * panels + panel) * s[BLOCKS] * far * BYTES
                    c = products + (place * blocks * LANES + panel * PANEL) * room * BYTES
                    product(rows * across, a, b, table, s[BLOCKS], far, LANES, c, LANES, vectors, room * LANES)
            results_of(products, blocks, m, row, rows, across, down, room, results, strip)
        for block in range(blocks):
            source = results + block * down * m * width * LANES * BYTES
            target = y + (n * s[F] + block * LANES) * pixels * BYTES
            plane_out(source, width * LANES, min(LANES, s[F] - block * LANES), pixels, s[OH], s[OW], target, spare)


@compiled
def filters_grad(x, grad, part, first, last, s, m, down, across, at_once, nothing, images, seen, grads, spread, strip,
                 spare):
    """part[place][channel][filter] = the sum over images first to last of V^T D. nothing: the address of a zero."""
    blocks = (s[F] + LANES - 1) // LANES
    padded, room, width, pixels = blocks * LANES, at_once * across, across * m, s[OH] * s[OW]
    size = N * N * s[BLOCKS] * LANES * padded
    zero(part, size)
    for n in range(first, last):
        blocks_in(x + n * s[C] * s[H] * s[W] * BYTES, s, images, spare)
        for block in range(blocks):
            source = grad + (n * s[F] + block * LANES) * pixels * BYTES
            target = grads + block * down * m * width * LANES * BYTES
            plane_in(source, min(LANES, s[F] - block * LANES), pixels, s[OH], s[OW], target, width * LANES, spare)
        for row in range(0, down, at_once):
            rows = min(at_once, down - row)
            tiles = rows * across
            images_values(images, s, m, row, rows, across, room, seen, strip)
            grads_values(grads, blocks, m, row, rows, across, down, room, spread, strip)
            for o in range(N * N * s[BLOCKS]):
                b0 = spread + o // s[BLOCKS] * padded * room * BYTES
                for c in range(0, LANES, DEEP):
                    a = seen + (o * room * LANES + c) * BYTES
                    for f in range(0, padded, PANEL):
                        to = part + ((o * LANES + c) * padded + f) * BYTES
                        b = b0 + f * room * BYTES
                        if padded - f > LANES and VECTORS > 1:
                            DEEP_WIDE(a, b, nothing, 1, 0, room * LANES, tiles, to, padded, LANES, 1)
                        else:
                            DEEP_ONE(a, b, nothing, 1, 0, room * LANES, tiles, to, padded, LANES, 1)
