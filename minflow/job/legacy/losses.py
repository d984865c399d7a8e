"""Losses of job functions. Labels come first, logits second, and the classes are the last axis.

Functions ending in `_with_logits` return one loss per example; `minimize` uses the gradient of the mean. The others
have a `reduction`, and take predictions first. All accept eager tensors as well.
Read next: `../core/ops/softmax.py`, the fused softmax and cross-entropy.
"""

from __future__ import annotations

import math
from typing import Any

from ...core.backend import namespace_of
from ...core.base.errors import DTypeError, JobError, OutOfRangeError, ShapeError
from ...core.functions import abs as absolute, clamp, exp, gt, log, maximum, reshape, square, sum as total, where
from ...core.mode import MODE
from ...core.ops.checks import check_labels
from ...core.ops.index import checked_labels
from ...core.ops.loss_distance import smooth_l1_loss as smooth_l1
from ...core.ops.softmax import log_softmax, nll, softmax_cross_entropy
from ...core.source_location import describe, fail
from ...core.tensor import Tensor
from ...nn.functional import (
    binary_cross_entropy as yes_no,
    binary_cross_entropy_with_logits as yes_no_logits,
    combined_margin_loss as modern_margin,
    ctc_loss as modern_ctc,
)
from ...nn.functional.arguments import apply_reduction as to_one_number, check_reduction, check_tensor
from ..build_context import current
from .op_name import folded, takes_name
from .windows import pixel_shuffle

NOTHING = -(2**31)  # an ignore_index that no label has


# ---- labels and logits -------------------------------------------------------------------------------------------


def ordered(what: str, labels: Any, logits: Any, second: str = "logits") -> tuple[Tensor, Tensor]:
    """Check and return (labels, logits). If they are swapped, a job warns and swaps them; eager code raises."""
    check_tensor(what, labels, "labels")
    check_tensor(what, logits, second)
    a, b = labels.spec, logits.spec
    if a.floating and (not b.floating or a.ndim == b.ndim + 1):
        try:
            wrong = f"{what}: labels and {second} are swapped: labels is {a}, {second} is {b}"
            hint = f"{what}(labels, {second}): labels come first; or name them, labels=..., {second}=..."
            fail(JobError, wrong, hint, labels=labels, **{second: logits})
        except JobError as error:
            build = current()
            if build is None:
                raise
            build.add_error(error)
        return logits, labels
    if not b.floating or not b.ndim:
        wrong = f"{what}: {second} must be floating scores (N, C), got {b}"
        fail(DTypeError, wrong, f"{what}(labels, {second})", **{second: logits})
    return labels, logits


def class_labels(what: str, labels: Tensor, scores: Tensor, second: str) -> Tensor:
    """Check class indices and flatten them to (M,), for scores (M, C). While tracing, their range is checked by a
    node.
    """
    a, b = labels.spec, scores.spec
    wanted, classes = b.shape[:-1], b.shape[-1]
    if a.shape not in (wanted, (*wanted, 1)):
        one_hot = "flow.nn.softmax_cross_entropy_with_logits takes labels of one-hot form"
        what = f"{what}: labels must have shape {list(wanted)} for {second} {list(b.shape)}, got {list(a.shape)}"
        hint = one_hot if a.shape == b.shape else "one class number for each example"
        fail(ShapeError, what, hint, labels=labels, **{second: scores})
    if a.dtype.rank != 1:
        hint = "flow.cast(labels, flow.int32), or a Placeholder with dtype=flow.int32"
        what = f"{what}: labels is {a.dtype.name}, and class indices are integers"
        fail(DTypeError, what, hint, labels=labels, **{second: scores})
    flat = reshape(labels, (math.prod(wanted),))
    if flat.array is None or MODE.get().trace:
        return checked_labels(flat, loss=what, classes=classes, ignore_index=NOTHING)
    try:
        check_labels(namespace_of(flat.array), what, flat.array, classes, NOTHING)
    except OutOfRangeError as error:
        expected = error.values["expected"].replace("target", "labels")
        error.values = {"labels": describe(labels), "expected": expected, second: describe(scores)}
        raise
    return flat


