"""Layers: the losses with a margin. Formulas: `../functional/loss_margin.py` and `../functional/loss_classes.py`."""

from __future__ import annotations

from collections.abc import Callable

from ...core.tensor import Tensor
from .. import functional as F
from ..functional.arguments import legacy_reduction
from ..module import Module
from .loss import Loss, WeightedLoss


class MarginLoss(Loss):
    """Base of losses with one margin."""

    def __init__(self, margin: float, reduction: str):
        super().__init__(reduction=reduction)
        self.margin = margin


class MarginRankingLoss(MarginLoss):
    """max(0, margin - target * (input1 - input2)). target: 1 if input1 should be the larger, -1 if input2."""

    @legacy_reduction("self margin size_average reduce reduction")
    def __init__(self, margin: float = 0.0, reduction: str = "mean"):
        super().__init__(margin, reduction)

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.margin_ranking_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class HingeEmbeddingLoss(MarginLoss):
    """input where target is 1 (similar), max(0, margin - input) where it is -1; the input is a distance."""

    @legacy_reduction("self margin size_average reduce reduction")
    def __init__(self, margin: float = 1.0, reduction: str = "mean"):
        super().__init__(margin, reduction)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction)


class CosineEmbeddingLoss(MarginLoss):
    """1 - cos(input1, input2) where target is 1 (similar), max(0, cos - margin) where it is -1."""

    @legacy_reduction("self margin size_average reduce reduction")
    def __init__(self, margin: float = 0.0, reduction: str = "mean"):
        super().__init__(margin, reduction)

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.cosine_embedding_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class SoftMarginLoss(Loss):
    """log(1 + exp(-target * input)), for targets 1 and -1."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class TripletMarginLoss(MarginLoss):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), d the distance of order p. Balntas et al. 2016."""

    @legacy_reduction("self margin p eps swap size_average reduce reduction")
    def __init__(
        self, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False, reduction: str = "mean"
    ):
        super().__init__(margin, reduction)
        self.p, self.eps, self.swap = p, eps, swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        options = (self.margin, self.p, self.eps, self.swap)
        return F.triplet_margin_loss(anchor, positive, negative, *options, reduction=self.reduction)


class TripletMarginWithDistanceLoss(MarginLoss):
    """TripletMarginLoss with any distance: a function of two tensors, or a module."""

    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ):
        super().__init__(margin, reduction)
        self.distance_function, self.swap = distance_function or F.pairwise_distance, swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )


class MultiMarginLoss(WeightedLoss):
    """The mean over classes other than the target of max(0, margin - input[target] + input[class])**p."""

    @legacy_reduction("self p margin weight size_average reduce reduction")
    def __init__(self, p: int = 1, margin: float = 1.0, weight: Tensor | None = None, reduction: str = "mean"):
        super().__init__(weight, reduction)
        self.p, self.margin = p, margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multi_margin_loss(input, target, self.p, self.margin, self.weight, reduction=self.reduction)


class MultiLabelMarginLoss(Loss):
    """The sum of max(0, 1 - input[a] + input[b]) / C over all targets a and all other classes b."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(WeightedLoss):
    """The mean over classes of the binary cross-entropy of sigmoid(input), for targets 0 and 1."""

    @legacy_reduction("self weight size_average reduce reduction")
    def __init__(self, weight: Tensor | None = None, reduction: str = "mean"):
        super().__init__(weight, reduction)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_soft_margin_loss(input, target, self.weight, reduction=self.reduction)


class CombinedMarginLoss(Module):
    """Cosines (N, C), with that of each label's class lowered to cos(m1 * t + m2) - m3. Deng et al. 2019."""

    def __init__(self, m1: float = 1.0, m2: float = 0.0, m3: float = 0.0):
        super().__init__()
        self.m1, self.m2, self.m3 = m1, m2, m3

    def forward(self, x: Tensor, label: Tensor) -> Tensor:
        return F.combined_margin_loss(x, label, self.m1, self.m2, self.m3)
