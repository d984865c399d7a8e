"""Code shared by all distributions: shapes, broadcasting, checks, and errors for unavailable quantities.

`batch_shape` is the shape of independent distributions, `event_shape` that of one value; a sample has shape
`sample_shape + batch_shape + event_shape`. Checks read the parameters, so a graph omits them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..core import functions as F
from ..core.base.errors import GradError, OutOfRangeError, ShapeError
from ..core.deferred import defer
from ..core.functions.arguments import ensure_tensor, is_tensor, to
from ..core.grad.modes import no_grad
from ..core.mode import MODE
from ..core.ops.global_tensors import on_each_rank
from ..core.source_location import fail
from ..core.spec import cpu, default_dtype, promote
from ..core.tensor import Size, Tensor
from .constraints import Constraint, independent, is_dependent


class UnavailableError(OutOfRangeError, NotImplementedError):
    """A distribution does not provide a quantity. Programs catch NotImplementedError, as PyTorch raises it."""


class NoSampleGradientError(GradError, NotImplementedError):
    """The samples of a distribution do not pass gradients."""


class NoFormulaError(ShapeError, NotImplementedError):
    """No formula is registered for the divergence of two distributions."""


def broadcast_parameters(*values) -> list[Tensor]:
    """Return parameters as float tensors of one shape and dtype; Python numbers get dtype, device and ranks of the
    tensors.
    """
    specs = [x.spec for x in values if is_tensor(x) and x.spec.dtype.floating]
    dtype = promote(*specs) if specs else default_dtype()
    device = next((x.spec.device for x in values if is_tensor(x)), cpu)
    placed = next((x for x in values if is_tensor(x) and x.is_global), None)
    beside = [x if is_tensor(x) else on_ranks_of(placed, ensure_tensor(x).to(device)) for x in values]
    converted = [to(x, dtype) for x in beside]
    return converted if len(converted) == 1 else list(F.broadcast_tensors(*converted))


def on_ranks_of(like: Tensor | None, x: Tensor) -> Tensor:
    """A new tensor, global if `like` is: with the elements of the first rank on each."""
    return x if like is None or like.is_local else on_each_rank(x, like.placement)


def is_tracing() -> bool:
    return MODE.get().trace is not None


class Distribution:
    """Base class of all distributions. A subclass defines `sample` or `rsample`, and `log_prob`.

    validate_args: check parameters and values (True unless `Distribution.set_default_validate_args(False)`).
    """

    has_rsample = has_enumerate_support = False  # has_rsample: gradients flow through a sample
    _validate_args = True
    arg_constraints: dict[str, Constraint] = {}  # name of a parameter -> its valid values
    support: Any = None  # Constraint of a value

    def __init__(self, batch_shape=(), event_shape=(), validate_args: bool | None = None):
        self._batch_shape, self._event_shape = Size(tuple(batch_shape)), Size(tuple(event_shape))
        self._validate_args = Distribution._validate_args if validate_args is None else bool(validate_args)
        if not self._validate_args or is_tracing():
            return
        for name, constraint in self.arg_constraints.items():
            if not is_dependent(constraint) and (name in vars(self) or not hasattr(type(self), name)):
                self._check(name, ensure_tensor(getattr(self, name)), constraint)

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Set whether new distributions check their parameters and values."""
        Distribution._validate_args = bool(value)

    @property
    def batch_shape(self) -> Size:
        """The shape of the parameters: one independent distribution per element."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of a single value."""
        return self._event_shape

    def _check(self, name: str, x: Tensor, constraint: Constraint) -> None:
        """Refuse elements outside a set; see `_require`."""
        if self._validate_args and not is_tracing() and not constraint._holds(x):
            self._require(name, x, constraint.check(x), constraint)

    def _require(self, name: str, x: Tensor, valid: Tensor | None, what: str | Constraint) -> None:
        """Refuse invalid parameters; on a device, with the next value that is read. valid: bool, True for valid
        elements.
        """
        if not self._validate_args or valid is None or is_tracing():
            return
        if x.spec.device is cpu and bool(valid.all()):
            return
        text, hint = f"{type(self).__name__}: {name} must be {what}", "validate_args=False skips this check"
        same, spec = valid.shape == x.shape, x.spec
        if spec.device is not cpu and spec.size:
            numbers = F.where(valid, -math.inf, x.detach().float()) if same else x.new_full((), math.nan)

            def report(wrong: float, number: float) -> OutOfRangeError | None:
                what = f"{text}, one is {number:.4g}" if same else text
                return OutOfRangeError(what, values={name: spec}, hint=hint) if wrong else None

            defer((text,), [(~valid).any().array, numbers.max().array], report)
        elif spec.device is cpu:
            found = f", one is {float(x.detach()[~valid].flatten()[0]):.4g}" if same else ""
            fail(OutOfRangeError, text + found, hint, **{name: x})

    def _validate_value(self, value) -> Tensor:
        """Convert a value to a tensor, and check that its shape and elements are possible."""
        value = ensure_tensor(value)
        want = self.batch_shape + self.event_shape
        for n, m in zip(value.shape[::-1], want[::-1]) if value.shape != want else ():
            if n != m and 1 not in (n, m):
                fail(
                    ShapeError,
                    f"{type(self).__name__}: a value of shape {list(value.shape)} and parameters of "
                    f"{list(want)} do not broadcast",
                    "value.unsqueeze(-1), or parameters of that shape",
                    value=value,
                )
        if (support := self.support) is not None:
            self._check("value", value, support)
        return value

    def _extended_shape(self, sample_shape) -> tuple[int, ...]:
        """The shape of a sample with this `sample_shape`."""
        shape = (sample_shape,) if isinstance(sample_shape, int) else tuple(sample_shape)
        return (*shape, *self.batch_shape, *self.event_shape)

    def _validate_sample(self, value) -> None:  # called by subclasses written for PyTorch
        self._validate_value(value)

    def _get_checked_instance(self, cls: type, _instance=None):
        return type(self).__new__(type(self)) if _instance is None else _instance

    def rsample(self, sample_shape=()) -> Tensor:
        """Draw a sample through which gradients reach the parameters (Kingma & Welling 2014, section 2.4)."""
        what = f"{type(self).__name__}: samples do not pass gradients"
        fail(NoSampleGradientError, what, "sample() and log_prob(), as in REINFORCE")

    def sample(self, sample_shape=()) -> Tensor:
        """Draw a sample without gradient."""
        with no_grad():
            return self.rsample(sample_shape).detach()

    def sample_n(self, n: int) -> Tensor:
        """Draw `n` values without gradient."""
        return self.sample((n,))

    def _raise_unavailable(self, what: str) -> Any:
        """Raise the error for a quantity that this distribution does not provide."""
        fail(UnavailableError, f"{type(self).__name__}: {what} is not known in closed form", "an average over samples")

    def log_prob(self, value) -> Tensor:
        """The log-probability (or log-density) of a value; the event axes are reduced."""
        return self._raise_unavailable("log_prob")

    def cdf(self, value) -> Tensor:
        """The cumulative distribution function."""
        return self._raise_unavailable("cdf")

    def icdf(self, value) -> Tensor:
        """The inverse cumulative distribution function (quantile function)."""
        return self._raise_unavailable("icdf")

    def entropy(self) -> Tensor:
        """The expected -log_prob, in nats."""
        return self._raise_unavailable("entropy")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All possible values, along a new first axis."""
        return self._raise_unavailable("a list of all values")

    def perplexity(self) -> Tensor:
        """exp of the entropy."""
        return F.exp(self.entropy())

    @property
    def mean(self) -> Tensor:
        """The expected value."""
        return self._raise_unavailable("mean")

    @property
    def mode(self) -> Tensor:
        """The most probable value."""
        return self._raise_unavailable("mode")

    @property
    def variance(self) -> Tensor:
        """The expected squared distance from the mean."""
        return self._raise_unavailable("variance")

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return F.sqrt(self.variance)

    @property
    def _parameter_names(self) -> tuple[str, ...]:
        """Names of the parameters that `repr` shows."""
        return tuple(name for name in self.arg_constraints if name in vars(self))

    @property
    def _expanded_names(self) -> tuple[str, ...]:
        """Names of the attributes that `expand` expands."""
        return self._parameter_names

    def expand(self, batch_shape, _instance=None):
        """Return the same distribution with its parameters expanded to a larger batch shape."""
        expanded = type(self).__new__(type(self))
        expanded.__dict__.update(self.__dict__)
        expanded._batch_shape = Size(tuple(batch_shape))
        for name in self._expanded_names:
            x = getattr(self, name)
            kept = x.shape[len(self.batch_shape) :]
            expanded.__dict__[name] = x.expand(*batch_shape, *kept)
        return expanded

    def __repr__(self) -> str:
        shown = [(name, getattr(self, name)) for name in self._parameter_names if hasattr(self, name)]
        each = [f"{name}: {x if x.numel() == 1 else x.shape}" for name, x in shown]
        return f"{type(self).__name__}({', '.join(each)})"


def constructor(names: Sequence[str], defaults: dict[str, float]) -> Callable[..., None]:
    """`__init__` with these parameters and validate_args; compiled from text, as that of a dataclass is."""
    arguments = "".join([f"{name}={defaults[name]}, " if name in defaults else f"{name}, " for name in names])
    attributes = "".join([f"self.{name}, " for name in names])
    text = f"""
