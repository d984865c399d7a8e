"""Order statistics (quantiles, mode, kthvalue), and reductions that ignore NaN. Read next: `counting.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..backend import namespace
from ..base.errors import DTypeError, OutOfRangeError, ShapeError
from ..host import host_array
from ..ops import compare as c, elementwise as e, order_statistics as o, reduce as r, shape as s
from ..ops.checks import check_unit
from ..ops.index import gather
from ..ops.rules import reduced
from ..source_location import fail
from ..spec import as_dtype, float32, float64, int64
from . import return_types
from .arguments import (
    accept_axis,
    autocast_float32,
    in_float32,
    integer,
    is_tensor,
    maybe_to,
    normalize_axes,
    normalize_axis,
    to,
)
from .reduction import amax, amin, sum
from .shape import flatten, movedim, squeeze
from .sorting import sort

if TYPE_CHECKING:
    from ..base.dtypes import DTypeLike
    from ..tensor import Tensor


def without_nan(input: Tensor) -> Tensor:
    """Replace NaN in input by 0."""
    return e.where(c.isnan(input), 0, input) if input.spec.dtype.floating else input


@accept_axis
def nansum(
    input: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, dtype: DTypeLike | None = None
) -> Tensor:
    """The sum over `dim`, ignoring NaN; 0 if there is nothing else."""
    return sum(without_nan(input), dim, keepdim, dtype=dtype)


@accept_axis
@in_float32
def nanmean(
    input: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, dtype: DTypeLike | None = None
) -> Tensor:
    """The mean over `dim`, ignoring NaN; NaN if there is nothing else. Raises DTypeError for integers."""
    if not input.spec.dtype.floating:
        what = f"nanmean: the input must be floating, got {input.spec.dtype.name}"
        fail(DTypeError, what, "input.float()", input=input)
    if dtype is not None and not as_dtype(dtype).floating:
        what = f"nanmean: the dtype must be floating, got {as_dtype(dtype).name}"
        fail(DTypeError, what, "dtype=flow.float32", input=input)
    count_not_nan = sum(c.logical_not(c.isnan(input)), dim, keepdim)
    return nansum(input, dim, keepdim, dtype=dtype) / maybe_to(count_not_nan, as_dtype(dtype or input.spec.dtype))


def select_sorted(name: str, input: Tensor, dim: int, keepdim: bool, place: Any) -> Any:
    """(values, indices) at one position of the sorted elements along dim. place: an index, or a function of them."""
    axis = normalize_axis(dim, input.spec.ndim, input)
    values, indices = sort(input, dim)
    if input.spec.ndim:
        place = place(values, axis) if callable(place) else place
        if is_tensor(place):
            values, indices = [gather(x, place, dim=axis) for x in (values, indices)]
            values, indices = (values, indices) if keepdim else [squeeze(x, axis) for x in (values, indices)]
        else:
            at = (*((None, None, None),) * axis, (place, place + 1, None) if keepdim else place)
            values, indices = [s.clone(s.getitem(x, index=at)) for x in (values, indices)]
    return getattr(return_types, name)(values, indices)


def count_not_nan(values: Tensor, axis: int) -> Tensor:
    """The number of elements along an axis that are not NaN."""
    return r.sum(c.logical_not(c.isnan(values)), axis=(axis,), keepdims=True)


@accept_axis
def nanmedian(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The median, ignoring NaN (the lower of two middle elements); with `dim`, `(values, indices)`."""
    if dim is None:
        return o.nanmedian(input)
    r.nonempty_spec(
        "nanmedian", input.spec, (normalize_axis(dim, input.spec.ndim, input),) if input.spec.ndim else None
    )
    return select_sorted(
        "nanmedian",
        input,
        dim,
        keepdim,
        lambda values, axis: e.floor_divide(e.maximum(e.sub(count_not_nan(values, axis), 1), 0), 2),
    )


@accept_axis
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> return_types.kthvalue:
    """`(values, indices)`: the k-th smallest element along `dim`, counted from 1; NaN counts as the largest."""
    k, axis = integer(k, "k"), normalize_axis(dim, input.spec.ndim, input)
    size = input.spec.shape[axis] if input.spec.ndim else 1
    if not 1 <= k <= size:
        fail(OutOfRangeError, f"kthvalue: k is {k}, but axis {axis} has size {size}", f"k from 1 to {size}", x=input)
    return select_sorted("kthvalue", input, dim, keepdim, k - 1)


