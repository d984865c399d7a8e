"""Dense convolutions of images in blocks of 16 channels (`../passes/nchw16c.py`).

1x1 filters are one product over the pixels of all images, read in place. A chunk is some pixels by some filters, which
it packs itself: that costs little beside the product. The gradient of the images is the same product with transposed
filters; that of the filters sums over pixels within a chunk, then over chunks in order. Read next: `conv.py`, for
larger filters.
"""

from __future__ import annotations

import math

import numpy as np

from ..codegen.llvm import LANES
from ..codegen.micro_kernels import DEEP, PANEL, ROWS, VECTORS
from ..codegen.vectors import BOUNDS, filled, load, load_some, store, store_some
from ..lowering import lowers
from ..passes import nchw16c
from ..passes.nchw16c import blocked, by_groups, result_shape
from ..runtime.instructions import instruction, run_routine
from ..runtime.tasks import Task, Workspace
from . import im2col, nchw16c_depthwise
from .conv import finish, pack_panel, row_in, row_out, zero
from .conv_geometry import (
    MOVED,
    NOTHING,
    SPARE,
    ConvGeometry,
    back,
    filtered,
    filters_grad,
    length_of,
    lengths,
    parts_of,
    sizes,
    sum_of_parts,
)
from .gemm_tiles import BYTES, outer, product

WORK = 1 << 21  # multiplications of a chunk
PIXELS_MOST = 1024  # pixels that a chunk sums for the gradient of filters: splitting also rounds less
NEAR = 128  # pixels of a tile in the first-level cache
LEAST = 210  # fewest pixels of a chunk
CACHE = 1 << 17  # elements of a chunk's images, which stay in the second-level cache
SUMMED = 2048  # pixels that are summed in sequence, in four accumulators
PIXELS_LEAST = 256  # fewest pixels of a chunk of images, for the gradient of filters
LEAST_CHUNKS = 8
IMAGES = 4  # a chunk of images gets more work, since it clears padding first
ONE, NONE = (1, 1), (0, 0)


# ---- 1x1 filters -----------------------------------------------------------------------------------------------------


