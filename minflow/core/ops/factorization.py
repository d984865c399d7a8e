"""Factorizations of (stacks of) matrices by LAPACK, with their gradients.

Rules follow Murray 2016 (Cholesky), Walter & Lehmann 2018 (QR), Townsend 2016 (SVD) and Giles 2008 ("Collected matrix
derivative results"). Functions that need several of these are composites: `functions/matrices.py`.
"""

from __future__ import annotations

import math

from ..backend import namespace
from ..base.errors import GradError, LinAlgError, ShapeError
from ..host.blas import on_all_threads
from ..host.float_warnings import silent
from ..kernels import kernel
from ..op import define
from ..source_location import fail
from ..spec import Spec, float32, float64, int32
from .checks import check_bounds
from .elementwise import div, mul
from .examples import Maker, case, floats, ints
from .linalg import matmul
from .linear_solvers import (
    call_lapack,
    check_matrices,
    check_square,
    dot,
    need_finite,
    regular_matrices,
    solve_triangular,
    transposed,
)
from .rules import need_index
from .shape import cat, diagonal, view_write, zeros_of


def definite_matrices(*shape: int, dtype: str = "float64") -> Maker:
    """Symmetric matrices with distinct positive eigenvalues."""

    def lay(a):
        xp = namespace()
        return a @ a.swapaxes(-1, -2) + xp.diag(xp.arange(1.0, shape[-1] + 1)).astype(dtype)

    return Maker(shape, dtype=dtype, layout=lay)


DEFINITE_EXAMPLES = [
    definite_matrices(3, 3),
    definite_matrices(2, 4, 4),
    definite_matrices(2, 2, dtype="float32"),
    definite_matrices(1, 1),
    floats(0, 0),
]


def as_row(x):
    """A vector per matrix as a row, which scales the columns of the matrix."""
    return x.unsqueeze(-2)


def half_diagonal(x):
    """The lower triangle, with half of the diagonal."""
    return x.tril() - x.tril().triu() / 2


def _cholesky_gradient(g, out):
    inner = half_diagonal(matmul(out, g, ta=True, tb=False))
    found = solve_triangular(transposed(out), inner, upper=True, unit=False)  # L^-T inner L^-1
    found = transposed(solve_triangular(transposed(out), transposed(found), upper=True, unit=False))
    return (found + transposed(found)) / 2


cholesky = define(
    "cholesky(a)",
    lambda a: check_square("cholesky", a),
    _cholesky_gradient,
    autocast="float32",
    sharding="... . . -> ... . .",
    examples=DEFINITE_EXAMPLES,
    doc="The lower triangular L with L @ L.T = a, for a symmetric positive definite a, whose lower triangle is read.",
)


@kernel(cholesky, on_host=True)
def _(xp, a):
    return call_lapack(
        xp, "cholesky", "is not positive definite", "x @ x.T + 1e-6 * flow.eye(n) is, for any x", xp.linalg.cholesky, a
    )


def qr_spec(op: str, a: Spec, complete: bool) -> tuple[Spec, Spec]:
    check_matrices(op, a)
    m, n = a.shape[-2:]
    k = m if complete else min(m, n)
    return a.replace(shape=(*a.shape[:-2], m, k)), a.replace(shape=(*a.shape[:-2], k, n))


def _qr_gradient(g, out0, out1, complete):
    m, n = out0.spec.shape[-2], out1.spec.shape[-1]
    if complete and m > n:
        what = f"qr: mode='complete' has no gradient if there are more rows ({m}) than columns ({n})"
        fail(LinAlgError, what, "mode='reduced', whose q is determined by the matrix", r=out1)
    gq, gr = (0 * out if x is None else x for x, out in zip(g, (out0, out1)))
    if m >= n:
        return tall_qr_grad(gq, gr, out0, out1)
    right = out1[..., m:]  # a = [x | y], q, u = qr(x), r = [u | q.T @ y]: y's gradient first, then x's
    left = tall_qr_grad(gq + dot(dot(out0, right), transposed(gr[..., m:])), gr[..., :m], out0, out1[..., :m])
    return cat(left, dot(out0, gr[..., m:]), dim=left.spec.ndim - 1)


def tall_qr_grad(gq, gr, q, r):
    """The gradient for a matrix with at least as many rows as columns."""
    inner = dot(r, transposed(gr)) - dot(transposed(gq), q)
    symmetric = inner.tril() + transposed(inner.tril(-1))
    found = gq + dot(q, symmetric)
    return transposed(solve_triangular(r, transposed(found), upper=True, unit=False))


