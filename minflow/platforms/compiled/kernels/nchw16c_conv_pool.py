"""Dense convolution with max pooling as its epilogue, and the gradient of its filters, image by image.

The output of one image stays in the second-level cache until its windows are compared; bias and activation are applied
to the pooled pixels, since neither changes which one is the largest. In the gradient, the cotangent of an image is
expanded from that of its windows just before it is read. Semantics: `../passes/nchw16c.py`. Read next:
`nchw16c_pool.py`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ....core.ops.conv import positions
from ..codegen.llvm import LANES
from ..codegen.vectors import BOUNDS, BYTES
from ..lowering import lowers
from ..passes import nchw16c
from ..runtime.instructions import InnerTask, instruction
from ..runtime.task_scheduler import call
from ..runtime.tasks import Task, Workspace
from . import im2col
from .conv import finish, zero
from .conv_geometry import filtered, filters_grad, parts_of, sizes
from .nchw16c_conv import PIXELS_LEAST, at_once, block_rows, ready
from .nchw16c_norm import STEP
from .nchw16c_pool import LARGEST, LARGEST_2, MANY, RETURNED, RETURNED_2, TWO


class ImageWindows(NamedTuple):
    """Pooling windows of one image, and where they are in memory.

    pooled_block: bytes between blocks of the pooled images.  block, row: elements between blocks, and between rows, of
    the image.  height, width: of the pooled image.  kh, kw: of a window.  down, step: elements between windows.
    """

    pooled_block: int
    block: int
    row: int
    height: int
    width: int
    kh: int
    kw: int
    down: int
    step: int


@instruction
def pool_image(n, image, y, places, bias, filters, w: ImageWindows, low: float, high: float):
    """Pool image n, [block][row][pixel][16], then add bias (filters,) or 0, and clip to [low, high]."""
    for block in range((filters + LANES - 1) // LANES):
        source, first = image + block * w.block * BYTES, block * w.pooled_block + n * w.height * w.width * STEP
        to = first
        for i in range(w.height):
            if w.kh == w.kw == TWO:
                LARGEST_2(source, w.row, LANES, w.step, 0, 0, 0, 0, w.width, y + to, places + to // BYTES)
            else:
                LARGEST(source, w.row, LANES, w.step, w.kh, w.kw, 0, w.kw, w.width, y + to, places + to // BYTES)
            source, to = source + w.down * BYTES, to + w.width * STEP
        finish(
            y + first,
            y + first,
            w.height * w.width,
            bias + block * STEP if bias != 0 else 0,
            filters - block * LANES,
            low,
            high,
        )


@instruction
def unpool_image(n, image, grad, places, whole, blocks, w: ImageWindows):
    """Expand the cotangent of image n to [block][row][pixel][16].

    whole: 1 for TWO x TWO windows that cover each pixel exactly once; others may overlap, or leave pixels out.
    """
    for block in range(blocks):
        target, source = image + block * w.block * BYTES, block * w.pooled_block + n * w.height * w.width * STEP
        if not whole:
            zero(target, w.block)
        for i in range(w.height):
            if whole:
                RETURNED_2(target, w.row, LANES, w.step, 0, 0, 0, 0, w.width, grad + source, places + source // BYTES)
            else:
                RETURNED(
                    target, w.row, LANES, w.step, w.kh, w.kw, 0, w.kw, w.width, grad + source, places + source // BYTES
                )
            target, source = target + w.down * BYTES, source + w.width * STEP


def windows(array, row: int, block: int, size: tuple, kernel_size: tuple, stride: tuple) -> ImageWindows:
    """Windows of one image.

    array: the pooled images, in blocks.  row, block: elements between rows, and between blocks, of the image.
    """
    pooled = positions(size, kernel_size, stride, (0, 0))
    return ImageWindows(array.strides[0], block, row, *pooled, *kernel_size, stride[0] * row, stride[1] * LANES)


@instruction
def each_image(n, scratch, images, size, task: InnerTask):
    """Run a task of one image on image n, in place. size: elements from image to image."""
    call(task.code, task.words, n, images + n * size * BYTES)


def blocks_conv2d_max_pool2d(
    arrays, outs, workspace: Workspace, shape, groups, act, kernel_size, window_stride, **window
) -> list[Task] | None:
    (x, weight, bias), (y, places) = arrays, outs
    if not ready(x, weight, y) or not len(weight) or groups > 1 or math.prod(kernel_size) > MANY:
        return None
    s = sizes(tuple(shape), len(weight), weight.shape[2:], **window, block_rows=(block_rows(x), 0))

    def after(row: int, block: int) -> Task:
        return pool_image(
            1, y, places, bias, s.filters, windows(y, row, block, s.size, kernel_size, window_stride), *BOUNDS[act]
        )

    results = s.n, s.filters, *s.size
    if im2col.pays(weight.shape, results, **window):
        image = workspace.array((s.n, len(y), *s.size, LANES))
        convolving = im2col.conv2d(x, weight, image, workspace, shape, **window)
        pooling = after(s.size[1] * LANES, s.pixels * LANES)
        return [*convolving, each_image(s.n, image, image[0].size, pooling)]
    return filtered(s, x, weight, 0, y, workspace, at_once(s), after=after)


def blocks_max_pool2d_weight_grad(
    arrays, outs, workspace: Workspace, shape, images, groups, kernel_size, window_stride, **window
) -> list[Task] | None:
    (grad, places, x), (out,) = arrays, outs
    if not ready(grad, x, out) or not len(grad) or groups > 1 or math.prod(kernel_size) > MANY:
        return None
    s = sizes(tuple(images), shape[0], tuple(shape[2:]), **window, block_rows=(block_rows(x), 0))
    whole = tuple(kernel_size) == tuple(window_stride) == (TWO, TWO) and not any(n % TWO for n in s.size)

    def before(row: int, block: int) -> Task:
        return unpool_image(
            1, grad, places, whole, len(grad), windows(grad, row, block, s.size, kernel_size, window_stride)
        )

    results = s.n, s.filters, *s.size
    if im2col.pays(shape, results, **window, for_filters=True):
        image = workspace.array((s.n, len(grad), *s.size, LANES))
        unpooling = each_image(s.n, image, image[0].size, before(s.size[1] * LANES, s.pixels * LANES))
        return [unpooling, *im2col.conv2d_weight_grad(image, x, out, workspace, images, **window)]
    return filters_grad(s, grad, x, out, workspace, parts_of(s, PIXELS_LEAST // s.pixels), before)


lowers(nchw16c.blocks_conv2d_max_pool2d, blocks_conv2d_max_pool2d)
lowers(nchw16c.blocks_max_pool2d_weight_grad, blocks_max_pool2d_weight_grad)
