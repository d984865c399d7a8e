"""Inverses and factorisations of matrices, and of stacks of them: what LAPACK computes, with its gradients.

Rules follow Giles 2008 ("Collected matrix derivative results"), Murray 2016 (Cholesky), Walter & Lehmann 2018 (QR) and
Townsend 2016 (SVD). What needs several of these is a composite: `functions/matrices.py`.
"""

from __future__ import annotations

import math

import numpy as np

from ..base.errors import DTypeError, GradError, LinAlgError, ShapeError
from ..op import define, kernel
from ..spec import Spec, float32, float64, int32, spec_of
from ..where import fail
from .checks import first
from .elementwise import div, mul
from .examples import Maker, case, floats, ints
from .linalg import matmul
from .rules import join, mark
from .shape import cat, diagonal, full, permute, view_write


def regular(*shape: int, dtype: str = "float64") -> Maker:
    """Matrices that are far from singular."""
    return Maker(shape, dtype=dtype, layout=lambda a: a + 5 * np.eye(*shape[-2:], dtype=dtype))


def definite(*shape: int, dtype: str = "float64") -> Maker:
    """Symmetric matrices whose eigenvalues are positive and apart."""

    def lay(a):
        return a @ a.swapaxes(-1, -2) + np.diag(np.arange(1.0, shape[-1] + 1)).astype(dtype)

    return Maker(shape, dtype=dtype, layout=lay)


SQUARE = [regular(3, 3), regular(2, 4, 4), regular(2, 2, dtype="float32"), regular(1, 1), floats(0, 0), floats(0, 2, 2)]
DEFINITE = [definite(3, 3), definite(2, 4, 4), definite(2, 2, dtype="float32"), definite(1, 1), floats(0, 0)]


# ---- rules and checks ------------------------------------------------------------------------------------------------


def matrices(op: str, x: Spec, name: str = "a") -> Spec:
    """Refuse what is no stack of float matrices."""
    if x.ndim < 2:
        raise ShapeError(f"{op}: {mark(name)} has {x.ndim} axes, a matrix has 2",
                         hint=f"{mark(name)}.reshape(1, -1) is a matrix of one row")
    if x.dtype not in (float32, float64):
        raise DTypeError(f"{op}: matrices of {x.dtype.name}, where float32 or float64 is wanted",
                         hint=f"{mark(name)}.float() first")
    return x


def square(op: str, x: Spec, name: str = "a") -> Spec:
    """Refuse what is no stack of square float matrices."""
    matrices(op, x, name)
    if x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"{op}: a matrix of {x.shape[-2]} rows and {x.shape[-1]} columns is not square",
                         hint="linalg.pinv and linalg.lstsq take any matrix")
    return x


def fitting(op: str, a: Spec, b: Spec) -> Spec:
    """The shape of x where a @ x = b."""
    square(op, a)
    matrices(op, b, "b")
    if a.shape[-1] != b.shape[-2]:
        raise ShapeError(f"{op}: {a.shape[-1]} unknowns (columns of {mark('a')}) and {b.shape[-2]} rows of {mark('b')}",
                         hint="a has one row and one column for each row of b")
    return b.but(shape=(*join(op, {"a": a.shape[:-2], "b": b.shape[:-2]}), *b.shape[-2:]))


def factored(xp, op: str, what: str, hint: str, function, a, *others):
    """What LAPACK gives; where it gives up, an error that says which matrix of the stack is `what`."""
    if not a.size:  # LAPACK knows no empty matrices; numpy's functions return at once for most
        with xp.errstate(all="ignore"):
            return function(a, *others)
    try:
        with xp.errstate(all="ignore"):
            return function(a, *others)
    except xp.linalg.LinAlgError:
        at, whole = "", a.reshape(-1, *a.shape[-2:])
        if a.ndim > 2:
            at = f" (matrix {next((k for k, m in enumerate(whole) if fails(xp, function, m, others)), 0)} of the stack)"
    fail(LinAlgError, f"{op}: the matrix {what}{at}", hint, a=spec_of(a))


