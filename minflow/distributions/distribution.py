"""What all distributions share: shapes, parameters that broadcast, checks, and what is not there.

`batch_shape` counts independent distributions, `event_shape` is the shape of one drawn value; a sample has
`sample_shape + batch_shape + event_shape`. Checks read the parameters, so a graph leaves them out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core import functions as F
from ..core.base.errors import GradError, OutOfRangeError, ShapeError
from ..core.functions.arguments import is_tensor, tensor_of, to
from ..core.grad.modes import no_grad
from ..core.mode import MODE
from ..core.spec import default_dtype, promote
from ..core.tensor import Size, Tensor
from ..core.source_location import fail


def met(*values) -> list[Tensor]:
    """Parameters as float tensors of one shape and dtype; Python numbers take the dtype of the tensors."""
    specs = [x.spec for x in values if is_tensor(x) and x.spec.dtype.floating]
    dtype = promote(*specs) if specs else default_dtype()
    return list(F.broadcast_tensors(*[to(tensor_of(x), dtype) for x in values]))


def tracing() -> bool:
    return MODE.get().trace is not None


class Distribution:
    """The base of all distributions; one of your own has `sample` or `rsample`, and `log_prob`.

    validate_args: check parameters and values (True unless `Distribution.set_default_validate_args(False)`).
    """

    has_rsample = False  # can a gradient pass through a sample?
    validate = True
    support: tuple[str, Callable] | None = None  # "numbers > 0" and what tells which are

    def __init__(self, batch_shape=(), event_shape=(), validate_args: bool | None = None):
        self._batch_shape, self._event_shape = Size(tuple(batch_shape)), Size(tuple(event_shape))
        self.validate = Distribution.validate if validate_args is None else bool(validate_args)

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Check parameters and values of distributions that are made from now on, or do not."""
        Distribution.validate = bool(value)

    @property
    def batch_shape(self) -> Size:
        """The shape of the parameters: how many independent distributions this is."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one value."""
        return self._event_shape

    def need(self, name: str, x: Tensor, right: Tensor | None, what: str) -> None:
        """Refuse parameters that are wrong. right: where they are as they must be."""
        if self.validate and right is not None and not tracing() and not bool(right.all()):
            number = float(x.detach()[~right].flatten()[0]) if right.shape == x.shape else float("nan")
            fail(
                OutOfRangeError,
                f"{type(self).__name__}: {name} must be {what}, one is {number:.4g}",
                "validate_args=False leaves this check out",
                **{name: x},
            )

    def checked(self, value) -> Tensor:
        """A value whose probability is asked, as a tensor."""
        value = tensor_of(value)
        want = self.batch_shape + self.event_shape
        for n, m in zip(value.shape[::-1], want[::-1]):
            if n != m and 1 not in (n, m):
                fail(
                    ShapeError,
                    f"{type(self).__name__}: a value of shape {list(value.shape)} and parameters of "
                    f"{list(want)} do not broadcast",
                    "value.unsqueeze(-1), or parameters of that shape",
                    value=value,
                )
        if self.support is not None:
            what, right = self.support
            self.need("value", value, right(self, value), what)
        return value

    def extended(self, sample_shape) -> tuple[int, ...]:
        """The shape of a sample of this `sample_shape`."""
        shape = (sample_shape,) if isinstance(sample_shape, int) else tuple(sample_shape)
        return (*shape, *self.batch_shape, *self.event_shape)

    def rsample(self, sample_shape=()) -> Tensor:
        """Draw so that gradients reach the parameters (Kingma & Welling 2014, section 2.4)."""
        fail(GradError, f"{type(self).__name__}: a sample has no gradient", "sample() and log_prob(), as in REINFORCE")

    def sample(self, sample_shape=()) -> Tensor:
        """Draw, without gradient."""
        with no_grad():
            return self.rsample(sample_shape).detach()

    def sample_n(self, n: int) -> Tensor:
        """`n` values, without gradient."""
        return self.sample((n,))

    def unknown(self, what: str) -> Any:
        """Raise the error of what this distribution does not know."""
        fail(
            OutOfRangeError,
            f"{type(self).__name__}: {what} is not known in closed form",
            "an average over samples of it",
        )

    def log_prob(self, value) -> Tensor:
        """The logarithm of the probability (or its density) of a value, without the axes of an event."""
        return self.unknown("log_prob")

    def cdf(self, value) -> Tensor:
        """The probability of a value up to this one."""
        return self.unknown("cdf")

    def icdf(self, value) -> Tensor:
        """The value up to which this probability lies."""
        return self.unknown("icdf")

    def entropy(self) -> Tensor:
        """The expected -log_prob, in nats."""
        return self.unknown("entropy")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values that can be drawn, along a new first axis."""
        return self.unknown("a list of all values")

    def perplexity(self) -> Tensor:
        """e to the power of the entropy."""
        return F.exp(self.entropy())

    @property
    def mean(self) -> Tensor:
        """The expected value."""
        return self.unknown("mean")

    @property
    def mode(self) -> Tensor:
        """The most probable value."""
        return self.unknown("mode")

    @property
    def variance(self) -> Tensor:
        """The expected squared distance from the mean."""
        return self.unknown("variance")

    @property
    def stddev(self) -> Tensor:
        """The root of the variance."""
        return F.sqrt(self.variance)

    names: tuple[str, ...] = ()  # parameters, as they are shown and expanded

    def expand(self, batch_shape, _instance=None):
        """The same distribution with parameters of a larger shape."""
        larger = type(self).__new__(type(self))
        larger.__dict__.update(self.__dict__)
        larger._batch_shape = Size(tuple(batch_shape))
        for name in self.names:
            x = getattr(self, name)
            kept = x.shape[len(self.batch_shape) :]
            larger.__dict__[name] = x.expand(*batch_shape, *kept)
        return larger

    def __repr__(self) -> str:
        shown = [(name, getattr(self, name)) for name in self.names if hasattr(self, name)]
        each = [f"{name}: {x if x.numel() == 1 else x.shape}" for name, x in shown]
        return f"{type(self).__name__}({', '.join(each)})"


class Independent(Distribution):
    """The last axes of a batch as one event: its log_prob is the sum over them.

    base_distribution: what is drawn.  reinterpreted_batch_ndims: how many axes become the event's.
    """

    names = ()

    def __init__(
        self, base_distribution: Distribution, reinterpreted_batch_ndims: int, validate_args: bool | None = None
    ):
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, reinterpreted_batch_ndims
        shape, kept = base_distribution.batch_shape, len(base_distribution.batch_shape) - reinterpreted_batch_ndims
        if kept < 0:
            fail(
                ShapeError,
                f"Independent: {reinterpreted_batch_ndims} axes of a batch of shape {list(shape)}",
                f"reinterpreted_batch_ndims from 0 to {len(shape)}",
            )
        super().__init__(shape[:kept], shape[kept:] + base_distribution.event_shape, validate_args)

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return self.base_dist.has_rsample

    @property
    def mean(self) -> Tensor:
        return self.base_dist.mean

    @property
    def mode(self) -> Tensor:
        return self.base_dist.mode

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def sample(self, sample_shape=()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape=()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def summed(self, x: Tensor) -> Tensor:
        """Summed over the axes that count as one event."""
        n = self.reinterpreted_batch_ndims
        return x.sum(tuple(range(-n, 0))) if n else x

    def log_prob(self, value) -> Tensor:
        return self.summed(self.base_dist.log_prob(value))

    def entropy(self) -> Tensor:
        return self.summed(self.base_dist.entropy())

    def expand(self, batch_shape, _instance=None):
        inner = self.base_dist.batch_shape[len(self.batch_shape) :]
        return Independent(self.base_dist.expand((*batch_shape, *inner)), self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"Independent({self.base_dist}, {self.reinterpreted_batch_ndims})"
