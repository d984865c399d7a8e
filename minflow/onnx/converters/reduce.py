"""Converters of reductions and sorts. Sums of integers are int64, as in minflow."""

from __future__ import annotations

from ...core.spec import DType, bool_, int16, int32, int64, uint8
from ..builder import Builder, converter
from .compare import as_bool


def reduce_axes(b: Builder, kind: str, x: str, axis, keepdims) -> str:
    """A reduction over a tuple of axes, None for all of them, () for none."""
    axes = None if axis is None else b.const([*axis]) if axis else b.const([], int64)
    return b.op(kind, x, axes, keepdims=int(keepdims), noop_with_empty_axes=int(axis == ()))


def as_result_dtype(b: Builder, node, x: str) -> str:
    """x in the dtype of the result."""
    return b.cast(x, node.out_specs[0].dtype, node.inputs[0].spec.dtype)


@converter("sum", "prod", "mean")
def _(b, node, x):
    kind = {"sum": "ReduceSum", "prod": "ReduceProd", "mean": "ReduceMean"}[node.op.name]
    return reduce_axes(b, kind, as_result_dtype(b, node, x), **node.attrs)


@converter("var")
def _(b, node, x):
    axis, keepdims, correction = (node.attrs[name] for name in ("axis", "keepdims", "correction"))
    dtype = node.out_specs[0].dtype
    away = b.op("Sub", x, reduce_axes(b, "ReduceMean", x, axis, True))
    total = reduce_axes(b, "ReduceSum", b.op("Mul", away, away), axis, keepdims)
    sizes = [n for i, n in enumerate(b.sizes_of(node.inputs[0])) if axis is None or i in axis]
    if all(isinstance(n, int) for n in sizes):
        count = 1
        for n in sizes:
            count *= n
        return b.op("Div", total, b.const(max(count - correction, 0.0), dtype))
    count = b.cast(b.op("Div", b.op("Size", x), b.op("Size", total)), dtype)
    return b.op("Div", total, b.op("Max", b.op("Sub", count, b.const(correction, dtype)), b.const(0, dtype)))


def comparable(dtype: DType) -> DType:
    """A dtype in which ONNX can compare values of this dtype."""
    return {bool_: uint8, int16: int32}.get(dtype, dtype)


@converter("amax", "amin")
def _(b, node, x):
    kind, dtype = "ReduceMax" if node.op.name == "amax" else "ReduceMin", node.out_specs[0].dtype
    wide = comparable(dtype)
    return b.cast(reduce_axes(b, kind, b.cast(x, wide, dtype), **node.attrs), dtype, wide)


@converter("argmax", "argmin")
def _(b, node, x):
    kind = "ArgMax" if node.op.name == "argmax" else "ArgMin"
    axis, keepdims = node.attrs["axis"], node.attrs["keepdims"]
    dtype = node.inputs[0].spec.dtype
    x = b.cast(x, comparable(dtype), dtype)
    if axis is not None:
        return b.op(kind, x, axis=axis, keepdims=int(keepdims))
    place = b.op(kind, b.op("Reshape", x, b.const([-1])), axis=0, keepdims=0)
    return b.op("Reshape", place, b.const([1] * len(node.out_specs[0].shape), int64)) if keepdims else place


@converter("any", "all")
def _(b, node, x):
    """Count true or false elements, since a sum is also defined for empty input."""
    x = as_bool(b, node, 0, x)
    x = x if node.op.name == "any" else b.op("Not", x)
    some = b.cast(reduce_axes(b, "ReduceSum", b.cast(x, int64), **node.attrs), bool_)
    return some if node.op.name == "any" else b.op("Not", some)


@converter("cumsum")
def _(b, node, x):
    return b.op("CumSum", as_result_dtype(b, node, x), b.const(node.attrs["axis"]))


@converter("sort")
def _(b, node, x):
    """TopK of all elements, which orders equal elements by index, as a stable sort does."""
    return top_k(b, node, x, b.size_vector([b.sizes_of(node.inputs[0])[node.attrs["axis"]]]))


@converter("topk")
def _(b, node, x):
    return top_k(b, node, x, b.const([node.attrs["k"]]))


def top_k(b, node, x, count):
    axis, dtype = node.attrs["axis"], node.inputs[0].spec.dtype
    wide = comparable(dtype)
    x = b.cast(x, wide, dtype)
    found, places = b.op("TopK", x, count, axis=axis, largest=int(node.attrs["descending"]), sorted=1, outputs=2)
    return b.cast(found, dtype, wide), places


@converter("median")
def _(b, node, x):
    """The last element of the lower half."""
    dtype, flat = node.inputs[0].spec.dtype, b.op("Reshape", x, b.const([-1]))
    wide = comparable(dtype)
    flat = b.cast(flat, wide, dtype)
    half = b.const([(b.static_spec(node.inputs[0]).size + 1) // 2])
    smaller, _ = b.op("TopK", flat, half, axis=0, largest=0, sorted=1, outputs=2)
    middle = b.op("Gather", smaller, b.const(-1), axis=0)
    return b.cast(middle, dtype, wide)
