"""Layers: losses based on distances and likelihoods. Formulas: `../functional/loss_distance.py` and
`../functional/loss_likelihood.py`.
"""

from __future__ import annotations

from typing import Any

from ...core.base.errors import ShapeError
from ...core.source_location import fail
from ...core.tensor import Tensor
from .. import functional as F
from ..functional.arguments import legacy_reduction
from .loss import Loss


class SmoothL1Loss(Loss):
    """Quadratic below a difference of beta, linear above it; the slope is at most 1."""

    @legacy_reduction("self size_average reduce reduction beta")
    def __init__(self, reduction: str = "mean", beta: float = 1.0):
        super().__init__(reduction=reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(Loss):
    """Half the square below a difference of delta, linear above it; the slope is at most delta."""

    def __init__(self, reduction: str = "mean", delta: float = 1.0):
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class KLDivLoss(Loss):
    """target * (log(target) - input), for log-probabilities (input) and probabilities (target).

    reduction: also "batchmean", which gives the mathematical divergence. log_target: True if the target is given as
    logarithms.
    """

    @legacy_reduction("self size_average reduce reduction log_target")
    def __init__(self, reduction: str = "mean", log_target: bool = False):
        super().__init__(reduction="mean" if reduction == "batchmean" else reduction)
        self.reduction, self.log_target = reduction, log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class PoissonNLLLoss(Loss):
    """exp(input) - target * input, for counts; full adds Stirling's formula for log(target!)."""

    @legacy_reduction("self log_input full size_average eps reduce reduction")
    def __init__(self, log_input: bool = True, full: bool = False, eps: float = 1e-8, reduction: str = "mean"):
        super().__init__(reduction=reduction)
        self.log_input, self.full, self.eps = log_input, full, eps

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        options: Any = dict(log_input=self.log_input, full=self.full, eps=self.eps, reduction=self.reduction)
        return F.poisson_nll_loss(log_input, target, **options)


class GaussianNLLLoss(Loss):
    """(log(var) + (input - target)**2 / var) / 2, with var clamped to at least eps; full adds log(2 pi) / 2."""

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean"):
        super().__init__(reduction=reduction)
        self.full, self.eps = full, eps

    def forward(self, input: Tensor, target: Tensor, var: Tensor | float) -> Tensor:
        return F.gaussian_nll_loss(input, target, var, full=self.full, eps=self.eps, reduction=self.reduction)


class CTCLoss(Loss):
    """-log of the probability that frames (T, N, C) spell the targets, summed over all alignments.

    blank: index of the blank label. zero_infinity: a target that does not fit into its frames has loss 0.
    """

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False):
        super().__init__(reduction=reduction)
        if isinstance(blank, bool) or not hasattr(blank, "__index__"):
            fail(ShapeError, f"CTCLoss: blank must be a class index, got {blank!r}", "blank=0")
        self.blank, self.zero_infinity = blank, zero_infinity

    def forward(self, log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any) -> Tensor:
        lengths = (input_lengths, target_lengths)
        return F.ctc_loss(log_probs, targets, *lengths, self.blank, self.reduction, self.zero_infinity)