@takes_name
def sparse_softmax_cross_entropy_with_logits(labels: Tensor, logits: Tensor) -> Tensor:
    """-log softmax(logits)[label] of each example: float, with the shape of labels.

    labels: int (...) or (..., 1), each in [0, C).  logits: float (..., C).
    Raises JobError if the two are swapped, ShapeError, DTypeError, and OutOfRangeError for an invalid label.
    """
    what = "nn.sparse_softmax_cross_entropy_with_logits"
    labels, logits = ordered(what, labels, logits)
    numbers = class_labels(what, labels, logits, "logits")
    flat = reshape(logits, (numbers.spec.size, logits.spec.shape[-1]))
    return reshape(softmax_cross_entropy(flat, numbers, ignore_index=NOTHING, reduction="none")[0], labels.spec.shape)


@takes_name
def distributed_sparse_softmax_cross_entropy_with_logits(labels: Tensor, logits: Tensor) -> Tensor:
    """The same as sparse_softmax_cross_entropy_with_logits, whose logits may be split over ranks along any axis."""
    return sparse_softmax_cross_entropy_with_logits(labels, logits)


@folded
def sparse_cross_entropy(labels: Tensor, prediction: Tensor) -> Tensor:
    """-log prediction[label] of each example. labels: int (...) or (..., 1).  prediction: probabilities (..., C)."""
    what = "nn.sparse_cross_entropy"
    labels, prediction = ordered(what, labels, prediction, "prediction")
    numbers = class_labels(what, labels, prediction, "prediction")
    flat = reshape(prediction, (numbers.spec.size, prediction.spec.shape[-1]))
    return reshape(nll(log(flat), numbers, ignore_index=NOTHING, reduction="none"), labels.spec.shape)


@folded
def softmax_cross_entropy_with_logits(labels: Tensor, logits: Tensor) -> Tensor:
    """-sum over classes of labels * log softmax(logits). Both (..., C); labels are probabilities, or one-hot integers.
    Returns (...).
    """
    what = "nn.softmax_cross_entropy_with_logits"
    check_tensor(what, labels, "labels")
    check_tensor(what, logits, "logits")
    if labels.spec.shape != logits.spec.shape:
        hint = "flow.nn.sparse_softmax_cross_entropy_with_logits takes class indices"
        what = f"{what}: labels is {labels.spec}, logits is {logits.spec}"
        fail(ShapeError, what, hint, labels=labels, logits=logits)
    return -total(log_softmax(logits, dim=logits.spec.ndim - 1) * labels, -1)


@folded
def sigmoid_cross_entropy_with_logits(labels: Tensor, logits: Tensor) -> Tensor:
    """z * softplus(-x) + (1 - z) * softplus(x) elementwise, with logits x and labels z. Both float, of the same
    shape.
    """
    what = "nn.sigmoid_cross_entropy_with_logits"
    check_tensor(what, labels, "labels")
    check_tensor(what, logits, "logits")
    if labels.spec.shape != logits.spec.shape:
        hint = "flow.reshape(labels, logits.shape): one label for each number"
        what = f"{what}: labels is {labels.spec}, logits is {logits.spec}"
        fail(ShapeError, what, hint, labels=labels, logits=logits)
    labels = labels if labels.spec.dtype is logits.spec.dtype else labels.to(logits.spec.dtype)
    return yes_no_logits(logits, labels, reduction="none")


# ---- predictions and targets -------------------------------------------------------------------------------------


def check_same(what: str, reduction: str, **tensors: Any) -> None:
    """Check that the tensors have the same shape and the reduction exists."""
    for argument, x in tensors.items():
        check_tensor(what, x, argument)
    check_reduction(what, reduction)
    shapes = {argument: list(x.spec.shape) for argument, x in tensors.items()}
    first = next(iter(shapes.values()))
    if any(shape != first for shape in shapes.values()):
        shown = ", ".join(f"{argument} {shape}" for argument, shape in shapes.items())
        what = f"{what}: the shapes differ: {shown}"
        fail(ShapeError, what, "flow.reshape(...) so that all have one shape", **tensors)


@folded
def l1_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """|input - target|, reduced. Both float, of the same shape. reduction: "mean", "sum" or "none"."""
    check_same("nn.L1Loss", reduction, input=input, target=target)
    return reduced(absolute(input - target), reduction)


@folded
def mse_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """(input - target)**2, reduced. Both float, of the same shape."""
    check_same("nn.MSELoss", reduction, input=input, target=target)
    return reduced(square(input - target), reduction)


