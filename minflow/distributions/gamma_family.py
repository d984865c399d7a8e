"""The gamma distribution, and those that are drawn from it: chi-squared, beta, Dirichlet, Student's t, F and others."""

from __future__ import annotations

import math

from ..core import functions as F
from ..core.base.errors import ShapeError
from ..core.functions import sampling
from ..core.functions.arguments import ensure_tensor
from ..core.ops.binary import xlog1py
from ..core.source_location import fail
from ..core.spec import finfo, float64
from ..core.tensor import Tensor
from . import constraints
from .counts import BinaryDistribution
from .distribution import Distribution, Univariate, broadcast_parameters
from .inverse_cdf import open_uniform
from .normal import standard_normal

# A candidate is accepted with a probability of at least 0.95 (Marsaglia & Tsang 2000, table 1). The number is fixed, so
# that a graph and eager code draw the same numbers; all ten are refused once in 10**13 draws.
CANDIDATES = 10


def log_standard_gamma(concentration: Tensor, shape) -> Tensor:
    """Draw logarithms of gamma values with rate 1; gradients reach the concentration.

    A value for concentration + 1, by the method of Marsaglia & Tsang (2000), times u ** (1 / concentration): the
    logarithm stays finite where the value itself is too small for the dtype.
    """
    a = concentration.expand(*shape)
    raised = a.detach() + 1
    d = raised - 1 / 3
    c = 1 / F.sqrt(9 * d)
    x = standard_normal((CANDIDATES, *shape), a)
    u = open_uniform((CANDIDATES, *shape), a)
    v = (1 + c * x).clamp(min=0.0).pow(3)
    bound = 0.5 * x.square() + d - d * v + d * F.log(v.clamp(min=finfo(a.dtype).tiny))
    accepted = (v > 0) & (F.log(u) < bound)
    first = accepted.to(a.dtype).argmax(0, keepdim=True)
    drawn = d * F.gather(F.where(accepted, v, 1.0), 0, first).squeeze(0)
    if a.requires_grad:
        slope = gamma_slope(raised, drawn)
        drawn = drawn + (a - a.detach()) * slope
    return F.log(drawn) + F.log(open_uniform(shape, a)) / a


def gamma_slope(concentration: Tensor, value: Tensor) -> Tensor:
    """Derivative of a gamma value with respect to its concentration, at a fixed probability (Figurnov et al. 2018).

    The derivative of the cdf is a central difference in float64, of the tail that does not round to 1.
    """
    a, x = concentration.to(float64), value.to(float64)
    step = 1e-4 * a
    lower = (F.igamma(a + step, x) - F.igamma(a - step, x)) / (2 * step)
    upper = (F.igammac(a - step, x) - F.igammac(a + step, x)) / (2 * step)
    log_density = (a - 1) * F.log(x) - x - F.lgamma(a)
    return (-F.where(x < a, lower, upper) / F.exp(log_density)).to(value.dtype)


def likeliest_weights(concentration: Tensor) -> Tensor:
    """The mode of a Dirichlet distribution; a corner if all concentrations are below 1."""
    above = (concentration - 1).clamp(min=0.0)
    corner = F.one_hot(concentration.argmax(-1), concentration.shape[-1]).to(concentration.dtype)
    inside = (concentration >= 1).any(-1, keepdim=True)
    return F.where(inside, above / F.where(inside, above.sum(-1, keepdim=True), 1.0), corner)


def log_beta(a: Tensor, b: Tensor) -> Tensor:
    return F.lgamma(a) + F.lgamma(b) - F.lgamma(a + b)


class ExponentialFamily(Distribution):
    """Base class of distributions whose density is an exponential of sufficient statistics."""


class Gamma(ExponentialFamily, Univariate):
    """The gamma distribution: the waiting time for `concentration` events that occur at `rate` per unit of time."""

    has_rsample = True
    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support: constraints.Constraint = constraints.nonnegative

    mean = property(lambda self: self.concentration / self.rate)
    mode = property(lambda self: ((self.concentration - 1) / self.rate).clamp(min=0))
    variance = property(lambda self: self.concentration / self.rate.square())

    def rsample(self, sample_shape=()) -> Tensor:
        drawn = F.exp(log_standard_gamma(self.concentration, self._extended_shape(sample_shape)))
        return (drawn / self.rate).clamp(min=finfo(drawn.dtype).tiny)

    def log_prob(self, value) -> Tensor:
        value, a = self._validate_value(value).to(self.rate.dtype), self.concentration
        return F.xlogy(a, self.rate) + F.xlogy(a - 1, value) - self.rate * value - F.lgamma(a)

    def cdf(self, value) -> Tensor:
        return F.igamma(self.concentration, self.rate * self._validate_value(value))

    def entropy(self) -> Tensor:
        a = self.concentration
        return a - F.log(self.rate) + F.lgamma(a) + (1 - a) * F.digamma(a)