def need_finite(xp, op: str, a) -> None:
    """Refuse infinity and NaN, with which LAPACK's iterations do not end."""
    if not xp.isfinite(a).all():
        wrong, at = first(xp, a, ~xp.isfinite(a), "a")
        fail(LinAlgError, f"{op}: the matrix has {wrong} among its numbers{at}", "a.nan_to_num() first", a=spec_of(a))


def fails(xp, function, matrix, others) -> bool:
    try:
        function(matrix, *[b.reshape(-1, *b.shape[-2:])[0] for b in others])
        return False
    except xp.linalg.LinAlgError:
        return True


def turned(x):
    """The matrices transposed."""
    axes = tuple(range(x.spec.ndim))
    return permute(x, dims=(*axes[:-2], axes[-1], axes[-2]))


def dot(*xs):
    """The product of several matrices."""
    first, *others = xs
    for x in others:
        first = matmul(first, x, ta=False, tb=False)
    return first


def columns(x):
    """A vector of each matrix as a row, which scales its columns."""
    return x.unsqueeze(-2)


# ---- solving ---------------------------------------------------------------------------------------------------------


SINGULAR = "is singular: some row is a sum of multiples of others"
TAKE_PINV = "linalg.pinv and linalg.lstsq take such matrices; or add a small multiple of flow.eye(n)"

inverse = define(
    "inverse(a)",
    lambda a: square("inverse", a),
    lambda g, out: -dot(turned(out), g, turned(out)),
    examples=SQUARE,
    doc="The matrix that gives the identity when multiplied with a.",
)


@kernel(inverse)
def _(xp, a):
    return factored(xp, "inverse", SINGULAR, TAKE_PINV, xp.linalg.inv, a)


solve = define(
    "solve(a, b)",
    lambda a, b: fitting("solve", a, b),
    {"a, b": lambda g, a, out: (lambda gb: (-matmul(gb, out, ta=False, tb=True), gb))(solve(turned(a), g))},
    examples=[
        case(regular(3, 3), floats(3, 2)),
        case(regular(2, 3, 3), floats(3, 1)),
        case(regular(3, 3), floats(2, 3, 4)),
        case(regular(2, 2, dtype="float32"), floats(2, 2, dtype="float32")),
        case(floats(0, 0), floats(0, 2)),
    ],
    doc="x where a @ x = b, by an LU factorisation with pivots.",
)


@kernel(solve)
def _(xp, a, b):
    return factored(xp, "solve", SINGULAR, TAKE_PINV, xp.linalg.solve, a, b)


def triangle(x, upper: bool, unit: bool):
    """The part of a gradient that belongs to the numbers that solve_triangular reads."""
    return x.triu(int(unit)) if upper else x.tril(-int(unit))


solve_triangular = define(
    "solve_triangular(a, b; upper, unit)",
    lambda a, b, upper, unit: fitting("solve_triangular", a, b),
    {"a, b": lambda g, a, out, upper, unit: (
        lambda gb: (-triangle(matmul(gb, out, ta=False, tb=True), upper, unit), gb)
    )(solve_triangular(turned(a), g, upper=not upper, unit=unit))},
    examples=[
        case(regular(3, 3), floats(3, 2), upper=False, unit=False),
        case(regular(2, 3, 3), floats(3, 1), upper=True, unit=False),
        case(floats(3, 3), floats(2, 3, 2), upper=True, unit=True),
        case(regular(2, 2, dtype="float32"), floats(2, 2, dtype="float32"), upper=False, unit=True),
        case(floats(0, 0), floats(0, 2), upper=True, unit=False),
    ],
    doc="x where a @ x = b, reading one triangle of a; unit: its diagonal counts as ones.",
)


