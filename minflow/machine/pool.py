"""The largest number of each window of 2 x 2, and gradients back to where it stood.

What it computes: `../core/ops/pool.py`.
"""

from __future__ import annotations

import numpy as np

from . import llvm
from .conv import BYTES
from .jit import compiled, float32, float64, ir
from .llvm import INT, LANES, function, number_at, put, word
from .memory import at, chunks_of
from .threads import split
from .vectors import below, masked_load, masked_store

CHUNK = 1 << 20  # pixels that a thread takes


@function("largest", 6, inline=False)
def largest(builder, above, beneath, width, count, y, indices):
    """Up to 16 windows, 2 pixels apart, on two rows `width` numbers wide; beneath: where `above` begins in its image.
    The first of equal ones is chosen; NaN wins, the last one."""
    numbers = lambda values: ir.Constant(ir.VectorType(INT, len(values)), values)  # noqa: E731
    twice, zeros = builder.mul(count, word(2)), llvm.filled(0)
    masks = below(builder, twice), below(builder, builder.sub(twice, word(LANES)))
    rows = []
    for row in (above, builder.add(above, builder.mul(width, word(BYTES)))):
        low = masked_load(builder, row, masks[0], zeros)
        high = masked_load(builder, builder.add(row, word(LANES * BYTES)), masks[1], zeros)
        rows += [builder.shuffle_vector(low, high, numbers([2 * i + odd for i in range(LANES)])) for odd in (0, 1)]
    best, kind = rows[0], ir.VectorType(INT, LANES)
    under = builder.trunc(width, INT)
    filled = builder.shuffle_vector(builder.insert_element(ir.Constant(kind, ir.Undefined), under, ir.Constant(INT, 0)),
                                    ir.Constant(kind, ir.Undefined), numbers([0] * LANES))
    places = [numbers([1] * LANES), filled, builder.add(filled, numbers([1] * LANES))]
    chosen = numbers([0] * LANES)
    for value, number in zip(rows[1:], places):
        better = builder.or_(builder.fcmp_ordered(">", value, best), builder.fcmp_unordered("uno", value, value))
        best, chosen = builder.select(better, value, best), builder.select(better, number, chosen)
    masked_store(builder, best, y, below(builder, count))
    for half in (0, 8):
        part = builder.shuffle_vector(chosen, chosen, numbers(list(range(half, half + 8))))
        wide = ir.VectorType(llvm.WORD, 8)
        first = builder.insert_element(ir.Constant(wide, ir.Undefined), beneath, ir.Constant(INT, 0))
        starts = builder.add(builder.shuffle_vector(first, ir.Constant(wide, ir.Undefined), numbers([0] * 8)),
                             ir.Constant(wide, [2 * i for i in range(half, half + 8)]))
        masked_store(builder, builder.add(builder.zext(part, wide), starts), builder.add(indices, word(half * 8)),
                     below(builder, builder.sub(count, word(half)), 8))


@compiled
def planes(x, y, indices, first, last, height, width):
    """Planes first to last."""
    down, across = height // 2, width // 2
    for n in range(first, last):
        for i in range(down):
            for j in range(0, across, LANES):
                start, to = 2 * i * width + 2 * j, (n * down + i) * across + j
                largest(x + (n * height * width + start) * BYTES, start, width, min(LANES, across - j),
                        y + to * BYTES, indices + to * 8)


@compiled
def send_back(grad, indices, gx, first, last, windows, pixels, apart, sums):
    """Planes first to last; says whether each index was within a plane. Where windows share pixels, the sums are in
    float64, as in numpy's `bincount`."""
    right = True
    for n in range(first, last):
        target = gx + n * pixels * BYTES
        if apart:
            for i in range(pixels):
                put(target, i, float32(0))
        else:
            sums[:] = 0
        for k in range(n * windows, (n + 1) * windows):
            i = indices[k]
            if i < 0 or i >= pixels:
                right = False
            elif apart:
                put(target, i, number_at(grad, k))
            else:
                sums[i] += float64(number_at(grad, k))
        if not apart:
            for i in range(pixels):
                put(target, i, float32(sums[i]))
    return right


def contiguous(*arrays: np.ndarray) -> bool:
    return all(a.flags.c_contiguous for a in arrays)


def chunks_for(planes_of: int, pixels: int) -> list[tuple[int, int]]:
    return chunks_of(planes_of, max(1, CHUNK // max(pixels, 1)))


def max_pool2d(x, kernel_size, stride, padding, dilation, ceil_mode, out=None):
    n, c, h, w = x.shape
    if (*kernel_size, *stride, *padding, *dilation) != (2, 2, 2, 2, 0, 0, 1, 1) or ceil_mode and (h % 2 or w % 2):
        return None
    if out is None:
        out = np.empty((n, c, h // 2, w // 2), "f4"), np.empty((n, c, h // 2, w // 2), "i8")
    if x.dtype != np.float32 or not contiguous(x, *out):
        return None
    chunks, places = chunks_for(n * c, h * w), [at(a) for a in (x, *out)]
    split(len(chunks), lambda k: planes(*places, *chunks[k], h, w))
    return out


def max_pool2d_grad(grad, indices, shape, apart, out=None):
    """None also where an index is outside of its image: then numpy says which."""
    out = np.empty(shape, "f4") if out is None else out
    if grad.dtype != np.float32 or indices.dtype != np.int64 or not out.size or not contiguous(grad, indices, out):
        return None
    pixels, windows = shape[2] * shape[3], indices.shape[2] * indices.shape[3]
    chunks, right = chunks_for(shape[0] * shape[1], pixels), []
    flat, places = indices.reshape(-1), (at(grad), at(out))

    def one(k: int) -> None:
        sums = np.empty(0 if apart else pixels)
        right.append(send_back(places[0], flat, places[1], *chunks[k], windows, pixels, bool(apart), sums))

    split(len(chunks), one)
    return out if all(right) else None


__all__ = ["max_pool2d", "max_pool2d_grad"]
