"""Batch norm and its gradients in three passes: mean, variance, output; not by E[x^2] - mean^2, which cancels.

Large planes run channel by channel: all images of a channel stay in the second-level cache from the first pass to the
last. Small planes are converted to blocks, matrices run by rows. Semantics: `core/ops/norm.py`. Read next:
`nchw16c_norm.py`, `column_norms.py`.
"""

from __future__ import annotations

import math

import numpy as np

from ....compiler.fusion.nchw16c import blocked
from ....core.op import OPS
from ..codegen.jit import compiled, float32, float64
from ..codegen.llvm import LANES, number_at, put
from ..codegen.vectors import BYTES, add, filled, load, load_some, multiply_add, store, store_some, subtract, total
from ..lowering import lowers
from ..runtime.instructions import instruction, real_at, word_at
from ..runtime.tasks import Task, Workspace
from . import column_norms, nchw16c_norm
from .nchw16c_conv import in_blocks, out_of_blocks

SMALL = 16  # elements per channel of an image; larger planes run channel by channel
STEP = LANES * BYTES
CHUNK = 1 << 16  # elements of a chunk of channels


@compiled
def sum_of(x, images, far, pixels):
    """Sum of a channel: `images` planes, `far` bytes apart, each summed separately."""
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
    """Sum of (x - mean)**2 of a channel."""
    zeros, center, whole, left = filled(float32(0)), filled(mean), pixels // (4 * LANES) * 4 * LANES, pixels % LANES
    every = zeros
    for n in range(images):
        p, end = x + n * far, x + n * far + pixels // LANES * STEP
        a = b = c = d = zeros
        for q in range(p, p + whole * BYTES, 4 * STEP):
            u, v = subtract(load(q), center), subtract(load(q + STEP), center)
            s, t = subtract(load(q + 2 * STEP), center), subtract(load(q + 3 * STEP), center)
            a, b, c, d = multiply_add(u, u, a), multiply_add(v, v, b), multiply_add(s, s, c), multiply_add(t, t, d)
        for q in range(p + whole * BYTES, end, STEP):
            u = subtract(load(q), center)
            a = multiply_add(u, u, a)
        if left:
            u = subtract(load_some(end, left, center), center)
            b = multiply_add(u, u, b)
        every = add(every, add(add(a, b), add(c, d)))
    return total(every)


@compiled
def sums_of(grad, x, pixels, center):
    """Sums of a plane of gradients, and of their products with x - center, in 16 accumulators each."""
    left, end = pixels % LANES, pixels // LANES * STEP
    zeros = filled(float32(0))
    a = b = s = t = zeros
    for i in range(0, end - STEP, 2 * STEP):
        g, h = load(grad + i), load(grad + i + STEP)
        a, b = add(a, g), add(b, h)
        s = multiply_add(g, subtract(load(x + i), center), s)
        t = multiply_add(h, subtract(load(x + i + STEP), center), t)
    if pixels // LANES % 2:
        g = load(grad + end - STEP)
        a, s = add(a, g), multiply_add(g, subtract(load(x + end - STEP), center), s)
    if left:
        g = load_some(grad + end, left, zeros)
        b, t = add(b, g), multiply_add(g, subtract(load_some(x + end, left, center), center), t)
    return add(a, b), add(s, t)


