"""Interpolation of images in NCHW and in blocks, and its gradient: sums of a few weighted pixels along each axis.

Along columns, NCHW images are transposed 16 lines at a time, so that a vector holds one pixel of each line; along rows,
a vector holds adjacent pixels. A chunk computes some lines of the result; its intermediate lines stay in the cache. The
gradient is a sum of weighted pixels, too: the taps of an axis are sorted by the pixel that they read. Semantics:
`core/ops/interpolation.py`. Read next: `nchw16c_pool.py`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ....core.ops import interpolation as ops
from ....core.ops.interpolation import axis_taps, changed_axes
from ....core.spec import Spec, float32 as float32_dtype
from ..codegen.jit import compiled, float32, inlined
from ..codegen.llvm import LANES, copy_transposed, number_at
from ..codegen.vectors import BYTES, filled, load, load_some, store, store_some
from ..lowering import lowers
from ..passes import nchw16c
from ..runtime.instructions import instruction, word_at
from ..runtime.pointers import BlockSplit, split_blocks
from ..runtime.tasks import Task, Workspace
from .nchw16c_norm import STEP, fits

MOST, LEAST = 8192, 4096  # most and fewest pixels of a chunk of blocks
CHUNK = 1 << 15  # pixels of a chunk of NCHW images
TILE = LANES * LANES


class AxisTaps(NamedTuple):
    """Taps of an axis: output i sums the entries from starts[i] to starts[i + 1].

    places, weights: of each entry; weights are 0 if they are all 1.  size, many: of the axis before and after.  starts
    is 0 if the axis does not change.
    """

    starts: Any
    places: Any
    weights: Any
    size: int
    many: int


@inlined
def weight_of(axis, entry):
    return number_at(axis.weights, entry) if axis.weights else float32(1)


@compiled
def along_columns(axis, source, target):
    """Compute vectors of a line from vectors of another."""
    for i in range(axis.many):
        entry, end = word_at(axis.starts, i), word_at(axis.starts, i + 1)
        found = filled(float32(0))
        if entry < end:
            found = load(source + word_at(axis.places, entry) * STEP) * filled(weight_of(axis, entry))
        for k in range(entry + 1, end):
            x = load(source + word_at(axis.places, k) * STEP)
            found = found + x * filled(weight_of(axis, k))
        store(target + i * STEP, found)


@compiled
def along_rows(axis, i, source, row, count, target):
    """Compute line i of `count` elements. source: the first line of the plane.  row: bytes from line to line."""
    first, end, zeros = word_at(axis.starts, i), word_at(axis.starts, i + 1), filled(float32(0))
    place, weight = word_at(axis.places, first), filled(weight_of(axis, first)) if first < end else zeros
    line = source + place * row if first < end else source
    k, whole = 0, count - count % LANES
    while k + 4 * LANES <= whole:
        p = line + k * BYTES
        a, b = load(p) * weight, load(p + STEP) * weight
        c, d = load(p + 2 * STEP) * weight, load(p + 3 * STEP) * weight
        for entry in range(first + 1, end):
            p, w = source + word_at(axis.places, entry) * row + k * BYTES, filled(weight_of(axis, entry))
            a, b = a + load(p) * w, b + load(p + STEP) * w
            c, d = c + load(p + 2 * STEP) * w, d + load(p + 3 * STEP) * w
        p = target + k * BYTES
        store(p, a)
        store(p + STEP, b)
        store(p + 2 * STEP, c)
        store(p + 3 * STEP, d)
        k += 4 * LANES
    while k < count:
        some = min(LANES, count - k)
        a = load_some(line + k * BYTES, some, zeros) * weight
        for entry in range(first + 1, end):
            p, w = source + word_at(axis.places, entry) * row + k * BYTES, filled(weight_of(axis, entry))
            a = a + load_some(p, some, zeros) * w
        store_some(target + k * BYTES, some, a)
        k += LANES


@compiled
def transposed(source, row, lines, count, target, spare, back):
    """Transpose up to 16 lines of `count` elements to vectors of one element of each line; or (back) vectors to lines.

    row: bytes from line to line.  spare: memory of a tile.
    """
    zeros = filled(float32(0))
    for j in range(0, count, LANES):
        some = min(LANES, count - j)
        lane, vectors = source + j * BYTES, target + j * STEP
        if some == LANES and lines == LANES:
            if back:
                copy_transposed(vectors, LANES, lane, row // BYTES)
            else:
                copy_transposed(lane, row // BYTES, vectors, LANES)
        elif back:
            copy_transposed(vectors, LANES, spare, LANES)
            for r in range(lines):
                store_some(lane + r * row, some, load(spare + r * STEP))
        else:
            for r in range(lines):
                store(spare + r * STEP, load_some(lane + r * row, some, zeros))
            copy_transposed(spare, LANES, vectors, LANES)


@compiled
def along_lines(axis, blocked, source, source_row, lines, target, target_row, spare):
    """Compute lines from as many others, along their columns. blocked: 1 if a pixel is a vector."""
    if blocked:
        for line in range(lines):
            along_columns(axis, source + line * source_row, target + line * target_row)
        return
    vectors = spare + TILE * BYTES
    found = vectors + (axis.size + LANES - 1) // LANES * LANES * STEP
    for line in range(0, lines, LANES):
        some = min(LANES, lines - line)
        transposed(source + line * source_row, source_row, some, axis.size, vectors, spare, 0)
        along_columns(axis, vectors, found)
        transposed(target + line * target_row, target_row, some, axis.many, found, spare, 1)


@instruction
def interpolate_lines(
    chunk,
    scratch,
    x,
    y,
    rows: AxisTaps,
    columns: AxisTaps,
    x_row,
    y_row,
    x_block,
    y_block,
    lines,
    split: BlockSplit,
    blocked,
    rows_first,
    spare,
):
    """Compute lines of y from lines of x, along columns, then rows; or (rows_first) along rows, then columns.

    x_row, x_block: bytes from line to line, and from block to block.  lines: of y in a block.  blocked: 1 if a pixel is
    a vector.  spare: float32 of scratch for one transposition.
    """
    piece, start = chunk % split.pieces, chunk // split.pieces * split.chunk_blocks
    first, last, n, m = piece * lines // split.pieces, (piece + 1) * lines // split.pieces, rows.size, rows.many
    middle, across = scratch + spare * BYTES, x_row if rows_first else y_row
    wide = (across + STEP - 1) // STEP * STEP
    for block in range(start, min(start + split.chunk_blocks, split.blocks)):
        source, target = x + block * x_block, y + block * y_block
        if rows.starts == 0:
            from_line, to_line = source + first * x_row, target + first * y_row
            along_lines(columns, blocked, from_line, x_row, last - first, to_line, y_row, scratch)
        elif columns.starts == 0:
            for line in range(first, last):
                plane = source + line // m * n * x_row
                along_rows(rows, line % m, plane, x_row, x_row // BYTES, target + line * y_row)
        elif rows_first:
            for line in range(first, last, LANES):
                some = min(LANES, last - line)
                for r in range(line, line + some):
                    plane = source + r // m * n * x_row
                    along_rows(rows, r % m, plane, x_row, x_row // BYTES, middle + (r - line) * wide)
                along_lines(columns, blocked, middle, wide, some, target + line * y_row, y_row, scratch)
        else:
            low = first // m * n + word_at(rows.places, word_at(rows.starts, first % m))
            high = (last - 1) // m * n + word_at(rows.places, word_at(rows.starts, (last - 1) % m + 1) - 1) + 1
            along_lines(columns, blocked, source + low * x_row, x_row, high - low, middle, wide, scratch)
            for line in range(first, last):
                plane = middle + (line // m * n - low) * wide
                along_rows(rows, line % m, plane, wide, y_row // BYTES, target + line * y_row)


# ---- builders --------------------------------------------------------------------------------------------------------


def unchanged(size: int) -> AxisTaps:
    return AxisTaps(0, 0, 0, size, size)


def changes(axis: AxisTaps) -> bool:
    return isinstance(axis.starts, np.ndarray)


def axes_of(shape: tuple[int, ...], attrs: Mapping, back: bool) -> list[AxisTaps]:
    """Taps of depth, rows and columns of images, or of their gradient. shape: of the images before."""
    axes = [unchanged(n) for n in (1, 1, *shape[2:])[-3:]]
    for axis, taps in axis_taps(shape, float32_dtype, **attrs):
        places = np.array([p for p, _ in taps])  # (taps, outputs)
        weights = np.array([np.ones(len(p)) if w is None else w for p, w in taps], "f4")
        (each, many), size = places.shape, shape[axis]
        if back:  # the entries of a pixel are the outputs that read it
            order = np.argsort(places, axis=None, kind="stable")
            starts = np.searchsorted(places.ravel()[order], np.arange(size + 1))
            read, factors, size, many = order % many, weights.ravel()[order], many, size
        else:
            starts, read, factors = np.arange(many + 1) * each, places.T.ravel(), weights.T.ravel()
        axes[axis - len(shape)] = AxisTaps(starts, read, 0 if taps[0][1] is None else factors, size, many)
    return axes


def padded(count: int) -> int:
    return -(-count // LANES) * LANES


class Blocks(NamedTuple):
    """Blocks of images: how many, and the bytes from block to block in x and y."""

    number: int
    x_bytes: int
    y_bytes: int


def lines_task(x, y, planes: int, rows: AxisTaps, columns: AxisTaps, back: bool, blocks: Blocks | None = None) -> Task:
    """The task that computes planes along rows and columns."""
    copies = not isinstance(rows.weights, np.ndarray)  # has the same bits in either order
    rows_first = back or (copies and rows.many < rows.size)
    lanes, lines = LANES if blocks else 1, planes * rows.many
    pixels = planes * max(rows.size, rows.many) * max(columns.size, columns.many)
    if blocks:
        split, spare = split_blocks(blocks.number, pixels, MOST, LEAST, lines), 0
    else:
        split = BlockSplit(1, 1, min(lines, -(-pixels // CHUNK)))
        spare = TILE + (padded(columns.size) + padded(columns.many)) * LANES
    middle = LANES * padded(columns.size * lanes) if rows_first else 0
    if changes(rows) and not rows_first:
        ends = np.arange(split.pieces + 1) * lines // split.pieces
        (plane, i), (last_plane, j) = np.divmod(ends[:-1], rows.many), np.divmod(ends[1:] - 1, rows.many)
        low = plane * rows.size + rows.places[rows.starts[i]]
        high = last_plane * rows.size + rows.places[rows.starts[j + 1] - 1]
        middle = int((high - low).max() + 1) * padded(columns.many * lanes)
    return interpolate_lines(
        split.chunks,
        x,
        y,
        rows=rows,
        columns=columns,
        x_row=columns.size * lanes * BYTES,
        y_row=columns.many * lanes * BYTES,
        x_block=blocks.x_bytes if blocks else 0,
        y_block=blocks.y_bytes if blocks else 0,
        lines=lines,
        split=split,
        blocked=blocks is not None,
        rows_first=rows_first,
        spare=spare,
        scratch=spare + middle,
    )


def interpolate(arrays: list, outs: list, workspace: Workspace, **attrs) -> list[Task] | None:
    """Tasks for images, or for signals or volumes: along rows and columns, then along depth."""
    (x,), (y,) = arrays, outs
    if not fits(arrays, outs):
        return None
    (depth, rows, columns), planes = axes_of(x.shape, attrs, False), math.prod(x.shape[:2])
    if not changes(depth):
        return [lines_task(x, y, planes * depth.size, rows, columns, False)]
    tasks, plane = [], rows.many * columns.many
    if changes(rows) or changes(columns):
        middle = workspace.take(planes * depth.size * plane)
        tasks, x = [lines_task(x, middle, planes * depth.size, rows, columns, False)], middle
    return [*tasks, lines_task(x, y, planes, depth, unchanged(plane), False)]


def interpolate_grad(arrays: list, outs: list, workspace: Workspace, needs, **attrs) -> list[Task] | None:
    grad, (gx,) = arrays[0], outs
    if not fits([grad], outs):
        return None
    (depth, rows, columns), planes = axes_of(gx.shape, attrs, True), math.prod(gx.shape[:2])
    images = lambda grad: lines_task(grad, gx, planes * depth.many, rows, columns, True)
    if not changes(depth):
        return [images(grad)]
    plane, flat = rows.size * columns.size, not changes(rows) and not changes(columns)
    middle = gx if flat else workspace.take(planes * depth.many * plane)
    task = lines_task(grad, middle, planes, depth, unchanged(plane), True)
    return [task] if flat else [task, images(middle)]


def blocks_interpolate(arrays, outs, workspace: Workspace, shape, **attrs) -> list[Task] | None:
    return images_in_blocks(arrays, outs, shape, attrs, False)


def blocks_interpolate_grad(arrays, outs, workspace: Workspace, shape, **attrs) -> list[Task] | None:
    return images_in_blocks(arrays, outs, shape, attrs, True)


def images_in_blocks(arrays, outs, shape: tuple, attrs: Mapping, back: bool) -> list[Task] | None:
    (x,), (y,) = arrays, outs
    if not fits(arrays, outs):
        return None
    _, rows, columns = axes_of(shape, attrs, back)
    return [lines_task(x, y, shape[0], rows, columns, back, Blocks(len(x), x.strides[0], y.strides[0]))]


def is_supported(x: Spec, output_size, factors, **options) -> bool:
    """True for float32 images, signals or volumes that change."""
    alike = x.dtype is float32_dtype and x.size > 0 and x.placement is None
    return alike and bool(changed_axes(x.shape, output_size, factors))


lowers(ops.interpolate, interpolate, accepts=is_supported, tolerance=0.0)
lowers(
    ops.interpolate.gradient,
    interpolate_grad,
    accepts=lambda grad, x, needs, **attrs: is_supported(x, **attrs) and grad.placement is None,
)
lowers(nchw16c.blocks_interpolate, blocks_interpolate)
lowers(nchw16c.blocks_interpolate_grad, blocks_interpolate_grad)
