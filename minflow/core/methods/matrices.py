"""Solving, inverting and factorizing matrices as methods: `A.det()`, `A.inverse()`, `A.cholesky()`."""

from __future__ import annotations

from .. import functions as F
from ..functionalize import store
from ..functions import matrices as m
from ..messages.suggestions import hint_methods


@hint_methods
class Matrices:
    """Linear algebra on stacks of matrices: the last two axes."""

    def det(self):
        return F.det(self)

    def logdet(self):
        return F.logdet(self)

    def slogdet(self):
        return F.slogdet(self)

    def inverse(self):
        return F.inverse(self)

    def pinverse(self, rcond: float = 1e-15):
        return F.pinverse(self, rcond)

    def cholesky(self, upper: bool = False):
        return F.cholesky(self, upper)

    def cholesky_inverse(self, upper: bool = False):
        return F.cholesky_inverse(self, upper)

    def cholesky_solve(self, input2, upper: bool = False):
        return F.cholesky_solve(self, input2, upper)

    def triangular_solve(self, A, upper: bool = True, transpose: bool = False, unitriangular: bool = False):
        return F.triangular_solve(self, A, upper, transpose, unitriangular)

    def qr(self, some: bool = True):
        return F.qr(self, some)

    def svd(self, some: bool = True, compute_uv: bool = True):
        return F.svd(self, some, compute_uv)

    def lu(self, pivot: bool = True, get_infos: bool = False):
        return m.packed_lu(self, pivot, get_infos)

    def lu_solve(self, LU_data, LU_pivots):
        return F.lu_solve(self, LU_data, LU_pivots)

    def matrix_power(self, n: int):
        return F.matrix_power(self, n)

    def matrix_exp(self):
        return F.matrix_exp(self)

    def cross(self, other, dim: int | None = None):
        return F.cross(self, other, dim)

    def cov(self, *, correction: int = 1, fweights=None, aweights=None):
        return F.cov(self, correction=correction, fweights=fweights, aweights=aweights)

    def corrcoef(self):
        return F.corrcoef(self)

    def dist(self, other, p: float = 2):
        return F.dist(self, other, p)

    def renorm(self, p: float, dim: int, maxnorm: float):
        return F.renorm(self, p, dim, maxnorm)

    def addr(self, vec1, vec2, *, beta=1, alpha=1):
        return F.addr(self, vec1, vec2, beta=beta, alpha=alpha)

    def renorm_(self, p: float, dim: int, maxnorm: float):
        return store(self, F.renorm(self.clone(), p, dim, maxnorm))

    def addr_(self, vec1, vec2, *, beta=1, alpha=1):
        return store(self, F.addr(self, vec1, vec2, beta=beta, alpha=alpha))

    def addbmm_(self, batch1, batch2, *, beta=1, alpha=1):
        return store(self, F.addbmm(self, batch1, batch2, beta=beta, alpha=alpha))

    def addbmm(self, batch1, batch2, *, beta=1, alpha=1):
        return F.addbmm(self, batch1, batch2, beta=beta, alpha=alpha)

    def vdot(self, other):
        return F.vdot(self, other)