qr = define(
    "qr(a; complete) -> q, r",
    lambda a, complete: qr_spec("qr", a, complete),
    _qr_gradient,
    autocast="float32",
    sharding="... . . -> ... . ., ... . .",
    examples=[
        case(regular_matrices(3, 3), complete=False),
        case(regular_matrices(2, 4, 3), complete=False),
        case(regular_matrices(3, 5), complete=False),
        case(regular_matrices(3, 3), complete=True),
        case(floats(3, 2, dtype="float32"), complete=True),
        case(floats(0, 2), complete=False),
    ],
    doc="Orthonormal columns q and an upper triangular r with q @ r = a.",
)


@kernel(qr, on_host=True)
def _(xp, a, complete):
    with silent():
        return tuple(on_all_threads(xp.linalg.qr, a, mode="complete" if complete else "reduced"))


def inverse_gaps(values):
    """1 / (x_j - x_i), and 0 on the diagonal."""
    distance = as_row(values) - values.unsqueeze(-1)
    return div(1.0, distance.masked_fill(diagonal_matrix(0 * values + 1).bool(), math.inf))


def diagonal_matrix(values):
    """Matrices of zeros with these diagonals."""
    n, shape = values.spec.shape[-1], values.spec.shape
    empty = zeros_of(values.spec.replace(shape=(*shape, n)))
    path = ((diagonal, {"offset": 0, "dim1": len(shape) - 1, "dim2": len(shape)}),)
    return view_write(empty, values, path=path)


def _eigh_gradient(g, out0, out1):
    gw, gv = g
    inner = diagonal_matrix(0 * out0 if gw is None else gw)
    if gv is not None:
        turn = matmul(out1, gv, ta=True, tb=False)
        inner = inner + mul((turn - transposed(turn)) / 2, inverse_gaps(out0))
    return dot(out1, inner, transposed(out1))


eigh = define(
    "eigh(a) -> values, vectors",
    lambda a: (check_square("eigh", a).replace(shape=a.shape[:-1]), a),
    _eigh_gradient,
    autocast="float32",
    sharding="... . . -> ... ., ... . .",
    examples=DEFINITE_EXAMPLES,
    doc="Ascending eigenvalues, and eigenvectors as columns, of a symmetric a (its lower triangle).",
)


@kernel(eigh, on_host=True)
def _(xp, a):
    if not a.size:
        return xp.zeros(a.shape[:-1], a.dtype), a.copy()
    need_finite(xp, "eigh", a)
    values, vectors = call_lapack(
        xp, "eigh", "has eigenvalues that did not converge", "linalg.svd of it", xp.linalg.eigh, a
    )
    return values, vectors


eig = define(
    "eig(a) -> values, vectors",
    lambda a: tuple(
        s.replace(dtype=a.dtype.to_complex()) for s in (check_square("eig", a).replace(shape=a.shape[:-1]), a)
    ),
    sharding="... . . -> ... ., ... . .",
    examples=[regular_matrices(3, 3), floats(2, 4, 4), regular_matrices(2, 2, dtype="float32"), floats(0, 0)],
    doc="The complex eigenvalues, unordered, and the eigenvectors as columns, of a square a. No gradient.",
)


@kernel(eig, on_host=True)
def _(xp, a):
    wide = xp.result_type(a.dtype, "complex64")
    if not a.size:
        return xp.zeros(a.shape[:-1], wide), a.astype(wide)
    need_finite(xp, "eig", a)
    values, vectors = call_lapack(
        xp, "eig", "has eigenvalues that did not converge", "linalg.svd of it", xp.linalg.eig, a
    )
    return values.astype(wide), vectors.astype(wide)


def svd_spec(a: Spec, complete: bool) -> tuple[Spec, Spec, Spec]:
    check_matrices("svd", a)
    *batch, m, n = a.shape
    k = min(m, n)
    u, v = (*batch, m, m if complete else k), (*batch, n if complete else k, n)
    return a.replace(shape=u), a.replace(shape=(*batch, k)), a.replace(shape=v)


def _svd_gradient(g, out0, out1, out2):
    gu, gs, gv = g
    (m, n), k = (out0.spec.shape[-2], out2.spec.shape[-1]), out1.spec.shape[-1]
    u, v, s = out0[..., :k], out2[..., :k, :], as_row(out1)  # of complete factors, the part that the matrix determines
    apart = inverse_gaps(out1 * out1)
    inner = diagonal_matrix(0 * out1 if gs is None else gs)
    beyond = None
    if gu is not None:
        gu = gu[..., :k]
        turn = matmul(u, gu, ta=True, tb=False)
        inner = inner + (turn - transposed(turn)) * apart * s
        if m > k:
            beyond = dot((gu - dot(u, turn)) / s, v)
    if gv is not None:
        gv = transposed(gv[..., :k, :])
        turn = dot(v, gv)
        inner = inner + transposed(s) * ((turn - transposed(turn)) * apart)
        if n > k:
            found = dot(u, transposed((gv - dot(transposed(v), turn)) / s))
            beyond = found if beyond is None else beyond + found
    found = dot(u, inner, v)
    return found if beyond is None else found + beyond


