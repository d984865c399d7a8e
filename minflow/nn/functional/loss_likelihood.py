"""Negative log-likelihood losses: of counts, of Gaussian elements with a variance, of a label sequence (CTC); and
kl_div.

Read next: `../../core/ops/ctc.py`.
"""

from __future__ import annotations

from typing import Any

from ...core.base.errors import DTypeError, OutOfRangeError, ShapeError
from ...core.base.legacy_dispatch import overloaded
from ...core.functions import isinf
from ...core.functions.arguments import ensure_tensor
from ...core.functions.creation import full_like
from ...core.ops import elementwise as e, loss_likelihood
from ...core.ops.ctc import ctc
from ...core.source_location import fail
from ...core.tensor import Tensor
from .arguments import apply_reduction, check_reduction, check_tensor, legacy_reduction
from .loss_margin import check_all


@legacy_reduction("input target size_average reduce reduction log_target")
def kl_div(input: Tensor, target: Tensor, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """target * (log(target) - input), the divergence of target from input; the first term is 0 where target is 0.

    input: logarithms of probabilities. target: probabilities, or with log_target their logarithms.
    reduction: also "batchmean", the sum divided by the size of axis 0, which is the mathematical divergence.
    """
    check_all("kl_div", "none" if reduction == "batchmean" else reduction, input=input, target=target)
    if reduction != "batchmean":
        return loss_likelihood.kl_div(input, target, log_target=log_target, reduction=reduction)
    total = loss_likelihood.kl_div(input, target, log_target=log_target, reduction="sum")
    return total / input.spec.shape[0] if input.spec.ndim and input.spec.shape[0] else total


@legacy_reduction("input target log_input full size_average eps reduce reduction")
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-8,
    reduction: str = "mean",
) -> Tensor:
    """exp(input) - target * input, for counts; without log_input: input - target * log(input + eps).

    full: add Stirling's formula for log(target!) where target is above 1.
    """
    check_all("poisson_nll_loss", reduction, input=input, target=target)
    options: Any = {"log_input": log_input, "full": full, "eps": eps, "reduction": reduction}
    return loss_likelihood.poisson_nll_loss(input, target, **options)


def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """(log(var) + (input - target)**2 / var) / 2, with var clamped to at least eps. Nix & Weigend 1994, eq. 3.

    var: of input's shape, or without its last axis, or with one axis of size 1, or a number. full: add log(2 pi) / 2.
    Raises OutOfRangeError for a negative variance.
    """
    name, tensors = "gaussian_nll_loss", dict(input=input, target=target)
    check_all(name, reduction, **tensors)
    variance: Tensor = var if isinstance(var, Tensor) else full_like(input, var)
    x, v = input.spec.shape, variance.spec.shape
    if v != x and v == x[:-1]:
        variance = variance.unsqueeze(-1)
    elif v != x and (len(v) != len(x) or [m for n, m in zip(x, v) if n != m] != [1]):
        what = f"{name}: var has shape {list(v)}, input has {list(x)}"
        fail(ShapeError, what, "one variance for each element, or for each example", **tensors, var=variance)
    if not variance.spec.floating:
        what = f"{name}: var must be floating, got {variance.dtype.name}"
        fail(DTypeError, what, "var.float()", **tensors, var=variance)
    options: Any = {"full": full, "eps": eps, "reduction": reduction}
    return loss_likelihood.gaussian_nll_loss(input, target, variance, **options)


# ---- label sequences ---------------------------------------------------------------------------------------------


@overloaded
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Any,
    target_lengths: Tensor | Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """-log of the probability that frames spell a label sequence, over all alignments. Graves et al. 2006, sec. 4.

    log_probs: float (T, N, C), as log_softmax returns them, or (T, C). targets: int (N, S), or all concatenated.
    input_lengths, target_lengths: int (N,), or sequences: number of frames and labels that are used. blank: index of
    the blank label. reduction: "mean" divides each loss by the length of its target first.
    zero_infinity: a target that does not fit into its frames, whose loss is infinite, has loss 0 and no gradient. The
    gradient is with respect to log_probs as given; it cannot be differentiated again.
    """
    check_reduction("ctc_loss", reduction)
    check_tensor("ctc_loss", log_probs, "log_probs")
    targets, frames, labels = ensure_tensor(targets), ensure_tensor(input_lengths), ensure_tensor(target_lengths)
    tensors = dict(log_probs=log_probs, targets=targets, input_lengths=frames, target_lengths=labels)
    ndim = log_probs.spec.ndim
    if ndim not in (2, 3):
        what = f"ctc_loss: log_probs must be (T, N, C), or (T, C), got {ndim} axes"
        fail(ShapeError, what, "frames first: x.permute(1, 0, 2) of (N, T, C)", **tensors)
    whole = log_probs.unsqueeze(1) if ndim == 2 else log_probs
    if ndim == 2:
        targets, frames, labels = targets.reshape(1, -1), frames.reshape(1), labels.reshape(1)
    examples, classes = whole.spec.shape[1:]
    if not 0 <= blank < classes:
        fail(OutOfRangeError, f"ctc_loss: blank is {blank}, there are {classes} classes", "blank=0", **tensors)
    if (
        frames.spec.shape != (examples,)
        or labels.spec.shape != (examples,)
        or targets.spec.ndim not in (1, 2)
        or (targets.spec.ndim == 2 and targets.spec.shape[0] != examples)
    ):
        shown = ", ".join(f"{k} {list(x.spec.shape)}" for k, x in tensors.items())
        fail(ShapeError, f"ctc_loss: {shown} do not have one batch size", "(T, N, C), (N, S), (N,) and (N,)", **tensors)
    losses = ctc(whole, targets, frames, labels, blank=blank)
    if zero_infinity:
        losses = e.where(isinf(losses), 0.0, losses)
    if reduction == "mean":
        return (losses / labels.clamp(min=1).to(losses.spec.device)).mean()
    return losses.reshape(()) if ndim == 2 and reduction == "none" else apply_reduction(losses, reduction)
