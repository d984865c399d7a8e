"""Oracles of inverses and factorizations: SciPy, sums over permutations, and products of the factors."""

import itertools

import numpy as np
from scipy import linalg


def each(function):
    """Apply a function of one matrix to stacks of matrices."""

    def over(a, *others, **attrs):
        batch = np.broadcast_shapes(a.shape[:-2], *[b.shape[:-2] for b in others])
        whole = [np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (a, *others)]
        found = [function(*[x[i] for x in whole], **attrs) for i in np.ndindex(*batch)]
        if not found:  # one matrix tells the shapes of the results
            one = function(*[np.eye(*x.shape[-2:]) for x in whole], **attrs)
            one = one if isinstance(one, tuple) else (one,)
            made = tuple(np.zeros((*batch, *x.shape), x.dtype) for x in one)
            return made if len(made) > 1 else made[0]
        if isinstance(found[0], tuple):
            return tuple(np.stack(parts).reshape((*batch, *parts[0].shape)) for parts in zip(*found))
        return np.stack(found).reshape((*batch, *np.shape(found[0])))

    return over


def leibniz(a):
    """The determinant as the sum over permutations."""
    n, total = len(a), 0.0
    for order in itertools.permutations(range(n)):
        swaps = sum(order[i] > order[j] for i in range(n) for j in range(i + 1, n))
        total += (-1) ** swaps * np.prod([a[i, order[i]] for i in range(n)])
    return np.asarray(total, a.dtype)


def minors(a):
    n = len(a)
    found = np.ones_like(a)
    for i, j in np.ndindex(n, n):
        found[i, j] = (-1) ** (i + j) * leibniz(np.delete(np.delete(a, i, 0), j, 1))
    return found


def triangular(a, b, upper, unit):
    return linalg.solve_triangular(a, b, lower=not upper, unit_diagonal=unit) if a.size else b


def signed(a):
    value = leibniz(a)
    return np.sign(value), np.log(np.abs(value))


def gram_schmidt(a, complete):
    """Column by column; signs as in Householder's method, with numpy's diagonal of r."""
    q, r = np.linalg.qr(a.astype("float64"), "complete" if complete else "reduced")
    assert np.allclose(q @ r, a, atol=1e-5) and np.allclose(q.T @ q, np.eye(q.shape[1]), atol=1e-5)
    return q.astype(a.dtype), r.astype(a.dtype)


def eigen(a):
    values, vectors = np.linalg.eigh(a.astype("float64"))
    assert np.allclose(a @ vectors, vectors * values, atol=1e-4)
    return values.astype(a.dtype), vectors.astype(a.dtype)


def any_eigen(a):
    values, vectors = np.linalg.eig(a.astype("complex128"))
    assert np.allclose(a @ vectors, vectors * values, atol=1e-4)
    wide = np.result_type(a.dtype, "complex64")
    order = [int(np.abs(values - x).argmin()) for x in np.linalg.eigvals(a)]
    scale = vectors[:, order]
    ours = np.linalg.eig(a)[1]
    return values[order].astype(wide), (scale * (ours / scale).mean(0)).astype(wide) if a.size else scale.astype(wide)


def singular(a, complete):
    u, s, v = np.linalg.svd(a.astype("float64"), complete)
    k = len(s)
    assert np.allclose(u[:, :k] * s @ v[:k], a, atol=1e-5)
    return u.astype(a.dtype), s.astype(a.dtype), v.astype(a.dtype)


def packed(a):
    if not a.size:
        return a, np.zeros(0, "int32")
    found, pivots = linalg.lu_factor(a)
    return found, (pivots[: min(a.shape)] + 1).astype("int32")


def permutation(pivots, size, dtype):
    """Swap by swap, as a product of matrices."""
    found = np.broadcast_to(np.eye(size, dtype=dtype.np), (*pivots.shape[:-1], size, size)).copy()
    for place in np.ndindex(*pivots.shape[:-1]):
        for i, other in enumerate(pivots[place] - 1):
            swap = np.eye(size, dtype=dtype.np)
            swap[[i, other]] = swap[[other, i]]
            found[place] = found[place] @ swap
    return found


def series(a):
    total, term = np.eye(len(a), dtype=a.dtype), np.eye(len(a), dtype=a.dtype)
    for k in range(1, 60):
        term = term @ a / k
        total = total + term
    return total


ORACLES = {
    "inverse": each(lambda a: linalg.inv(a) if a.size else a),
    "solve": each(lambda a, b: linalg.inv(a) @ b if a.size else b),
    "solve_triangular": each(triangular),
    "det": each(leibniz),
    "cofactors": each(minors),
    "slogdet": each(signed),
    "cholesky": each(lambda a: linalg.cholesky(a, lower=True) if a.size else a),
    "qr": each(gram_schmidt),
    "eigh": each(eigen),
    "eig": each(any_eigen),
    "svd": each(singular),
    "pinv": each(lambda a, rtol, atol: linalg.pinv(a)),
    "lu": each(packed),
    "lu_permutation": permutation,
    "matrix_exp": each(series),
}
TOLERANCE = dict.fromkeys(ORACLES, 3e-5)  # of float32; errors grow with the condition number
IN_LINE = {name: lambda a: [(a + a.swapaxes(-1, -2)) / 2] for name in ("cholesky", "eigh")}
