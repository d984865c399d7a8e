"""Scattering by index, mask and view, strided views, and random fills as methods: `x.index_put_(...)`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import functions as F
from ..functionalize import call_inplace, write_into
from ..messages.suggestions import hint_methods

if TYPE_CHECKING:
    from ..random import Generator
    from ..tensor import Tensor


@hint_methods
class Scattering:
    """Scattering and strided views; a method whose name ends in an underscore writes into its tensor."""

    def take(self: Tensor, index: Tensor) -> Tensor:
        return F.take(self, index)

    def put(self: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
        return F.put(self, index, source, accumulate)

    def put_(self: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
        return write_into(self, F.put(self, index, source, accumulate))

    def diag(self: Tensor, diagonal: int = 0) -> Tensor:
        return F.diag(self, diagonal)

    def diag_embed(self: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
        return F.diag_embed(self, offset, dim1, dim2)

    def diagflat(self: Tensor, offset: int = 0) -> Tensor:
        return F.diagflat(self, offset)

    def index_put(self: Tensor, indices: Sequence[Any], values: Tensor, accumulate: bool = False) -> Tensor:
        return F.index_put(self, indices, values, accumulate)

    def index_put_(self: Tensor, indices: Sequence[Any], values: Tensor, accumulate: bool = False) -> Tensor:
        return write_into(self, F.index_put(self, indices, values, accumulate))

    def index_reduce(
        self: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
    ) -> Tensor:
        return F.index_reduce(self, dim, index, source, reduce, include_self=include_self)

    def index_reduce_(
        self: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
    ) -> Tensor:
        return call_inplace(F.index_reduce, self, dim, index, source, reduce, include_self=include_self)

    def scatter_reduce(
        self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
    ) -> Tensor:
        return F.scatter_reduce(self, dim, index, src, reduce, include_self=include_self)

    def scatter_reduce_(
        self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
    ) -> Tensor:
        return call_inplace(F.scatter_reduce, self, dim, index, src, reduce, include_self=include_self)

    def masked_scatter(self: Tensor, mask: Tensor, source: Tensor) -> Tensor:
        return F.masked_scatter(self, mask, source)

    def masked_scatter_(self: Tensor, mask: Tensor, source: Tensor) -> Tensor:
        return write_into(self, F.masked_scatter(self, mask, source))

    def select_scatter(self: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
        return F.select_scatter(self, src, dim, index)

    def slice_scatter(
        self: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
    ) -> Tensor:
        return F.slice_scatter(self, src, dim, start, end, step)

    def diagonal_scatter(self: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
        return F.diagonal_scatter(self, src, offset, dim1, dim2)

    def as_strided_scatter(
        self: Tensor,
        src: Tensor,
        size: int | Sequence[int],
        stride: int | Sequence[int],
        storage_offset: int | None = None,
    ) -> Tensor:
        return F.as_strided_scatter(self, src, size, stride, storage_offset)

    def batch_gather(self: Tensor, indices: Tensor) -> Tensor:
        return F.batch_gather(self, indices)

    def fill_diagonal_(self: Tensor, fill_value: Tensor | float, wrap: bool = False) -> Tensor:
        """Fill the diagonal with one value, in place; wrap: again below each square block of a tall matrix."""
        return write_into(self, F.fill_diagonal(self, fill_value, wrap))

    def as_strided(
        self: Tensor, size: int | Sequence[int], stride: int | Sequence[int], storage_offset: int | None = None
    ) -> Tensor:
        return F.as_strided(self, size, stride, storage_offset)

    def unfold(self: Tensor, dimension: int, size: int, step: int) -> Tensor:
        return F.unfold(self, dimension, size, step)

    # ---- random numbers ---------------------------------------------------------------------------------------------

    def geometric_(self: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
        """Fill with the number of trials up to the first success of probability `p`."""
        return write_into(self, F.geometric_like(self, p, generator=generator))

    def cauchy_(self: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Generator | None = None) -> Tensor:
        """Fill with random values of the Cauchy distribution."""
        return write_into(self, F.cauchy_like(self, median, sigma, generator=generator))

    def log_normal_(self: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Generator | None = None) -> Tensor:
        """Fill with exp of normal random values."""
        return write_into(self, F.log_normal_like(self, mean, std, generator=generator))