@instruction
def planes_normed(words, chunk, scratch):
    """Normalize some channels.

    words: x, weight, bias, y, mean, var, eps, images, channels, pixels, channels of a chunk.
    """
    x, weight, bias, y = word_at(words, 0), word_at(words, 1), word_at(words, 2), word_at(words, 3)
    mean, var, eps, images = word_at(words, 4), word_at(words, 5), float32(real_at(words, 6)), word_at(words, 7)
    channels, pixels, at_once = word_at(words, 8), word_at(words, 9), word_at(words, 10)
    far, count = channels * pixels * BYTES, images * pixels
    zeros, left = filled(float32(0)), pixels % LANES
    for c in range(chunk * at_once, min((chunk + 1) * at_once, channels)):
        source, target = x + c * pixels * BYTES, y + c * pixels * BYTES
        m = float32(sum_of(source, images, far, pixels) / count)
        v = float32(squares_of(source, images, far, pixels, m) / count)
        put(mean, c, m)
        put(var, c, v)
        center, shift = filled(m), filled(number_at(bias, c))
        scale = filled(number_at(weight, c) / float32(np.sqrt(v + eps)))
        for n in range(images):
            p, q = source + n * far, target + n * far
            for i in range(0, pixels // LANES * STEP, STEP):
                store(q + i, multiply_add(subtract(load(p + i), center), scale, shift))
            if left:
                i = pixels // LANES * STEP
                store_some(q + i, left, multiply_add(subtract(load_some(p + i, left, zeros), center), scale, shift))


@instruction
def planes_sent_back(words, chunk, scratch):
    """Compute the gradients of some channels.

    words: grad, x, weight, mean, var, gx, gweight, gbias, then as for `planes_normed`.
    """
    grad, x, weight, mean = word_at(words, 0), word_at(words, 1), word_at(words, 2), word_at(words, 3)
    var, gx, gweight, gbias = word_at(words, 4), word_at(words, 5), word_at(words, 6), word_at(words, 7)
    eps, images, channels = float32(real_at(words, 8)), word_at(words, 9), word_at(words, 10)
    pixels, at_once = word_at(words, 11), word_at(words, 12)
    far, count = channels * pixels * BYTES, images * pixels
    zeros, left, end = filled(float32(0)), pixels % LANES, pixels // LANES * STEP
    for c in range(chunk * at_once, min((chunk + 1) * at_once, channels)):
        place = c * pixels * BYTES
        inverse = float32(1) / float32(np.sqrt(number_at(var, c) + eps))
        center = filled(number_at(mean, c))
        sums, products = zeros, zeros
        for n in range(images):
            some, more = sums_of(grad + place + n * far, x + place + n * far, pixels, center)
            sums, products = add(sums, some), add(products, more)
        gb, gw = total(sums), total(products) * float64(inverse)
        put(gbias, c, float32(gb))
        put(gweight, c, float32(gw))
        size = number_at(weight, c) * inverse
        scale, slope = filled(size), filled(float32(-size * inverse * gw / count))
        offset = filled(float32(-size * gb / count))
        for n in range(images):
            p, q, r = grad + place + n * far, x + place + n * far, gx + place + n * far
            for i in range(0, end, STEP):
                moved = multiply_add(subtract(load(q + i), center), slope, offset)
                store(r + i, multiply_add(load(p + i), scale, moved))
            if left:
                moved = multiply_add(subtract(load_some(q + end, left, zeros), center), slope, offset)
                store_some(r + end, left, multiply_add(load_some(p + end, left, zeros), scale, moved))


# ---- builders --------------------------------------------------------------------------------------------------------


def batch_norm(arrays, outs, room: Workspace, eps) -> list[Task] | None:
    x, *vectors = arrays
    if not fits(*arrays, *outs):
        return None
    if x.ndim == 2:
        return column_norms.batch_norm(arrays, outs, room, eps)
    if math.prod(x.shape[2:]) > SMALL:
        return by_planes(planes_normed, x, [*arrays, *outs], eps)
    (blocks, steps), y = in_blocks(x, room), room.array(blocked(x.shape))
    return [
        *steps,
        *nchw16c_norm.blocks_batch_norm([blocks, *vectors], [y, *outs[1:]], room, x.shape, eps, ""),
        *out_of_blocks(y, outs[0]),
    ]


def batch_norm_grad(arrays, outs, room: Workspace, eps) -> list[Task] | None:
    grad, x, weight, *statistics = arrays
    if not fits(*arrays, *outs):
        return None
    if x.ndim == 2:
        return column_norms.batch_norm_grad(arrays, outs, room, eps)
    if math.prod(x.shape[2:]) > SMALL:
        return by_planes(planes_sent_back, x, [*arrays, *outs], eps)
    (grads, first), (blocks, steps), gx = in_blocks(grad, room), in_blocks(x, room), room.array(blocked(x.shape))
    inner = [grads, blocks, weight, weight, *statistics]  # without an activation the bias is not read
    return [
        *first,
        *steps,
        *nchw16c_norm.blocks_batch_norm_grad(inner, [gx, *outs[1:]], room, x.shape, eps, ""),
        *out_of_blocks(gx, outs[0]),
    ]


def fits(*arrays: np.ndarray) -> bool:
    return all(a.dtype == np.float32 and a.flags.c_contiguous for a in arrays) and arrays[0].size > 0


def by_planes(make, x: np.ndarray, arrays: list, eps: float) -> list[Task]:
    """Tasks by chunks of channels, whose images stay in the second-level cache."""
    images, channels = x.shape[:2]
    pixels = math.prod(x.shape[2:])
    at_once = max(1, CHUNK // (images * pixels))
    return [make(-(-channels // at_once), *arrays, float(eps), images, channels, pixels, at_once)]


lowers(OPS["batch_norm"], batch_norm)
lowers(OPS["batch_norm_grad"], batch_norm_grad)
