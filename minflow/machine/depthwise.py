"""Convolutions of one filter per channel, and their gradients, 16 channels at a time.

Sixteen channels of a few images are turned to [image][pixel][16] in the first-level cache. Pixels of the result that
meet the image under the same positions of the filter ("taps") are a class: those inside, those of an edge, a corner;
with a stride, in the gradient, also those of each phase. Tables say where each pixel and each tap stand, so one
loop serves every geometry, meets no border of zeros, and multiplies nothing in vain.

Filters of 3 x 3 whose results lie as the images do (stride 1) need no turning where a vector can be read under a mask
(AVX-512): a tap meets 16 pixels of a plane that lie side by side, and the mask tells those beyond an edge.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from ..core.ops.conv import positions
from . import llvm
from .conv import BYTES, zero
from .jit import compiled, float32
from .llvm import LANES, WIDE, WORD, copy, copy_turned, function, number_at, put, word
from .memory import at, chunks_of, scratch
from .threads import split
from .vectors import MASK, add, clip, load, masked_load, store, total

ROWS = (8, 4, 1)  # pixels whose sums are kept in registers
TAPS = (9, 3, 1)  # taps whose sums are
STEP, PAIR = LANES * BYTES, 16  # bytes of a vector, and of a row of the tables
PLAIN = np.repeat(np.array([0, np.nan, np.nan], "f4"), LANES)  # no bias, no bounds
NINE = 9  # taps of a filter of 3 x 3
CHUNK = 256  # pixels whose products are added up apart
MOST = 1 << 18  # numbers that a thread takes


def word_at(builder, table, i, fixed: int = 0):
    pointer = builder.gep(builder.inttoptr(table, WORD.as_pointer()), [i])
    return builder.load(builder.gep(pointer, [word(fixed)]))


def weighted(rows: int):
    """For so many pixels at a time, what `ends` begins with, plus the sum over taps of pixel times weight.

    pixels: (where it reads, where it writes), of `groups` times `rows` of them; taps: (how much further it reads, where
    its weight is), one or more; ends: three vectors, a bias and two bounds as for `vectors.clipped`.
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
                return [llvm.multiply_add(builder, llvm.load(builder, base, further), weight, s)
                        for base, s in zip(bases, sums)]

            for p, value in enumerate(llvm.loop(builder, count, [bias] * rows, tap)):
                place = word_at(builder, pixels, first, 2 * p + 1)
                llvm.store(builder, clip(builder, value, low, high), target, place)
            return []

        llvm.loop(builder, groups, [], group)

    return code


def products(taps_at_once: int):
    """For so many taps, sums += the sum over pixels of cotangent times what the tap meets."""

    @function(f"products_{taps_at_once}", 6, inline=False)
    def code(builder, image, grads, pixels, count, taps, sums):
        span = range(taps_at_once)
        further = [word_at(builder, taps, word(2 * t)) for t in span]
        targets = [word_at(builder, taps, word(2 * t + 1)) for t in span]

        def pixel(k, found):
            k = builder.mul(k, word(2))
            base = llvm.place(builder, image, word_at(builder, pixels, k))
            g = llvm.load(builder, grads, word_at(builder, pixels, k, 1))
            return [llvm.multiply_add(builder, g, llvm.load(builder, base, t), s) for t, s in zip(further, found)]

        before = [llvm.load(builder, sums, t) for t in targets]
        for value, t in zip(llvm.loop(builder, count, before, pixel), targets):
            llvm.store(builder, value, sums, t)

    return code


def masked(builder, masks, k, fixed: int):
    """The mask of one tap at one vector of a plane: 16 bits."""
    pointer = builder.inttoptr(builder.add(masks, builder.add(builder.mul(k, word(2 * NINE)), word(2 * fixed))),
                               llvm.ir.IntType(16).as_pointer())
    return builder.bitcast(builder.load(pointer), MASK)


def met(builder, x, k, offset, mask):
    address = builder.add(x, builder.mul(builder.add(builder.mul(k, word(LANES)), offset), word(BYTES)))
    return masked_load(builder, address, mask, llvm.filled(0))