@kernel(solve_triangular)
def _(xp, a, b, upper, unit):
    n = a.shape[-1]
    batch = xp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    x = xp.array(xp.broadcast_to(b, (*batch, *b.shape[-2:])), order="C")
    with xp.errstate(all="ignore"):
        for i in range(n - 1, -1, -1) if upper else range(n):  # substitution: each row needs those before it
            solved = slice(i + 1, n) if upper else slice(0, i)
            x[..., i : i + 1, :] -= xp.matmul(a[..., i : i + 1, solved], x[..., solved, :])
            if not unit:
                x[..., i, :] /= a[..., i, i, None]
    return x


# ---- determinants ----------------------------------------------------------------------------------------------------


def per_matrix(op: str, a: Spec) -> Spec:
    return square(op, a).but(shape=a.shape[:-2])


det = define(
    "det(a)",
    lambda a: per_matrix("det", a),
    lambda g, a: mul(g.unsqueeze(-1).unsqueeze(-1), cofactors(a)),
    examples=SQUARE,
    doc="The determinant: how much the matrix scales volumes.",
)


@kernel(det)
def _(xp, a):
    with xp.errstate(all="ignore"):
        return xp.linalg.det(a)


def _cofactors_gradient(g, a, out):
    inverted = turned(inverse(a))
    sizes = mul(g, inverted).sum((-2, -1), keepdim=True)
    return mul(sizes, out) - dot(out, turned(g), inverted)


cofactors = define(
    "cofactors(a)",
    lambda a: square("cofactors", a),
    _cofactors_gradient,
    examples=SQUARE,
    doc="The gradient of the determinant, det(a) * inverse(a).T, which singular matrices have too.",
)


@kernel(cofactors)
def _(xp, a):
    if not a.size:
        return a.copy()
    if not xp.isfinite(a).all():
        return xp.full_like(a, xp.nan)
    u, s, v = xp.linalg.svd(a)
    others = xp.where(xp.eye(s.shape[-1], dtype=bool), 1, s[..., None, :]).prod(-1)  # the product of all s but one
    sign = xp.linalg.det(u) * xp.linalg.det(v)
    return sign[..., None, None] * xp.matmul(u * others[..., None, :], v)


slogdet = define(
    "slogdet(a) -> sign, logabsdet",
    lambda a: (per_matrix("slogdet", a),) * 2,
    lambda g, a: 0 * a if g[1] is None else mul(g[1].unsqueeze(-1).unsqueeze(-1), turned(inverse(a))),
    examples=SQUARE,
    doc="The sign of the determinant, and the logarithm of its size, which does not overflow.",
)


@kernel(slogdet)
def _(xp, a):
    with xp.errstate(all="ignore"):
        sign, size = xp.linalg.slogdet(a)
    return xp.asarray(sign, a.dtype), xp.asarray(size, a.dtype)


# ---- factorisations --------------------------------------------------------------------------------------------------


def half(x):
    """The lower triangle, with half of the diagonal."""
    return x.tril() - x.tril().triu() / 2


def _cholesky_gradient(g, out):
    inner = half(matmul(out, g, ta=True, tb=False))
    found = solve_triangular(turned(out), inner, upper=True, unit=False)  # L^-T inner L^-1
    found = turned(solve_triangular(turned(out), turned(found), upper=True, unit=False))
    return (found + turned(found)) / 2


cholesky = define(
    "cholesky(a)",
    lambda a: square("cholesky", a),
    _cholesky_gradient,
    examples=DEFINITE,
    doc="The lower triangular L with L @ L.T = a, of a symmetric positive definite a; its lower triangle is read.",
)


@kernel(cholesky)
def _(xp, a):
    return factored(xp, "cholesky", "is not positive definite", "x @ x.T + 1e-6 * flow.eye(n) is, for any x",
                    xp.linalg.cholesky, a)


def factors(op: str, a: Spec, complete: bool) -> tuple[Spec, Spec]:
    matrices(op, a)
    m, n = a.shape[-2:]
    k = m if complete else min(m, n)
    return a.but(shape=(*a.shape[:-2], m, k)), a.but(shape=(*a.shape[:-2], k, n))


