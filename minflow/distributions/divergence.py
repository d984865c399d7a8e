"""Kullback-Leibler divergence of two distributions, from a registry of pairs that have a closed form."""

from __future__ import annotations

import math
from collections.abc import Callable

from ..core import functions as F
from ..core.base.errors import ShapeError
from ..core.functions.matrices import solve_triangular
from ..core.source_location import fail
from ..core.tensor import Tensor
from .categories import Categorical, OneHotCategorical
from .counts import Bernoulli, Binomial, Geometric, Poisson
from .distribution import Distribution, Independent
from .inverse_cdf import EULER, Exponential, Gumbel, Laplace, Uniform
from .normal import HalfNormal, LogNormal, MultivariateNormal, Normal

FORMULAS: dict[tuple[type, type], Callable] = {}


def register_kl(type_p: type, type_q: type) -> Callable:
    """Decorator that registers a function as kl_divergence(p, q) for these two classes and their subclasses."""

    def decorator(function: Callable) -> Callable:
        FORMULAS[type_p, type_q] = function
        return function

    return decorator


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The mean of log p(x) - log q(x) for x drawn from p, in nats (Kullback & Leibler 1951)."""
    for one in type(p).__mro__:
        for other in type(q).__mro__:
            if (one, other) in FORMULAS:
                return FORMULAS[one, other](p, q)
    what = f"kl_divergence: no formula for {type(p).__name__} and {type(q).__name__}"
    fail(ShapeError, what, "x = p.sample((1000,)); (p.log_prob(x) - q.log_prob(x)).mean(0), or register_kl")


@register_kl(Normal, Normal)
def _(p, q):
    ratio = (p.scale / q.scale).square()
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).square() - 1 - F.log(ratio))


@register_kl(LogNormal, LogNormal)
def _(p, q):
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(HalfNormal, HalfNormal)
def _(p, q):
    return kl_divergence(Normal(0.0, p.scale, False), Normal(0.0, q.scale, False))


@register_kl(MultivariateNormal, MultivariateNormal)
def _(p, q):
    if p.event_shape != q.event_shape:
        fail(ShapeError, f"kl_divergence: vectors of {p.event_shape[0]} and of {q.event_shape[0]} elements", "as many")
    inside = solve_triangular(q.scale_tril, p.scale_tril, upper=False).square().sum((-2, -1))
    mahalanobis = solve_triangular(q.scale_tril, (q.loc - p.loc).unsqueeze(-1), upper=False).square().sum((-2, -1))
    return q.half_log_det() - p.half_log_det() + 0.5 * (inside + mahalanobis - p.event_shape[0])


@register_kl(Uniform, Uniform)
def _(p, q):
    inside = (q.low <= p.low) & (q.high >= p.high)
    return F.where(inside, F.log((q.high - q.low) / (p.high - p.low)), math.inf)


@register_kl(Exponential, Exponential)
def _(p, q):
    ratio = q.rate / p.rate
    return ratio - 1 - F.log(ratio)


@register_kl(Laplace, Laplace)
def _(p, q):
    shift, ratio = F.abs(p.loc - q.loc), p.scale / q.scale
    return shift / q.scale + ratio * F.exp(-shift / p.scale) - 1 - F.log(ratio)


@register_kl(Gumbel, Gumbel)
def _(p, q):
    ratio, shift = p.scale / q.scale, (q.loc - p.loc) / q.scale
    return F.exp(shift + F.lgamma(1 + ratio)) - 1 - shift - F.log(ratio) + EULER * (ratio - 1)


@register_kl(Bernoulli, Bernoulli)
def _(p, q):
    a, b = p.probs, q.probs
    return F.xlogy(a, a) - F.xlogy(a, b) + F.xlogy(1 - a, 1 - a) - F.xlogy(1 - a, 1 - b)


@register_kl(Binomial, Binomial)
def _(p, q):
    found = p.total_count * kl_divergence(
        Bernoulli(p.probs, validate_args=False), Bernoulli(q.probs, validate_args=False)
    )
    return F.where(p.total_count > q.total_count, math.inf, found)


@register_kl(Geometric, Geometric)
def _(p, q):
    return -p.entropy() - F.log1p(-q.probs) / p.probs - q.logits


@register_kl(Poisson, Poisson)
def _(p, q):
    return p.rate * (F.log(p.rate) - F.log(q.rate)) - (p.rate - q.rate)


@register_kl(Categorical, Categorical)
def _(p, q):
    a, b = p.probs, q.probs
    terms = a * (p.logits - q.logits)
    terms = F.where(a == 0, 0.0, F.where(b == 0, math.inf, terms))
    return terms.sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _(p, q):
    return kl_divergence(
        Categorical(probs=p.probs, validate_args=False), Categorical(probs=q.probs, validate_args=False)
    )


@register_kl(Independent, Independent)
def _(p, q):
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        what = f"kl_divergence: events of {p.reinterpreted_batch_ndims} axes and of {q.reinterpreted_batch_ndims}"
        fail(ShapeError, what, "the same reinterpreted_batch_ndims")
    return p.sum_event_axes(kl_divergence(p.base_dist, q.base_dist))
