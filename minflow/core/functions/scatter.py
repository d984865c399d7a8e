"""Scatter along one axis, scatter with a reduction, writes through indices, masks and views, and strided views.

Read next: `windows.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..backend import backend_of_array, namespace
from ..base.errors import DTypeError, OutOfRangeError, ShapeError
from ..functionalize import root_of, stride_probe
from ..ir import NUMBERS
from ..kernels import launch
from ..mode import MODE
from ..ops import compare as c, elementwise as e, index as i, scatter as sc, shape as s, strided as st
from ..source_location import fail
from ..spec import bool_, int64
from .arguments import (
    as_operand,
    cast_fill_value,
    cast_for_write,
    cast_number,
    check_min_axes,
    common_shape,
    ensure_tensor,
    integer,
    is_sequence,
    is_tensor,
    normalize_axis,
    sizes,
    to,
)
from .gather import as_vector, diag, diagonal, gather, index_for, index_vector
from .indexing import assign_indexed
from .reduction import cumsum, sum
from .shape import broadcast_to, flatten, select

if TYPE_CHECKING:
    from ..tensor import Tensor


REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")


def source_for(src: Any, input: Tensor, index: Tensor) -> Any:
    """Return src in the form that scatter takes: the dtype of input, cropped to the shape of index if larger."""
    if src.__class__ in NUMBERS:
        return cast_number("scatter", src, input.spec.dtype, input=input, src=src)
    src = cast_for_write("scatter", as_operand(src), input.spec.dtype, input=input, src=src)
    if src.spec.shape == () and index.spec.shape == (1,):
        return s.reshape(src, shape=(1,))
    if (
        src.spec.shape != index.spec.shape
        and src.spec.ndim == index.spec.ndim
        and all(m <= n for m, n in zip(index.spec.shape, src.spec.shape))
    ):
        src = s.getitem(src, index=tuple([(0, n, None) for n in index.spec.shape]))
    return src


def scatter(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Tensor | float | None = None,
    *,
    value: Tensor | float | None = None,
    reduce: str | None = None,
) -> Tensor:
    """Copy of input with `[i, index[i, j]] = src[i, j]` for dim 1, and so on; src may be a number (`value`).

    reduce: "add" adds to the present element, "multiply" multiplies it.
    """
    if not input.spec.ndim:
        return as_vector(scatter, input, dim, index, src, value=value, reduce=reduce)
    index = index_for(index, input)
    if src is None:
        src = cast_fill_value("scatter", value, input.spec.dtype, input=input, value=value)
        src = s.expand(src, shape=index.spec.shape) if is_tensor(src) else src
    if reduce is not None:
        if reduce not in ("add", "multiply"):
            fail(OutOfRangeError, f"scatter: reduce is {reduce!r}", '"add", "multiply", or scatter_reduce', input=input)
        src, axis = source_for(src, input, index), normalize_axis(dim, input.spec.ndim, input)
        if not is_tensor(src):
            src = s.filled(input.spec.replace(shape=index.spec.shape), src)
        if reduce == "add":
            return i.scatter_add(input, index, src, dim=axis, by="scatter")
        return sc.scatter_reduce(input, index, src, dim=axis, reduce="prod", include_self=True, by="scatter")
    return i.scatter(
        input, index, source_for(src, input, index), dim=normalize_axis(dim, input.spec.ndim, input), by="scatter"
    )


def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """Copy of input with `[i, index[i, j]] += src[i, j]` for dim 1, and so on."""
    if not input.spec.ndim:
        return as_vector(scatter_add, input, dim, index, src)
    index = index_for(index, input)
    src = cast_for_write("scatter_add", as_operand(src), input.spec.dtype, input=input, src=src)
    return i.scatter_add(
        input, index, source_for(src, input, index), dim=normalize_axis(dim, input.spec.ndim, input), by="scatter_add"
    )


def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Copy of input with the elements of src that go to `[i, index[i, j]]` (for dim 1) reduced to one: "sum", "prod",
    "mean", "amax" or "amin".

    include_self: the element of input takes part in the reduction. Tied extremes share the gradient.
    """
    if not input.spec.ndim:
        return as_vector(scatter_reduce, input, dim, index, src, reduce, include_self=include_self)
    if reduce not in REDUCTIONS:
        fail(DTypeError, f"scatter_reduce: reduce is {reduce!r}", f"one of {', '.join(REDUCTIONS)}", input=input)
    if src.spec.dtype is not input.spec.dtype:
        what = f"scatter_reduce: src is {src.spec.dtype.name}, input is {input.spec.dtype.name}"
        fail(DTypeError, what, f"src.to({input.spec.dtype})", input=input, src=src)
    return reduce_into("scatter_reduce", input, dim, index, src, reduce, include_self)


