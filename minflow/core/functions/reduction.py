"""Sums, means, extremes and norms, with PyTorch's arguments; `axis` and `keepdims` are aliases of `dim` and `keepdim`.

Read next: `sorting.py` for sort, topk and median.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..base.dtypes import HALF_DTYPES
from ..base.errors import DTypeError
from ..base.legacy_dispatch import overloaded
from ..dispatch import apply
from ..ops import compare as c, elementwise as e, reduce as r
from ..ops.index import gather
from ..ops.rules import reduced
from ..ops.shape import clone, detach, reshape
from ..source_location import fail
from ..spec import as_dtype, default_dtype, float32
from . import return_types
from .arguments import accept_axis, in_float32, is_tensor, maybe_to, normalize_axes, normalize_axis, to

if TYPE_CHECKING:
    from ..base.dtypes import DTypeLike
    from ..tensor import Tensor


def sum(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: DTypeLike | None = None,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> Tensor:
    """The sum over `dim` (int, several, or None for all). Bools and integers give int64, or `dtype`."""
    if dtype is not None:
        input = maybe_to(input, dtype)
    axes = None if dim is axis is None else normalize_axes(axis if dim is None else dim, input)
    total = apply(r.sum, input, axis=axes, keepdims=keepdim or keepdims)
    return total if dtype is None else maybe_to(total, dtype)


@accept_axis
def mean(
    input: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, dtype: DTypeLike | None = None
) -> Tensor:
    """The mean over `dim`. Raises DTypeError for integers."""
    if dtype is not None:
        dtype = as_dtype(dtype)
        if dtype in HALF_DTYPES:  # the sum may overflow it: only the mean is rounded
            return to(mean(input, dim, keepdim, dtype=float32), dtype)
        input = to(input, dtype)
    return r.mean(input, axis=normalize_axes(dim, input), keepdims=keepdim)


@accept_axis
def prod(
    input: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, dtype: DTypeLike | None = None
) -> Tensor:
    """The product over `dim`. Bools and integers give int64, or `dtype`."""
    return maybe_to(r.prod(maybe_to(input, dtype), axis=normalize_axes(dim, input), keepdims=keepdim), dtype)


@accept_axis
def amax(input: Tensor, dim: int | Sequence[int] | None = (), keepdim: bool = False) -> Tensor:
    """The maximum over `dim`; ties share the gradient."""
    return r.amax(input, axis=normalize_axes(dim, input), keepdims=keepdim)


@accept_axis
def amin(input: Tensor, dim: int | Sequence[int] | None = (), keepdim: bool = False) -> Tensor:
    """The minimum over `dim`; ties share the gradient."""
    return r.amin(input, axis=normalize_axes(dim, input), keepdims=keepdim)


@overloaded
@accept_axis
def argmax(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """`int64`: the index of the first maximum along `dim`, or in the flattened tensor."""
    return r.argmax(
        input,
        axis=one_axis(dim, input),
        keepdims=keepdim,
    )


def one_axis(dim: int | None, x: Tensor) -> int | None:
    """The axis that `dim` names; None for all axes. A 0-d tensor accepts 0 and -1, which also give None."""
    axis = None if dim is None else normalize_axis(dim, x.spec.ndim, x)
    return axis if x.spec.ndim else None


@accept_axis
def argmin(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """`int64`: the index of the first minimum along `dim`, or in the flattened tensor."""
    return r.argmin(
        input,
        axis=one_axis(dim, input),
        keepdims=keepdim,
    )


@accept_axis
def any(input: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False) -> Tensor:
    """True if any element is nonzero."""
    if dim == () or dim == []:  # reduces no axis, while other reductions reduce all: as in PyTorch
        return r.any(input, axis=(), keepdims=keepdim)
    return r.any(input, axis=normalize_axes(dim, input), keepdims=keepdim)


@accept_axis
def all(input: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False) -> Tensor:
    """True if all elements are nonzero."""
    if dim == () or dim == []:  # reduces no axis, while other reductions reduce all: as in PyTorch
        return r.all(input, axis=(), keepdims=keepdim)
    return r.all(input, axis=normalize_axes(dim, input), keepdims=keepdim)


@accept_axis
def max(input: Tensor, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
    """The maximum; with `dim`, `(values, indices)` along it; with a second tensor, the elementwise maximum."""
    return extreme(input, dim, keepdim, other, "max")


@accept_axis
def min(input: Tensor, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
    """The minimum; with `dim`, `(values, indices)` along it; with a second tensor, the elementwise minimum."""
    return extreme(input, dim, keepdim, other, "min")


def extreme(input: Tensor, dim: Any, keepdim: bool, other: Tensor | float, name: str) -> Any:
    if other is not None or is_tensor(dim):
        if keepdim or None not in (dim, other):
            what = f"{name}: other and dim must not both be given"
            fail(DTypeError, what, f"{name}(x, dim) or {name}(x, other)", dim=dim)
        return (e.maximum if name == "max" else e.minimum)(input, dim if other is None else other)
    if dim is None:
        return (r.amax if name == "max" else r.amin)(input, axis=None, keepdims=keepdim)
    return getattr(return_types, name)(*with_indices(input, dim, keepdim, r.argmax if name == "max" else r.argmin))


def with_indices(input: Tensor, dim: int, keepdim: bool, arg: Any) -> tuple[Tensor, Tensor]:
    """(values, indices) along dim, where `arg` finds the indices; only the chosen element gets the gradient."""
    if not input.spec.ndim:
        normalize_axis(dim, 0, input)
        return clone(input), arg(input, axis=None, keepdims=False)
    axis = normalize_axis(dim, input.spec.ndim, input)
    indices = arg(input, axis=axis, keepdims=True)
    values = gather(input, indices, dim=axis)
    if keepdim:
        return values, indices
    shape = (*input.spec.shape[:axis], *input.spec.shape[axis + 1 :])
    return reshape(values, shape=shape), reshape(indices, shape=shape)


# ---- variance ------------------------------------------------------------------------------------------------------


@accept_axis
def var(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    unbiased: bool = True,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Tensor:
    """The variance over `dim`: squared distances to the mean, summed and divided by n - 1 (by n if not unbiased).

    correction: subtracted from n, in place of `unbiased`. That of complex numbers is the sum over both parts.
    """
    if dim.__class__ is bool:  # var(input, False) is var(input, unbiased=False)
        dim, unbiased = None, bool(dim)
    if input.spec.dtype.is_complex:
        real, imag = [var(part, dim, unbiased, keepdim, correction=correction) for part in (input.real, input.imag)]
        return real + imag
    if not input.spec.dtype.floating:
        fail(DTypeError, f"var: the input must be floating, got {input.spec.dtype.name}", "input.float()", input=input)
    correction = (1 if unbiased else 0) if correction is None else correction
    correction = correction.item() if is_tensor(correction) else correction
    return r.var(input, axis=normalize_axes(dim, input), keepdims=keepdim, correction=correction)


@accept_axis
@in_float32
def std(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    unbiased: bool = True,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Tensor:
    """The standard deviation over `dim`: the square root of `var`; its derivative at 0 is defined as 0."""
    return safe_sqrt(var(input, dim, unbiased, keepdim, correction=correction))


@accept_axis
def var_mean(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    unbiased: bool = True,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> tuple[Tensor, Tensor]:
    """(variance, mean) over `dim`."""
    if dim.__class__ is bool:  # var_mean(input, False) is var_mean(input, unbiased=False)
        dim, unbiased = None, bool(dim)
    return var(input, dim, unbiased, keepdim, correction=correction), mean(input, dim, keepdim)


@accept_axis
def std_mean(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    unbiased: bool = True,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> tuple[Tensor, Tensor]:
    """(standard deviation, mean) over `dim`."""
    if dim.__class__ is bool:
        dim, unbiased = None, bool(dim)
    return std(input, dim, unbiased, keepdim, correction=correction), mean(input, dim, keepdim)


def safe_sqrt(x: Tensor) -> Tensor:
    """sqrt(x) with derivative 0 at 0 instead of infinity."""
    zero = c.eq(x, 0)
    return e.where(zero, 0, e.sqrt(e.where(zero, 1, x)))


# ---- norms -------------------------------------------------------------------------------------------------------


@accept_axis
def norm(
    input: Tensor,
    p: float | str = "fro",
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """(sum |x|**p) ** (1/p) over `dim`. p: a number, inf, -inf, 0 (the number of nonzero elements) or "fro" (2)."""
    return norm_of(maybe_to(input, dtype), p, dim, keepdim)


@in_float32
def norm_of(input: Tensor, p: float | str | None, dim: int | Sequence[int] | None, keepdim: bool) -> Tensor:
    input = e.abs(input) if input.spec.dtype.is_complex else input
    if not input.spec.dtype.floating:
        fail(DTypeError, f"norm: the input must be floating, got {input.spec.dtype.name}", "input.float()", input=input)
    axis = normalize_axes(dim, input)
    options = dict(axis=axis, keepdims=keepdim)
    p = 2 if p is None or p == "fro" else p
    if isinstance(p, str):
        fail(DTypeError, f"norm: p is {p!r}", 'a number, float("inf") or "fro"', input=input)
    if p == 2:
        return safe_sqrt(r.sum(e.square(input), **options))
    size = e.abs(input)
    if p == math.inf:
        return r.amax(size, **options)
    if p == -math.inf:
        return r.amin(size, **options)
    if p == 0:
        return maybe_to(r.sum(c.ne(input, 0), **options), input.spec.dtype)
    one = math.prod([input.spec.shape[a] for a in axis or range(input.spec.ndim)]) == 1
    if p == 1 or (one and (p > 0 or p < 0)):  # no power of a single element: it may overflow
        return r.sum(size, **options)
    if p >= 1:
        powers = e.pow(size, float(p))
    else:  # the derivative at 0 is defined as 0, not infinite
        zero = c.eq(size, 0)
        powers = e.where(zero, math.inf if p < 0 else 0, e.pow(e.where(zero, 1, size), float(p)))
    total = r.sum(powers, **options)
    if p < 0:
        return e.pow(total, 1 / p)
    zero = c.eq(total, 0)
    return e.where(zero, 0, e.pow(e.where(zero, 1, total), 1 / p))


def vector_norm(
    x: Tensor,
    ord: float = 2,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """(sum |x|**ord) ** (1/ord) over `dim`, by default all axes. ord: a number, inf, -inf, or 0."""
    return norm(x, ord, dim, keepdim, dtype)


@accept_axis
@in_float32
def logsumexp(input: Tensor, dim: int, keepdim: bool = False) -> Tensor:
    """log(sum(exp(x))) over `dim`, without overflow. Bools and integers are converted to floats first."""
    if input.spec.dtype.is_complex:
        hint = "x.exp().sum(dim).log(), where no real part is large"
        fail(DTypeError, "logsumexp: not defined for complex numbers, which have no largest", hint, input=input)
    input = input if input.spec.dtype.floating else to(input, default_dtype())
    axis = normalize_axes(dim, input)
    if not input.spec.size:  # there may be nothing along the axis: log(0)
        return e.log(r.sum(e.exp(input), axis=axis, keepdims=keepdim))
    largest = detach(r.amax(input, axis=axis, keepdims=True))
    largest = e.where(c.isfinite(largest), largest, 0)
    total = e.log(r.sum(e.exp(e.sub(input, largest)), axis=axis, keepdims=True))
    result = e.add(total, largest)
    return result if keepdim else reshape(result, shape=reduced(input.spec, axis, False).shape)


@accept_axis
def cumsum(input: Tensor, dim: int, *, dtype: DTypeLike | None = None) -> Tensor:
    """The cumulative sum along `dim`."""
    input = maybe_to(input, dtype)
    axis = normalize_axis(dim, input.spec.ndim, input)
    sums = r.cumsum(input, axis=axis) if input.spec.ndim else r.sum(input, axis=None, keepdims=False)
    return maybe_to(sums, dtype)


@accept_axis
def count_nonzero(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """The number of nonzero elements over `dim`."""
    return r.sum(c.ne(input, 0), axis=normalize_axes(dim, input), keepdims=False)
