"""Stable sorting along an axis, and topk. argsort and median are composites: `core/functions/sorting.py`."""

from __future__ import annotations

from ..backend import on_host
from ..base.errors import OutOfRangeError
from ..kernels import CALLS, calls_of, device_of, kernel
from ..op import define
from ..sharding import whole_lines
from ..spec import Spec, int64
from .examples import case, distinct, floats, ints
from .index import scatter
from .rules import need_axis, write_out
from .shape import zeros_of

MIN_GATHER_ELEMENTS = 1 << 10  # fewer are sorted a second time instead of gathered, in a third of the time


def sort_spec(x: Spec, axis: int, descending: bool):
    need_axis("sort", x, axis)
    return x, x.replace(dtype=int64)


sort = define(
    "sort(x; axis, descending) -> values, indices",
    sort_spec,
    lambda g, out1, axis: scatter(zeros_of(g[0].spec), out1, g[0], dim=axis),
    sharding=whole_lines(3),
    examples=[
        case(distinct(5), axis=0, descending=False),
        case(distinct(3, 4), axis=0, descending=True),
        case(distinct(2, 3, 4), axis=1, descending=False),
        case(floats(0, 3), axis=0, descending=False),
        case(ints(8, high=3), axis=0, descending=True),
    ],
    doc="Elements sorted along an axis (stable, NaN is largest), and their indices.",
)


@kernel(sort)
def _(xp, x, axis, descending, out=None):
    order = (slice(None),) * axis
    if descending:  # the reverse of an ascending sort of the reversed input is stable
        back = (*order, slice(None, None, -1))
        indices = x.shape[axis] - 1 - xp.argsort(x[back], axis, kind="stable")[back]
    else:
        indices = xp.argsort(x, axis, kind="stable")
    again = x.size < MIN_GATHER_ELEMENTS and not descending
    values = xp.sort(x, axis, kind="stable") if again else xp.take_along_axis(x, indices, axis)
    if out is None:
        return values, xp.ascontiguousarray(indices)
    return write_out(xp, values, out[0]), write_out(xp, indices, out[1])


GROUP = 16  # group size: the search for the first few elements looks at one per group


def topk_spec(x: Spec, k: int, axis: int, descending: bool):
    need_axis("topk", x, axis)
    if not 0 <= k <= x.shape[axis]:
        raise OutOfRangeError(f"topk: k is {k}, but axis {axis} of {{x}} has size {x.shape[axis]}")
    found = x.replace(shape=(*x.shape[:axis], k, *x.shape[axis + 1 :]))
    return found, found.replace(dtype=int64)


# A primitive, because a full sort costs ten times as much as finding a few of many elements.
topk = define(
    "topk(x; k, axis, descending) -> values, indices",
    topk_spec,
    lambda g, out1, x_spec, axis: scatter(zeros_of(x_spec), out1, g[0], dim=axis),
    sharding=whole_lines(3),
    examples=[
        case(distinct(100), k=3, axis=0, descending=True),
        case(distinct(3, 70), k=2, axis=1, descending=False),
        case(distinct(66, 4), k=2, axis=0, descending=True),
        case(distinct(2, 3, 4), k=4, axis=2, descending=True),
        case(floats(0, 30), k=2, axis=1, descending=False),
        case(ints(150, high=9), k=4, axis=0, descending=True),
        case(distinct(3, 40), k=1, axis=1, descending=True),
        case(ints(4, 20, high=3), k=1, axis=0, descending=True),
    ],
    doc="The first k elements of sort along an axis.",
    slow_on_numpy=True,
)


@kernel(topk)
def _(xp, x, k, axis, descending, out=None):
    if k == 1 and descending and x.size and on_host(x):  # NaN is largest for both
        indices = x.argmax(axis, keepdims=True)
        values = xp.take_along_axis(x, indices, axis)
        return (values, indices) if out is None else (write_out(xp, values, out[0]), write_out(xp, indices, out[1]))
    indices = topk_positions(xp, xp.moveaxis(x, axis, -1), k, descending)
    if indices is None:
        found = calls_of(device_of((x,)))[sort](x, axis=axis, descending=descending)
        values, indices = [a[(*(slice(None),) * axis, slice(k))] for a in found]
    else:
        indices = xp.moveaxis(indices, -1, axis)
        values = xp.take_along_axis(x, indices, axis)
    if out is None:
        return xp.ascontiguousarray(values), xp.ascontiguousarray(indices)
    return write_out(xp, values, out[0]), write_out(xp, indices, out[1])


def topk_positions(xp, x, k, descending):
    """The positions of the first k of each row, in order; None if k is not small, an element is NaN, too many are
    equal, or the elements are on another device than the CPU.

    The first k are at least the k-th largest of the group maxima. Few elements are, and only those are sorted.
    """
    rows, n = x.shape[:-1], x.shape[-1]
    groups = n // GROUP
    if not on_host(x) or not 0 < 2 * k <= groups or not x.size or (x != x).any():
        return None
    flat = x.reshape(-1, n)
    firsts = (xp.max if descending else xp.min)(flat[:, : groups * GROUP].reshape(-1, GROUP, groups), axis=1)
    bound = groups - k if descending else k - 1
    bound = xp.partition(firsts, bound, -1)[:, bound, None]
    places = xp.flatnonzero(flat >= bound if descending else flat <= bound)
    if places.size > 8 * k * len(flat):
        return None
    places = places[CALLS[sort](flat.reshape(-1)[places], axis=0, descending=descending)[1]]
    row = places // n
    order = xp.argsort(row, kind="stable")
    begins = xp.searchsorted(row[order], xp.arange(len(flat)))
    return (places[order[begins[:, None] + xp.arange(k)]] % n).reshape(*rows, k)
