"""Loops and tables for depthwise convolutions and their gradients, 16 channels at a time.

Images are [image][pixel][16], a few of them together in the first-level cache. Output pixels that read the same taps of
the filter form a class: interior, an edge, a corner; with a stride, in the gradient, also each phase. Tables hold the
offsets of pixels and taps, so that one loop serves every geometry without padding, and multiplies no zeros. Read next:
`nchw16c_depthwise.py`, the caller.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from ....core.ops.conv import positions
from ..codegen import llvm
from ..codegen.jit import compiled
from ..codegen.llvm import LANES, WORD, function, word
from ..codegen.vectors import clip
from .conv import BYTES

ROWS = (8, 4, 1)  # pixels accumulated in registers
TAPS = (9, 3, 1)  # taps accumulated in registers
STEP, PAIR = LANES * BYTES, 16  # bytes of a vector, and of a row of the tables


def word_at(builder, table, i, fixed: int = 0):
    pointer = builder.gep(builder.inttoptr(table, WORD.as_pointer()), [i])
    return builder.load(builder.gep(pointer, [word(fixed)]))


def weighted(rows: int):
    """Loop for `rows` pixels at a time: bias plus the sum over taps of pixel times weight, clipped.

    pixels: (offset of its input, of its output), for `groups` times `rows` pixels.  taps: (offset relative to the first
    one's input, offset of its weight), at least one.  ends: three vectors, a bias and two bounds as for
    `vectors.clipped`.
    """

    @function(f"weighted_{rows}", 8, inline=False)
    def code(builder, image, weights, taps, count, pixels, groups, target, ends):
        bias, low, high = [llvm.load(builder, ends, fixed=i * LANES) for i in range(3)]

        def group(k, nothing):
            first = builder.mul(k, word(2 * rows))
            bases = [llvm.place(builder, image, word_at(builder, pixels, first, 2 * p)) for p in range(rows)]

            def tap(k, sums):
                k = builder.mul(k, word(2))
                further = word_at(builder, taps, k)
                weight = llvm.load(builder, weights, word_at(builder, taps, k, 1))
                return [
                    llvm.multiply_add(builder, llvm.load(builder, base, further), weight, s)
                    for base, s in zip(bases, sums)
                ]

            for p, value in enumerate(llvm.loop(builder, count, [bias] * rows, tap)):
                place = word_at(builder, pixels, first, 2 * p + 1)
                llvm.store(builder, clip(builder, value, low, high), target, place)
            return []

        llvm.loop(builder, groups, [], group)

    return code


def products(taps_at_once: int):
    """Loop for some taps: sums += the sum over pixels of cotangent times the tap's input."""

    @function(f"products_{taps_at_once}", 6, inline=False)
    def code(builder, image, grads, pixels, count, taps, sums):
        span = range(taps_at_once)
        further = [word_at(builder, taps, word(2 * t)) for t in span]
        targets = [word_at(builder, taps, word(2 * t + 1)) for t in span]

        def pixel(k, accumulated):
            k = builder.mul(k, word(2))
            base = llvm.place(builder, image, word_at(builder, pixels, k))
            g = llvm.load(builder, grads, word_at(builder, pixels, k, 1))
            return [llvm.multiply_add(builder, g, llvm.load(builder, base, t), s) for t, s in zip(further, accumulated)]

        before = [llvm.load(builder, sums, t) for t in targets]
        for value, t in zip(llvm.loop(builder, count, before, pixel), targets):
            llvm.store(builder, value, sums, t)

    return code


ROW0, ROW1, ROW2 = [weighted(rows) for rows in ROWS]
TAP0, TAP1, TAP2 = [products(taps) for taps in TAPS]
R0, R1, R2 = ROWS
T0, T1, T2 = TAPS


# ---- compiled code ---------------------------------------------------------------------------------------------------


@compiled
def weigh(images, weights, taps, count, places, left, results, ends):
    """Compute all pixels of one class, `left` of them."""
    if left >= R0:
        ROW0(images, weights, taps, count, places, left // R0, results, ends)
    places, left = places + left // R0 * R0 * PAIR, left % R0
    if left >= R1:
        ROW1(images, weights, taps, count, places, left // R1, results, ends)
    places, left = places + left // R1 * R1 * PAIR, left % R1
    if left:
        ROW2(images, weights, taps, count, places, left, results, ends)


# ---- tables ----------------------------------------------------------------------------------------------------------


def axis(n: int, m: int, k: int, stride: int, padding: int, dilation: int, back: bool) -> dict:
    """Classes of positions along one axis.

    {((tap, offset relative to the first tap's input), ...): [(input of the first tap, output), ...]}.  back: in the
    gradient of the images.
    """
    classes: dict = {}
    for i in range(n if back else m):
        met = []
        for tap in range(k):
            if back:
                source, rest = divmod(i + padding - tap * dilation, stride)
                if rest == 0 and 0 <= source < m:
                    met.append((tap, source))
            elif 0 <= (source := i * stride - padding + tap * dilation) < n:
                met.append((tap, source))
        start = met[0][1] if met else 0
        classes.setdefault(tuple((tap, source - start) for tap, source in met), []).append((start, i))
    return classes


class TapTables:
    """Tables for one geometry and `together` images."""

    def __init__(
        self, together: int, size: tuple, kernel: tuple, stride: tuple, padding: tuple, dilation: tuple, back: bool
    ):
        result = positions(size, kernel, stride, padding, dilation)
        axes = [axis(*numbers, back) for numbers in zip(size, result, kernel, stride, padding, dilation)]
        reads, writes = (result, size) if back else (size, result)
        self.together = together
        self.reads, self.writes, self.size = math.prod(reads), math.prod(writes), math.prod(kernel)
        images = np.arange(together)[:, None, None]
        classes, taps, places = [], [np.empty((0, 2), "i8")], [np.empty((0, 2), "i8")]
        without: list = []  # outputs that read no tap
        for down, rows in axes[0].items():
            for across, columns in axes[1].items():
                met = [(u * reads[1] + v, tap * kernel[1] + other) for tap, u in down for other, v in across]
                (y, i), (x, j) = np.array(rows).T, np.array(columns).T
                here = [
                    (images * math.prod(shape) + a[:, None] * shape[1] + b).reshape(-1)
                    for shape, a, b in ((reads, y, x), (writes, i, j))
                ]
                if not met:
                    without += (here[1] * LANES).tolist()
                    continue
                classes.append((sum(map(len, taps)), len(met), sum(map(len, places)), len(here[0])))
                taps.append(np.array(met, "i8").reshape(-1, 2) * LANES)
                places.append(np.stack(here, 1) * LANES)
        self.classes = np.array(classes, "i8").reshape(-1, 4)
        self.taps, self.places = np.concatenate(taps), np.concatenate(places)
        self.without = np.sort(np.array(without, "i8"))


@functools.lru_cache(256)
def tables(*geometry, **window) -> TapTables:
    return TapTables(*geometry, **window)
