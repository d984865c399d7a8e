"""Batch norm and its gradients: one read for the mean, one for the variance, one to write; no E[x^2] - mean^2.

Large planes go channel by channel, all images of one, which stay in the second-level cache from the first read to the
last; small ones as columns of a matrix (images, numbers of an image), sixteen columns at a time, four images together.
What it computes: `../core/ops/norm.py`.
"""

from __future__ import annotations

import numpy as np

from .conv import BYTES
from .jit import compiled, float32, float64
from .llvm import LANES, number_at, put
from .memory import at, chunks_of, scratch
from .threads import split
from .vectors import add, filled, load, load_some, multiply_add, store, store_some, subtract, total

SMALL = 16  # numbers per channel of an image; planes above go channel by channel
STEP = LANES * BYTES
CHUNK = 1 << 16  # numbers of a chunk of channels


# ---- channel by channel ---------------------------------------------------------------------------------------------

@compiled
def sum_of(x, images, far, pixels):
    """The sum of a channel: `images` planes, `far` bytes apart; each one's sum is taken apart."""
    zeros, whole, left = filled(float32(0)), pixels // (4 * LANES) * 4 * LANES, pixels % LANES
    every = zeros
    for n in range(images):
        p, end = x + n * far, x + n * far + pixels // LANES * STEP
        a = b = c = d = zeros
        for q in range(p, p + whole * BYTES, 4 * STEP):
            a, b = add(a, load(q)), add(b, load(q + STEP))
            c, d = add(c, load(q + 2 * STEP)), add(d, load(q + 3 * STEP))
        for q in range(p + whole * BYTES, end, STEP):
            a = add(a, load(q))
        if left:
            b = add(b, load_some(end, left, zeros))
        every = add(every, add(add(a, b), add(c, d)))
    return total(every)


@compiled
def squares_of(x, images, far, pixels, mean):
    """The sum of (x - mean)**2 of a channel."""
    zeros, centre, whole, left = filled(float32(0)), filled(mean), pixels // (4 * LANES) * 4 * LANES, pixels % LANES
    every = zeros
    for n in range(images):
        p, end = x + n * far, x + n * far + pixels // LANES * STEP
        a = b = c = d = zeros
        for q in range(p, p + whole * BYTES, 4 * STEP):
            u, v = subtract(load(q), centre), subtract(load(q + STEP), centre)
            s, t = subtract(load(q + 2 * STEP), centre), subtract(load(q + 3 * STEP), centre)
            a, b, c, d = multiply_add(u, u, a), multiply_add(v, v, b), multiply_add(s, s, c), multiply_add(t, t, d)
        for q in range(p + whole * BYTES, end, STEP):
            u = subtract(load(q), centre)
            a = multiply_add(u, u, a)
        if left:
            u = subtract(load_some(end, left, centre), centre)
            b = multiply_add(u, u, b)
        every = add(every, add(add(a, b), add(c, d)))
    return total(every)


