"""Methods that change the shape, mostly as a view: `x.reshape(2, 3)`, `x.T`, `x.split(2)`."""

from __future__ import annotations

from .. import functions as F
from ..base.errors import DTypeError
from ..dispatch import apply
from ..messages.suggestions import hint_methods
from ..ops import shape as s
from ..source_location import fail
from ..spec import DType
from .storage import Storage

REVERSED = [tuple(range(ndim))[::-1] for ndim in range(65)]  # number of axes -> all axes in reverse order


@hint_methods
class Shapes(Storage):
    """Shapes and views."""

    # Also takes PyTorch's keywords, which `core/messages/renamed.py` handles for functions that are called less often.
    def reshape(self, *sizes, shape=None):
        return F.reshape(self, *(sizes if shape is None else (*sizes, shape)))

    def view(self, *shape, size=None, dtype=None):
        """Another shape in the same memory; one size may be -1, which is then computed."""
        if size is not None or dtype is not None:
            shape = (*shape, *[x for x in (dtype, size) if x is not None])
        if shape and type(shape[0]) is DType:
            if len(shape) > 1 or shape[0] is not self.dtype:
                fail(
                    DTypeError,
                    f"view: the bits of {self.dtype.name} cannot be viewed as {shape[0].name}",
                    f"x.to({shape[0]}) converts the values",
                    x=self,
                )
            shape = self.spec.shape
        return F.view(self, as_sizes(shape))

    def reshape_as(self, other):
        """Reshape to the shape of another tensor."""
        return F.reshape(self, F.shape_of("reshape_as", other))

    def view_as(self, other):
        """View in the shape of another tensor."""
        return F.view(self, F.shape_of("view_as", other))

    def ravel(self):
        return F.reshape(self.contiguous(), (-1,))  # PyTorch copies a strided tensor even if a view would do

    def flatten(self, start_dim=0, end_dim=-1):
        return F.flatten(self, start_dim, end_dim)

    def unflatten(self, dim, sizes):
        return F.unflatten(self, dim, sizes)

    def squeeze(self, dim=None):
        return F.squeeze(self, dim)

    def unsqueeze(self, dim):
        return F.unsqueeze(self, dim)

    def transpose(self, dim0, dim1):
        return F.transpose(self, dim0, dim1)

    swapdims = transpose

    def swapaxes(self, axis0, axis1):
        return self.transpose(axis0, axis1)

    def permute(self, *axes, dims=None):
        return F.permute(self, as_sizes(axes if dims is None else (*axes, dims)))

    def t(self):
        return F.t(self)

    T = property(
        lambda self: apply(s.permute, self, dims=REVERSED[self.spec.ndim]), doc="The tensor with its axes reversed."
    )
    mT = property(lambda self: F.transpose(self, -2, -1), doc="The tensor with its last two axes swapped.")

    def movedim(self, source, destination):
        return F.movedim(self, source, destination)

    def expand(self, *sizes):
        return F.expand(self, as_sizes(sizes))

    def expand_as(self, other):
        """Expand to the shape of another tensor."""
        return F.expand_as(self, other)

    def broadcast_to(self, size):
        return F.broadcast_to(self, size)

    def repeat(self, *sizes):
        return F.repeat(self, as_sizes(sizes))

    def tile(self, *dims):
        return F.tile(self, as_sizes(dims))

    @F.accept_axis
    def split(self, split_size, dim=0):
        return F.split(self, split_size, dim)

    @F.accept_axis
    def chunk(self, chunks, dim=0):
        return F.chunk(self, chunks, dim)

    @F.accept_axis
    def unbind(self, dim=0):
        return F.unbind(self, dim)

    def narrow(self, dim, start, length):
        return F.narrow(self, dim, start, length)

    def select(self, dim, index):
        return F.select(self, dim, index)

    def flip(self, *dims):
        return F.flip(self, as_sizes(dims))

    def roll(self, shifts, dims=None):
        return F.roll(self, shifts, dims)

    def tril(self, diagonal=0):
        return F.tril(self, diagonal)

    def triu(self, diagonal=0):
        return F.triu(self, diagonal)

    def diagonal(self, offset=0, dim1=0, dim2=1):
        return F.diagonal(self, offset, dim1, dim2)


def as_sizes(sizes: tuple) -> tuple:
    """Return `(2, 3)` for both f(2, 3) and f((2, 3))."""
    if len(sizes) == 1 and type(sizes[0]) is not int and F.is_sequence(sizes[0]):
        return tuple(sizes[0])
    return sizes
