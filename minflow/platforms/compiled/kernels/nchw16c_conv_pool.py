"""Dense convolution with max pooling as its epilogue, and the gradient of its filters, image by image.

The output of one image stays in the second-level cache until its windows are compared; bias and activation are applied
to the pooled pixels, since neither changes which one is the largest. In the gradient, the cotangent of an image is
expanded from that of its windows just before it is read. Semantics: `compiler/fusion/nchw16c.py`. Read next:
`nchw16c_pool.py`.
"""

from __future__ import annotations

import math

from ....compiler.fusion import nchw16c
from ....core.ops.conv import positions
from ..codegen.llvm import LANES
from ..codegen.vectors import BOUNDS, BYTES
from ..lowering import lowers
from ..runtime.instructions import instruction, real_at, word_at
from ..runtime.tasks import Task, Workspace
from .conv import finish, zero
from .conv_geometry import filtered, filters_grad, parts_of, sizes
from .nchw16c_conv import PIXELS_LEAST, at_once, ready, room_of
from .nchw16c_norm import STEP
from .nchw16c_pool import LARGEST, LARGEST_2, MANY, RETURNED, RETURNED_2, TWO


@instruction
def image_pooled(words, n, image):
    """Pool image n, [block][row][pixel][16], then add bias and clip. apart: elements of a block there."""
    y, places, bias, filters, far = (
        word_at(words, 0),
        word_at(words, 1),
        word_at(words, 2),
        word_at(words, 3),
        word_at(words, 4),
    )
    apart, row, height, width, kh = (
        word_at(words, 5),
        word_at(words, 6),
        word_at(words, 7),
        word_at(words, 8),
        word_at(words, 9),
    )
    kw, down, step, low, high = (
        word_at(words, 10),
        word_at(words, 11),
        word_at(words, 12),
        real_at(words, 13),
        real_at(words, 14),
    )
    for block in range((filters + LANES - 1) // LANES):
        source, first = image + block * apart * BYTES, block * far + n * height * width * STEP
        to = first
        for i in range(height):
            if kh == kw == TWO:
                LARGEST_2(source, row, LANES, step, 0, 0, 0, 0, width, y + to, places + to // BYTES)
            else:
                LARGEST(source, row, LANES, step, kh, kw, 0, kw, width, y + to, places + to // BYTES)
            source, to = source + down * BYTES, to + width * STEP
        finish(
            y + first,
            y + first,
            height * width,
            bias + block * STEP if bias != 0 else 0,
            filters - block * LANES,
            low,
            high,
        )


@instruction
def image_returned(words, n, image):
    """Expand the cotangent of image n to [block][row][pixel][16].

    whole: TWO x TWO windows that cover each pixel exactly once; others may overlap, or leave pixels out.
    """
    grad, places, whole, blocks, far = (
        word_at(words, 0),
        word_at(words, 1),
        word_at(words, 2),
        word_at(words, 3),
        word_at(words, 4),
    )
    apart, row, height, width, kh = (
        word_at(words, 5),
        word_at(words, 6),
        word_at(words, 7),
        word_at(words, 8),
        word_at(words, 9),
    )
    kw, down, step = word_at(words, 10), word_at(words, 11), word_at(words, 12)
    for block in range(blocks):
        target, source = image + block * apart * BYTES, block * far + n * height * width * STEP
        if not whole:
            zero(target, apart)
        for i in range(height):
            if whole:
                RETURNED_2(target, row, LANES, step, 0, 0, 0, 0, width, grad + source, places + source // BYTES)
            else:
                RETURNED(target, row, LANES, step, kh, kw, 0, kw, width, grad + source, places + source // BYTES)
            target, source = target + down * BYTES, source + width * STEP


def windows(array, row: int, apart: int, size: tuple, kernel_size: tuple, stride: tuple) -> tuple:
    """Words of both instructions.

    array: the pooled images, in blocks.  row, apart: elements between rows, and between blocks, of the image.
    """
    return (
        array.strides[0],
        apart,
        row,
        *positions(size, kernel_size, stride, (0, 0)),
        *kernel_size,
        stride[0] * row,
        stride[1] * LANES,
    )


def blocks_conv2d_max_pool2d(
    arrays, outs, room: Workspace, shape, stride, padding, dilation, groups, act, kernel_size, window_stride
) -> list[Task] | None:
    (x, weight, bias), (y, places) = arrays, outs
    if not ready(x, weight, y) or not len(weight) or groups > 1 or math.prod(kernel_size) > MANY:
        return None
    s = sizes(tuple(shape), len(weight), weight.shape[2:], stride, padding, dilation, (room_of(x), 0))

    def after(row: int, apart: int) -> Task:
        return image_pooled(
            1, y, places, bias, s.filters, *windows(y, row, apart, s.size, kernel_size, window_stride), *BOUNDS[act]
        )

    return filtered(s, x, weight, 0, y, room, at_once(s), after=after)


def blocks_max_pool2d_weight_grad(
    arrays, outs, room: Workspace, shape, images, stride, padding, dilation, groups, kernel_size, window_stride
) -> list[Task] | None:
    (grad, places, x), (out,) = arrays, outs
    if not ready(grad, x, out) or not len(grad) or groups > 1 or math.prod(kernel_size) > MANY:
        return None
    s = sizes(tuple(images), shape[0], tuple(shape[2:]), stride, padding, dilation, (room_of(x), 0))
    whole = tuple(kernel_size) == tuple(window_stride) == (TWO, TWO) and not any(n % TWO for n in s.size)

    def before(row: int, apart: int) -> Task:
        return image_returned(
            1, grad, places, whole, len(grad), *windows(grad, row, apart, s.size, kernel_size, window_stride)
        )

    return filters_grad(s, grad, x, out, room, parts_of(s, PIXELS_LEAST // s.pixels), before)


lowers(nchw16c.blocks_conv2d_max_pool2d, blocks_conv2d_max_pool2d)
lowers(nchw16c.blocks_max_pool2d_weight_grad, blocks_max_pool2d_weight_grad)
