"""Solving, inverting and taking apart matrices, by `core/ops/linear_solvers.py` and `core/ops/factorization.py`.

All take stacks of matrices: the last two axes are the matrix. Read next: `matrix_products.py`.
"""

from __future__ import annotations

from ..base.errors import DTypeError, LinAlgError, OutOfRangeError, ShapeError
from ..ops import elementwise as e
from ..ops import factorization, linear_solvers
from ..ops import shape as s
from ..ops.linear_solvers import turned
from ..spec import finfo, int32
from ..source_location import fail
from . import return_types
from .linear_algebra import matmul, met


def eye_of(x, n: int):
    """The identity of n rows in the dtype of x."""
    return factorization.diagonal_matrix(s.full(shape=(n,), value=1, dtype=x.spec.dtype))


def none_of(x):
    """An empty tensor, where PyTorch gives one for what was not asked."""
    return s.full(shape=(0,), value=0, dtype=x.spec.dtype)


# ---- inverses and equations ------------------------------------------------------------------------------------------


def inverse(input):
    """The matrix whose product with `input` is the identity. Raises LinAlgError where a matrix is singular."""
    return linear_solvers.inverse(input)


def pinv(input, rtol=None, *, atol=None, hermitian: bool = False, rcond=None):
    """The pseudo-inverse of Moore and Penrose: the inverse where there is one, else the smallest that solves least
    squares. Singular values up to max(atol, rtol * the largest) count as 0; rtol is max(m, n) * eps by default."""
    linear_solvers.matrices("pinv", input.spec)
    rtol = rcond if rtol is None else rtol
    for name, value in (("rtol", rtol), ("atol", atol)):
        if value is not None and not isinstance(value, int | float):
            fail(DTypeError, f"pinv: {name} is {type(value).__name__}", f"{name} as a number", input=input)
    rtol = (0.0 if atol else smallest(input)) if rtol is None else rtol
    return linear_solvers.pinv(input, rtol=float(rtol), atol=float(atol or 0.0))


def smallest(input) -> float:
    """Which part of the largest singular value counts as 0."""
    return max(input.spec.shape[-2:]) * finfo(input.spec.dtype).eps


def pinverse(input, rcond: float = 1e-15):
    """`pinv` by its older name, with its older default."""
    return pinv(input, rcond)


def solve(A, B, *, left: bool = True):
    """X where A @ X = B (left=False: X @ A = B); B may be a vector, or a stack of vectors where A is a stack.

    A: float (..., n, n).  B: (..., n, k) or (..., n).  Raises LinAlgError where a matrix is singular.
    """
    A, B = met("solve", A, B)
    if B.spec.ndim == 1 or (A.spec.ndim - 1 == B.spec.ndim and B.spec.shape == A.spec.shape[:-1]):
        return linear_solvers.solve(A if left else turned(A), B.unsqueeze(-1)).squeeze(-1)
    return linear_solvers.solve(A, B) if left else turned(linear_solvers.solve(turned(A), turned(B)))


def solve_triangular(A, B, *, upper: bool, left: bool = True, unitriangular: bool = False):
    """X where A @ X = B, reading one triangle of A alone; of a 0 on the diagonal come inf and NaN."""
    A, B = met("solve_triangular", A, B)
    if left:
        return linear_solvers.solve_triangular(A, B, upper=bool(upper), unit=bool(unitriangular))
    return turned(linear_solvers.solve_triangular(turned(A), turned(B), upper=not upper, unit=bool(unitriangular)))


def triangular_solve(input, A, upper: bool = True, transpose: bool = False, unitriangular: bool = False):
    """`solve_triangular` by its older name: (solution, A)."""
    matrix, upper = (turned(A), not upper) if transpose else (A, upper)
    return return_types.triangular_solve(solve_triangular(matrix, input, upper=upper, unitriangular=unitriangular), A)


