"""Univariate distributions that are sampled by inverting the cdf: uniform, exponential, Laplace, Gumbel, Cauchy."""

from __future__ import annotations

import math

from ..core import functions as F
from ..core.functions.arguments import ensure_tensor
from ..core.functions.creation import rand
from ..core.tensor import Tensor
from . import constraints
from .distribution import Distribution, Univariate, broadcast_parameters, on_ranks_of

EULER = 0.5772156649015329


def open_uniform(shape, like: Tensor) -> Tensor:
    """Draw uniform values from the open interval (0, 1), so that their logarithms are finite."""
    tiny = 2.0**-24
    return unit_uniform(shape, like).clamp(tiny, 1 - tiny)


def unit_uniform(shape, like: Tensor) -> Tensor:
    """Draw uniform values from [0, 1)."""
    return on_ranks_of(like, rand(*shape, dtype=like.dtype, device=like.device))


class Uniform(Distribution):
    """Uniform in [low, high)."""

    has_rsample = True
    arg_constraints = {"low": constraints.dependent, "high": constraints.dependent}

    @property
    def support(self) -> constraints.Constraint:
        """Numbers from low to high."""
        return constraints.interval(self.low, self.high)

    def __init__(self, low, high, validate_args: bool | None = None):
        self.low, self.high = broadcast_parameters(low, high)
        super().__init__(self.low.shape, (), validate_args)
        self._require("high", self.high, self.high > self.low, "greater than low")

    mean = property(lambda self: (self.high + self.low) / 2)
    mode = property(lambda self: self.low * float("nan"))
    variance = property(lambda self: (self.high - self.low).square() / 12)

    def rsample(self, sample_shape=()) -> Tensor:
        drawn = unit_uniform(self._extended_shape(sample_shape), self.low)
        return self.low + drawn * (self.high - self.low)

    def log_prob(self, value) -> Tensor:
        value = self._validate_value(value)
        inside = (value >= self.low) & (value < self.high)
        return F.log(inside.to(self.low.dtype)) - F.log(self.high - self.low)

    def cdf(self, value) -> Tensor:
        return ((self._validate_value(value) - self.low) / (self.high - self.low)).clamp(0, 1)

    def icdf(self, value) -> Tensor:
        return ensure_tensor(value) * (self.high - self.low) + self.low

    def entropy(self) -> Tensor:
        return F.log(self.high - self.low)


class Exponential(Univariate):
    """The waiting time between events that occur at `rate` per unit of time."""

    has_rsample = True
    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative

    mean = property(lambda self: F.reciprocal(self.rate))
    stddev = mean
    mode = property(lambda self: F.mul(self.rate, 0.0))
    variance = property(lambda self: self.rate.pow(-2))

    def rsample(self, sample_shape=()) -> Tensor:
        return -F.log(open_uniform(self._extended_shape(sample_shape), self.rate)) / self.rate

    def log_prob(self, value) -> Tensor:
        return F.log(self.rate) - self.rate * self._validate_value(value)

    def cdf(self, value) -> Tensor:
        return 1 - F.exp(-self.rate * self._validate_value(value))

    def icdf(self, value) -> Tensor:
        return -F.log1p(-ensure_tensor(value)) / self.rate

    def entropy(self) -> Tensor:
        return 1 - F.log(self.rate)


class Inverted(Univariate):
    """Base class of distributions that are drawn by the inverse of their cdf."""

    has_rsample = True

    def rsample(self, sample_shape=()) -> Tensor:
        parameter = getattr(self, self._parameter_names[0])
        return self.icdf(open_uniform(self._extended_shape(sample_shape), parameter))


class LocationScale(Inverted):
    """A standard distribution scaled by scale > 0 and shifted by loc."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support: constraints.Constraint = constraints.real

    def _standardize(self, value) -> Tensor:
        """The distance of a value from `loc`, in units of `scale`."""
        return (self._validate_value(value) - self.loc) / self.scale


class Laplace(LocationScale):
    """A double exponential distribution around loc, with mean absolute deviation scale."""

    mean = property(lambda self: self.loc)
    mode = mean
    variance = property(lambda self: 2 * self.scale.square())

    def log_prob(self, value) -> Tensor:
        return -F.log(2 * self.scale) - F.abs(self._standardize(value))

    def cdf(self, value) -> Tensor:
        z = self._standardize(value)
        return 0.5 - 0.5 * F.sign(z) * F.expm1(-F.abs(z))

    def icdf(self, value) -> Tensor:
        centered = ensure_tensor(value) - 0.5
        return self.loc - self.scale * F.sign(centered) * F.log1p(-2 * F.abs(centered))

    def entropy(self) -> Tensor:
        return 1 + F.log(2 * self.scale)


class Gumbel(LocationScale):
    """The limit distribution of the maximum of many values (Gumbel 1935)."""

    mean = property(lambda self: self.loc + self.scale * EULER)
    mode = property(lambda self: self.loc)
    variance = property(lambda self: self.scale.square() * (math.pi**2 / 6))

    def log_prob(self, value) -> Tensor:
        z = self._standardize(value)
        return -(z + F.exp(-z)) - F.log(self.scale)

    def cdf(self, value) -> Tensor:
        return F.exp(-F.exp(-self._standardize(value)))

    def icdf(self, value) -> Tensor:
        return self.loc - self.scale * F.log(-F.log(ensure_tensor(value)))

    def entropy(self) -> Tensor:
        return F.log(self.scale) + (1 + EULER)


class Cauchy(LocationScale):
    """The ratio of two normal values; its tails are so heavy that it has no mean."""

    mean = property(lambda self: self.loc * float("nan"))
    mode = property(lambda self: self.loc)
    variance = property(lambda self: F.where(self.scale > 0, math.inf, self.scale))

    def log_prob(self, value) -> Tensor:
        return -math.log(math.pi) - F.log(self.scale) - F.log1p(self._standardize(value).square())

    def cdf(self, value) -> Tensor:
        return F.atan(self._standardize(value)) / math.pi + 0.5

    def icdf(self, value) -> Tensor:
        return self.loc + self.scale * F.tan(math.pi * (ensure_tensor(value) - 0.5))

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + F.log(self.scale)
