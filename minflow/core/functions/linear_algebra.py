"""Products of vectors, matrices and stacks of matrices, all built on the primitive `matmul`. Read next: `einsum.py`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..base.errors import DTypeError, OutOfRangeError, ShapeError
from ..base.legacy_dispatch import overloaded
from ..dispatch import apply
from ..ir import NUMBERS
from ..ops import elementwise as e, linalg, shape as s
from ..ops.linalg import match_product
from ..source_location import fail
from ..spec import DType, promote
from .arguments import ensure_tensor, integer, is_sequence, is_tensor, number_or_symbol, to, unique_axes

if TYPE_CHECKING:
    from ..tensor import Tensor


def promoted(op: str, *tensors: Any) -> list[Tensor]:
    """Promote tensors to their common dtype. Raises DTypeError if integers meet floats."""
    tensors = tuple([ensure_tensor(x) for x in tensors])
    dtype = promote(*[x.spec.replace(shape=(1,)) for x in tensors])
    for k, x in enumerate(tensors):
        if (x.spec.dtype.rank > 1) is not (dtype.rank > 1):
            what = f"{op}: integers and floats cannot be mixed, got {', '.join(y.spec.dtype.name for y in tensors)}"
            hint = f"{'abcd'[k]}.float() makes floats of integers"
            fail(DTypeError, what, hint, **{"abcd"[k]: y for k, y in enumerate(tensors)})
    return [to(x, dtype) for x in tensors]


@overloaded
def matmul(input: Tensor, other: Tensor) -> Tensor:
    """Matrix product. A vector is a row on the left and a column on the right; more axes are stacks of matrices.

    Raises ShapeError if the inner sizes differ, DTypeError if integers meet floats.
    """
    try:
        x, y = input.spec, other.spec
        alike = x.dtype is y.dtype
    except AttributeError:  # an array or a list
        alike = False
    if alike and x.ndim == 2 == y.ndim:
        return apply(linalg.matmul, input, other, ta=False, tb=False)
    a, b = (input, other) if alike else promoted("matmul", input, other)
    m, n = a.spec.ndim, b.spec.ndim
    if not m or not n:
        fail(ShapeError, "matmul: inputs must have at least one axis", "a * b", a=a, b=b)
    if m == 1 or n == 1:
        inner_a, inner_b = a.spec.shape[-1], b.spec.shape[0 if n == 1 else -2]
        if inner_a != inner_b:
            fail(
                ShapeError,
                f"matmul: inner sizes differ, {inner_a} (axis {m - 1} of a) and {inner_b} "
                f"(axis {0 if n == 1 else n - 2} of b)",
                "the last size of a must be the last but one of b, or the size of a vector b",
                a=a,
                b=b,
            )
        left = s.reshape(a, shape=(1, a.spec.shape[0])) if m == 1 else a
        right = s.reshape(b, shape=(b.spec.shape[0], 1)) if n == 1 else b
        product = matmul(left, right)
        shape = product.spec.shape
        return s.reshape(product, shape=shape[:-2] + (() if m == 1 else shape[-2:-1]) + (() if n == 1 else shape[-1:]))
    if n == 2 < m and b.spec.shape[0] == a.spec.shape[-1]:  # one large product, and one for the gradient of b
        shape = a.spec.shape
        rows = s.reshape(a.contiguous(), shape=(math.prod(shape[:-1]), shape[-1]))
        return s.reshape(linalg.matmul(rows, b, ta=False, tb=False), shape=(*shape[:-1], b.spec.shape[1]))
    return linalg.matmul(a, b, ta=False, tb=False)


def check_ndims(op: str, ndims: Sequence[int], *tensors: Tensor) -> None:
    for k, (ndim, x) in enumerate(zip(ndims, tensors)):
        if x.spec.ndim != ndim:
            what = {1: "a vector (1 axis)", 2: "a matrix (2 axes)", 3: "a stack of matrices (3 axes)"}[ndim]
            fail(
                ShapeError,
                f"{op}: argument {k + 1} must be {what}, got {x.spec.ndim}",
                "flow.matmul takes vectors, matrices and stacks"
                if all(x.spec.ndim for x in tensors)
                else "a * b for numbers",
                **{f"argument {j + 1}": y for j, y in enumerate(tensors)},
            )


def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices."""
    check_ndims("mm", (2, 2), input, mat2)
    return matmul(input, mat2)


def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """The matrix products of two stacks, pair by pair."""
    check_ndims("bmm", (3, 3), input, mat2)
    if input.spec.shape[0] != mat2.spec.shape[0]:
        what = f"bmm: {input.spec.shape[0]} matrices and {mat2.spec.shape[0]}"
        fail(ShapeError, what, "flow.matmul broadcasts stacks", input=input, mat2=mat2)
    return matmul(input, mat2)


def mv(input: Tensor, vec: Tensor) -> Tensor:
    """A matrix times a vector."""
    check_ndims("mv", (2, 1), input, vec)
    return matmul(input, vec)


def dot(input: Tensor, other: Tensor) -> Tensor:
    """The sum of the products of two vectors."""
    check_ndims("dot", (1, 1), input, other)
    return matmul(input, other)


