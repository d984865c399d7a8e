"""Converters of matrix products and of the linear algebra that ONNX supports."""

from __future__ import annotations

import math

from ...core.spec import int32, int64
from ..builder import Builder, converter


@converter("matmul")
def _(b, node, x, y):
    names = [
        swapped(b, node, i, name) if node.attrs[flag] else name for i, (name, flag) in enumerate(((x, "ta"), (y, "tb")))
    ]
    dtype = node.out_specs[0].dtype
    if dtype.floating or dtype in (int32, int64):
        return b.op("MatMul", *names)
    return b.cast(b.op("MatMul", *[b.cast(name, int64) for name in names]), dtype)


def swapped(b: Builder, node, i: int, x: str) -> str:
    """Input i with its last two axes exchanged."""
    axes = [*range(len(node.inputs[i].spec.shape))]
    return b.op("Transpose", x, perm=[*axes[:-2], axes[-1], axes[-2]])


@converter("det")
def _(b, node, x):
    return b.op("Det", x)


@converter("pair_distances")
def _(b, node, x, y):
    """All differences by broadcasting: (..., P, 1, M) - (..., 1, R, M)."""
    p, dtype = node.attrs["p"], node.out_specs[0].dtype
    apart = b.op("Sub", b.op("Unsqueeze", x, b.const([-2])), b.op("Unsqueeze", y, b.const([-3])))
    last = b.const([-1])
    if p in (1, 2):
        return b.op(f"ReduceL{int(p)}", apart, last, keepdims=0)
    size = b.op("Abs", apart)
    if p == math.inf:
        return b.op("ReduceMax", size, last, keepdims=0)
    if p == 0:
        return b.op("ReduceSum", b.op("Sign", size), last, keepdims=0)
    powers = b.op("ReduceSum", b.op("Pow", size, b.const(p, dtype)), last, keepdims=0)
    return b.op("Pow", powers, b.const(1 / p, dtype))
