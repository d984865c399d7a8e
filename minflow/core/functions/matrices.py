"""Solving, inverting and factorizing matrices, with the ops of `linear_solvers` and `factorization`.

All take stacks of matrices: the last two axes are the matrix. Read next: `matrix_products.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..base.errors import DTypeError, LinAlgError, OutOfRangeError, ShapeError, TraceError
from ..mode import MODE
from ..ops import elementwise as e, factorization, linear_solvers, shape as s
from ..ops.linear_solvers import transposed
from ..source_location import fail
from ..spec import finfo, int32
from . import return_types
from .arguments import is_tensor
from .joining import stack
from .linear_algebra import matmul, promoted

if TYPE_CHECKING:
    from ..tensor import Tensor


def eye_of(x: Tensor, n: int) -> Tensor:
    """The n x n identity in the dtype of x."""
    return factorization.diagonal_matrix(s.filled(x.spec.replace(shape=(n,)), 1))


def none_of(x: Tensor) -> Tensor:
    """An empty tensor, which PyTorch returns for outputs that were not requested."""
    return s.zeros_of(x.spec.replace(shape=(0,)))


# ---- inverses and linear systems
# ------------------------------------------------------------------------------------------


def inverse(input: Tensor) -> Tensor:
    """The inverse matrix. Raises LinAlgError if a matrix is singular."""
    return linear_solvers.inverse(input)


def pinv(
    input: Tensor,
    rtol: Tensor | float | None = None,
    *,
    atol: Tensor | float | None = None,
    hermitian: bool = False,
    rcond: Tensor | float | None = None,
) -> Tensor:
    """The Moore-Penrose pseudo-inverse: the inverse if it exists, else the minimum-norm least-squares solution.

    Singular values up to max(atol, rtol * the largest) count as 0; rtol is max(m, n) * eps by default.
    """
    linear_solvers.check_matrices("pinv", input.spec)
    rtol, atol = [x.item() if is_tensor(x) else x for x in (rcond if rtol is None else rtol, atol)]
    for name, value in (("rtol", rtol), ("atol", atol)):
        if value is not None and not isinstance(value, int | float):
            what = f"pinv: {name} must be a number, got {type(value).__name__}"
            fail(DTypeError, what, f"{name} as a number", input=input)
    rtol = (0.0 if atol else smallest(input)) if rtol is None else rtol
    return linear_solvers.pinv(input, rtol=float(rtol), atol=float(atol or 0.0))


def smallest(input: Tensor) -> float:
    """The fraction of the largest singular value below which one counts as 0."""
    return max(input.spec.shape[-2:]) * finfo(input.spec.dtype).eps


def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """Older name for `pinv`, with its older default."""
    return pinv(input, rcond)


def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """X with A @ X = B (left=False: X @ A = B); B may be a vector, or a stack of vectors if A is a stack.

    A: float (..., n, n).  B: (..., n, k) or (..., n).  Raises LinAlgError if a matrix is singular.
    """
    A, B = promoted("solve", A, B)
    if B.spec.ndim == 1 or (A.spec.ndim - 1 == B.spec.ndim and B.spec.shape == A.spec.shape[:-1]):
        return linear_solvers.solve(A if left else transposed(A), B.unsqueeze(-1)).squeeze(-1)
    return linear_solvers.solve(A, B) if left else transposed(linear_solvers.solve(transposed(A), transposed(B)))


def solve_triangular(A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:
    """X with A @ X = B, reading only one triangle of A; a 0 on the diagonal gives inf and NaN."""
    A, B = promoted("solve_triangular", A, B)
    if left:
        return linear_solvers.solve_triangular(A, B, upper=bool(upper), unit=bool(unitriangular))
    return transposed(
        linear_solvers.solve_triangular(transposed(A), transposed(B), upper=not upper, unit=bool(unitriangular))
    )


def triangular_solve(
    input: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> return_types.triangular_solve:
    """Older name for `solve_triangular`; returns (solution, A)."""
    matrix, upper = (transposed(A), not upper) if transpose else (A, upper)
    return return_types.triangular_solve(solve_triangular(matrix, input, upper=upper, unitriangular=unitriangular), A)


def lstsq(
    A: Tensor, B: Tensor, rcond: Tensor | float | None = None, *, driver: str | None = None
) -> return_types.lstsq:
    """X that minimizes |A @ X - B|, by the pseudo-inverse: (solution, residuals, rank, singular_values).

    driver selects which of the others are not empty, like LAPACK's routines of that name: "gels" gives the residuals
    (squared distance per column of B, if A has more rows than columns and full rank), "gelsd" and "gelss" also rank and
    singular values, "gelsy" (the default) the rank. Eager only: residuals depend on the rank.
    """
    A, B = promoted("lstsq", A, B)
    vector = B.spec.ndim == A.spec.ndim - 1
    columns = B.unsqueeze(-1) if vector else B
    (m, n), rtol = linear_solvers.check_matrices("lstsq", A.spec).shape[-2:], smallest(A) if rcond is None else rcond
    if columns.spec.shape[-2] != m:
        fail(ShapeError, f"lstsq: A has {m} rows, B has {columns.spec.shape[-2]}", "as many rows in both", A=A, B=B)
    rank, solution = matrix_rank(A.detach(), rtol=rtol), matmul(pinv(A, rtol), columns)
    if driver not in (None, "gels", "gelsy", "gelsd", "gelss"):
        fail(OutOfRangeError, f"lstsq: driver is {driver!r}", '"gels", "gelsy", "gelsd" or "gelss"', A=A, B=B)
    whole = driver not in (None, "gelsy") and m > n and bool((rank == n).all())
    residuals = (matmul(A, solution) - columns).square().sum(-2) if whole else none_of(A)
    singular = svdvals(A.detach()) if driver in ("gelsd", "gelss") else none_of(A)
    rank = none_of(rank) if driver == "gels" else rank
    return return_types.lstsq(solution.squeeze(-1) if vector else solution, residuals, rank, singular)


def matrix_rank(
    A: Tensor,
    tol: Tensor | float | None = None,
    hermitian: bool = False,
    *,
    rtol: Tensor | float | None = None,
    atol: Tensor | float | None = None,
) -> Tensor:
    """The number of singular values greater than max(atol, rtol * the largest), as int64."""
    values = svdvals(A)
    atol = tol if atol is None else atol
    rtol = (0.0 if atol is not None else smallest(A)) if rtol is None else rtol
    if not values.spec.shape[-1]:
        return values.sum(-1).long()
    bound = rtol * values.amax(-1, keepdim=True)
    return (values > (bound if atol is None else e.maximum(bound, atol))).sum(-1)


# ---- determinants ----------------------------------------------------------------------------------------------------


def det(input: Tensor) -> Tensor:
    """The determinant of a square matrix."""
    return linear_solvers.det(input)


def slogdet(input: Tensor) -> return_types.slogdet:
    """(sign, logabsdet) of the determinant; 0 and -inf for a singular matrix."""
    return return_types.slogdet(*linear_solvers.slogdet(input))


def logdet(input: Tensor) -> Tensor:
    """The logarithm of the determinant: NaN if it is negative, -inf if it is 0."""
    sign, size = linear_solvers.slogdet(input)
    return e.where(sign < 0, float("nan"), size)


# ---- factorizations
# ---------------------------------------------------------------------------------------------------------


def cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """The lower triangular L with L @ L.T = input (upper: U with U.T @ U = input).

    input must be symmetric positive definite, else LinAlgError; only its lower (upper: upper) triangle is read.
    """
    return transposed(factorization.cholesky(transposed(input))) if upper else factorization.cholesky(input)


def with_info(function: Callable[..., Tensor], A: Tensor, *others: Tensor, check_errors: bool) -> tuple[Tensor, Tensor]:
    """(function(A, *others), info): info is int32 with the batch shape of A, 1 where a matrix has no result (NaN then).

    check_errors: raise LinAlgError instead. Not in a graph, which has no elements while it is built.
    """
    if MODE.get().trace is not None:
        what = f"{function.__name__}_ex: whether a matrix has a result is not known while a graph is built"
        fail(TraceError, what, f"linalg.{function.__name__}", A=A)
    batch = A.shape[:-2]
    try:
        return function(A, *others), s.zeros_of(A.spec.replace(shape=batch, dtype=int32))
    except LinAlgError:
        if check_errors:
            raise
    results, info = [], []
    for parts in zip(*(x.reshape(-1, *x.shape[x.ndim - (1 if x.ndim < A.ndim else 2) :]) for x in (A, *others))):
        try:
            results.append(function(*parts))
            info.append(0)
        except LinAlgError:
            results.append(function(eye_of(A, A.shape[-1]), *parts[1:]) * math.nan)
            info.append(1)
    found = stack(results)
    return found.reshape(*batch, *found.shape[1:]), A.new_tensor(info, dtype=int32).reshape(*batch)


def inv_ex(A: Tensor, *, check_errors: bool = False) -> return_types.inv_ex:
    """(inverse, info): info is 1 for a singular matrix, whose inverse is NaN; check_errors: LinAlgError instead."""
    return return_types.inv_ex(*with_info(inverse, A, check_errors=check_errors))


def cholesky_ex(input: Tensor, *, upper: bool = False, check_errors: bool = False) -> return_types.cholesky_ex:
    """(L, info): info is 1 for a matrix that is not positive definite, whose L is NaN; see `cholesky`, `inv_ex`."""
    L, info = with_info(cholesky, input, check_errors=check_errors)
    return return_types.cholesky_ex(transposed(L) if upper else L, info)


def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> return_types.solve_ex:
    """(X, info): info is 1 for a singular A, whose X is NaN; see `solve` and `inv_ex`."""
    if not left:
        found, info = with_info(solve, transposed(A), transposed(B), check_errors=check_errors)
        return return_types.solve_ex(transposed(found), info)
    return return_types.solve_ex(*with_info(solve, A, B, check_errors=check_errors))


def cholesky_inverse(L: Tensor, upper: bool = False) -> Tensor:
    """The inverse of L @ L.T (upper: of L.T @ L)."""
    lower = transposed(L) if upper else L
    inside = linear_solvers.solve_triangular(lower, eye_of(L, L.spec.shape[-1]), upper=False, unit=False)
    return matmul(transposed(inside), inside)


def cholesky_solve(B: Tensor, L: Tensor, upper: bool = False) -> Tensor:
    """X with L @ L.T @ X = B (upper: L.T @ L @ X = B)."""
    lower = transposed(L) if upper else L
    return solve_triangular(transposed(lower), solve_triangular(lower, B, upper=False), upper=True)


def qr(A: Tensor, mode: str = "reduced") -> return_types.qr:
    """(Q, R): orthonormal columns and an upper triangular matrix with Q @ R = A. mode: "reduced", "complete" or "r" (no
    Q); `some` of the older flow.qr is True for "reduced", False for "complete".
    """
    mode = {True: "reduced", False: "complete"}[mode] if isinstance(mode, bool) else mode
    if mode not in ("reduced", "complete", "r"):
        fail(OutOfRangeError, f"qr: mode is {mode!r}", 'mode="reduced", "complete" or "r"', A=A)
    q, r = factorization.qr(A, complete=mode == "complete")
    return return_types.qr(none_of(A) if mode == "r" else q, r)


def eigh(A: Tensor, UPLO: str = "L") -> return_types.eigh:
    """(eigenvalues, eigenvectors) of a symmetric matrix: ascending values, vectors as columns. UPLO: the triangle that
    is read. The gradient through the vectors is 0 / 0 if two values are equal.
    """
    if UPLO not in ("L", "U", "l", "u"):
        fail(OutOfRangeError, f"eigh: UPLO is {UPLO!r}", '"L" reads the lower triangle, "U" the upper one', A=A)
    return return_types.eigh(*factorization.eigh(A if UPLO in "Ll" else transposed(A)))


def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    """The eigenvalues of a symmetric matrix, in ascending order."""
    return eigh(A, UPLO)[0]


def eig(A: Tensor) -> return_types.eig:
    """(eigenvalues, eigenvectors) of a square matrix, complex and unordered; vectors as columns. No gradient; for a
    symmetric matrix `eigh` has one.
    """
    return return_types.eig(*factorization.eig(A))


def eigvals(A: Tensor) -> Tensor:
    """The eigenvalues of a square matrix, complex and unordered. No gradient."""
    return eig(A)[0]


def linalg_svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> return_types.linalg_svd:
    """(U, S, Vh) with A = U @ diag(S) @ Vh, S descending. full_matrices: U and Vh are square.

    The gradient through U and Vh is infinite if two singular values are equal; that of S alone always exists.
    """
    return return_types.linalg_svd(*factorization.svd(A, complete=bool(full_matrices)))


def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> return_types.svd:
    """(U, S, V), with V instead of the Vh of linalg.svd. some: U and V have only as many columns as S has elements."""
    u, values, v = factorization.svd(input, complete=not some)
    if not compute_uv:
        (m, n), batch = input.spec.shape[-2:], input.spec.shape[:-2]
        u, v = (s.zeros_of(input.spec.replace(shape=(*batch, k, k))) for k in (m, n))
    return return_types.svd(u, values, transposed(v))


def svdvals(A: Tensor, *, driver: str | None = None) -> Tensor:
    """The singular values, in descending order."""
    return factorization.svd(A, complete=False)[1]


def svd_lowrank(A: Tensor, q: int = 6, niter: int = 2, M: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """(U, S, V) of the q largest singular values, taken from the full svd: exact, while PyTorch's is randomized."""
    u, values, v = svd(A if M is None else A - M)
    return u[..., :q], values[..., :q], v[..., :q]