def lstsq(A, B, rcond=None, *, driver=None):
    """X with the smallest |A @ X - B|, by the pseudo-inverse: (solution, residuals, rank, singular_values).

    driver says which of the others are not empty, as LAPACK's routines of that name compute them: "gels" gives the
    residuals (the squared distance of each column of B, where A has more rows than columns and full rank), "gelsd" and
    "gelss" also rank and singular values, "gelsy" (the default) the rank. Eager only: residuals depend on the rank.
    """
    A, B = met("lstsq", A, B)
    vector = B.spec.ndim == A.spec.ndim - 1
    columns = B.unsqueeze(-1) if vector else B
    (m, n), rtol = linear_solvers.matrices("lstsq", A.spec).shape[-2:], smallest(A) if rcond is None else rcond
    if columns.spec.shape[-2] != m:
        fail(ShapeError, f"lstsq: {m} rows of A and {columns.spec.shape[-2]} of B", "as many rows in both", A=A, B=B)
    rank, solution = matrix_rank(A.detach(), rtol=rtol), matmul(pinv(A, rtol), columns)
    if driver not in (None, "gels", "gelsy", "gelsd", "gelss"):
        fail(OutOfRangeError, f"lstsq: driver is {driver!r}", '"gels", "gelsy", "gelsd" or "gelss"', A=A, B=B)
    whole = driver not in (None, "gelsy") and m > n and bool((rank == n).all())
    residuals = (matmul(A, solution) - columns).square().sum(-2) if whole else none_of(A)
    singular = svdvals(A.detach()) if driver in ("gelsd", "gelss") else none_of(A)
    rank = none_of(rank) if driver == "gels" else rank
    return return_types.lstsq(solution.squeeze(-1) if vector else solution, residuals, rank, singular)


def matrix_rank(A, tol=None, hermitian: bool = False, *, rtol=None, atol=None):
    """How many singular values are greater than max(atol, rtol * the largest), as int64."""
    values = svdvals(A)
    atol = tol if atol is None else atol
    rtol = (0.0 if atol is not None else smallest(A)) if rtol is None else rtol
    if not values.spec.shape[-1]:
        return values.sum(-1).long()
    bound = rtol * values.amax(-1, keepdim=True)
    return (values > (bound if atol is None else e.maximum(bound, atol))).sum(-1)


# ---- determinants ----------------------------------------------------------------------------------------------------


def det(input):
    """The determinant of a square matrix."""
    return linear_solvers.det(input)


def slogdet(input):
    """(sign, logabsdet) of the determinant; of a singular matrix 0 and -inf."""
    return return_types.slogdet(*linear_solvers.slogdet(input))


def logdet(input):
    """The logarithm of the determinant: NaN where that is negative, -inf where it is 0."""
    sign, size = linear_solvers.slogdet(input)
    return e.where(sign < 0, float("nan"), size)


# ---- factors ---------------------------------------------------------------------------------------------------------


def cholesky(input, upper: bool = False):
    """The lower triangular L with L @ L.T = input (upper: U with U.T @ U = input). The matrix is symmetric and positive
    definite, else LinAlgError; its lower triangle is read (upper: the upper one)."""
    return turned(factorization.cholesky(turned(input))) if upper else factorization.cholesky(input)


def cholesky_inverse(L, upper: bool = False):
    """The inverse of L @ L.T (upper: of L.T @ L)."""
    lower = turned(L) if upper else L
    inside = linear_solvers.solve_triangular(lower, eye_of(L, L.spec.shape[-1]), upper=False, unit=False)
    return matmul(turned(inside), inside)


def cholesky_solve(B, L, upper: bool = False):
    """X where L @ L.T @ X = B (upper: L.T @ L @ X = B)."""
    lower = turned(L) if upper else L
    return solve_triangular(turned(lower), solve_triangular(lower, B, upper=False), upper=True)


def qr(A, mode="reduced"):
    """(Q, R): orthonormal columns and an upper triangle with Q @ R = A. mode: "reduced", "complete" or "r" (no Q);
    `some` of the older flow.qr is True for "reduced", False for "complete"."""
    mode = {True: "reduced", False: "complete"}[mode] if isinstance(mode, bool) else mode
    if mode not in ("reduced", "complete", "r"):
        fail(OutOfRangeError, f"qr: mode is {mode!r}", 'mode="reduced", "complete" or "r"', A=A)
    q, r = factorization.qr(A, complete=mode == "complete")
    return return_types.qr(none_of(A) if mode == "r" else q, r)


def eigh(A, UPLO: str = "L"):
    """(eigenvalues, eigenvectors) of a symmetric matrix: the values rise, the vectors are columns. UPLO: the triangle
    that is read. The gradient through the vectors is 0 / 0 where two values are equal."""
    if UPLO not in ("L", "U", "l", "u"):
        fail(OutOfRangeError, f"eigh: UPLO is {UPLO!r}", '"L" reads the lower triangle, "U" the upper one', A=A)
    return return_types.eigh(*factorization.eigh(A if UPLO in "Ll" else turned(A)))


def eigvalsh(A, UPLO: str = "L"):
    """The eigenvalues of a symmetric matrix, in rising order."""
    return eigh(A, UPLO)[0]


