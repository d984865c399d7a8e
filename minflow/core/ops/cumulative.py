"""Cumulative products, extremes and logsumexp along an axis, and the recurrence that their gradients need.

The cumulative sum is with the sums, in `reduce.py`. Read next: `core/functions/cumulative.py`.
"""

from __future__ import annotations

import math

from ..kernels import kernel
from ..op import define
from ..sharding import whole_lines
from ..spec import Spec, int64
from .elementwise import exp
from .examples import case, distinct, floats, ints, strided
from .index import flip, scatter_add
from .rules import accumulate, cumulative_rule, need_axis, need_floating, need_spec, via_float32, write_out
from .shape import cat, filled, getitem, zeros_of


def shift(x, axis: int, by: int, fill):
    """Shift x by one along an axis, to higher (by=1) or lower indices; the free end gets `fill`."""
    n, lead = x.spec.shape[axis], ((None, None, None),) * axis
    if not n:
        return x
    end = filled(x.spec.replace(shape=(*x.spec.shape[:axis], 1, *x.spec.shape[axis + 1 :])), fill)
    if by > 0:
        return cat(end, getitem(x, index=(*lead, (0, n - 1, None))), dim=axis)
    return cat(getitem(x, index=(*lead, (1, n, None))), end, dim=axis)


def from_end(function, *tensors, axis: int):
    """Apply a cumulative function from the end of the axis to its beginning."""
    return flip(function(*[flip(x, axes=(axis,)) for x in tensors], axis=axis), axes=(axis,))


def recurrence_spec(a: Spec, b: Spec, axis: int) -> Spec:
    need_axis("recurrence", b, axis)
    need_spec("recurrence", b, a=a)
    return b


recurrence = define(
    "recurrence(a, b; axis)",
    recurrence_spec,
    {"a, b": lambda g, a, out, axis: recurrence_grads(g, a, out, axis)},
    sharding=whole_lines(3),
    linear=("b",),
    examples=[
        case(floats(3, 4), floats(3, 4), axis=0),
        case(floats(2, 5, 3), floats(2, 5, 3), axis=1),
        case(floats(0, 3), floats(0, 3), axis=0),
    ],
    doc="y[i] = a[i] * y[i - 1] + b[i] along an axis, with y[-1] = 0.",
)


def recurrence_grads(g, a, out, axis):
    grad_b = from_end(recurrence, shift(a, axis, -1, 0), g, axis=axis)
    return grad_b * shift(out, axis, 1, 0), grad_b


@kernel(recurrence)
@via_float32
def _(xp, a, b, axis):
    out = b.copy()
    a, y = [xp.moveaxis(x, axis, 0) for x in (a, out)]
    for i in range(1, len(y) if y.size else 0):
        y[i] += a[i] * y[i - 1]
    return out


cumprod = define(
    "cumprod(x; axis)",
    cumulative_rule("cumprod"),
    # for each factor: the product before it times a recurrence over those after it, without a division
    lambda g, x, out, axis: shift(out, axis, 1, 1) * from_end(recurrence, shift(x, axis, -1, 0), g, axis=axis),
    sharding=whole_lines(2),
    examples=[
        case(floats(3, 4), axis=0),
        case(floats(2, 3, 4), axis=1),
        case(strided(4, 5), axis=1),
        case(floats(0, 3), axis=0),
        case(ints(3, 4), axis=1),
    ],
    doc="The cumulative product along an axis.",
)
kernel(
    cumprod,
    lambda xp, x, axis, out=None: xp.multiply.accumulate(
        x, axis, dtype="float32" if x.dtype.char == "e" else None, out=out
    ),
)


def extreme_op(name: str, ufunc: str, doc: str):
    def infer(x: Spec, axis: int):
        need_axis(name, x, axis)
        return x, x.replace(dtype=int64)

    op = define(
        f"{name}(x; axis) -> values, indices",
        infer,
        lambda g, out1, x_spec, axis: scatter_add(zeros_of(x_spec), out1, g[0], dim=axis),
        sharding=whole_lines(3),
        examples=[
            case(distinct(3, 4), axis=0),
            case(distinct(2, 3, 4), axis=1),
            case(strided(4, 5), axis=1),
            case(floats(0, 3), axis=0),
            case(ints(3, 6, high=3), axis=1),
        ],
        doc=doc,
    )

    @kernel(op)
    def _(xp, x, axis):
        values = accumulate(xp, ufunc, x, axis)
        places = xp.arange(x.shape[axis]).reshape((-1,) + (1,) * (x.ndim - 1 - axis))
        found = xp.where((x == values) | (x != x), places, 0)
        return values, accumulate(xp, "maximum", found, axis)

    return op


cummax = extreme_op("cummax", "maximum", "The cumulative maximum along an axis, NaN wins; and its last index.")
cummin = extreme_op("cummin", "minimum", "The cumulative minimum along an axis, NaN wins; and its last index.")


def logcumsumexp_spec(x: Spec, axis: int) -> Spec:
    need_axis("logcumsumexp", x, axis)
    need_floating("logcumsumexp", x)
    return x


logcumsumexp = define(
    "logcumsumexp(x; axis)",
    logcumsumexp_spec,
    lambda g, x, out, axis: logcumsumexp_grad(g, x, out, axis),
    sharding=whole_lines(2),
    examples=[
        case(floats(3, 4), axis=0),
        case(floats(2, 3, 4), axis=1),
        case(strided(4, 5), axis=1),
        case(floats(0, 3), axis=0),
    ],
    doc="Cumulative log(exp(x1) + ... + exp(x)) along an axis, without overflow.",
)


def logcumsumexp_grad(g, x, out, axis):
    """The sum of g[j] * exp(x[i] - out[j]) for j >= i, by a recurrence in which no exponent is above 0."""
    ratio = exp(out - shift(out, axis, -1, math.inf))
    return exp(x - out) * from_end(recurrence, ratio, g, axis=axis)


@kernel(logcumsumexp)
@via_float32
def _(xp, x, axis, out=None):
    return write_out(xp, accumulate(xp, "logaddexp", x, axis), out)