def _qr_gradient(g, out0, out1, complete):
    m, n = out0.spec.shape[-2], out1.spec.shape[-1]
    if complete and m > n:
        fail(LinAlgError, f"qr: no gradient of mode='complete' where there are more rows ({m}) than columns ({n})",
             "mode='reduced', whose q is determined by the matrix", r=out1)
    gq, gr = (0 * out if x is None else x for x, out in zip(g, (out0, out1)))
    if m >= n:
        return tall(gq, gr, out0, out1)
    right = out1[..., m:]  # a = [x | y], q, u = qr(x), r = [u | q.T @ y]: y's gradient first, then x's
    left = tall(gq + dot(dot(out0, right), turned(gr[..., m:])), gr[..., :m], out0, out1[..., :m])
    return cat(left, dot(out0, gr[..., m:]), dim=left.spec.ndim - 1)


def tall(gq, gr, q, r):
    """The gradient of a matrix with at least as many rows as columns."""
    inner = dot(r, turned(gr)) - dot(turned(gq), q)
    symmetric = inner.tril() + turned(inner.tril(-1))
    found = gq + dot(q, symmetric)
    return turned(solve_triangular(r, turned(found), upper=True, unit=False))


qr = define(
    "qr(a; complete) -> q, r",
    lambda a, complete: factors("qr", a, complete),
    _qr_gradient,
    examples=[
        case(regular(3, 3), complete=False),
        case(regular(2, 4, 3), complete=False),
        case(regular(3, 5), complete=False),
        case(regular(3, 3), complete=True),
        case(floats(3, 2, dtype="float32"), complete=True),
        case(floats(0, 2), complete=False),
    ],
    doc="Orthonormal columns q and an upper triangular r with q @ r = a.",
)


@kernel(qr)
def _(xp, a, complete):
    with xp.errstate(all="ignore"):
        return tuple(xp.linalg.qr(a, mode="complete" if complete else "reduced"))


def gaps(values):
    """1 / (x_j - x_i), and 0 on the diagonal."""
    distance = columns(values) - values.unsqueeze(-1)
    return div(1.0, distance.masked_fill(diagonal_matrix(0 * values + 1).bool(), math.inf))


def diagonal_matrix(values):
    """Matrices of zeros with these diagonals."""
    n, shape = values.spec.shape[-1], values.spec.shape
    empty = full(shape=(*shape, n), value=0, dtype=values.spec.dtype)
    path = ((diagonal, {"offset": 0, "dim1": len(shape) - 1, "dim2": len(shape)}),)
    return view_write(empty, values, path=path)


def _eigh_gradient(g, out0, out1):
    gw, gv = g
    inner = diagonal_matrix(0 * out0 if gw is None else gw)
    if gv is not None:
        turn = matmul(out1, gv, ta=True, tb=False)
        inner = inner + mul((turn - turned(turn)) / 2, gaps(out0))
    return dot(out1, inner, turned(out1))


eigh = define(
    "eigh(a) -> values, vectors",
    lambda a: (square("eigh", a).but(shape=a.shape[:-1]), a),
    _eigh_gradient,
    examples=DEFINITE,
    doc="The eigenvalues in rising order, and the eigenvectors as columns, of a symmetric a (its lower triangle).",
)


@kernel(eigh)
def _(xp, a):
    if not a.size:
        return xp.zeros(a.shape[:-1], a.dtype), a.copy()
    need_finite(xp, "eigh", a)
    values, vectors = factored(xp, "eigh", "has eigenvalues that were not found", "linalg.svd of it", xp.linalg.eigh, a)
    return values, vectors


eig = define(
    "eig(a) -> values, vectors",
    lambda a: tuple(s.but(dtype=a.dtype.to_complex()) for s in (square("eig", a).but(shape=a.shape[:-1]), a)),
    examples=[regular(3, 3), floats(2, 4, 4), regular(2, 2, dtype="float32"), floats(0, 0)],
    doc="The complex eigenvalues, in no order, and the eigenvectors as columns, of any square a. It has no gradient.",
)


