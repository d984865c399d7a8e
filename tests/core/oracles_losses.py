"""Oracles of the composite losses: one element, pair or class at a time, in float64."""

import itertools
import math

import numpy as np

from tests.core.oracles_nn import softmax_log


def reduced(losses, reduction, weights=None):
    losses = np.asarray(losses)
    if reduction == "none":
        return losses
    return losses.sum() / {"sum": 1, "mean": losses.size if weights is None else weights}[reduction]


def each(function, reduction, *arrays):
    """A loss of one element of each array, applied to all."""
    return reduced(np.vectorize(function, otypes=["float64"])(*arrays), reduction)


def differences(power):
    def loss(x, target, weight, reduction):
        losses = np.abs(x - target) ** power * weight
        whole = np.broadcast_to(weight, losses.shape) if np.ndim(weight) == 0 else weight
        return reduced(losses, reduction, whole.sum())

    return loss


def smooth_l1(x, target, beta, reduction):
    loss = lambda d: d * d / (2 * beta) if d < beta else d - beta / 2
    return each(lambda a, b: loss(abs(a - b)), reduction, x, target)


def huber(x, target, weight, delta, reduction):
    loss = lambda d: d * d / 2 if d < delta else delta * (d - delta / 2)
    return each(lambda a, b, w: loss(abs(a - b)) * w, reduction, x, target, weight)


def entropy(p, t):
    return -(t * math.log(p) + (1 - t) * math.log1p(-p))


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def with_logits(x, target, weight, pos_weight, reduction):
    loss = lambda x, t, w, v: -w * (v * t * math.log(sigmoid(x)) + (1 - t) * math.log(sigmoid(-x)))
    return each(loss, reduction, x, target, weight, pos_weight)


def kl(x, target, log_target, reduction):
    loss = lambda x, t: math.exp(t) * (t - x) if log_target else (t * math.log(t) if t else 0) - t * x
    return each(loss, reduction, x, target)


def poisson(x, target, log_input, full, eps, reduction):
    def loss(x, t):
        stirling = t * math.log(t) - t + math.log(2 * math.pi * t) / 2 if full and t > 1 else 0
        return (math.exp(x) - t * x if log_input else x - t * math.log(x + eps)) + stirling

    return each(loss, reduction, x, target)


def gaussian(x, target, var, full, eps, reduction):
    constant = math.log(2 * math.pi) / 2 if full else 0
    loss = lambda x, t, v: (math.log(max(v, eps)) + (x - t) ** 2 / max(v, eps)) / 2 + constant
    return each(loss, reduction, x, target, var)


def cosine(a, b, target, margin, reduction):
    def loss(a, b, t):
        angle = float((a @ b) / (np.sqrt(a @ a) * np.sqrt(b @ b)))
        return 1 - angle if t == 1 else max(0, angle - margin)

    if a.ndim == 1:
        return loss(a, b, target)
    return reduced([loss(*row) for row in zip(a, b, target)], reduction)


def triplet(anchor, positive, negative, margin, p, eps, swap, reduction):
    def distance(a, b):
        return (abs(a - b + eps) ** p).sum() ** (1 / p)

    def loss(a, b, c):
        far = min(distance(a, c), distance(b, c)) if swap else distance(a, c)
        return max(0, distance(a, b) - far + margin)

    rows = np.broadcast_arrays(anchor, positive, negative)
    losses = np.array([loss(*[x[at] for x in rows]) for at in np.ndindex(rows[0].shape[:-1])])
    return reduced(losses.reshape(rows[0].shape[:-1]), reduction)


# ---- classes -----------------------------------------------------------------------------------------------------


def places(labels, ignore_index):
    return [at for at in np.ndindex(labels.shape) if labels[at] != ignore_index]


def scores(x, at):
    """The scores of one example."""
    return x[(*at[:1], slice(None), *at[1:])] if x.ndim > 1 else x


def nll(logs, labels, weight, ignore_index, reduction):
    losses, total = np.zeros(labels.shape), 0
    for at in places(labels, ignore_index):
        factor = weight if np.ndim(weight) == 0 else weight[labels[at]]
        losses[at] = -factor * scores(logs, at)[labels[at]]
        total += factor
    return reduced(losses, reduction, total)


