"""Scattering by index, mask and view, strided views, and random fills as methods: `x.index_put_(...)`."""

from __future__ import annotations

from .. import functions as F
from ..functionalize import overwrite, write
from ..messages.suggestions import hint_methods


@hint_methods
class Scattering:
    """Scattering and strided views; a method whose name ends in an underscore writes into its tensor."""

    def take(self, index):
        return F.take(self, index)

    def put(self, index, source, accumulate=False):
        return F.put(self, index, source, accumulate)

    def put_(self, index, source, accumulate=False):
        return write(self, F.put(self, index, source, accumulate))

    def diag(self, diagonal=0):
        return F.diag(self, diagonal)

    def diag_embed(self, offset=0, dim1=-2, dim2=-1):
        return F.diag_embed(self, offset, dim1, dim2)

    def diagflat(self, offset=0):
        return F.diagflat(self, offset)

    def index_put(self, indices, values, accumulate=False):
        return F.index_put(self, indices, values, accumulate)

    def index_put_(self, indices, values, accumulate=False):
        return write(self, F.index_put(self, indices, values, accumulate))

    def index_reduce(self, dim, index, source, reduce, *, include_self=True):
        return F.index_reduce(self, dim, index, source, reduce, include_self=include_self)

    def index_reduce_(self, dim, index, source, reduce, *, include_self=True):
        return overwrite(F.index_reduce, self, dim, index, source, reduce, include_self=include_self)

    def scatter_reduce(self, dim, index, src, reduce, *, include_self=True):
        return F.scatter_reduce(self, dim, index, src, reduce, include_self=include_self)

    def scatter_reduce_(self, dim, index, src, reduce, *, include_self=True):
        return overwrite(F.scatter_reduce, self, dim, index, src, reduce, include_self=include_self)

    def masked_scatter(self, mask, source):
        return F.masked_scatter(self, mask, source)

    def masked_scatter_(self, mask, source):
        return write(self, F.masked_scatter(self, mask, source))

    def select_scatter(self, src, dim, index):
        return F.select_scatter(self, src, dim, index)

    def slice_scatter(self, src, dim=0, start=None, end=None, step=1):
        return F.slice_scatter(self, src, dim, start, end, step)

    def diagonal_scatter(self, src, offset=0, dim1=0, dim2=1):
        return F.diagonal_scatter(self, src, offset, dim1, dim2)

    def as_strided_scatter(self, src, size, stride, storage_offset=None):
        return F.as_strided_scatter(self, src, size, stride, storage_offset)

    def batch_gather(self, indices):
        return F.batch_gather(self, indices)

    def fill_diagonal_(self, fill_value, wrap=False):
        """Fill the diagonal with one value, in place; wrap: again below each square block of a tall matrix."""
        return write(self, F.fill_diagonal(self, fill_value, wrap))

    def as_strided(self, size, stride, storage_offset=None):
        return F.as_strided(self, size, stride, storage_offset)

    def unfold(self, dimension, size, step):
        return F.unfold(self, dimension, size, step)

    # ---- random numbers ---------------------------------------------------------------------------------------------

    def geometric_(self, p, *, generator=None):
        """Fill with the number of trials up to the first success of probability `p`."""
        return write(self, F.geometric_like(self, p, generator=generator))

    def cauchy_(self, median=0.0, sigma=1.0, *, generator=None):
        """Fill with random values of the Cauchy distribution."""
        return write(self, F.cauchy_like(self, median, sigma, generator=generator))

    def log_normal_(self, mean=1.0, std=2.0, *, generator=None):
        """Fill with exp of normal random values."""
        return write(self, F.log_normal_like(self, mean, std, generator=generator))
