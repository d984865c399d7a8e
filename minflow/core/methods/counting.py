"""Counting, order statistics, cumulative operations and splitting as methods: `x.unique()`, `x.quantile(0.5)`."""

from __future__ import annotations

from .. import functions as F
from ..base.errors import DTypeError
from ..functionalize import overwrite, store
from ..messages.suggestions import hint_methods
from ..source_location import fail


@hint_methods
class Counting:
    """Counts, quantiles, operations along an axis, stacking and splitting."""

    # ---- along an axis ----------------------------------------------------------------------------------------------

    @F.accept_axis
    def cumprod(self, dim, *, dtype=None):
        return F.cumprod(self, dim, dtype=dtype)

    def cumprod_(self, dim, *, dtype=None):
        if dtype is not None and dtype is not self.dtype:
            fail(
                DTypeError,
                f"cumprod_: the tensor is {self.dtype.name}, and in place it keeps its dtype",
                "x.cumprod(dim, dtype=...)",
                x=self,
            )
        return overwrite(F.cumprod, self, dim)

    @F.accept_axis
    def cummax(self, dim):
        return F.cummax(self, dim)

    @F.accept_axis
    def cummin(self, dim):
        return F.cummin(self, dim)

    @F.accept_axis
    def logcumsumexp(self, dim):
        return F.logcumsumexp(self, dim)

    @F.accept_axis
    def diff(self, n=1, dim=-1, prepend=None, append=None):
        return F.diff(self, n, dim, prepend, append)

    @F.accept_axis
    def nansum(self, dim=None, keepdim=False, *, dtype=None):
        return F.nansum(self, dim, keepdim, dtype=dtype)

    @F.accept_axis
    def nanmean(self, dim=None, keepdim=False, *, dtype=None):
        return F.nanmean(self, dim, keepdim, dtype=dtype)

    @F.accept_axis
    def count_nonzero(self, dim=None):
        return F.count_nonzero(self, dim)

    @F.accept_axis
    def aminmax(self, *, dim=None, keepdim=False):
        return F.aminmax(self, dim=dim, keepdim=keepdim)

    # ---- order statistics
    # -----------------------------------------------------------------------------------------------------

    @F.accept_axis
    def nanmedian(self, dim=None, keepdim=False):
        return F.nanmedian(self, dim, keepdim)

    @F.accept_axis
    def quantile(self, q, dim=None, keepdim=False, *, interpolation="linear"):
        return F.quantile(self, q, dim, keepdim, interpolation=interpolation)

    @F.accept_axis
    def nanquantile(self, q, dim=None, keepdim=False, *, interpolation="linear"):
        return F.nanquantile(self, q, dim, keepdim, interpolation=interpolation)

    @F.accept_axis
    def mode(self, dim=-1, keepdim=False):
        return F.mode(self, dim, keepdim)

    @F.accept_axis
    def kthvalue(self, k, dim=-1, keepdim=False):
        return F.kthvalue(self, k, dim, keepdim)

    def msort(self):
        return F.msort(self)

    # ---- counts -----------------------------------------------------------------------------------------------------

    def bincount(self, weights=None, minlength=0):
        return F.bincount(self, weights, minlength)

    def histc(self, bins=100, min=0, max=0):
        return F.histc(self, bins, min, max)

    def histogram(self, bins=100, *, range=None, weight=None, density=False):
        return F.histogram(self, bins, range=range, weight=weight, density=density)

    def unique(self, sorted=True, return_inverse=False, return_counts=False, dim=None):
        return F.unique(self, sorted, return_inverse, return_counts, dim)

    def unique_consecutive(self, return_inverse=False, return_counts=False, dim=None):
        return F.unique_consecutive(self, return_inverse, return_counts, dim)

    def multinomial(self, num_samples, replacement=False, *, generator=None):
        return F.multinomial(self, num_samples, replacement, generator=generator)

    def in_top_k(self, predictions, k):
        """True for each row whose class is among the `k` largest of its scores."""
        return F.in_top_k(self, predictions, k)

    def nms(self, scores, iou_threshold):
        return F.nms(self, scores, iou_threshold)

    # ---- stacking and splitting
    # --------------------------------------------------------------------------------------------

    @F.accept_axis
    def tensor_split(self, indices_or_sections, dim=0):
        return F.tensor_split(self, indices_or_sections, dim)

    def hsplit(self, indices_or_sections):
        return F.hsplit(self, indices_or_sections)

    def vsplit(self, indices_or_sections):
        return F.vsplit(self, indices_or_sections)

    def dsplit(self, indices_or_sections):
        return F.dsplit(self, indices_or_sections)

    def split_with_sizes(self, split_sizes, dim=0):
        return F.split_with_sizes(self, split_sizes, dim)

    def unsafe_chunk(self, chunks, dim=0):
        return F.unsafe_chunk(self, chunks, dim)

    def unsafe_split(self, split_size, dim=0):
        return F.unsafe_split(self, split_size, dim)

    def unsafe_split_with_sizes(self, split_sizes, dim=0):
        return F.unsafe_split_with_sizes(self, split_sizes, dim)

    def fliplr(self):
        return F.fliplr(self)

    def flipud(self):
        return F.flipud(self)

    def rot90(self, k=1, dims=(0, 1)):
        return F.rot90(self, k, dims)

    def narrow_copy(self, dim, start, length):
        return F.narrow_copy(self, dim, start, length)

    def repeat_interleave(self, repeats, dim=None, *, output_size=None):
        return F.repeat_interleave(self, repeats, dim, output_size=output_size)

    def moveaxis(self, source, destination):
        return F.movedim(self, source, destination)

    def sum_to_size(self, *size):
        """Sum to a shape that broadcasts to that of the tensor."""
        return F.sum_to_size(self, *size)

    # ---- products ---------------------------------------------------------------------------------------------------

    def inner(self, other):
        return F.inner(self, other)

    def kron(self, other):
        return F.kron(self, other)

    def trace(self):
        return F.trace(self)

    def ger(self, vec2):
        return F.ger(self, vec2)

    def addmv(self, mat, vec, *, beta=1, alpha=1):
        return F.addmv(self, mat, vec, beta=beta, alpha=alpha)

    def addmv_(self, mat, vec, *, beta=1, alpha=1):
        return store(self, F.addmv(self, mat, vec, beta=beta, alpha=alpha))
