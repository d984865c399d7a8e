"""Pairwise distances of rows, and a lower bound that passes gradients; composites of norms along an axis."""

from __future__ import annotations

import functools
import math

from ..backend import namespace, on_host
from ..base.errors import OutOfRangeError, ShapeError
from ..host.blas import product
from ..host.float_warnings import silent
from ..kernels import kernel
from ..op import define
from ..spec import Spec, spec_of
from .checks import check_range, first_wrong, refuse
from .examples import case, floats, positive, strided
from .index import take
from .rules import broadcast_shape, need_floating, need_spec, via_float32, write_out
from .shape import constant_beside, in_float32, permute

MIN_MATMUL_PAIRS = 625  # number of pairs from which a matrix product pays off: 25 rows and 25 rows

# A primitive, because maximum has no gradient below the bound, and clamped elements must still learn.
at_least = define(
    "at_least(x; least, name)",
    lambda x, least, name: need_floating("clamp", x),
    lambda g: g,
    second_order=False,  # its gradient deliberately differs from its derivative
    sharding="... -> ...",
    examples=[
        case(positive(3, 4), least=0.1, name="var"),
        case(floats(()), least=-3.0, name=""),
        case(strided(4, 5), least=-3.0, name=""),
        case(floats(0, 3), least=0.5, name="var"),
        case(positive(3)(dtype="float32"), least=0.1, name=""),
    ],
    doc="max(x, least) with gradient 1 everywhere; if name is given, negative elements raise an error with it.",
)


def negative_error(name: str, x: Spec, least: float, most: float, first: str = "") -> OutOfRangeError:
    what = f"{name} must not be negative, got {least:.4g} to {most:.4g}{first}"
    return OutOfRangeError(what, values={name: x}, hint="softplus(x), x.square() or x.exp() of the model's output")


@kernel(at_least)
def _(xp, x, least, name, out=None):
    if name and not on_host(x):
        check_range(xp.where(x < 0, x, 0), 0, math.inf, functools.partial(negative_error, name, spec_of(x)), (name,))
    elif name and x.size and (wrong := x < 0).any():
        number, at = first_wrong(xp, x, wrong, name)
        refuse(negative_error(name, spec_of(x), float(x.min()), float(x.max()), f"; first {number:.4g}{at}"))
    return xp.maximum(x, x.dtype.type(least), out=out)


def pairs_spec(a: Spec, b: Spec, p: float) -> Spec:
    need_floating("cdist", a)
    if a.ndim < 2 or b.ndim != a.ndim:
        raise ShapeError(f"cdist: {{a}} has {a.ndim} axes, {{b}} {b.ndim}", hint="the same batch axes for both")
    need_spec("cdist", a.replace(shape=(*a.shape[:-2], b.shape[-2], a.shape[-1])), b=b)
    return a.replace(shape=(*a.shape[:-1], b.shape[-2]))


def transposed(x):
    return permute(x, dims=(*range(x.spec.ndim - 2), x.spec.ndim - 1, x.spec.ndim - 2))


# A primitive to save memory: all differences at once, (P, R, M), are M times as large as the result.
pair_distances = define(
    "pair_distances(a, b; p)",
    pairs_spec,
    dict(
        a=lambda g, a, b, out, p: pair_distances_grad(g, a, b, out, p=p),
        b=lambda g, a, b, out, p: pair_distances_grad(transposed(g), b, a, transposed(out), p=p),
    ),
    second_order=False,
    autocast="float32",
    sharding="... m ., ... n . -> ... m n",
    examples=[
        *[case(floats(3, 4), floats(2, 4), p=p) for p in (2.0, 1.0, math.inf, 0.0, 3.0, 1.5)],
        case(floats(2, 3, 4), floats(2, 5, 4), p=2.0),
        case(strided(4, 5), floats(3, 5), p=2.0),
        case(floats(0, 3), floats(2, 3), p=2.0),
        case(floats(2, 0), floats(2, 0), p=1.0),
        case(floats(30, 2, dtype="float32"), floats(30, 2, dtype="float32"), p=2.0),
    ],
    doc="The p-norm distance of each row of a to each row of b.",
)


def pairs_grad(grad: Spec, a: Spec, b: Spec, distance: Spec, p: float) -> Spec:
    need_spec("cdist", pairs_spec(a, b, p), grad=grad, distance=distance)
    return a


pair_distances_grad = define(
    "pair_distances_grad(grad, a, b, distance; p)",
    pairs_grad,
    second_order=False,
    sharding="... m n, ... m ., ... n ., ... m n -> ... m .",
    examples=[case(floats(3, 2), floats(3, 4), floats(2, 4), positive(3, 2), p=p) for p in (2.0, 1.0, 0.0, 3.0, 0.5)]
    + [
        case(
            floats(30, 30, dtype="float32"),
            floats(30, 2, dtype="float32"),
            floats(30, 2, dtype="float32"),
            positive(30, 30)(dtype="float32"),
            p=2.0,
        )
    ],
    doc="The gradient of pair_distances with respect to a; 0 where a distance is 0.",
)


def use_product(xp, a, b, p: float) -> bool:
    """True if |a|**2 + |b|**2 - 2ab is exact enough: for float32 inputs in double precision."""
    return p == 2 and a.dtype.char == "f" and a.shape[-2] * b.shape[-2] > MIN_MATMUL_PAIRS