@function("plane_weighted", 6, inline=False)
def plane_weighted(builder, x, weights, masks, offsets, vectors, y):
    """One plane, filtered with 3 x 3 numbers."""
    nine = [llvm.spread(builder, builder.load(llvm.place(builder, weights, fixed=t))) for t in range(NINE)]
    further = [word_at(builder, offsets, word(t)) for t in range(NINE)]

    def vector(k, nothing):
        sums = [llvm.filled(-0.0)] * 2  # of 0, LLVM makes a product whose load is not under the mask
        for t in range(NINE):
            mask = masked(builder, masks, k, t)
            more = llvm.multiply_add(builder, met(builder, x, k, further[t], mask), nine[t], sums[t % 2])
            sums[t % 2] = builder.select(mask, more, sums[t % 2])
        llvm.store(builder, builder.fadd(*sums), y, builder.mul(k, word(LANES)))
        return []

    llvm.loop(builder, vectors, [], vector)


@function("plane_products", 8, inline=False)
def plane_products(builder, x, grad, masks, offsets, vectors, images, far, sums):
    """Nine vectors of sums += cotangents times what each tap meets, of a plane in each of `images`, `far` bytes
    apart."""
    further = [word_at(builder, offsets, word(t)) for t in range(NINE)]

    def image(n, found):
        here = builder.mul(n, far)
        source, target = builder.add(x, here), builder.add(grad, here)

        def vector(k, found):
            g, results = llvm.load(builder, target, builder.mul(k, word(LANES))), []
            for t in range(NINE):
                mask = masked(builder, masks, k, t)
                more = llvm.multiply_add(builder, met(builder, source, k, further[t], mask), g, found[t])
                results.append(builder.select(mask, more, found[t]))
            return results

        return llvm.loop(builder, vectors, found, vector)

    for t, value in enumerate(llvm.loop(builder, images, [llvm.filled(0)] * NINE, image)):
        old = llvm.load(builder, sums, fixed=t * LANES)
        llvm.store(builder, builder.fadd(old, value), sums, fixed=t * LANES)


