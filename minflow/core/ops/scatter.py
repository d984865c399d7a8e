"""scatter_reduce with a product or an extreme; sums and plain writes are `scatter_add` and `scatter` in `index.py`."""

from __future__ import annotations

from ..kernels import kernel
from ..op import define
from .compare import eq, logical_and
from .elementwise import where
from .examples import case, distinct, floats, ints
from .index import gather, gather_labels, gather_spec, index_grid, scatter, scatter_add
from .shape import cast, zeros_of

UFUNCS = {"prod": "multiply", "amax": "maximum", "amin": "minimum"}
INITIAL_VALUES = {
    "prod": lambda xp, dtype: 1,
    "amax": lambda xp, dtype: neutral_element(xp, dtype, -1),
    "amin": lambda xp, dtype: neutral_element(xp, dtype, 1),
}


def neutral_element(xp, dtype, sign: int):
    """The neutral element of an extreme: -inf for the maximum, inf for the minimum."""
    if dtype.kind == "f":
        return sign * xp.inf
    if dtype.kind == "b":
        return sign > 0
    return xp.iinfo(dtype).max if sign > 0 else xp.iinfo(dtype).min


scatter_reduce = define(
    "scatter_reduce(x, index, src; dim, reduce, include_self, by)",
    lambda x, index, src, dim, reduce, include_self, by="scatter_reduce": gather_spec(x, index, src, dim=dim, by=by),
    {
        "x, src": lambda g, x, index, src, out, dim, reduce, include_self: (
            product_grad if reduce == "prod" else divide_among_extremes
        )(g, x, index, src, out, dim, include_self)
    },
    sharding=gather_labels,
    examples=[
        case(floats(3, 4), ints(5, 4, high=3), floats(5, 4), dim=0, reduce="prod", include_self=True),
        case(floats(3, 4), ints(3, 3, high=4), floats(3, 3), dim=1, reduce="prod", include_self=False),
        case(distinct(3, 4), ints(2, 4, high=3), distinct(2, 4)(low=-1.9), dim=0, reduce="amax", include_self=True),
        case(distinct(5), ints(4, high=5), distinct(4)(low=-1.9), dim=0, reduce="amin", include_self=False),
        case(ints(5), ints(4, high=5), ints(4), dim=0, reduce="amax", include_self=True),
        case(floats(5), ints(0, high=5), floats(0), dim=0, reduce="amax", include_self=True),
    ],
    doc="x with the product, maximum or minimum of the elements of src at each position, with or without that of x.",
)


@kernel(scatter_reduce, on_host=True)
def _(xp, x, index, src, dim, reduce, include_self, by="scatter_reduce"):
    places, result = index_grid(xp, by, x, index, dim), x.copy()
    if not include_self:
        result[places] = INITIAL_VALUES[reduce](xp, x.dtype)
    getattr(xp, UFUNCS[reduce]).at(result, places, src)
    return result


def self_grad(g, index, dim: int, include_self: bool):
    """The part of g that belongs to x: none at scattered positions unless include_self."""
    return g if include_self else scatter(g, index, 0, dim=dim)


def divide_among_extremes(g, x, index, src, out, dim: int, include_self: bool):
    """Divide g among the elements that equal the results."""
    mine = self_grad(cast(eq(x, out), dtype=g.spec.dtype), index, dim, include_self)
    theirs = cast(eq(src, gather(out, index, dim=dim)), dtype=g.spec.dtype)
    share = g / scatter_add(mine, index, theirs, dim=dim)
    return mine * share, gather(share, index, dim=dim) * theirs


def product_grad(g, x, index, src, out, dim: int, include_self: bool):
    """g times the product of the other factors: the product of all divided by this one, or if this one is 0, the
    product of the others.
    """
    reduced = lambda x, src: scatter_reduce(x, index, src, dim=dim, reduce="prod", include_self=include_self)
    ones = where(eq(x, 0), 1, x)
    zero = eq(src, 0)
    zeros = gather(scatter_add(zeros_of(x.spec), index, cast(zero, dtype=x.spec.dtype), dim=dim), index, dim=dim)
    alone = logical_and(zero, eq(zeros, 1))
    rest = gather(g * reduced(x, where(alone, 1, src)), index, dim=dim)
    whole = gather(g * out, index, dim=dim) / where(zero, 1, src)
    return self_grad(g * reduced(ones, src) / ones, index, dim, include_self), where(alone, rest, whole)
