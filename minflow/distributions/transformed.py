"""Distributions of transformed values, mixtures, and the relaxed distributions that are built of them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..core import functions as F
from ..core.base.errors import ShapeError
from ..core.functions.arguments import ensure_tensor
from ..core.source_location import fail
from ..core.tensor import Tensor
from . import constraints
from .categories import Categorical, ClassWeights, OneHotCategorical
from .constraints import Constraint
from .counts import BinaryDistribution
from .distribution import Distribution, Independent
from .inverse_cdf import open_uniform
from .normal import Normal
from .transforms import ComposeTransform, ExpTransform, SigmoidTransform, StickBreakingTransform, Transform, sum_last


class TransformedDistribution(Distribution):
    """The distribution of t(x) for x drawn from `base_distribution`; transforms: one or a list, applied in order."""

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | Sequence[Transform],
        validate_args: bool | None = None,
    ):
        self.transforms = [transforms] if isinstance(transforms, Transform) else list(transforms)
        whole = ComposeTransform(self.transforms)
        base_event = len(base_distribution.event_shape)
        shape = base_distribution.batch_shape + base_distribution.event_shape
        if len(shape) < whole.domain.event_dim:
            what = f"TransformedDistribution: values of shape {list(shape)} have too few axes for {self.transforms}"
            fail(ShapeError, what, f"a base distribution with at least {whole.domain.event_dim} axes")
        more = whole.domain.event_dim - base_event
        self.base_dist = Independent(base_distribution, more) if more > 0 else base_distribution
        out = whole.forward_shape(shape)
        event = whole.codomain.event_dim + max(base_event - whole.domain.event_dim, 0)
        super().__init__(out[: len(out) - event], out[len(out) - event :], validate_args)

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return self.base_dist.has_rsample

    @property
    def support(self) -> Constraint | None:
        """The codomain of the last transform."""
        last = self.transforms[-1].codomain if self.transforms else self.base_dist.support
        more = len(self.event_shape) - last.event_dim if last is not None else 0
        return constraints.independent(last, more) if more > 0 else last

    def _transformed(self, x: Tensor) -> Tensor:
        """Apply all transforms."""
        for each in self.transforms:
            x = each(x)
        return x

    def sample(self, sample_shape=()) -> Tensor:
        return self._transformed(self.base_dist.sample(sample_shape)).detach()

    def rsample(self, sample_shape=()) -> Tensor:
        return self._transformed(self.base_dist.rsample(sample_shape))

    def log_prob(self, value) -> Tensor:
        y, event = self._validate_value(value), len(self.event_shape)
        total: Tensor | float = 0.0
        for each in reversed(self.transforms):
            x = each._inv_call(y)
            event += each.domain.event_dim - each.codomain.event_dim
            total = total - sum_last(each.log_abs_det_jacobian(x, y), event - each.domain.event_dim)
            y = x
        return total + sum_last(self.base_dist.log_prob(y), event - len(self.base_dist.event_shape))

    def _monotone(self, value: Tensor) -> Tensor:
        """The probability of values up to `value`, of a decreasing transform: of at least `value`."""
        sign = (
            math.prod(each.sign for each in self.transforms)
            if not any(isinstance(each.sign, Tensor) for each in self.transforms)
            else F.stack([ensure_tensor(each.sign) * F.mul(value, 0.0).add(1) for each in self.transforms]).prod(0)
        )
        return sign * (value - 0.5) + 0.5

    def cdf(self, value) -> Tensor:
        for each in reversed(self.transforms):
            value = each._inv_call(value)
        return self._monotone(self.base_dist.cdf(value))

    def icdf(self, value) -> Tensor:
        return self._transformed(self.base_dist.icdf(self._monotone(ensure_tensor(value))))

    def expand(self, batch_shape, _instance=None):
        inner = ComposeTransform(self.transforms).inverse_shape((*batch_shape, *self.event_shape))
        kept = len(inner) - len(self.base_dist.event_shape)
        return TransformedDistribution(self.base_dist.expand(inner[:kept]), self.transforms, self._validate_args)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_dist}, {self.transforms})"


class LogisticNormal(TransformedDistribution):
    """Stick breaking of normal values. loc, scale: (..., n); values: (..., n + 1) weights with the sum 1."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}

    def __init__(self, loc, scale, validate_args: bool | None = None):
        base = Normal(loc, scale, validate_args)
        self.loc, self.scale = base.loc, base.scale
        super().__init__(base, StickBreakingTransform(), validate_args)


class LogitRelaxedBernoulli(BinaryDistribution):
    """The logit of a RelaxedBernoulli value (Maddison et al. 2017, appendix B)."""

    has_rsample = True
    support = constraints.real

    def __init__(self, temperature, probs=None, logits=None, validate_args: bool | None = None):
        self.temperature = temperature
        super().__init__(probs, logits, validate_args)

    def rsample(self, sample_shape=()) -> Tensor:
        u = open_uniform(self._extended_shape(sample_shape), self._parameter)
        return (F.log(u) - F.log1p(-u) + self.logits) / self.temperature

    def log_prob(self, value) -> Tensor:
        value = self._validate_value(value)
        offset = self.logits - value * self.temperature
        return F.log(ensure_tensor(self.temperature)) + offset - 2 * F.log1p(F.exp(offset))