def fours(back: bool):
    """16 planes of 4 numbers to [pixel][16], or back."""

    @function(f"fours_{'out' if back else 'in'}", 2)
    def code(builder, source, target):
        rows, kind = [llvm.load(builder, source, fixed=i * LANES) for i in range(4)], llvm.INT
        mask = lambda lanes: llvm.ir.Constant(llvm.ir.VectorType(kind, len(lanes)), lanes)  # noqa: E731
        for j in range(4):
            if back:  # numbers 16 j to 16 j + 15: four channels, each of the four rows
                low, high = [builder.shuffle_vector(rows[i], rows[i + 1], mask(
                    [4 * j + k // 2 + k % 2 * LANES for k in range(8)])) for i in (0, 2)]
                places = [k // 4 * 2 + k % 4 % 2 + (8 if k % 4 > 1 else 0) for k in range(LANES)]
            else:
                low, high = [builder.shuffle_vector(rows[i], rows[i + 1], mask(
                    [4 * k + j for k in range(8)])) for i in (0, 2)]
                places = list(range(LANES))
            llvm.store(builder, builder.shuffle_vector(low, high, mask(places)), target, fixed=j * LANES)

    return code


ROW0, ROW1, ROW2 = [weighted(rows) for rows in ROWS]
TAP0, TAP1, TAP2 = [products(taps) for taps in TAPS]
R0, R1, R2 = ROWS
T0, T1, T2 = TAPS
fours_in, fours_out = fours(False), fours(True)


# ---- compiled -------------------------------------------------------------------------------------------------------

@compiled
def turn_in(source, pixels, target):
    """16 planes to [pixel][16]."""
    if pixels >= LANES:
        for start in range(0, pixels, LANES):
            i = min(start, pixels - LANES)
            copy_turned(source + i * BYTES, pixels, target + i * STEP, LANES)
    elif pixels == 4:
        fours_in(source, target)
    elif pixels == 1:
        copy(target, source)
    else:
        for c in range(LANES):
            for i in range(pixels):
                put(target, i * LANES + c, number_at(source, c * pixels + i))


@compiled
def turn_out(source, pixels, target):
    """[pixel][16] to 16 planes."""
    if pixels >= LANES:
        for start in range(0, pixels, LANES):
            i = min(start, pixels - LANES)
            copy_turned(source + i * STEP, LANES, target + i * BYTES, pixels)
    elif pixels == 4:
        fours_out(source, target)
    elif pixels == 1:
        copy(target, source)
    else:
        for c in range(LANES):
            for i in range(pixels):
                put(target, c * pixels + i, number_at(source, i * LANES + c))


@compiled
def weigh(images, weights, taps, count, places, left, results, ends):
    """All places of one class, `left` of them."""
    if left >= R0:
        ROW0(images, weights, taps, count, places, left // R0, results, ends)
    places, left = places + left // R0 * R0 * PAIR, left % R0
    if left >= R1:
        ROW1(images, weights, taps, count, places, left // R1, results, ends)
    places, left = places + left // R1 * R1 * PAIR, left % R1
    if left:
        ROW2(images, weights, taps, count, places, left, results, ends)


@compiled
def images_of(x, w, y, first, last, together, channels, pixels, positions, size, classes, taps, places, weights, images,
              results, ends):
    """y = x with filters, images first to last, so many together. pixels, positions: of an image and of its result;
    size: taps of a filter.  weights, images, results: scratch."""
    zero(results, together * positions * LANES)  # of pixels that no tap meets
    for block in range(0, channels, LANES):
        c = min(block, channels - LANES)
        for t in range(size):
            for i in range(LANES):
                put(weights, (block * size + t * LANES) + i, number_at(w, (c + i) * size + t))
    for n in range(first, last, together):
        for block in range(0, channels, LANES):
            c, numbers = min(block, channels - LANES), weights + block * size * BYTES
            for k in range(together):
                turn_in(x + ((n + k) * channels + c) * pixels * BYTES, pixels, images + k * pixels * STEP)
            for group in range(len(classes)):
                tap, count = taps + classes[group, 0] * PAIR, classes[group, 1]
                place, left = places + classes[group, 2] * PAIR, classes[group, 3]
                weigh(images, numbers, tap, count, place, left, results, ends)
            for k in range(together):
                turn_out(results + k * positions * STEP, positions, y + ((n + k) * channels + c) * positions * BYTES)


@compiled
def filters_of(x, grad, w, first, last, from_image, to_image, together, channels, pixels, positions, size, classes,
               taps, places, images, grads, every, part):
    """The gradient of the filters of blocks first to last, from all images between, added to `every`; written to w."""
    for block in range(first, last):
        c, met = min(block * LANES, channels - LANES), 0
        sums = every + (block - first) * size * STEP
        for n in range(from_image, to_image, together):
            if met == 0:
                zero(part, size * LANES)
            for k in range(together):
                turn_in(x + ((n + k) * channels + c) * pixels * BYTES, pixels, images + k * pixels * STEP)
                turn_in(grad + ((n + k) * channels + c) * positions * BYTES, positions, grads + k * positions * STEP)
            for group in range(len(classes)):
                tap, left = taps + classes[group, 0] * PAIR, classes[group, 1]
                place, count = places + classes[group, 2] * PAIR, classes[group, 3]
                while left >= T0:
                    TAP0(images, grads, place, count, tap, part)
                    tap, left = tap + T0 * PAIR, left - T0
                while left >= T1:
                    TAP1(images, grads, place, count, tap, part)
                    tap, left = tap + T1 * PAIR, left - T1
                while left >= T2:
                    TAP2(images, grads, place, count, tap, part)
                    tap, left = tap + T2 * PAIR, left - T2
            met += together * positions
            if met >= CHUNK or n + together >= to_image:
                met = 0
                for t in range(size):
                    store(sums + t * STEP, add(load(sums + t * STEP), load(part + t * STEP)))
        for t in range(size):
            for i in range(LANES):
                put(w, (c + i) * size + t, number_at(sums, t * LANES + i))


@compiled
def planes_of(x, w, y, first, last, channels, pixels, masks, offsets):
    """Planes of images first to last, by masks."""
    for n in range(first, last):
        for c in range(channels):
            place = (n * channels + c) * pixels * BYTES
            plane_weighted(x + place, w + c * NINE * BYTES, masks, offsets, pixels // LANES, y + place)


@compiled
def plane_filters_of(x, grad, w, first, last, images, together, channels, pixels, masks, offsets, sums):
    """The gradient of the filters of channels first to last. sums: scratch for nine vectors."""
    far = channels * pixels * BYTES
    for c in range(first, last):
        zero(sums, NINE * LANES)
        for n in range(0, images, together):
            place = n * far + c * pixels * BYTES
            plane_products(x + place, grad + place, masks, offsets, pixels // LANES, min(together, images - n), far,
                           sums)
        for t in range(NINE):
            put(w, c * NINE + t, float32(total(load(sums + t * STEP))))


# ---- tables ---------------------------------------------------------------------------------------------------------

def axis(n: int, m: int, k: int, stride: int, padding: int, dilation: int, back: bool) -> dict:
    """Along one axis: which taps meet what -> the positions for which it is so, as (where the first tap reads,
    where it writes); the key has each tap and how much further it reads. back: in the gradient of the images."""
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


class Tables:
    """What the compiled functions read for one geometry, with so many images together."""

    def __init__(self, together: int, size: tuple, kernel: tuple, stride: tuple, padding: tuple, dilation: tuple,
                 back: bool):
        result = positions(size, kernel, stride, padding, dilation)
        axes = [axis(*numbers, back) for numbers in zip(size, result, kernel, stride, padding, dilation)]
        reads, writes = (result, size) if back else (size, result)
        self.together = together
        self.reads, self.writes, self.size = math.prod(reads), math.prod(writes), math.prod(kernel)
        images = np.arange(together)[:, None, None]
        classes, taps, places = [], [np.empty((0, 2), "i8")], [np.empty((0, 2), "i8")]
        without: list = []  # of taps: where such pixels are written
        for down, rows in axes[0].items():
            for across, columns in axes[1].items():
                met = [(u * reads[1] + v, tap * kernel[1] + other) for tap, u in down for other, v in across]
                (y, i), (x, j) = np.array(rows).T, np.array(columns).T
                here = [(images * math.prod(shape) + a[:, None] * shape[1] + b).reshape(-1)
                        for shape, a, b in ((reads, y, x), (writes, i, j))]
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
def tables(*geometry) -> Tables:
    return Tables(*geometry)


@functools.lru_cache(256)
def masks(size: tuple, padding: tuple, dilation: tuple, back: bool):
    """(of each vector of a plane, which lanes meet pixels under each of the nine taps; how much further each reads)."""
    found, offsets = [], []
    for u in range(3):
        for v in range(3):
            down, right = u * dilation[0] - padding[0], v * dilation[1] - padding[1]
            if back:
                down, right = -down, -right
            row, column = np.arange(size[0])[:, None] + down, np.arange(size[1]) + right
            found.append(((0 <= row) & (row < size[0]) & (0 <= column) & (column < size[1])).reshape(-1, LANES))
            offsets.append(down * size[1] + right)
    bits = (np.stack(found, 1) << np.arange(LANES)).sum(-1)
    return np.ascontiguousarray(bits, "u2"), np.array(offsets, "i8")


def by_masks(size: tuple, kernel: tuple, stride: tuple, padding: tuple, dilation: tuple) -> bool:
    return (WIDE and tuple(kernel) == (3, 3) and tuple(stride) == (1, 1) and tuple(padding) == tuple(dilation)
            and math.prod(size) % LANES == 0 and math.prod(size) > LANES)


def parts(first: int, last: int, pixels: int) -> list[tuple[int, int, int]]:
    """(first, last, together) of images: most in groups that stay in the first-level cache, then the rest."""
    together = max(1, min(16, last - first, 128 // pixels))
    middle = first + (last - first) // together * together
    return [(first, middle, together)] + ([(middle, last, last - middle)] if middle < last else [])


# ---- arrays ---------------------------------------------------------------------------------------------------------

def fits(x: np.ndarray, weight: np.ndarray, groups: int, *others: np.ndarray) -> bool:
    """Arrays of (N, C, H, W) with 16 channels or more, and one filter for each."""
    return (all(a.dtype == np.float32 and a.flags.c_contiguous for a in (x, weight, *others)) and x.size > 0
            and x.shape[1] == groups >= LANES and weight.shape[:2] == (groups, 1))


def filtered(x, weight, out, size, stride, padding, dilation, back: bool):
    channels, kernel = x.shape[1], weight.shape[2:]
    largest = max(math.prod(x.shape[2:]), math.prod(out.shape[2:]))
    chunks, arrays = chunks_of(len(x), max(LANES, MOST // (channels * largest))), [at(a) for a in (x, weight, out)]

    def by_planes(k: int) -> None:
        planes_of(*arrays, *chunks[k], channels, largest, at(bits), at(offsets))

    def by_tables(k: int) -> None:
        for first, last, together in parts(*chunks[k], largest):
            t = tables(together, size, kernel, stride, padding, dilation, back)
            held = (scratch("taps", -(-channels // LANES) * t.size * LANES),
                    scratch("images", together * t.reads * LANES),
                    scratch("results", together * t.writes * LANES))
            images_of(*arrays, first, last, together, channels, t.reads, t.writes, t.size, t.classes, at(t.taps),
                      at(t.places), *[at(a) for a in held], at(PLAIN))

    if by_masks(size, kernel, stride, padding, dilation):
        bits, offsets = masks(size, padding, dilation, back)
        split(len(chunks), by_planes)
    else:
        split(len(chunks), by_tables)
    return out


def conv2d(x, weight, stride, padding, dilation, groups, out=None):
    size = tuple(x.shape[2:])
    if out is None:
        out = np.empty((*x.shape[:2], *positions(size, weight.shape[2:], stride, padding, dilation)), "f4")
    if not fits(x, weight, groups, out):
        return None
    return filtered(x, weight, out, size, stride, padding, dilation, back=False)


def conv2d_input_grad(grad, weight, shape, stride, padding, dilation, groups, out=None):
    out = np.empty(shape, "f4") if out is None else out
    if not fits(grad, weight, groups, out):
        return None
    return filtered(grad, weight, out, tuple(shape[2:]), stride, padding, dilation, back=True)


def conv2d_weight_grad(grad, x, shape, stride, padding, dilation, groups, out=None):
    out = np.empty(shape, "f4") if out is None else out
    if not fits(x, out, groups, grad) or grad.shape[1] != groups or x.shape[2:] == (1, 1):
        return None  # images of one pixel are turned as they are: NumPy's is quicker
    images, channels, size, kernel = len(x), x.shape[1], tuple(x.shape[2:]), tuple(shape[2:])
    pixels, arrays = math.prod(size), [at(a) for a in (x, grad, out)]
    blocks = -(-channels // LANES)
    chunks = chunks_of(blocks, max(1, MOST // (images * pixels * LANES)))

    def by_planes(k: int) -> None:
        first, last = [min(block * LANES, channels) for block in chunks[k]]
        sums = scratch("part", NINE * LANES)
        plane_filters_of(*arrays, first, last, images, max(1, CHUNK // pixels), channels, pixels, at(bits), at(offsets),
                         at(sums))

    def by_tables(k: int) -> None:
        total = scratch("total", (chunks[k][1] - chunks[k][0]) * math.prod(kernel) * LANES, zeros=True)
        for first, last, together in parts(0, images, pixels):
            t = tables(together, size, kernel, stride, padding, dilation, False)
            held = (scratch("images", together * t.reads * LANES), scratch("grads", together * t.writes * LANES), total,
                    scratch("part", t.size * LANES))
            filters_of(*arrays, *chunks[k], first, last, together, channels, t.reads, t.writes, t.size, t.classes,
                       at(t.taps), at(t.places), *[at(a) for a in held])

    if by_masks(size, kernel, stride, padding, dilation):
        bits, offsets = masks(size, padding, dilation, False)
        split(len(chunks), by_planes)
    else:
        split(len(chunks), by_tables)
    return out


__all__ = ["conv2d", "conv2d_input_grad", "conv2d_weight_grad"]
