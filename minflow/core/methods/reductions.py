"""Reductions and sorting along axes as methods: `x.sum(1)`, `x.argmax(-1)`, `x.sort()`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import functions as F
from ..messages.suggestions import hint_methods
from .counts_and_splits import CountsAndSplits

if TYPE_CHECKING:
    from ..base.dtypes import DTypeLike
    from ..functions import return_types
    from ..tensor import Tensor


@hint_methods
class Reductions(CountsAndSplits):
    """Reductions and sorting along axes."""

    @F.accept_axis
    def sum(
        self: Tensor,
        dim: int | Sequence[int] | None = None,
        keepdim: bool = False,
        *,
        dtype: DTypeLike | None = None,
        axis: int | Sequence[int] | None = None,
        keepdims: bool = False,
    ) -> Tensor:
        return F.sum(self, dim, keepdim, dtype=dtype, axis=axis, keepdims=keepdims)

    @F.accept_axis
    def mean(
        self: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, dtype: DTypeLike | None = None
    ) -> Tensor:
        return F.mean(self, dim, keepdim) if dtype is None else F.mean(self, dim, keepdim, dtype=dtype)

    @F.accept_axis
    def prod(
        self: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, dtype: DTypeLike | None = None
    ) -> Tensor:
        return F.prod(self, dim, keepdim) if dtype is None else F.prod(self, dim, keepdim, dtype=dtype)

    @F.accept_axis
    def var(
        self: Tensor,
        dim: int | Sequence[int] | None = None,
        unbiased: bool = True,
        keepdim: bool = False,
        *,
        correction: float | None = None,
    ) -> Tensor:
        return F.var(self, dim, unbiased, keepdim, correction=correction)

    @F.accept_axis
    def std(
        self: Tensor,
        dim: int | Sequence[int] | None = None,
        unbiased: bool = True,
        keepdim: bool = False,
        *,
        correction: float | None = None,
    ) -> Tensor:
        return F.std(self, dim, unbiased, keepdim, correction=correction)

    @F.accept_axis
    def min(self: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
        return F.min(self, dim, keepdim)

    @F.accept_axis
    def max(self: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
        return F.max(self, dim, keepdim)

    @F.accept_axis
    def amin(self: Tensor, dim: int | Sequence[int] | None = (), keepdim: bool = False) -> Tensor:
        return F.amin(self, dim, keepdim)

    @F.accept_axis
    def amax(self: Tensor, dim: int | Sequence[int] | None = (), keepdim: bool = False) -> Tensor:
        return F.amax(self, dim, keepdim)

    @F.accept_axis
    def argmin(self: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
        return F.argmin(self, dim, keepdim)

    @F.accept_axis
    def argmax(self: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
        return F.argmax(self, dim, keepdim)

    @F.accept_axis
    def any(self: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False) -> Tensor:
        return F.any(self, dim, keepdim)

    @F.accept_axis
    def all(self: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False) -> Tensor:
        return F.all(self, dim, keepdim)

    @F.accept_axis
    def median(self: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
        return F.median(self, dim, keepdim)

    @F.accept_axis
    def norm(
        self: Tensor,
        p: float | str = 2,
        dim: int | Sequence[int] | None = None,
        keepdim: bool = False,
        dtype: DTypeLike | None = None,
    ) -> Tensor:
        return F.norm(self, p, dim, keepdim, dtype)

    @F.accept_axis
    def logsumexp(self: Tensor, dim: int, keepdim: bool = False) -> Tensor:
        return F.logsumexp(self, dim, keepdim)

    @F.accept_axis
    def cumsum(self: Tensor, dim: int, *, dtype: DTypeLike | None = None) -> Tensor:
        return F.cumsum(self, dim, dtype=dtype)

    @F.accept_axis
    def topk(self: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> return_types.topk:
        return F.topk(self, k, dim, largest, sorted)

    @F.accept_axis
    def sort(self: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> return_types.sort:
        return F.sort(self, dim, descending, stable)

    @F.accept_axis
    def argsort(self: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
        return F.argsort(self, dim, descending, stable)
