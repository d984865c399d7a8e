"""Losses that grow linearly for large differences, unlike squares: smooth_l1_loss and huber_loss.

Read next: `loss.py`, whose checks they share.
"""

from __future__ import annotations

from ...core.base.errors import OutOfRangeError
from ...core.functions.arguments import in_float32
from ...core.ops import elementwise as e
from ...core.source_location import fail
from ...core.tensor import Tensor
from .arguments import apply_reduction, composite, legacy_reduction
from .loss import check_pair, check_weight, difference, l1_loss


@legacy_reduction("input target size_average reduce reduction beta")
def smooth_l1_loss(input: Tensor, target: Tensor, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """d**2 / (2 * beta) if d = |input - target| is below beta, else d - beta / 2. Girshick 2015, eq. 3.

    Both float, of one shape. beta: 0 makes it l1_loss. Raises OutOfRangeError for a beta below 0.
    """
    check_pair("smooth_l1_loss", input, target, reduction)
    if not beta >= 0:
        fail(OutOfRangeError, f"smooth_l1_loss: beta must be at least 0, got {beta!r}", "beta=1.0")
    return (
        apply_reduction(smooth_l1(input, target, float(beta)), reduction) if beta else l1_loss(input, target, reduction)
    )


@composite("smooth_l1_loss")
@in_float32
def smooth_l1(input: Tensor, target: Tensor, beta: float) -> Tensor:
    distance = e.abs(difference(input, target))
    near = distance.clamp(max=beta)
    return near / beta * (distance - 0.5 * near)


def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """d**2 / 2 if d = |input - target| is below delta, else delta * (d - delta / 2). Huber 1964, section 4.

    Both float, of one shape. weight: of input's shape, a factor for each loss; the mean is the unweighted mean of the
    weighted losses. Raises OutOfRangeError unless delta is above 0.
    """
    check_pair("huber_loss", input, target, reduction)
    if not delta > 0:
        fail(OutOfRangeError, f"huber_loss: delta must be above 0, got {delta!r}", "delta=1.0")
    losses = huber_losses(input, target, float(delta))
    if weight is None:
        return apply_reduction(losses, reduction)
    check_weight("huber_loss", input, weight)
    return apply_reduction(losses * weight, reduction)


@composite("huber_loss")
@in_float32
def huber_losses(input: Tensor, target: Tensor, delta: float) -> Tensor:
    distance = e.abs(difference(input, target))
    near = distance.clamp(max=delta)
    return near * (distance - 0.5 * near)
