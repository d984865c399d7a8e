"""Sparse tensors in coordinate (COO) form: stored dense, with a record of the elements that were specified.

Ops see the dense elements, so products, graphs and gradients need no sparse kernels. The dense elements are computed
from the values by one `index_add`, through which gradients reach them. Read next: `../methods/sparse.py`.
"""

from __future__ import annotations

import functools
import math
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from ..backend import namespace, on_host
from ..base.errors import DTypeError, OutOfMemoryError, OutOfRangeError, ShapeError, StateError, TraceError
from ..functionalize import read_only, version_counter_of, write_into, writes_of
from ..infer import check_memory
from ..ir import VersionCounter
from ..memory import size_text
from ..mode import MODE, using
from ..ops import compare as c, elementwise as e, index as i, shape as s
from ..source_location import fail, here, warn_at
from ..spec import bool_, float32, int32, int64
from . import reduction, softmax as dense
from .arguments import is_tensor, maybe_to, normalize_axis, to, unique_axes
from .counting import unique
from .fill import copy_of, place_of, size_of
from .gather import nonzero
from .linear_algebra import addmm as dense_addmm, matmul
from .scatter import reduce_into
from .shape import stack
from .tensor_types import TypedTensor, make_type

if TYPE_CHECKING:
    from ..base.dtypes import DTypeLike
    from ..spec import Device
    from ..tensor import Tensor

MAX_DENSE_BYTES = 1 << 32  # bytes of the dense elements of one sparse tensor
SPARSE_TYPES: list[Any] = []  # SparseTensor, which this module must not import
WITHOUT_MATRIX = "flow.zeros(n, x.shape[1]).index_add(0, row, value[:, None] * x[col]) is a product without the matrix"


class Coordinates(NamedTuple):
    """The specified elements of a sparse tensor.

    indices: int64 (sparse_dim, nnz).  values: (nnz, ...) in their order, possibly several for one element; None if
    coalesced: then indices are sorted and unique, and the values are read from the dense elements.
    writes: `writes_of` the dense elements when this was recorded.
    """

    indices: Tensor
    values: Tensor | None
    writes: int


class ValuesVersion(VersionCounter):
    """Version counter of a tensor of values: each write to it, also through its views, writes the sparse tensor.

    seen: the version counter of the sparse tensor, and `writes_of` it, when the values were read or written last.
    """

    __slots__ = ("sparse", "values", "seen")

    def __init__(self, sparse: Tensor, values: Tensor):
        super().__init__()
        self.sparse, self.values = sparse, weakref.ref(values)  # a strong reference would be a cycle
        self.seen = sparse._version_counter, writes_of(sparse)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name in ("version", "unseen") and value and (values := self.values()) is not None:
            x = self.sparse
            if (x._version_counter, writes_of(x)) != self.seen:
                what = "values of a sparse tensor are written that were read before another write to it"
                fail(StateError, what, "x.values() again after the other write", values=values, x=x)
            with using(MODE.get().replace(grad=False)):
                write_into(x, scattered(x._coo.indices, values, x.spec.shape))
            self.seen = x._version_counter, writes_of(x)
            x._coo = x._coo._replace(values=None if x._coo.values is None else s.clone(values), writes=self.seen[1])


def as_sparse(x: Tensor, indices: Tensor, values: Tensor | None) -> Tensor:
    """Make a new dense tensor sparse, in place, with these specified elements; see `Coordinates`."""
    version_counter_of(x)
    x.__class__ = SPARSE_TYPES[0]
    x._coo = Coordinates(indices, values, writes_of(x))
    return x


def coordinates_of(name: str, x: Tensor) -> Coordinates:
    """The specified elements of a sparse tensor. Raises DTypeError for a dense one, and StateError if a write to x may
    have changed which they are.
    """
    if not x.is_sparse:
        hint = "x.to_sparse(); a sparse x stays sparse in x * y, x / y, x + y, -x and x.t(), not in flow.mul(x, y)"
        fail(DTypeError, f"{name}: the tensor must be sparse, this one is dense", hint, x=x)
    if writes_of(x) != x._coo.writes:
        here = x._coo.values is None and reduction.count_nonzero(elements_at(x, x._coo.indices))
        if here is False or (here != reduction.count_nonzero(x)).item():
            what = f"{name}: the tensor was written in place, and its specified elements are not known any more"
            fail(StateError, what, "x.to_dense().to_sparse() finds the nonzero elements", x=x)
        x._coo = x._coo._replace(writes=writes_of(x))
    return x._coo


