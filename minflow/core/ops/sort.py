"""Sorting along an axis: one stable primitive. argsort, topk and median are composites: `functions/ordering.py`."""

from __future__ import annotations

from .examples import case, distinct, floats, ints
from ..op import define, kernel
from ..spec import Spec, int64
from .index import scatter
from .rules import need_axis, settle
from .shape import zeros_of


def ordered(x: Spec, axis: int, descending: bool):
    need_axis("sort", x, axis)
    return x, x.but(dtype=int64)


sort = define(
    "sort(x; axis, descending) -> values, indices",
    ordered,
    lambda g, out1, axis: scatter(zeros_of(g[0].spec), out1, g[0], dim=axis),
    examples=[
        case(distinct(5), axis=0, descending=False),
        case(distinct(3, 4), axis=0, descending=True),
        case(distinct(2, 3, 4), axis=1, descending=False),
        case(floats(0, 3), axis=0, descending=False),
        case(ints(8, high=3), axis=0, descending=True),
    ],
    doc="In order along an axis, equal ones as they stood, NaN as the largest; and where each came from.",
)


@kernel(sort)
def _(xp, x, axis, descending, out=None):
    order = (slice(None),) * axis
    if descending:  # the reverse of an ascending sort of the reverse keeps equal ones as they stood
        back = (*order, slice(None, None, -1))
        indices = x.shape[axis] - 1 - xp.argsort(x[back], axis, kind="stable")[back]
    else:
        indices = xp.argsort(x, axis, kind="stable")
    values = xp.take_along_axis(x, indices, axis)
    if out is None:
        return values, xp.ascontiguousarray(indices)
    return settle(xp, values, out[0]), settle(xp, indices, out[1])