@kernel(eig)
def _(xp, a):
    wide = xp.result_type(a.dtype, "complex64")
    if not a.size:
        return xp.zeros(a.shape[:-1], wide), a.astype(wide)
    need_finite(xp, "eig", a)
    values, vectors = factored(xp, "eig", "has eigenvalues that were not found", "linalg.svd of it", xp.linalg.eig, a)
    return values.astype(wide), vectors.astype(wide)


def decomposed(a: Spec, complete: bool) -> tuple[Spec, Spec, Spec]:
    matrices("svd", a)
    *batch, m, n = a.shape
    k = min(m, n)
    u, v = (*batch, m, m if complete else k), (*batch, n if complete else k, n)
    return a.but(shape=u), a.but(shape=(*batch, k)), a.but(shape=v)


def _svd_gradient(g, out0, out1, out2):
    gu, gs, gv = g
    (m, n), k = (out0.spec.shape[-2], out2.spec.shape[-1]), out1.spec.shape[-1]
    u, v, s = out0[..., :k], out2[..., :k, :], columns(out1)  # of complete ones, what the matrix determines
    apart = gaps(out1 * out1)
    inner = diagonal_matrix(0 * out1 if gs is None else gs)
    beyond = None
    if gu is not None:
        gu = gu[..., :k]
        turn = matmul(u, gu, ta=True, tb=False)
        inner = inner + (turn - turned(turn)) * apart * s
        if m > k:
            beyond = dot((gu - dot(u, turn)) / s, v)
    if gv is not None:
        gv = turned(gv[..., :k, :])
        turn = dot(v, gv)
        inner = inner + turned(s) * ((turn - turned(turn)) * apart)
        if n > k:
            found = dot(u, turned((gv - dot(turned(v), turn)) / s))
            beyond = found if beyond is None else beyond + found
    found = dot(u, inner, v)
    return found if beyond is None else found + beyond


svd = define(
    "svd(a; complete) -> u, s, v",
    lambda a, complete: decomposed(a, complete),
    _svd_gradient,
    examples=[
        case(floats(3, 3), complete=False),
        case(floats(2, 4, 3), complete=False),
        case(floats(3, 5), complete=False),
        case(regular(2, 2, dtype="float32"), complete=True),
        case(floats(3, 2, dtype="float32"), complete=True),
        case(floats(0, 2), complete=False),
    ],
    doc="Orthonormal u, v and falling s >= 0 with a = u @ diag(s) @ v; complete: u and v are square.",
)


@kernel(svd)
def _(xp, a, complete):
    need_finite(xp, "svd", a)
    return tuple(factored(xp, "svd", "has singular values that were not found", "check it for large numbers",
                          lambda x: xp.linalg.svd(x, full_matrices=complete), a))


def _pinv_gradient(g, a, out):
    across, down = turned(out), turned(g)
    outside = down - dot(a, out, down)  # of the columns of a
    beside = down - dot(down, out, a)  # of its rows
    return dot(outside, out, across) - dot(across, g, across) + dot(across, out, beside)


pinv = define(
    "pinv(a; rtol, atol)",
    lambda a, rtol, atol: matrices("pinv", a).but(shape=(*a.shape[:-2], a.shape[-1], a.shape[-2])),
    _pinv_gradient,
    examples=[
        case(regular(3, 3), rtol=1e-12, atol=0.0),
        case(floats(2, 4, 2), rtol=1e-12, atol=0.0),
        case(floats(2, 4), rtol=1e-12, atol=0.0),
        case(floats(3, 2, dtype="float32"), rtol=1e-6, atol=0.0),
        case(floats(0, 2), rtol=1e-12, atol=0.0),
    ],
    doc="The pseudo-inverse; singular values up to max(atol, rtol * the largest) count as 0. "
        "Its gradient: Golub & Pereyra 1973, for full rank.",
)


