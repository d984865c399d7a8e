"""conv2d and its gradients on NCHW images: what eager mode calls.

Depthwise convolutions, and most 1x1 ones, are converted to blocks in the workspace: vectors are full at any image size,
and the conversion costs less than it saves. Convolutions that are not faster here are left to NumPy. Read next:
`conv_geometry.py`, for larger filters.
"""

from __future__ import annotations

import math

import numpy as np

from ....core.op import OPS
from ..codegen.llvm import LANES, number_at, put
from ..lowering import lowers
from ..passes.nchw16c import blocked, by_groups
from ..runtime.instructions import instruction
from ..runtime.tasks import Task, Workspace
from . import im2col, nchw16c_conv
from .conv_geometry import CHUNK, FEW, back, filtered, filters_grad, parts_of, sizes
from .nchw16c_conv import in_blocks, is_product, out_of_blocks

LEAST = 1 << 16  # multiplications; below, NumPy is as fast
LEAST_FILTERS, LEAST_PIXELS = 8, 64  # the same for filters of smaller results
SMALL = 16  # pixels of images whose 1x1 products are faster in blocks; BLAS reads larger ones without a copy


def fits(x: np.ndarray, weight: tuple, groups: int, others: tuple, *rest: np.ndarray) -> bool:
    """True if this convolution is faster here than in NumPy.

    weight, others: shapes of the filters, and of the output or its gradient.  rest: the other arrays of the call.
    """
    f, c, kh, kw = weight
    return (
        groups == 1
        and (f >= LEAST_FILTERS or math.prod(others[2:]) >= LEAST_PIXELS)
        and math.prod(others) * c * kh * kw >= LEAST
        and nchw16c_conv.ready(x, *rest)
    )


def in_groups(x: np.ndarray, weight: tuple, groups: int, *rest: np.ndarray) -> bool:
    """True if there are several groups that are faster in blocks, with at least 16 channels."""
    return (
        x.size > 0
        and groups > 1
        and min(x.shape[1], weight[0]) >= LANES
        and nchw16c_conv.ready(x, *rest)
        and ((groups == weight[0] and weight[1] == 1) or by_groups(groups, weight[1], weight[0] // groups))
    )


def is_quick_product(kernel: tuple, **window: tuple) -> bool:
    return is_product(kernel[2:], **window) and min(kernel[:2]) >= FEW


def through_blocks(
    builder, x: np.ndarray, others: list, out: np.ndarray, workspace: Workspace, **attrs
) -> list[Task] | None:
    """Tasks of an op on blocks whose images are converted before and after."""
    (blocks, steps), y = in_blocks(x, workspace), workspace.array(blocked(out.shape))
    inner = builder([blocks, *others], [y], workspace, **attrs)
    return None if inner is None else [*steps, *inner, *out_of_blocks(y, out)]


@instruction
def rotate_filters(chunk, scratch, w, out, filters, channels, taps):
    """Swap filters and channels of (filters, channels, taps), and reverse the taps."""
    for f in range(filters):
        for c in range(channels):
            for tap in range(taps):
                put(out, (c * filters + f) * taps + taps - 1 - tap, number_at(w, (f * channels + c) * taps + tap))


def conv2d(arrays, outs, workspace, groups, **window) -> list[Task] | None:
    (x, weight), (out,) = arrays, outs
    suits = fits(x, weight.shape, groups, out.shape, weight, out)
    small = is_quick_product(weight.shape, **window) and math.prod(out.shape[2:]) <= SMALL
    if in_groups(x, weight.shape, groups, weight, out) or (small and suits):
        attrs = dict(shape=x.shape, act="", groups=groups)
        return through_blocks(nchw16c_conv.blocks_conv2d, x, [weight, 0], out, workspace, **attrs, **window)
    if suits and im2col.pays(weight.shape, out.shape, **window):
        return im2col.conv2d(x, weight, out, workspace, x.shape, **window)
    if math.prod(weight.shape[2:]) == 1 or not suits:
        return None
    s = sizes(x.shape, len(weight), weight.shape[2:], **window)
    return filtered(s, x, weight, 0, out, workspace, CHUNK)


def conv2d_input_grad(arrays, outs, workspace, shape, groups, **window) -> list[Task] | None:
    (grad, weight), (out,) = arrays, outs
    suits = fits(grad, weight.shape, groups, grad.shape, weight, out)
    small = is_quick_product(weight.shape, **window) and math.prod(shape[2:]) <= SMALL
    if in_groups(grad, weight.shape, groups, weight, out) or (small and suits):
        attrs = dict(shape=shape, groups=groups)
        return through_blocks(nchw16c_conv.blocks_conv2d_input_grad, grad, [weight], out, workspace, **attrs, **window)
    if suits and im2col.pays(weight.shape, grad.shape, **window):
        return im2col.conv2d_input_grad(grad, weight, out, workspace, shape, **window)
    if weight.shape[1] < FEW or math.prod(weight.shape[2:]) == 1 or not suits:
        return None
    s = back(tuple(shape), len(weight), weight.shape[2:], **window)
    if s.few:  # the filters of a convolution of the cotangent
        filters = workspace.array((*weight.shape[1::-1], *weight.shape[2:]))
        rotating = rotate_filters(1, weight, filters, *weight.shape[:2], math.prod(weight.shape[2:]))
        return [rotating, *filtered(s, grad, filters, 0, out, workspace, CHUNK)]
    return filtered(s, grad, weight, 0, out, workspace, CHUNK, transposed=True)


def conv2d_weight_grad(arrays, outs, workspace, shape, groups, **window) -> list[Task] | None:
    (grad, x), (out,) = arrays, outs
    suits = fits(x, shape, groups, grad.shape, grad, out)
    if in_groups(x, shape, groups, grad, out) or (is_quick_product(shape, **window) and suits):
        (grads, first), (blocks, steps) = in_blocks(grad, workspace), in_blocks(x, workspace)
        attrs = dict(shape=shape, images=x.shape, groups=groups)
        inner = nchw16c_conv.blocks_conv2d_weight_grad([grads, blocks], outs, workspace, **attrs, **window)
        return None if inner is None else [*first, *steps, *inner]
    if suits and im2col.pays(shape, grad.shape, **window, for_filters=True):
        return im2col.conv2d_weight_grad(grad, x, out, workspace, x.shape, **window)
    if math.prod(shape[2:]) == 1 or not suits:
        return None
    s = sizes(x.shape, shape[0], shape[2:], **window)
    return filters_grad(s, grad, x, out, workspace, parts_of(s))


lowers(OPS["conv2d"], conv2d)
lowers(OPS["conv2d_input_grad"], conv2d_input_grad)
lowers(OPS["conv2d_weight_grad"], conv2d_weight_grad)
