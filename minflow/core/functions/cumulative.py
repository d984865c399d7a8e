"""Operations along an axis: cumulative products and extremes, differences, integrals. `cumsum` is in `reduction.py`.

Read next: `quantiles.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..base.errors import DTypeError, OutOfRangeError, ShapeError
from ..ops import compare as c, cumulative as u, elementwise as e, shape as s
from ..source_location import fail
from ..spec import bool_, default_dtype
from . import return_types
from .arguments import (
    accept_axis,
    check_min_axes,
    integer,
    is_sequence,
    is_tensor,
    maybe_to,
    normalize_axis,
    to,
    unique_axes,
)
from .reduction import cumsum, sum
from .shape import cat, narrow, unsqueeze

if TYPE_CHECKING:
    from ..base.dtypes import DTypeLike
    from ..op import Op
    from ..tensor import Tensor


def along(op: Op, input: Tensor, dim: int) -> Any:
    """Apply an op along one axis; a 0-d tensor counts as a vector of one element."""
    axis = normalize_axis(dim, input.spec.ndim, input)
    if input.spec.ndim:
        return op(input, axis=axis)
    results = op(s.reshape(input, shape=(1,)), axis=0)
    return [s.reshape(x, shape=()) for x in results] if op.many else s.reshape(results, shape=())


@accept_axis
def cumprod(input: Tensor, dim: int, *, dtype: DTypeLike | None = None) -> Tensor:
    """The cumulative product along `dim`. Bools and integers give int64, or `dtype`."""
    return maybe_to(along(u.cumprod, maybe_to(input, dtype), dim), dtype)


@accept_axis
def cummax(input: Tensor, dim: int) -> return_types.cummax:
    """`(values, indices)`: the cumulative maximum along `dim`. NaN wins; among equal elements the last index."""
    return return_types.cummax(*along(u.cummax, input, dim))


@accept_axis
def cummin(input: Tensor, dim: int) -> return_types.cummin:
    """`(values, indices)`: the cumulative minimum along `dim`. NaN wins; among equal elements the last index."""
    return return_types.cummin(*along(u.cummin, input, dim))


@accept_axis
def logcumsumexp(input: Tensor, dim: int) -> Tensor:
    """Cumulative log(exp(x1) + ... + exp(x)) along `dim`, without overflow. Raises DTypeError for integers."""
    return along(u.logcumsumexp, input, dim)


# ---- differences ---------------------------------------------------------------------------------------------------


def step(input: Tensor, axis: int, first: int, last: int) -> Tensor:
    """The elements along `axis` without `first` elements at its beginning and `last` at its end."""
    return narrow(input, axis, first, input.spec.shape[axis] - first - last)


@accept_axis
def diff(
    input: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    """x[i + 1] - x[i] along `dim`, n times; for bools, whether they differ. prepend, append: concatenated to the ends
    first.
    """
    check_min_axes("diff", input)
    axis, n = normalize_axis(dim, input.spec.ndim, input), integer(n, "n")
    if n < 0:
        fail(OutOfRangeError, f"diff: n is {n}", "how many times: 0 or more", x=input)
    if prepend is not None or append is not None:
        input = cat([x for x in (prepend, input, append) if x is not None], axis)
    for _ in range(min(n, input.spec.shape[axis])):
        late, early = step(input, axis, 1, 0), step(input, axis, 0, 1)
        input = c.ne(late, early) if input.spec.dtype is bool_ else e.sub(late, early)
    return s.clone(input) if not n else input


def gradient(
    input: Tensor, *, spacing: Any = 1, dim: int | Sequence[int] | None = None, edge_order: int = 1
) -> list[Tensor]:
    """Numerical gradient, one tensor for each axis of `dim`: central differences of second order.

    spacing: the distance between samples, one for each axis, or a vector of coordinates for each axis.
    edge_order: 1 or 2, the order of the one-sided differences at the ends.
    """
    axes = list(range(input.spec.ndim)) if dim is None else unique_axes(dim, input)
    given = list(spacing) if is_sequence(spacing) else [spacing] * len(axes)
    if len(given) != len(axes):
        fail(ShapeError, f"gradient: {len(given)} spacings for {len(axes)} axes", "one for each axis", x=input)
    if edge_order not in (1, 2):
        fail(OutOfRangeError, f"gradient: edge_order is {edge_order!r}", "1 or 2", x=input)
    return [slope(input, axis, space, edge_order) for axis, space in zip(axes, given)]


def slope(x: Tensor, axis: int, space: Any, order: int) -> Tensor:
    """Derivative along one axis. Source: Fornberg 1988, "Generation of finite difference formulas on arbitrarily spaced
    grids".
    """
    size = x.spec.shape[axis]
    if size <= order:
        fail(ShapeError, f"gradient: axis {axis} has {size} samples", f"at least edge_order + 1 = {order + 1}", x=x)
    if x.spec.dtype is bool_:
        fail(DTypeError, "gradient: not defined for bool", "x.float()", x=x)
    x = x if x.spec.dtype.floating else to(x, default_dtype())
    part = lambda first, count: narrow(x, axis, first % size, count)
    if is_tensor(space) and space.spec.ndim:
        if space.spec.shape != (size,):
            what = f"gradient: {space.spec.size} coordinates for axis {axis} of size {size}"
            fail(ShapeError, what, "a vector with one for each sample", x=x, spacing=space)
        gaps = s.reshape(diff(to(space, x.spec.dtype)), shape=(size - 1,) + (1,) * (x.spec.ndim - 1 - axis))
        gap = lambda first, count: narrow(gaps, 0, first % (size - 1), count)
    else:
        gap = lambda first, count: space
    middle, n = [], size - 2
    if n:
        a, b = gap(0, n), gap(1, n)
        middle = [
            (part(2, n) * a * a + part(1, n) * (b * b - a * a) - part(0, n) * b * b) / (a * b * (a + b))
            if is_tensor(a) and a.spec.ndim
            else (part(2, n) - part(0, n)) / (a + b)
        ]
    if order == 1:
        return cat([(part(1, 1) - part(0, 1)) / gap(0, 1), *middle, (part(-1, 1) - part(-2, 1)) / gap(-1, 1)], axis)
    return cat([edge(part, gap, (0, 1, 2), (0, 1), 1), *middle, edge(part, gap, (-1, -2, -3), (-1, -2), -1)], axis)


def edge(part: Any, gap: Any, places: Any, gaps: Any, sign: int) -> Tensor:
    """One-sided difference of second order at an end, from three samples."""
    (f0, f1, f2), (a, b) = [part(k, 1) for k in places], [gap(k, 1) for k in gaps]
    return sign * ((a + b) / (a * b) * f1 - (2 * a + b) / (a * (a + b)) * f0 - a / (b * (a + b)) * f2)


# ---- integrals of sampled functions
# ------------------------------------------------------------------------------------


@accept_axis
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: float | None = None, dim: int = -1) -> Tensor:
    """The integral of samples y by the trapezoidal rule: the sum of (y[i] + y[i + 1]) / 2 * (x[i + 1] - x[i]).

    x: the coordinates, of y's shape or broadcastable to it; without x the samples are dx (default 1) apart.
    """
    areas = trapezoids("trapezoid", y, x, dx, dim)
    return to(sum(areas, dim), areas.spec.dtype)


@accept_axis
def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: float | None = None, dim: int = -1) -> Tensor:
    """The cumulative integral of samples y by the trapezoidal rule; see `trapezoid`."""
    return cumsum(trapezoids("cumulative_trapezoid", y, x, dx, dim), dim)


def trapezoids(name: str, y: Tensor, x: Tensor | None, dx: Any, dim: int) -> Tensor:
    check_min_axes(name, y)
    if x is not None and dx is not None:
        what = f"{name}: only one of x and dx may be given"
        fail(DTypeError, what, "x, the coordinates, or dx, their distance", x=x, dx=dx)
    axis = normalize_axis(dim, y.spec.ndim, y)
    if not y.spec.shape[axis]:
        return s.detach(y)
    if bool_ in [t.spec.dtype for t in (y, x) if t is not None]:
        fail(DTypeError, f"{name}: not defined for bool", "y.float()", y=y)
    pair = e.add(step(y, axis, 0, 1), step(y, axis, 1, 0))
    if x is None:
        return pair * ((1 if dx is None else dx) / 2)
    if x.spec.ndim == 1:
        if x.spec.size != y.spec.shape[axis]:
            what = f"{name}: {x.spec.size} coordinates for {y.spec.shape[axis]} samples"
            fail(ShapeError, what, "one for each", y=y, x=x)
        for _ in range(y.spec.ndim - 1 - axis):
            x = unsqueeze(x, -1)
        return pair * diff(x, dim=axis - y.spec.ndim) / 2
    return pair * diff(x, dim=axis - y.spec.ndim) / 2


trapz = trapezoid