@compiled
def planes(x, weight, bias, eps, y, mean, var, first, last, images, channels, pixels):
    """Channels first to last."""
    far, count = channels * pixels * BYTES, images * pixels
    zeros, left = filled(float32(0)), pixels % LANES
    for c in range(first, last):
        source, target = x + c * pixels * BYTES, y + c * pixels * BYTES
        m = float32(sum_of(source, images, far, pixels) / count)
        v = float32(squares_of(source, images, far, pixels, m) / count)
        put(mean, c, m)
        put(var, c, v)
        centre, shift = filled(m), filled(number_at(bias, c))
        scale = filled(number_at(weight, c) / float32(np.sqrt(v + eps)))
        for n in range(images):
            p, q = source + n * far, target + n * far
            for i in range(0, pixels // LANES * STEP, STEP):
                store(q + i, multiply_add(subtract(load(p + i), centre), scale, shift))
            if left:
                i = pixels // LANES * STEP
                store_some(q + i, left, multiply_add(subtract(load_some(p + i, left, zeros), centre), scale, shift))


@compiled
def grad_planes(grad, x, weight, mean, var, eps, gx, gweight, gbias, first, last, images, channels, pixels):
    far, count = channels * pixels * BYTES, images * pixels
    zeros, left, end = filled(float32(0)), pixels % LANES, pixels // LANES * STEP
    for c in range(first, last):
        place = c * pixels * BYTES
        inverse = float32(1) / float32(np.sqrt(number_at(var, c) + eps))
        centre = filled(number_at(mean, c))
        sums, products = zeros, zeros
        for n in range(images):
            p, q = grad + place + n * far, x + place + n * far
            a = b = s = t = zeros
            for i in range(0, end - STEP, 2 * STEP):
                g, h = load(p + i), load(p + i + STEP)
                a, b = add(a, g), add(b, h)
                s = multiply_add(g, subtract(load(q + i), centre), s)
                t = multiply_add(h, subtract(load(q + i + STEP), centre), t)
            if pixels // LANES % 2:
                g = load(p + end - STEP)
                a, s = add(a, g), multiply_add(g, subtract(load(q + end - STEP), centre), s)
            if left:
                g = load_some(p + end, left, zeros)
                b, t = add(b, g), multiply_add(g, subtract(load_some(q + end, left, centre), centre), t)
            sums, products = add(sums, add(a, b)), add(products, add(s, t))
        gb, gw = total(sums), total(products) * float64(inverse)
        put(gbias, c, float32(gb))
        put(gweight, c, float32(gw))
        size = number_at(weight, c) * inverse
        scale, slope = filled(size), filled(float32(-size * inverse * gw / count))
        offset = filled(float32(-size * gb / count))
        for n in range(images):
            p, q, r = grad + place + n * far, x + place + n * far, gx + place + n * far
            for i in range(0, end, STEP):
                moved = multiply_add(subtract(load(q + i), centre), slope, offset)
                store(r + i, multiply_add(load(p + i), scale, moved))
            if left:
                moved = multiply_add(subtract(load_some(q + end, left, zeros), centre), slope, offset)
                store_some(r + end, left, multiply_add(load_some(p + end, left, zeros), scale, moved))


# ---- columns --------------------------------------------------------------------------------------------------------

@compiled
def spread_out(value, pixels, c, lanes):
    for i in range(c * pixels, (c + 1) * pixels):
        put(lanes, i, value)


@compiled
def channel_total(lanes, pixels, c):
    result = 0.0
    for i in range(c * pixels, (c + 1) * pixels):
        result += number_at(lanes, i)
    return result


@compiled
def columns(x, weight, bias, eps, y, mean, var, first, last, images, channels, pixels, sums, centres, scales):
    """Channels first to last. sums, centres, scales: scratch, a number per column and 16 more."""
    far, count, start, stop = channels * pixels * BYTES, images * pixels, first * pixels, last * pixels
    zeros = filled(float32(0))
    for i in range(start, stop, LANES):
        store(sums + i * BYTES, zeros)
    for n in range(0, images, 4):
        p = x + n * far
        for i in range(start, stop, LANES):
            j, left = i * BYTES, min(LANES, stop - i)
            found = load_some(p + j, left, zeros)
            if n + 3 < images:
                found = add(add(found, load_some(p + far + j, left, zeros)),
                            add(load_some(p + 2 * far + j, left, zeros), load_some(p + 3 * far + j, left, zeros)))
            else:
                for k in range(n + 1, images):
                    found = add(found, load_some(x + k * far + j, left, zeros))
            store(sums + j, add(load(sums + j), found))
    for c in range(first, last):
        put(mean, c, float32(channel_total(sums, pixels, c) / count))
        spread_out(number_at(mean, c), pixels, c, centres)
    for i in range(start, stop, LANES):
        store(sums + i * BYTES, zeros)
    for n in range(0, images, 4):
        p = x + n * far
        for i in range(start, stop, LANES):
            j, left = i * BYTES, min(LANES, stop - i)
            centre = load(centres + j)
            u = subtract(load_some(p + j, left, centre), centre)
            found = multiply_add(u, u, load(sums + j))
            if n + 3 < images:
                u = subtract(load_some(p + far + j, left, centre), centre)
                v = subtract(load_some(p + 2 * far + j, left, centre), centre)
                w = subtract(load_some(p + 3 * far + j, left, centre), centre)
                found = add(multiply_add(u, u, found), multiply_add(w, w, multiply_add(v, v, zeros)))
            else:
                for k in range(n + 1, images):
                    u = subtract(load_some(x + k * far + j, left, centre), centre)
                    found = multiply_add(u, u, found)
            store(sums + j, found)
    for c in range(first, last):
        v = float32(channel_total(sums, pixels, c) / count)
        put(var, c, v)
        spread_out(number_at(weight, c) / float32(np.sqrt(v + eps)), pixels, c, scales)
        spread_out(number_at(bias, c), pixels, c, sums)
    for n in range(images):
        for i in range(start, stop, LANES):
            j, left = i * BYTES, min(LANES, stop - i)
            moved = subtract(load_some(x + n * far + j, left, zeros), load(centres + j))
            store_some(y + n * far + j, left, multiply_add(moved, load(scales + j), load(sums + j)))


@compiled
def grad_columns(grad, x, weight, mean, var, eps, gx, gweight, gbias, first, last, images, channels, pixels, sums,
                 products, centres, scales):
    far, count, start, stop = channels * pixels * BYTES, images * pixels, first * pixels, last * pixels
    zeros = filled(float32(0))
    for c in range(first, last):
        spread_out(number_at(mean, c), pixels, c, centres)
    for i in range(start, stop, LANES):
        store(sums + i * BYTES, zeros)
        store(products + i * BYTES, zeros)
    for n in range(0, images, 2):
        p, q = grad + n * far, x + n * far
        for i in range(start, stop, LANES):
            j, left = i * BYTES, min(LANES, stop - i)
            centre, g = load(centres + j), load_some(p + j, left, zeros)
            product = multiply_add(g, subtract(load_some(q + j, left, centre), centre), load(products + j))
            if n + 1 < images:
                h = load_some(p + far + j, left, zeros)
                product = multiply_add(h, subtract(load_some(q + far + j, left, centre), centre), product)
                g = add(g, h)
            store(sums + j, add(load(sums + j), g))
            store(products + j, product)
    for c in range(first, last):
        inverse = float32(1) / float32(np.sqrt(number_at(var, c) + eps))
        gb, gw = channel_total(sums, pixels, c), channel_total(products, pixels, c) * float64(inverse)
        put(gbias, c, float32(gb))
        put(gweight, c, float32(gw))
        size = number_at(weight, c) * inverse
        spread_out(size, pixels, c, scales)
        spread_out(float32(-size * inverse * gw / count), pixels, c, products)
        spread_out(float32(-size * gb / count), pixels, c, sums)
    for n in range(images):
        for i in range(start, stop, LANES):
            j, left = i * BYTES, min(LANES, stop - i)
            moved = subtract(load_some(x + n * far + j, left, zeros), load(centres + j))
            moved = multiply_add(moved, load(products + j), load(sums + j))
            g = load_some(grad + n * far + j, left, zeros)
            store_some(gx + n * far + j, left, multiply_add(g, load(scales + j), moved))


# ---- arrays ---------------------------------------------------------------------------------------------------------

def fits(*arrays: np.ndarray) -> bool:
    return all(a.dtype == np.float32 and a.flags.c_contiguous for a in arrays) and arrays[0].size > 0


def run(large, small, arrays: list, eps: float, results: tuple, x: np.ndarray, vectors: int) -> None:
    """By chunks of channels, of which all images stay in the second-level cache."""
    images, channels = x.shape[:2]
    pixels = x.size // (images * channels)
    room = (channels * pixels // LANES + 2) * LANES  # of a number per column
    chunks = chunks_of(channels, max(LANES, CHUNK // (images * pixels) // LANES * LANES))
    before = [at(a) for a in arrays], np.float32(eps), [at(a) for a in results]

    def one(k: int) -> None:
        sizes = *chunks[k], images, channels, pixels
        if pixels > SMALL:
            large(*before[0], before[1], *before[2], *sizes)
            return
        lanes = scratch("lanes", vectors * room)
        small(*before[0], before[1], *before[2], *sizes, *range(at(lanes), at(lanes) + lanes.nbytes, room * BYTES))

    split(len(chunks), one)


def empty(x: np.ndarray, weight: np.ndarray) -> tuple:
    return np.empty(x.shape, x.dtype), np.empty(weight.shape, x.dtype), np.empty(weight.shape, x.dtype)


def batch_norm(x, weight, bias, eps, out=None):
    out = empty(x, weight) if out is None else out
    if not fits(x, weight, bias, *out):
        return None
    run(planes, columns, [x, weight, bias], eps, out, x, 3)
    return out


def batch_norm_grad(grad, x, weight, mean, var, eps, out=None):
    out = empty(x, weight) if out is None else out
    if not fits(grad, x, weight, mean, var, *out):
        return None
    run(grad_planes, grad_columns, [grad, x, weight, mean, var], eps, out, x, 4)
    return out


__all__ = ["batch_norm", "batch_norm_grad"]
