"""Counting, order statistics, cumulative operations and splitting as methods: `x.unique()`, `x.quantile(0.5)`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import functions as F
from ..base.errors import DTypeError
from ..functionalize import call_inplace, write_result
from ..messages.suggestions import hint_methods
from ..source_location import fail

if TYPE_CHECKING:
    from ..base.dtypes import DTypeLike
    from ..functions import return_types
    from ..random import Generator
    from ..tensor import Tensor


@hint_methods
class CountsAndSplits:
    """Counts, quantiles, operations along an axis, stacking and splitting."""

    # ---- along an axis ----------------------------------------------------------------------------------------------

    @F.accept_axis
    def cumprod(self: Tensor, dim: int, *, dtype: DTypeLike | None = None) -> Tensor:
        return F.cumprod(self, dim, dtype=dtype)

    def cumprod_(self: Tensor, dim: int, *, dtype: DTypeLike | None = None) -> Tensor:
        if dtype is not None and dtype is not self.dtype:
            fail(
                DTypeError,
                f"cumprod_: the tensor is {self.dtype.name}, and in place it keeps its dtype",
                "x.cumprod(dim, dtype=...)",
                x=self,
            )
        return call_inplace(F.cumprod, self, dim)

    @F.accept_axis
    def cummax(self: Tensor, dim: int) -> return_types.cummax:
        return F.cummax(self, dim)

    @F.accept_axis
    def cummin(self: Tensor, dim: int) -> return_types.cummin:
        return F.cummin(self, dim)

    @F.accept_axis
    def logcumsumexp(self: Tensor, dim: int) -> Tensor:
        return F.logcumsumexp(self, dim)

    @F.accept_axis
    def diff(
        self: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None
    ) -> Tensor:
        return F.diff(self, n, dim, prepend, append)

    @F.accept_axis
    def nansum(
        self: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, dtype: DTypeLike | None = None
    ) -> Tensor:
        return F.nansum(self, dim, keepdim, dtype=dtype)

    @F.accept_axis
    def nanmean(
        self: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, dtype: DTypeLike | None = None
    ) -> Tensor:
        return F.nanmean(self, dim, keepdim, dtype=dtype)

    @F.accept_axis
    def count_nonzero(self: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
        return F.count_nonzero(self, dim)

    @F.accept_axis
    def aminmax(self: Tensor, *, dim: int | None = None, keepdim: bool = False) -> return_types.aminmax:
        return F.aminmax(self, dim=dim, keepdim=keepdim)

    # ---- order statistics
    # -----------------------------------------------------------------------------------------------------

    @F.accept_axis
    def nanmedian(self: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
        return F.nanmedian(self, dim, keepdim)

    @F.accept_axis
    def quantile(
        self: Tensor,
        q: Tensor | float,
        dim: int | None = None,
        keepdim: bool = False,
        *,
        interpolation: str = "linear",
    ) -> Tensor:
        return F.quantile(self, q, dim, keepdim, interpolation=interpolation)

    @F.accept_axis
    def nanquantile(
        self: Tensor,
        q: Tensor | float,
        dim: int | None = None,
        keepdim: bool = False,
        *,
        interpolation: str = "linear",
    ) -> Tensor:
        return F.nanquantile(self, q, dim, keepdim, interpolation=interpolation)

    @F.accept_axis
    def mode(self: Tensor, dim: int = -1, keepdim: bool = False) -> return_types.mode:
        return F.mode(self, dim, keepdim)

    @F.accept_axis
    def kthvalue(self: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> return_types.kthvalue:
        return F.kthvalue(self, k, dim, keepdim)

    def msort(self: Tensor) -> Tensor:
        return F.msort(self)

    # ---- counts -----------------------------------------------------------------------------------------------------

    def bincount(self: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
        return F.bincount(self, weights, minlength)

    def histc(self: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
        return F.histc(self, bins, min, max)

    def histogram(
        self: Tensor,
        bins: int | Sequence[int] | Tensor = 100,
        *,
        range: Sequence[float] | None = None,
        weight: Tensor | None = None,
        density: bool = False,
    ) -> return_types.histogram:
        return F.histogram(self, bins, range=range, weight=weight, density=density)

    def unique(
        self: Tensor,
        sorted: bool = True,
        return_inverse: bool = False,
        return_counts: bool = False,
        dim: int | None = None,
    ) -> Any:
        return F.unique(self, sorted, return_inverse, return_counts, dim)

    def unique_consecutive(
        self: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
    ) -> Any:
        return F.unique_consecutive(self, return_inverse, return_counts, dim)

    def multinomial(
        self: Tensor, num_samples: int, replacement: bool = False, *, generator: Generator | None = None
    ) -> Tensor:
        return F.multinomial(self, num_samples, replacement, generator=generator)

    def in_top_k(self: Tensor, predictions: Tensor, k: int) -> Tensor:
        """True for each row whose class is among the `k` largest of its scores."""
        return F.in_top_k(self, predictions, k)

    def nms(self: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
        return F.nms(self, scores, iou_threshold)

    # ---- stacking and splitting
    # --------------------------------------------------------------------------------------------

    @F.accept_axis
    def tensor_split(
        self: Tensor, indices_or_sections: int | Sequence[int] | Tensor, dim: int = 0
    ) -> tuple[Tensor, ...]:
        return F.tensor_split(self, indices_or_sections, dim)

    def hsplit(self: Tensor, indices_or_sections: int | Sequence[int] | Tensor) -> tuple[Tensor, ...]:
        return F.hsplit(self, indices_or_sections)

    def vsplit(self: Tensor, indices_or_sections: int | Sequence[int] | Tensor) -> tuple[Tensor, ...]:
        return F.vsplit(self, indices_or_sections)

    def dsplit(self: Tensor, indices_or_sections: int | Sequence[int] | Tensor) -> tuple[Tensor, ...]:
        return F.dsplit(self, indices_or_sections)

    def split_with_sizes(self: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
        return F.split_with_sizes(self, split_sizes, dim)

    def unsafe_chunk(self: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
        return F.unsafe_chunk(self, chunks, dim)

    def unsafe_split(self: Tensor, split_size: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
        return F.unsafe_split(self, split_size, dim)

    def unsafe_split_with_sizes(self: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
        return F.unsafe_split_with_sizes(self, split_sizes, dim)

    def fliplr(self: Tensor) -> Tensor:
        return F.fliplr(self)

    def flipud(self: Tensor) -> Tensor:
        return F.flipud(self)

    def rot90(self: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
        return F.rot90(self, k, dims)

    def narrow_copy(self: Tensor, dim: int, start: int, length: int) -> Tensor:
        return F.narrow_copy(self, dim, start, length)

    def repeat_interleave(
        self: Tensor, repeats: Tensor | int, dim: int | None = None, *, output_size: int | None = None
    ) -> Tensor:
        return F.repeat_interleave(self, repeats, dim, output_size=output_size)

    def moveaxis(self: Tensor, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
        return F.movedim(self, source, destination)

    def sum_to_size(self: Tensor, *size: int | Sequence[int]) -> Tensor:
        """Sum to a shape that broadcasts to that of the tensor."""
        return F.sum_to_size(self, *size)

    # ---- products ---------------------------------------------------------------------------------------------------

    def inner(self: Tensor, other: Tensor) -> Tensor:
        return F.inner(self, other)

    def kron(self: Tensor, other: Tensor) -> Tensor:
        return F.kron(self, other)

    def trace(self: Tensor) -> Tensor:
        return F.trace(self)

    def ger(self: Tensor, vec2: Tensor) -> Tensor:
        return F.ger(self, vec2)

    def addmv(self: Tensor, mat: Tensor, vec: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
        return F.addmv(self, mat, vec, beta=beta, alpha=alpha)

    def addmv_(self: Tensor, mat: Tensor, vec: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
        return write_result(self, F.addmv(self, mat, vec, beta=beta, alpha=alpha))
