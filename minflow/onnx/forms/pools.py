"""Pools of images. The places that max_pool2d gives count within H * W; those of ONNX go through the whole tensor."""

from __future__ import annotations

import math

import numpy as np

from ...core.ops.conv import positions
from ...core.ops.pool import windows
from ..builder import form
from .windows import fixed


def ceiling(b, node) -> int:
    """The attribute ceil_mode: only where the size of the result asks for it.

    ONNX counts a last window that begins beyond the edge, which PyTorch and we leave out.
    """
    size, result, a = node.inputs[0].spec.shape[2:], node.out_specs[0].shape[2:], node.attrs
    geometry = a["kernel_size"], a["stride"], a["padding"], a.get("dilation", (1, 1))
    if not a["ceil_mode"] or not all(isinstance(n, int) for n in b.dims(node.inputs[0])[2:]):
        return int(a["ceil_mode"])
    if result == positions(size, *geometry):
        return 0
    rounded = [-(-(n + 2 * p - d * (k - 1) - 1) // s) + 1 for n, k, s, p, d in zip(size, *geometry)]
    if result != tuple(rounded):
        b.refuse(node, f"ceil_mode rounds {size} to {result}, ONNX to {tuple(rounded)}",
                 "an input size that the stride divides, or ceil_mode=False")
    return 1


def window(b, node) -> dict:
    a = node.attrs
    return dict(kernel_shape=list(a["kernel_size"]), strides=list(a["stride"]), pads=[*a["padding"], *a["padding"]],
                ceil_mode=ceiling(b, node))


@form("max_pool2d")
def _(b, node, x):
    options = dict(dilations=list(node.attrs["dilation"]), **window(b, node))
    if not b.used(node, 1):
        return b.op("MaxPool", x, **options), None
    y, places = b.op("MaxPool", x, outputs=2, **options)
    return y, b.op("Mod", places, b.const(math.prod(fixed(b, node, 2, 3)), "int64"))


@form("max_pool2d_pick")
def _(b, node, x, indices):
    rows = b.const([0, 0, -1])
    flat, places = b.op("Reshape", x, rows), b.op("Reshape", indices, rows)
    return b.op("Reshape", b.op("GatherElements", flat, places, axis=2), b.op("Shape", indices))


@form("avg_pool2d")
def _(b, node, x):
    include, divisor = node.attrs["count_include_pad"], node.attrs["divisor_override"]
    options = window(b, node)
    if divisor is not None and options["ceil_mode"]:
        b.refuse(node, "divisor_override together with a last window that reaches over the edge",
                 "ceil_mode=False, or divisor_override=None")
    y = b.op("AveragePool", x, count_include_pad=int(include or divisor is not None), **options)
    if divisor is None:
        return y
    return b.op("Mul", y, b.const(math.prod(node.attrs["kernel_size"]) / divisor, node.out_specs[0].dtype))


@form("adaptive_avg_pool2d")
def _(b, node, x):
    """The mean of everything; windows of one size; or for each axis a product with the weights of its windows."""
    wanted = node.attrs["output_size"]
    if wanted == (1, 1):
        return b.op("GlobalAveragePool", x)
    size = fixed(b, node, 2, 3)
    if not any(n % m for n, m in zip(size, wanted)):
        step = [n // m for n, m in zip(size, wanted)]
        return b.op("AveragePool", x, kernel_shape=step, strides=step)
    rows, columns = [shares(n, m).astype(node.out_specs[0].dtype.np) for n, m in zip(size, wanted)]
    return b.op("MatMul", b.op("MatMul", b.const(rows), x), b.const(np.ascontiguousarray(columns.T)))


def shares(n: int, m: int) -> np.ndarray:
    """(m, n): what each of n numbers counts in each of m windows."""
    result = np.zeros((m, n))
    for row, (start, stop) in zip(result, windows(n, m)):
        row[start:stop] = 1 / (stop - start)
    return result
