"""Max pooling with 2x2 and 1x2 windows, and scatter of its gradient; global average pooling; on NCHW images.

Semantics: `core/ops/pool.py`. Read next: `nchw16c_pool.py`, for other windows.
"""

from __future__ import annotations

import math

import numpy as np

from ....core.op import OPS
from ..codegen import llvm
from ..codegen.atomics import publish
from ..codegen.jit import ir
from ..codegen.llvm import INT, LANES, function, number_at, put, word
from ..codegen.vectors import BYTES, below, masked_load, masked_store
from ..lowering import lowers
from ..runtime.instructions import instruction, put_real, real_at, word_at
from ..runtime.tasks import Task
from .elementwise_fusion import FULL, LONGEST, ROW, Bytecode

CHUNK = 1 << 17  # pixels of a chunk


@function("largest", 6, inline=False)
def largest(builder, above, beneath, width, count, y, indices):
    """Pool up to 16 windows, 2 pixels apart, on two rows `width` elements wide.

    beneath: index of `above` in its image. Takes the first of equal pixels, but the last NaN.
    """
    numbers = lambda values: ir.Constant(ir.VectorType(INT, len(values)), values)
    twice, zeros = builder.mul(count, word(2)), llvm.filled(0)
    masks = below(builder, twice), below(builder, builder.sub(twice, word(LANES)))
    rows = []
    for row in (above, builder.add(above, builder.mul(width, word(BYTES)))):
        low = masked_load(builder, row, masks[0], zeros)
        high = masked_load(builder, builder.add(row, word(LANES * BYTES)), masks[1], zeros)
        rows += [builder.shuffle_vector(low, high, numbers([2 * i + odd for i in range(LANES)])) for odd in (0, 1)]
    best, kind = rows[0], ir.VectorType(INT, LANES)
    under = builder.trunc(width, INT)
    filled = builder.shuffle_vector(
        builder.insert_element(ir.Constant(kind, ir.Undefined), under, ir.Constant(INT, 0)),
        ir.Constant(kind, ir.Undefined),
        numbers([0] * LANES),
    )
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
        starts = builder.add(
            builder.shuffle_vector(first, ir.Constant(wide, ir.Undefined), numbers([0] * 8)),
            ir.Constant(wide, [2 * i for i in range(half, half + 8)]),
        )
        masked_store(
            builder,
            builder.add(builder.zext(part, wide), starts),
            builder.add(indices, word(half * 8)),
            below(builder, builder.sub(count, word(half)), 8),
        )


@instruction
def max_pool2d_planes(chunk, scratch, x, y, indices, planes, height, width, tall, chunk_planes):
    """Pool x (planes, height, width) to y and indices, (planes, height // tall, width // 2).

    tall: rows of a window, 2 or 1; then `largest` reads the same row twice.
    """
    down, across = height // tall, width // 2
    for n in range(chunk * chunk_planes, min((chunk + 1) * chunk_planes, planes)):
        for i in range(down):
            for j in range(0, across, LANES):
                start, to = tall * i * width + 2 * j, (n * down + i) * across + j
                largest(
                    x + (n * height * width + start) * BYTES,
                    start,
                    (tall - 1) * width,
                    min(LANES, across - j),
                    y + to * BYTES,
                    indices + to * 8,
                )


@instruction
def max_pool2d_grad_planes(chunk, scratch, grad, indices, gx, planes, windows, pixels, disjoint, refused, chunk_planes):
    """Scatter grad (planes, windows) to gx (planes, pixels); report indices outside of a plane in `refused`.

    disjoint: 1 if no two windows overlap. Otherwise sums are in float64 as in numpy's `bincount`, in scratch memory:
    `pixels` float64.
    """
    wrong = 0
    for n in range(chunk * chunk_planes, min((chunk + 1) * chunk_planes, planes)):
        target = gx + n * pixels * BYTES
        for i in range(pixels):
            if disjoint:
                put(target, i, np.float32(0))
            else:
                put_real(scratch, i, 0.0)
        for k in range(n * windows, (n + 1) * windows):
            i = word_at(indices, k)
            if i < 0 or i >= pixels:
                wrong = 1
            elif disjoint:
                put(target, i, number_at(grad, k))
            else:
                put_real(scratch, i, real_at(scratch, i) + np.float64(number_at(grad, k)))
        for i in range(0 if disjoint else pixels):
            put(target, i, np.float32(real_at(scratch, i)))
    publish(refused + 8 * chunk, wrong)


def contiguous(*arrays: np.ndarray) -> bool:
    return all(a.flags.c_contiguous for a in arrays)


def max_pool2d(arrays, outs, workspace, kernel_size, stride, padding, dilation, ceil_mode) -> list[Task] | None:
    (x,), (y, indices) = arrays, outs
    (n, c, h, w), tall = x.shape, kernel_size[0]
    if (*kernel_size, *stride, *padding, *dilation) not in ((2, 2, 2, 2, 0, 0, 1, 1), (1, 2, 1, 2, 0, 0, 1, 1)):
        return None
    if ceil_mode and (h % tall or w % 2):
        return None
    if x.dtype != np.float32 or not contiguous(x, y, indices):
        return None
    at_once = max(1, CHUNK // max(h * w, 1))
    return [max_pool2d_planes(-(-n * c // at_once), x, y, indices, n * c, h, w, tall, at_once)]


def max_pool2d_grad(arrays, outs, workspace, shape, apart) -> list[Task] | None:
    """Tasks of the gradient. If an index is outside of its image, NumPy's kernel raises the error, which names it."""
    (grad, indices), (out,) = arrays, outs
    if grad.dtype != np.float32 or indices.dtype != np.int64 or not out.size or not contiguous(grad, indices, out):
        return None
    planes, pixels, windows = shape[0] * shape[1], shape[2] * shape[3], indices.shape[2] * indices.shape[3]
    at_once = max(1, CHUNK // pixels)
    chunks = -(-planes // at_once)
    refused = np.zeros(chunks, "i8")
    step = max_pool2d_grad_planes(
        chunks, grad, indices, out, planes, windows, pixels, apart, refused, at_once, scratch=0 if apart else 2 * pixels
    )
    return [step._replace(refused=refused)]


def adaptive_avg_pool2d(arrays, outs, workspace, output_size) -> list[Task] | None:
    """Mean of whole images, each of which is a row of a cluster."""
    (x,), (out,), pixels = arrays, outs, math.prod(arrays[0].shape[2:])
    if (
        output_size != (1, 1)
        or not x.size
        or pixels > LONGEST
        or not all(a.dtype == np.float32 and a.flags.c_contiguous for a in (x, out))
    ):
        return None
    bytecode = Bytecode(out.size, pixels)
    total = bytecode.over_row("row_sum", bytecode.input(0, FULL, bytecode.rows))
    bytecode.output(bytecode("mul", total, 1 / pixels), ROW)
    return bytecode.finish().steps([x], [out], workspace)


lowers(OPS["max_pool2d"], max_pool2d)
lowers(OPS["max_pool2d_grad"], max_pool2d_grad)
lowers(OPS["adaptive_avg_pool2d"], adaptive_avg_pool2d)