svd = define(
    "svd(a; complete) -> u, s, v",
    lambda a, complete: svd_spec(a, complete),
    _svd_gradient,
    autocast="float32",
    sharding="... . . -> ... . ., ... ., ... . .",
    examples=[
        case(floats(3, 3), complete=False),
        case(floats(2, 4, 3), complete=False),
        case(floats(3, 5), complete=False),
        case(regular_matrices(2, 2, dtype="float32"), complete=True),
        case(floats(3, 2, dtype="float32"), complete=True),
        case(floats(0, 2), complete=False),
    ],
    doc="Orthonormal u, v and descending s >= 0 with a = u @ diag(s) @ v; complete: u and v are square.",
)


@kernel(svd, on_host=True)
def _(xp, a, complete):
    need_finite(xp, "svd", a)
    return tuple(
        call_lapack(
            xp,
            "svd",
            "has singular values that did not converge",
            "check it for large numbers",
            lambda x: xp.linalg.svd(x, full_matrices=complete),
            a,
        )
    )


def _lu_gradient(g, out0, out1):
    m, n = out0.spec.shape[-2:]
    if not out0.spec.size:
        return 0 * out0
    if m != n:
        fail(GradError, f"lu: a matrix of {m} rows and {n} columns has no gradient", "linalg.qr has one", packed=out0)
    upper = out0.triu()
    inner = matmul(out0.tril(-1), g[0].tril(-1), ta=True, tb=False) + g[0].tril(-1)
    inner = inner.tril(-1) + matmul(g[0].triu(), upper, ta=False, tb=True).triu()
    found = solve_triangular(transposed(out0), inner, upper=True, unit=True)
    found = transposed(solve_triangular(upper, transposed(found), upper=True, unit=False))
    return dot(lu_permutation(out1, size=m, dtype=out0.spec.dtype), found)


lu = define(
    "lu(a) -> packed, pivots",
    lambda a: (check_matrices("lu", a), a.replace(shape=(*a.shape[:-2], min(a.shape[-2:])), dtype=int32)),
    {"a": _lu_gradient},
    sharding="... . . -> ... . ., ... .",
    examples=[
        regular_matrices(3, 3),
        floats(2, 4, 4),
        floats(2, 4, 3, dtype="float32"),
        floats(2, 3, dtype="float32"),
        floats(0, 0),
    ],
    doc="L (below the diagonal, without its ones) and U of a with rows swapped; row i was swapped with pivots[i] - 1.",
)


@kernel(lu, on_host=True)
def _(xp, a):
    packed, (m, n) = xp.array(a, order="C"), a.shape[-2:]
    pivots = xp.empty((*a.shape[:-2], min(m, n)), "int32")
    if not a.size:
        return packed, pivots
    for matrix, swaps in zip(packed.reshape(-1, m, n), pivots.reshape(-1, min(m, n))):
        for i in range(min(m, n)):
            best = i + int(abs(matrix[i:, i]).argmax())
            swaps[i] = best + 1
            matrix[[i, best]] = matrix[[best, i]]
            if matrix[i, i] != 0:
                matrix[i + 1 :, i] /= matrix[i, i]
                matrix[i + 1 :, i + 1 :] -= xp.outer(matrix[i + 1 :, i], matrix[i, i + 1 :])
    return packed, pivots


def permutation_spec(pivots: Spec, size: int, dtype) -> Spec:
    need_index("lu_permutation", pivots, "pivots")
    if not pivots.ndim or pivots.shape[-1] > size:
        raise ShapeError(
            f"lu_permutation: {{pivots}} is {list(pivots.shape)}, of {size} rows", hint="the pivots from lu"
        )
    return pivots.replace(shape=(*pivots.shape[:-1], size, size), dtype=dtype)


lu_permutation = define(
    "lu_permutation(pivots; size, dtype)",
    permutation_spec,
    sharding="... . -> ... . .",
    examples=[
        case(ints(3, low=3, high=4), size=3, dtype=float64),
        case(ints(2, 2, low=2, high=4), size=3, dtype=float32),
    ],
    doc="The matrix P with P @ L @ U = a, from the row swaps of lu.",
)


@kernel(lu_permutation, on_host=True)
def _(xp, pivots, size, dtype):
    check_bounds(xp, "lu_permutation", pivots.astype("int64") - 1, size, pivots.ndim - 1)
    found = xp.zeros((*pivots.shape[:-1], size, size), dtype.np)
    if not found.size:
        return found
    for matrix, swaps in zip(found.reshape(-1, size, size), pivots.reshape(len(found.reshape(-1, size, size)), -1)):
        order = xp.arange(size)
        for i, other in enumerate(swaps - 1):
            order[[i, other]] = order[[other, i]]
        matrix[order, xp.arange(size)] = 1
    return found