@accept_axis
def mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> return_types.mode:
    """`(values, indices)`: the most frequent element along `dim` (ties: the smallest), and its last index."""
    axis = normalize_axis(dim, input.spec.ndim, input)
    if not input.spec.ndim:
        return return_types.mode(s.clone(input), s.zeros_of(input.spec.replace(dtype=int64)))
    indices = o.mode_place(input, axis=axis)
    values = gather(input, indices, dim=axis)
    return return_types.mode(*([values, indices] if keepdim else [squeeze(x, axis) for x in (values, indices)]))


def msort(input: Tensor) -> Tensor:
    """Sort along axis 0, NaN last."""
    return sort(input, 0).values


@accept_axis
def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False) -> return_types.aminmax:
    """`(min, max)` over `dim`, one axis, or all; ties share the gradient."""
    dim = None if dim is None else normalize_axis(dim, input.spec.ndim, input)
    both = [function(input, dim if input.spec.ndim else None, keepdim) for function in (amin, amax)]
    return return_types.aminmax(*both)


# ---- quantiles -----------------------------------------------------------------------------------------------------


INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


@accept_axis
def quantile(
    input: Tensor,
    q: Tensor | float,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Tensor:
    """The q-th quantiles (q from 0 to 1) of the elements along `dim`; NaN if one element is NaN.

    q: a number, or a vector of m, which adds a first axis of size m. interpolation: between neighbors, "linear",
    "lower", "higher", "midpoint" or "nearest". Raises DTypeError unless input is float32 or float64.
    """
    return quantiles("quantile", input, q, dim, keepdim, interpolation)


@accept_axis
def nanquantile(
    input: Tensor,
    q: Tensor | float,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Tensor:
    """`quantile`, ignoring NaN."""
    return quantiles("nanquantile", input, q, dim, keepdim, interpolation)


def quantiles(name: str, input: Tensor, q: Tensor | float, dim: int | None, keepdim: bool, how: str) -> Tensor:
    input, q = autocast_float32(input), autocast_float32(q)
    if input.spec.dtype not in (float32, float64):
        what = f"{name}: the input must be float32 or float64, got {input.spec.dtype.name}"
        fail(DTypeError, what, "input.float()", input=input)
    if how not in INTERPOLATIONS:
        fail(DTypeError, f"{name}: interpolation is {how!r}", f"one of {', '.join(INTERPOLATIONS)}", input=input)
    q = to(q, input.spec.dtype) if is_tensor(q) and q.spec.dtype is input.spec.dtype else checked_q(name, q, input)
    if q.spec.ndim > 1:
        fail(ShapeError, f"{name}: q must be a number or a vector, got {q.spec.ndim} axes", "q.flatten()", q=q)
    axis = None if dim is None else normalize_axis(dim, input.spec.ndim, input)
    lead = reduced(input.spec, normalize_axes(dim, input), keepdim).shape
    whole = flatten(input) if axis is None or not input.spec.ndim else movedim(input, axis, -1)
    if not whole.spec.size:
        fail(ShapeError, f"{name}: the input must have at least one element", "check x.numel() first", input=input)
    values = sort(whole, -1).values
    last, gone = values.spec.shape[-1] - 1, c.isnan(values)
    if name == "nanquantile":
        places = e.maximum(q * (count_not_nan(values, values.spec.ndim - 1) - 1), 0)
    else:  # NaN is sorted last
        places = e.where(r.any(gone, axis=(values.spec.ndim - 1,), keepdims=True), last, q * last)
    places = {"lower": e.floor, "higher": e.ceil, "nearest": e.round}.get(how, lambda x: x)(places)
    below = to(places, int64)
    result = gather(values, below, dim=values.spec.ndim - 1)
    if how in ("linear", "midpoint"):
        above = gather(values, to(e.ceil(places), int64), dim=values.spec.ndim - 1)
        result = e.lerp(
            result,
            above,
            s.filled(places.spec, 0.5) if how == "midpoint" else places - below,
        )
    result = movedim(result, -1, 0)  # the axis of q comes first
    return s.reshape(result.contiguous(), shape=(*([q.spec.size] if q.spec.ndim else []), *lead))


def checked_q(name: str, q: Tensor | float, input: Tensor) -> Tensor:
    """Return q in the dtype of the input, with each element checked."""
    if is_tensor(q):
        what = f"{name}: q is {q.spec.dtype.name}, the input is {input.spec.dtype.name}"
        fail(DTypeError, what, f"q.to({input.spec.dtype})", q=q, input=input)
    check_unit(namespace(), name, "q", q, "a fraction from 0 to 1, such as 0.5")
    return s.constant_beside(input, host_array(q, input.spec.np))
