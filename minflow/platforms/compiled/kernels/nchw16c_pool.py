"""Max, average and global average pooling of images in blocks, with their gradients.

16 channels at a time, pixel by pixel of a window; pixels in the padding are skipped. Full windows of 2x2 and 3x3 have
unrolled code, all others share a loop. Semantics: `../passes/nchw16c.py`. Read next: `nchw16c_conv_pool.py`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..codegen import llvm
from ..codegen.jit import compiled, float32, inlined, ir
from ..codegen.llvm import INT, LANES, function, word
from ..codegen.vectors import BYTES, filled, load, rounded, store, widened
from ..lowering import lowers
from ..passes import nchw16c
from ..passes.nchw16c import pooled
from ..runtime.instructions import instruction
from ..runtime.pointers import BlockSplit, split_blocks
from ..runtime.tasks import Task, Workspace
from .nchw16c_norm import STEP, TILE, fits

MOST, LEAST = 8192, 4096  # most and fewest pixels of a chunk
NUMBERS, SMALL = ir.VectorType(INT, LANES), ir.VectorType(ir.IntType(8), LANES)
MANY = 256  # pixels of a window that a byte can index
TWO, THREE = 2, 3  # sizes of windows with unrolled code


# ---- lines of windows ------------------------------------------------------------------------------------------------


class PoolLine(NamedTuple):
    """Arguments of a loop over a line of adjacent windows.

    image: first pixel of the first window.  row, column, step: elements between rows, columns and windows.  rows,
    columns: of a window, unless unrolled.  first: index of its first pixel; wide: increment of the index per row.  y: a
    vector per window.  places: 16 bytes per window; or one vector.
    """

    image: ir.Value
    row: ir.Value
    column: ir.Value
    step: ir.Value
    rows: ir.Value
    columns: ir.Value
    first: ir.Value
    wide: ir.Value
    windows: ir.Value
    y: ir.Value
    places: ir.Value

    def over_windows(self, builder, body) -> None:
        """Emit `body(address of a window, offset in y, address of its places)` for each window."""

        def one(i, nothing):
            k = builder.mul(i, word(LANES))
            body(
                llvm.place(builder, self.image, builder.mul(i, self.step)),
                k,
                builder.inttoptr(builder.add(self.places, k), SMALL.as_pointer()),
            )
            return []

        llvm.loop(builder, self.windows, [], one)

    def over_pixels(self, builder, fixed: int, carried: list, body) -> list:
        """Emit `carried = body(offset in the window, index in all lanes, carried)` for each pixel of a window.

        fixed: its rows and columns if unrolled, or 0.
        """
        if fixed:
            for u, v in np.ndindex(fixed, fixed):
                distance = builder.add(builder.mul(self.row, word(u)), builder.mul(self.column, word(v)))
                carried = body(distance, ir.Constant(NUMBERS, [u * fixed + v] * LANES), carried)
            return carried

        def line(u, carried):
            start, number = builder.mul(self.row, u), builder.add(self.first, builder.mul(self.wide, u))
            return llvm.loop(
                builder,
                self.columns,
                carried,
                lambda v, carried: body(
                    builder.add(start, builder.mul(self.column, v)),
                    llvm.spread(builder, builder.trunc(builder.add(number, v), INT)),
                    carried,
                ),
            )

        return llvm.loop(builder, self.rows, carried, line)


def largest(fixed: int):
    """Loop for the largest pixel and its index: the first of equal ones, but the last NaN."""

    @function(f"largest_{fixed}", len(PoolLine._fields), inline=False)
    def code(builder, *words):
        line = PoolLine(*words)

        def window(base, k, place):
            def pixel(distance, number, before):
                best, chosen = before
                value = llvm.load(builder, base, distance)
                nan = builder.fcmp_unordered("uno", value, value)
                better = builder.or_(builder.fcmp_ordered(">", value, best), nan)
                return [builder.select(better, value, best), builder.select(better, number, chosen)]

            start = [llvm.load(builder, base), llvm.spread(builder, builder.trunc(line.first, INT))]
            best, chosen = line.over_pixels(builder, fixed, start, pixel)
            llvm.store(builder, best, line.y, k)
            builder.store(builder.trunc(chosen, SMALL), place, align=1)

        line.over_windows(builder, window)

    return code


def returned(fixed: int):
    """Loop that adds the cotangent of each window to the pixel at its index.

    Unrolled TWO x TWO windows do not overlap: their other pixels are set to 0.
    """

    @function(f"returned_{fixed}", len(PoolLine._fields), inline=False)
    def code(builder, *words):
        line = PoolLine(*words)

        def window(base, k, place):
            grad, chosen = llvm.load(builder, line.y, k), builder.zext(builder.load(place, align=1), NUMBERS)

            def pixel(distance, number, nothing):
                value = builder.select(builder.icmp_signed("==", chosen, number), grad, llvm.filled(0))
                if fixed != TWO:
                    value = builder.fadd(value, llvm.load(builder, base, distance))
                llvm.store(builder, value, base, distance)
                return []

            line.over_pixels(builder, fixed, [], pixel)

        line.over_windows(builder, window)

    return code


def averaged_windows(fixed: int):
    """Loop for the mean of each window: its sum divided by the vector at `places`."""

    @function(f"averaged_{fixed}", len(PoolLine._fields), inline=False)
    def code(builder, *words):
        line = PoolLine(*words)
        count = llvm.load(builder, line.places)

        def window(base, k, place):
            (total,) = line.over_pixels(
                builder,
                fixed,
                [llvm.filled(0)],
                lambda distance, number, sums: [builder.fadd(sums[0], llvm.load(builder, base, distance))],
            )
            llvm.store(builder, builder.fdiv(total, count), line.y, k)

        line.over_windows(builder, window)

    return code


@function("shared", len(PoolLine._fields), inline=False)
def shared(builder, *words):
    """Distribute the cotangent of each window over its pixels."""
    line = PoolLine(*words)
    count = llvm.load(builder, line.places)

    def window(base, k, place):
        part = builder.fdiv(llvm.load(builder, line.y, k), count)

        def pixel(distance, number, nothing):
            llvm.store(builder, builder.fadd(llvm.load(builder, base, distance), part), base, distance)
            return []

        line.over_pixels(builder, 0, [], pixel)

    line.over_windows(builder, window)


LARGEST, LARGEST_2, LARGEST_3 = largest(0), largest(TWO), largest(THREE)
RETURNED, RETURNED_2, RETURNED_3 = returned(0), returned(TWO), returned(THREE)
AVERAGED, AVERAGED_2 = averaged_windows(0), averaged_windows(TWO)
COMPARE, RETURN, AVERAGE, SHARE = range(4)  # operations on windows
PADDED = -1  # divisor of a mean that counts padding


@inlined
def met(start, size, dilation, pixels):
    """(first, end) of the `size` rows or columns of a window that are within the image."""
    return max(0, (dilation - 1 - start) // dilation), min(size, (pixels - 1 - start) // dilation + 1)


class WindowGeometry(NamedTuple):
    """Sizes of images (h, w), of the output (height, width), of windows (kh, kw), strides, padding and dilation."""

    h: int
    w: int
    height: int
    width: int
    kh: int
    kw: int
    sh: int
    sw: int
    ph: int
    pw: int
    dh: int
    dw: int


@instruction
def pool_windows(
    chunk,
    scratch,
    x,
    y,
    places,
    x_block,
    y_block,
    split: BlockSplit,
    images,
    g: WindowGeometry,
    operation,
    divisor,
    disjoint,
    whole,
):
    """Run an operation on all windows of some images.

    x: images.  y: one vector per window.  places: 16 bytes per window.  x_block, y_block: bytes from block to
    block.  divisor: of means: a number, PADDED, or 0 for the number of pixels in the image.  disjoint: 1 for TWO x TWO
    windows that do not overlap.  whole: 1 if they cover each pixel.  scratch: a vector.
    """
    zeros, piece, first = filled(float32(0)), chunk % split.pieces, chunk // split.pieces * split.chunk_blocks
    for block in range(first, min(first + split.chunk_blocks, split.blocks)):
        for n in range(piece * images // split.pieces, (piece + 1) * images // split.pieces):
            image = x + block * x_block + n * g.h * g.w * STEP
            to, clear = block * y_block + n * g.height * g.width * STEP, 0
            for i in range(g.height):
                if (operation in (RETURN, SHARE)) and not whole:  # clear the lines that these windows write first
                    u_end = met(i * g.sh - g.ph, g.kh, g.dh, g.h)[1]
                    until = g.h if i == g.height - 1 else i * g.sh - g.ph + (u_end - 1) * g.dh + 1
                    for p in range(clear * g.w, until * g.w):
                        store(image + p * STEP, zeros)
                    clear = max(clear, until)
                visit_line(g, i, image, y + to, places + to // BYTES, operation, divisor, disjoint, scratch)
                to += g.width * STEP


@compiled
def visit_line(g, i, image, y, places, operation, divisor, disjoint, divisors):
    """Run an operation on the windows of row i. divisors: scratch for a vector."""
    top, row, column = i * g.sh - g.ph, g.dh * g.w * LANES, g.dw * LANES
    within = (g.w - 1 - g.dw * (g.kw - 1) + g.pw) // g.sw + 1  # end of the windows that do not reach beyond a line
    u, u_end = met(top, g.kh, g.dh, g.h)
    j = 0
    while j < g.width:
        left = j * g.sw - g.pw
        v, v_end = met(left, g.kw, g.dw, g.w)
        count = within - j if v == 0 and v_end == g.kw else 1
        start, target = image + ((top + u * g.dh) * g.w + left + v * g.dw) * STEP, y + j * STEP
        place = places + j * LANES
        rows, columns = u_end - u, v_end - v
        if operation in (AVERAGE, SHARE):
            size = rows * columns if divisor == 0 else divisor
            if divisor == PADDED:
                size = (min(top + g.kh, g.h + g.ph) - top) * (min(left + g.kw, g.w + g.pw) - left)
            place = divisors
            store(divisors, filled(float32(size)))
        unrolled = g.kh if rows == g.kh == columns == g.kw else 0
        if operation == RETURN and disjoint:
            unrolled = TWO
        elif operation == RETURN and unrolled == TWO:  # its unrolled code is for windows that do not overlap
            unrolled = 0
        visit_windows(
            operation,
            unrolled,
            start,
            row,
            column,
            g.sw * LANES,
            rows,
            columns,
            u * g.kw + v,
            g.kw,
            count,
            target,
            place,
        )
        j += count


@compiled
def visit_windows(operation, unrolled, start, row, column, step, rows, columns, first, wide, count, y, places):
    """Run an operation on `count` adjacent windows: see `PoolLine`. unrolled: size of a full window, or 0."""
    if operation == COMPARE and unrolled == TWO:
        LARGEST_2(start, row, column, step, 0, 0, 0, 0, count, y, places)
    elif operation == COMPARE and unrolled == THREE:
        LARGEST_3(start, row, column, step, 0, 0, 0, 0, count, y, places)
    elif operation == COMPARE:
        LARGEST(start, row, column, step, rows, columns, first, wide, count, y, places)
    elif operation == RETURN and unrolled == TWO:
        RETURNED_2(start, row, column, step, 0, 0, 0, 0, count, y, places)
    elif operation == RETURN and unrolled == THREE:
        RETURNED_3(start, row, column, step, 0, 0, 0, 0, count, y, places)
    elif operation == RETURN:
        RETURNED(start, row, column, step, rows, columns, first, wide, count, y, places)
    elif operation == AVERAGE and unrolled == TWO:
        AVERAGED_2(start, row, column, step, 0, 0, 0, 0, count, y, places)
    elif operation == AVERAGE:
        AVERAGED(start, row, column, step, rows, columns, 0, 0, count, y, places)
    else:
        shared(start, row, column, step, rows, columns, 0, 0, count, y, places)


def visited(operation: int, x, y, places, shape, kernel_size, stride, padding, dilation, ceil_mode, divisor=0):
    """The one task of all windows, or None if some window is empty. x, y: arrays of images and of windows."""
    size = pooled(shape, kernel_size, stride, padding, dilation, ceil_mode)[2:]
    if not math.prod(shape) or not math.prod(size):
        return None
    begins = [np.arange(m) * s - p for m, s, p in zip(size, stride, padding)]
    last = [begin + d * (k - 1) for begin, d, k in zip(begins, dilation, kernel_size)]
    if any(
        (np.maximum(begin % d, begin) >= np.minimum(end + 1, n)).any()
        for begin, end, d, n in zip(begins, last, dilation, shape[2:])
    ):
        return None
    inside = all(begin[0] >= 0 and end[-1] < n for begin, end, n in zip(begins, last, shape[2:]))
    disjoint = inside and tuple(kernel_size) == (TWO, TWO) and min(stride) >= TWO and max(dilation) == 1
    whole = operation == RETURN and disjoint and all(m * TWO == n for m, n in zip(size, shape[2:]))
    split = shares(len(x), shape)
    return [
        pool_windows(
            split.chunks,
            x,
            y,
            places,
            x.strides[0],
            y.strides[0],
            split,
            shape[0],
            WindowGeometry(*shape[2:], *size, *kernel_size, *stride, *padding, *dilation),
            operation,
            divisor,
            disjoint,
            whole,
            scratch=LANES,
        )
    ]


def blocks_max_pool2d(arrays: list, outs: list, workspace: Workspace, shape, **window) -> list[Task] | None:
    fit = fits(arrays, outs) and math.prod(window["kernel_size"]) <= MANY
    return visited(COMPARE, *arrays, *outs, shape, **window) if fit else None


def blocks_max_pool2d_grad(arrays: list, outs: list, workspace: Workspace, shape, **window) -> list[Task] | None:
    fit = fits(arrays, outs) and math.prod(window["kernel_size"]) <= MANY
    return visited(RETURN, *outs, *arrays, shape, **window) if fit else None


def blocks_avg_pool2d(arrays: list, outs: list, workspace: Workspace, shape, **options) -> list[Task] | None:
    return visited(AVERAGE, *arrays, *outs, 0, shape, **means(**options)) if fits(arrays, outs) else None


def blocks_avg_pool2d_grad(arrays: list, outs: list, workspace: Workspace, shape, **options) -> list[Task] | None:
    return visited(SHARE, *outs, *arrays, 0, shape, **means(**options)) if fits(arrays, outs) else None


def means(count_include_pad: bool, divisor_override: int | None, **window) -> dict:
    """Arguments of `visited` for means."""
    return dict(window, dilation=(1, 1), divisor=divisor_override or (PADDED if count_include_pad else 0))


def shares(blocks: int, shape: tuple) -> BlockSplit:
    """Split blocks of images into chunks, with at least one image per chunk."""
    return split_blocks(blocks, shape[0] * math.prod(shape[2:]), MOST, LEAST, shape[0])


# ---- global average pooling ------------------------------------------------------------------------------------------


@inlined
def mean_of(p, pixels):
    sums = filled(0.0)
    for first in range(0, pixels, TILE):
        a = b = filled(float32(0))
        end = p + min(first + TILE, pixels) * STEP
        whole = end - (end - p) // STEP % 2 * STEP
        for q in range(p + first * STEP, whole, 2 * STEP):
            a, b = a + load(q), b + load(q + STEP)
        for q in range(whole, end, STEP):
            a = a + load(q)
        sums = sums + widened(a + b)
    return rounded(sums * filled(1.0 / pixels))


@instruction
def average_images(chunk, scratch, x, y, x_block, y_block, split: BlockSplit, images, pixels, back):
    """Mean of each image of x (blocks, images, pixels, 16) to y (blocks, images, 16).

    x_block, y_block: bytes from block to block.  back: 1 to distribute y over the pixels of x instead.
    """
    piece, first, count = chunk % split.pieces, chunk // split.pieces * split.chunk_blocks, filled(float32(pixels))
    for block in range(first, min(first + split.chunk_blocks, split.blocks)):
        for n in range(piece * images // split.pieces, (piece + 1) * images // split.pieces):
            p, q = x + block * x_block + n * pixels * STEP, y + block * y_block + n * STEP
            if back:
                value = load(q) / count
                for r in range(p, p + pixels * STEP, STEP):
                    store(r, value)
            else:
                store(q, mean_of(p, pixels))


def blocks_average(arrays: list, outs: list, workspace: Workspace, shape) -> list[Task] | None:
    return average(arrays, outs, arrays[0], outs[0], shape, False)


def blocks_average_grad(arrays: list, outs: list, workspace: Workspace, shape) -> list[Task] | None:
    return average(arrays, outs, outs[0], arrays[0], shape, True)


def average(arrays: list, outs: list, x, y, shape: tuple, back: bool) -> list[Task] | None:
    if not fits(arrays, outs) or not math.prod(shape):
        return None
    split = shares(len(x), shape)
    return [average_images(split.chunks, x, y, x.strides[0], y.strides[0], split, shape[0], math.prod(shape[2:]), back)]


lowers(nchw16c.blocks_max_pool2d, blocks_max_pool2d)
lowers(nchw16c.blocks_max_pool2d_grad, blocks_max_pool2d_grad)
lowers(nchw16c.blocks_avg_pool2d, blocks_avg_pool2d)
lowers(nchw16c.blocks_avg_pool2d_grad, blocks_avg_pool2d_grad)
lowers(nchw16c.blocks_average, blocks_average)
lowers(nchw16c.blocks_average_grad, blocks_average_grad)