class Chi2(Gamma):
    """The sum of the squares of `df` standard normal values."""

    arg_constraints = {"df": constraints.positive}
    _expanded_names = ("df", "concentration", "rate")

    def __init__(self, df, validate_args: bool | None = None):
        (self.df,) = broadcast_parameters(df)
        super().__init__(0.5 * self.df, 0.5, validate_args)


class InverseGamma(Gamma):
    """The reciprocal of a gamma value."""

    support = constraints.positive

    @property
    def mean(self) -> Tensor:
        a = self.concentration
        return F.where(a > 1, self.rate / (a - 1), math.inf)

    mode = property(lambda self: self.rate / (self.concentration + 1))

    @property
    def variance(self) -> Tensor:
        a = self.concentration
        return F.where(a > 2, self.rate.square() / ((a - 1).square() * (a - 2)), math.inf)

    def rsample(self, sample_shape=()) -> Tensor:
        return F.reciprocal(super().rsample(sample_shape))

    def log_prob(self, value) -> Tensor:
        value, a = self._validate_value(value), self.concentration
        return F.xlogy(a, self.rate) - (a + 1) * F.log(value) - self.rate / value - F.lgamma(a)

    def cdf(self, value) -> Tensor:
        return F.igammac(self.concentration, self.rate / self._validate_value(value))

    def entropy(self) -> Tensor:
        a = self.concentration
        return a + F.log(self.rate) + F.lgamma(a) - (1 + a) * F.digamma(a)


