"""Composite losses over classes: cross-entropies with weights, smoothing or probabilities, and margins between scores.

`softmax.py` has the primitives `softmax_cross_entropy` and `nll`, for labels without weights.
"""

from __future__ import annotations

from ..base.errors import ShapeError
from ..op import define
from ..spec import Spec
from .elementwise import relu, square, where
from .examples import case, floats, ints, positive, strided
from .index import one_hot, take
from .loss import logit_entropy, reduce_losses, weight_tensor, weighted
from .rules import need_floating, need_index, need_spec
from .shape import in_float32
from .softmax import axis_of_classes, log_softmax, loss_spec, nll


def need_classes(op: str, x, labels, weight, reduction: str) -> None:
    """Refuse labels and class weights that do not match the scores x."""
    loss_spec(x.spec, labels.spec, reduction, op)
    if hasattr(weight, "spec"):
        need_spec(op, (x.spec.shape[axis_of_classes(x.spec.ndim)],), weight=weight.spec)


def class_weights(weight, x):
    """The weight of each class; None for the number 1."""
    return weight_tensor(weight, x.spec.replace(shape=(x.spec.shape[axis_of_classes(x.spec.ndim)],)))


def along_classes(weight, x):
    """Reshape (C,) to (1, C, 1, ...), to multiply x."""
    axis = axis_of_classes(x.spec.ndim)
    return weight.reshape((1,) * axis + (-1,) + (1,) * (x.spec.ndim - axis - 1))


def label_weights(labels, weight, ignore_index: int):
    """The weight of each label's class, 0 for ignored labels."""
    counts = labels.ne(ignore_index)
    return where(counts, take(weight, where(counts, labels, 0).long(), axis=0), 0.0)


def nll_losses(logs, labels, weight, ignore_index: int, reduction: str):
    """The loss of log-probabilities. weight: a tensor, or None."""
    if weight is None:
        return nll(logs, labels, ignore_index=ignore_index, reduction=reduction)
    weights = label_weights(labels, weight, ignore_index)
    losses = nll(logs, labels, ignore_index=ignore_index, reduction="none") * weights
    return losses.sum() / weights.sum() if reduction == "mean" else reduce_losses(losses, reduction)


def weighted_nll(x, labels, weight, ignore_index, reduction):
    need_classes("nll_loss", x, labels, weight, reduction)
    return nll_losses(x, labels, class_weights(weight, x), ignore_index, reduction)


nll_loss = define(
    "nll_loss(x, labels, weight; ignore_index, reduction)",
    decompose=weighted_nll,
    number_inputs=["weight"],
    autocast="float32",
    examples=[
        case(floats(3, 4), ints(3, high=4), positive(4), ignore_index=-100, reduction="mean"),
        case(floats(2, 3, 4), ints(2, 4, high=3), positive(3), ignore_index=1, reduction="none"),
        case(strided(3, 4), ints(3, high=4, dtype="int32"), 1, ignore_index=2, reduction="sum"),
        case(floats(4), ints((), high=4), 2.5, ignore_index=-100, reduction="mean"),
    ],
    doc="-weight[label] * x[label] of each example, reduced; the mean is weighted. A weight of 1 for none.",
)


def label_losses(x, labels, weight, ignore_index, label_smoothing, reduction):
    """(1 - label_smoothing) of the loss of the labels, and the rest of that of all classes alike."""
    need_classes("cross_entropy", x, labels, weight, reduction)
    axis, weight = axis_of_classes(x.spec.ndim), class_weights(weight, x)
    logs = log_softmax(x, dim=axis)
    hard = nll_losses(logs, labels, weight, ignore_index, reduction)
    if not hasattr(label_smoothing, "spec") and not label_smoothing:
        return hard
    spread = -(logs if weight is None else logs * along_classes(weight, x)).sum(axis)
    counts = labels.ne(ignore_index)
    spread = where(counts, spread, 0.0)
    if reduction == "mean":
        counted = counts.to(x.spec.dtype) if weight is None else label_weights(labels, weight, ignore_index)
        spread = spread.sum() / counted.sum()
    else:
        spread = reduce_losses(spread, reduction)
    return hard * (1 - label_smoothing) + spread * (label_smoothing / x.spec.shape[axis])


cross_entropy = define(
    "cross_entropy(x, labels, weight; ignore_index, label_smoothing, reduction)",
    decompose=label_losses,
    number_inputs=["weight"],
    autocast="float32",
    examples=[
        case(floats(3, 4), ints(3, high=4), positive(4), ignore_index=-100, label_smoothing=0.0, reduction="mean"),
        case(floats(3, 4), ints(3, high=4), positive(4), ignore_index=1, label_smoothing=0.2, reduction="mean"),
        case(floats(2, 3, 4), ints(2, 4, high=3), 1, ignore_index=1, label_smoothing=0.1, reduction="none"),
        case(strided(4), ints((), high=4), 1, ignore_index=-100, label_smoothing=0.3, reduction="sum"),
    ],
    doc="-weight[label] * log softmax(x)[label], smoothed and reduced; the mean is weighted. A weight of 1 for none.",
)


def probability_losses(x, target, weight, label_smoothing, reduction):
    need_floating("cross_entropy", x.spec)
    need_spec("cross_entropy", x.spec.shape or (0,), x=x.spec, target=target.spec)
    axis = axis_of_classes(x.spec.ndim)
    if hasattr(label_smoothing, "spec") or label_smoothing:
        target = target * (1 - label_smoothing) + label_smoothing / x.spec.shape[axis]
    scores, weight = log_softmax(x, dim=axis) * target, class_weights(weight, x)
    losses = -(scores if weight is None else scores * along_classes(weight, x)).sum(axis)
    return reduce_losses(losses, reduction)


