"""Legacy functions for indexing, ordering and conditions: gather, where, one_hot, sort, ...

Returned positions are int32.
Read next: `overloads.py`, which says for which of these names there is also a modern function.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...core import functions as F
from ...core.base.errors import DTypeError, OutOfRangeError, ShapeError
from ...core.functions.arguments import as_operand, ensure_tensor, integer, is_tensor, normalize_axis, to
from ...core.ir import NUMBERS
from ...core.ops import elementwise as e, index as i, shape as s
from ...core.source_location import fail
from ...core.spec import as_dtype, bool_, int32, promote
from ..blob import Blob, bounded
from .arrays import cast_to_static_shape
from .op_name import also_called, folded, takes_name
from .segments import starts

if TYPE_CHECKING:
    from ...core.op import Op
    from ...core.spec import DType
    from ...core.tensor import Tensor


def as_condition(x: Tensor) -> Tensor:
    """Convert any dtype to bool: OneFlow had no bool, and any element that is not 0 is true."""
    x = ensure_tensor(x)
    return x if x.spec.dtype is bool_ else F.ne(x, 0)


# ---- by index ----------------------------------------------------------------------------------------------------


@takes_name
def gather(
    params: Tensor, indices: Tensor, validate_indices: Any = None, axis: int | None = None, batch_dims: int = 0
) -> Tensor:
    """Gather slices of params along `axis` (default 0); the axes of indices replace that axis.

    batch_dims: number of leading batch axes; each example is gathered separately (axis = batch_dims). Raises
    OutOfRangeError for an index outside the axis, ShapeError for an invalid batch_dims.
    """
    if not is_tensor(indices):
        what = f"gather: indices is {indices!r}, and for a Blob it is a tensor of integers"
        hint = "flow.gather(params, indices, axis=1); flow.dim_gather(x, dim, index) is the modern meaning"
        fail(DTypeError, what, hint, params=params)
    shape, batch_dims = params.spec.shape, integer(batch_dims, "batch_dims")
    axis = batch_dims if axis is None else normalize_axis(axis, len(shape), params)
    if not batch_dims:
        return i.take(params, indices, axis=axis, by="gather")
    ids = indices.spec.shape
    if (
        axis != batch_dims
        or shape[:batch_dims] != ids[:batch_dims]
        or len(ids) < batch_dims
        or len(shape) <= batch_dims
    ):
        what = f"gather: batch_dims {batch_dims} and axis {axis} for params {shape} and indices {ids}"
        fail(ShapeError, what, "the first batch_dims axes alike, and axis = batch_dims", params=params, indices=indices)
    batch, n = math.prod(ids[:batch_dims]), shape[batch_dims]
    own = F.reshape(starts(batch, 1), ids[:batch_dims] + (1,) * (len(ids) - batch_dims))
    flat = F.reshape(params, (batch * n, *shape[batch_dims + 1 :]))
    return i.take(flat, i.ravel_index(own, indices, shape=(batch, n), by="gather"), axis=0)


@takes_name
def dim_gather(input: Tensor, dim: int, index: Any) -> Tensor:
    """out[i, j] = input[i, index[i, j]] for dim 1, and so on: the modern flow.gather."""
    return F.gather(input, dim, index)


def position(name: str, indices: Tensor, shape: tuple[int, ...]) -> Any:
    """Flatten indices `(..., k)` to positions in the first k axes of `shape`. Returns (positions, k)."""
    k = indices.spec.shape[-1] if indices.spec.ndim else 0
    if not 0 < k <= len(shape):
        what = f"{name}: the last axis of indices has size {k}, for a shape {shape} of {len(shape)} axes"
        fail(ShapeError, what, f"from 1 to {len(shape)}: one index per axis", indices=indices)
    return i.ravel_index(*F.unbind(indices, -1), shape=tuple(shape[:k]), by=name), k


@also_called(input="params", index="indices")
@folded
def gather_nd(params: Tensor, indices: Tensor) -> Tensor:
    """params[indices[..., 0], ..., indices[..., k-1]]: each row of indices `(..., k)` indexes the first k axes. A
    result of argwhere gives as many rows.
    """
    bound = getattr(indices, "bound", None)
    if bound is not None and bound[1] == 0:
        return bounded(gather_nd(params, cast_to_static_shape(indices)), bound[0])
    shape = params.spec.shape
    place, k = position("gather_nd", indices, shape)
    return i.take(F.reshape(params, (math.prod(shape[:k]), *shape[k:])), place, axis=0)


def placed(name: str, params: Tensor, indices: Tensor, updates: Tensor, op: Op) -> Any:
    shape = params.spec.shape
    place, k = position(name, indices, shape)
    if updates.spec.shape != (*indices.spec.shape[:-1], *shape[k:]):
        what = (
            f"{name}: updates has shape {updates.spec.shape}, the places for it "
            f"{(*indices.spec.shape[:-1], *shape[k:])}"
        )
        fail(ShapeError, what, "one update for each row of indices", indices=indices, updates=updates)
    flat = F.reshape(params, (math.prod(shape[:k]), *shape[k:]))
    return F.reshape(op(flat, place, to(updates, params.spec.dtype), axis=0), shape)


@also_called(index="indices", update="updates")
@folded
def scatter_nd(indices: Tensor, updates: Tensor, shape: Sequence[int]) -> Tensor:
    """Zeros of this shape with updates at the positions in indices `(..., k)`; updates at the same position are
    added.
    """
    empty = s.full(shape=tuple([integer(n, "shape") for n in shape]), value=0, dtype=updates.spec.dtype)
    return placed("scatter_nd", empty, indices, updates, i.index_add)


@also_called(tensor="params")
@folded
def tensor_scatter_nd_update(params: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    """params with updates at the positions in indices `(..., k)`; if a position occurs twice, the last update wins."""
    return placed("tensor_scatter_nd_update", params, indices, updates, i.index_put)


@folded
def tensor_scatter_nd_add(params: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    """params with updates added at the positions in indices `(..., k)`."""
    return placed("tensor_scatter_nd_add", params, indices, updates, i.index_add)


@folded
def one_hot(
    indices: Tensor, depth: int, on_value: float = 1, off_value: float = 0, axis: int = -1, dtype: DType | None = None
) -> Tensor:
    """`int32 (..., depth)`: on_value at the class index, off_value elsewhere.

    axis: axis of the classes in the result.  dtype: dtype of the result; a float on_value needs a floating dtype.
    """
    dtype = int32 if dtype is None else as_dtype(dtype)
    for argument, value in (("on_value", on_value), ("off_value", off_value)):
        if value.__class__ is float and not value.is_integer() and not dtype.floating:
            what = f"one_hot: {argument} is {value}, which {dtype.name} cannot hold"
            fail(DTypeError, what, "dtype=flow.float32", indices=indices)
    codes = i.one_hot(indices, num_classes=integer(depth, "depth"))
    kind = float if dtype.floating else int
    codes = (
        to(codes, dtype)
        if (on_value, off_value) == (1, 0)
        else e.where(F.ne(codes, 0), *[s.full(shape=(), value=kind(v), dtype=dtype) for v in (on_value, off_value)])
    )
    return F.movedim(codes, -1, normalize_axis(axis, codes.spec.ndim, codes))


# ---- by condition ------------------------------------------------------------------------------------------------


@takes_name
def where(condition: Tensor, x: Tensor | None = None, y: Tensor | None = None) -> Tensor:
    """x where the condition (of any dtype) is not 0, else y. Without x and y: argwhere of the condition."""
    if x is None and y is None:
        return argwhere(condition)
    if x is None or y is None:
        what = f"where: {'x' if x is None else 'y'} is missing"
        fail(DTypeError, what, "where(condition, x, y), or the condition alone", condition=condition)
    x, y = as_operand(x), as_operand(y)
    dtype = promote(*[v.__class__ if v.__class__ in NUMBERS else v.spec for v in (x, y)])
    return e.where(as_condition(condition), *[to(v, dtype) if is_tensor(v) else v for v in (x, y)])


@takes_name
def masked_fill(x: Tensor, mask: Tensor, value: Any) -> Tensor:
    """x with `value` (a scalar) where the mask (of any dtype) is not 0."""
    return F.masked_fill(x, as_condition(mask), value)


@takes_name
def argwhere(condition: Tensor, dtype: DType | None = None) -> Tensor:
    """`int32 (n, ndim)`: positions of the elements that are not 0, one per row. In a job, n is known only after a step:
    see sync_dynamic_resize.
    """
    dtype = int32 if dtype is None else as_dtype(dtype)
    if condition.array is not None or not isinstance(condition, Blob):
        return to(F.nonzero(condition), dtype)
    places = F.nonzero_static(condition, size=condition.spec.size, fill_value=0)
    return bounded(to(places, dtype), F.count_nonzero(condition))


@takes_name
def nonzero(a: Tensor) -> Tensor:
    """`int32 (ndim, n)`: positions of the elements that are not 0, one per column; see argwhere."""
    rows = argwhere(a)
    bound = getattr(rows, "bound", None)
    if bound is None:
        return F.permute(rows, 1, 0)
    return bounded(F.permute(cast_to_static_shape(rows), 1, 0), bound[0], axis=1)


# ---- by order ----------------------------------------------------------------------------------------------------


def descending(name: str, direction: str) -> bool:
    if direction not in ("ASCENDING", "DESCENDING"):
        fail(OutOfRangeError, f"{name}: direction is {direction!r}", 'direction="ASCENDING" or direction="DESCENDING"')
    return direction == "DESCENDING"


@takes_name
def sort(input: Tensor, axis: int = -1, direction: str = "ASCENDING") -> Tensor:
    """Sort along `axis`. Returns only the values; the modern sort returns (values, indices)."""
    return F.sort(input, axis, descending("sort", direction)).values


@takes_name
def argsort(input: Tensor, axis: int = -1, direction: str = "ASCENDING") -> Tensor:
    """`int32`: the indices that sort along `axis`."""
    return to(F.sort(input, axis, descending("argsort", direction)).indices, int32)
