"""Solving, inverting and factorizing matrices as methods: `A.det()`, `A.inverse()`, `A.cholesky()`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import functions as F
from ..functionalize import write_result
from ..functions import matrices as m
from ..messages.suggestions import hint_methods

if TYPE_CHECKING:
    from ..functions import return_types
    from ..tensor import Tensor


@hint_methods
class Matrices:
    """Linear algebra on stacks of matrices: the last two axes."""

    def det(self: Tensor) -> Tensor:
        return F.det(self)

    def logdet(self: Tensor) -> Tensor:
        return F.logdet(self)

    def slogdet(self: Tensor) -> return_types.slogdet:
        return F.slogdet(self)

    def inverse(self: Tensor) -> Tensor:
        return F.inverse(self)

    def pinverse(self: Tensor, rcond: float = 1e-15) -> Tensor:
        return F.pinverse(self, rcond)

    def cholesky(self: Tensor, upper: bool = False) -> Tensor:
        return F.cholesky(self, upper)

    def cholesky_inverse(self: Tensor, upper: bool = False) -> Tensor:
        return F.cholesky_inverse(self, upper)

    def cholesky_solve(self: Tensor, input2: Tensor, upper: bool = False) -> Tensor:
        return F.cholesky_solve(self, input2, upper)

    def triangular_solve(
        self: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
    ) -> return_types.triangular_solve:
        return F.triangular_solve(self, A, upper, transpose, unitriangular)

    def qr(self: Tensor, some: Any = True) -> return_types.qr:
        return F.qr(self, some)

    def svd(self: Tensor, some: bool = True, compute_uv: bool = True) -> return_types.svd:
        return F.svd(self, some, compute_uv)

    def lu(self: Tensor, pivot: bool = True, get_infos: bool = False) -> tuple[Tensor, ...]:
        return m.packed_lu(self, pivot, get_infos)

    def lu_solve(self: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
        return F.lu_solve(self, LU_data, LU_pivots)

    def matrix_power(self: Tensor, n: int) -> Tensor:
        return F.matrix_power(self, n)

    def matrix_exp(self: Tensor) -> Tensor:
        return F.matrix_exp(self)

    def cross(self: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
        return F.cross(self, other, dim)

    def cov(
        self: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
    ) -> Tensor:
        return F.cov(self, correction=correction, fweights=fweights, aweights=aweights)

    def corrcoef(self: Tensor) -> Tensor:
        return F.corrcoef(self)

    def dist(self: Tensor, other: Tensor | float, p: float = 2) -> Tensor:
        return F.dist(self, other, p)

    def renorm(self: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
        return F.renorm(self, p, dim, maxnorm)

    def addr(self: Tensor, vec1: Tensor, vec2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
        return F.addr(self, vec1, vec2, beta=beta, alpha=alpha)

    def renorm_(self: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
        return write_result(self, F.renorm(self.clone(), p, dim, maxnorm))

    def addr_(self: Tensor, vec1: Tensor, vec2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
        return write_result(self, F.addr(self, vec1, vec2, beta=beta, alpha=alpha))

    def addbmm_(self: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
        return write_result(self, F.addbmm(self, batch1, batch2, beta=beta, alpha=alpha))

    def addbmm(self: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
        return F.addbmm(self, batch1, batch2, beta=beta, alpha=alpha)

    def vdot(self: Tensor, other: Tensor) -> Tensor:
        return F.vdot(self, other)