def positions(indices: Tensor, sizes: Sequence[int]) -> Tensor:
    """Positions of elements, given by one index per axis, in the flattened axes. Raises OutOfRangeError in the op that
    uses an index, and here for a negative one.
    """
    eager = MODE.get().trace is None
    if eager and (indices < 0).any():
        what = "a sparse tensor has no negative indices"
        fail(OutOfRangeError, what, f"indices from 0 to {min(sizes) - 1}", indices=indices)
    flat = s.zeros_of(indices.spec.replace(shape=indices.spec.shape[1:]))
    for axis, size in enumerate(sizes):
        stride = math.prod(sizes[axis + 1 :])
        steps = s.constant_beside(indices, namespace().arange(size) * stride)
        row = s.getitem(indices, index=(axis,))
        row = row if eager else e.where(c.lt(row, 0), size, row)  # a plan must refuse -1 too
        flat = e.add(flat, i.take(steps, row, axis=0, by="sparse_coo_tensor"))
    return flat


def elements_at(x: Tensor, indices: Tensor) -> Tensor:
    """`(nnz, ...)`: the dense elements of x at these indices of its first axes."""
    lead = x.spec.shape[: indices.spec.shape[0]]
    flat = s.reshape(x.contiguous(), shape=(math.prod(lead), *x.spec.shape[len(lead) :]))
    return i.take(flat, positions(indices, lead), axis=0, by="values")


def build(indices: Tensor, values: Tensor, shape: tuple[int, ...], coalesced: bool = False) -> Tensor:
    """The sparse tensor of checked indices and values. Raises OutOfMemoryError before the dense elements are allocated
    if they are too many.
    """
    spec = values.spec.replace(shape=shape)
    if spec.nbytes > MAX_DENSE_BYTES:
        what = f"sparse tensors are stored dense: {spec} needs {size_text(spec.nbytes)}, more than the "
        fail(OutOfMemoryError, f"{what}{size_text(MAX_DENSE_BYTES)} allowed", WITHOUT_MATRIX, values=values)
    check_memory("sparse_coo_tensor", [spec])
    what = "sparse tensors are stored dense: a product costs as much time and memory as that of the dense matrix"
    warn_at(what, f"for a large graph, {WITHOUT_MATRIX}", {}, None, here(), "sparse")
    result = scattered(indices, values, shape)
    return as_sparse(result, indices, None if coalesced or indices.spec.shape[1] < 2 else values)