def reduced(losses: Tensor, reduction: str) -> Tensor:
    """Reduce losses. Mean and sum have shape (1,), because OneFlow had no 0-d tensors."""
    out = to_one_number(losses, reduction)
    return out if reduction == "none" else reshape(out, (1,))


@takes_name
def bce_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean") -> Tensor:
    """-(target * log(input) + (1 - target) * log(1 - input)), reduced. input: probabilities; weight broadcasts to
    it.
    """
    out = yes_no(input, target, weight, reduction)
    return out if reduction == "none" else reshape(out, (1,))


@takes_name
def bce_with_logits_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    pos_weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Binary cross-entropy of sigmoid(input), reduced. pos_weight: weight of target 1 relative to 0."""
    out = yes_no_logits(input, target, weight, reduction, pos_weight)
    return out if reduction == "none" else reshape(out, (1,))


@folded
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """max(0, margin - target * (input1 - input2)), reduced. target: 1 where input1 should be the larger, else -1."""
    check_same("nn.MarginRankingLoss", reduction, input1=input1, input2=input2, target=target)
    return reduced(clamp((input1 - input2) * -target + margin, min=0.0), reduction)


@folded
def kl_div_loss(input: Tensor, target: Tensor, log_target: bool = False, reduction: str = "mean") -> Tensor:
    """target * (log(target) - input), 0 where target is 0, reduced. input: log-probabilities; target: likewise if
    log_target.
    """
    check_same("nn.KLDivLoss", reduction, input=input, target=target)
    if log_target:
        return reduced(exp(target) * (target - input), reduction)
    positive = gt(target, 0)
    logs = log(where(positive, target, target * 0 + 1))
    return reduced(where(positive, target * (logs - input), target * 0), reduction)


@folded
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
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), d the norm of order p of the difference, reduced.

    All float (N, D). swap: use the distance from positive to negative if it is smaller. Balntas et al. 2016.
    """
    check_same("nn.TripletMarginLoss", reduction, anchor=anchor, positive=positive, negative=negative)

    def distance(a: Tensor, b: Tensor) -> Tensor:
        return total(absolute(a - b + eps) ** p, -1) ** (1 / p)

    far = distance(anchor, negative)
    if swap:
        other = distance(positive, negative)
        far = -maximum(-far, -other)
    return reduced(clamp(distance(anchor, positive) - far + margin, min=0.0), reduction)


@folded
def pixel_shuffle_of(input: Tensor, upscale_factor: int) -> Tensor:
    """(N, C * r * r, H, W) to (N, C, H * r, W * r). Shi et al. 2016, eq. 4."""
    return pixel_shuffle(input, upscale_factor, upscale_factor)


@folded
def pixel_shuffle_v2(input: Tensor, h_upscale_factor: int, w_upscale_factor: int) -> Tensor:
    """PixelShuffle with a factor for each axis."""
    return pixel_shuffle(input, h_upscale_factor, w_upscale_factor)


# ---- distances and margins, without reduction -----------------------------------------------------------------------


@folded
def smooth_l1_loss(prediction: Tensor, label: Tensor, beta: float = 1.0) -> Tensor:
    """d * d / (2 * beta) where the distance d is below beta, else d - beta / 2; no reduction. Girshick 2015, eq. 3.

    Raises ShapeError if the shapes differ, OutOfRangeError unless beta is above 0.
    """
    check_same("smooth_l1_loss", "none", prediction=prediction, label=label)
    if not beta > 0:
        fail(OutOfRangeError, f"smooth_l1_loss: beta is {beta!r}, a distance above 0", "beta=1.0")
    return smooth_l1(prediction, label, beta=float(beta), reduction="none")


@folded
def combined_margin_loss(x: Tensor, label: Tensor, m1: float = 1, m2: float = 0, m3: float = 0) -> Tensor:
    """Cosines `(N, classes)`, with the cosine of the label's class, cos(t), reduced to cos(m1 * t + m2) - m3.

    Scale the result and pass it to a cross-entropy. Deng et al. 2019 (arXiv:1801.07698), eq. 4.
    """
    return modern_margin(x, label, m1, m2, m3)


@folded
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor,
    target_lengths: Tensor,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """functional.ctc_loss of frames (T, N, C) and targets (N, S); "mean" and "sum" have shape (1,). Graves et al. 2006,
    section 4.
    """
    losses = modern_ctc(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity)
    return losses if reduction == "none" else reshape(losses, (1,))