soft_cross_entropy = define(
    "soft_cross_entropy(x, target, weight; label_smoothing, reduction)",
    decompose=probability_losses,
    number_inputs=["weight"],
    autocast="float32",
    examples=[
        case(floats(3, 4), positive(3, 4), 1, label_smoothing=0.0, reduction="mean"),
        case(floats(2, 3, 4), positive(2, 3, 4), positive(3), label_smoothing=0.2, reduction="none"),
        case(strided(4), positive(4), positive(4), label_smoothing=0.1, reduction="sum"),
    ],
    doc="-sum(target * weight * log softmax(x)) of each example, for target probabilities of the classes; reduced.",
)


@in_float32
def margin_losses(x, labels, weight, p, margin, reduction):
    need_classes("multi_margin_loss", x, labels, weight, reduction)
    need_rows("multi_margin_loss", x.spec)
    chosen = one_hot(labels, num_classes=x.spec.shape[-1]).bool()
    over = relu(margin - x.gather(-1, labels.unsqueeze(-1).long()) + x)
    losses = where(chosen, 0.0, over if p == 1 else square(over) if p == 2 else over**p).mean(-1)
    weight = class_weights(weight, x)
    return reduce_losses(losses if weight is None else losses * take(weight, labels.long(), axis=0), reduction)


def need_rows(op: str, x: Spec) -> None:
    if x.ndim not in (1, 2) or not x.shape[-1]:
        raise ShapeError(f"{op}: {{x}} is {list(x.shape)}", hint="scores (N, C) or (C,)")


multi_margin_loss = define(
    "multi_margin_loss(x, labels, weight; p, margin, reduction)",
    decompose=margin_losses,
    number_inputs=["weight"],
    autocast="float32",
    examples=[
        case(floats(3, 4), ints(3, high=4), 1, p=1, margin=1.0, reduction="mean"),
        case(strided(3, 4), ints(3, high=4), positive(4), p=2, margin=0.5, reduction="none"),
        case(floats(4), ints((), high=4), 2.5, p=1, margin=1.0, reduction="sum"),
    ],
    doc="The mean over other classes of weight[label] * max(0, margin - x[label] + x[class])**p; reduced.",
)


@in_float32
def multilabel_losses(x, labels, reduction):
    need_floating("multilabel_margin_loss", x.spec)
    need_rows("multilabel_margin_loss", x.spec)
    need_spec("multilabel_margin_loss", x.spec.shape, labels=labels.spec)
    need_index("multilabel_margin_loss", labels.spec, "labels")
    classes = x.spec.shape[-1]
    there = labels.lt(0).long().cumsum(-1) == 0  # classes before the first -1
    place = where(there, labels, 0)
    targets = (one_hot(place, num_classes=classes).bool() & there.unsqueeze(-1)).any(-2)
    over = relu(1.0 - x.gather(-1, place.long()).unsqueeze(-1) + x.unsqueeze(-2))
    counted = there.unsqueeze(-1) & ~targets.unsqueeze(-2)
    return reduce_losses(where(counted, over, 0.0).sum((-2, -1)) / classes, reduction)


multilabel_margin_loss = define(
    "multilabel_margin_loss(x, labels; reduction)",
    decompose=multilabel_losses,
    autocast="float32",
    examples=[
        case(floats(3, 4), ints(3, 4, low=-1, high=4), reduction="mean"),
        case(strided(3, 4), ints(3, 4, low=-1, high=4), reduction="none"),
        case(floats(4), ints(4, high=4), reduction="sum"),
    ],
    doc="The sum of max(0, 1 - x[a] + x[b]) / C over labels a before the first -1 and all other classes b; reduced.",
)


def multilabel_entropies(x, target, weight, reduction):
    losses = weighted(logit_entropy(x, target), weight)
    return reduce_losses(losses.mean(-1) if losses.spec.ndim else losses, reduction)


multilabel_soft_margin_loss = define(
    "multilabel_soft_margin_loss(x, target, weight; reduction)",
    decompose=multilabel_entropies,
    number_inputs=["weight"],
    autocast="float32",
    examples=[
        case(floats(3, 4), positive(3, 4, low=0.1, high=0.9), 1, reduction="mean"),
        case(strided(3, 4), positive(3, 4, low=0.1, high=0.9), positive(4), reduction="none"),
        case(floats(4), positive(4, low=0.1, high=0.9), 2.5, reduction="sum"),
    ],
    doc="The mean over classes of the binary cross-entropy of sigmoid(x), times weight; reduced.",
)


@in_float32
def angular_scores(x, labels, m1, m2, m3):
    need_floating("combined_margin_loss", x.spec)
    if x.spec.ndim != 2:
        raise ShapeError(f"combined_margin_loss: {{x}} is {list(x.spec.shape)}", hint="cosines (N, C)")
    need_spec("combined_margin_loss", x.spec.shape[:1], labels=labels.spec)
    need_index("combined_margin_loss", labels.spec, "labels")
    chosen = one_hot(labels, num_classes=x.spec.shape[1]).bool()
    margin = x if m1 == 1 and m2 == 0 else (where(chosen, x, 0.0).acos() * m1 + m2).cos()
    return where(chosen, margin - m3, x)


combined_margin_loss = define(
    "combined_margin_loss(x, labels; m1, m2, m3)",
    decompose=angular_scores,
    autocast="float32",
    examples=[
        case(floats(3, 4, low=-0.9, high=0.9), ints(3, high=4), m1=1.0, m2=0.0, m3=0.35),
        case(strided(3, 4, low=-0.9, high=0.9), ints(3, high=4), m1=0.9, m2=0.2, m3=0.1),
    ],
    doc="Cosines x, with that of each label, cos(t), lowered to cos(m1 * t + m2) - m3.",
)
