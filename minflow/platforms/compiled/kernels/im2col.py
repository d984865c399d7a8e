"""Convolutions as one matrix product over the positions of all images (im2col), for small images with many channels.

There the filters are most of the data. This product reads them once, in their own layout, where `conv.py` would pack
or transform them for a few pixels; and it writes their gradient once, where `conv.py` would add to it for each image.
A row of the im2col matrix holds what one tap of the filters reads in one channel, ordered by position and then by
image, so that short rows of pixels become long runs. Rows are written in the packed layout of `gemm.py`. Images may be
NCHW, or in blocks of 16 channels. Source: Chellapilla et al. 2006. Read next: `gemm.py`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ....core.ops.conv import positions
from ..codegen.jit import compiled
from ..codegen.llvm import LANES, clear, copy, copy_transposed, number_at, put
from ..codegen.micro_kernels import PANEL
from ..codegen.vectors import BOUNDS, clipped, filled, load, load_some, store_some
from ..runtime.instructions import instruction
from ..runtime.tasks import Task, Workspace
from .conv import over, zero
from .gemm import PackedMatrix, block_stride, panel_stride, product
from .gemm_tiles import BYTES

LEFT, RIGHT, RIGHT_TRANSPOSED = range(3)  # the side of a product that the rows are packed for
MOVED = 1 << 16  # elements that a memory-bound chunk writes
# Least elements of all filters per position at which this product is faster: for results and gradients of images, and
# of filters; for images of fewer positions than in the keys, whose tiles `conv.py` does not fill.
LEAST = {16: 512, math.inf: 2048}
LEAST_FOR_FILTERS = {64: 64, math.inf: 256}
RUN_WORK = 512  # least multiplications per vector of a run that is gathered or scattered, for results and images
LEAST_FILTERS = 64  # that share what is gathered for their gradient
LARGE_IMAGES = 64  # pixels from which products with 1x1 filters are left to NumPy


class Windows(NamedTuple):
    """The windows of a filter in images (images, channels, height, width).

    down, across: rows and columns of a padded plane.  rows, columns: positions of the filter.  kernel: width of the
    filter, of `taps` taps.
    """

    images: int
    channels: int
    height: int
    width: int
    top: int
    left: int
    down: int
    across: int
    rows: int
    columns: int
    kernel: int
    taps: int
    stride_h: int
    stride_w: int
    dilation_h: int
    dilation_w: int

    @property
    def positions(self) -> int:
        """Positions in all images."""
        return self.images * self.rows * self.columns

    @property
    def depth(self) -> int:
        """Elements of a filter."""
        return self.channels * self.taps

    @property
    def plane(self) -> int:
        """Elements of a padded plane of all images, and of a vector beyond its end."""
        return -(-self.images * self.down * self.across // LANES) * LANES + LANES

    @property
    def line(self) -> int:
        """Elements of a row of the matrix, and of a vector beyond its end."""
        return -(-self.positions // LANES) * LANES + LANES


def windows(x: tuple, kernel: tuple, stride: tuple, padding: tuple, dilation: tuple) -> Windows:
    """The windows of filters of this size in images of shape x."""
    n, c, h, w = x
    padded = h + 2 * padding[0], w + 2 * padding[1]
    size = positions((h, w), kernel, stride, padding, dilation)
    return Windows(n, c, h, w, *padding, *padded, *size, kernel[1], math.prod(kernel), *stride, *dilation)


class ImageLayout(NamedTuple):
    """Where images are: element (n, c, pixel) is at n * image + c / lanes * block + pixel * lanes + c % lanes.

    lanes: channels of a block, 16; or 1 for NCHW.
    """

    lanes: int
    block: int
    image: int


def image_layout(x: np.ndarray, shape: tuple) -> ImageLayout:
    """The layout of images: NCHW, [block][pixel of all images][16], or [image][block][row][column][16]."""
    size = math.prod(shape[2:])
    if x.ndim == 4:
        return ImageLayout(1, size, shape[1] * size)
    if x.ndim == 3:
        return ImageLayout(LANES, x.shape[1] * LANES, size * LANES)
    return ImageLayout(LANES, size * LANES, x[0].size)


def pays(weight: tuple, results: tuple, stride: tuple, padding: tuple, for_filters: bool = False, **_) -> bool:
    """True if this product is faster than the other algorithms: there are many filters, and few positions.

    weight, results: shapes of the filters and of their results.  for_filters: True for the gradient of filters.
    """
    size, pointwise = math.prod(results[2:]), math.prod(weight[2:]) == 1
    if pointwise and math.prod(stride) == 1 and not any(padding):  # other products need no im2col of larger images
        return not for_filters and results[0] >= LANES and LANES < size < LARGE_IMAGES
    table = LEAST_FOR_FILTERS if for_filters and not pointwise else LEAST
    least = next(least for most, least in table.items() if size < most)
    n, f, rows, columns = results
    runs = rows * -(-columns * n // LANES) if stride[1] == 1 else size * -(-n // LANES)
    shared = f >= LEAST_FILTERS if for_filters else f * n * size >= RUN_WORK * runs
    return shared and math.prod(weight) >= least * n * size > 0


# ---- rows of the matrix ----------------------------------------------------------------------------------------------


@compiled
def plane_of(x, layout, n, channel):
    """Address of the first pixel of a channel of an image."""
    return x + (n * layout.image + channel // layout.lanes * layout.block + channel % layout.lanes) * BYTES


@compiled
def is_matrix(layout, w):
    """True if a channel of all images is a matrix (images, pixels) of whole tiles, without padding."""
    size = w.height * w.width
    return layout.lanes == 1 and w.down * w.across == size and min(w.images, size) >= LANES


@compiled
def transpose(source, source_row, rows, columns, target, target_row):
    """Transpose a matrix of at least 16 rows and columns; the last tiles overlap others."""
    for i in range(0, rows, LANES):
        first = min(i, rows - LANES)
        for j in range(0, columns, LANES):
            start = min(j, columns - LANES)
            tile = source + (first * source_row + start) * BYTES
            copy_transposed(tile, source_row, target + (start * target_row + first) * BYTES, target_row)


@compiled
def plane_in(x, layout, channel, w, plane):
    """Copy a channel of all images to [row][column][image], with its padding."""
    if is_matrix(layout, w):
        source, size = plane_of(x, layout, 0, channel), w.height * w.width
        transpose(source, layout.image, w.images, size, plane, w.images)
        return
    zero(plane, over(w.images * w.down * w.across, LANES))
    for n in range(w.images):
        source = plane_of(x, layout, n, channel)
        for i in range(w.height):
            target = plane + (((i + w.top) * w.across + w.left) * w.images + n) * BYTES
            for j in range(w.width):
                put(target, j * w.images, number_at(source, (i * w.width + j) * layout.lanes))


@compiled
def run_in(source, count, target):
    """Copy contiguous elements in whole vectors, beyond the end."""
    for i in range(0, count, LANES):
        copy(target + i * BYTES, source + i * BYTES)


@compiled
def row_in(plane, tap, w, target):
    """Gather what a tap reads in a plane, and a vector of zeros."""
    first = tap // w.kernel * w.dilation_h * w.across + tap % w.kernel * w.dilation_w
    for i in range(w.rows):
        source = plane + (first + i * w.stride_h * w.across) * w.images * BYTES
        if w.stride_w == 1:
            run_in(source, w.columns * w.images, target)
            target += w.columns * w.images * BYTES
        else:
            for j in range(w.columns):
                run_in(source + j * w.stride_w * w.images * BYTES, w.images, target)
                target += w.images * BYTES
    clear(target)


@instruction
def gather(chunk, scratch, x, layout: ImageLayout, target, w: Windows, plane, line, side, stride, chunk_rows):
    """Pack some rows of the im2col matrix of images x as one side of a product, with zeros up to a multiple of 16.

    plane, line: elements of a plane and of a row.  stride: elements between blocks of the left side, or panels of the
    right one.  scratch: 16 rows and a plane.
    """
    positions, rows, channel = w.images * w.rows * w.columns, w.channels * w.taps, -1
    planes = scratch + LANES * line * BYTES
    for r in range(chunk * chunk_rows, min((chunk + 1) * chunk_rows, over(rows, LANES))):
        row = scratch + r % LANES * line * BYTES
        if r < rows:
            if r // w.taps != channel:
                channel = r // w.taps
                plane_in(x, layout, channel, w, planes)
            row_in(planes, r % w.taps, w, row)
        else:
            zero(row, line)
        if side == LEFT:
            for j in range(0, positions, LANES):
                copy(target + (j // LANES * stride + r * LANES) * BYTES, row + j * BYTES)
        elif side == RIGHT:
            for j in range(0, positions, LANES):
                copy(target + (j // PANEL * stride + r * PANEL + j % PANEL) * BYTES, row + j * BYTES)
        elif r % LANES == LANES - 1:
            first = target + (r // PANEL * stride + r // LANES * LANES % PANEL) * BYTES
            for j in range(0, positions, LANES):
                copy_transposed(scratch + j * BYTES, line, first + j * PANEL * BYTES, PANEL)


@compiled
def add_run(source, count, target):
    """target += source."""
    zeros = filled(np.float32(0))
    for i in range(0, count, LANES):
        some, to = min(LANES, count - i), target + i * BYTES
        store_some(to, some, load_some(to, some, zeros) + load(source + i * BYTES))


@compiled
def add_row(source, tap, w, plane):
    """Add a row of the matrix to the elements of a plane that the tap reads."""
    first = tap // w.kernel * w.dilation_h * w.across + tap % w.kernel * w.dilation_w
    for i in range(w.rows):
        target = plane + (first + i * w.stride_h * w.across) * w.images * BYTES
        if w.stride_w == 1:
            add_run(source, w.columns * w.images, target)
            source += w.columns * w.images * BYTES
        else:
            for j in range(w.columns):
                add_run(source, w.images, target + j * w.stride_w * w.images * BYTES)
                source += w.images * BYTES


@compiled
def plane_out(plane, out, layout, channel, w):
    """Copy [row][column][image] to a channel of all images, without its padding."""
    if is_matrix(layout, w):
        target = plane_of(out, layout, 0, channel)
        transpose(plane, w.images, w.height * w.width, w.images, target, layout.image)
        return
    for n in range(w.images):
        target = plane_of(out, layout, n, channel)
        for i in range(w.height):
            line = plane + (((i + w.top) * w.across + w.left) * w.images + n) * BYTES
            for j in range(w.width):
                put(target, (i * w.width + j) * layout.lanes, number_at(line, j * w.images))


@compiled
def finish(row, count, bias, low, high):
    """row = clip(row + bias)."""
    more, low, high = filled(np.float32(bias)), filled(np.float32(low)), filled(np.float32(high))
    for i in range(0, count, LANES):
        some, place = min(LANES, count - i), row + i * BYTES
        store_some(place, some, clipped(load(place) + more, low, high))


@instruction
def scatter(
    chunk, scratch, matrix, out, layout: ImageLayout, w: Windows, bias, low: float, high: float, chunk_channels
):
    """Add the rows of an im2col matrix to images, for some channels: the transpose of `gather`.

    Lanes beyond the channels become zeros.  bias, low, high: epilogue of a convolution, for the windows of its results;
    0 and NaN for none.  scratch: a plane.
    """
    positions = w.images * w.rows * w.columns
    whole = w.taps == 1 and w.down == w.rows == w.height and w.across == w.columns == w.width
    for channel in range(chunk * chunk_channels, min((chunk + 1) * chunk_channels, over(w.channels, layout.lanes))):
        source, plane = matrix + channel * w.taps * positions * BYTES, scratch
        if whole and channel < w.channels:
            plane = source
            if bias or low == low:
                finish(source, positions, number_at(bias, channel) if bias else np.float32(0), low, high)
        else:
            zero(plane, over(w.images * w.down * w.across, LANES))
            for tap in range(w.taps if channel < w.channels else 0):
                add_row(source + tap * positions * BYTES, tap, w, plane)
        plane_out(plane, out, layout, channel, w)


# ---- builders --------------------------------------------------------------------------------------------------------


def gathered(x: np.ndarray, shape: tuple, w: Windows, side: int, workspace: Workspace) -> tuple[Task, PackedMatrix]:
    """The task that packs the im2col matrix of images, (depth, positions), as a side of a product; and that side."""
    rows, columns = (w.positions, w.depth) if side == RIGHT_TRANSPOSED else (w.depth, w.positions)
    stride = block_stride(rows) if side == LEFT else panel_stride(rows)
    packed = workspace.take(-(-columns // (LANES if side == LEFT else PANEL)) * stride)
    at_once = -(-MOVED // w.line // PANEL) * PANEL
    chunks, scratch, layout = -(-w.depth // at_once), LANES * w.line + w.plane, image_layout(x, shape)
    task = gather(chunks, x, layout, packed, w, w.plane, w.line, side, stride, at_once, scratch=scratch)
    return task, PackedMatrix((rows, columns), packed)


def scattered(matrix: np.ndarray, out: np.ndarray, shape: tuple, w: Windows, bias: object = 0, act: str = "") -> Task:
    """The task that adds a matrix (depth, positions) to zeroed images of this shape."""
    layout = image_layout(out, shape)
    at_once = -(-max(1, MOVED // (w.taps * w.positions)) // layout.lanes) * layout.lanes
    return scatter(-(-w.channels // at_once), matrix, out, layout, w, bias, *BOUNDS[act], at_once, scratch=w.plane)


def of_results(shape: tuple) -> Windows:
    """The windows of 1x1 filters, for results, whose matrix (channels, positions) has the same elements."""
    return windows(shape, (1, 1), (1, 1), (0, 0), (1, 1))


def conv2d(
    x: np.ndarray,
    weight: np.ndarray,
    out: np.ndarray,
    workspace: Workspace,
    shape: tuple,
    bias: object = 0,
    act: str = "",
    **window: tuple,
) -> list[Task]:
    """Tasks of a convolution of images of this shape. bias: an array, or 0."""
    w, filters = windows(shape, weight.shape[2:], **window), len(weight)
    results = shape[0], filters, w.rows, w.columns
    packing, columns = gathered(x, shape, w, RIGHT, workspace)
    y = workspace.array((filters, w.positions))
    multiplying = product(weight.reshape(filters, -1), columns, y, workspace) or []
    return [packing, *multiplying, scattered(y, out, results, of_results(results), bias, act)]


def conv2d_input_grad(
    grad: np.ndarray, weight: np.ndarray, out: np.ndarray, workspace: Workspace, shape: tuple, **window: tuple
) -> list[Task]:
    """Tasks of the gradient of images of this shape."""
    w, filters = windows(shape, weight.shape[2:], **window), len(weight)
    results = shape[0], filters, w.rows, w.columns
    packing, columns = gathered(grad, results, of_results(results), RIGHT, workspace)
    y = workspace.array((w.depth, w.positions))
    multiplying = product(weight.reshape(filters, -1).T, columns, y, workspace) or []
    return [packing, *multiplying, scattered(y, out, shape, w)]


def conv2d_weight_grad(
    grad: np.ndarray, x: np.ndarray, out: np.ndarray, workspace: Workspace, shape: tuple, **window: tuple
) -> list[Task]:
    """Tasks of the gradient of filters, from images of this shape."""
    w, filters = windows(shape, out.shape[2:], **window), len(out)
    results = shape[0], filters, w.rows, w.columns
    packing_grad, left = gathered(grad, results, of_results(results), LEFT, workspace)
    packing, right = gathered(x, shape, w, RIGHT_TRANSPOSED, workspace)
    return [packing_grad, packing, *(product(left, right, out.reshape(filters, -1), workspace) or [])]
