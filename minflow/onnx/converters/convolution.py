"""Converters of convolutions, their transposes, and unfold.

ONNX has the same filter layout as minflow, (F, C / groups, KH, KW), and for ConvTranspose that of conv2d_input_grad.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from ...core.ops.conv import positions
from ..builder import converter


def window(stride, padding, dilation) -> dict:
    """The attributes that all operators with a moving window share; pads are (top, left, bottom, right)."""
    return dict(strides=list(stride), pads=[*padding, *padding], dilations=list(dilation))


@converter("conv2d")
def _(b, node, x, weight):
    return b.op(
        "Conv",
        x,
        weight,
        kernel_shape=list(node.inputs[1].spec.shape[2:]),
        group=node.attrs["groups"],
        **window(*[node.attrs[k] for k in ("stride", "padding", "dilation")]),
    )


@converter("conv2d_input_grad")
def _(b, node, grad, weight):
    """A transposed convolution; output_padding selects one of the sizes that the stride allows."""
    stride, padding, dilation = [node.attrs[k] for k in ("stride", "padding", "dilation")]
    kernel = node.inputs[1].spec.shape[2:]
    least = [
        (n - 1) * s - 2 * p + d * (k - 1) + 1
        for n, s, p, d, k in zip(node.inputs[0].spec.shape[2:], stride, padding, dilation, kernel)
    ]
    more = [n - m for n, m in zip(node.out_specs[0].shape[2:], least)]
    b.attr(node, "shape")  # needs no dynamic size: output_padding is the same at all sizes
    return b.op(
        "ConvTranspose",
        grad,
        weight,
        kernel_shape=list(kernel),
        group=node.attrs["groups"],
        output_padding=more,
        **window(stride, padding, dilation),
    )


@converter("im2col")
def _(b, node, x):
    """Gather the pixels of each window position by their index in H * W."""
    (height, width), (top, left) = b.static_spec(node.inputs[0], 2, 3).shape[2:], node.attrs["padding"]
    kernel, stride, dilation = [node.attrs[k] for k in ("kernel_size", "stride", "dilation")]
    if top or left:
        x = b.op("Pad", x, b.const([0, 0, top, left, 0, 0, top, left]))
    rows, columns = positions((height, width), kernel, stride, (top, left), dilation)
    row, column = np.arange(rows) * stride[0], np.arange(columns) * stride[1]
    places = [
        ((row + u * dilation[0])[:, None] * (width + 2 * left) + column + v * dilation[1]).reshape(-1)
        for u, v in product(*map(range, kernel))
    ]
    channels, pixels = node.inputs[0].spec.shape[1], (height + 2 * top) * (width + 2 * left)
    flat = b.op("Reshape", x, b.const([0, channels, pixels]))
    seen = b.op("Gather", flat, b.const(np.stack(places)), axis=2)
    return b.op("Reshape", seen, b.const([0, node.out_specs[0].shape[1], rows * columns]))


@converter("col2im")
def _(b, node, columns):
    kernel, shape = node.attrs["kernel_size"], b.attr(node, "shape")
    return b.op(
        "Col2Im",
        columns,
        b.size_vector(shape[2:]),
        b.const(list(kernel)),
        **window(*[node.attrs[k] for k in ("stride", "padding", "dilation")]),
    )
