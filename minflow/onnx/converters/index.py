"""Converters of gather and scatter with integer tensors.

Indices are int64 or int32 in ONNX; negative ones count from the end, as in minflow. If a position occurs twice in a
scatter, ONNX does not define which value is kept.
"""

from __future__ import annotations

import math

from ...core.ir import NUMBERS
from ...core.spec import iinfo, int32, int64
from ..builder import Builder, converter


def as_index(b: Builder, node, i: int, x) -> str:
    """Input i, an index, in a dtype that ONNX accepts."""
    if x.__class__ in NUMBERS:
        return b.const(x, int64)
    return x if node.inputs[i].spec.dtype in (int32, int64) else b.cast(x, int64)


@converter("take")
def _(b, node, x, index):
    return b.op("Gather", x, as_index(b, node, 1, index), axis=node.attrs["axis"])


@converter("index_add", "index_put")
def _(b, node, x, index, src):
    """ScatterND writes along the first axis, so the indexed axis is moved to the front and back."""
    axis, axes = node.attrs["axis"], len(node.inputs[0].spec.shape)
    index_axes = len(node.inputs[1].spec.shape)
    index = b.cast(index, int64, node.inputs[1].spec.dtype)
    if src.__class__ is not str:
        shape = b.sizes_of(node.inputs[0])
        place = (*shape[:axis], *b.sizes_of(node.inputs[1]), *shape[axis + 1 :])
        src = b.op("Expand", b.const(src, node.out_specs[0].dtype), b.size_vector(place))
    if axis:
        front = [axis, *[i for i in range(axes) if i != axis]]
        negate = [
            *range(axis, axis + index_axes),
            *[i for i in range(axes - 1 + index_axes) if not axis <= i < axis + index_axes],
        ]
        x, src = b.op("Transpose", x, perm=front), b.op("Transpose", src, perm=negate)
    how = "add" if node.op.name == "index_add" else None
    x = b.op("ScatterND", x, b.op("Unsqueeze", index, b.const([-1])), src, reduction=how)
    return b.op("Transpose", x, perm=[*range(1, axis + 1), 0, *range(axis + 1, axes)]) if axis else x


@converter("ravel_index")
def _(b, node, *index):
    total, step = None, b.const(1)
    sizes = b.attr(node, "shape")
    for axis in reversed(range(len(sizes))):
        place = as_index(b, node, axis, index[axis])
        place = b.cast(place, int64) if getattr(node.inputs[axis], "spec", None) is not None else place
        size = b.op("Squeeze", b.size_vector([sizes[axis]]))
        term = b.op("Mul", b.op("Mod", place, size), step)  # a negative index counts from the end
        total = term if total is None else b.op("Add", term, total)
        step = b.op("Mul", step, size)
    return total


@converter("gather")
def _(b, node, x, index):
    return b.op("GatherElements", x, as_index(b, node, 1, index), axis=node.attrs["dim"])


KINDS = {"prod": "mul", "amax": "max", "amin": "min"}


@converter("scatter", "scatter_add", "scatter_reduce")
def _(b, node, x, index, src):
    dtype, name = node.out_specs[0].dtype, node.op.name
    index, axis = as_index(b, node, 1, index), node.attrs["dim"]
    if src.__class__ is not str:
        src = b.op("Expand", b.const(src, dtype), b.size_vector(b.sizes_of(node.inputs[1])))
    how = {"scatter": None, "scatter_add": "add"}.get(name) if name != "scatter_reduce" else KINDS[node.attrs["reduce"]]
    if name == "scatter_reduce" and not node.attrs["include_self"]:
        start = neutral_element(node.attrs["reduce"], dtype)
        x = b.op(
            "ScatterElements",
            x,
            index,
            b.op("Expand", b.const(start, dtype), b.size_vector(b.sizes_of(node.inputs[1]))),
            axis=axis,
        )
    return b.op("ScatterElements", x, index, src, axis=axis, reduction=how)


def neutral_element(how: str, dtype):
    """The neutral element of the reduction."""
    if how == "prod":
        return 1
    if dtype.floating:
        return -math.inf if how == "amax" else math.inf
    limits = iinfo(dtype)
    return limits.min if how == "amax" else limits.max


@converter("one_hot")
def _(b, node, index):
    classes = b.const(range(node.attrs["num_classes"]), int64)
    index = b.op("Unsqueeze", b.cast(as_index(b, node, 0, index), int64), b.const([-1]))
    return b.cast(b.op("Equal", index, classes), int64)
