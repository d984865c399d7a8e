"""Losses over classes besides cross_entropy: margins between scores, several classes at once, angular margins.

Read next: `loss.py`, whose checks of labels they share.
"""

from __future__ import annotations

from typing import Any

from ...core.backend import namespace_of
from ...core.base.errors import OutOfRangeError, ShapeError
from ...core.functions import reshape
from ...core.mode import MODE
from ...core.ops import loss_classes
from ...core.ops.checks import check_labels as check_numbers
from ...core.ops.index import checked_labels
from ...core.ops.softmax import softmax_cross_entropy
from ...core.source_location import fail
from ...core.tensor import Tensor
from .arguments import check_tensor, legacy_reduction
from .loss import check_classes, check_labels, check_same, or_one

NO_IGNORE = -(2**31)  # an ignore_index that no label has


@legacy_reduction("input target p margin weight size_average reduce reduction")
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean over classes other than the target of weight[target] * max(0, margin - input[target] + input[class])**p.

    input: scores, float (N, C) or (C,). target: int (N,) or (). weight: (C,). p: 1 or 2.
    """
    check_classes("multi_margin_loss", input, weight, reduction)
    check_tensor("multi_margin_loss", target, "target")
    if p not in (1, 2):
        fail(OutOfRangeError, f"multi_margin_loss: p must be 1 or 2, got {p!r}", "p=1 or p=2", input=input)
    if input.spec.ndim == 1 and target.spec.shape == (1,):
        target = reshape(target, ())
    target = check_labels("multi_margin_loss", input, target, NO_IGNORE)
    options: Any = {"p": p, "margin": margin, "reduction": reduction}
    return loss_classes.multi_margin_loss(input, target, or_one(weight), **options)


@legacy_reduction("input target size_average reduce reduction")
def multilabel_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """The sum of max(0, 1 - input[a] + input[b]) / C over all targets a and all other classes b.

    input: scores, float (N, C) or (C,). target: int of the same shape: the classes of each example, then -1.
    """
    check_classes("multilabel_margin_loss", input, None, reduction)
    check_tensor("multilabel_margin_loss", target, "target")
    x, t = input.spec, target.spec
    if t.shape != x.shape or x.ndim > 2 or t.dtype.rank != 1:
        what = f"multilabel_margin_loss: input and target must be (N, C) and class indices (N, C), got {x} and {t}"
        fail(ShapeError, what, "the classes of each example, padded with -1", input=input, target=target)
    name, classes = "multilabel_margin_loss", x.shape[-1]
    if target.array is None or MODE.get().trace:
        target = checked_labels(target, loss=name, classes=classes, ignore_index=-1)
    else:
        check_numbers(namespace_of(target.array), name, target.array, classes, -1)
    return loss_classes.multilabel_margin_loss(input, target, reduction=reduction)


@legacy_reduction("input target weight size_average reduce reduction")
def multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """The mean over classes (the last axis) of the binary cross-entropy of sigmoid(input). target: 0 or 1.

    input, target: (N, C) or (C,).  weight: broadcasts to them.
    """
    check_tensor("multilabel_soft_margin_loss", input)
    check_tensor("multilabel_soft_margin_loss", target, "target")
    if not target.spec.floating and input.spec.floating:
        target = target.to(input.spec.dtype)
    check_same("multilabel_soft_margin_loss", input, target, reduction)
    return loss_classes.multilabel_soft_margin_loss(input, target, or_one(weight), reduction=reduction)


def sparse_softmax_cross_entropy(labels: Tensor, logits: Tensor) -> Tensor:
    """-log softmax(logits)[label] of each example, with the classes on the last axis. This is OneFlow's function:
    labels come first.

    labels: int (...), each in [0, C). logits: float (..., C). Returns float (...).
    """
    check_tensor("sparse_softmax_cross_entropy", labels, "labels")
    check_tensor("sparse_softmax_cross_entropy", logits, "logits")
    classes = logits.spec.shape[-1] if logits.spec.ndim else 0
    if labels.spec.shape != logits.spec.shape[:-1] or not logits.spec.floating or not classes:
        what = f"sparse_softmax_cross_entropy: labels is {labels.spec}, logits is {logits.spec}"
        hint = "sparse_softmax_cross_entropy(labels, logits): int (...) and float (..., C), labels first"
        fail(ShapeError, what, hint, labels=labels, logits=logits)
    shape, rows = labels.spec.shape, (labels.spec.size, classes)
    labels, logits = reshape(labels, (rows[0],)), reshape(logits, rows)
    labels = check_labels("sparse_softmax_cross_entropy", logits, labels, NO_IGNORE)
    return reshape(softmax_cross_entropy(logits, labels, ignore_index=NO_IGNORE, reduction="none")[0], shape)


def combined_margin_loss(x: Tensor, label: Tensor, m1: float = 1.0, m2: float = 0.0, m3: float = 0.0) -> Tensor:
    """Cosines (N, C), with that of each label's class, cos(t), lowered to cos(m1 * t + m2) - m3.

    The result is scaled and passed to a cross-entropy. Deng et al. 2019 (arXiv:1801.07698), eq. 4.
    """
    check_tensor("combined_margin_loss", x)
    check_tensor("combined_margin_loss", label, "label")
    if x.spec.ndim != 2 or label.spec.shape != x.spec.shape[:1]:
        what = f"combined_margin_loss: label {list(label.spec.shape)} for x {list(x.spec.shape)}"
        fail(ShapeError, what, "(N,) and (N, classes)", x=x, label=label)
    label = check_labels("combined_margin_loss", x, label, NO_IGNORE)
    return loss_classes.combined_margin_loss(x, label, m1=m1, m2=m2, m3=m3)
