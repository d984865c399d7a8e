"""Converters of convolutions, their transposes, and unfold.

ONNX has the same filter layout as minflow, (F, C / groups, ...), and for ConvTranspose (C, F / groups, ...).
"""

from __future__ import annotations

from itertools import product
from typing import Any

from ...core.backend import namespace
from ...core.ops.conv import positions
from ...core.ops.conv_composites import transposed_size
from ..builder import converter


def window(stride, padding, dilation) -> dict:
    """The attributes that all operators with a moving window share; pads are (top, left, bottom, right)."""
    return dict(strides=list(stride), pads=[*padding, *padding], dilations=list(dilation))


@converter("conv2d")
def _(b, node, x, weight):
    return convolve(b, node, "Conv", x, weight, 0)


@converter("conv1d", "conv3d")
def _(b, node, x, weight, bias):
    return convolve(b, node, "Conv", x, weight, bias)


@converter("conv2d_input_grad")
def _(b, node, grad, weight):
    """A transposed convolution; output_padding selects one of the sizes that the stride allows."""
    a = node.attrs
    sizes = node.inputs[0].spec.shape[2:], node.inputs[1].spec.shape[2:], a["stride"], a["padding"], (0, 0)
    least = transposed_size(*sizes, a["dilation"])
    more = [n - m for n, m in zip(node.out_specs[0].shape[2:], least)]
    b.attr(node, "shape")  # needs no dynamic size: output_padding is the same at all sizes
    return convolve(b, node, "ConvTranspose", grad, weight, 0, output_padding=more)


@converter("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def _(b, node, x, weight, bias):
    """Whole strides of output_padding are zeros at the end of the input."""
    stride, output_padding = node.attrs["stride"], node.attrs["output_padding"]
    strides = [extra // step for extra, step in zip(output_padding, stride)]
    if any(strides):
        axes = node.inputs[0].spec.ndim
        x = b.op("Pad", x, b.const([0] * (2 * axes - len(strides)) + strides))
    more = [extra % step for extra, step in zip(output_padding, stride)]
    return convolve(b, node, "ConvTranspose", x, weight, bias, output_padding=more)


def convolve(b, node, kind: str, x: str, weight: str, bias: str | float, **attributes) -> str:
    """A convolution of a batch or of one example. bias: its name, or a number for all filters."""
    specs: list[Any] = [getattr(v, "spec", None) for v in node.inputs]
    dtype = node.out_specs[0].dtype
    kernel, single = specs[1].shape[2:], specs[0].ndim < specs[1].ndim
    given = [b.cast(v, dtype, spec.dtype) for v, spec in zip((x, weight), specs)]
    if isinstance(bias, str):
        given.append(b.cast(bias, dtype, specs[2].dtype))
    elif bias:
        given.append(b.const([bias] * node.out_specs[0].shape[1 - single], dtype))
    if single:
        given[0] = b.op("Unsqueeze", given[0], b.const([0]))
    geometry = window(*[node.attrs[k] for k in ("stride", "padding", "dilation")])
    y = b.op(kind, *given, kernel_shape=list(kernel), group=node.attrs["groups"], **geometry, **attributes)
    return b.op("Squeeze", y, b.const([0])) if single else y


@converter("im2col")
def _(b, node, x):
    """Gather the pixels of each window position by their index in H * W."""
    (height, width), (top, left) = b.static_spec(node.inputs[0], 2, 3).shape[2:], node.attrs["padding"]
    kernel, stride, dilation = [node.attrs[k] for k in ("kernel_size", "stride", "dilation")]
    if top or left:
        x = b.op("Pad", x, b.const([0, 0, top, left, 0, 0, top, left]))
    rows, columns = positions((height, width), kernel, stride, (top, left), dilation)
    xp = namespace()
    row, column = xp.arange(rows) * stride[0], xp.arange(columns) * stride[1]
    places = [
        ((row + u * dilation[0])[:, None] * (width + 2 * left) + column + v * dilation[1]).reshape(-1)
        for u, v in product(*map(range, kernel))
    ]
    channels, pixels = node.inputs[0].spec.shape[1], (height + 2 * top) * (width + 2 * left)
    flat = b.op("Reshape", x, b.const([0, channels, pixels]))
    seen = b.op("Gather", flat, b.const(xp.stack(places)), axis=2)
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