@kernel(pair_distances)
@via_float32
def _(xp, a, b, p, out=None):
    with silent():
        if use_product(xp, a, b, p):
            x, y = a.astype("float64"), b.astype("float64")
            squares = xp.square(x).sum(-1)[..., None] + xp.square(y).sum(-1)[..., None, :] - 2 * product(xp, x, y.mT)
            return write_out(xp, xp.sqrt(xp.maximum(squares, 0)).astype("float32"), out)
        out = xp.empty((*a.shape[:-1], b.shape[-2]), a.dtype) if out is None else out
        if not a.size or not b.size:
            out.fill(0)
            return out
        for row in xp.ndindex(a.shape[:-1]):
            apart = xp.abs(a[row] - b[row[:-1]])
            if p == 2:
                out[row] = xp.sqrt(xp.square(apart).sum(-1))
            elif p == math.inf:
                out[row] = apart.max(-1) if apart.shape[-1] else 0
            else:
                out[row] = (apart != 0).sum(-1) if p == 0 else (apart**p).sum(-1) ** (1 / p)
    return out


@kernel(pair_distances_grad)
@via_float32
def _(xp, grad, a, b, distance, p, out=None):
    with silent():
        share = grad if p in (0, 1, math.inf) else xp.where(distance == 0, 0, grad / distance ** (p - 1))
        if use_product(xp, a, b, p):
            weights = share.astype("float64")
            return write_out(
                xp, (weights.sum(-1)[..., None] * a - product(xp, weights, b.astype("float64"))).astype("float32"), out
            )
        out = xp.empty(a.shape, a.dtype) if out is None else out
        if not a.size or not b.size:
            out.fill(0)
            return out
        for row in xp.ndindex(a.shape[:-1]):
            apart = a[row] - b[row[:-1]]
            size, slope = xp.abs(apart), xp.sign(apart)
            if p == math.inf:
                slope *= size == distance[row][:, None]
            elif p != 1:
                slope = xp.where((size == 0) | (p == 0), 0, slope * size ** (p - 1))
            out[row] = (slope * share[row][:, None]).sum(-2)
    return out


def pdist_parts(x, p):
    n, xp = x.spec.shape[0], namespace()
    above = constant_beside(x, xp.flatnonzero(xp.triu(xp.ones((n, n), bool), 1)))
    return take(pair_distances(x, x, p=p).reshape(n * n), above, axis=0, by="index_select")


pdist = define(
    "pdist(x; p)",
    decompose=pdist_parts,
    second_order=False,
    autocast="float32",
    examples=[
        *[case(floats(4, 3), p=p) for p in (2.0, 1.0, math.inf, 0.0, 1.5)],
        case(strided(3, 4), p=2.0),
        case(floats(1, 3), p=2.0),
        case(floats(3, 4, dtype="float32"), p=2.0),
    ],
    doc="The p-norm distances between the rows of x, each pair once.",
)


# ---- norms along an axis -----------------------------------------------------------------------------------------


def normalize_parts(x, p, axes, eps):
    return x / x.norm(p, axes, keepdim=True).clamp(min=eps)


normalize = define(
    "normalize(x; p, axes, eps)",
    decompose=normalize_parts,
    domain="complex",
    attr_kinds={"axes": "integers or None"},
    examples=[
        case(floats(3, 4), p=2.0, axes=(1,), eps=1e-12),
        case(floats(2, 3, 4), p=3.0, axes=(0, 2), eps=0.5),
        case(strided(4, 5), p=math.inf, axes=(0,), eps=1e-12),
        case(floats(4), p=1.0, axes=None, eps=1e-12),
        case(floats(0, 3, dtype="float32"), p=2.0, axes=(1,), eps=1e-12),
    ],
    doc="x / max(norm of order p along the axes, eps).",
)


def cosine_similarity_parts(x1, x2, axis, eps):
    shape = broadcast_shape("cosine_similarity", {"x1": x1.spec.shape, "x2": x2.spec.shape})
    x1, x2 = x1.expand(shape), x2.expand(shape)
    a, b = (x / at_least(x.norm(2, axis, keepdim=True), least=eps, name="") for x in (x1, x2))
    return (a * b).sum(axis)


cosine_similarity = define(
    "cosine_similarity(x1, x2; axis, eps)",
    decompose=in_float32(cosine_similarity_parts),
    second_order=False,
    examples=[
        case(floats(3, 4), floats(3, 4), axis=1, eps=1e-8),
        case(floats(2, 3, 4), floats(3, 1), axis=0, eps=1e-8),
        case(strided(4, 5), strided(4, 5), axis=0, eps=1e-8),
        case(floats(0, 3, dtype="float32"), floats(3, dtype="float32"), axis=1, eps=1e-8),
    ],
    doc="sum(x1 * x2) / (|x1| * |x2|) along an axis, where each norm is at least eps.",
)


@in_float32
def pairwise_distance_parts(x1, x2, p, eps, keepdims):
    difference = x1 - x2 + eps
    return difference.norm(p, -1, keepdim=keepdims) if difference.spec.ndim else difference.norm(p)


pairwise_distance = define(
    "pairwise_distance(x1, x2; p, eps, keepdims)",
    decompose=pairwise_distance_parts,
    examples=[
        case(floats(3, 4), floats(3, 4), p=2.0, eps=1e-6, keepdims=False),
        case(floats(3, 4), floats(4), p=1.0, eps=1e-6, keepdims=True),
        case(strided(4, 5), strided(4, 5), p=3.0, eps=0.1, keepdims=False),
        case(floats(()), floats(()), p=2.0, eps=1e-6, keepdims=False),
    ],
    doc="The norm of order p of x1 - x2 + eps along the last axis.",
)
