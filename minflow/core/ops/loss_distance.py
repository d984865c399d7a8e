"""Losses of the differences between numbers: squares, absolute values, and the forms between them.

Read next: `loss_likelihood.py`.
"""

from __future__ import annotations

from ..op import define
from .elementwise import abs, square
from .examples import case, floats, positive, strided
from .loss import reduce_losses, weight_tensor, weighted
from .shape import in_float32


def difference(input, target):
    """input - target; a tensor without axes takes the dtype of the other."""
    if input.spec.dtype is not target.spec.dtype:
        if not input.spec.ndim:
            input = input.expand(target.spec.shape)
        elif not target.spec.ndim:
            target = target.expand(input.spec.shape)
    return input - target


def reduce_weighted(losses, weight, spec, reduction: str):
    """Reduce the losses; with a weight for each element of the input, the mean is the weighted mean."""
    weight = weight_tensor(weight, spec)
    if weight is None:
        return reduce_losses(losses, reduction)
    total = losses * weight
    return total.sum() / weight.sum() if reduction == "mean" else reduce_losses(total, reduction)


WEIGHTED = [
    case(floats(3, 4), floats(3, 4), 1, reduction="mean"),
    case(strided(3, 4), floats(3, 4), positive(3, 4), reduction="mean"),
    case(floats(3, 4), floats(4), positive(3, 4), reduction="sum"),
    case(floats(5), floats(()), 2.5, reduction="none"),
]

mse_loss = define(
    "mse_loss(input, target, weight; reduction)",
    decompose=lambda input, target, weight, reduction: reduce_weighted(
        square(difference(input, target)), weight, input.spec, reduction
    ),
    number_inputs=["weight"],
    autocast="float32",
    examples=WEIGHTED,
    doc="(input - target)**2, reduced; the mean is weighted. A weight of 1 for none.",
)

l1_loss = define(
    "l1_loss(input, target, weight; reduction)",
    decompose=lambda input, target, weight, reduction: reduce_weighted(
        abs(difference(input, target)), weight, input.spec, reduction
    ),
    number_inputs=["weight"],
    autocast="float32",
    examples=WEIGHTED,
    doc="|input - target|, reduced; the mean is weighted. A weight of 1 for none.",
)


@in_float32
def smooth_losses(input, target, beta):
    distance = abs(difference(input, target))
    near = distance.clamp(max=beta)
    return near / beta * (distance - 0.5 * near)


smooth_l1_loss = define(
    "smooth_l1_loss(input, target; beta, reduction)",
    decompose=lambda input, target, beta, reduction: reduce_losses(smooth_losses(input, target, beta), reduction),
    autocast="float32",
    examples=[
        case(floats(3, 4), floats(3, 4), beta=1.0, reduction="mean"),
        case(strided(3, 4), floats(4), beta=0.5, reduction="sum"),
        case(floats(5), floats(()), beta=2.5, reduction="none"),
    ],
    doc="d**2 / (2 * beta) where d = |input - target| is below beta, else d - beta / 2; reduced.",
)


@in_float32
def huber_losses(input, target, delta):
    distance = abs(difference(input, target))
    near = distance.clamp(max=delta)
    return near * (distance - 0.5 * near)


huber_loss = define(
    "huber_loss(input, target, weight; delta, reduction)",
    decompose=lambda input, target, weight, delta, reduction: reduce_losses(
        weighted(huber_losses(input, target, delta), weight), reduction
    ),
    number_inputs=["weight"],
    autocast="float32",
    examples=[
        case(floats(3, 4), floats(3, 4), 1, delta=1.0, reduction="mean"),
        case(strided(3, 4), floats(4), positive(3, 4), delta=0.5, reduction="sum"),
        case(floats(5), floats(()), 2.5, delta=2.5, reduction="none"),
    ],
    doc="d**2 / 2 where d = |input - target| is below delta, else delta * (d - delta / 2); times weight, reduced.",
)
