"""Converters of pooling. Indices of minflow are relative to the pooled axes, those of ONNX to the whole tensor."""

from __future__ import annotations

import math

from ...core.backend import namespace
from ...core.host import HostArray
from ...core.ops.conv import positions
from ...core.ops.pool import divisors, windows
from ...core.spec import float32
from ..builder import converter


def window(b, node) -> dict:
    """The attributes of a pool. ONNX's ceil_mode counts a last window that begins beyond the edge, which PyTorch and
    minflow omit; if that would change an axis, the padding states the extent of the windows instead.
    """
    a, size, result = node.attrs, node.inputs[0].spec.shape[2:], node.out_specs[0].shape[2:]
    geometry = a["kernel_size"], a["stride"], a["padding"], a.get("dilation", (1,) * len(size))
    options = dict(kernel_shape=list(a["kernel_size"]), strides=list(a["stride"]), pads=[*a["padding"], *a["padding"]])
    moving = not all(isinstance(n, int) for n in b.sizes_of(node.inputs[0])[2:])
    if not a["ceil_mode"] or (result == positions(size, *geometry) and not moving):
        return options
    rounded = [-(-(n + 2 * p - d * (k - 1) - 1) // s) + 1 for n, k, s, p, d in zip(size, *geometry)]
    if result == tuple(rounded) or moving:
        return options | dict(ceil_mode=1)
    options["pads"] = extent_padding(node)
    if any(pad >= k for pad, k in zip(options["pads"][len(size) :], a["kernel_size"])):
        b.refuse(
            f"rounds {size} to {result} by its ceil_mode, ONNX to {tuple(rounded)}",
            "a size that the stride divides, or ceil_mode=False",
        )
    return options


def extent_padding(node) -> list[int]:
    """The padding at which the windows end with the last one."""
    a, size = node.attrs, node.inputs[0].spec.shape[2:]
    geometry = a["kernel_size"], a["stride"], a["padding"], a.get("dilation", (1,) * len(size))
    ends = [
        max(p, (m - 1) * s + d * (k - 1) + 1 - n - p)
        for n, m, k, s, p, d in zip(size, node.out_specs[0].shape[2:], *geometry)
    ]
    return [*a["padding"], *ends]


def static_sizes(b, node) -> tuple[int, ...]:
    """The sizes of the pooled axes; the node is refused if they are dynamic."""
    axes = range(2, node.inputs[0].spec.ndim)
    return b.static_spec(node.inputs[0], *axes).shape[2:]


@converter("max_pool1d", "max_pool2d", "max_pool3d")
def _(b, node, x):
    options = dict(dilations=list(node.attrs["dilation"]), **window(b, node))
    if not b.is_used(node, 1):
        return b.op("MaxPool", x, **options), None
    y, places = b.op("MaxPool", x, outputs=2, **options)
    return y, b.op("Mod", places, b.const(math.prod(static_sizes(b, node))))


@converter("max_pool2d_pick")
def _(b, node, x, indices):
    rows = b.const([0, 0, -1])
    flat, places = b.op("Reshape", x, rows), b.op("Reshape", indices, rows)
    return b.op("Reshape", b.op("GatherElements", flat, places, axis=2), b.op("Shape", indices))


@converter("avg_pool1d", "avg_pool2d", "avg_pool3d")
def _(b, node, x):
    """If the divisors differ from ONNX's, compute the sum: the mean times the window size."""
    a, spec, result = node.attrs, node.inputs[0].spec, node.out_specs[0]
    options, include, divisor = window(b, node), a["count_include_pad"], a["divisor_override"]
    if divisor is None and not (include and options["pads"][len(a["padding"]) :] != list(a["padding"])):
        return b.op("AveragePool", x, count_include_pad=int(include), **options)
    if a["ceil_mode"]:
        static_sizes(b, node)
        options |= dict(pads=extent_padding(node), ceil_mode=0)
    geometry = a["kernel_size"], a["stride"], a["padding"], include
    counts = divisor or divisors(namespace(), spec.shape, result.shape[2:], *geometry, None, result.dtype.np)
    means = b.op("AveragePool", x, count_include_pad=1, **options)
    return b.op("Mul", means, b.const(math.prod(a["kernel_size"]) / counts, result.dtype))


def has_lp_pool(node) -> bool:
    """True if LpPool gives the same: it takes |x|, and counts a window that is partly outside as it is."""
    a = node.attrs
    return a["norm_type"] > 0 and a["norm_type"] % 2 == 0 and not a["ceil_mode"] and node.out_specs[0].dtype is float32


@converter("lp_pool1d", "lp_pool2d", "lp_pool3d", when=has_lp_pool)
def _(b, node, x):
    a = node.attrs
    return b.op("LpPool", x, kernel_shape=list(a["kernel_size"]), strides=list(a["stride"]), p=int(a["norm_type"]))


@converter("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d")
def _(b, node, x):
    """A global mean; windows of equal size; or for each axis a product with the weights of its windows."""
    wanted = node.attrs["output_size"]
    if max(wanted) == 1:
        return b.op("GlobalAveragePool", x)
    size = static_sizes(b, node)
    if not any(n % m for n, m in zip(size, wanted)):
        step = [n // m for n, m in zip(size, wanted)]
        return b.op("AveragePool", x, kernel_shape=step, strides=step)
    weights = [b.const(pooling_weights(n, m), node.out_specs[0].dtype) for n, m in zip(size, wanted)]
    axes, pooled = "dhw"[-len(size) :], "DHW"[-len(size) :]
    terms = ["nc" + axes, *[new + old for new, old in zip(pooled, axes)]]
    return b.op("Einsum", x, *weights, equation=f"{','.join(terms)}->nc{pooled}")


def pooling_weights(n: int, m: int) -> HostArray:
    """(m, n): weight of each of n elements in each of m windows."""
    result = namespace().zeros((m, n))
    for row, (start, stop) in zip(result, windows(n, m)):
        row[start:stop] = 1 / (stop - start)
    return result
