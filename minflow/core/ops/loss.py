"""Binary cross-entropy. Its terms are primitives, because the gradients of their parts do not add up.

Losses over classes: `softmax.py`. Read next: `loss_distance.py`, the losses of differences.
"""

from __future__ import annotations

from typing import Any

from ..host.float_warnings import silent
from ..kernels import kernel
from ..op import define
from ..spec import Spec, finfo
from .checks import check_unit
from .elementwise import log, log1p, maximum, sigmoid, softplus
from .examples import case, floats, positive, strided
from .rules import as_arrays, broadcast, constant, is_number, via_float32
from .shape import filled

PROBABILITY_RANGE: dict[str, Any] = dict(low=0.1, high=0.9)


def entropy_grad(g, p, target, p_spec: Spec):
    """g * (p - target) / (p * (1 - p)); the divisor has a lower bound, in case p is 0 or 1."""
    least = max(1e-12, finfo(p_spec.dtype).tiny)
    return g * ((p - target) / maximum(p * (1 - p), least))


# A primitive: through logarithms clamped at -100, a sigmoid of exactly 0 or 1 would get the gradient 0/0.
binary_entropy = define(
    "binary_entropy(p, target)",
    broadcast("binary_entropy", "p", "target"),
    dict(p=entropy_grad, target=lambda g, p: g * (log1p(-p) - log(p))),
    elementwise="float",
    autocast="float32",
    examples=[
        case(floats(3, 4, **PROBABILITY_RANGE), floats(3, 4, **PROBABILITY_RANGE)),
        case(floats((), **PROBABILITY_RANGE), floats((), **PROBABILITY_RANGE)),
        case(strided(4, 5, **PROBABILITY_RANGE), floats(5, **PROBABILITY_RANGE)),
        case(floats(0, 3, **PROBABILITY_RANGE), floats(3, **PROBABILITY_RANGE)),
        case(floats(3, dtype="float32", **PROBABILITY_RANGE), floats(3, dtype="float32", **PROBABILITY_RANGE)),
    ],
    doc="-(target * log(p) + (1 - target) * log(1 - p)), with logarithms clamped at -100.",
)


@kernel(binary_entropy)
def _(xp, p, target, out=None):
    name = "binary_cross_entropy"
    check_unit(xp, name, "input", p, "nn.BCEWithLogitsLoss takes logits as they are; or sigmoid(input) first")
    check_unit(xp, name, "target", target, "0 for no and 1 for yes; nn.CrossEntropyLoss takes class indices")
    with silent():
        yes, no = xp.maximum(xp.log(p), -100), xp.maximum(xp.log1p(-p), -100)
        return xp.subtract((target - 1) * no, target * yes, out=out)


def logit_entropy_formula(b, x, target):
    no, yes = b.mul(target, b.max(b.neg(x), 0)), b.mul(b.sub(1, target), b.max(x, 0))
    return b.add(b.add(no, yes), b.log1p(b.exp(b.neg(b.abs(x)))))


# A primitive: with softplus alone the gradient of the target, -x, would be the difference of two nearly equal terms.
logit_entropy = define(
    "logit_entropy(x, target)",
    broadcast("logit_entropy", "x", "target"),
    dict(
        x=lambda g, x, target: g * ((1 - target) * sigmoid(x) - target * sigmoid(-x)),
        target=lambda g, x: -(g * x),
    ),
    elementwise="float",
    scalar=logit_entropy_formula,
    autocast="float32",
    examples=[
        case(floats(3, 4), floats(3, 4, **PROBABILITY_RANGE)),
        case(floats(()), floats((), **PROBABILITY_RANGE)),
        case(strided(4, 5), floats(5, **PROBABILITY_RANGE)),
        case(floats(0, 3), floats(3, **PROBABILITY_RANGE)),
        case(floats(3, dtype="float32"), floats(3, dtype="float32", **PROBABILITY_RANGE)),
    ],
    doc="target * softplus(-x) + (1 - target) * softplus(x): the binary entropy of sigmoid(x), exact for large x.",
)


@kernel(logit_entropy)
@via_float32
def _(xp, x, target, out=None):
    x, target = as_arrays(xp, x, target)
    with silent():
        tail, zero = xp.log1p(xp.exp(-xp.abs(x))), constant(xp, x.dtype, 0)
        found = target * xp.maximum(-x, zero) + (constant(xp, x.dtype, 1) - target) * xp.maximum(x, zero)
        return xp.add(found, tail, out=out)


# ---- composite losses --------------------------------------------------------------------------------------------


def reduce_losses(losses, reduction: str):
    """Reduce the losses as requested: their mean, their sum, or unreduced."""
    return losses.mean() if reduction == "mean" else losses.sum() if reduction == "sum" else losses


def weight_tensor(weight, spec: Spec):
    """None for the number 1, which means no weight; a tensor of this spec for any other number."""
    if not isinstance(weight, int | float):
        return weight
    return None if weight == 1 else filled(spec, weight)


def weighted(losses, weight):
    return losses if is_number(weight, 1) else losses * weight


binary_cross_entropy = define(
    "binary_cross_entropy(input, target, weight; reduction)",
    decompose=lambda input, target, weight, reduction: reduce_losses(
        weighted(binary_entropy(input, target), weight), reduction
    ),
    number_inputs=["weight"],
    autocast="float32",
    examples=[
        case(floats(3, 4, **PROBABILITY_RANGE), floats(3, 4, **PROBABILITY_RANGE), 1, reduction="mean"),
        case(floats(3, 4, **PROBABILITY_RANGE), floats(3, 4, **PROBABILITY_RANGE), positive(4), reduction="sum"),
        case(strided(2, 3, **PROBABILITY_RANGE), floats(2, 3, **PROBABILITY_RANGE), 2.5, reduction="none"),
    ],
    doc="-(target * log(input) + (1 - target) * log(1 - input)) * weight, reduced; a weight of 1 for none.",
)


def logit_losses(input, target, weight, pos_weight, reduction):
    """target * softplus(-x) + (1 - target) * softplus(x), where pos_weight scales the first term."""
    if is_number(pos_weight, 1):
        losses = logit_entropy(input, target)
    else:
        losses = pos_weight * target * softplus(-input) + (1 - target) * softplus(input)
    return reduce_losses(weighted(losses, weight), reduction)


binary_cross_entropy_with_logits = define(
    "binary_cross_entropy_with_logits(input, target, weight, pos_weight; reduction)",
    decompose=logit_losses,
    number_inputs=["weight", "pos_weight"],
    autocast="float32",
    examples=[
        case(floats(3, 4), floats(3, 4, **PROBABILITY_RANGE), 1, 1, reduction="mean"),
        case(floats(3, 4), floats(3, 4, **PROBABILITY_RANGE), positive(4), positive(4), reduction="mean"),
        case(strided(2, 3), floats(2, 3, **PROBABILITY_RANGE), 0.5, 2.5, reduction="sum"),
        case(floats(5), floats(5, **PROBABILITY_RANGE), 1, positive(5), reduction="none"),
    ],
    doc="The binary cross-entropy of sigmoid(input), times weight, reduced; pos_weight is the factor of the target 1.",
)
