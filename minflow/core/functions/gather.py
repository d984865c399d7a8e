"""Gather elements and slices by index along one axis; triangles and diagonals. `x[index]` is in `indexing.py`.

Read next: `scatter.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..backend import namespace
from ..base.errors import DTypeError, OutOfRangeError, ShapeError, TraceError
from ..base.legacy_dispatch import overloaded
from ..mode import MODE
from ..ops import elementwise as e, index as i, shape as s
from ..ops.compare import ne
from ..ops.sort import sort
from ..source_location import fail
from ..spec import bool_, float32, int8, int64
from .arguments import (
    autocast_float32,
    cast_fill_value,
    cast_for_write,
    integer,
    is_tensor,
    normalize_axis,
    number_or_symbol,
    to,
)
from .shape import stack, unbind

if TYPE_CHECKING:
    from ..tensor import Tensor


@overloaded
def gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """`out[i, j] = input[i, index[i, j]]` for dim 1, and so on. sparse_grad: accepted; gradients are dense."""
    if not input.spec.ndim:  # a 0-d tensor counts as a vector of one element
        return gather(input.reshape(1), dim, index.reshape(-1)).reshape(index.spec.shape)
    found = i.gather(input, index_for(index, input), dim=normalize_axis(dim, input.spec.ndim, input), by="gather")
    return found if found.spec.ndim == index.spec.ndim else s.reshape(found, shape=())


def index_for(index: Tensor, input: Tensor) -> Tensor:
    """Return index in the form that the ops take: for a vector, a 0-d index becomes a vector of one element."""
    single = index.spec.shape == () and input.spec.ndim == 1 and not index.spec.dtype.floating
    return s.reshape(index, shape=(1,)) if single else index


def as_vector(function: Callable, input: Tensor, dim: int, index: Tensor, *sources: Any, **options: Any) -> Tensor:
    """The result of a function for a 0-d input, which counts as a vector of one element, as do index and sources."""
    flat = [x.reshape(-1) if is_tensor(x) else x for x in (index, *sources)]
    return function(input.reshape(1), dim, *flat, **options).reshape(())


def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """The slices along `dim` at the positions in a vector of integers."""
    if index.spec.ndim > 1:
        what = f"index_select: the index must be a vector, got {index.spec.ndim} axes"
        fail(ShapeError, what, "x[index], or flow.gather", index=index)
    if not input.spec.ndim:
        return as_vector(index_select, input, dim, index)
    return i.take(
        input,
        s.reshape(index, shape=(index.spec.size,)),
        axis=normalize_axis(dim, input.spec.ndim, input),
        by="index_select",
    )


def index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: float = 1) -> Tensor:
    """Copy of input with `alpha * source` added to the slices along `dim` at the positions in a vector of integers."""
    if not input.spec.ndim:
        return as_vector(index_add, input, dim, index, source, alpha=alpha)
    source = cast_for_write("index_add", source, input.spec.dtype, input=input, source=source)
    alpha = number_or_symbol(alpha)
    source = source if not is_tensor(alpha) and alpha == 1 else to(source * alpha, input.spec.dtype)
    index = index_vector("index_add", input, index)
    return i.index_add(input, index, source, axis=normalize_axis(dim, input.spec.ndim, input), by="index_add")


def index_vector(op: str, input: Tensor, index: Tensor) -> Tensor:
    """Return the index as a vector; a 0-d index becomes a vector of one element."""
    if is_tensor(index) and index.spec.ndim > 1:
        fail(ShapeError, f"{op}: index must be a vector, got {index.spec.ndim} axes", "index.flatten()", index=index)
    return index.reshape(1) if is_tensor(index) and not index.spec.ndim else index


def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """Copy of input with the slices along `dim` at the positions in a vector of integers replaced by source."""
    if not input.spec.ndim:
        return as_vector(index_copy, input, dim, index, source)
    index = index_vector("index_copy", input, index)
    source = cast_for_write("index_copy", source, input.spec.dtype, input=input, source=source)
    if index.spec.ndim > source.spec.ndim:  # one element for one position
        source = source.reshape(1)
    return i.index_put(input, index, source, axis=normalize_axis(dim, input.spec.ndim, input), by="index_copy")


def index_fill(input: Tensor, dim: int, index: Tensor, value: Tensor | float) -> Tensor:
    """Copy of input with the slices along `dim` at the positions in a vector of integers filled with a number."""
    value = cast_fill_value("index_fill", value, input.spec.dtype, input=input, value=value)
    if is_tensor(index) and index.spec.ndim > 1:
        what = f"index_fill: index must be a vector, got {index.spec.ndim} axes"
        fail(ShapeError, what, "index.flatten()", index=index)
    axis = normalize_axis(dim, input.spec.ndim, input)
    if is_tensor(value):
        shape = list(input.spec.shape) or [1]
        shape[axis] = index.spec.size
        value = s.expand(value, shape=tuple(shape))
        index = index.reshape(-1)
    if not input.spec.ndim:  # a 0-d tensor counts as a vector of one element
        return i.index_put(input.reshape(1), index.reshape(-1), value, axis=0, by="index_fill").reshape(())
    return i.index_put(input, index, value, axis=axis, by="index_fill")


def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """`gather` that broadcasts the other axes; without `dim`, indices are positions in the flattened tensor."""
    if dim is None:
        return i.gather(input.reshape(-1), indices.reshape(-1), dim=0, by="take_along_dim without dim")
    axis = normalize_axis(dim, input.spec.ndim, input)
    shapes = [list(input.spec.shape), list(indices.spec.shape)]
    if len(shapes[0]) != len(shapes[1]):
        what = "take_along_dim: input and indices must have the same number of axes"
        fail(ShapeError, what, "indices.unsqueeze(...)", input=input, indices=indices)
    for d in range(len(shapes[0])):
        sizes = {shapes[0][d], shapes[1][d]} - {1}
        if d != axis and len(sizes) == 1:
            shapes[0][d] = shapes[1][d] = sizes.pop()
    return i.gather(
        s.expand(input, shape=tuple(shapes[0])),
        s.expand(indices, shape=tuple(shapes[1])),
        dim=axis,
        by="take_along_dim",
    )


def take(input: Tensor, index: Tensor) -> Tensor:
    """Elements of the flattened tensor at integer positions."""
    return i.take(input.reshape(-1), index, axis=0, by="take")


@overloaded
def nonzero(input: Tensor, as_tuple: bool = False) -> Any:
    """`int64 (n, ndim)`: positions of the nonzero elements; as_tuple: one vector per axis. Raises TraceError in a
    graph.
    """
    if as_tuple:  # a 0-d tensor counts as a vector of one element
        return unbind(i.nonzero(input if input.spec.ndim else input.reshape(1)), 1)
    return i.nonzero(input)


argwhere = overloaded(nonzero, "argwhere")


def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """`int64 (size, ndim)`: the first `size` rows of nonzero(input), also in a graph; fill_value after the last one."""
    shape, n, size = input.spec.shape, input.spec.size, integer(size, "size")
    if size < 0:
        fail(OutOfRangeError, f"nonzero_static: size must be non-negative, got {size}", "size=16", input=input)
    if not shape or not n:
        return s.full(shape=(size, len(shape)), value=integer(fill_value, "fill_value"), dtype=int64)
    true, places = sort(to(ne(input, 0).reshape(n), int8), axis=0, descending=True)  # a stable sort
    true, places = (s.pad(x[:size], widths=((0, max(size - n, 0)),), value=0) for x in (true, places))
    strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    rows = stack([places // stride % length for stride, length in zip(strides, shape)], 1)
    return e.where(ne(true, 0).reshape(size, 1), rows, integer(fill_value, "fill_value"))


def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """A vector of the elements where the mask is True. Raises TraceError in a graph."""
    if mask.spec.dtype is not bool_:
        what = f"masked_select: the mask must be bool, got {mask.spec.dtype.name}"
        fail(DTypeError, what, "a comparison such as x > 0", mask=mask)
    from .shape import broadcast_tensors

    input, mask = broadcast_tensors(input, mask)
    return i.take(input.reshape(-1), i.nonzero(mask.reshape(-1)).reshape(-1), axis=0)


@overloaded
def one_hot(input: Tensor, num_classes: int = -1, on_value: float = 1, off_value: float = 0) -> Tensor:
    """`int64 (..., num_classes)`: 1 at the class given by each integer; -1: num_classes is the largest class plus 1.

    on_value, off_value: used in place of 1 and 0; the result is float32 if one of them is a float.
    """
    if num_classes == -1:
        if MODE.get().trace is not None:
            what = "one_hot: num_classes is required while a graph is built, because the elements are not known"
            fail(TraceError, what, "num_classes=10", input=input)
        if not input.spec.size:
            fail(OutOfRangeError, "one_hot: num_classes is required for an empty tensor", "num_classes=10", input=input)
        num_classes = max(int(input.max()) + 1, 1)
    num_classes = integer(num_classes, "num_classes")
    if num_classes < 1:
        what = f"one_hot: num_classes is {num_classes}"
        fail(OutOfRangeError, what, "at least 1, or -1 to count them in the data", input=input)
    out = i.one_hot(input, num_classes=num_classes)
    if (on_value, off_value) == (1, 0):
        return out if on_value.__class__ is int else to(out, float32)
    dtype = float32 if float in (on_value.__class__, off_value.__class__) else int64
    spec = out.spec.replace(shape=(), dtype=dtype)
    return e.where(to(out, bool_), s.filled(spec, on_value), s.filled(spec, off_value))


def tril(input: Tensor, diagonal: int = 0) -> Tensor:
    """The lower triangle of the last two axes; 0 above the given diagonal."""
    return i.tril(input, diagonal=integer(diagonal, "diagonal"))


def triu(input: Tensor, diagonal: int = 0) -> Tensor:
    """The upper triangle of the last two axes; 0 below the given diagonal."""
    return i.triu(input, diagonal=integer(diagonal, "diagonal"))


def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The diagonal of two axes as the last axis; a view."""
    ndim = input.spec.ndim
    a, b = normalize_axis(dim1, ndim, input), normalize_axis(dim2, ndim, input)
    if a == b or ndim < 2:
        what = f"diagonal: axes {dim1} and {dim2} of a tensor with {ndim} axes"
        fail(ShapeError, what, "two different axes", x=input)
    return s.diagonal(input, offset=integer(offset, "offset"), dim1=a, dim2=b)


