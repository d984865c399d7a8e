"""Methods for sparse tensors: those that every tensor has, and those by which a sparse tensor differs from a dense one.

Read next: `../functions/sparse.py`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from ..base.errors import GradError, MissingNameError, StateError
from ..functionalize import writes_of
from ..functions import sparse
from ..functions.arguments import normalize_axis
from ..functions.memory_format import Layout, sparse_coo
from ..functions.shape import cat
from ..messages.suggestions import hint_methods
from ..messages.unsupported import REASON_LAYOUT
from ..ops.shape import clone
from ..source_location import fail, here

if TYPE_CHECKING:
    from ..base.dtypes import DTypeLike
    from ..tensor import Tensor


@hint_methods
class Sparse:
    """Conversions, and the specified elements of a sparse tensor."""

    _coo: sparse.Coordinates
    is_sparse = property(lambda self: False, doc="False: the tensor is dense; True for one of `sparse_coo_tensor`.")

    def to_sparse(
        self: Tensor,
        sparse_dim: int | None = None,
        *,
        layout: Layout | None = None,
        blocksize: Any = None,
        dense_dim: int | None = None,
    ) -> Tensor:
        """The tensor with its nonzero elements as the specified ones. sparse_dim: number of leading axes that have
        indices, by default all. Raises MissingNameError for a layout other than `flow.sparse_coo`.
        """
        if blocksize is not None or dense_dim is not None or layout not in (None, sparse_coo):
            refuse_layout(self)
        return sparse.to_sparse(self, sparse_dim)

    def to_sparse_coo(self: Tensor) -> Tensor:
        """The tensor with its nonzero elements as the specified ones; see `to_sparse`."""
        return sparse.to_sparse(self)

    def to_dense(self: Tensor, dtype: DTypeLike | None = None, *, masked_grad: bool | None = None) -> Tensor:
        """The tensor without its record of specified elements; a dense tensor is returned unchanged."""
        dense = clone(self) if self.is_sparse else self
        return dense if dtype is None else dense.to(dtype)

    def coalesce(self: Tensor) -> Tensor:
        """Sort the indices of a sparse tensor and sum the values of each element; gradients flow to the values."""
        return sparse.coalesce(self)

    def is_coalesced(self: Tensor) -> bool:
        """True if a sparse tensor has sorted indices and one value per element."""
        return sparse.coordinates_of("is_coalesced", self).values is None

    def sparse_mask(self: Tensor, mask: Tensor) -> Tensor:
        """The elements of a dense tensor at the specified elements of `mask`."""
        return sparse.sparse_mask(self, mask)

    def sparse_dim(self: Tensor) -> int:
        """Number of axes of a sparse tensor that have indices; 0 for a dense tensor."""
        return self._coo.indices.spec.shape[0] if self.is_sparse else 0

    def dense_dim(self: Tensor) -> int:
        """Number of axes without indices: those of one value of a sparse tensor."""
        return self.spec.ndim - self.sparse_dim()

    def _nnz(self: Tensor) -> int:
        """Number of specified elements of a sparse tensor."""
        return sparse.coordinates_of("_nnz", self).indices.spec.shape[1]

    def indices(self: Tensor) -> Tensor:
        """`int64 (sparse_dim, nnz)`: indices of the specified elements. Raises StateError before `coalesce`."""
        check_coalesced("indices", self)
        return self._indices()

    def values(self: Tensor) -> Tensor:
        """`(nnz, ...)`: the specified elements. A write to them writes the sparse tensor, too, unless NumPy does it;
        a graph refuses it. Raises StateError before `coalesce`.
        """
        check_coalesced("values", self)
        return self._values()

    def _indices(self: Tensor) -> Tensor:
        """The indices that were given, in their order, read-only; see `indices`."""
        return sparse.protected(sparse.coordinates_of("_indices", self).indices.detach())

    def _values(self: Tensor) -> Tensor:
        """The values that were given, in their order: possibly several for one element; see `values`."""
        return sparse.specified_values("values", self)


def refuse_layout(x: Tensor) -> NoReturn:
    """Raise MissingNameError: there are no compressed rows, columns or blocks."""
    raise MissingNameError("sparse tensors have no compressed layout", where=here(), hint=REASON_LAYOUT)


for name in "to_sparse_csr to_sparse_csc to_sparse_bsr to_sparse_bsc crow_indices col_indices".split():
    setattr(Sparse, name, property(refuse_layout))


def check_coalesced(name: str, x: Tensor) -> None:
    if sparse.coordinates_of(name, x).values is not None:
        what = f"{name}: the sparse tensor may have several values for one element"
        fail(StateError, what, f"x.coalesce().{name}() sums them; x._{name}() has all", x=x)


class SparseMethods:
    """How a sparse tensor differs from a dense one: linear functions of the specified elements give a sparse tensor.

    All other functions give dense tensors of the same elements.
    """

    is_sparse = property(lambda self: True, doc="True: it remembers which elements were specified.")
    layout = property(lambda self: sparse_coo, doc="The layout that programs see: `flow.sparse_coo`.")

    def _like(self: Any, result: Any, on_values: Callable, on_indices: Callable | None = None) -> Any:
        """Make the result of a function sparse. on_values, on_indices: what the function does to its parts."""
        if result is self:
            return self
        indices, values, writes = self._coo
        if on_indices is not None:
            indices, values = on_indices(indices), self._values()
        new = sparse.as_sparse(result, indices.to(device=result.device), None if values is None else on_values(values))
        if writes != writes_of(self):  # still not known
            new._coo = new._coo._replace(writes=-1)
        return new

    def to(self: Any, *args: Any, **options: Any) -> Any:
        return self._like(super().to(*args, **options), lambda v: v.to(*args, **options))

    def type(self: Any, dtype: Any = None) -> Any:
        """Convert to a type, or return "minflow.sparse.FloatTensor"; see `Tensor.type`."""
        return super().type(dtype) if dtype is not None else super().type().replace("minflow.", "minflow.sparse.")

    def detach(self: Any) -> Any:
        return self._like(super().detach(), lambda v: v.detach())

    def clone(self: Any, *, memory_format: Layout | None = None) -> Any:
        return self._like(super().clone(), lambda v: v.clone())

    def transpose(self: Any, dim0: int, dim1: int) -> Any:
        a, b = [normalize_axis(dim, self.ndim, self) for dim in (dim0, dim1)]
        result, order = super().transpose(a, b), list(range(self.ndim))
        order[a], order[b] = b, a
        if max(a, b) >= self.sparse_dim():
            return result
        return self._like(result, lambda v: v, lambda indices: indices[order[: self.sparse_dim()]])

    def t(self: Any) -> Any:
        return self if self.ndim < 2 else self.transpose(0, 1)

    T = property(t, doc="The transposed matrix.")

    def __neg__(self: Any) -> Any:
        return self._like(super().__neg__(), lambda v: -v)

    def __mul__(self: Any, other: Any) -> Any:
        return self._scaled(super().__mul__(other), other, operator.mul)

    __rmul__ = mul = multiply = __mul__

    def __truediv__(self: Any, other: Any) -> Any:
        return self._scaled(super().__truediv__(other), other, operator.truediv)

    def div(self: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
        return self / other if rounding_mode is None else super().div(other, rounding_mode=rounding_mode)

    def _scaled(self: Any, result: Any, other: Any, on_values: Callable) -> Any:
        """Make a product or quotient sparse; the product of two sparse tensors with other indices stays dense, since
        fewer elements are specified than in either.
        """
        if getattr(other, "is_sparse", False) or result.shape != self.shape:
            return self._like(result, on_values) if self._same_indices(other) else result
        if getattr(other, "ndim", 0):
            other = sparse.elements_at(other.expand(self.shape), self._coo.indices)
        return self._like(result, lambda v: on_values(v, other))

    def _same_indices(self: Any, other: Any) -> bool:
        """True if both are coalesced, and one got its indices from the other, as x * x or y.sparse_mask(x) do."""
        same = getattr(other, "is_sparse", False) and other._coo.indices is self._coo.indices
        return same and self._coo.values is None and other._coo.values is None

    def __add__(self: Any, other: Any) -> Any:
        return self._joined(super().__add__(other), other, lambda v: v)

    def __sub__(self: Any, other: Any) -> Any:
        return self._joined(super().__sub__(other), other, operator.neg)

    def add(self: Any, other: Any, *, alpha: float = 1) -> Any:
        return self + (other if alpha == 1 else other * alpha)

    def sub(self: Any, other: Any, *, alpha: float = 1) -> Any:
        return self - (other if alpha == 1 else other * alpha)

    def _assigned(self: Any, result: Any) -> Any:
        """Take over the storage and the specified elements of a result."""
        if self.requires_grad or result.requires_grad:
            what = "a sparse tensor with a gradient cannot be changed in place"
            fail(GradError, what, "x = x + y in place of x += y", x=self)
        self.data = result
        return self

    def __iadd__(self: Any, other: Any) -> Any:
        return self._assigned(self + other)

    def __isub__(self: Any, other: Any) -> Any:
        return self._assigned(self - other)

    def __imul__(self: Any, other: Any) -> Any:
        return self._assigned(self * other)

    def __itruediv__(self: Any, other: Any) -> Any:
        return self._assigned(self / other)

    mul_, div_ = __imul__, __itruediv__

    def add_(self: Any, other: Any, *, alpha: float = 1) -> Any:
        return self._assigned(self.add(other, alpha=alpha))

    def sub_(self: Any, other: Any, *, alpha: float = 1) -> Any:
        return self._assigned(self.sub(other, alpha=alpha))

    def _joined(self: Any, result: Any, other: Any, on_values: Callable) -> Any:
        """Make the sum with another sparse tensor sparse: it has the specified elements of both."""
        if not getattr(other, "is_sparse", False) or self.sparse_dim() != other.sparse_dim():
            return result
        if self._same_indices(other):
            return self._like(result, on_values)
        values = [self._values().to(result.dtype), on_values(other._values().to(result.dtype))]
        return sparse.as_sparse(result, cat([self._coo.indices, other._coo.indices], 1), cat(values))

    def requires_grad_(self: Any, requires_grad: bool = True) -> Any:
        """Turn gradients on or off. The gradient of a leaf is dense, and 0 where no element is specified."""
        if requires_grad and self.is_leaf and not self.requires_grad:
            super().requires_grad_()
            self.register_hook(lambda g: g.sparse_mask(self).to_dense())
            return self
        return super().requires_grad_(requires_grad)

    def __setitem__(self, index: Any, value: Any) -> None:
        what = "a sparse tensor cannot be written by index: its specified elements would change"
        fail(StateError, what, "y = x.to_dense(), write to y, then y.to_sparse()", x=self, index=index, value=value)

    def __repr__(self: Any, *, tensor_contents: Any = None) -> str:
        unknown = self._coo.values is not None and writes_of(self) != self._coo.writes
        if self.array is None or self.is_global or unknown:
            return super().__repr__()
        parts = f"indices={self._indices()},\n       values={self._values().detach()},\n       "
        return f"tensor({parts}size={tuple(self.shape)}, nnz={self._nnz()}, layout={sparse_coo})"