def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    """(U, S, V) of the principal components: `svd_lowrank` of A minus the mean of its rows."""
    q = min(6, *A.spec.shape[-2:]) if q is None else q
    return svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, q)


def lu_factor(A: Tensor, *, pivot: bool = True) -> return_types.lu_factor:
    """(LU, pivots): both triangles in one matrix; row i was swapped with row pivots[i] - 1."""
    if pivot is not True:
        fail(LinAlgError, "lu_factor: pivot=False may divide by 0", "pivot=True", A=A)
    return return_types.lu_factor(*factorization.lu(A))


def lu_unpack(
    LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> return_types.lu_unpack:
    """(P, L, U) with P @ L @ U = A, from the result of `lu_factor(A)`."""
    (m, n), dtype = LU_data.spec.shape[-2:], LU_data.spec.dtype
    P = L = U = none_of(LU_data)
    if unpack_data:
        k = min(m, n)
        L, U = LU_data[..., :k].tril(-1) + eye_of(LU_data, m)[:, :k], LU_data[..., :k, :].triu()
    if unpack_pivots:
        P = factorization.lu_permutation(LU_pivots, size=m, dtype=dtype)
    return return_types.lu_unpack(P, L, U)


def packed_lu(A: Tensor, pivot: bool = True, get_infos: bool = False) -> tuple[Tensor, ...]:
    """(LU, pivots) as from `lu_factor`, by its older name flow.lu; get_infos: also a 0 for each matrix."""
    found = lu_factor(A, pivot=pivot)
    return (*found, s.zeros_of(A.spec.replace(shape=A.spec.shape[:-2], dtype=int32))) if get_infos else tuple(found)


def lu(A: Tensor, *, pivot: bool = True) -> return_types.lu_unpack:
    """(P, L, U) with P @ L @ U = A."""
    return lu_unpack(*lu_factor(A, pivot=pivot))


def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """X with A @ X = b, from the result of `lu_factor(A)`; linalg.lu_solve has its arguments in another order."""
    return linalg_lu_solve(LU_data, LU_pivots, b)


def linalg_lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False) -> Tensor:
    """X with A @ X = B, from the result of `lu_factor(A)` (adjoint: A.T @ X = B; left=False: X @ A = B)."""
    if not left:
        return transposed(linalg_lu_solve(LU, pivots, transposed(B), adjoint=not adjoint))
    P, L, U = lu_unpack(LU, pivots)
    if adjoint:
        half = solve_triangular(transposed(U), B, upper=False)
        return matmul(P, solve_triangular(transposed(L), half, upper=True, unitriangular=True))
    half = solve_triangular(L, matmul(transposed(P), B), upper=False, unitriangular=True)
    return solve_triangular(U, half, upper=True)