@overloaded
def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """The diagonal of a matrix, or the matrix with a given vector as its diagonal."""
    diagonal = integer(diagonal, "diagonal")
    if input.spec.ndim == 2:
        return s.clone(s.diagonal(input, offset=diagonal, dim1=0, dim2=1))
    if input.spec.ndim != 1:
        what = f"diag: input must have 1 or 2 axes, got {input.spec.ndim}"
        fail(ShapeError, what, "flow.diagonal(x, offset, dim1, dim2)", x=input)
    n = input.spec.size + abs(diagonal)
    empty = s.zeros_of(input.spec.replace(shape=(n, n)))
    return s.view_write(empty, input, path=((s.diagonal, {"offset": diagonal, "dim1": 0, "dim2": 1}),))


def trace(input: Tensor) -> Tensor:
    """The sum of the diagonal of a matrix."""
    if input.spec.ndim != 2:
        stacks = "x.diagonal(0, -2, -1).sum(-1) for stacks of matrices"
        hint = stacks if input.spec.ndim > 2 else "flow.diag(x) makes a matrix"
        fail(ShapeError, f"trace: input must be a matrix, got {input.spec.ndim} axes", hint, x=input)
    return diagonal(autocast_float32(input)).sum()


def positions(x: Tensor) -> Tensor:
    """`int64`, of the shape of x: the position of each element in the flattened tensor."""
    return s.constant_beside(x, namespace().arange(x.spec.size, dtype="int64").reshape(x.spec.shape))


def is_mask(x: Tensor) -> bool:
    return is_tensor(x) and x.spec.dtype is bool_