def reduce_into(
    name: str, input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, include_self: bool
) -> Tensor:
    axis, index = normalize_axis(dim, input.spec.ndim, input), index_for(index, input)
    src = s.reshape(src, shape=(1,)) if src.spec.shape == () and index.spec.shape == (1,) else src
    if src.spec.shape != index.spec.shape and src.spec.ndim == index.spec.ndim:
        src = s.getitem(src, index=tuple([(0, n, None) for n in index.spec.shape]))
    if reduce not in ("sum", "mean"):
        return sc.scatter_reduce(input, index, src, dim=axis, reduce=reduce, include_self=bool(include_self), by=name)
    start = input if include_self else i.scatter(input, index, 0, dim=axis, by=name)
    total = scatter_add(start, axis, index, src)
    if reduce == "sum":
        return total
    one = s.filled(input.spec.replace(shape=src.spec.shape), 1)
    counts = s.filled(input.spec, 1)
    counts = counts if include_self else i.scatter(counts, index, 0, dim=axis)
    counts = e.maximum(scatter_add(counts, axis, index, one), 1)
    return e.div(total, counts) if input.spec.dtype.floating else e.floor_divide(total, counts)


def index_reduce(
    input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Copy of input with the slices of source that go to one position along `dim` reduced to one: "prod", "mean",
    "amax" or "amin". include_self: the slice of input takes part in the reduction.
    """
    if reduce not in REDUCTIONS[1:]:
        fail(DTypeError, f"index_reduce: reduce is {reduce!r}", f"one of {', '.join(REDUCTIONS[1:])}", input=input)
    index, axis = index_vector("index_reduce", input, index), normalize_axis(dim, input.spec.ndim, input)
    source = cast_for_write("index_reduce", source, input.spec.dtype, input=input, source=source)
    if index.spec.size != (source.spec.shape[axis] if source.spec.ndim else 1):
        what = f"index_reduce: {index.spec.size} positions for a source of shape {source.spec.shape}"
        fail(ShapeError, what, f"one position for each slice along axis {axis}", index=index, source=source)
    lead = s.reshape(index, shape=(1,) * axis + index.spec.shape + (1,) * max(input.spec.ndim - 1 - axis, 0))
    return reduce_into(
        "index_reduce", input, axis, s.clone(broadcast_to(lead, source.spec.shape)), source, reduce, include_self
    )


def index_put(input: Tensor, indices: Sequence, values: Tensor, accumulate: bool = False) -> Tensor:
    """Copy of input with `input[indices] = values`; accumulate: values are added, also at repeated positions."""
    values = cast_for_write("index_put", as_operand(values), input.spec.dtype, input=input, values=values)
    if not accumulate:
        return assign_indexed(input, tuple(indices), values)
    flat, spots = s.reshape(input.contiguous(), shape=(input.spec.size,)), positions_of(input, tuple(indices))
    values = s.expand(ensure_tensor(values), shape=spots.spec.shape)
    return s.reshape(i.index_add(flat, spots, values, axis=0), shape=input.spec.shape)


def positions_of(x: Tensor, index: Any) -> Tensor:
    """The positions of the elements of x[index] in the flattened tensor."""
    from .gather import positions
    from .indexing import advanced_getitem

    return advanced_getitem(positions(x), index)


def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Copy of input with source written to positions of the flattened tensor; accumulate: added to them."""
    if source.spec.dtype is not input.spec.dtype or source.spec.size != index.spec.size:
        fail(
            ShapeError if source.spec.dtype is input.spec.dtype else DTypeError,
            "put: source must have the dtype of input and as many elements as the index",
            f"source.to({input.spec.dtype})",
            input=input,
            index=index,
            source=source,
        )
    flat, axis = s.reshape(input.contiguous(), shape=(input.spec.size,)), 0
    op = i.index_add if accumulate else i.index_put
    result = op(
        flat,
        e.where(c.lt(index, 0), e.add(index, input.spec.size), index).reshape(-1),
        source.reshape(-1),
        axis=axis,
        by="put",
    )
    return s.reshape(result, shape=input.spec.shape)


def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Copy of input with the first elements of source, in order, where the mask is True."""
    if mask.spec.dtype is not bool_ or source.spec.dtype is not input.spec.dtype:
        fail(
            DTypeError,
            f"masked_scatter: mask must be bool and source {input.spec.dtype.name}, got "
            f"{mask.spec.dtype.name} and {source.spec.dtype.name}",
            f"source.to({input.spec.dtype})",
            mask=mask,
            source=source,
        )
    shape = common_shape("masked_scatter", {"input": input, "mask": mask})
    input, mask = s.expand(input, shape=shape), s.expand(mask, shape=shape)
    # Counted from 1; element 0, in front of the source, serves all other positions.
    wanted = cumsum(mask.reshape(-1), 0)
    pool = s.cat(s.zeros_of(source.spec.replace(shape=(1,))), source.reshape(-1), dim=0)
    chosen = i.take(pool, e.where(mask.reshape(-1), wanted, 0), axis=0, by="masked_scatter")
    return e.where(mask, s.reshape(chosen, shape=shape), input)


def batch_gather(input: Tensor, indices: Tensor) -> Tensor:
    """`(batch..., k, ...)`: from each entry of a batch the slices at its row of indices, along the next axis.

    OneFlow's function: all axes of indices but the last are batch axes.
    """
    axis = indices.spec.ndim - 1
    if axis < 0 or input.spec.ndim <= axis or input.spec.shape[:axis] != indices.spec.shape[:-1]:
        what = f"batch_gather: indices of shape {indices.spec.shape} for {input.spec.shape}"
        fail(ShapeError, what, "(batch, k) for (batch, n, ...)", input=input, indices=indices)
    rest = input.spec.shape[axis + 1 :]
    wide = s.reshape(indices.contiguous(), shape=indices.spec.shape + (1,) * len(rest))
    return gather(input, axis, s.clone(s.expand(wide, shape=(*indices.spec.shape, *rest))))


# ---- through a view ------------------------------------------------------------------------------------------------


def write_through(name: str, input: Tensor, src: Tensor, view: Tensor, *path: Any) -> Tensor:
    """Copy of input with src written through a view."""
    if src.spec.shape != view.spec.shape:
        what = f"{name}: src must have shape {view.spec.shape}, got {src.spec.shape}"
        fail(ShapeError, what, "src.expand(...)", input=input, src=src)
    return s.view_write(input.contiguous(), to(src, input.spec.dtype), path=path)


def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """Copy of input with src in place of `input.select(dim, index)`."""
    view, axis = select(input, dim, index), normalize_axis(dim, input.spec.ndim, input)
    return write_through(
        "select_scatter",
        input,
        src,
        view,
        (s.getitem, {"index": (*((None, None, None),) * axis, integer(index, "index"))}),
    )


def slice_scatter(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """Copy of input with src in place of the slice start:end:step along `dim`."""
    check_min_axes("slice_scatter", input)
    axis, step = normalize_axis(dim, input.spec.ndim, input), integer(step, "step")
    if step < 1:
        fail(OutOfRangeError, f"slice_scatter: step must be at least 1, got {step}", "at least 1", input=input)
    first, last, _ = s.slice_bounds((start, end, None), input.spec.shape[axis])
    index = (*((None, None, None),) * axis, (first, max(first, last), step))
    return write_through("slice_scatter", input, src, s.getitem(input, index=index), (s.getitem, {"index": index}))


def diagonal_scatter(input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Copy of input with src in place of `input.diagonal(offset, dim1, dim2)`."""
    a, b = [normalize_axis(d, input.spec.ndim, input) for d in (dim1, dim2)]
    return write_through(
        "diagonal_scatter",
        input,
        src,
        diagonal(input, offset, dim1, dim2),
        (s.diagonal, {"offset": integer(offset, "offset"), "dim1": a, "dim2": b}),
    )


def as_strided_scatter(
    input: Tensor,
    src: Tensor,
    size: int | Sequence[int],
    stride: int | Sequence[int],
    storage_offset: int | None = None,
) -> Tensor:
    """Copy of input with src written through `as_strided`."""
    size, stride = sizes((size,)), sizes((stride,))
    attrs = {"size": size, "stride": stride, "offset": integer(storage_offset or 0, "storage_offset")}
    base = input.contiguous()
    return write_through("as_strided_scatter", base, src, st.as_strided(base, **attrs), (st.as_strided, attrs))


def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The last axis as the diagonal of two new axes, zeros elsewhere."""
    check_min_axes("diag_embed", input)
    offset, ndim = integer(offset, "offset"), input.spec.ndim + 1
    a, b = [normalize_axis(d, ndim) for d in (dim1, dim2)]
    if a == b:
        what = f"diag_embed: dim1 {dim1} and dim2 {dim2} are the same axis"
        fail(ShapeError, what, "two different axes", input=input)
    n, shape = input.spec.shape[-1] + abs(offset), list(input.spec.shape[:-1])
    for axis in sorted((a, b)):
        shape.insert(axis, n)
    empty = s.zeros_of(input.spec.replace(shape=tuple(shape)))
    return s.view_write(empty, input, path=((s.diagonal, {"offset": offset, "dim1": a, "dim2": b}),))


def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """The matrix with all elements of input, flattened, on its diagonal."""
    return diag(flatten(input), offset)


def fill_diagonal(input: Tensor, value: Tensor | float, wrap: bool = False) -> Tensor:
    """Copy of input with a number on its main diagonal; wrap: again below each square block of a tall matrix."""
    shape = input.spec.shape
    if len(shape) < 2 or (len(shape) > 2 and len(set(shape)) > 1):
        fail(ShapeError, f"fill_diagonal_: the tensor has shape {shape}", "a matrix, or axes of the same size", x=input)
    xp = namespace()
    mask = xp.zeros(shape, bool)
    xp.fill_diagonal(mask, True, wrap=bool(wrap))
    value = cast_number("fill_diagonal_", value, input.spec.dtype, x=input, value=value)
    return e.where(s.constant_beside(input, mask), s.filled(input.spec.replace(shape=()), value), input)


# ---- strided views
# ---------------------------------------------------------------------------------------------------------


def as_strided(
    input: Tensor, size: int | Sequence[int], stride: int | Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """A view of the storage of input, by sizes and strides in elements; storage_offset defaults to input's.

    The gradient of an element that occurs more than once is the sum over its occurrences.
    """
    base, path = root_of(MODE.get().resolve(input))
    if storage_offset is None:
        storage_offset = 0 if not path else start_of(MODE.get().resolve(input), base)
    size, stride = sizes((size,)), sizes((stride,))
    return st.as_strided(base.contiguous(), size=size, stride=stride, offset=integer(storage_offset, "storage_offset"))


def start_of(x: Tensor, base: Tensor) -> int:
    """The element of its base at which a view begins. In a trace neither has elements, and a stride probe replaces
    both.
    """
    first = last = stride_probe(base)
    for op, attrs in root_of(x)[1]:
        last = last if op.checks else launch(op, (last,), attrs)
    begin, place = [backend_of_array(array).byte_bounds(array)[0] for array in (first, last)]
    return (place - begin) // x.spec.dtype.itemsize


def unfold(input: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """A view of sliding windows along an axis: the axis then counts windows, and a new last axis has their elements."""
    axis = normalize_axis(dimension, input.spec.ndim, input)
    if not input.spec.ndim:
        return st.windows(
            s.reshape(input, shape=(1,)), dim=0, size=integer(size, "size"), step=integer(step, "step")
        ).reshape(-1)[: integer(size, "size")]
    return st.windows(input, dim=axis, size=integer(size, "size"), step=integer(step, "step"))


def sum_to_size(input: Tensor, *size: int | Sequence[int]) -> Tensor:
    """Sum over the axes that broadcasting from `size` would repeat."""
    shape = sizes(size)
    lead = input.spec.ndim - len(shape)
    if lead < 0 or any(n not in (1, m) for n, m in zip(shape, input.spec.shape[lead:])):
        what = f"sum_to_size: {shape} does not broadcast to {input.spec.shape}"
        fail(ShapeError, what, "sizes of 1, or the tensor's own", x=input)
    if shape and shape == input.spec.shape:
        return input
    repeated = [d for d, n in enumerate(input.spec.shape) if d < lead or n != shape[d - lead]]
    return s.reshape(sum(input, repeated) if repeated or not shape else input, shape=shape)


def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """Convert flat indices into indices of a tensor of this shape: one `int64` tensor for each axis."""
    if indices.spec.dtype.rank != 1:
        what = f"unravel_index: indices must be integers, got {indices.spec.dtype.name}"
        fail(DTypeError, what, "indices.long()", indices=indices)
    shape = (
        sizes((shape,)) if is_sequence(shape) or (is_tensor(shape) and shape.spec.ndim) else (integer(shape, "shape"),)
    )
    indices, below = to(indices, int64), math.prod(shape)
    result = []
    for n in shape:
        below //= max(n, 1)
        result.append(e.remainder(e.floor_divide(indices, max(below, 1)), n))
    return tuple(result)