def cross_entropy(x, labels, weight, ignore_index, label_smoothing, reduction):
    """With labels as probabilities; the mean divides by the weights of the labels."""
    logs, losses, total = softmax_log(x, min(x.ndim, 2) - 1), np.zeros(labels.shape), 0
    classes = x.shape[min(x.ndim, 2) - 1]
    weights = np.broadcast_to(weight, classes)
    for at in places(labels, ignore_index):
        chances = np.full(classes, label_smoothing / classes)
        chances[labels[at]] += 1 - label_smoothing
        losses[at] = -(chances * weights * scores(logs, at)).sum()
        total += weights[labels[at]]
    return reduced(losses, reduction, total)


def soft_cross_entropy(x, target, weight, label_smoothing, reduction):
    axis = min(x.ndim, 2) - 1
    classes = x.shape[axis]
    chances = target * (1 - label_smoothing) + label_smoothing / classes
    weights = np.broadcast_to(weight, classes).reshape((1,) * axis + (-1,) + (1,) * (x.ndim - axis - 1))
    return reduced(-(chances * weights * softmax_log(x, axis)).sum(axis), reduction)


def multi_margin(x, labels, weight, p, margin, reduction):
    def loss(row, label):
        others = [max(0, margin - row[label] + row[c]) ** p for c in range(len(row)) if c != label]
        return sum(others) / len(row) * (weight if np.ndim(weight) == 0 else weight[label])

    if x.ndim == 1:
        return loss(x, int(labels))
    return reduced([loss(*pair) for pair in zip(x, labels)], reduction)


def multilabel_margin(x, labels, reduction):
    def loss(row, labels):
        chosen = list(itertools.takewhile(lambda label: label >= 0, labels.tolist()))
        others = [c for c in range(len(row)) if c not in chosen]
        return sum(max(0, 1 - row[a] + row[b]) for a in chosen for b in others) / len(row)

    if x.ndim == 1:
        return loss(x, labels)
    return reduced([loss(*pair) for pair in zip(x, labels)], reduction)


def multilabel_soft_margin(x, target, weight, reduction):
    losses = np.vectorize(lambda x, t, w: entropy(sigmoid(x), t) * w)(x, target, weight)
    return reduced(losses.mean(-1), reduction)


def combined_margin(x, labels, m1, m2, m3):
    out = x.copy()
    for row, label in enumerate(labels):
        out[row, label] = math.cos(m1 * math.acos(x[row, label]) + m2) - m3
    return out


ORACLES = {
    "mse_loss": differences(2),
    "l1_loss": differences(1),
    "smooth_l1_loss": smooth_l1,
    "huber_loss": huber,
    "binary_cross_entropy": lambda p, t, w, reduction: each(lambda p, t, w: entropy(p, t) * w, reduction, p, t, w),
    "binary_cross_entropy_with_logits": with_logits,
    "kl_div": kl,
    "poisson_nll_loss": poisson,
    "gaussian_nll_loss": gaussian,
    "margin_ranking_loss": lambda a, b, target, margin, reduction: each(
        lambda a, b, t: max(0, margin - t * (a - b)), reduction, a, b, target
    ),
    "hinge_embedding_loss": lambda x, target, margin, reduction: each(
        lambda x, t: x if t == 1 else max(0, margin - x), reduction, x, target
    ),
    "soft_margin_loss": lambda x, target, reduction: each(
        lambda x, t: math.log1p(math.exp(-t * x)), reduction, x, target
    ),
    "cosine_embedding_loss": cosine,
    "triplet_margin_loss": triplet,
    "nll_loss": nll,
    "cross_entropy": cross_entropy,
    "soft_cross_entropy": soft_cross_entropy,
    "multi_margin_loss": multi_margin,
    "multilabel_margin_loss": multilabel_margin,
    "multilabel_soft_margin_loss": multilabel_soft_margin,
    "combined_margin_loss": combined_margin,
}
