"""Linear and nearest-neighbor interpolation of images in blocks, one axis at a time, and the gradients.

Each output pixel is one input pixel, or the weighted sum of two, as in `nn.functional.interpolate`. Semantics:
`compiler/fusion/nchw16c.py`. Read next: `nchw16c_pool.py`.
"""

from __future__ import annotations

import math

from ....compiler.fusion import nchw16c
from ..codegen.jit import float32, inlined
from ..codegen.llvm import number_at
from ..codegen.vectors import add, filled, load, multiply, store
from ..lowering import lowers
from ..runtime.instructions import instruction, word_at
from ..runtime.pointers import BlockSplit, split_blocks
from ..runtime.tasks import Task, Workspace
from .nchw16c_norm import STEP, fits

MOST, LEAST = 8192, 4096  # most and fewest pixels of a chunk
AT_ONCE = 16  # lines that share one load of a weight


@inlined
def tap(places, weights, j, size):
    """(offset of the pixel along the axis, its weight). weights: 0 if there are none."""
    return min(max(word_at(places, j), 0), size - 1), number_at(weights, j) if weights else float32(1)


@inlined
def taken_back(p, q, grad, line, weights, others, second):
    """Add the cotangent's parts to the pixels at p and q."""
    for k in range(0, line, STEP):
        g = load(grad + k)
        store(p + k, add(load(p + k), multiply(g, weights)))
        if second:
            store(q + k, add(load(q + k), multiply(g, others)))


@instruction
def resample_lines(
    chunk,
    scratch,
    x,
    y,
    first,
    left,
    second,
    right,
    size,
    many,
    lines,
    inner,
    x_block,
    y_block,
    split: BlockSplit,
    back,
):
    """Compute y[.., j, ..] = left[j] * x[.., first[j], ..] + right[j] * x[.., second[j], ..].

    first, second: int64 (many,); second is 0 if there is only one tap.  left, right: float32 (many,).  size, many: of
    the axis in x and y, which occurs `lines` times, with `inner` pixels per position.  x_block, y_block: bytes from
    block to block.  back: 1 to add the cotangent y to x instead.
    """
    zeros, line = filled(float32(0)), inner * STEP
    piece, start = chunk % split.pieces, chunk // split.pieces * split.chunk_blocks
    for block in range(start, min(start + split.chunk_blocks, split.blocks)):
        last = (piece + 1) * lines // split.pieces
        for o in range(piece * lines // split.pieces, last, AT_ONCE):
            source, target = x + block * x_block + o * size * line, y + block * y_block + o * many * line
            some = min(AT_ONCE, last - o)
            if back:
                for p in range(source, source + some * size * line, STEP):
                    store(p, zeros)
            for j in range(many):
                place, weight = tap(first, left, j, size)
                other, more = tap(second, right, j, size) if second else (place, weight)
                weights, others = filled(weight), filled(more)
                for i in range(some):
                    p, q = source + (i * size + place) * line, source + (i * size + other) * line
                    to = target + (i * many + j) * line
                    if back:
                        taken_back(p, q, to, line, weights, others, second)
                    elif second:
                        for k in range(0, line, STEP):
                            store(to + k, add(multiply(load(p + k), weights), multiply(load(q + k), others)))
                    else:
                        for k in range(0, line, STEP):
                            store(to + k, multiply(load(p + k), weights))


def blocks_resample(arrays: list, outs: list, workspace: Workspace, shape, axis) -> list[Task] | None:
    return moved(arrays[0], outs[0], arrays, outs, shape, axis, False)


def blocks_resample_grad(arrays: list, outs: list, workspace: Workspace, shape, axis) -> list[Task] | None:
    return moved(outs[0], arrays[0], arrays, outs, shape, axis, True)


def moved(x, y, arrays: list, outs: list, shape: tuple, axis: int, back: bool) -> list[Task] | None:
    """Tasks of an interpolation. x: images of this shape; y: those with another size along the axis."""
    _, *taps = arrays
    many = len(taps[0])
    if not fits(arrays, outs) or not math.prod(shape) or not many:
        return None
    lines, inner = shape[0] * math.prod(shape[2:axis]), math.prod(shape[axis + 1 :])
    split = split_blocks(len(x), lines * inner * max(shape[axis], many), MOST, LEAST, lines)
    return [
        resample_lines(
            split.chunks,
            x,
            y,
            *taps,
            shape[axis],
            many,
            lines,
            inner,
            x.strides[0],
            y.strides[0],
            split,
            back,
        )
    ]


lowers(nchw16c.blocks_resample, blocks_resample)
lowers(nchw16c.blocks_resample_grad, blocks_resample_grad)