@kernel(pinv)
def _(xp, a, rtol, atol):
    if not a.size:
        return xp.zeros((*a.shape[:-2], a.shape[-1], a.shape[-2]), a.dtype)
    need_finite(xp, "pinv", a)
    u, s, v = factored(xp, "pinv", "has singular values that were not found", "check it for large numbers",
                       lambda x: xp.linalg.svd(x, full_matrices=False), a)
    keep = s > xp.maximum(atol, rtol * s.max(-1, keepdims=True))
    with xp.errstate(all="ignore"):
        scaled = xp.where(keep, 1 / s, 0).astype(a.dtype)[..., None, :] * v.swapaxes(-1, -2)
        return xp.matmul(scaled, u.swapaxes(-1, -2))


def _lu_gradient(g, out0, out1):
    m, n = out0.spec.shape[-2:]
    if not out0.spec.size:
        return 0 * out0
    if m != n:
        fail(GradError, f"lu: no gradient of a matrix of {m} rows and {n} columns", "linalg.qr has one", packed=out0)
    upper = out0.triu()
    inner = matmul(out0.tril(-1), g[0].tril(-1), ta=True, tb=False) + g[0].tril(-1)
    inner = inner.tril(-1) + matmul(g[0].triu(), upper, ta=False, tb=True).triu()
    found = solve_triangular(turned(out0), inner, upper=True, unit=True)
    found = turned(solve_triangular(upper, turned(found), upper=True, unit=False))
    return dot(lu_permutation(out1, size=m, dtype=out0.spec.dtype), found)


lu = define(
    "lu(a) -> packed, pivots",
    lambda a: (matrices("lu", a), a.but(shape=(*a.shape[:-2], min(a.shape[-2:])), dtype=int32)),
    {"a": _lu_gradient},
    examples=[
        regular(3, 3),
        floats(2, 4, 4),
        floats(2, 4, 3, dtype="float32"),
        floats(2, 3, dtype="float32"),
        floats(0, 0),
    ],
    doc="L (below the diagonal, whose ones are left out) and U of the rows of a swapped; row i was swapped with "
        "pivots[i] - 1.",
)


@kernel(lu)
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


def permuted(pivots: Spec, size: int, dtype) -> Spec:
    return pivots.but(shape=(*pivots.shape[:-1], size, size), dtype=dtype)


lu_permutation = define(
    "lu_permutation(pivots; size, dtype)",
    permuted,
    examples=[
        case(ints(3, low=3, high=4), size=3, dtype=float64),
        case(ints(2, 2, low=2, high=4), size=3, dtype=float32),
    ],
    doc="The matrix P with P @ L @ U = a, of the swaps that lu made.",
)


@kernel(lu_permutation)
def _(xp, pivots, size, dtype):
    found = xp.zeros((*pivots.shape[:-1], size, size), dtype.np)
    if not found.size:
        return found
    for matrix, swaps in zip(found.reshape(-1, size, size), pivots.reshape(-1, pivots.shape[-1])):
        order = xp.arange(size)
        for i, other in enumerate(swaps - 1):
            order[[i, other]] = order[[other, i]]
        matrix[order, xp.arange(size)] = 1
    return found


def _matrix_exp_gradient(g, a):
    n = a.spec.shape[-1]
    above = cat(turned(a), g, dim=a.spec.ndim - 1)  # Higham 2008, equation 3.16
    below = cat(0 * g, turned(a), dim=a.spec.ndim - 1)
    return matrix_exp(cat(above, below, dim=a.spec.ndim - 2))[..., :n, n:]


matrix_exp = define(
    "matrix_exp(a)",
    lambda a: square("matrix_exp", a),
    _matrix_exp_gradient,
    examples=[floats(3, 3), floats(2, 4, 4), floats(2, 2, dtype="float32"), floats(1, 1), floats(0, 0)],
    doc="I + a + a @ a / 2 + ...: the exponential of a matrix (Al-Mohy & Higham 2009, by SciPy).",
)


@kernel(matrix_exp)
def _(xp, a):
    if not a.size:
        return a.copy()
    if not xp.isfinite(a).all():
        return xp.full_like(a, xp.nan)
    from scipy.linalg import expm

    return expm(a).astype(a.dtype, copy=False)
