"""Methods that change the shape, mostly as a view: `x.reshape(2, 3)`, `x.T`, `x.expand(4, -1)`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import functions as F
from ..base.errors import DTypeError
from ..dispatch import apply
from ..messages.suggestions import hint_methods
from ..ops import shape as s
from ..source_location import fail
from ..spec import DType
from .storage import Storage

if TYPE_CHECKING:
    from ..tensor import Tensor


REVERSED_AXES = [tuple(range(ndim))[::-1] for ndim in range(65)]  # number of axes -> all axes in reverse order


@hint_methods
class Shapes(Storage):
    """Shapes and views."""

    # Also takes PyTorch's keywords, which `core/messages/renamed.py` handles for functions that are called less often.
    def reshape(self: Tensor, *sizes: int | Sequence[int], shape: int | Sequence[int] | None = None) -> Tensor:
        return F.reshape(self, *(sizes if shape is None else (*sizes, shape)))

    def view(
        self: Tensor,
        *shape: int | Sequence[int],
        size: int | Sequence[int] | None = None,
        dtype: Any = None,
    ) -> Tensor:
        """Another shape in the same memory; one size may be -1, which is then computed."""
        if size is not None or dtype is not None:
            shape = (*shape, *[x for x in (dtype, size) if x is not None])
        if shape and type(shape[0]) is DType:
            if len(shape) > 1 or shape[0] is not self.dtype:
                what = f"view: the bits of {self.dtype.name} cannot be viewed as {shape[0].name}"
                fail(DTypeError, what, f"x.to({shape[0]}) converts the values", x=self)
            shape = self.spec.shape
        return F.view(self, as_sizes(shape))

    def reshape_as(self: Tensor, other: Tensor) -> Tensor:
        """Reshape to the shape of another tensor."""
        return F.reshape(self, F.shape_of("reshape_as", other))

    def view_as(self: Tensor, other: Tensor) -> Tensor:
        """View in the shape of another tensor."""
        return F.view(self, F.shape_of("view_as", other))

    def ravel(self: Tensor) -> Tensor:
        return F.reshape(self.contiguous(), (-1,))  # PyTorch copies a strided tensor even if a view would do

    def unsqueeze(self: Tensor, dim: int | None = None, *, axis: int | None = None) -> Tensor:
        return F.unsqueeze(self, axis if dim is None else dim)  # type: ignore[arg-type]  # which reports None

    def transpose(self: Tensor, dim0: int, dim1: int) -> Tensor:
        return F.transpose(self, dim0, dim1)

    swapdims = transpose

    def swapaxes(self: Tensor, axis0: int, axis1: int) -> Tensor:
        return self.transpose(axis0, axis1)

    def permute(self: Tensor, *axes: int | Sequence[int], dims: int | Sequence[int] | None = None) -> Tensor:
        return F.permute(self, as_sizes(axes if dims is None else (*axes, dims)))

    @property
    def T(self: Tensor) -> Tensor:
        """The tensor with its axes reversed."""
        return apply(s.permute, self, dims=REVERSED_AXES[self.spec.ndim])

    @property
    def mT(self: Tensor) -> Tensor:
        """The tensor with its last two axes swapped."""
        return F.transpose(self, -2, -1)

    def expand(self: Tensor, *sizes: int | Sequence[int]) -> Tensor:
        return F.expand(self, as_sizes(sizes))

    def repeat(self: Tensor, *sizes: int | Sequence[int]) -> Tensor:
        return F.repeat(self, as_sizes(sizes))


def as_sizes(sizes: tuple) -> tuple:
    """Return `(2, 3)` for both f(2, 3) and f((2, 3))."""
    if len(sizes) == 1 and type(sizes[0]) is not int and F.is_sequence(sizes[0]):
        return tuple(sizes[0])
    return sizes
