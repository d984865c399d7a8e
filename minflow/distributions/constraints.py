"""Sets of valid values, with PyTorch's names: `positive.check(x)` is True where x is in the set.

`str(constraint)` completes "must be ...". `is_discrete`: the set contains whole numbers only. `event_dim`: how many of
the last axes are checked together; the result of `check` doesn't have them.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence

from ..core import functions as F
from ..core.base.errors import OutOfRangeError
from ..core.functions.creation import full
from ..core.functions.matrices import eigvalsh
from ..core.host.float_warnings import silent
from ..core.messages.suggestions import missing_names
from ..core.source_location import fail
from ..core.spec import cpu, float32, float64, int64
from ..core.tensor import Tensor

REAL = (float32, float64, int64)  # dtypes whose smallest and largest elements NumPy finds


class Constraint:
    """Base class: a subclass defines `check(value)`, which returns a bool tensor."""

    is_discrete = False
    event_dim = 0
    text = ""

    def check(self, value: Tensor) -> Tensor:
        """True where `value` is in the set; the last `event_dim` axes are reduced."""
        raise NotImplementedError(f"{type(self).__name__} must define check(value)")

    def _holds(self, value: Tensor) -> bool:
        """True if a quick look shows that all elements are in the set; where it does not, `check` decides."""
        return False

    def __str__(self) -> str:
        return self.text or type(self).__name__.removeprefix("_")

    def __repr__(self) -> str:
        return type(self).__name__.removeprefix("_") + "()"


class Elements(Constraint):
    """Values whose elements are each in a set, which a function describes."""

    def __init__(self, name: str, text: str, contains: Callable[[Tensor], Tensor], is_discrete: bool = False):
        self.name, self.text, self.contains, self.is_discrete = name, text, contains, is_discrete

    def check(self, value: Tensor) -> Tensor:
        return self.contains(value)

    def __repr__(self) -> str:
        return self.name


class Events(Elements):
    """Vectors or matrices in a set: the function of the last `event_dim` axes returns their batch shape."""

    def __init__(self, name: str, text: str, contains: Callable[[Tensor], Tensor], event_dim: int = 1, discrete=False):
        super().__init__(name, text, contains, discrete)
        self.event_dim = event_dim


def is_whole(x: Tensor) -> Tensor:
    return x == F.floor(x)


def all_of(x: Tensor, axes: int) -> Tensor:
    """True where all elements of the last `axes` axes are True."""
    return x.reshape(*x.shape[: x.ndim - axes], -1).all(-1) if axes else x


class _Dependent(Constraint):
    """A set that depends on other parameters of the distribution: nothing is checked."""

    text = "in a set that depends on other parameters"

    def __init__(self, *, is_discrete: bool = False, event_dim: int = 0):
        self.is_discrete, self.event_dim = is_discrete, event_dim

    def __call__(self, *, is_discrete: bool = False, event_dim: int = 0) -> _Dependent:
        return _Dependent(is_discrete=is_discrete, event_dim=event_dim)

    def check(self, value: Tensor) -> Tensor:
        fail(OutOfRangeError, "a dependent constraint cannot check values", "distribution.support.check(value)")


class _DependentProperty(property, _Dependent):
    """Decorator for a property that returns the constraint of an instance."""

    def __init__(self, fn=None, *, is_discrete: bool = False, event_dim: int = 0):
        property.__init__(self, fn)
        _Dependent.__init__(self, is_discrete=is_discrete, event_dim=event_dim)

    def __call__(self, fn=None, **properties):  # @dependent_property(is_discrete=..., event_dim=...)
        own = {"is_discrete": self.is_discrete, "event_dim": self.event_dim}
        return _DependentProperty(fn, **(properties or own))

    __str__, __repr__ = Constraint.__str__, Constraint.__repr__


def is_dependent(constraint: Constraint) -> bool:
    """True for constraints that depend on other parameters."""
    return isinstance(constraint, _Dependent)


class _IndependentConstraint(Constraint):
    """A constraint whose last batch axes are checked together."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int):
        self.base_constraint, self.reinterpreted_batch_ndims = base_constraint, reinterpreted_batch_ndims
        self.is_discrete = base_constraint.is_discrete
        self.event_dim = base_constraint.event_dim + reinterpreted_batch_ndims
        self.text = str(base_constraint)

    def check(self, value: Tensor) -> Tensor:
        return all_of(self.base_constraint.check(value), self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class _Bounded(Constraint):
    """Numbers between bounds, each inclusive or exclusive; tensors as bounds broadcast."""

    lower_bound: Tensor | float | None = None
    upper_bound: Tensor | float | None = None
    lower_included = upper_included = True

    def check(self, value: Tensor) -> Tensor:
        low, high, tests = self.lower_bound, self.upper_bound, []
        if low is not None:
            tests.append(value >= low if self.lower_included else value > low)
        if high is not None:
            tests.append(value <= high if self.upper_included else value < high)
        if self.is_discrete and value.is_floating_point():
            tests.append(is_whole(value))
        return functools.reduce(operator.and_, tests)

    def _holds(self, value: Tensor) -> bool:
        low, high, spec = self.lower_bound, self.upper_bound, value.spec
        if isinstance(low, Tensor) or isinstance(high, Tensor) or spec.device is not cpu or spec.dtype not in REAL:
            return False
        if not spec.size or spec.placement is not None or (self.is_discrete and spec.floating):
            return False
        array = value._read_array("bool")
        with silent():  # NaN is in no set
            least, most = array.min(), array.max()
        enough = low is None or (least >= low if self.lower_included else least > low)
        return bool(enough and (high is None or (most <= high if self.upper_included else most < high)))

    def __str__(self) -> str:
        low, high = (bound_text(x) for x in (self.lower_bound, self.upper_bound))
        if low and high:
            limits = f"from {low} {'to' if self.upper_included else 'to below'} {high}"
        elif low:
            limits = f"{'>=' if self.lower_included else '>'} {low}"
        else:
            limits = f"{'<=' if self.upper_included else '<'} {high}"
        return f"a whole number {limits}" if self.is_discrete else limits

    def __repr__(self) -> str:
        bounds = {"lower_bound": self.lower_bound, "upper_bound": self.upper_bound}
        shown = ", ".join(f"{name}={bound_text(x)}" for name, x in bounds.items() if x is not None)
        return f"{type(self).__name__.removeprefix('_')}({shown})"


def bound_text(bound) -> str:
    if isinstance(bound, Tensor):
        return f"{bound.item():g}" if bound.numel() == 1 else "the bound of its element"
    return "" if bound is None else f"{bound:g}"


class _Interval(_Bounded):
    def __init__(self, lower_bound, upper_bound):
        self.lower_bound, self.upper_bound = lower_bound, upper_bound


class _HalfOpenInterval(_Interval):
    upper_included = False


class _IntegerInterval(_Interval):
    is_discrete = True


class _GreaterThan(_Bounded):
    lower_included = False

    def __init__(self, lower_bound):
        self.lower_bound = lower_bound


class _GreaterThanEq(_GreaterThan):
    lower_included = True


class _IntegerGreaterThan(_GreaterThanEq):
    is_discrete = True


class _LessThan(_Bounded):
    upper_included = False

    def __init__(self, upper_bound):
        self.upper_bound = upper_bound


class _IntegerLessThan(_LessThan):
    is_discrete = upper_included = True


class _Multinomial(Constraint):
    """Counts of classes whose sum is at most `upper_bound`."""

    is_discrete, event_dim = True, 1

    def __init__(self, upper_bound):
        self.upper_bound = upper_bound
        self.text = f"whole numbers >= 0 with the sum {bound_text(upper_bound)}"

    def check(self, value: Tensor) -> Tensor:
        return ((value >= 0) & is_whole(value)).all(-1) & (value.sum(-1) <= self.upper_bound)


class _Joined(Constraint):
    """Slices of an axis, each with its own constraint."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None):
        self.cseq, self.dim = list(cseq), dim
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        self.is_discrete = any(each.is_discrete for each in self.cseq)
        self.event_dim = max(each.event_dim for each in self.cseq)
        self.text = " | ".join(map(str, self.cseq))


class _Cat(_Joined):
    def check(self, value: Tensor) -> Tensor:
        parts = F.split(value, self.lengths, self.dim)
        return F.cat([each.check(part) for each, part in zip(self.cseq, parts)], self.dim)


class _Stack(_Joined):
    def check(self, value: Tensor) -> Tensor:
        return F.stack([each.check(part) for each, part in zip(self.cseq, F.unbind(value, self.dim))], self.dim)


def near(x: Tensor, y: Tensor | float, tolerance: float = 1e-6) -> Tensor:
    return F.abs(x - y) < tolerance


def is_lower(x: Tensor) -> Tensor:
    return all_of(F.tril(x) == x, 2)


def is_symmetric(x: Tensor) -> Tensor:
    return all_of(near(x, x.mT), 2)


def has_positive_diagonal(x: Tensor) -> Tensor:
    return (F.diagonal(x, 0, -2, -1) > 0).all(-1)


def has_unit_rows(x: Tensor) -> Tensor:
    return near(F.norm(x, 2, -1), 1.0, 1e-4).all(-1)


def lowest_eigenvalue(x: Tensor) -> Tensor:
    return eigvalsh(x)[..., 0]


dependent, dependent_property, independent = _Dependent(), _DependentProperty, _IndependentConstraint
interval, half_open_interval, integer_interval = _Interval, _HalfOpenInterval, _IntegerInterval
greater_than, greater_than_eq, less_than, multinomial = _GreaterThan, _GreaterThanEq, _LessThan, _Multinomial
cat, stack = _Cat, _Stack

boolean = Elements("Boolean()", "0 or 1", lambda x: (x == 0) | (x == 1), True)
real = Elements("Real()", "a number, not NaN", lambda x: x == x)
positive, nonnegative, unit_interval = _GreaterThan(0.0), _GreaterThanEq(0.0), _Interval(0.0, 1.0)
positive_integer, nonnegative_integer = _IntegerGreaterThan(1), _IntegerGreaterThan(0)
real_vector = _IndependentConstraint(real, 1)
one_hot = Events("OneHot()", "a row with one 1", lambda x: boolean.check(x).all(-1) & (x.sum(-1) == 1), 1, True)
simplex = Events(
    "Simplex()",
    "weights >= 0 with the sum 1",
    lambda x: (x >= 0).all(-1) & near(x.sum(-1), 1.0),
)
square = Events("Square()", "square matrices", lambda x: full(x.shape[:-2], x.shape[-2] == x.shape[-1]), 2)
symmetric = Events("Symmetric()", "symmetric matrices", is_symmetric, 2)
lower_triangular = Events("LowerTriangular()", "lower triangular matrices", is_lower, 2)
lower_cholesky = Events(
    "LowerCholesky()",
    "lower triangular matrices with a positive diagonal",
    lambda x: is_lower(x) & has_positive_diagonal(x),
    2,
)
corr_cholesky = Events(
    "CorrCholesky()",
    "lower triangular matrices with a positive diagonal and rows of length 1",
    lambda x: lower_cholesky.check(x) & has_unit_rows(x),
    2,
)
positive_semidefinite = Events(
    "PositiveSemidefinite()",
    "positive semidefinite matrices",
    lambda x: is_symmetric(x) & (lowest_eigenvalue(x) >= -1e-6),
    2,
)
positive_definite = Events(
    "PositiveDefinite()",
    "positive definite matrices",
    lambda x: is_symmetric(x) & (lowest_eigenvalue(x) > 0),
    2,
)

__getattr__ = missing_names("flow.distributions.constraints", globals())
del globals()["__dir__"]  # otherwise completion would list imported names
