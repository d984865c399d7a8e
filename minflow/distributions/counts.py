"""Bernoulli and count distributions, by probabilities or by logits (log-odds)."""

from __future__ import annotations

from ..core import functions as F
from ..core.base.errors import OutOfRangeError
from ..core.functions import sampling
from ..core.functions.creation import arange, bernoulli
from ..core.ops.loss import logit_entropy
from ..core.source_location import fail
from ..core.spec import finfo
from ..core.tensor import Tensor
from . import constraints
from .distribution import Distribution, Univariate, broadcast_parameters, on_ranks_of
from .inverse_cdf import open_uniform


def check_probs_or_logits(kind: str, probs, logits) -> None:
    if (probs is None) == (logits is None):
        what = f"{kind}: {'neither' if probs is None else 'both'} of probs and logits given"
        fail(OutOfRangeError, what, "one of probs=... and logits=...")


class BinaryDistribution(Distribution):
    """A distribution with one probability, given as probs or as logits, log(p / (1 - p))."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    _expanded_names: tuple[str, ...] = ("_parameter",)

    def __init__(self, probs=None, logits=None, validate_args: bool | None = None):
        check_probs_or_logits(type(self).__name__, probs, logits)
        self._by_probs = probs is not None
        (self._parameter,) = broadcast_parameters(probs if self._by_probs else logits)
        super().__init__(self._parameter.shape, (), validate_args)
        if self._by_probs:
            p = self._parameter
            self._require("probs", p, constraints.unit_interval.check(p), "from 0 to 1")

    @property
    def _parameter_names(self) -> tuple[str, ...]:
        return ("probs",) if self._by_probs else ("logits",)

    @property
    def probs(self) -> Tensor:
        """The probability p."""
        return self._parameter if self._by_probs else F.sigmoid(self._parameter)

    @property
    def logits(self) -> Tensor:
        """log(p / (1 - p))."""
        if not self._by_probs:
            return self._parameter
        eps = finfo(self._parameter.dtype).eps
        inside = self._parameter.clamp(eps, 1 - eps)
        return F.log(inside) - F.log1p(-inside)


class Bernoulli(BinaryDistribution):
    """1 with probability p, else 0."""

    support = constraints.boolean
    has_enumerate_support = True

    mean = property(lambda self: self.probs)

    @property
    def mode(self) -> Tensor:
        p = self.probs
        return F.where(p == 0.5, float("nan"), (p >= 0.5).to(p.dtype))

    variance = property(lambda self: self.probs * (1 - self.probs))

    def sample(self, sample_shape=()) -> Tensor:
        return bernoulli(self.probs.detach().expand(*self._extended_shape(sample_shape)))

    def log_prob(self, value) -> Tensor:
        logits, value = F.broadcast_tensors(self.logits, self._validate_value(value).to(self._parameter.dtype))
        return -logit_entropy(logits, value)

    def entropy(self) -> Tensor:
        return logit_entropy(self.logits, self.probs)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = on_ranks_of(self._parameter, arange(2, dtype=self._parameter.dtype, device=self._parameter.device))
        values = values.reshape(2, *[1] * len(self.batch_shape))
        return values.expand(2, *self.batch_shape) if expand else values


class Geometric(BinaryDistribution):
    """The number of failures before the first success."""

    support = constraints.nonnegative_integer

    mean = property(lambda self: 1 / self.probs - 1)
    mode = property(lambda self: F.mul(self.probs, 0.0))
    variance = property(lambda self: (1 / self.probs - 1) / self.probs)

    def sample(self, sample_shape=()) -> Tensor:
        p = self.probs.detach()
        return F.floor(F.log(open_uniform(self._extended_shape(sample_shape), p)) / F.log1p(-p))

    def log_prob(self, value) -> Tensor:
        value, p = self._validate_value(value), self.probs
        none = (p == 1) & (value == 0)  # 0 * log(0)
        return value * F.log1p(-F.where(none, 0.0, p)) + F.log(self.probs)

    def entropy(self) -> Tensor:
        return logit_entropy(self.logits, self.probs) / self.probs


class Binomial(BinaryDistribution):
    """The number of successes in total_count trials."""

    _expanded_names: tuple[str, ...] = ("_parameter", "total_count")

    def __init__(self, total_count=1, probs=None, logits=None, validate_args: bool | None = None):
        super().__init__(probs, logits, validate_args)
        self.total_count, self._parameter = broadcast_parameters(total_count, self._parameter)
        self._batch_shape = self._parameter.shape
        whole = constraints.nonnegative_integer
        self._require("total_count", self.total_count, whole.check(self.total_count), str(whole))

    @property
    def support(self) -> constraints.Constraint:
        """Whole numbers from 0 to total_count."""
        return constraints.integer_interval(0, self.total_count)

    mean = property(lambda self: self.total_count * self.probs)
    mode = property(lambda self: F.floor((self.total_count + 1) * self.probs).clamp(max=self.total_count))
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))

    def sample(self, sample_shape=()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return sampling.binomial(self.total_count.expand(*shape), self.probs.detach().expand(*shape))

    def log_prob(self, value) -> Tensor:
        value, n, logits = self._validate_value(value), self.total_count, self.logits
        ways = F.lgamma(n + 1) - F.lgamma(value + 1) - F.lgamma(n - value + 1)
        spread = n * logits.clamp(min=0) + n * F.log1p(F.exp(-F.abs(logits)))
        return value * logits + ways - spread


class Poisson(Univariate):
    """The number of events in a unit of time, `rate` on average."""

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    mean = property(lambda self: self.rate)
    variance = mean
    mode = property(lambda self: F.floor(self.rate))

    def sample(self, sample_shape=()) -> Tensor:
        return sampling.poisson(self.rate.detach().expand(*self._extended_shape(sample_shape)))

    def log_prob(self, value) -> Tensor:
        value = self._validate_value(value)
        return F.xlogy(value, self.rate) - self.rate - F.lgamma(value + 1)
