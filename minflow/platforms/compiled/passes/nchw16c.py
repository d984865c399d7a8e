"""Ops on images in blocks of 16 channels (NCHW16c), with their reference kernels in NumPy.

Images (N, C, H, W) are stored as [block of 16 channels][pixel of all images][16]: a vector register holds contiguous
elements, a 1x1 convolution is one long product, and the pixels of a channel are contiguous for its mean. Lanes beyond C
are zeros, and every op here keeps them so. Each block is padded with rows so that blocks do not map to the same cache
sets; the padding is uninitialized and must not be read. Elementwise ops work on both layouts. Programs cannot call
these ops: passes create them. Read next: `layout.py`.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ....core.kernels import CALLS, kernel
from ....core.op import OPS, Op, parse_signature
from ....core.ops.conv import conv2d, conv2d_input_grad, conv2d_weight_grad, positions
from ....core.ops.interpolation import interpolate
from ....core.ops.norm import batch_norm, batch_norm_grad
from ....core.ops.pool import avg_pool2d, avg_pool2d_grad, max_pool2d, max_pool2d_grad
from ....core.ops.shape import sum_to
from ....core.spec import Spec, float32, uint8

LANES = 16
ACTS = ("", "relu", "relu6")  # activation that is applied to each element of a result before it is written


def rows_of(pixels: int) -> int:
    """Return the rows of a block: 16 more than a multiple of 32, so that blocks spread over all cache sets."""
    return pixels + (16 - pixels) % 32


def blocked(shape: tuple) -> tuple[int, int, int]:
    """Return the blocked shape of images (N, C, ...)."""
    return -(-shape[1] // LANES), rows_of(shape[0] * math.prod(shape[2:])), LANES


def into_blocks(x: np.ndarray, out: np.ndarray) -> np.ndarray:
    n, c = x.shape[:2]
    pixels = math.prod(x.shape[2:])
    flat = np.moveaxis(x.reshape(n, c, pixels), 1, 2).reshape(n * pixels, c)
    for block in range(len(out)):
        some = flat[:, block * LANES : (block + 1) * LANES]
        out[block, : len(flat), : some.shape[1]] = some
        out[block, : len(flat), some.shape[1] :] = 0
    return out


def out_of_blocks(x: np.ndarray, shape: tuple) -> np.ndarray:
    n, c = shape[:2]
    pixels = math.prod(shape[2:])
    flat = x[:, : n * pixels].transpose(1, 0, 2).reshape(n, pixels, len(x) * LANES)[:, :, :c]
    return np.ascontiguousarray(flat.transpose(0, 2, 1)).reshape(shape)


def in_blocks(x: np.ndarray) -> np.ndarray:
    return into_blocks(x, np.empty(blocked(x.shape), x.dtype))


def as_images(x: np.ndarray, shape: tuple) -> np.ndarray:
    return x if x.ndim == 4 else out_of_blocks(x, shape)


def channels(values):
    """Reshape one element per channel to broadcast with (N, C, H, W)."""
    return values.reshape(1, -1, 1, 1) if isinstance(values, np.ndarray) else np.float32(values)


def activated(y: np.ndarray, act: str) -> np.ndarray:
    """Apply the activation of this name."""
    return CALLS[OPS[act]](y) if act else y


def slope(xp, grad: np.ndarray, y: np.ndarray, act: str) -> np.ndarray:
    """Compute the cotangent before the activation whose output is y."""
    return CALLS[OPS[f"{act}_grad"]](grad, activated(y, act))


# ---- how an op is defined --------------------------------------------------------------------------------------------

BLOCKED: dict[str, Op] = {}


def internal(signature: str, infer: Callable, **facts: Any) -> Callable[[Callable], Op]:
    """Define an op that only passes create, from its NumPy kernel: it is not in OPS, and has no gradient rule.

    `infer` and the kernel get the op's inputs in order, and its attrs by name. facts: the other fields of Op.
    """
    name, inputs, attrs, outputs = parse_signature(signature)

    def given(function: Callable) -> Op:
        op = BLOCKED[name] = Op(
            name, inputs, attrs, outputs, infer, second_order=False, doc=inspect.getdoc(function) or "", **facts
        )
        kernel(op, function)
        return op

    return given


def images(shape: tuple) -> Spec:
    """Return the spec of images of this shape in blocks."""
    return Spec(blocked(shape), float32)


def run(op: Op, *arrays, **attrs):
    """Run the kernel of an op that eager mode uses."""
    return CALLS[op](*arrays, **attrs)


def conv_flops(shape: tuple, weight: tuple, geometry: dict[str, Any]) -> int:
    """Operations of a convolution of images of this shape with filters of that shape."""
    return 2 * math.prod(result_shape(shape, weight, **geometry)) * math.prod(weight[1:])


# ---- conversion ------------------------------------------------------------------------------------------------------


@internal("to_blocks(x)", lambda x: images(x.shape), flops=0)
def to_blocks(xp, x, out=None):
    """Convert images (N, C, ...) to blocks."""
    return into_blocks(x, xp.empty(blocked(x.shape), x.dtype) if out is None else out)


@internal("from_blocks(x; shape)", lambda x, shape: Spec(shape, float32), flops=0)
def from_blocks(xp, x, shape):
    """Convert blocks to images (N, C, ...) of this shape."""
    return out_of_blocks(x, shape)


# ---- convolutions ----------------------------------------------------------------------------------------------------

GEOMETRY = "stride, padding, dilation, groups"  # attrs of a convolution
GROUPS = 4, 8  # sizes of small groups, as many channels as filters: a block holds whole groups


def by_groups(groups: int, channels: int, filters: int) -> bool:
    """True if grouped convolutions with these sizes have a kernel in blocks.

    channels, filters: of one group. Groups must be small ones in whole blocks, or consist of whole blocks.
    """
    return groups == 1 or channels == filters in GROUPS or not (channels % LANES or filters % LANES)


def result_shape(shape: tuple, weight: tuple, stride: tuple, padding: tuple, dilation: tuple, **_) -> tuple:
    """Return the output shape of a convolution."""
    return shape[0], weight[0], *positions(shape[2:], weight[2:], stride, padding, dilation)


@internal(
    f"blocks_conv2d(x, weight, bias; shape, {GEOMETRY}, act)",
    lambda x, weight, bias, shape, act, **geometry: images(result_shape(shape, weight.shape, **geometry)),
    flops=lambda out, x, weight, *_, shape, **attrs: conv_flops(shape, weight.shape, attrs),
)
def blocks_conv2d(xp, x, weight, bias, shape, act, **geometry):
    """Compute conv2d + bias, then the activation `act`, with the output in blocks.

    x: images of this shape, in blocks or (with few channels) NCHW.  bias: (F,), or the number 0.
    """
    y = run(conv2d, as_images(x, shape), weight, **geometry)
    return in_blocks(activated(y + channels(bias), act))


@internal(
    f"blocks_conv2d_input_grad(grad, weight; shape, {GEOMETRY})",
    lambda grad, weight, shape, **geometry: images(shape),
    flops=lambda out, grad, weight, shape, **attrs: conv_flops(shape, weight.shape, attrs),
)
def blocks_conv2d_input_grad(xp, grad, weight, shape, **geometry):
    """Compute the gradient with respect to images of this shape; all but the filters are in blocks."""
    grad = out_of_blocks(grad, result_shape(shape, weight.shape, **geometry))
    return in_blocks(run(conv2d_input_grad, grad, weight, shape=shape, **geometry))


@internal(
    f"blocks_conv2d_weight_grad(grad, x; shape, images, {GEOMETRY})",
    lambda grad, x, shape, **options: Spec(shape, float32),
    flops=lambda out, grad, x, shape, images, **attrs: conv_flops(images, shape, attrs),
)
def blocks_conv2d_weight_grad(xp, grad, x, shape, images, **geometry):
    """Compute the gradient with respect to filters of this shape, which are not in blocks.

    images: the shape of x, which is in blocks or (with few channels) NCHW.
    """
    grad = out_of_blocks(grad, result_shape(images, shape, **geometry))
    return run(conv2d_weight_grad, grad, as_images(x, images), shape=shape, **geometry)


@internal("blocks_channel_sum(x; shape, to)", lambda x, shape, to: Spec(to, float32), flops=1)
def blocks_channel_sum(xp, x, shape, to):
    """Sum each channel of images of this shape, and reshape (C,) to `to`: the gradient of a bias."""
    return run(sum_to, out_of_blocks(x, shape), shape=(1, shape[1], *[1] * (len(shape) - 2))).reshape(to)


# ---- normalization ---------------------------------------------------------------------------------------------------


@internal(
    "blocks_batch_norm(x, weight, bias; shape, eps, act) -> y, mean, var",
    lambda x, weight, bias, shape, eps, act: (x, weight, weight),
    flops=6,
)
def blocks_batch_norm(xp, x, weight, bias, shape, eps, act):
    """Compute batch_norm of images of this shape in blocks, then the activation `act`."""
    y, mean, var = run(batch_norm, out_of_blocks(x, shape), weight, bias, eps=eps)
    return in_blocks(activated(y, act)), mean, var


@internal(
    "blocks_batch_norm_grad(grad, x, weight, bias, mean, var; shape, eps, act) -> gx, gweight, gbias",
    lambda grad, x, weight, bias, mean, var, shape, eps, act: (x, weight, weight),
    flops=9,
)
def blocks_batch_norm_grad(xp, grad, x, weight, bias, mean, var, shape, eps, act):
    """Compute batch_norm_grad in blocks, from the cotangent after the activation; its slope is recomputed from x."""
    grad, x = out_of_blocks(grad, shape), out_of_blocks(x, shape)
    if act:
        y = (x - channels(mean)) * channels(weight / xp.sqrt(var + x.dtype.type(eps))) + channels(bias)
        grad = slope(xp, grad, y, act)
    gx, gweight, gbias = run(batch_norm_grad, grad, x, weight, mean, var, eps=eps)
    return in_blocks(gx), gweight, gbias


# ---- pooling ---------------------------------------------------------------------------------------------------------


def pooled(shape: tuple, kernel_size, stride, padding, dilation=(1, 1), ceil_mode: bool = False, **_) -> tuple:
    """Return the output shape of pooling."""
    return *shape[:2], *positions(shape[2:], kernel_size, stride, padding, dilation, ceil_mode)


WINDOW = "kernel_size, stride, padding, dilation, ceil_mode"
MEAN = "kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override"


@internal(
    f"blocks_max_pool2d(x; shape, {WINDOW}) -> y, places",
    lambda x, shape, **window: (lambda y: (y, y.replace(dtype=uint8)))(images(pooled(shape, **window))),
    flops=1,
)
def blocks_max_pool2d(xp, x, shape, **window):
    """Compute max_pool2d of images of this shape in blocks.

    places: index of the largest pixel in its window, row by row; arbitrary in lanes beyond C.
    """
    y, indices = run(max_pool2d, out_of_blocks(x, shape), **window)
    rows, columns = corners(xp, y.shape[2:], **window)
    down, across = [
        (pixel - first) // step
        for pixel, first, step in zip(divmod(indices, shape[3]), (rows, columns), window["dilation"])
    ]
    return in_blocks(y), in_blocks((down * window["kernel_size"][1] + across).astype(xp.uint8))


def corners(xp, size: tuple, stride: tuple, padding: tuple, **_) -> tuple:
    """Return (row, column) of the first pixel of each window, broadcastable with (N, C, H, W)."""
    rows, columns = [xp.arange(n) * s - p for n, s, p in zip(size, stride, padding)]
    return rows[:, None], columns


@internal(
    f"blocks_max_pool2d_grad(grad, places; shape, {WINDOW})",
    lambda grad, places, shape, **window: images(shape),
    flops=1,
)
def blocks_max_pool2d_grad(xp, grad, places, shape, kernel_size, dilation, **window):
    """Scatter the cotangent to the largest pixels of the windows, for images of this shape in blocks."""
    size = pooled(shape, kernel_size, dilation=dilation, **window)
    places = out_of_blocks(places, size).astype(xp.int64)
    rows, columns = corners(xp, size[2:], **window)
    down, across = rows + places // kernel_size[1] * dilation[0], columns + places % kernel_size[1] * dilation[1]
    return in_blocks(
        run(max_pool2d_grad, out_of_blocks(grad, size), down * shape[3] + across, shape=shape, apart=False)
    )


@internal(f"blocks_avg_pool2d(x; shape, {MEAN})", lambda x, shape, **options: images(pooled(shape, **options)))
def blocks_avg_pool2d(xp, x, shape, **options):
    """Compute avg_pool2d of images of this shape in blocks."""
    return in_blocks(run(avg_pool2d, out_of_blocks(x, shape), **options))


@internal(f"blocks_avg_pool2d_grad(grad; shape, {MEAN})", lambda grad, shape, **options: images(shape))
def blocks_avg_pool2d_grad(xp, grad, shape, **options):
    """Distribute each element of the cotangent over its window, for images of this shape in blocks."""
    grad = out_of_blocks(grad, pooled(shape, **options))
    return in_blocks(run(avg_pool2d_grad, grad, shape=shape, **options))


def simple(kernel_size: tuple, window_stride: tuple) -> dict:
    """Return the attrs of windows without padding, dilation or ceil mode."""
    return dict(kernel_size=kernel_size, stride=window_stride, padding=(0, 0), dilation=(1, 1), ceil_mode=False)


@internal(
    f"blocks_conv2d_max_pool2d(x, weight, bias; shape, {GEOMETRY}, act, kernel_size, window_stride) -> y, places",
    lambda x, weight, bias, shape, act, kernel_size, window_stride, **geometry: blocks_max_pool2d.infer(
        x, result_shape(shape, weight.shape, **geometry), **simple(kernel_size, window_stride)
    ),
)
def blocks_conv2d_max_pool2d(xp, x, weight, bias, shape, act, kernel_size, window_stride, **geometry):
    """Compute blocks_max_pool2d(blocks_conv2d(...)).

    Bias and activation do not change which pixel is the largest, so they run after the pooling; if an activation makes
    several pixels equal, `places` refers to the values before it.
    """
    size, windows = result_shape(shape, weight.shape, **geometry), simple(kernel_size, window_stride)
    y = run(blocks_conv2d, x, weight, 0, shape=shape, act="", **geometry)
    y, places = run(blocks_max_pool2d, y, shape=size, **windows)
    return in_blocks(activated(out_of_blocks(y, pooled(size, **windows)) + channels(bias), act)), places


@internal(
    f"blocks_max_pool2d_weight_grad(grad, places, x; shape, images, {GEOMETRY}, kernel_size, window_stride)",
    lambda grad, places, x, shape, **options: Spec(shape, float32),
)
def blocks_max_pool2d_weight_grad(xp, grad, places, x, shape, images, kernel_size, window_stride, **geometry):
    """Compute blocks_conv2d_weight_grad of the cotangent that blocks_max_pool2d_grad returns."""
    grad = run(
        blocks_max_pool2d_grad,
        grad,
        places,
        shape=result_shape(images, shape, **geometry),
        **simple(kernel_size, window_stride),
    )
    return run(blocks_conv2d_weight_grad, grad, x, shape=shape, images=images, **geometry)


@internal("blocks_average(x; shape)", lambda x, shape: images(shape[:2]), flops=1)
def blocks_average(xp, x, shape):
    """Compute the mean over all pixels of each image: (N, C), in blocks."""
    return in_blocks(out_of_blocks(x, shape).mean((2, 3), dtype=x.dtype))


@internal("blocks_average_grad(grad; shape)", lambda grad, shape: images(shape), flops=1)
def blocks_average_grad(xp, grad, shape):
    """Distribute the cotangent (N, C) evenly over the pixels of images of this shape, in blocks."""
    grad = out_of_blocks(grad, shape[:2]) / grad.dtype.type(math.prod(shape[2:]))
    return in_blocks(xp.broadcast_to(grad[:, :, None, None], shape))


# ---- interpolation ---------------------------------------------------------------------------------------------------

TAPS = ", ".join(interpolate.attrs)


@internal(
    f"blocks_interpolate(x; shape, {TAPS})", lambda x, shape, output_size, **options: images((*shape[:2], *output_size))
)
def blocks_interpolate(xp, x, shape, **options):
    """Resize images of this shape in blocks."""
    return in_blocks(run(interpolate, out_of_blocks(x, shape), **options))


@internal(f"blocks_interpolate_grad(grad; shape, {TAPS})", lambda grad, shape, **options: images(shape))
def blocks_interpolate_grad(xp, grad, shape, output_size, **options):
    """Compute the cotangent of images of this shape in blocks."""
    grad, x = out_of_blocks(grad, (*shape[:2], *output_size)), xp.empty(shape, grad.dtype)
    return in_blocks(run(interpolate.gradient, grad, x, output_size=output_size, **options, needs=1))
