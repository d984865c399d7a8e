"""Margin losses: zero once the right answer leads by the margin, or once dissimilar pairs are that far apart.

Read next: `distance.py`, the distances and the cosine similarity.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any

from ...core.base.errors import DTypeError, OutOfRangeError, ShapeError
from ...core.functions.arguments import is_symbolic, number_or_symbol, with_numbers
from ...core.ops import loss_margin
from ...core.source_location import fail
from ...core.tensor import Tensor
from .arguments import check_reduction, check_tensor, legacy_reduction, norm_order
from .distance import check_rows, pairwise_distance


def check_all(name: str, reduction: str, **tensors: Any) -> None:
    """Check that the shapes broadcast, that the first tensor is floating, and that the reduction exists."""
    check_reduction(name, reduction)
    for argument, x in tensors.items():
        check_tensor(name, x, argument)
    argument, first = next(iter(tensors.items()))
    if not first.spec.floating:
        what = f"{name}: {argument} must be floating, got {first.dtype.name}"
        fail(DTypeError, what, f"{argument}.float()", **tensors)
    sizes = [x.spec.shape for x in tensors.values()]
    if any(n != m and 1 not in (n, m) for a in sizes for b in sizes for n, m in zip(a[::-1], b[::-1])):
        shown = ", ".join(f"{argument} {list(x.spec.shape)}" for argument, x in tensors.items())
        fail(ShapeError, f"{name}: the shapes differ: {shown}", "tensors of one shape", **tensors)


def same_axes(name: str, **tensors: Tensor) -> None:
    """Raise an error if tensors differ in the number of axes."""
    if len({x.spec.ndim for x in tensors.values()}) > 1:
        shown = ", ".join(f"{argument} {list(x.spec.shape)}" for argument, x in tensors.items())
        fail(ShapeError, f"{name}: the numbers of axes must be equal, got {shown}", "target.unsqueeze(1)", **tensors)


@legacy_reduction("input1 input2 target margin size_average reduce reduction")
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """max(0, margin - target * (input1 - input2)). target: 1 if input1 should be the larger, -1 if input2."""
    check_all("margin_ranking_loss", reduction, input1=input1, input2=input2, target=target)
    same_axes("margin_ranking_loss", input1=input1, input2=input2, target=target)
    return loss_margin.margin_ranking_loss(input1, input2, target, margin=margin, reduction=reduction)


@legacy_reduction("input target margin size_average reduce reduction")
def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, reduction: str = "mean") -> Tensor:
    """input where target is 1 (similar), max(0, margin - input) where it is -1; the input is a distance."""
    check_all("hinge_embedding_loss", reduction, input=input, target=target)
    return loss_margin.hinge_embedding_loss(input, target, margin=margin, reduction=reduction)


@legacy_reduction("input target size_average reduce reduction")
def soft_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """log(1 + exp(-target * input)), computed without overflow. target: 1 or -1."""
    check_all("soft_margin_loss", reduction, input=input, target=target)
    return loss_margin.soft_margin_loss(input, target, reduction=reduction)


@legacy_reduction("input1 input2 target margin size_average reduce reduction")
def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """1 - cos(input1, input2) where target is 1 (similar), max(0, cos - margin) where it is -1.

    input1, input2: float (N, D) or (D,). target: (N,) or ().
    """
    name, tensors = "cosine_embedding_loss", dict(input1=input1, input2=input2)
    check_all(name, reduction, **tensors)
    check_tensor(name, target, "target")
    if input1.spec.ndim != target.spec.ndim + 1 or input2.spec.ndim != target.spec.ndim + 1 or target.spec.ndim > 1:
        shown = ", ".join(f"{k} {list(x.spec.shape)}" for k, x in tensors.items())
        what = f"{name}: shapes must be (N, D), (N, D) and (N,), got {shown}, target {list(target.spec.shape)}"
        fail(ShapeError, what, "one target for each row", **tensors, target=target)
    return loss_margin.cosine_embedding_loss(input1, input2, target, margin=margin, reduction=reduction)


@legacy_reduction("anchor positive negative margin p eps swap size_average reduce reduction")
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), d the distance of order p along the last axis.

    All float (N, D) or (D,). swap: use the distance from positive to negative where it is smaller.
    Balntas et al. 2016, eq. 1.
    """
    check_all("triplet_margin_loss", reduction, anchor=anchor, positive=positive, negative=negative)
    same_axes("triplet_margin_loss", anchor=anchor, positive=positive, negative=negative)
    margin = checked_margin(margin)
    for x1, x2 in ((anchor, positive), (anchor, negative), *([(positive, negative)] if swap else [])):
        check_rows("pairwise_distance", x1=x1, x2=x2)
    options = dict(margin=margin, p=norm_order(p), eps=float(eps), swap=bool(swap), reduction=reduction)
    return with_numbers(loss_margin.triplet_margin_loss, anchor, positive, negative, **options)


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """triplet_margin_loss with any distance: a function of two tensors, pairwise_distance if None."""
    check_all("triplet_margin_with_distance_loss", reduction, anchor=anchor, positive=positive, negative=negative)
    same_axes("triplet_margin_with_distance_loss", anchor=anchor, positive=positive, negative=negative)
    margin = checked_margin(margin)
    distance = distance_function or pairwise_distance
    return loss_margin.reduce_triplets(anchor, positive, negative, distance, margin, swap, reduction)


def checked_margin(margin: Any) -> Any:
    """The margin as a float, or as a symbolic tensor. Raises OutOfRangeError unless it is above 0."""
    margin = number_or_symbol(margin)
    if is_symbolic(margin):
        return margin
    if not isinstance(margin, Real) or not float(margin) > 0:
        fail(OutOfRangeError, f"triplet_margin_loss: margin must be above 0, got {margin!r:.40}", "margin=1.0")
    return float(margin)
