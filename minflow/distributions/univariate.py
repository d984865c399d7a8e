"""Further univariate distributions: heavy tails, extreme values, shapes on (0, 1), and angles."""

from __future__ import annotations

import math

from ..core import functions as F
from ..core.functions.arguments import ensure_tensor
from ..core.ops.special import i0e, i1e
from ..core.spec import float64
from ..core.tensor import Tensor
from . import constraints
from .counts import BinaryDistribution
from .distribution import Univariate
from .gamma_family import log_beta
from .inverse_cdf import EULER, Inverted, open_uniform


class HalfCauchy(Inverted):
    """The absolute value of a Cauchy value with location 0."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative

    mean = property(lambda self: F.where(self.scale > 0, math.inf, self.scale))
    variance = mean
    mode = property(lambda self: F.mul(self.scale, 0.0))

    def log_prob(self, value) -> Tensor:
        z = self._validate_value(value) / self.scale
        return math.log(2 / math.pi) - F.log(self.scale) - F.log1p(z.square())

    def cdf(self, value) -> Tensor:
        return F.atan(self._validate_value(value) / self.scale) * (2 / math.pi)

    def icdf(self, value) -> Tensor:
        return self.scale * F.tan(ensure_tensor(value) * (math.pi / 2))

    def entropy(self) -> Tensor:
        return F.log(self.scale) + math.log(2 * math.pi)


class Pareto(Inverted):
    """Values above `scale` whose tail falls with the power `alpha`."""

    arg_constraints = {"scale": constraints.positive, "alpha": constraints.positive}

    @property
    def support(self) -> constraints.Constraint:
        """Numbers from scale on."""
        return constraints.greater_than_eq(self.scale)

    mean = property(lambda self: F.where(self.alpha > 1, self.alpha * self.scale / (self.alpha - 1), math.inf))
    mode = property(lambda self: self.scale)

    @property
    def variance(self) -> Tensor:
        a = self.alpha
        return F.where(a > 2, self.scale.square() * a / ((a - 1).square() * (a - 2)), math.inf)

    def log_prob(self, value) -> Tensor:
        a, value = self.alpha, self._validate_value(value)
        return F.log(a) + a * F.log(self.scale) - (a + 1) * F.log(value)

    def cdf(self, value) -> Tensor:
        return 1 - (self.scale / self._validate_value(value)).pow(self.alpha)

    def icdf(self, value) -> Tensor:
        return self.scale * F.exp(-F.log1p(-ensure_tensor(value)) / self.alpha)

    def entropy(self) -> Tensor:
        return F.log(self.scale / self.alpha) + 1 + F.reciprocal(self.alpha)


class GeneralizedPareto(Inverted):
    """The excess over a high threshold `loc`; concentration: the shape of the tail, 0 for an exponential one."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}

    @property
    def support(self) -> constraints.Constraint:
        """Numbers from loc on, up to an end for a negative concentration."""
        c = self.concentration
        end = F.where(c < 0, self.loc - self.scale / F.where(c < 0, c, -1.0), math.inf)
        return constraints.interval(self.loc, end)

    @property
    def mean(self) -> Tensor:
        c = self.concentration
        return F.where(c < 1, self.loc + self.scale / (1 - c), math.inf)

    @property
    def variance(self) -> Tensor:
        c = self.concentration
        return F.where(c < 0.5, self.scale.square() / ((1 - c).square() * (1 - 2 * c)), math.inf)

    mode = property(lambda self: self.loc)

    def _log_survival(self, value: Tensor) -> Tensor:
        """log(1 - cdf), for any concentration."""
        z, c = (value - self.loc) / self.scale, self.concentration
        flat = F.abs(c) < 1e-8
        c = F.where(flat, 1.0, c)
        return F.where(flat, -z, -F.log1p(c * z) / c)

    def log_prob(self, value) -> Tensor:
        return (1 + self.concentration) * self._log_survival(self._validate_value(value)) - F.log(self.scale)

    def cdf(self, value) -> Tensor:
        return -F.expm1(self._log_survival(self._validate_value(value)))

    def icdf(self, value) -> Tensor:
        left, c = -F.log1p(-ensure_tensor(value)), self.concentration
        flat = F.abs(c) < 1e-8
        c = F.where(flat, 1.0, c)
        return self.loc + self.scale * F.where(flat, left, F.expm1(c * left) / c)

    def entropy(self) -> Tensor:
        return F.log(self.scale) + self.concentration + 1


