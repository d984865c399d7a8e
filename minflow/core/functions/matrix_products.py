"""Matrix powers, chains and norms, cross products, covariances. Read next: `einsum.py`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..base.errors import OutOfRangeError, ShapeError
from ..ops import elementwise as e, linear_solvers, shape as s
from ..source_location import fail
from ..spec import default_dtype
from .arguments import common_shape, integer, maybe_to, normalize_axis, to, unique_axes
from .complex import conj
from .linear_algebra import bmm, check_ndims, dot, matmul, outer, promoted, scaled_sum
from .matrices import eye_of, inverse, solve, svdvals
from .reduction import norm, vector_norm

if TYPE_CHECKING:
    from ..base.dtypes import DTypeLike
    from ..tensor import Tensor


def matrix_power(A: Tensor, n: int) -> Tensor:
    """A @ A @ ... n times, by repeated squaring; the identity for n = 0, powers of the inverse for n < 0."""
    n = integer(n, "n")
    if A.spec.ndim < 2 or A.spec.shape[-1] != A.spec.shape[-2]:
        fail(ShapeError, "matrix_power: A must be square", "A.T @ A is square for any matrix A", A=A)
    if n == 0:
        return s.overwritten(s.clone(s.expand(eye_of(A, A.spec.shape[-1]), shape=A.spec.shape)), A)  # with gradient 0
    result: Any = None
    square, n = (inverse(A) if n < 0 else A), abs(n)
    while n:
        if n & 1:
            result = square if result is None else matmul(result, square)
        n >>= 1
        square = matmul(square, square) if n else square
    return s.clone(result) if result is A else result


def matrix_exp(A: Tensor) -> Tensor:
    """I + A + A @ A / 2 + A @ A @ A / 6 + ..."""
    return linear_solvers.matrix_exp(A)


def multi_dot(tensors: Sequence) -> Tensor:
    """The product of several matrices, in the order with the fewest multiplications (Cormen et al., 15.2); the first
    and the last may be vectors.
    """
    tensors = list(tensors)
    if len(tensors) < 2:
        fail(ShapeError, f"multi_dot: at least two tensors are needed, got {len(tensors)}", "at least two")
    first, last = tensors[0].spec.ndim == 1, tensors[-1].spec.ndim == 1
    parts = list(tensors)
    parts[0] = parts[0].unsqueeze(0) if first else parts[0]
    parts[-1] = parts[-1].unsqueeze(-1) if last else parts[-1]
    check_ndims("multi_dot", [2] * len(parts), *parts)
    sizes = [parts[0].spec.shape[0], *[x.spec.shape[1] for x in parts]]
    cost: dict = {(i, i): (0, i) for i in range(len(parts))}
    for width in range(1, len(parts)):
        for i in range(len(parts) - width):
            j = i + width
            cost[i, j] = min(
                (cost[i, k][0] + cost[k + 1, j][0] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)
            )

    def product(i: int, j: int) -> Tensor:
        k = cost[i, j][1]
        return parts[i] if i == j else matmul(product(i, k), product(k + 1, j))

    result = product(0, len(parts) - 1)
    result = result.squeeze(0) if first else result
    return result.squeeze(-1) if last else result


def chain_matmul(*matrices: Tensor) -> Tensor:
    """Older name for `multi_dot`; a single matrix is returned unchanged."""
    return matrices[0] if len(matrices) == 1 else multi_dot(matrices)


def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """The sum of the products along an axis."""
    return e.mul(x, y).sum(dim)


def vdot(input: Tensor, other: Tensor) -> Tensor:
    """The sum of the products of two vectors, with the conjugates of the first one."""
    return dot(conj(input), other)


def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """`beta * input + alpha * outer(vec1, vec2)`."""
    return scaled_sum("addr", input, outer(vec1, vec2), beta, alpha)


def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """`beta * input + alpha * the sum of the products of two stacks of matrices`."""
    return scaled_sum("addbmm", input, bmm(batch1, batch2).sum(0), beta, alpha)


def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """The cross product of vectors of 3 elements along `dim`; None: the first axis of size 3."""
    x, y = promoted("cross", input, other)
    if dim is None:
        shape = common_shape("cross", {"input": x, "other": y})
        dim = next((k for k, n in enumerate(shape) if n == 3), None)
        if dim is None:
            fail(ShapeError, f"cross: no axis of {list(shape)} has size 3", "vectors of 3 elements", input=x, other=y)
        dim -= len(shape)
    return linalg_cross(x, y, dim=dim)


def linalg_cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """The cross product of vectors of 3 elements along `dim`."""
    x, y = promoted("cross", input, other)
    axis_x, axis_y = normalize_axis(dim, x.spec.ndim, x), normalize_axis(dim, y.spec.ndim, y)
    for name, z, axis in (("input", x, axis_x), ("other", y, axis_y)):
        if z.spec.shape[axis] != 3:
            what = f"cross: axis {axis} of {name} must have size 3, got {z.spec.shape[axis]}"
            fail(ShapeError, what, "vectors of 3 elements along dim", input=x, other=y)
    ahead, behind = (lambda z, a: z.roll(-1, a)), (lambda z, a: z.roll(1, a))
    return e.sub(e.mul(ahead(x, axis_x), behind(y, axis_y)), e.mul(behind(x, axis_x), ahead(y, axis_y)))


# ---- statistics of rows ----------------------------------------------------------------------------------------------


def cov(
    input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
) -> Tensor:
    """The covariance matrix of the rows (variables) over the columns (observations). fweights: how often each
    observation counts; aweights: its weight.
    """
    if input.spec.ndim > 2:
        what = f"cov: input must have at most 2 axes, got {input.spec.ndim}"
        fail(ShapeError, what, "variables as rows, observations as columns", input=input)
    x = maybe_to(input, None if input.spec.dtype.floating else default_dtype())
    rows = x.reshape(1, -1) if x.spec.ndim < 2 else x
    weights = fweights if aweights is None else aweights if fweights is None else e.mul(aweights, fweights)
    if weights is None:
        total, centered = rows.spec.shape[1], rows - rows.mean(1, keepdim=True)
        product, factor_ = matmul(centered, centered.T), total - correction
    else:
        weights = to(weights, x.spec.dtype)
        total = weights.sum()
        centered = rows - e.div(e.mul(rows, weights).sum(1, keepdim=True), total)
        product = matmul(e.mul(centered, weights), centered.T)
        spread = e.mul(weights, aweights).sum() / total if aweights is not None else 1.0
        factor_ = total - correction * spread
    factor_ = max(factor_, 0) if isinstance(factor_, int | float) else factor_.clamp(min=0)
    result = e.div(product, float(factor_) if isinstance(factor_, int) else factor_)
    return result.reshape(()) if rows.spec.shape[0] == 1 else result


def corrcoef(input: Tensor) -> Tensor:
    """The correlation coefficients of the rows, from -1 to 1."""
    matrix = cov(input)
    if matrix.spec.ndim == 0:
        return e.div(matrix, matrix)
    deviation = e.sqrt(s.diagonal(matrix, offset=0, dim1=0, dim2=1))
    return e.div(e.div(matrix, deviation.unsqueeze(1)), deviation.unsqueeze(0)).clamp(-1, 1)


def dist(input: Tensor, other: Tensor | float, p: float = 2) -> Tensor:
    """The p-norm of the difference."""
    return norm(e.sub(input, other), p)


def renorm(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """Scale down each slice along `dim` whose p-norm exceeds maxnorm."""
    axis = normalize_axis(dim, input.spec.ndim, input)
    if not p > 0 or maxnorm < 0:
        fail(OutOfRangeError, f"renorm: p is {p}, maxnorm is {maxnorm}", "p > 0 and maxnorm >= 0", input=input)
    others = tuple(k for k in range(input.spec.ndim) if k != axis)
    if not others:
        fail(ShapeError, "renorm: input must have at least 2 axes", "x.unsqueeze(1)", input=input)
    size = norm(input, p, others, keepdim=True)
    large = size > maxnorm
    return e.where(large, e.mul(input, e.div(maxnorm, e.add(e.where(large, size, 1.0), 1e-7))), input)


# ---- norms -----------------------------------------------------------------------------------------------------------


def matrix_norm(
    A: Tensor,
    ord: Any = "fro",
    dim: Sequence[int] = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """A norm of the matrices in two axes. ord: "fro" (root of the sum of squares), "nuc" (sum of the singular values),
    2 or -2 (largest or smallest singular value), 1 or -1 (over column sums), inf or -inf (over row sums).
    """
    A = maybe_to(A, dtype)
    axes = unique_axes(dim, A)
    if len(axes) != 2:
        fail(ShapeError, f"matrix_norm: dim {tuple(dim)} names {len(axes)} axes", "two axes, such as (-2, -1)", A=A)
    if ord == "fro":
        return norm(A, 2, axes, keepdim)
    if ord not in ("nuc", 1, -1, 2, -2, math.inf, -math.inf):
        fail(OutOfRangeError, f"matrix_norm: ord is {ord!r}", '"fro", "nuc", 1, -1, 2, -2, inf or -inf', A=A)
    if ord in ("nuc", 2, -2):
        values = svdvals(A.movedim(axes, (-2, -1)))
        nuclear = ord == "nuc" or not values.spec.shape[-1]  # of nothing, every norm is 0
        result = values.sum(-1) if nuclear else values.amax(-1) if ord == 2 else values.amin(-1)
    else:
        summed = axes[0] if abs(ord) == 1 else axes[1]
        sums = e.abs(A).sum(summed, keepdim=True)
        left = axes[1] if abs(ord) == 1 else axes[0]
        result = (sums.amax if ord > 0 else sums.amin)(left, keepdim=True).squeeze(tuple(axes))
    for axis in sorted(axes) if keepdim else ():
        result = result.unsqueeze(axis)
    return result


def linalg_norm(
    A: Tensor,
    ord: Any = None,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: DTypeLike | None = None,
    p: Any = None,
) -> Tensor:
    """A norm of vectors or matrices. Without `ord` the root of the sum of squares; with it the p-norm of a vector, or
    `matrix_norm` of a matrix (two axes, or `dim` of two).
    """
    ord, A = p if ord is None else ord, maybe_to(A, dtype)
    axes = None if dim is None else unique_axes(dim, A)
    if ord is None or (ord == "fro" and axes is None and A.spec.ndim != 2):
        return norm(A, 2, dim, keepdim)
    count = A.spec.ndim if axes is None else len(axes)
    if count == 2:
        return matrix_norm(A, ord, (0, 1) if axes is None else axes, keepdim)
    return vector_norm(A, ord, dim, keepdim)


def nuclear_norm(input: Tensor, dim: Sequence[int] = (-2, -1), keepdim: bool = False) -> Tensor:
    """The sum of the singular values."""
    return matrix_norm(input, "nuc", dim, keepdim)


def cond(A: Tensor, p: float | str | None = None) -> Tensor:
    """The condition number, norm(A) * norm(inverse(A)); p=None: the largest singular value divided by the smallest."""
    if p in (None, 2, -2):
        values = svdvals(A)
        if not values.spec.shape[-1]:
            return values.sum(-1)
        first, last = values[..., 0], values[..., -1]
        return e.div(last, first) if p == -2 else e.div(first, last)
    return e.mul(matrix_norm(A, p), matrix_norm(inverse(A), p))


# ---- tensors as matrices ---------------------------------------------------------------------------------------------


def tensorinv(A: Tensor, ind: int = 2) -> Tensor:
    """The inverse of A as a matrix of its first `ind` axes against the others."""
    n = integer(ind, "ind")
    rows, columns = A.spec.shape[:n], A.spec.shape[n:]
    if n < 1 or math.prod(rows) != math.prod(columns):
        what = f"tensorinv: A as a matrix must be square, got {math.prod(rows)} rows and {math.prod(columns)} columns"
        fail(ShapeError, what, "ind such that the axes before it and the axes from it on have equal products", A=A)
    return inverse(A.reshape(math.prod(rows), -1)).reshape(*columns, *rows)


def tensorsolve(A: Tensor, B: Tensor, dims: Sequence[int] | None = None) -> Tensor:
    """X with tensordot(A, X, X.ndim) = B."""
    if dims is not None:
        A = A.movedim(tuple(dims), tuple(range(A.spec.ndim - len(dims), A.spec.ndim)))
    shape = A.spec.shape[B.spec.ndim :]
    if math.prod(shape) != B.spec.size or A.spec.size != B.spec.size**2:
        what = f"tensorsolve: {B.spec.size} equations and {math.prod(shape)} unknowns"
        fail(ShapeError, what, "A of shape B.shape + X.shape", A=A, B=B)
    return solve(A.reshape(B.spec.size, -1), B.reshape(-1)).reshape(*shape)
