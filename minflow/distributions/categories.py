"""Distributions over classes, by probabilities or by unnormalized logits."""

from __future__ import annotations

import functools

from ..core import functions as F
from ..core.base.errors import ShapeError
from ..core.functions.arguments import to
from ..core.functions.creation import arange, broadcast_shapes, eye
from ..core.source_location import fail
from ..core.spec import DType, finfo, int64
from ..core.tensor import Tensor
from . import constraints
from .counts import check_probs_or_logits
from .distribution import Distribution, broadcast_parameters, is_tracing, on_ranks_of


@functools.cache
def eps_of(dtype: DType) -> float:
    return finfo(dtype).eps


class ClassWeights(Distribution):
    """Base of the distributions with a weight for each of n classes. probs, logits: see Categorical."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(self, probs=None, logits=None, validate_args: bool | None = None):
        check_probs_or_logits(type(self).__name__, probs, logits)
        self._by_probs = probs is not None
        (x,) = broadcast_parameters(probs if self._by_probs else logits)
        if x.ndim < 1:
            what = f"{type(self).__name__}: the weights must have at least one axis"
            fail(ShapeError, what, "the last axis is that of the classes", weights=x)
        super().__init__(x.shape[:-1], (), validate_args)
        if self._by_probs:
            total = x.sum(-1, keepdim=True)
            if self._validate_args and not is_tracing():
                if not (constraints.nonnegative._holds(x) and constraints.positive._holds(total)):
                    self._require("probs", x, (x >= 0) & (total > 0), ">= 0, and not all 0")
            self._parameter = x / total
        else:
            self._parameter = x - F.logsumexp(x, -1, keepdim=True)
        self._num_events = x.shape[-1]

    @property
    def _parameter_names(self) -> tuple[str, ...]:
        return ("probs",) if self._by_probs else ("logits",)

    @property
    def probs(self) -> Tensor:
        """The probability of each class."""
        return self._parameter if self._by_probs else F.exp(self._parameter)

    @property
    def logits(self) -> Tensor:
        """The log-probabilities."""
        if not self._by_probs:
            return self._parameter
        eps = eps_of(self._parameter.spec.dtype)
        return F.log(self._parameter.clamp(eps, 1 - eps))

    @property
    def param_shape(self):
        """The shape of the parameter: batch_shape and the number of classes."""
        return self._parameter.shape

    def expand(self, batch_shape, _instance=None):
        expanded = type(self).__new__(type(self))
        expanded.__dict__.update(self.__dict__)
        expanded._batch_shape = type(self.batch_shape)(tuple(batch_shape))
        expanded._parameter = self._parameter.expand(*batch_shape, self._num_events)
        return expanded

    def _classes(self, sample_shape) -> Tensor:
        """Draw class indices of shape sample_shape + batch_shape."""
        shape = (sample_shape,) if isinstance(sample_shape, int) else tuple(sample_shape)
        count = 1
        for n in shape:
            count *= n
        rows = self.probs.detach()  # so that nothing is recorded
        rows = rows if rows.spec.ndim < 3 else rows.reshape(-1, self._num_events)
        drawn = F.multinomial(rows, count, True) if count else rows[:, :0].long()
        return (drawn.T if count > 1 else drawn).reshape(*shape, *self.batch_shape)

    def _class_log_prob(self, value: Tensor) -> Tensor:
        """The log-probability of class indices."""
        value = to(value, int64)
        shape, logits = self.batch_shape, self.logits
        if value.shape != shape:
            shape = broadcast_shapes(value.shape, shape)
        if value.shape != shape:
            value = value.expand(*shape)
        if logits.shape != (*shape, self._num_events):
            logits = logits.expand(*shape, self._num_events)
        return F.gather(logits, -1, value.unsqueeze(-1)).squeeze(-1)


class Categorical(ClassWeights):
    """One of n classes, 0 to n - 1, as an int64 tensor.

    probs: (..., n) weights >= 0, which are normalized.  logits: (..., n) logarithms of weights.
    """

    has_enumerate_support = True

    @property
    def support(self):
        """The class indices."""
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self) -> Tensor:
        return self.probs[..., 0] * float("nan")

    variance = mean

    @property
    def mode(self) -> Tensor:
        return self.probs.argmax(-1)

    def sample(self, sample_shape=()) -> Tensor:
        return self._classes(sample_shape)

    def log_prob(self, value) -> Tensor:
        return self._class_log_prob(self._validate_value(value))

    def entropy(self) -> Tensor:
        logits = self.logits.clamp(min=finfo(self._parameter.dtype).min)  # 0 * log(0) is 0
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = on_ranks_of(self._parameter, arange(self._num_events, device=self._parameter.device))
        values = values.reshape(-1, *[1] * len(self.batch_shape))
        return values.expand(self._num_events, *self.batch_shape) if expand else values


class OneHotCategorical(ClassWeights):
    """A class as a one-hot row. probs, logits: see Categorical."""

    has_enumerate_support = True

    def __init__(self, probs=None, logits=None, validate_args: bool | None = None):
        super().__init__(probs, logits, validate_args)
        self._event_shape = type(self.batch_shape)((self._num_events,))

    support = constraints.one_hot

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    @property
    def mode(self) -> Tensor:
        return to(F.one_hot(self.probs.argmax(-1), self._num_events), self._parameter.dtype)

    def sample(self, sample_shape=()) -> Tensor:
        return to(F.one_hot(self._classes(sample_shape), self._num_events), self._parameter.dtype)

    def log_prob(self, value) -> Tensor:
        return self._class_log_prob(self._validate_value(value).argmax(-1))

    entropy = Categorical.entropy

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = self._num_events
        values = on_ranks_of(self._parameter, eye(n, dtype=self._parameter.dtype, device=self._parameter.device))
        values = values.reshape(n, *[1] * len(self.batch_shape), n)
        return values.expand(n, *self.batch_shape, n) if expand else values


class Multinomial(ClassWeights):
    """Number of draws of each of n classes, in total_count independent draws."""

    def __init__(self, total_count: int = 1, probs=None, logits=None, validate_args: bool | None = None):
        super().__init__(probs, logits, validate_args)
        self.total_count = total_count
        self._event_shape = type(self.batch_shape)((self._num_events,))

    @property
    def support(self) -> constraints.Constraint:
        """Counts whose sum is at most total_count."""
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape=()) -> Tensor:
        shape = (sample_shape,) if isinstance(sample_shape, int) else tuple(sample_shape)
        drawn = self._classes((self.total_count, *shape))
        return to(F.one_hot(drawn, self._num_events).sum(0), self._parameter.dtype)

    def log_prob(self, value) -> Tensor:
        value = self._validate_value(value)
        ways = F.lgamma(value.sum(-1) + 1) - F.lgamma(value + 1).sum(-1)
        logits = F.where((value == 0) & (self.logits == -float("inf")), 0.0, self.logits)
        return ways + (logits * value).sum(-1)
