"""Sorting, and argsort, topk and median, which build on it. Read next: `shape.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..base.errors import OutOfRangeError
from ..base.legacy_dispatch import overloaded
from ..ops import compare as c, elementwise as e, order_statistics as o, reduce as r, sort as s
from ..ops.index import gather
from ..ops.shape import reshape
from ..source_location import fail
from . import return_types
from .arguments import accept_axis, integer, normalize_axis
from .shape import select

if TYPE_CHECKING:
    from ..tensor import Tensor


@overloaded
@accept_axis
def sort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> return_types.sort:
    """`(values, indices)` sorted along `dim`. The sort is always stable; NaN counts as the largest."""
    axis = normalize_axis(dim, input.spec.ndim, input)
    if not input.spec.ndim:
        values, indices = s.sort(reshape(input, shape=(1,)), axis=0, descending=descending)
        return return_types.sort(reshape(values, shape=()), reshape(indices, shape=()))
    return return_types.sort(*s.sort(input, axis=axis, descending=descending))


@overloaded
@accept_axis
def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """`int64`: the indices that sort along `dim`."""
    return sort(input, dim, descending, stable).indices


@accept_axis
def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> return_types.topk:
    """`(values, indices)` of the k largest (or smallest) elements along `dim`, in order."""
    axis, k = normalize_axis(dim, input.spec.ndim, input), integer(k, "k")
    size = input.spec.shape[axis] if input.spec.ndim else 1
    if not 0 <= k <= size:
        fail(OutOfRangeError, f"topk: k is {k}, but axis {axis} has size {size}", f"k from 0 to {size}", input=input)
    if not input.spec.ndim:
        return return_types.topk(*sort(input, dim))
    return return_types.topk(*s.topk(input, k=k, axis=axis, descending=largest))


@accept_axis
def median(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The median (the lower of two middle elements), NaN if one element is NaN; with `dim`, `(values, indices)`."""
    if dim is None:
        return r.median(input) if input.spec.size else o.nanmedian(input)  # which knows the median of nothing
    values, indices = sort(input, dim)
    if input.spec.ndim:
        axis = normalize_axis(dim, input.spec.ndim, input)
        size = r.nonempty_spec("median", input.spec, (axis,)).shape[axis]
        nans = r.sum(c.isnan(input), axis=(axis,), keepdims=True)
        middle = e.where(c.eq(nans, 0), (size - 1) // 2, e.sub(size, nans))  # the first NaN, if there is one
        pick = (lambda x: x) if keepdim else (lambda x: select(x, axis, 0))
        values, indices = [pick(gather(x, middle, dim=axis)) for x in (values, indices)]
    return return_types.median(values, indices)
