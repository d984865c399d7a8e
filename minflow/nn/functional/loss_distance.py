"""Losses that grow linearly for large differences, unlike squares: smooth_l1_loss and huber_loss.

Read next: `loss.py`, whose checks they share.
"""

from __future__ import annotations

from ...core.base.errors import OutOfRangeError
from ...core.functions.arguments import float_or_symbol, is_symbolic, with_numbers
from ...core.ops import loss_distance
from ...core.source_location import fail
from ...core.tensor import Tensor
from .arguments import legacy_reduction
from .loss import check_pair, checked_weight, l1_loss


@legacy_reduction("input target size_average reduce reduction beta")
def smooth_l1_loss(input: Tensor, target: Tensor, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """d**2 / (2 * beta) if d = |input - target| is below beta, else d - beta / 2. Girshick 2015, eq. 3.

    Both float, of one shape. beta: 0 makes it l1_loss. Raises OutOfRangeError for a beta below 0.
    """
    check_pair("smooth_l1_loss", input, target, reduction)
    beta = float_or_symbol(beta)
    if not is_symbolic(beta) and not beta >= 0:
        fail(OutOfRangeError, f"smooth_l1_loss: beta must be at least 0, got {beta!r}", "beta=1.0")
    if not is_symbolic(beta) and not beta:
        return l1_loss(input, target, reduction)
    return with_numbers(loss_distance.smooth_l1_loss, input, target, beta=beta, reduction=reduction)


def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """d**2 / 2 if d = |input - target| is below delta, else delta * (d - delta / 2). Huber 1964, section 4.

    Both float, of one shape. weight: of input's shape, a factor for each loss; the mean is the unweighted mean of the
    weighted losses. Raises OutOfRangeError unless delta is above 0.
    """
    check_pair("huber_loss", input, target, reduction)
    delta = float_or_symbol(delta)
    if not is_symbolic(delta) and not delta > 0:
        fail(OutOfRangeError, f"huber_loss: delta must be above 0, got {delta!r}", "delta=1.0")
    factors = checked_weight("huber_loss", input, weight)
    return with_numbers(loss_distance.huber_loss, input, target, factors, delta=delta, reduction=reduction)
