"""Converters of pooling. Indices of max_pool2d are relative to H * W; those of ONNX to the whole tensor."""

from __future__ import annotations

import math

import numpy as np

from ...core.ops.conv import positions
from ...core.ops.pool import divisors, windows
from ..builder import converter


def window(b, node) -> dict:
    """The attributes of a pool. ONNX's ceil_mode counts a last window that begins beyond the edge, which PyTorch and
    minflow omit; if that would change an axis, the padding states the extent of the windows instead.
    """
    a, size, result = node.attrs, node.inputs[0].spec.shape[2:], node.out_specs[0].shape[2:]
    geometry = a["kernel_size"], a["stride"], a["padding"], a.get("dilation", (1, 1))
    options = dict(kernel_shape=list(a["kernel_size"]), strides=list(a["stride"]), pads=[*a["padding"], *a["padding"]])
    moving = not all(isinstance(n, int) for n in b.sizes_of(node.inputs[0])[2:])
    if not a["ceil_mode"] or (result == positions(size, *geometry) and not moving):
        return options
    rounded = [-(-(n + 2 * p - d * (k - 1) - 1) // s) + 1 for n, k, s, p, d in zip(size, *geometry)]
    if result == tuple(rounded) or moving:
        return options | dict(ceil_mode=1)
    options["pads"] = extent_padding(node)
    if any(pad >= k for pad, k in zip(options["pads"][2:], a["kernel_size"])):
        b.refuse(
            f"rounds {size} to {result} by its ceil_mode, ONNX to {tuple(rounded)}",
            "a size that the stride divides, or ceil_mode=False",
        )
    return options


def extent_padding(node) -> list[int]:
    """The padding at which the windows end with the last one."""
    a = node.attrs
    ends = [
        max(p, (m - 1) * s + d * (k - 1) + 1 - n - p)
        for n, m, k, s, p, d in zip(
            node.inputs[0].spec.shape[2:],
            node.out_specs[0].shape[2:],
            a["kernel_size"],
            a["stride"],
            a["padding"],
            a.get("dilation", (1, 1)),
        )
    ]
    return [*a["padding"], *ends]


@converter("max_pool2d")
def _(b, node, x):
    options = dict(dilations=list(node.attrs["dilation"]), **window(b, node))
    if not b.is_used(node, 1):
        return b.op("MaxPool", x, **options), None
    y, places = b.op("MaxPool", x, outputs=2, **options)
    pixels = math.prod(b.static_spec(node.inputs[0], 2, 3).shape[2:])
    return y, b.op("Mod", places, b.const(pixels))


@converter("max_pool2d_pick")
def _(b, node, x, indices):
    rows = b.const([0, 0, -1])
    flat, places = b.op("Reshape", x, rows), b.op("Reshape", indices, rows)
    return b.op("Reshape", b.op("GatherElements", flat, places, axis=2), b.op("Shape", indices))


@converter("avg_pool2d")
def _(b, node, x):
    """If the divisors differ from ONNX's, compute the sum: the mean times the window size."""
    a, spec, result = node.attrs, node.inputs[0].spec, node.out_specs[0]
    options, include, divisor = window(b, node), a["count_include_pad"], a["divisor_override"]
    if divisor is None and not (include and options["pads"][2:] != list(a["padding"])):
        return b.op("AveragePool", x, count_include_pad=int(include), **options)
    if a["ceil_mode"]:
        b.static_spec(node.inputs[0], 2, 3)
        options |= dict(pads=extent_padding(node), ceil_mode=0)
    counts = divisor or divisors(
        np, spec.shape, result.shape[2:], a["kernel_size"], a["stride"], a["padding"], include, None, result.dtype.np
    )
    means = b.op("AveragePool", x, count_include_pad=1, **options)
    return b.op("Mul", means, b.const(math.prod(a["kernel_size"]) / counts, result.dtype))


@converter("adaptive_avg_pool2d")
def _(b, node, x):
    """A global mean; windows of equal size; or for each axis a product with the weights of its windows."""
    wanted = node.attrs["output_size"]
    if wanted == (1, 1):
        return b.op("GlobalAveragePool", x)
    size = b.static_spec(node.inputs[0], 2, 3).shape[2:]
    if not any(n % m for n, m in zip(size, wanted)):
        step = [n // m for n, m in zip(size, wanted)]
        return b.op("AveragePool", x, kernel_shape=step, strides=step)
    rows, columns = [pooling_weights(n, m).astype(node.out_specs[0].dtype.np) for n, m in zip(size, wanted)]
    return b.op("MatMul", b.op("MatMul", b.const(rows), x), b.const(np.ascontiguousarray(columns.T)))


def pooling_weights(n: int, m: int) -> np.ndarray:
    """(m, n): weight of each of n elements in each of m windows."""
    result = np.zeros((m, n))
    for row, (start, stop) in zip(result, windows(n, m)):
        row[start:stop] = 1 / (stop - start)
    return result
