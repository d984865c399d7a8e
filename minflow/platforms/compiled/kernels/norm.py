"""Batch norm and its gradients in three passes: mean, variance, output; not by E[x^2] - mean^2, which cancels.

Large planes run channel by channel: all images of a channel stay in the second-level cache from the first pass to the
last. Small planes are converted to blocks, matrices run by rows. Semantics: `core/ops/norm.py`. Read next:
`nchw16c_norm.py`, `column_norms.py`.
"""

from __future__ import annotations

import math

import numpy as np

from ....core.op import OPS
from ..codegen.jit import compiled, float32, float64
from ..codegen.llvm import LANES, number_at, put
from ..codegen.vectors import BYTES, filled, load, load_some, multiply_add, store, store_some, total
from ..lowering import lowers
from ..passes.nchw16c import blocked
from ..runtime.instructions import instruction
from ..runtime.tasks import Task, Workspace
from . import column_norms, nchw16c_norm
from .nchw16c_conv import in_blocks, out_of_blocks

SMALL = 16  # elements per channel of an image; larger planes run channel by channel
STEP = LANES * BYTES
CHUNK = 1 << 16  # elements of a chunk of channels


@compiled
def sum_of(x, images, stride, pixels):
    """Sum of a channel: `images` planes, `stride` bytes apart, each summed separately."""
    zeros, whole, left = filled(float32(0)), pixels // (4 * LANES) * 4 * LANES, pixels % LANES
    sums = zeros
    for n in range(images):
        p, end = x + n * stride, x + n * stride + pixels // LANES * STEP
        a = b = c = d = zeros
        for q in range(p, p + whole * BYTES, 4 * STEP):
            a, b = a + load(q), b + load(q + STEP)
            c, d = c + load(q + 2 * STEP), d + load(q + 3 * STEP)
        for q in range(p + whole * BYTES, end, STEP):
            a = a + load(q)
        if left:
            b = b + load_some(end, left, zeros)
        sums = sums + (a + b + (c + d))
    return total(sums)


@compiled
def squares_of(x, images, stride, pixels, mean):
    """Sum of (x - mean)**2 of a channel."""
    zeros, center, whole, left = filled(float32(0)), filled(mean), pixels // (4 * LANES) * 4 * LANES, pixels % LANES
    sums = zeros
    for n in range(images):
        p, end = x + n * stride, x + n * stride + pixels // LANES * STEP
        a = b = c = d = zeros
        for q in range(p, p + whole * BYTES, 4 * STEP):
            u, v = load(q) - center, load(q + STEP) - center
            s, t = load(q + 2 * STEP) - center, load(q + 3 * STEP) - center
            a, b, c, d = multiply_add(u, u, a), multiply_add(v, v, b), multiply_add(s, s, c), multiply_add(t, t, d)
        for q in range(p + whole * BYTES, end, STEP):
            u = load(q) - center
            a = multiply_add(u, u, a)
        if left:
            u = load_some(end, left, center) - center
            b = multiply_add(u, u, b)
        sums = sums + (a + b + (c + d))
    return total(sums)


@compiled
def sums_of(grad, x, pixels, center):
    """Sums of a plane of gradients, and of their products with x - center, in 16 accumulators each."""
    left, end = pixels % LANES, pixels // LANES * STEP
    zeros = filled(float32(0))
    a = b = s = t = zeros
    for i in range(0, end - STEP, 2 * STEP):
        g, h = load(grad + i), load(grad + i + STEP)
        a, b = a + g, b + h
        s = multiply_add(g, load(x + i) - center, s)
        t = multiply_add(h, load(x + i + STEP) - center, t)
    if pixels // LANES % 2:
        g = load(grad + end - STEP)
        a, s = a + g, multiply_add(g, load(x + end - STEP) - center, s)
    if left:
        g = load_some(grad + end, left, zeros)
        b, t = b + g, multiply_add(g, load_some(x + end, left, center) - center, t)
    return a + b, s + t