def scattered(indices: Tensor, values: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The dense elements: zeros, and the sum of the values at each index."""
    lead = shape[: indices.spec.shape[0]]
    added = to(values, int32) if values.spec.dtype is bool_ else values
    flat = s.zeros_of(added.spec.replace(shape=(math.prod(lead), *shape[len(lead) :])))
    flat = i.index_add(flat, positions(indices, lead), added, axis=0, by="sparse_coo_tensor")
    return s.reshape(to(flat, values.spec.dtype), shape=shape)


def sparse_coo_tensor(
    indices: Any = None,
    values: Any = None,
    size: Any = None,
    *,
    dtype: DTypeLike | None = None,
    device: Device | str | None = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> Tensor:
    """A sparse tensor with `values[k]` at position `indices[:, k]`; values of one position are summed.

    indices: int (sparse_dim, nnz).  values: (nnz, ...), further axes are dense.  size: by default the largest indices
    plus 1. `sparse_coo_tensor(size)` has no specified elements. It is stored dense, with a warning, given once.
    is_coalesced: the indices are sorted and unique.  check_invariants: accepted, since indices are always checked.
    pin_memory: accepted.  Raises ShapeError if the shapes do not fit, OutOfMemoryError if the dense elements need too
    much memory.
    """
    shape: tuple[int, ...] | None = None if size is None else size_of((size,))
    if values is None:
        shape = size_of((indices,)) if shape is None else shape
        indices, values = namespace().zeros((len(shape), 0), int), copy_of([], dtype, place_of(device))
    values = values if is_tensor(values) else copy_of(values, dtype)
    place: Any = place_of(device) or values.device
    values = maybe_to(values, dtype).to(device=place)
    indices = to(indices if is_tensor(indices) else copy_of(indices, int64), int64).to(device=place)
    if indices.spec.ndim != 2 or values.spec.shape[:1] != indices.spec.shape[1:]:
        what = f"sparse_coo_tensor: indices {list(indices.spec.shape)} and values {list(values.spec.shape)} do not fit"
        hint = "indices (sparse_dim, nnz), such as flow.stack([row, col]), and values (nnz,)"
        fail(ShapeError, what, hint, indices=indices, values=values)
    count, rest = indices.spec.shape[0], values.spec.shape[1:]
    if shape is None:
        if MODE.get().trace is not None:
            what = "sparse_coo_tensor: without a size, the shape depends on the indices"
            fail(TraceError, what, "size=(n, n), which a graph needs", indices=indices)
        largest = reduction.amax(indices, 1).tolist() if indices.spec.shape[1] else [-1] * count
        shape = (*[n + 1 for n in largest], *rest)
    if len(shape) != count + len(rest) or shape[count:] != rest:
        what = f"sparse_coo_tensor: size {list(shape)} must have {count} sizes, and then those of a value, {list(rest)}"
        fail(ShapeError, what, "size=(n, n) for two rows of indices", indices=indices, values=values)
    if not requires_grad:
        return build(indices, values, shape, bool(is_coalesced))
    return build(indices, values.detach(), shape, bool(is_coalesced)).detach().requires_grad_()


def specified_values(name: str, x: Tensor) -> Tensor:
    """`(nnz, ...)`: the values of a sparse tensor, in the order of its indices. A write to them also writes the sparse
    tensor; values with a gradient, and those of a graph, are read-only.
    """
    indices, values, _ = coordinates_of(name, x)
    values = elements_at(x, indices) if values is None else s.clone(values)
    if values.array is None:
        vars(values)["_refuse_write"] = functools.partial(refuse_write, x)
    if values.array is None or values._needs:
        return protected(values)
    values._version_counter = ValuesVersion(x, values)
    return values


def refuse_write(x: Tensor) -> NoReturn:
    """Raise TraceError for a write to the values of x in a graph, whose sparse tensor would not see it."""
    hint = "flow.sparse_coo_tensor(x.indices(), x.values() * 2, x.shape) is a new tensor; or write before the call"
    fail(TraceError, "values of a sparse tensor are written in a graph", hint, x=x)


def protected(x: Tensor) -> Tensor:
    """Make a new tensor read-only, since the sparse tensor would not see a write to it."""
    if x.array is not None and on_host(x.array):
        x.array = read_only(x.array)
    return x


def coalesce(x: Tensor) -> Tensor:
    """Sort the indices, with one value per element: the sum of those that were given."""
    if not x.is_sparse or x._coo.values is None:
        coordinates_of("coalesce", x)
        return x
    lead = x.spec.shape[: x._coo.indices.spec.shape[0]]
    result = as_sparse(s.getitem(x, index=()), unraveled(unique(positions(x._coo.indices, lead)), lead), None)
    if writes_of(x) != x._coo.writes:  # right if the writes kept to the specified elements, as those of an optimizer
        result._coo = result._coo._replace(writes=-1)
        coordinates_of("coalesce", result)
    return result


def unraveled(flat: Tensor, sizes: Sequence[int]) -> Tensor:
    """`(axes, n)`: the indices of positions in the flattened axes; the inverse of `positions`."""
    rows = []
    for size in reversed(sizes):
        rows.append(e.remainder(flat, max(size, 1)))
        flat = e.floor_divide(flat, max(size, 1))
    return stack(rows[::-1]) if rows else s.zeros_of(flat.spec.replace(shape=(0, flat.spec.size)))


def to_sparse(x: Tensor, sparse_dim: int | None = None) -> Tensor:
    """The sparse tensor of the nonzero elements; sparse_dim: number of leading axes with indices."""
    if x.is_sparse:
        return x
    count = x.spec.ndim if sparse_dim is None else sparse_dim
    if not 0 <= count <= x.spec.ndim or (count == 0 and x.spec.ndim):
        what = f"to_sparse: sparse_dim must be from 1 to {x.spec.ndim}, got {count}"
        fail(OutOfRangeError, what, "sparse_dim=1: an index for each row", x=x)
    filled = c.ne(x.detach(), 0)
    if count < x.spec.ndim:
        filled = reduction.any(filled.flatten(count), -1)
    indices = nonzero(filled).t()
    return build(indices, elements_at(x, indices), x.spec.shape, True)


def sparse_mask(x: Tensor, mask: Tensor) -> Tensor:
    """The elements of a dense tensor at the specified elements of a sparse one."""
    coordinates_of("sparse_mask", mask)
    if mask.spec.shape != x.spec.shape:
        what = f"sparse_mask: mask has shape {list(mask.spec.shape)}, the tensor {list(x.spec.shape)}"
        fail(ShapeError, what, "a mask of the tensor's shape", x=x, mask=mask)
    indices = coalesce(mask)._coo.indices
    return build(indices, elements_at(x, indices), x.spec.shape, True)


# ---- flow.sparse -----------------------------------------------------------------------------------------------------


def mm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices, of which the first is usually sparse; the product of two sparse ones is sparse."""
    product = matmul(mat1, mat2)
    if not (mat1.is_sparse and mat2.is_sparse):
        return product
    return as_sparse(product, nonzero(matmul(*map(specified_places, (mat1, mat2)))).t(), None)


def spmm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices; see `flow.sparse.mm`."""
    return mm(input, mat2)


def specified_places(x: Tensor) -> Tensor:
    """Dense float32 tensor of x's shape: positive where an element is specified, else 0."""
    indices = coordinates_of("mm", x).indices
    ones = s.filled(indices.spec.replace(shape=indices.spec.shape[1:], dtype=float32), 1)
    return s.clone(build(indices, ones, x.spec.shape))


def addmm(mat: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1.0, alpha: float = 1.0) -> Tensor:
    """`beta * mat + alpha * mat1 @ mat2`, where mat1 is usually sparse."""
    return dense_addmm(mat, mat1, mat2, beta=beta, alpha=alpha)


def sum(input: Tensor, dim: int | Sequence[int] | None = None, dtype: DTypeLike | None = None) -> Tensor:
    """The sum of all elements, or along axes. The result is sparse if axes with indices remain."""
    indices = coordinates_of("sum", input).indices
    if dim is None:
        return reduction.sum(input, dtype=dtype)
    summed = unique_axes(dim, input)
    result = reduction.sum(input, tuple(summed), dtype=dtype)
    kept = [axis for axis in range(indices.spec.shape[0]) if axis not in summed]
    if not kept:
        return result
    lead = tuple([input.spec.shape[axis] for axis in kept])
    at = unique(positions(stack([indices[axis] for axis in kept]), lead))
    return as_sparse(result, unraveled(at, lead), None)


def softmax(input: Tensor, dim: int, *, dtype: DTypeLike | None = None) -> Tensor:
    """Softmax along `dim` over the specified elements alone: others count as -inf."""
    return normalized("softmax", input, dim, dtype)


def log_softmax(input: Tensor, dim: int, *, dtype: DTypeLike | None = None) -> Tensor:
    """Logarithm of `softmax`; elements that are not specified are not computed."""
    return normalized("log_softmax", input, dim, dtype)


def normalized(name: str, input: Tensor, dim: int, dtype: DTypeLike | None) -> Tensor:
    """softmax or log_softmax of the specified elements that differ only in their index along `dim`."""
    coordinates_of(name, input)
    whole = coalesce(input)
    indices, values = whole._coo.indices, maybe_to(specified_values(name, whole), dtype)
    axis, count, shape = normalize_axis(dim, input.spec.ndim, input), indices.spec.shape[0], input.spec.shape
    if axis >= count:
        return build(indices, getattr(dense, name)(values, axis - count + 1), shape, True)
    kept = [d for d in range(count) if d != axis]
    lines, line = unique(
        positions(stack([indices[d] for d in kept]), [shape[d] for d in kept])
        if kept
        else s.zeros_of(indices.spec.replace(shape=indices.spec.shape[1:])),
        return_inverse=True,
    )
    start = s.zeros_of(values.spec.replace(shape=(lines.spec.size, *values.spec.shape[1:])))
    column = s.reshape(line, shape=(line.spec.size, *[1] * (values.spec.ndim - 1)))
    place = s.clone(s.expand(column, shape=values.spec.shape))
    largest = reduce_into(name, start, 0, place, values.detach(), "amax", False)
    shifted = values - i.take(largest, line, axis=0)
    total = i.index_add(start, line, e.exp(shifted), axis=0)
    result = shifted - i.take(e.log(total), line, axis=0)
    return build(indices, result if name == "log_softmax" else e.exp(result), shape, True)


class SparseType(TypedTensor):
    """The metaclass of `flow.sparse.FloatTensor` and the others."""

    def __call__(cls, *data: Any, device: Device | str | None = None, **named: Any) -> Any:
        """`FloatTensor(indices, values, size)`, also by name, or `FloatTensor(2, 3)` without specified elements."""
        if not named and (not data or not hasattr(data[0], "__len__")):
            data = (data or (0,),)
        return sparse_coo_tensor(*data, **named, dtype=cls.dtype, device=cls.kind if device is None else device)

    def __instancecheck__(cls, x: Any) -> bool:
        return super().__instancecheck__(x) and x.is_sparse


def make_sparse_type(name: str, kind: str = "cpu") -> SparseType:
    plain = make_type(name, kind)
    home = "minflow.sparse" if kind == "cpu" else f"minflow.{kind}.sparse"
    doc = f"A sparse {plain.dtype.name} tensor: `{name}(indices, values, size)`."
    return SparseType(name, (), {"dtype": plain.dtype, "kind": kind, "__doc__": doc, "__module__": home})
