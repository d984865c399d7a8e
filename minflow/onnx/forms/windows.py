"""Views whose elements overlap: a Gather with constant places."""

from __future__ import annotations

import numpy as np

from ..builder import form


@form("as_strided")
def _(b, node, x):
    """By their places in the flat tensor."""
    a = node.attrs
    b.fixed(node.inputs[0])
    places = np.full(a["size"], a["offset"], "int64")
    for axis, (n, step) in enumerate(zip(a["size"], a["stride"])):
        places += (np.arange(n) * step).reshape((-1,) + (1,) * (len(a["size"]) - 1 - axis))
    return b.op("Gather", b.op("Reshape", x, b.const([-1])), b.const(places), axis=0)


@form("windows")
def _(b, node, x):
    """Each window along its axis, then its elements as the last axis."""
    dim, size, step = (node.attrs[k] for k in ("dim", "size", "step"))
    count, ndim = node.out_specs[0].shape[dim], b.fixed(node.inputs[0], dim).ndim
    places = (np.arange(count) * step)[:, None] + np.arange(size)
    seen = b.op("Gather", x, b.const(places), axis=dim)
    order = [axis for axis in range(ndim + 1) if axis != dim + 1] + [dim + 1]
    return seen if dim == ndim - 1 else b.op("Transpose", seen, perm=order)


@form("strided_look")
def _(b, node, x):
    """A parameter over a foreign array that is not contiguous: its numbers as they are, laid out anew."""
    view = np.lib.stride_tricks.as_strided(node.inputs[0].node.array, node.attrs["shape"], node.attrs["strides"])
    return b.const(np.ascontiguousarray(view))