class Beta(ExponentialFamily, Univariate):
    """A probability: `concentration1` counts successes, `concentration0` failures."""

    has_rsample = True
    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval

    @property
    def _total(self) -> Tensor:
        """The sum of both concentrations."""
        return self.concentration1 + self.concentration0

    mean = property(lambda self: self.concentration1 / self._total)
    mode = property(lambda self: likeliest_weights(F.stack([self.concentration1, self.concentration0], -1))[..., 0])

    @property
    def variance(self) -> Tensor:
        return self.concentration1 * self.concentration0 / (self._total.square() * (self._total + 1))

    def rsample(self, sample_shape=()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        one, zero = (log_standard_gamma(a, shape) for a in (self.concentration1, self.concentration0))
        return F.sigmoid(one - zero)

    def log_prob(self, value) -> Tensor:
        value, a, b = self._validate_value(value), self.concentration1, self.concentration0
        return F.xlogy(a - 1, value) + xlog1py(b - 1, -value) - log_beta(a, b)

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        known = (a - 1) * F.digamma(a) + (b - 1) * F.digamma(b)
        return log_beta(a, b) - known + (a + b - 2) * F.digamma(a + b)


class Dirichlet(ExponentialFamily):
    """n weights with the sum 1. concentration: (..., n), > 0."""

    has_rsample = True
    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex

    def __init__(self, concentration, validate_args: bool | None = None):
        (self.concentration,) = broadcast_parameters(concentration)
        shape = self.concentration.shape
        if not shape:
            what = "Dirichlet: the concentration must have at least one axis"
            fail(ShapeError, what, "the last axis is that of the weights", concentration=self.concentration)
        super().__init__(shape[:-1], shape[-1:], validate_args)

    @property
    def _total(self) -> Tensor:
        """The sum of the concentrations, (..., 1)."""
        return self.concentration.sum(-1, keepdim=True)

    mean = property(lambda self: self.concentration / self._total)
    mode = property(lambda self: likeliest_weights(self.concentration))

    @property
    def variance(self) -> Tensor:
        return self.concentration * (self._total - self.concentration) / (self._total.square() * (self._total + 1))

    def rsample(self, sample_shape=()) -> Tensor:
        return F.softmax(log_standard_gamma(self.concentration, self._extended_shape(sample_shape)), -1)

    def _log_normalizer(self) -> Tensor:
        """log of the integral of the unnormalized density."""
        return F.lgamma(self.concentration).sum(-1) - F.lgamma(self.concentration.sum(-1))

    def log_prob(self, value) -> Tensor:
        return F.xlogy(self.concentration - 1, self._validate_value(value)).sum(-1) - self._log_normalizer()

    def entropy(self) -> Tensor:
        a, n = self.concentration, self.event_shape[0]
        total = a.sum(-1)
        return self._log_normalizer() - (n - total) * F.digamma(total) - ((a - 1) * F.digamma(a)).sum(-1)


class StudentT(Univariate):
    """Student's t distribution with `df` degrees of freedom, scaled and shifted."""

    has_rsample = True
    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    _defaults = {"loc": 0.0, "scale": 1.0}
    support = constraints.real

    mean = property(lambda self: F.where(self.df > 1, self.loc, math.nan))
    mode = property(lambda self: self.loc)

    @property
    def variance(self) -> Tensor:
        finite = self.scale.square() * self.df / (self.df - 2)
        return F.where(self.df > 2, finite, F.where(self.df > 1, math.inf, math.nan))

    def rsample(self, sample_shape=()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        log_chi2 = log_standard_gamma(0.5 * self.df, shape) + math.log(2)
        return self.loc + self.scale * standard_normal(shape, self.loc) * F.exp(0.5 * (F.log(self.df) - log_chi2))

    def log_prob(self, value) -> Tensor:
        y, half = (self._validate_value(value) - self.loc) / self.scale, 0.5 * self.df
        scale = F.log(self.scale) + 0.5 * F.log(self.df * math.pi) + F.lgamma(half) - F.lgamma(half + 0.5)
        return -0.5 * (self.df + 1) * F.log1p(y.square() / self.df) - scale

    def entropy(self) -> Tensor:
        half = 0.5 * self.df
        spread = F.log(self.scale) + 0.5 * F.log(self.df) + log_beta(half, ensure_tensor(0.5).to(half.dtype))
        return spread + (half + 0.5) * (F.digamma(half + 0.5) - F.digamma(half))


class FisherSnedecor(Univariate):
    """The F distribution: the ratio of two chi-squared values, each divided by its degrees of freedom."""

    has_rsample = True
    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive

    mean = property(lambda self: F.where(self.df2 > 2, self.df2 / (self.df2 - 2), math.nan))

    @property
    def mode(self) -> Tensor:
        found = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return F.where(self.df1 > 2, found, math.nan)

    @property
    def variance(self) -> Tensor:
        a, b = self.df1, self.df2
        return F.where(b > 4, 2 * b.square() * (a + b - 2) / (a * (b - 2).square() * (b - 4)), math.nan)

    def rsample(self, sample_shape=()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        above, below = (log_standard_gamma(0.5 * df, shape) - F.log(df) for df in (self.df1, self.df2))
        return F.exp(above - below)

    def log_prob(self, value) -> Tensor:
        value, a, b = self._validate_value(value), 0.5 * self.df1, 0.5 * self.df2
        ratio = self.df1 / self.df2
        return a * F.log(ratio) + (a - 1) * F.log(value) - (a + b) * F.log1p(ratio * value) - log_beta(a, b)


class NegativeBinomial(BinaryDistribution):
    """The number of successes, each with probability p, before `total_count` failures."""

    support = constraints.nonnegative_integer
    _expanded_names = ("_parameter", "total_count")

    def __init__(self, total_count, probs=None, logits=None, validate_args: bool | None = None):
        super().__init__(probs, logits, validate_args)
        self.total_count, self._parameter = broadcast_parameters(total_count, self._parameter)
        self._batch_shape = self._parameter.shape
        valid = constraints.greater_than_eq(0.0)
        self._require("total_count", self.total_count, valid.check(self.total_count), str(valid))

    mean = property(lambda self: self.total_count * F.exp(self.logits))
    mode = property(lambda self: F.floor((self.total_count - 1) * F.exp(self.logits)).clamp(min=0.0))
    variance = property(lambda self: self.mean / F.sigmoid(-self.logits))

    def sample(self, sample_shape=()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        log_rate = log_standard_gamma(self.total_count.detach(), shape) + self.logits.detach()
        return sampling.poisson(F.exp(log_rate))

    def log_prob(self, value) -> Tensor:
        value, n = self._validate_value(value), self.total_count
        p = self.probs if self._by_probs else F.sigmoid(self.logits)
        ways = F.where(n + value == 0, 0.0, F.lgamma(n + value) - F.lgamma(1 + value) - F.lgamma(n))
        return xlog1py(n, -p) + F.xlogy(value, p) + ways
