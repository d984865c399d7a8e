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
from .distribution import Distribution, Independent, NoFormulaError
from .gamma_family import Beta, Dirichlet, Gamma, log_beta
from .inverse_cdf import EULER, Exponential, Gumbel, Laplace, Uniform
from .normal import HalfNormal, LogNormal, LowRankMultivariateNormal, MultivariateNormal, Normal
from .transformed import TransformedDistribution
from .transforms import ComposeTransform, sum_last
from .univariate import ContinuousBernoulli, Pareto

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
    fail(NoFormulaError, what, "x = p.sample((1000,)); (p.log_prob(x) - q.log_prob(x)).mean(0), or register_kl")


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
    return q._half_log_det() - p._half_log_det() + 0.5 * (inside + mahalanobis - p.event_shape[0])


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
    return p._sum_event_axes(kl_divergence(p.base_dist, q.base_dist))


@register_kl(Gamma, Gamma)
def _(p, q):
    a, b = p.concentration, q.concentration
    return b * F.log(p.rate / q.rate) + F.lgamma(b) - F.lgamma(a) + (a - b) * F.digamma(a) + a * (q.rate / p.rate - 1)


@register_kl(Beta, Beta)
def _(p, q):
    a1, a0, b1, b0 = p.concentration1, p.concentration0, q.concentration1, q.concentration0
    changed = (a1 - b1) * F.digamma(a1) + (a0 - b0) * F.digamma(a0)
    return log_beta(b1, b0) - log_beta(a1, a0) + changed + (b1 + b0 - a1 - a0) * F.digamma(a1 + a0)


@register_kl(Dirichlet, Dirichlet)
def _(p, q):
    a, b = p.concentration, q.concentration
    mean_log = F.digamma(a) - F.digamma(a.sum(-1, keepdim=True))
    return q._log_normalizer() - p._log_normalizer() + ((a - b) * mean_log).sum(-1)


@register_kl(Pareto, Pareto)
def _(p, q):
    ratio = q.alpha / p.alpha
    found = q.alpha * F.log(p.scale / q.scale) - F.log(ratio) + ratio - 1
    return F.where(p.scale < q.scale, math.inf, found)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _(p, q):
    tail = p._log_normalizer() + F.log1p(-p.probs) - q._log_normalizer() - F.log1p(-q.probs)
    return p.mean * (p.logits - q.logits) + tail


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _(p, q):
    one, other = (MultivariateNormal(x.loc, scale_tril=x.scale_tril, validate_args=False) for x in (p, q))
    return kl_divergence(one, other)


@register_kl(TransformedDistribution, TransformedDistribution)
def _(p, q):
    if p.transforms != q.transforms:
        what = f"kl_divergence: the transforms {p.transforms} and {q.transforms} differ"
        fail(NoFormulaError, what, "x = p.sample((1000,)); (p.log_prob(x) - q.log_prob(x)).mean(0)")
    found = kl_divergence(p.base_dist, q.base_dist)
    event = ComposeTransform(p.transforms).domain.event_dim - len(p.base_dist.event_shape)
    return sum_last(found, event)


@register_kl(Normal, Laplace)
def _(p, q):
    offset = (p.loc - q.loc) / p.scale
    distance = math.sqrt(2 / math.pi) * F.exp(-0.5 * offset.square()) + offset * F.erf(offset * math.sqrt(0.5))
    return p.scale / q.scale * distance - F.log(p.scale / q.scale) - 0.5 * math.log(0.5 * math.pi) - 0.5


@register_kl(Laplace, Normal)
def _(p, q):
    square = (p.scale.square() + 0.5 * (p.loc - q.loc).square()) / q.scale.square()
    return 0.5 * math.log(0.5 * math.pi) - F.log(p.scale / q.scale) + square - 1


@register_kl(Uniform, Normal)
def _(p, q):
    width, middle = p.high - p.low, 0.5 * (p.high + p.low)
    square = (width.square() / 12 + (middle - q.loc).square()) / q.scale.square()
    return 0.5 * square + F.log(q.scale / width) + 0.5 * math.log(2 * math.pi)


@register_kl(Exponential, Gamma)
def _(p, q):
    a, ratio = q.concentration, q.rate / p.rate
    return -a * F.log(ratio) + ratio + F.lgamma(a) + a * EULER - (1 + EULER)


@register_kl(Gamma, Exponential)
def _(p, q):
    return -p.entropy() - F.log(q.rate) + q.rate * p.mean
