"""Losses that are negative logarithms of likelihoods, or divergences of distributions.

Read next: `loss_margin.py`.
"""

from __future__ import annotations

import math

from ..op import define
from .distance import at_least
from .elementwise import exp, log, square, where
from .examples import case, floats, positive, strided
from .loss import reduce_losses
from .shape import in_float32


@in_float32
def kl_losses(input, target, log_target):
    """target * (log(target) - input); the first term is 0 where target is 0."""
    if log_target:
        return exp(target) * (target - input)
    none = target.eq(0)
    return where(none, 0.0, target * log(where(none, 1.0, target))) - target * input


kl_div = define(
    "kl_div(input, target; log_target, reduction)",
    decompose=lambda input, target, log_target, reduction: reduce_losses(
        kl_losses(input, target, log_target), reduction
    ),
    autocast="float32",
    examples=[
        case(floats(3, 4), positive(3, 4), log_target=False, reduction="mean"),
        case(strided(3, 4), floats(4), log_target=True, reduction="sum"),
        case(floats(5), positive(5), log_target=False, reduction="none"),
    ],
    doc="target * (log(target) - input), reduced: the divergence of target from input, which is a logarithm.",
)


@in_float32
def poisson_losses(input, target, log_input, full, eps):
    losses = exp(input) - target * input if log_input else input - target * log(input + eps)
    if not full:
        return losses
    few = target.le(1)
    many = where(few, 2, target)
    return losses + where(few, 0.0, many * log(many) - many + log(2 * math.pi * many) * 0.5)


poisson_nll_loss = define(
    "poisson_nll_loss(input, target; log_input, full, eps, reduction)",
    decompose=lambda input, target, log_input, full, eps, reduction: reduce_losses(
        poisson_losses(input, target, log_input, full, eps), reduction
    ),
    autocast="float32",
    examples=[
        case(floats(3, 4), positive(3, 4), log_input=True, full=False, eps=1e-8, reduction="mean"),
        case(strided(3, 4), positive(4, low=1.5), log_input=True, full=True, eps=1e-8, reduction="sum"),
        case(positive(5), positive(5), log_input=False, full=False, eps=0.1, reduction="none"),
    ],
    doc="exp(input) - target * input, or input - target * log(input + eps); full adds Stirling's formula; reduced.",
)


@in_float32
def gaussian_losses(input, target, var, full, eps):
    var = at_least(var, least=float(eps), name="var")
    losses = (log(var) + square(input - target) / var) * 0.5
    return losses + 0.5 * math.log(2 * math.pi) if full else losses


gaussian_nll_loss = define(
    "gaussian_nll_loss(input, target, var; full, eps, reduction)",
    decompose=lambda input, target, var, full, eps, reduction: reduce_losses(
        gaussian_losses(input, target, var, full, eps), reduction
    ),
    autocast="float32",
    examples=[
        case(floats(3, 4), floats(3, 4), positive(3, 4), full=False, eps=1e-6, reduction="mean"),
        case(strided(3, 4), floats(4), positive(3, 1), full=True, eps=0.1, reduction="sum"),
        case(floats(5), floats(5), positive(5), full=True, eps=1e-6, reduction="none"),
    ],
    doc="(log(var) + (input - target)**2 / var) / 2, with var at least eps; full adds log(2 pi) / 2; reduced.",
)