@instruction
def conv1x1(
    chunk,
    scratch,
    x,
    w,
    y,
    bias,
    table,
    pixels,
    channels,
    filters,
    block_rows,
    chunk_pixels,
    chunk_panels,
    transposed,
    count,
    length,
    taps,
    multiply,
    low: float,
    high: float,
    order,
):
    """Compute y = clip(x @ w + bias) for some pixels and panels of filters.

    x, y: blocks of `block_rows` pixels.  table: offsets of the `count` groups of `length` channels.  transposed: 1 for
    the gradient of the images.  multiply: the routine.  order: see `pack_panel`.  scratch: SPARE, then a packed panel.
    """
    parts = ((filters + PANEL - 1) // PANEL + chunk_panels - 1) // chunk_panels
    first, begin = chunk // parts * chunk_pixels, chunk % parts * chunk_panels * PANEL
    rows = min(chunk_pixels, pixels - first)
    for f in range(begin, min(begin + chunk_panels * PANEL, filters), PANEL):
        vectors = VECTORS if filters - f > LANES else 1
        pack_panel(w, f, filters, channels, taps, transposed, order, scratch + SPARE * BYTES, scratch)
        to = y + (f * block_rows + first * LANES) * BYTES
        run_routine(
            multiply,
            rows,
            x + first * LANES * BYTES,
            scratch + SPARE * BYTES,
            table,
            count,
            length * PANEL,
            length,
            to,
            LANES,
            vectors,
            block_rows * LANES,
            0,
        )
        for v in range(0, vectors * LANES, LANES):
            place = to + v * block_rows * BYTES
            finish(place, place, rows, bias + (f + v) * BYTES if bias != 0 else 0, filters - f - v, low, high)


@instruction
def conv1x1_weight_grad(
    chunk,
    scratch,
    grad,
    x,
    parts,
    zero_table,
    pixels,
    filters,
    channels,
    block_rows,
    chunk_pixels,
    chunk_filters,
    part,
    row,
    multiply,
):
    """Sum cotangent times x over some pixels, for some filters: parts[chunk of pixels][filter][channel].

    zero_table: address of a zero.  part, row: elements of a part, and of a row of it.  multiply: the routine.
    """
    groups = (filters + chunk_filters - 1) // chunk_filters
    first, begin = chunk // groups * chunk_pixels, chunk % groups * chunk_filters
    last = min(first + chunk_pixels, pixels)
    target = parts + chunk // groups * part * BYTES
    if pixels == 0:
        zero(target, part)
    for i in range(first, last, NEAR):
        rows = min(NEAR, last - i)
        for f in range(begin, min(begin + chunk_filters, filters), LANES):
            run_routine(
                multiply,
                min(LANES, filters - f),
                grad + (f * block_rows + i * LANES) * BYTES,
                x + i * LANES * BYTES,
                zero_table,
                1,
                0,
                rows,
                target + f * row * BYTES,
                row,
                channels,
                block_rows * LANES,
                i - first,
            )


def filtered_pixels(x, weight, bias, out, pixels, transposed, act=""):
    """Tasks of a convolution with 1x1 filters."""
    channels, filters = weight.shape[:2] if transposed else weight.shape[1::-1]
    all_panels = -(-filters // PANEL)
    at_once = max(LEAST, min(CACHE // channels, WORK // (channels * filters)))
    at_once = over(-(-pixels // max(1, pixels // at_once)) or 1, ROWS[0])  # chunks of nearly equal size
    panels = max(1, min(all_panels, WORK // (at_once * channels * PANEL)))
    length = length_of(channels)
    table = lengths(np.arange(len(x), dtype="i8") * (x.shape[1] * LANES), channels, length)
    return [
        conv1x1(
            -(-pixels // at_once) * -(-all_panels // panels),
            x,
            weight,
            out,
            bias,
            table,
            pixels,
            channels,
            filters,
            x.shape[1],
            at_once,
            panels,
            transposed,
            len(table),
            length,
            1,
            product.address,
            *BOUNDS[act],
            NOTHING,
            scratch=SPARE + len(x) * LANES * PANEL,
        )
    ]


def pixels_grad(grad, x, out, workspace, pixels):
    """Tasks of the gradient of 1x1 filters.

    Either operand can be the one that is read element by element: the one that wastes less work on padding is chosen.
    """
    f, c = out.shape[:2]
    swapped = over(c, DEEP) * over(f, LANES) < over(f, DEEP) * over(c, LANES)
    grad, x, filters, channels = (x, grad, c, f) if swapped else (grad, x, f, c)
    row = len(x) * LANES
    at_once = max(1, min(pixels, PIXELS_MOST))
    several = max(1, WORK // (at_once * row * LANES)) * LANES
    parts = max(1, -(-pixels // at_once))
    direct = parts == 1 and channels == row and filters % DEEP == 0 and not swapped and pixels
    part = len(grad) * LANES * row
    target = out if direct else workspace.take(parts * part)
    steps = [
        conv1x1_weight_grad(
            parts * -(-filters // several),
            grad,
            x,
            target,
            NOTHING,
            pixels,
            filters,
            channels,
            x.shape[1],
            at_once,
            several,
            part,
            row,
            outer.address,
        )
    ]
    return steps if direct else [*steps, sum_of_parts(target, out, parts, part, filters, channels, row, int(swapped))]


def over(count, size):
    """Round up to a multiple of `size`."""
    return -(-count // size) * size


# ---- layout conversion, and sums of channels -------------------------------------------------------------------------


@instruction
def images_to_blocks(chunk, scratch, x, y, images, channels, pixels, block_rows, chunk_images):
    """Convert 16 channels of some images x (images, channels, pixels) to blocks of `block_rows` pixels."""
    blocks = (channels + LANES - 1) // LANES
    block, first = chunk % blocks, chunk // blocks * chunk_images
    some = min(LANES, channels - block * LANES)
    for n in range(first, min(first + chunk_images, images)):
        source = x + (n * channels + block * LANES) * pixels * BYTES
        target = y + (block * block_rows + n * pixels) * LANES * BYTES
        if pixels == 1:
            store(target, load_some(source, some, filled(np.float32(0))))
            continue
        if some < LANES:
            zero(target, pixels * LANES)
        row_in(source, some, pixels, pixels, target)


@instruction
def blocks_to_images(chunk, scratch, x, y, images, channels, pixels, block_rows, chunk_images):
    """Convert 16 channels of some images from blocks of `block_rows` pixels to (images, channels, pixels)."""
    blocks = (channels + LANES - 1) // LANES
    block, first = chunk % blocks, chunk // blocks * chunk_images
    some = min(LANES, channels - block * LANES)
    for n in range(first, min(first + chunk_images, images)):
        source = x + (block * block_rows + n * pixels) * LANES * BYTES
        target = y + (n * channels + block * LANES) * pixels * BYTES
        if pixels == 1:
            store_some(target, some, load(source))
        else:
            row_out(source, some, pixels, pixels, target)


@instruction
def sum_channels(chunk, scratch, x, parts, pixels, blocks, block_rows, chunk_pixels):
    """Sum some pixels of a block of 16 channels, in four accumulators: parts[chunk of pixels][block][16].

    x: blocks of `block_rows` pixels, of which `pixels` exist.
    """
    first, base = chunk // blocks * chunk_pixels, x + chunk % blocks * block_rows * LANES * BYTES
    last = min(first + chunk_pixels, pixels)
    a = b = c = d = filled(np.float32(0))
    while first + 4 <= last:
        place = base + first * LANES * BYTES
        a, b = a + load(place), b + load(place + LANES * BYTES)
        c, d = c + load(place + 2 * LANES * BYTES), d + load(place + 3 * LANES * BYTES)
        first += 4
    for i in range(first, last):
        a = a + load(base + i * LANES * BYTES)
    store(parts + chunk * LANES * BYTES, a + b + (c + d))


def convert_layout(instruction, blocks, images, shape):
    n, channels, pixels = *shape[:2], math.prod(shape[2:])
    arrays = (images, blocks) if instruction is images_to_blocks else (blocks, images)
    at_once = max(1, MOVED // (LANES * max(1, pixels)))
    return [instruction(-(-n // at_once) * len(blocks), *arrays, n, channels, pixels, blocks.shape[1], at_once)]


# ---- builders --------------------------------------------------------------------------------------------------------


def is_product(kernel: tuple, stride: tuple, padding: tuple, **_) -> bool:
    """True if each output pixel depends on one input pixel."""
    return tuple(kernel) == tuple(stride) == ONE and tuple(padding) == NONE


def ready(*arrays: np.ndarray) -> bool:
    return all(array.dtype == np.float32 and array.flags.c_contiguous for array in arrays)


def block_rows(x: np.ndarray) -> int:
    """Rows of a block; 0 for images in NCHW."""
    return 0 if x.ndim == 4 else x.shape[1]


def at_once(s: ConvGeometry) -> int:
    """Images of a chunk."""
    return max(1, min(s.n // LEAST_CHUNKS, IMAGES * WORK // s.multiplied))


def group_by_group(builder, arrays: list, outs: list, workspace: Workspace, groups: int, **attrs) -> list[Task]:
    """Tasks for groups of whole blocks, each a convolution of its own."""
    steps = []
    for g in range(groups):
        some, out = [
            [x[g * len(x) // groups : (g + 1) * len(x) // groups] if isinstance(x, np.ndarray) else x for x in those]
            for those in (arrays, outs)
        ]
        steps += builder(some, out, workspace, groups=1, **attrs)
    return steps


def of_group(shape: tuple, groups: int) -> tuple:
    """Shape of the images of one group."""
    return shape[0], shape[1] // groups, *shape[2:]


def blocks_conv2d(arrays, outs, workspace, shape, groups, act, **window):
    (x, weight, bias), (out,) = arrays, outs
    channels, filters = weight.shape[1], len(weight) // groups
    if groups > 1 and channels == 1:
        return nchw16c_depthwise.blocks_conv2d(arrays, outs, workspace, shape, groups, act, **window)
    if not ready(x, weight) or not by_groups(groups, channels, filters):
        return None
    if groups > 1 and not channels % LANES:
        shape = of_group(shape, groups)
        return group_by_group(blocks_conv2d, arrays, outs, workspace, groups, shape=shape, act=act, **window)
    bias = bias if isinstance(bias, np.ndarray) else 0
    if is_product(weight.shape[2:], **window) and x.ndim == 3 and groups == 1:
        return filtered_pixels(x, weight, bias, out, shape[0] * math.prod(shape[2:]), False, act)
    if groups == 1 and im2col.pays(weight.shape, result_shape(shape, weight.shape, **window), **window):
        return im2col.conv2d(x, weight, out, workspace, shape, **window, bias=bias, act=act)
    rows = block_rows(x), block_rows(out)
    s = sizes(tuple(shape), len(weight), weight.shape[2:], **window, block_rows=rows, groups=groups)
    return filtered(s, x, weight, bias, out, workspace, at_once(s), False, act)


def blocks_conv2d_input_grad(arrays, outs, workspace, shape, groups, **window):
    (grad, weight), (out,) = arrays, outs
    channels, filters = weight.shape[1], len(weight) // groups
    if groups > 1 and channels == 1:
        return nchw16c_depthwise.blocks_conv2d_input_grad(arrays, outs, workspace, shape, groups, **window)
    if not ready(grad, weight) or not by_groups(groups, channels, filters):
        return None
    if groups > 1 and not channels % LANES:
        shape = of_group(shape, groups)
        return group_by_group(blocks_conv2d_input_grad, arrays, outs, workspace, groups, shape=shape, **window)
    if is_product(weight.shape[2:], **window) and groups == 1:
        return filtered_pixels(grad, weight, 0, out, shape[0] * math.prod(shape[2:]), True)
    if groups == 1 and im2col.pays(weight.shape, result_shape(shape, weight.shape, **window), **window):
        return im2col.conv2d_input_grad(grad, weight, out, workspace, shape, **window)
    rows = block_rows(grad), block_rows(out)
    s = back(tuple(shape), len(weight), weight.shape[2:], **window, block_rows=rows, groups=groups)
    return filtered(s, grad, weight, 0, out, workspace, at_once(s), True)


def blocks_conv2d_weight_grad(arrays, outs, workspace, shape, images, groups, **window):
    (grad, x), (out,) = arrays, outs
    channels, filters = shape[1], shape[0] // groups
    if groups > 1 and channels == 1:
        return nchw16c_depthwise.blocks_conv2d_weight_grad(arrays, outs, workspace, shape, images, groups, **window)
    if not ready(grad, x, out) or not by_groups(groups, channels, filters):
        return None
    if groups > 1 and not channels % LANES:
        sizes_of_group = dict(shape=(filters, *shape[1:]), images=of_group(images, groups))
        return group_by_group(blocks_conv2d_weight_grad, arrays, outs, workspace, groups, **sizes_of_group, **window)
    if is_product(shape[2:], **window) and x.ndim == 3 and groups == 1:
        return pixels_grad(grad, x, out, workspace, images[0] * math.prod(images[2:]))
    if groups == 1 and im2col.pays(shape, result_shape(images, shape, **window), **window, for_filters=True):
        return im2col.conv2d_weight_grad(grad, x, out, workspace, images, **window)
    rows = block_rows(x), block_rows(grad)
    s = sizes(tuple(images), shape[0], tuple(shape[2:]), **window, block_rows=rows, groups=groups)
    return filters_grad(s, grad, x, out, workspace, parts_of(s, PIXELS_LEAST // s.pixels))


def to_blocks(arrays, outs, workspace):
    (x,), (out,) = arrays, outs
    return convert_layout(images_to_blocks, out, x, x.shape) if ready(x) else None


def from_blocks(arrays, outs, workspace, shape):
    return convert_layout(blocks_to_images, arrays[0], outs[0], shape)


def in_blocks(x: np.ndarray, workspace: Workspace) -> tuple[np.ndarray, list[Task]]:
    """Convert images to blocks in the workspace; returns them and the tasks."""
    blocks = workspace.array(blocked(x.shape))
    return blocks, convert_layout(images_to_blocks, blocks, x, x.shape)


def out_of_blocks(x: np.ndarray, out: np.ndarray) -> list[Task]:
    return convert_layout(blocks_to_images, x, out, out.shape)


def blocks_channel_sum(arrays, outs, workspace, shape, to):
    (x,), pixels = arrays, shape[0] * math.prod(shape[2:])
    parts, each = max(1, -(-pixels // SUMMED)), len(x) * LANES
    target = workspace.take(parts * each)
    return [
        sum_channels(parts * len(x), x, target, pixels, len(x), x.shape[1], SUMMED),
        sum_of_parts(target, outs[0], parts, each, 1, shape[1], each),
    ]


lowers(nchw16c.to_blocks, to_blocks)
lowers(nchw16c.from_blocks, from_blocks)
lowers(nchw16c.blocks_conv2d, blocks_conv2d)
lowers(nchw16c.blocks_conv2d_input_grad, blocks_conv2d_input_grad)
lowers(nchw16c.blocks_conv2d_weight_grad, blocks_conv2d_weight_grad)
lowers(nchw16c.blocks_channel_sum, blocks_channel_sum)
