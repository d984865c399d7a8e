"""Matrix multiplication, the one primitive of linear algebra; its transposition flags let gradients avoid copies.

Vectors, tensors with more axes times a matrix, einsum and others are composites: `functions/linear_algebra.py`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

from ..base.dtypes import HALF_DTYPES
from ..base.errors import DTypeError, ShapeError
from ..dispatch import apply
from ..host import HostArray
from ..host.blas import product, runner, runner_of
from ..host.float_warnings import silent
from ..kernels import kernel
from ..mode import MODE
from ..op import define
from ..spec import Spec, cpu, float32, float64
from .examples import case, floats, ints, strided
from .rules import broadcast_shape, is_number
from .shape import cast, in_dtype, in_float32, reshape

# Largest number of rows, or of terms of a sum, and smallest size of the large matrix, of `is_thin`.
THIN_ROWS, THIN_TERMS, THIN = 96, 4, 1 << 17


def matmul_spec(a: Spec, b: Spec, ta: bool, tb: bool) -> Spec:
    """The shape rule of matmul; its errors name axes as the learner wrote them."""
    for name, x in (("a", a), ("b", b)):
        if x.ndim < 2:
            raise ShapeError(
                f"matmul: {{{name}}} must have at least 2 axes, got {x.ndim}",
                hint=f"{{{name}}}.reshape(1, -1) is a matrix of one row",
            )
    if a.dtype is not b.dtype:
        hint = "{b}.to({a}.dtype)" if a.dtype.floating else "{a}.to({b}.dtype)"
        raise DTypeError(f"matmul: dtypes differ, {a.dtype.name} of {{a}} and {b.dtype.name} of {{b}}", hint=hint)
    (n, k), (m, p) = (a.shape[:-3:-1] if ta else a.shape[-2:]), (b.shape[:-3:-1] if tb else b.shape[-2:])
    if k != m:
        axis_a, axis_b = a.ndim - (2 if ta else 1), b.ndim - (1 if tb else 2)
        raise ShapeError(
            f"matmul: inner sizes differ, {k} (axis {axis_a} of {{a}}) and {m} (axis {axis_b} of {{b}})",
            hint=transpose_hint(k, m, n, p, ".T" if a.ndim == b.ndim == 2 else ".mT"),
        )
    batch = (
        a.shape[:-2]
        if a.shape[:-2] == b.shape[:-2]
        else broadcast_shape("matmul", {"a": a.shape[:-2], "b": b.shape[:-2]})
    )
    return a.replace(shape=(*batch, n, p))


def transpose_hint(k: int, m: int, n: int, p: int, turned: str) -> str:
    """Hint for (n, k) @ (m, p) with k != m: the transposition that would fit."""
    if k == p:
        return f"{{a}} @ {{b}}{turned}: the second one transposed"
    if n == m:
        return f"{{a}}{turned} @ {{b}}: the first one transposed"
    return (
        f"the last size of {{a}} must be the last but one of {{b}}: reshape one of them, or make a layer for {k} inputs"
    )


def is_thin(inputs, outputs) -> bool:
    """True for a product with few rows, or few terms, and one large matrix, whose reading or writing takes most of the
    time; BLAS copies it first.
    """
    (a, _), (out,) = inputs, outputs
    if a.ndim != 2 or out.ndim != 2 or not out.size:
        return False
    rows, columns = out.shape
    terms = a.size // rows
    return (rows <= THIN_ROWS and terms * columns >= THIN) or (terms <= THIN_TERMS and out.size >= THIN)


matmul = define(
    "matmul(a, b; ta, tb)",
    matmul_spec,
    dict(
        a=lambda g, b, ta, tb: matmul(b, g, ta=tb, tb=True) if ta else matmul(g, b, ta=False, tb=not tb),
        b=lambda g, a, ta, tb: matmul(g, a, ta=True, tb=ta) if tb else matmul(a, g, ta=not ta, tb=False),
    ),
    domain="holomorphic",
    autocast="lower",
    sharding=lambda a, b, ta, tb: f"...{'km' if ta else 'mk'}, ...{'nk' if tb else 'kn'} -> ...mn",
    linear=("a", "b"),
    macs=lambda out, a, b, ta, tb: out.size * a.shape[-2 if ta else -1],
    examples=[
        case(floats(3, 4), floats(4, 2), ta=False, tb=False),
        case(floats(4, 3), floats(4, 2), ta=True, tb=False),
        case(floats(3, 4), floats(2, 4), ta=False, tb=True),
        case(floats(4, 3), floats(2, 4), ta=True, tb=True),
        case(floats(5, 3, 4), floats(5, 4, 2), ta=False, tb=False),
        case(floats(5, 1, 4, 3), floats(2, 2, 4), ta=True, tb=True),
        case(floats(5, 3, 4), floats(4, 2), ta=False, tb=False),
        case(strided(4, 6), strided(6, 3), ta=False, tb=False),
        case(floats(3, 0), floats(0, 2), ta=False, tb=False),
        case(floats(0, 3), floats(3, 2), ta=False, tb=False),
        case(floats(3, 4, dtype="float32"), floats(4, 2, dtype="float32"), ta=False, tb=False),
        case(ints(3, 4), ints(4, 2), ta=False, tb=False),
    ],
    doc="Matrix products over the last two axes; the others broadcast. ta, tb: transpose that input first.",
    slow_on_numpy=is_thin,
)


BLAS_PRODUCTS: dict[tuple[bool, bool], Callable] = {  # (ta, tb) -> the BLAS product of two matrices
    (False, False): HostArray.dot,
    (True, False): lambda a, b: a.T.dot(b),
    (False, True): lambda a, b: a.dot(b.T),
    (True, True): lambda a, b: a.T.dot(b.T),
}


def choose_dot(a: Spec, b: Spec, ta: bool, tb: bool):
    """Choose dot if possible: the same BLAS call as matmul, in a third of the time for small matrices. For 1x1 matrices
    dot would skip 0 * NaN.
    """
    fits = a.ndim == b.ndim == 2 and a.dtype in (float32, float64) and a.size > 1 < b.size
    if not fits:
        return None
    dot = BLAS_PRODUCTS[bool(ta), bool(tb)]
    (n, k), p = a.shape[::-1] if ta else a.shape, b.shape[0 if tb else 1]
    run = runner(n, k, p)
    return dot if run is None else functools.partial(run, dot)


@kernel(matmul, specialize=choose_dot)
def _(xp, a, b, ta, tb, out=None):
    if ta:
        a = a.T if a.ndim == 2 else a.swapaxes(-1, -2)
    if tb:
        b = b.T if b.ndim == 2 else b.swapaxes(-1, -2)
    if a.dtype.char == "e":  # float16: NumPy has no fast product, and accumulates in float16
        with silent():
            wide = product(xp, a.astype("float32"), b.astype("float32"))
            if out is None:
                return wide.astype("float16")
            xp.copyto(out, wide, casting="same_kind")
            return out
    if a.ndim == b.ndim == 2 and a.size > 1 < b.size:  # for one element, dot skips 0 * NaN
        # the same BLAS call as xp.matmul, in a third of the time for small matrices
        run = runner_of(a, b)
        return a.dot(b, out) if run is None else run(a.dot, b, out)
    with silent():
        if a.ndim == b.ndim == 2 and 1 in (a.size, b.size):  # here xp.matmul takes ten times as long
            return xp.multiply(a, b, out=out)
        return product(xp, a, b, out)


# ---- products with a bias ----------------------------------------------------------------------------------------


def match_product(bias, product):
    """The bias in the dtype of the product, which autocast may have computed in a lower precision."""
    if bias.spec.dtype is not product.spec.dtype and MODE.get().low is not None:
        return cast(bias, dtype=product.spec.dtype)
    return bias


def split_axis(x: Spec) -> int:
    """The first axis that is split over ranks, or 0."""
    return 0 if x.sbp is None else min([s.dim for s in x.sbp if s.kind == "split"], default=0)


def affine(x, weight, bias=None):
    """x @ weight.T + bias, for x and weight of one dtype; in half precision on a CPU with one rounding."""
    shape, rows = x.spec.shape, weight.spec.shape[0]
    # The product may overflow even if the sum does not. On a GPU, float32 would take many times as long.
    if bias is not None and weight.spec.dtype in HALF_DTYPES and weight.spec.device is cpu:
        wide = affine(*[in_dtype(t, float32) for t in (x, weight, bias)])
        return cast(wide, dtype=weight.spec.dtype)
    if len(shape) == 2:
        out = apply(matmul, x, weight, ta=False, tb=True)
        return out if bias is None else out + match_product(bias, out)
    axis = split_axis(x.spec)
    if 0 < axis < len(shape) - 1 and (bias is None or bias.spec.ndim == 1):  # a reshape keeps the split of axis 0
        return affine(x.transpose(0, axis), weight, bias).transpose(0, axis)
    rows_of_x = math.prod(shape[:-1]), shape[-1]  # one large product, in forward and backward
    flat = apply(reshape, x, shape=rows_of_x) if x._alias is None else x.reshape(rows_of_x)
    out = apply(matmul, flat, weight, ta=False, tb=True)
    if bias is not None and bias.spec.shape == (rows,):
        return apply(reshape, out + match_product(bias, out), shape=(*shape[:-1], rows))
    out = apply(reshape, out, shape=(*shape[:-1], rows))
    return out if bias is None else out + match_product(bias, out)


@in_float32
def bilinear_parts(x1, x2, weight, bias):
    k, i, j = weight.spec.shape
    outer = x1.spec.shape[:-1]
    rows = math.prod(outer)
    left = (x1.reshape(rows, i) @ weight.permute(1, 0, 2).reshape(i, k * j)).reshape(rows, k, j)
    out = (left @ x2.reshape(rows, j, 1)).reshape(*outer, k)
    return out if is_number(bias, 0) else out + bias


bilinear = define(
    "bilinear(x1, x2, weight, bias)",
    decompose=bilinear_parts,
    number_inputs=["bias"],
    unread=["bias"],
    domain="complex",
    examples=[
        case(floats(2, 3), floats(2, 4), floats(5, 3, 4), floats(5)),
        case(floats(2, 2, 3), floats(2, 2, 1), floats(2, 3, 1), 0),
        case(strided(2, 3), strided(2, 4), strided(5, 3, 4), 0),
        case(floats(0, 3, dtype="float32"), floats(0, 4, dtype="float32"), floats(5, 3, 4, dtype="float32"), 0),
        case(floats(3), floats(4), floats(5, 3, 4), floats(5)),
    ],
    doc="out[k] = x1 @ weight[k] @ x2 + bias[k] along the last axes; a bias of 0 for none.",
)