@instruction
def batch_norm_channels(
    chunk, scratch, x, weight, bias, y, means, variances, eps: float, images, channels, pixels, chunk_channels
):
    """Normalize some channels of images (images, channels, pixels); means, variances: (channels,), written."""
    eps = float32(eps)
    image_bytes, count = channels * pixels * BYTES, images * pixels
    zeros, left = filled(float32(0)), pixels % LANES
    for c in range(chunk * chunk_channels, min((chunk + 1) * chunk_channels, channels)):
        source, target = x + c * pixels * BYTES, y + c * pixels * BYTES
        m = float32(sum_of(source, images, image_bytes, pixels) / count)
        v = float32(squares_of(source, images, image_bytes, pixels, m) / count)
        put(means, c, m)
        put(variances, c, v)
        center, shift = filled(m), filled(number_at(bias, c))
        scale = filled(number_at(weight, c) / float32(np.sqrt(v + eps)))
        for n in range(images):
            p, q = source + n * image_bytes, target + n * image_bytes
            for i in range(0, pixels // LANES * STEP, STEP):
                store(q + i, multiply_add(load(p + i) - center, scale, shift))
            if left:
                i = pixels // LANES * STEP
                store_some(q + i, left, multiply_add(load_some(p + i, left, zeros) - center, scale, shift))


@instruction
def batch_norm_grad_channels(
    chunk,
    scratch,
    grad,
    x,
    weight,
    means,
    variances,
    gx,
    gweight,
    gbias,
    eps: float,
    images,
    channels,
    pixels,
    chunk_channels,
):
    """Compute the gradients gx, gweight and gbias of some channels. Shapes: see `batch_norm_channels`."""
    eps = float32(eps)
    image_bytes, count = channels * pixels * BYTES, images * pixels
    zeros, left, end = filled(float32(0)), pixels % LANES, pixels // LANES * STEP
    for c in range(chunk * chunk_channels, min((chunk + 1) * chunk_channels, channels)):
        place = c * pixels * BYTES
        inverse = float32(1) / float32(np.sqrt(number_at(variances, c) + eps))
        center = filled(number_at(means, c))
        sums, products = zeros, zeros
        for n in range(images):
            some, more = sums_of(grad + place + n * image_bytes, x + place + n * image_bytes, pixels, center)
            sums, products = sums + some, products + more
        gb, gw = total(sums), total(products) * float64(inverse)
        put(gbias, c, float32(gb))
        put(gweight, c, float32(gw))
        size = number_at(weight, c) * inverse
        scale, slope = filled(size), filled(float32(-size * inverse * gw / count))
        offset = filled(float32(-size * gb / count))
        for n in range(images):
            p, q, r = grad + place + n * image_bytes, x + place + n * image_bytes, gx + place + n * image_bytes
            for i in range(0, end, STEP):
                moved = multiply_add(load(q + i) - center, slope, offset)
                store(r + i, multiply_add(load(p + i), scale, moved))
            if left:
                moved = multiply_add(load_some(q + end, left, zeros) - center, slope, offset)
                store_some(r + end, left, multiply_add(load_some(p + end, left, zeros), scale, moved))


# ---- builders --------------------------------------------------------------------------------------------------------


def batch_norm(arrays, outs, workspace: Workspace, eps) -> list[Task] | None:
    x, *vectors = arrays
    if not fits(*arrays, *outs):
        return None
    if x.ndim == 2:
        return column_norms.batch_norm(arrays, outs, workspace, eps)
    if math.prod(x.shape[2:]) > SMALL:
        return by_planes(batch_norm_channels, x, [*arrays, *outs], eps)
    (blocks, steps), y = in_blocks(x, workspace), workspace.array(blocked(x.shape))
    return [
        *steps,
        *nchw16c_norm.blocks_batch_norm([blocks, *vectors], [y, *outs[1:]], workspace, x.shape, eps, ""),
        *out_of_blocks(y, outs[0]),
    ]


def batch_norm_grad(arrays, outs, workspace: Workspace, eps) -> list[Task] | None:
    grad, x, weight, *statistics = arrays
    if not fits(*arrays, *outs):
        return None
    if x.ndim == 2:
        return column_norms.batch_norm_grad(arrays, outs, workspace, eps)
    if math.prod(x.shape[2:]) > SMALL:
        return by_planes(batch_norm_grad_channels, x, [*arrays, *outs], eps)
    (grads, first), (blocks, steps) = in_blocks(grad, workspace), in_blocks(x, workspace)
    gx = workspace.array(blocked(x.shape))
    inner = [grads, blocks, weight, weight, *statistics]  # without an activation the bias is not read
    return [
        *first,
        *steps,
        *nchw16c_norm.blocks_batch_norm_grad(inner, [gx, *outs[1:]], workspace, x.shape, eps, ""),
        *out_of_blocks(gx, outs[0]),
    ]


def fits(*arrays: np.ndarray) -> bool:
    return all(a.dtype == np.float32 and a.flags.c_contiguous for a in arrays) and arrays[0].size > 0


def by_planes(make, x: np.ndarray, arrays: list, eps: float) -> list[Task]:
    """Tasks by chunks of channels, whose images stay in the second-level cache."""
    images, channels = x.shape[:2]
    pixels = math.prod(x.shape[2:])
    at_once = max(1, CHUNK // (images * pixels))
    return [make(-(-channels // at_once), *arrays, eps, images, channels, pixels, at_once)]


lowers(OPS["batch_norm"], batch_norm)
lowers(OPS["batch_norm_grad"], batch_norm_grad)