def __init__(self, {arguments}validate_args: bool | None = None):
    {attributes} = broadcast_parameters({", ".join(names)})
    super(Univariate, self).__init__(self.{names[0]}.shape, (), validate_args)
"""
    scope: dict[str, Any] = {}
    exec(compile(text, f"{__file__}:constructor", "exec"), globals(), scope)
    return scope["__init__"]


class Univariate(Distribution):
    """Base class of distributions of single numbers, whose constructor takes the parameters in `arg_constraints`.

    _defaults: values of the parameters that may be left out.
    """

    _defaults: dict[str, float] = {}

    def __init_subclass__(cls) -> None:
        if "arg_constraints" in vars(cls) and "__init__" not in vars(cls):
            cls.__init__ = constructor(tuple(cls.arg_constraints), cls._defaults)  # type: ignore[method-assign]

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Tensor: ...


class Independent(Distribution):
    """Reinterpret the last batch axes as event axes: log_prob is summed over them.

    base_distribution: the distribution.  reinterpreted_batch_ndims: the number of batch axes that become event axes.
    """

    def __init__(
        self, base_distribution: Distribution, reinterpreted_batch_ndims: int, validate_args: bool | None = None
    ):
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, reinterpreted_batch_ndims
        shape, kept = base_distribution.batch_shape, len(base_distribution.batch_shape) - reinterpreted_batch_ndims
        if kept < 0:
            what = f"Independent: {reinterpreted_batch_ndims} axes of batch shape {list(shape)}"
            fail(ShapeError, what, f"reinterpreted_batch_ndims from 0 to {len(shape)}")
        super().__init__(shape[:kept], shape[kept:] + base_distribution.event_shape, validate_args)

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return self.base_dist.has_rsample

    @property
    def support(self) -> Constraint | None:
        """The support of the base distribution, with its event axes checked together."""
        base = self.base_dist.support
        return independent(base, self.reinterpreted_batch_ndims) if base is not None else None

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

    def _sum_event_axes(self, x: Tensor) -> Tensor:
        """Sum over the axes that became event axes."""
        n = self.reinterpreted_batch_ndims
        return x.sum(tuple(range(-n, 0))) if n else x

    def log_prob(self, value) -> Tensor:
        return self._sum_event_axes(self.base_dist.log_prob(value))

    def entropy(self) -> Tensor:
        return self._sum_event_axes(self.base_dist.entropy())

    def expand(self, batch_shape, _instance=None):
        inner = self.base_dist.batch_shape[len(self.batch_shape) :]
        return Independent(self.base_dist.expand((*batch_shape, *inner)), self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"Independent({self.base_dist}, {self.reinterpreted_batch_ndims})"
