"""Invertible maps of random values, with the log-determinant of their Jacobian (Rezende & Mohamed 2015, section 3).

`t(x)` maps, `t.inv(y)` maps back, `t.log_abs_det_jacobian(x, y)` is log |dy/dx|. A `TransformedDistribution` uses all
three. `domain` and `codomain` are constraints; `bijective` is True if every y has one x.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ..core import functions as F
from ..core.base.errors import ShapeError
from ..core.functions.activation import softplus
from ..core.functions.arguments import ensure_tensor
from ..core.messages.suggestions import missing_names
from ..core.source_location import fail
from ..core.spec import finfo
from ..core.tensor import Tensor
from . import constraints
from .constraints import Constraint, independent


def sum_last(x: Tensor, axes: int) -> Tensor:
    """Sum over the last `axes` axes."""
    return x.sum(tuple(range(-axes, 0))) if axes else x


def is_equal(x, y) -> bool:
    """True for equal values, also for tensors whose elements are equal."""
    if isinstance(x, Tensor) and isinstance(y, Tensor):
        return x.shape == y.shape and bool((x == y).all())
    return bool(x == y)


class Transform:
    """Base class: a subclass defines `domain`, `codomain`, `_call`, `_inverse` and `log_abs_det_jacobian`.

    cache_size: 1 keeps the last pair (x, y), so that `t.inv(t(x))` is x itself.
    """

    bijective = False
    domain: Constraint = constraints.real
    codomain: Constraint = constraints.real
    sign = 1

    def __init__(self, cache_size: int = 0):
        self._cache_size = cache_size
        self._cached: tuple = (None, None)

    @property
    def event_dim(self) -> int:
        """Number of last axes that form one value."""
        return max(self.domain.event_dim, self.codomain.event_dim)

    @property
    def inv(self) -> Transform:
        """The inverse map."""
        return _InverseTransform(self)

    def with_cache(self, cache_size: int = 1) -> Transform:
        """Return this transform with another cache size."""
        self._cache_size = cache_size
        return self

    def __call__(self, x: Tensor) -> Tensor:
        if self._cache_size and self._cached[0] is x:
            return self._cached[1]
        y = self._call(x)
        if self._cache_size:
            self._cached = x, y
        return y

    def _inv_call(self, y: Tensor) -> Tensor:
        if self._cache_size and self._cached[1] is y:
            return self._cached[0]
        x = self._inverse(y)
        if self._cache_size:
            self._cached = x, y
        return x

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} must define _call(x)")

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no inverse: it must define _inverse(y)")

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """log |dy/dx|, with the batch shape of x."""
        raise NotImplementedError(f"{type(self).__name__} must define log_abs_det_jacobian(x, y)")

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of the result for an input of `shape`."""
        return tuple(shape)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of the input for a result of `shape`."""
        return tuple(shape)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Transform) or type(self) is not type(other):
            return False
        mine, theirs = self._parameters, other._parameters
        return mine.keys() == theirs.keys() and all(is_equal(x, theirs[name]) for name, x in mine.items())

    def __hash__(self) -> int:
        return hash(type(self))

    @property
    def _parameters(self) -> dict:
        """The attributes that two equal transforms have in common."""
        derived = ("_cache_size", "_cached", "__name__", "domain", "codomain")
        return {name: x for name, x in vars(self).items() if name not in derived}

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class _InverseTransform(Transform):
    """The inverse of a transform."""

    def __init__(self, transform: Transform):
        super().__init__()
        self.transform = transform
        self.bijective, self.sign = transform.bijective, transform.sign
        self.domain, self.codomain = transform.codomain, transform.domain

    @property
    def inv(self) -> Transform:
        return self.transform

    def __call__(self, x: Tensor) -> Tensor:
        return self.transform._inv_call(x)

    def _inv_call(self, y: Tensor) -> Tensor:
        return self.transform(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self.transform.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return self.transform.inverse_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return self.transform.forward_shape(shape)

    def __repr__(self) -> str:
        return f"{self.transform!r}.inv"


class ComposeTransform(Transform):
    """Apply `parts` one after the other."""

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0):
        super().__init__(cache_size)
        self.parts = list(parts)
        self.bijective = all(part.bijective for part in self.parts)
        self.sign = math.prod(part.sign for part in self.parts) if self.bijective else 0

    @property
    def domain(self) -> Constraint:  # type: ignore[override]
        return self._widened(self.parts[0].domain if self.parts else constraints.real)

    @property
    def codomain(self) -> Constraint:  # type: ignore[override]
        return self._widened(self.parts[-1].codomain if self.parts else constraints.real)

    def _widened(self, constraint: Constraint) -> Constraint:
        """The constraint with the largest event_dim of all parts."""
        wider = max((part.event_dim for part in self.parts), default=0) - constraint.event_dim
        return independent(constraint, wider) if wider > 0 else constraint

    def _call(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    def _inverse(self, y: Tensor) -> Tensor:
        for part in reversed(self.parts):
            y = part._inv_call(y)
        return y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        event_dim, total = self.event_dim, 0.0 * sum_last(x, self.domain.event_dim)
        for part in self.parts:
            mapped = part(x)
            total = total + sum_last(part.log_abs_det_jacobian(x, mapped), event_dim - part.event_dim)
            x = mapped
        return total

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return tuple(shape)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return tuple(shape)

    def __repr__(self) -> str:
        return f"ComposeTransform({self.parts})"


identity_transform = ComposeTransform([])
identity_transform.__name__ = "identity_transform"  # type: ignore[attr-defined]


class IndependentTransform(Transform):
    """Treat the last batch axes as axes of one value."""

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0):
        super().__init__(cache_size)
        self.base_transform, self.reinterpreted_batch_ndims = base_transform, reinterpreted_batch_ndims
        self.bijective, self.sign = base_transform.bijective, base_transform.sign
        self.domain = independent(base_transform.domain, reinterpreted_batch_ndims)
        self.codomain = independent(base_transform.codomain, reinterpreted_batch_ndims)

    def _call(self, x: Tensor) -> Tensor:
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.base_transform._inv_call(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return sum_last(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return self.base_transform.inverse_shape(shape)

    def __repr__(self) -> str:
        return f"IndependentTransform({self.base_transform!r}, {self.reinterpreted_batch_ndims})"


class ReshapeTransform(Transform):
    """Reshape the last axes from in_shape to out_shape."""

    bijective = True

    def __init__(self, in_shape: Sequence[int], out_shape: Sequence[int], cache_size: int = 0):
        super().__init__(cache_size)
        self.in_shape, self.out_shape = tuple(in_shape), tuple(out_shape)
        if math.prod(self.in_shape) != math.prod(self.out_shape):
            what = (
                f"ReshapeTransform: {list(self.in_shape)} and {list(self.out_shape)} differ in the number of elements"
            )
            fail(ShapeError, what, "shapes with the same product")
        self.domain = independent(constraints.real, len(self.in_shape))
        self.codomain = independent(constraints.real, len(self.out_shape))

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape(*self.forward_shape(x.shape))

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape(*self.inverse_shape(y.shape))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x.new_zeros(x.shape[: x.ndim - len(self.in_shape)])

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return (*shape[: len(shape) - len(self.in_shape)], *self.out_shape)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return (*shape[: len(shape) - len(self.out_shape)], *self.in_shape)


class ExpTransform(Transform):
    """y = exp(x)."""

    bijective = True
    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return F.exp(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return F.log(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class PowerTransform(Transform):
    """y = x ** exponent, for x > 0."""

    bijective = True
    domain = codomain = constraints.positive

    def __init__(self, exponent, cache_size: int = 0):
        super().__init__(cache_size)
        self.exponent = ensure_tensor(exponent)

    def _call(self, x: Tensor) -> Tensor:
        return x.pow(self.exponent)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return F.log(F.abs(self.exponent * y / x))


def _clipped_sigmoid(x: Tensor) -> Tensor:
    limits = finfo(x.dtype)
    return F.sigmoid(x).clamp(limits.tiny, 1 - limits.eps)


class SigmoidTransform(Transform):
    """y = 1 / (1 + exp(-x))."""

    bijective = True
    codomain = constraints.unit_interval

    def _call(self, x: Tensor) -> Tensor:
        return _clipped_sigmoid(x)

    def _inverse(self, y: Tensor) -> Tensor:
        limits = finfo(y.dtype)
        y = y.clamp(limits.tiny, 1 - limits.eps)
        return F.log(y) - F.log1p(-y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -softplus(-x) - softplus(x)


class SoftplusTransform(Transform):
    """y = log(1 + exp(x))."""

    bijective = True
    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return F.log(-F.expm1(-y)) + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -softplus(-x)


class TanhTransform(Transform):
    """y = tanh(x)."""

    bijective = True
    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x: Tensor) -> Tensor:
        return F.tanh(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return F.atanh(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return 2 * (math.log(2) - x - softplus(-2 * x))  # log(1 - tanh(x) ** 2) without cancellation


class AbsTransform(Transform):
    """y = |x|; its inverse returns the positive x."""

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return F.abs(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class AffineTransform(Transform):
    """y = loc + scale * x. event_dim: number of last axes that form one value."""

    bijective = True

    def __init__(self, loc, scale, event_dim: int = 0, cache_size: int = 0):
        super().__init__(cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim
        self.domain = self.codomain = independent(constraints.real, event_dim) if event_dim else constraints.real

    @property
    def sign(self):
        return F.sign(self.scale) if isinstance(self.scale, Tensor) else int(math.copysign(1, self.scale))

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        scale = ensure_tensor(self.scale)
        return sum_last(F.log(F.abs(scale)).to(x.dtype).expand(x.shape), self._event_dim)


class SoftmaxTransform(Transform):
    """y = softmax(x) over the last axis; its inverse returns log(y)."""

    domain, codomain = constraints.real_vector, constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        return F.softmax(x, -1)

    def _inverse(self, y: Tensor) -> Tensor:
        return F.log(y)


class StickBreakingTransform(Transform):
    """Map n numbers to n + 1 weights with the sum 1, each a share of what the weights before it left."""

    bijective = True
    domain, codomain = constraints.real_vector, constraints.simplex

    @staticmethod
    def _offset(x: Tensor) -> Tensor:
        """log of the number of weights that follow each: x = 0 gives equal weights."""
        n = x.shape[-1]
        return F.log(x.new_tensor([float(n - i) for i in range(n)]))

    def _call(self, x: Tensor) -> Tensor:
        share = SigmoidTransform()(x - self._offset(x))
        left = F.cumprod(1 - share, -1)
        one = F.mul(left[..., :1], 0.0) + 1
        return F.cat([share, one], -1) * F.cat([one, left], -1)

    def _inverse(self, y: Tensor) -> Tensor:
        weights = y[..., :-1]
        left = (1 - F.cumsum(weights, -1)).clamp(min=finfo(y.dtype).tiny)
        return F.log(weights) - F.log(left) + self._offset(weights)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        x = x - self._offset(x)
        return (-x - softplus(-x) + F.log(y[..., :-1])).sum(-1)

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return (*shape[:-1], shape[-1] + 1)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return (*shape[:-1], shape[-1] - 1)


class LowerCholeskyTransform(Transform):
    """Map square matrices to lower triangular ones with a positive diagonal."""

    domain, codomain = independent(constraints.real, 2), constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return F.tril(x, -1) + F.diag_embed(F.exp(F.diagonal(x, 0, -2, -1)))

    def _inverse(self, y: Tensor) -> Tensor:
        return F.tril(y, -1) + F.diag_embed(F.log(F.diagonal(y, 0, -2, -1)))


class PositiveDefiniteTransform(LowerCholeskyTransform):
    """Map square matrices to positive definite ones, L @ L.mT."""

    codomain = constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        lower = super()._call(x)
        return F.matmul(lower, lower.mT)

    def _inverse(self, y: Tensor) -> Tensor:
        return super()._inverse(F.cholesky(y))


class CatTransform(Transform):
    """Apply a transform to each slice of axis `dim`; lengths: the lengths of the slices (1 each)."""

    def __init__(
        self, tseq: Sequence[Transform], dim: int = 0, lengths: Sequence[int] | None = None, cache_size: int = 0
    ):
        super().__init__(cache_size)
        self.transforms, self.dim = list(tseq), dim
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        self.bijective = all(each.bijective for each in self.transforms)
        self.domain = constraints.cat([each.domain for each in tseq], dim, self.lengths)
        self.codomain = constraints.cat([each.codomain for each in tseq], dim, self.lengths)

    def _on_slices(self, apply: Callable[..., Tensor], *tensors: Tensor) -> Tensor:
        """Apply a function of a transform and of one slice of each tensor, and join the results."""
        parts = zip(self.transforms, *(F.split(x, self.lengths, self.dim) for x in tensors))
        return F.cat([apply(*each) for each in parts], self.dim)

    def _call(self, x: Tensor) -> Tensor:
        return self._on_slices(lambda each, part: each(part), x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self._on_slices(lambda each, part: each._inv_call(part), y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self._on_slices(lambda each, a, b: each.log_abs_det_jacobian(a, b), x, y)


class StackTransform(CatTransform):
    """Apply a transform to each position of axis `dim`."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0):
        super().__init__(tseq, dim, None, cache_size)
        self.domain = constraints.stack([each.domain for each in tseq], dim)
        self.codomain = constraints.stack([each.codomain for each in tseq], dim)

    def _on_slices(self, apply: Callable[..., Tensor], *tensors: Tensor) -> Tensor:
        """As CatTransform, for the positions of the axis."""
        parts = zip(self.transforms, *(F.unbind(x, self.dim) for x in tensors))
        return F.stack([apply(*each) for each in parts], self.dim)


class CumulativeDistributionTransform(Transform):
    """y = distribution.cdf(x)."""

    bijective = True
    codomain = constraints.unit_interval

    def __init__(self, distribution, cache_size: int = 0):
        super().__init__(cache_size)
        self.distribution, self.domain = distribution, distribution.support

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.distribution.log_prob(x)


__getattr__ = missing_names("flow.distributions.transforms", globals())
del globals()["__dir__"]  # otherwise completion would list imported names
