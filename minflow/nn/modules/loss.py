"""Layers: the losses. Each holds its options and calls the function of the same name in `../functional/loss.py`.

reduction: the "mean" or the "sum" of all elements, or "none" for the elements themselves.
"""

from __future__ import annotations

from ...core.tensor import Tensor
from .. import functional as F
from ..functional.arguments import legacy_reduction
from ..module import Module
from .legacy_overload import LegacyOverload


class Loss(LegacyOverload, Module):
    """Base of all losses: the reduction. In a job function, MSELoss(input, target) of Blobs returns the loss."""

    @legacy_reduction("self size_average reduce reduction")
    def __init__(self, reduction: str = "mean"):
        super().__init__()
        F.arguments.check_reduction(type(self).__name__, reduction)
        self.reduction = reduction


class WeightedLoss(Loss):
    """A loss with a weight tensor, kept as a buffer."""

    @legacy_reduction("self weight size_average reduce reduction")
    def __init__(self, weight: Tensor | None = None, reduction: str = "mean"):
        super().__init__(reduction=reduction)
        self.register_buffer("weight", weight)


class MSELoss(Loss):
    """(input - target)**2. Both float, of one shape."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(input, target, reduction=self.reduction)


class L1Loss(Loss):
    """|input - target|. Both float, of one shape."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.l1_loss(input, target, reduction=self.reduction)


class NLLLoss(WeightedLoss):
    """-weight[target] * input[target], for log-probabilities (N, C, ...) and class indices (N, ...)."""

    @legacy_reduction("self weight size_average ignore_index reduce reduction")
    def __init__(self, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean"):
        super().__init__(weight, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.nll_loss(input, target, self.weight, ignore_index=self.ignore_index, reduction=self.reduction)


NLLLoss2d = NLLLoss  # PyTorch's old name for images


class CrossEntropyLoss(WeightedLoss):
    """-log softmax(input)[target], for logits (N, C, ...) and class indices (N, ...) or probabilities (N, C, ...)."""

    @legacy_reduction("self weight size_average ignore_index reduce reduction label_smoothing")
    def __init__(
        self,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ):
        super().__init__(weight, reduction)
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(
            input,
            target,
            self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class BCELoss(WeightedLoss):
    """-(target * log(input) + (1 - target) * log(1 - input)), for probabilities and targets in [0, 1] of one shape."""

    @legacy_reduction("self weight size_average reduce reduction")
    def __init__(self, weight: Tensor | None = None, reduction: str = "mean"):
        super().__init__(weight, reduction)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy(input, target, self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(WeightedLoss):
    """BCELoss of sigmoid(input), computed without overflow. pos_weight: factor of the target 1."""

    @legacy_reduction("self weight size_average reduce reduction pos_weight")
    def __init__(self, weight: Tensor | None = None, reduction: str = "mean", pos_weight: Tensor | None = None):
        super().__init__(weight, reduction)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, reduction=self.reduction, pos_weight=self.pos_weight
        )
