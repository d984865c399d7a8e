"""Margin losses of pairs: zero once the right answer leads by the margin, or dissimilar pairs are that far apart.

Read next: `loss_classes.py`, losses over classes.
"""

from __future__ import annotations

from ..host import host_array
from ..op import define
from .distance import pairwise_distance
from .elementwise import minimum, softplus, where
from .examples import Maker, case, floats, ints, strided
from .loss import reduce_losses
from .shape import in_float32


def signs(*shape: int) -> Maker:
    """Targets, each 1 or -1."""
    return ints(*shape, high=2)(layout=lambda a: host_array(2 * a - 1))


def ranking_losses(input1, input2, target, margin, reduction):
    return reduce_losses((-target * (input1 - input2) + margin).clamp(min=0.0), reduction)


margin_ranking_loss = define(
    "margin_ranking_loss(input1, input2, target; margin, reduction)",
    decompose=ranking_losses,
    autocast="float32",
    examples=[
        case(floats(3, 4), floats(3, 4), floats(3, 4), margin=0.0, reduction="mean"),
        case(strided(3, 4), floats(3, 4), floats(1, 4), margin=0.5, reduction="sum"),
        case(floats(5), floats(5), floats(5), margin=1.0, reduction="none"),
    ],
    doc="max(0, margin - target * (input1 - input2)), reduced.",
)


def hinge_losses(input, target, margin, reduction):
    apart = where(target.ne(1), (margin - input).clamp(min=0.0), 0.0)
    return reduce_losses(apart + where(target.ne(-1), input, 0.0), reduction)


hinge_embedding_loss = define(
    "hinge_embedding_loss(input, target; margin, reduction)",
    decompose=hinge_losses,
    autocast="float32",
    examples=[
        case(floats(3, 4), signs(3, 4), margin=1.0, reduction="mean"),
        case(strided(3, 4), signs(3, 4), margin=0.5, reduction="sum"),
        case(floats(3, 4), signs(3, 4), margin=1.0, reduction="none"),
    ],
    doc="input where target is 1, max(0, margin - input) where it is -1; reduced.",
)

soft_margin_loss = define(
    "soft_margin_loss(input, target; reduction)",
    decompose=lambda input, target, reduction: reduce_losses(softplus(-target * input), reduction),
    autocast="float32",
    examples=[
        case(floats(3, 4), signs(3, 4), reduction="mean"),
        case(strided(3, 4), floats(4), reduction="sum"),
        case(floats(5), floats(5), reduction="none"),
    ],
    doc="log(1 + exp(-target * input)), reduced.",
)


def triplet_losses(anchor, positive, negative, margin, p, eps, swap, reduction):
    return reduce_triplets(
        anchor,
        positive,
        negative,
        lambda a, b: pairwise_distance(a, b, p=p, eps=eps, keepdims=False),
        margin,
        swap,
        reduction,
    )


def reduce_triplets(anchor, positive, negative, distance, margin, swap, reduction):
    """The triplet loss with any distance, a function of two tensors."""
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = minimum(far, distance(positive, negative))
    return reduce_losses((near - far + margin).clamp(min=0.0), reduction)


triplet_margin_loss = define(
    "triplet_margin_loss(anchor, positive, negative; margin, p, eps, swap, reduction)",
    decompose=triplet_losses,
    autocast="float32",
    examples=[
        case(*[floats(4, 3)] * 3, margin=1.0, p=2.0, eps=1e-6, swap=False, reduction="mean"),
        case(*[floats(2, 4, 3)] * 3, margin=0.5, p=1.0, eps=1e-6, swap=True, reduction="none"),
        case(strided(4, 3), floats(1, 3), floats(4, 3), margin=2.0, p=3.0, eps=0.1, swap=True, reduction="sum"),
        case(*[floats(3)] * 3, margin=1.0, p=2.0, eps=1e-6, swap=False, reduction="mean"),
    ],
    doc="max(0, d(anchor, positive) - d(anchor, negative) + margin), d the distance of order p; reduced.",
)


@in_float32
def cosine_losses(input1, input2, target, margin, reduction):
    sizes = [(x * x).sum(-1) + 1e-12 for x in (input1, input2)]
    cosine = (input1 * input2).sum(-1) / (sizes[0] * sizes[1]).sqrt()
    alike, apart = where(target.eq(1), 1 - cosine, 0.0), (cosine - margin).clamp(min=0.0)
    return reduce_losses(alike + where(target.eq(-1), apart, 0.0), reduction)


cosine_embedding_loss = define(
    "cosine_embedding_loss(input1, input2, target; margin, reduction)",
    decompose=cosine_losses,
    autocast="float32",
    examples=[
        case(floats(4, 3), floats(4, 3), signs(4), margin=0.0, reduction="mean"),
        case(strided(4, 3), floats(4, 3), signs(4), margin=-0.5, reduction="none"),
        case(floats(3), floats(3), signs(), margin=0.0, reduction="sum"),
    ],
    doc="1 - cos(input1, input2) where target is 1, max(0, cos - margin) where it is -1; reduced.",
)
