"""Distances and cosine similarity between rows, pairwise or all pairs. Read next: `../../core/ops/distance.py`."""

from __future__ import annotations

from typing import Any

from ...core.base.errors import DTypeError, OutOfRangeError, ShapeError
from ...core.functions.arguments import common_shape
from ...core.ops import distance as d, linalg
from ...core.ops.rules import broadcast_shape
from ...core.source_location import fail
from ...core.spec import wider
from ...core.tensor import Tensor
from .arguments import check_tensor, norm_order, normalize_axis


def check_rows(name: str, **tensors: Any) -> None:
    """Refuse tensors that are not floating or whose shapes do not broadcast."""
    for argument, x in tensors.items():
        check_tensor(name, x, argument)
        if not x.spec.floating:
            what = f"{name}: {argument} must be floating, got {x.dtype.name}"
            fail(DTypeError, what, f"{argument}.float()", **tensors)
    common_shape(name, tensors)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """sum(x1 * x2) / (|x1| * |x2|) along axis dim, where each norm is at least eps. The shapes broadcast."""
    check_rows("cosine_similarity", x1=x1, x2=x2)
    axis = normalize_axis("cosine_similarity", dim, max(x1.spec.ndim, x2.spec.ndim))
    return d.cosine_similarity(x1, x2, axis=axis, eps=float(eps))


def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """The norm of order p of x1 - x2 + eps along the last axis. Float (N, D) or (D,); the shapes broadcast."""
    check_rows("pairwise_distance", x1=x1, x2=x2)
    return d.pairwise_distance(x1, x2, p=norm_order(p), eps=float(eps), keepdims=keepdim)


def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str | None = None) -> Tensor:
    """The distance of order p from each row of x1 to each row of x2.

    x1: float (..., P, M). x2: float (..., R, M). Returns float (..., P, R); the leading axes broadcast.
    p: from 0 (the number of elements that differ) to float("inf") (the largest difference). compute_mode: accepted and
    ignored, since the matrix products used for large inputs are accurate enough. Not differentiable twice.
    """
    tensors = dict(x1=x1, x2=x2)
    check_pairs("cdist", p, **tensors)
    a, b = x1.spec.shape, x2.spec.shape
    if a[-1] != b[-1]:
        what = f"cdist: the rows of x1 have {a[-1]} elements, those of x2 {b[-1]}"
        fail(ShapeError, what, "points of one space: the last axes must be equal", **tensors)
    dtype = wider(x1.spec.dtype, x2.spec.dtype)
    if not all(n == m or 1 in (n, m) for n, m in zip(a[-3::-1], b[-3::-1])):
        what = f"cdist: the axes before the rows differ: {list(a[:-2])}, {list(b[:-2])}"
        fail(ShapeError, what, "batches of one size, or of size 1", **tensors)
    outer = broadcast_shape("cdist", {"x1": a[:-2], "x2": b[:-2]})
    x1, x2 = x1.to(dtype).expand(*outer, *a[-2:]), x2.to(dtype).expand(*outer, *b[-2:])
    return d.pair_distances(x1, x2, p=float(p))


def check_pairs(name: str, p: float, **tensors: Any) -> None:
    for argument, x in tensors.items():
        check_tensor(name, x, argument)
        if not x.spec.floating:
            what = f"{name}: {argument} must be floating, got {x.dtype.name}"
            fail(DTypeError, what, f"{argument}.float()", **tensors)
        if x.spec.ndim < 2:
            what = f"{name}: {argument} must be rows (P, M), got {x.spec.ndim} axes"
            fail(ShapeError, what, f"{argument}.reshape(-1, 1) for points on a line", **tensors)
    if not p >= 0:
        fail(OutOfRangeError, f"{name}: p must be from 0 to infinity, got {p!r}", "p=2.0", **tensors)


def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """The distances of order p between the rows of input (N, M), each pair once: (0, 1), (0, 2), ..., (1, 2), ...

    Returns float (N * (N - 1) / 2,).
    """
    check_pairs("pdist", p, input=input)
    if input.spec.ndim != 2:
        fail(ShapeError, f"pdist: input must be (N, M), got {input.spec.ndim} axes", "one set of rows", input=input)
    return d.pdist(input, p=float(p))


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """out[k] = input1 @ weight[k] @ input2 + bias[k].

    input1: float (..., I). input2: float (..., J), with the same leading axes. weight: (K, I, J). bias: (K,) or None.
    Returns float (..., K).
    """
    tensors = dict(input1=input1, input2=input2, weight=weight, **({} if bias is None else {"bias": bias}))
    for argument, x in tensors.items():
        check_tensor("bilinear", x, argument)
    a, b, w = input1.spec.shape, input2.spec.shape, weight.spec.shape
    if (
        len(w) != 3
        or not a
        or a[:-1] != b[:-1]
        or (a[-1], b[-1]) != w[1:]
        or (bias is not None and bias.shape != w[:1])
    ):
        shown = ", ".join(f"{argument} {list(x.spec.shape)}" for argument, x in tensors.items())
        fail(ShapeError, f"bilinear: {shown} do not fit", "(..., I), (..., J), (K, I, J) and (K,)", **tensors)
    return linalg.bilinear(input1, input2, weight, 0 if bias is None else bias)
