"""Reductions and sorting along axes as methods: `x.sum(1)`, `x.argmax(-1)`, `x.sort()`."""

from __future__ import annotations

from .. import functions as F
from ..messages.suggestions import hint_methods
from .counting import Counting


@hint_methods
class Reductions(Counting):
    """Reductions and sorting along axes."""

    @F.accept_axis
    def sum(self, dim=None, keepdim=False, *, dtype=None, axis=None, keepdims=False):
        return F.sum(self, dim, keepdim, dtype=dtype, axis=axis, keepdims=keepdims)

    @F.accept_axis
    def mean(self, dim=None, keepdim=False, *, dtype=None):
        return F.mean(self, dim, keepdim) if dtype is None else F.mean(self, dim, keepdim, dtype=dtype)

    @F.accept_axis
    def prod(self, dim=None, keepdim=False, *, dtype=None):
        return F.prod(self, dim, keepdim) if dtype is None else F.prod(self, dim, keepdim, dtype=dtype)

    @F.accept_axis
    def var(self, dim=None, unbiased=True, keepdim=False, *, correction=None):
        return F.var(self, dim, unbiased, keepdim, correction=correction)

    @F.accept_axis
    def std(self, dim=None, unbiased=True, keepdim=False, *, correction=None):
        return F.std(self, dim, unbiased, keepdim, correction=correction)

    @F.accept_axis
    def min(self, dim=None, keepdim=False):
        return F.min(self, dim, keepdim)

    @F.accept_axis
    def max(self, dim=None, keepdim=False):
        return F.max(self, dim, keepdim)

    @F.accept_axis
    def amin(self, dim=(), keepdim=False):
        return F.amin(self, dim, keepdim)

    @F.accept_axis
    def amax(self, dim=(), keepdim=False):
        return F.amax(self, dim, keepdim)

    @F.accept_axis
    def argmin(self, dim=None, keepdim=False):
        return F.argmin(self, dim, keepdim)

    @F.accept_axis
    def argmax(self, dim=None, keepdim=False):
        return F.argmax(self, dim, keepdim)

    @F.accept_axis
    def any(self, dim=None, keepdim=False):
        return F.any(self, dim, keepdim)

    @F.accept_axis
    def all(self, dim=None, keepdim=False):
        return F.all(self, dim, keepdim)

    @F.accept_axis
    def median(self, dim=None, keepdim=False):
        return F.median(self, dim, keepdim)

    @F.accept_axis
    def norm(self, p=2, dim=None, keepdim=False, dtype=None):
        return F.norm(self, p, dim, keepdim, dtype)

    @F.accept_axis
    def logsumexp(self, dim, keepdim=False):
        return F.logsumexp(self, dim, keepdim)

    @F.accept_axis
    def cumsum(self, dim, *, dtype=None):
        return F.cumsum(self, dim, dtype=dtype)

    @F.accept_axis
    def topk(self, k, dim=-1, largest=True, sorted=True):
        return F.topk(self, k, dim, largest, sorted)

    @F.accept_axis
    def sort(self, dim=-1, descending=False, stable=False):
        return F.sort(self, dim, descending, stable)

    @F.accept_axis
    def argsort(self, dim=-1, descending=False, stable=False):
        return F.argsort(self, dim, descending, stable)
