"""AdaptiveLogSoftmaxWithLoss: log-probabilities of very many classes, by clusters of rare ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...core.base.errors import OutOfRangeError, ShapeError
from ...core.functions import cat, where
from ...core.source_location import fail
from ...core.spec import Device, DType
from ...core.tensor import Tensor
from .. import functional as F
from ..containers import ModuleList, Sequential
from ..module import Module
from .linear import Linear


class _ASMoutput(NamedTuple):
    output: Tensor  # (N,), the log-probability of each target
    loss: Tensor  # minus its mean


class AdaptiveLogSoftmaxWithLoss(Module):
    """A softmax over n_classes ordered by frequency: the head chooses among the frequent classes and one cluster per
    cutoff, and a smaller layer chooses within a cluster (Grave et al. 2017).

    cutoffs: increasing first classes of the clusters.  div_value: each cluster's layer has in_features /
    div_value ** i inner features, i = 1, 2, ....  head_bias: give the head a bias.
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Device | str | None = None,
        dtype: DType | None = None,
    ):
        super().__init__()
        cuts = [int(c) for c in cutoffs]
        if not cuts or cuts != sorted(set(cuts)) or cuts[0] <= 0 or cuts[-1] >= n_classes:
            what = f"AdaptiveLogSoftmaxWithLoss: cutoffs are {list(cutoffs)} for {n_classes} classes"
            fail(OutOfRangeError, what, f"increasing whole numbers from 1 to {n_classes - 1}")
        self.in_features, self.n_classes, self.div_value, self.head_bias = in_features, n_classes, div_value, head_bias
        self.cutoffs = [*cuts, n_classes]
        self.shortlist_size, self.n_clusters = cuts[0], len(cuts)
        self.head_size = self.shortlist_size + self.n_clusters
        place: dict[str, Any] = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **place)
        self.tail = ModuleList()
        for i, (first, end) in enumerate(zip(self.cutoffs, self.cutoffs[1:]), 1):
            inner = int(in_features // div_value**i)
            self.tail.append(
                Sequential(
                    Linear(in_features, inner, bias=False, **place), Linear(inner, end - first, bias=False, **place)
                )
            )

    def reset_parameters(self) -> None:
        """Reinitialize all layers."""
        for layer in self.modules():
            if isinstance(layer, Linear):
                layer.reset_parameters()

    def forward(self, input: Tensor, target: Tensor) -> _ASMoutput:
        """(output, loss) of input (N, in_features) and target, int64 (N,); also without the axis of the batch.

        Each cluster computes all rows, so that a graph has static shapes; its result is used where the target is in it.
        """
        rows, labels = (input.unsqueeze(0), target.unsqueeze(0)) if target.ndim == 0 else (input, target)
        if labels.ndim != 1 or rows.ndim != 2 or rows.shape[0] != labels.shape[0]:
            what = "AdaptiveLogSoftmaxWithLoss: input and target do not fit"
            fail(ShapeError, what, "input (N, in_features) and target (N,)", input=input, target=target)
        head = F.log_softmax(self.head(rows), 1)
        inside = labels < self.shortlist_size
        output = head.gather(1, where(inside, labels, 0).unsqueeze(1)).squeeze(1)
        for i, (first, end) in enumerate(zip(self.cutoffs, self.cutoffs[1:])):
            inside = (labels >= first) & (labels < end)
            # zeros in place of the rows of other clusters: a NaN there times a gradient of 0 would be NaN
            part = F.log_softmax(self.tail[i](where(inside.unsqueeze(1), rows, 0.0)), 1)
            own = part.gather(1, where(inside, labels - first, 0).unsqueeze(1)).squeeze(1)
            output = where(inside, head[:, self.shortlist_size + i] + own, output)
        output = output if target.ndim else output.squeeze(0)
        return _ASMoutput(output, -output.mean())

    def log_prob(self, input: Tensor) -> Tensor:
        """Log-probabilities of all classes, (N, n_classes)."""
        head = F.log_softmax(self.head(input), 1)
        parts = [head[:, : self.shortlist_size]]
        for i, tail in enumerate(self.tail):
            column = self.shortlist_size + i
            parts.append(F.log_softmax(tail(input), 1) + head[:, column : column + 1])
        return cat(parts, 1)

    def predict(self, input: Tensor) -> Tensor:
        """The most probable class of each row, int64 (N,)."""
        return self.log_prob(input).argmax(1)