class Weibull(Inverted):
    """The life time of a part whose failure rate changes with age: falls for concentration < 1, else rises."""

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def _moment(self, n: int) -> Tensor:
        """The mean of the n-th power of value / scale."""
        return F.exp(F.lgamma(1 + n / self.concentration))

    mean = property(lambda self: self.scale * self._moment(1))

    @property
    def mode(self) -> Tensor:
        k = self.concentration
        return F.where(k > 1, self.scale * ((k - 1) / k).clamp(min=0.0).pow(1 / k), 0.0)

    variance = property(lambda self: self.scale.square() * (self._moment(2) - self._moment(1).square()))

    def log_prob(self, value) -> Tensor:
        z, k = self._validate_value(value) / self.scale, self.concentration
        return F.log(k / self.scale) + (k - 1) * F.log(z) - z.pow(k)

    def cdf(self, value) -> Tensor:
        return -F.expm1(-(self._validate_value(value) / self.scale).pow(self.concentration))

    def icdf(self, value) -> Tensor:
        return self.scale * (-F.log1p(-ensure_tensor(value))).pow(1 / self.concentration)

    def entropy(self) -> Tensor:
        k = self.concentration
        return EULER * (1 - 1 / k) + F.log(self.scale / k) + 1


class Kumaraswamy(Inverted):
    """A shape on (0, 1) like that of a beta distribution, with a cdf in closed form (Kumaraswamy 1980)."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval

    def _moment(self, n: int) -> Tensor:
        """The mean of the n-th power."""
        b = self.concentration0
        return b * F.exp(log_beta(1 + n / self.concentration1, b))

    mean = property(lambda self: self._moment(1))

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        found = ((a - 1) / (a * b - 1)).pow(1 / a)
        return F.where((a < 1) | (b < 1), math.nan, found)

    variance = property(lambda self: self._moment(2) - self.mean.square())

    def log_prob(self, value) -> Tensor:
        value, a, b = self._validate_value(value), self.concentration1, self.concentration0
        return F.log(a * b) + (a - 1) * F.log(value) + (b - 1) * F.log1p(-value.pow(a))

    def cdf(self, value) -> Tensor:
        return 1 - (1 - self._validate_value(value).pow(self.concentration1)).pow(self.concentration0)

    def icdf(self, value) -> Tensor:
        left = F.log1p(-ensure_tensor(value)) / self.concentration0
        return (-F.expm1(left)).pow(1 / self.concentration1)

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = F.digamma(b + 1) + EULER
        return (1 - 1 / b) + (1 - 1 / a) * harmonic - F.log(a) - F.log(b)


class ContinuousBernoulli(BinaryDistribution):
    """A number from 0 to 1 with density proportional to p**x * (1-p)**(1-x) (Loaiza-Ganem & Cunningham 2019).

    lims: probabilities between these are computed by a series, since the closed form is 0 / 0 at 0.5.
    """

    has_rsample = True
    support = constraints.unit_interval

    def __init__(self, probs=None, logits=None, lims=(0.499, 0.501), validate_args: bool | None = None):
        super().__init__(probs, logits, validate_args)
        self.lims = lims

    def _parts(self) -> tuple[Tensor, Tensor, Tensor]:
        """(True where the closed form holds, p with 0.5 replaced there, p - 0.5)."""
        p = self.probs.clamp(1e-6, 1 - 1e-6)
        closed = (p <= self.lims[0]) | (p > self.lims[1])
        return closed, F.where(closed, p, self.lims[0]), p - 0.5

    def _log_normalizer(self) -> Tensor:
        """log of the factor that normalizes the density."""
        closed, p, x = self._parts()
        exact = F.log(F.abs(F.log1p(-p) - F.log(p))) - F.log(F.abs(1 - 2 * p))
        return F.where(closed, exact, math.log(2) + (4 / 3 + 104 / 45 * x.square()) * x.square())

    @property
    def mean(self) -> Tensor:
        closed, p, x = self._parts()
        exact = p / (2 * p - 1) + 1 / (F.log1p(-p) - F.log(p))
        return F.where(closed, exact, 0.5 + (1 / 3 + 16 / 45 * x.square()) * x)

    @property
    def variance(self) -> Tensor:
        closed, p, x = self._parts()
        exact = p * (p - 1) / (1 - 2 * p).square() + 1 / (F.log1p(-p) - F.log(p)).square()
        return F.where(closed, exact, 1 / 12 - (1 / 15 - 128 / 945 * x.square()) * x.square())

    def rsample(self, sample_shape=()) -> Tensor:
        return self.icdf(open_uniform(self._extended_shape(sample_shape), self._parameter))

    def log_prob(self, value) -> Tensor:
        value, p = self._validate_value(value), self.probs.clamp(1e-6, 1 - 1e-6)
        return value * F.log(p) + (1 - value) * F.log1p(-p) + self._log_normalizer()

    def cdf(self, value) -> Tensor:
        value = ensure_tensor(value)
        closed, p, _ = self._parts()
        exact = (p.pow(value) * (1 - p).pow(1 - value) + p - 1) / (2 * p - 1)
        inside = F.where(closed, exact, value)
        return F.where(value <= 0, 0.0, F.where(value >= 1, 1.0, inside))

    def icdf(self, value) -> Tensor:
        value = ensure_tensor(value)
        closed, p, _ = self._parts()
        exact = (F.log1p(-p + value * (2 * p - 1)) - F.log1p(-p)) / (F.log(p) - F.log1p(-p))
        return F.where(closed, exact, value)

    def entropy(self) -> Tensor:
        p = self.probs.clamp(1e-6, 1 - 1e-6)
        return self.mean * (F.log1p(-p) - F.log(p)) - self._log_normalizer() - F.log1p(-p)


class VonMises(Univariate):
    """An angle in radians around `loc`; concentration: > 0, large for a narrow peak."""

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    _CANDIDATES = 32  # each is accepted with a probability of at least 0.66 (Best & Fisher 1979)

    mean = property(lambda self: self.loc)
    mode = mean

    @property
    def variance(self) -> Tensor:
        """The circular variance, 1 - I1(k) / I0(k)."""
        k = self.concentration
        return 1 - i1e(k) / i0e(k)

    def sample(self, sample_shape=()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        k = self.concentration.detach().to(float64)
        tau = 1 + F.sqrt(1 + 4 * k.square())
        rho = (tau - F.sqrt(2 * tau)) / (2 * k)
        r = F.where(k < 1e-5, 1 / k + k, (1 + rho.square()) / (2 * rho))
        u = open_uniform((3, self._CANDIDATES, *shape), k)
        z = F.cos(math.pi * u[0])
        f = (1 + r * z) / (r + z)
        c = k * (r - f)
        accepted = (c * (2 - c) - u[1] > 0) | (F.log(c / u[1]) + 1 - c >= 0)
        first = accepted.to(float64).argmax(0, keepdim=True)
        angle = F.sign(u[2] - 0.5) * F.acos(f.clamp(-1.0, 1.0))
        drawn = F.gather(angle, 0, first).squeeze(0) + self.loc.detach()
        return (F.remainder(drawn + math.pi, 2 * math.pi) - math.pi).to(self.loc.dtype)

    def log_prob(self, value) -> Tensor:
        k = self.concentration
        scale = F.log(i0e(k)) + k  # i0 overflows, i0e does not
        return k * F.cos(self._validate_value(value) - self.loc) - math.log(2 * math.pi) - scale