class RelaxedBernoulli(TransformedDistribution):
    """A number from 0 to 1 that is nearly 0 or 1 for low temperatures (Jang et al. 2017)."""

    def __init__(self, temperature, probs=None, logits=None, validate_args: bool | None = None):
        base = LogitRelaxedBernoulli(temperature, probs, logits, validate_args)
        super().__init__(base, SigmoidTransform(), validate_args)
        self.temperature, self.probs, self.logits = temperature, base.probs, base.logits


class ExpRelaxedCategorical(ClassWeights):
    """The logarithm of a RelaxedOneHotCategorical value (Maddison et al. 2017, section 3)."""

    has_rsample = True
    support = constraints.real_vector

    def __init__(self, temperature, probs=None, logits=None, validate_args: bool | None = None):
        super().__init__(probs, logits, validate_args)
        self.temperature, self._event_shape = temperature, type(self.batch_shape)((self._num_events,))

    def rsample(self, sample_shape=()) -> Tensor:
        u = open_uniform(self._extended_shape(sample_shape), self._parameter)
        return F.log_softmax((self.logits - F.log(-F.log(u))) / self.temperature, -1)

    def sample(self, sample_shape=()) -> Tensor:
        return self.rsample(sample_shape).detach()

    def log_prob(self, value) -> Tensor:
        n, temperature = self._num_events, ensure_tensor(self.temperature)
        score = self.logits - self._validate_value(value) * temperature
        scale = F.log(temperature) * (n - 1) + math.lgamma(n)
        return (score - F.logsumexp(score, -1, keepdim=True)).sum(-1) + scale


class RelaxedOneHotCategorical(TransformedDistribution):
    """Weights with the sum 1 that are nearly one-hot for low temperatures (Jang et al. 2017)."""

    def __init__(self, temperature, probs=None, logits=None, validate_args: bool | None = None):
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args)
        super().__init__(base, ExpTransform(), validate_args)
        self.temperature, self.probs, self.logits = temperature, base.probs, base.logits

    support = constraints.simplex


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """One-hot rows whose gradient is that of the probabilities (Bengio et al. 2013)."""

    has_rsample = True

    def rsample(self, sample_shape=()) -> Tensor:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())


class MixtureSameFamily(Distribution):
    """A mixture: `mixture_distribution` (Categorical) chooses along the last batch axis of `component_distribution`."""

    def __init__(
        self, mixture_distribution: Categorical, component_distribution: Distribution, validate_args: bool | None = None
    ):
        self.mixture_distribution, self.component_distribution = mixture_distribution, component_distribution
        n, batch = mixture_distribution._num_events, component_distribution.batch_shape
        if not batch or batch[-1] != n:
            what = f"MixtureSameFamily: weights of {n} components, and components of batch shape {list(batch)}"
            fail(ShapeError, what, f"components whose last batch axis has {n} elements")
        super().__init__(batch[:-1], component_distribution.event_shape, validate_args)

    @property
    def support(self) -> Constraint | None:
        """The support of the components."""
        return self.component_distribution.support

    def _validate_value(self, value) -> Tensor:
        return ensure_tensor(value)  # the components check it

    def _weights(self, event: bool = True) -> Tensor:
        """The probabilities, with an axis for each event axis."""
        p = self.mixture_distribution.probs
        return p.reshape(*p.shape, *[1] * len(self.event_shape)) if event else p

    @property
    def _axis(self) -> int:
        """The axis of the components in a value of theirs."""
        return -1 - len(self.event_shape)

    @property
    def mean(self) -> Tensor:
        return (self._weights() * self.component_distribution.mean).sum(self._axis)

    @property
    def variance(self) -> Tensor:
        part, weights = self.component_distribution, self._weights()
        between = (part.mean - self.mean.unsqueeze(self._axis)).square()
        return (weights * (part.variance + between)).sum(self._axis)

    def _beside(self, value) -> Tensor:
        """The value with an axis for the components."""
        return ensure_tensor(value).unsqueeze(self._axis)

    def cdf(self, value) -> Tensor:
        return (self.component_distribution.cdf(self._beside(value)) * self._weights(False)).sum(-1)

    def log_prob(self, value) -> Tensor:
        each = self.component_distribution.log_prob(self._beside(value))
        return F.logsumexp(each + F.log_softmax(self.mixture_distribution.logits, -1), -1)

    def sample(self, sample_shape=()) -> Tensor:
        chosen = self.mixture_distribution.sample(sample_shape)
        chosen = chosen.reshape(*chosen.shape, *[1] * (1 + len(self.event_shape)))
        drawn = self.component_distribution.sample(sample_shape)
        shape = list(drawn.shape)
        shape[self._axis] = 1
        return F.gather(drawn, self._axis, chosen.expand(*shape)).squeeze(self._axis)

    def expand(self, batch_shape, _instance=None):
        n = self.mixture_distribution._num_events
        parts = self.component_distribution.expand((*batch_shape, n))
        return MixtureSameFamily(self.mixture_distribution.expand(batch_shape), parts, self._validate_args)

    def __repr__(self) -> str:
        return f"MixtureSameFamily({self.mixture_distribution}, {self.component_distribution})"