def inner(input: Tensor, other: Tensor) -> Tensor:
    """The sums of products over the last axes of both: for vectors the dot product; a number scales."""
    a, b = input, other
    if not a.spec.ndim or not b.spec.ndim:
        return e.mul(a, b)
    n, m = a.spec.shape[-1], b.spec.shape[-1]
    if n != m:
        what = f"inner: the last axes have sizes {n} and {m}"
        fail(ShapeError, what, "the last axes must have the same size", a=a, b=b)
    shape = a.spec.shape[:-1] + b.spec.shape[:-1]
    rows = [s.reshape(x.contiguous(), shape=(math.prod(x.spec.shape[:-1]), n)) for x in (a, b)]
    return s.reshape(matmul(rows[0], s.permute(rows[1], dims=(1, 0))), shape=shape)


def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """All products of two vectors: out[i, j] = input[i] * vec2[j]."""
    check_ndims("outer", (1, 1), input, vec2)
    return e.mul(s.reshape(input, shape=(input.spec.size, 1)), vec2)


ger = outer


def scaled_sum(op: str, input: Tensor, product: Tensor, beta: float, alpha: float) -> Tensor:
    """beta * input + alpha * product."""
    have, want = input.spec.shape, product.spec.shape
    if have != want and (len(have) > len(want) or any(n not in (1, m) for n, m in zip(have[::-1], want[::-1]))):
        what = f"{op}: the input of shape {list(have)} does not broadcast to the product's {list(want)}"
        fail(ShapeError, what, "an input of the product's shape, or a row of it", input=input, product=product)
    alpha, beta = [number_in(x, product.spec.dtype) for x in (alpha, beta)]
    product = product if alpha.__class__ in NUMBERS and alpha == 1 else e.mul(product, alpha)
    if beta.__class__ in NUMBERS and beta == 0:
        return product
    scaled = input if beta.__class__ in NUMBERS and beta == 1 else e.mul(input, beta)
    return e.add(match_product(scaled, product), product)


def number_in(number: Any, dtype: DType) -> Any:
    """`number_or_symbol`, a symbolic one in this dtype, if that is floating."""
    number = number_or_symbol(number)
    return to(number, dtype) if is_tensor(number) and dtype.floating else number


def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """`beta * input + alpha * mat1 @ mat2`."""
    return scaled_sum("addmm", input, mm(mat1, mat2), beta, alpha)


def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """`beta * input + alpha * mat @ vec`."""
    return scaled_sum("addmv", input, mv(mat, vec), beta, alpha)


def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """`beta * input + alpha * batch1 @ batch2`, for stacks of matrices."""
    return scaled_sum("baddbmm", input, bmm(batch1, batch2), beta, alpha)


def tensordot(a: Tensor, b: Tensor, dims: int | Sequence[Sequence[int]] = 2) -> Tensor:
    """The sum of products over the last `dims` axes of a and the first of b, or over two lists of axes."""
    if is_sequence(dims):
        if len(dims) != 2:
            fail(ShapeError, f"tensordot: dims is {dims!r}", "dims=2, or dims=([axes of a], [axes of b])", a=a, b=b)
        axes_a, axes_b = [unique_axes(ds, x) for ds, x in zip(dims, (a, b))]
    else:
        n = integer(dims, "dims")
        if not 0 <= n <= min(a.spec.ndim, b.spec.ndim):
            what = f"tensordot: dims is {n}, and the tensors have {a.spec.ndim} and {b.spec.ndim} axes"
            fail(OutOfRangeError, what, f"dims from 0 to {min(a.spec.ndim, b.spec.ndim)}", a=a, b=b)
        axes_a, axes_b = list(range(a.spec.ndim - n, a.spec.ndim)), list(range(n))
    if len(axes_a) != len(axes_b):
        what = f"tensordot: {len(axes_a)} axes of a and {len(axes_b)} of b"
        fail(ShapeError, what, "one axis of b for each of a", a=a, b=b)
    for i, j in zip(axes_a, axes_b):
        m, n = a.spec.shape[i], b.spec.shape[j]
        if m != n and 1 in (m, n):  # the axis of size 1 is repeated, so the sum of products is a product with the sum
            a, b = (a, b.sum(j, keepdim=True)) if m == 1 else (a.sum(i, keepdim=True), b)
        elif m != n:
            what = f"tensordot: sizes differ, {m} (axis {i} of a) and {n} (axis {j} of b)"
            fail(ShapeError, what, "dims=([axes of a], [axes of b])", a=a, b=b)
    kept_a = [d for d in range(a.spec.ndim) if d not in axes_a]
    kept_b = [d for d in range(b.spec.ndim) if d not in axes_b]
    inner_size = math.prod([a.spec.shape[d] for d in axes_a])
    left = s.permute(a, dims=tuple(kept_a + axes_a)).reshape(math.prod([a.spec.shape[d] for d in kept_a]), inner_size)
    right = s.permute(b, dims=tuple(axes_b + kept_b)).reshape(inner_size, math.prod([b.spec.shape[d] for d in kept_b]))
    return matmul(left, right).reshape([a.spec.shape[d] for d in kept_a] + [b.spec.shape[d] for d in kept_b])


def kron(input: Tensor, other: Tensor) -> Tensor:
    """Kronecker product: each element of input times the whole of other, block by block; missing axes count as 1."""
    ndim = max(input.spec.ndim, other.spec.ndim)
    left, right = [(1,) * (ndim - x.spec.ndim) + x.spec.shape for x in (input, other)]
    blocks = input.reshape([k for n in left for k in (n, 1)]) * other.reshape([k for n in right for k in (1, n)])
    return blocks.reshape([n * m for n, m in zip(left, right)])