def eig(A):
    """(eigenvalues, eigenvectors) of any square matrix, complex and in no order; the vectors are columns. Without
    gradient: `eigh` of a symmetric matrix has one."""
    return return_types.eig(*factorization.eig(A))


def eigvals(A):
    """The eigenvalues of any square matrix, complex and in no order. Without gradient."""
    return eig(A)[0]


def linalg_svd(A, full_matrices: bool = True, *, driver=None):
    """(U, S, Vh) with A = U @ diag(S) @ Vh; S falls. full_matrices: U and Vh are square.

    The gradient through U and Vh is infinite where two singular values are equal; S alone always has one.
    """
    return return_types.linalg_svd(*factorization.svd(A, complete=bool(full_matrices)))


def svd(input, some: bool = True, compute_uv: bool = True):
    """(U, S, V): V and not its transpose as in linalg.svd; some: U and V are as narrow as S is long."""
    u, values, v = factorization.svd(input, complete=not some)
    if not compute_uv:
        (m, n), batch = input.spec.shape[-2:], input.spec.shape[:-2]
        u, v = (s.full(shape=(*batch, k, k), value=0, dtype=input.spec.dtype) for k in (m, n))
    return return_types.svd(u, values, turned(v))


def svdvals(A, *, driver=None):
    """The singular values, in falling order."""
    return factorization.svd(A, complete=False)[1]


def svd_lowrank(A, q: int = 6, niter: int = 2, M=None):
    """(U, S, V) of the q largest singular values, here taken from the whole svd: exact where PyTorch's draws."""
    u, values, v = svd(A if M is None else A - M)
    return u[..., :q], values[..., :q], v[..., :q]


def pca_lowrank(A, q: int | None = None, center: bool = True, niter: int = 2):
    """(U, S, V) of the principal components: `svd_lowrank` of A less the mean of its rows."""
    q = min(6, *A.spec.shape[-2:]) if q is None else q
    return svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, q)


def lu_factor(A, *, pivot: bool = True):
    """(LU, pivots): both triangles in one matrix; row i was swapped with row pivots[i] - 1."""
    if pivot is not True:
        fail(LinAlgError, "lu_factor: pivot=False divides by what may be 0", "pivot=True", A=A)
    return return_types.lu_factor(*factorization.lu(A))


def lu_unpack(LU_data, LU_pivots, unpack_data: bool = True, unpack_pivots: bool = True):
    """(P, L, U) with P @ L @ U = A, of what `lu_factor(A)` gave."""
    (m, n), dtype = LU_data.spec.shape[-2:], LU_data.spec.dtype
    P = L = U = none_of(LU_data)
    if unpack_data:
        k = min(m, n)
        L, U = LU_data[..., :k].tril(-1) + eye_of(LU_data, m)[:, :k], LU_data[..., :k, :].triu()
    if unpack_pivots:
        P = factorization.lu_permutation(LU_pivots, size=m, dtype=dtype)
    return return_types.lu_unpack(P, L, U)


def packed_lu(A, pivot: bool = True, get_infos: bool = False):
    """(LU, pivots) as `lu_factor` gives them, by the older name flow.lu; get_infos: and a 0 for each matrix."""
    found = lu_factor(A, pivot=pivot)
    return (*found, s.full(shape=A.spec.shape[:-2], value=0, dtype=int32)) if get_infos else tuple(found)


def lu(A, *, pivot: bool = True):
    """(P, L, U) with P @ L @ U = A."""
    return lu_unpack(*lu_factor(A, pivot=pivot))


def lu_solve(b, LU_data, LU_pivots):
    """X where A @ X = b, of what `lu_factor(A)` gave; linalg.lu_solve has its arguments in another order."""
    return linalg_lu_solve(LU_data, LU_pivots, b)


def linalg_lu_solve(LU, pivots, B, *, left: bool = True, adjoint: bool = False):
    """X where A @ X = B, of what `lu_factor(A)` gave (adjoint: A.T @ X = B; left=False: X @ A = B)."""
    if not left:
        return turned(linalg_lu_solve(LU, pivots, turned(B), adjoint=not adjoint))
    P, L, U = lu_unpack(LU, pivots)
    if adjoint:
        half = solve_triangular(turned(U), B, upper=False)
        return matmul(P, solve_triangular(turned(L), half, upper=True, unitriangular=True))
    half = solve_triangular(L, matmul(turned(P), B), upper=False, unitriangular=True)
    return solve_triangular(U, half, upper=True)
