"""Order statistics: nanmedian, mode, searchsorted, groups of equal elements and their counts, histograms.

Sorting itself: `sort.py`. Read next: `functions/counting.py`.
"""

from __future__ import annotations

import math

from ..backend import on_host
from ..base.errors import OutOfRangeError, ShapeError
from ..deferred import defer
from ..host.float_warnings import silent
from ..infer import data_dependent
from ..kernels import kernel
from ..op import define
from ..sharding import whole_lines
from ..source_location import fail, here
from ..spec import DType, Spec, bool_, int32, int64, spec_of
from .checks import first_wrong
from .compare import eq, isnan
from .elementwise import where
from .examples import bools, case, distinct, floats, ints, strided
from .reduce import expand_reduced, nonempty_spec, sum
from .rules import accumulate, keepdims_shape, need_axis, need_floating, write_out
from .shape import cast, reshape

nanmedian = define(
    "nanmedian(x)",
    lambda x: x.replace(shape=()),
    lambda g, x, out: divide_among_extremes(g, x, out),
    examples=[distinct(5), distinct(3, 4), floats(()), strided(4, 5), floats(5, dtype="float32"), ints(7)],
    doc="The median, ignoring NaN (the lower of two middle elements); ties share the gradient.",
)


def divide_among_extremes(g, x, out):
    """Divide g among the elements that equal the result, or among all elements if they are all NaN."""
    out = expand_reduced(out, x.spec, None)
    hit = cast(where(isnan(out), isnan(x), eq(x, out)), dtype=g.spec.dtype)
    return expand_reduced(g / reshape(sum(hit, axis=None, keepdims=False), shape=()), x.spec, None) * hit


@kernel(nanmedian)
def _(xp, x, out=None):
    if not on_host(x):
        count = (x == x).sum()
        middle = xp.sort(x.reshape(-1))[xp.maximum(count - 1, 0) // 2] if x.size else 0  # NaN is sorted last
        return write_out(xp, xp.where(count > 0, middle, median_of_none(xp, x.dtype)).astype(x.dtype), out)
    kept = x[x == x]
    place = (kept.size - 1) // 2
    result = xp.partition(kept, place)[place] if kept.size else median_of_none(xp, x.dtype)
    return write_out(xp, xp.asarray(result, x.dtype), out)


def median_of_none(xp, dtype):
    """The median of no elements, as in PyTorch."""
    return xp.nan if dtype.kind == "f" else xp.iinfo(dtype).min if dtype.kind != "b" else True


def one_axis_spec(x: Spec, axis: int) -> Spec:
    need_axis("mode", x, axis)
    return x.replace(shape=keepdims_shape(nonempty_spec("mode", x, (axis,)).shape, (axis,)), dtype=int64)


mode_place = define(
    "mode_place(x; axis)",
    one_axis_spec,
    sharding=whole_lines(2),
    examples=[
        case(ints(3, 6, high=3), axis=1),
        case(ints(7, high=3), axis=0),
        case(distinct(3, 4), axis=0),
        case(bools(5, 2), axis=0),
    ],
    doc="The last index of the most frequent element along an axis (ties: the smallest).",
)


@kernel(mode_place)
def _(xp, x, axis, out=None):
    rows = xp.moveaxis(x, axis, -1)
    order = xp.argsort(rows, -1, kind="stable")
    longest = xp.argmax(equal_before(xp, xp.take_along_axis(rows, order, -1)), -1)[..., None]
    return write_out(xp, xp.ascontiguousarray(xp.moveaxis(xp.take_along_axis(order, longest, -1), -1, axis)), out)


def equal_before(xp, ranked):
    """For each of the sorted elements, the number of equal elements before it."""
    n, begins = xp.arange(ranked.shape[-1]), xp.ones(ranked.shape, bool)
    begins[..., 1:] = ranked[..., 1:] != ranked[..., :-1]
    return n - accumulate(xp, "maximum", xp.where(begins, n, 0), -1)


# ---- positions in sorted edges
# ----------------------------------------------------------------------------------------


def searchsorted_spec(edges: Spec, x: Spec, right: bool, dtype: DType) -> Spec:
    if (edges.ndim != 1 and edges.shape[:-1] != x.shape[:-1]) or not edges.ndim:
        raise ShapeError(
            f"searchsorted: {{edges}} has shape {edges.shape}, {{x}} has {x.shape}",
            hint="a vector of edges for all, or a row of edges for each row: the same shape except for the last axis",
        )
    return x.replace(dtype=dtype)


searchsorted = define(
    "searchsorted(edges, x; right, dtype)",
    searchsorted_spec,
    sharding=lambda edges, x, **_: "., ... -> ..." if edges.ndim == 1 else "... ., ... n -> ... n",
    examples=[
        case(distinct(5)(layout=lambda a: a[a.argsort()]), floats(3, 4), right=False, dtype=int64),
        case(ints(6, high=1), ints(4, low=-1, high=2), right=True, dtype=int32),
        case(distinct(3, 4)(layout=lambda a: a[:, :1] + abs(a).cumsum(1)), floats(3, 2), right=False, dtype=int64),
        case(floats(1), floats(()), right=True, dtype=int64),
    ],
    doc="The insertion index of each element into sorted edges, before equal ones (right: after them).",
)


@kernel(searchsorted)
def _(xp, edges, x, right, dtype, out=None):
    side = "right" if right else "left"
    found = (
        xp.searchsorted(edges, x, side)
        if edges.ndim == 1
        else [xp.searchsorted(edges[row], x[row], side) for row in xp.ndindex(x.shape[:-1])]
    )
    return write_out(xp, xp.asarray(found, dtype.np).reshape(x.shape), out)


isin = define(
    "isin(x, among; invert)",
    lambda x, among, invert: x.replace(dtype=bool_),
    sharding=lambda x, among, invert: [tuple(range(x.ndim)), (None,) * among.ndim, tuple(range(x.ndim))],
    examples=[
        case(ints(3, 4), ints(2), invert=False),
        case(ints(5), ints(0), invert=True),
        case(floats(()), distinct(3), invert=False),
    ],
    doc="True for elements of x that are among the others (invert: that are not).",
)
kernel(isin, lambda xp, x, among, invert, out=None: write_out(xp, xp.asarray(xp.isin(x, among, invert=invert)), out))


# ---- groups of equal elements
# ------------------------------------------------------------------------------------------


def groups_spec(x: Spec, axis: int | None, runs: bool) -> Spec:
    if axis is None:
        return x.replace(dtype=int64)
    need_axis("unique", x, axis)
    return x.replace(shape=(x.shape[axis],), dtype=int64)


groups = define(
    "groups(x; axis, runs)",
    groups_spec,
    attr_kinds={"axis": "integer or None"},
    examples=[
        case(ints(3, 4, high=3), axis=None, runs=False),
        case(ints(8, high=2), axis=None, runs=True),
        case(ints(6, 2, high=2), axis=0, runs=False),
        case(ints(2, 6, high=2), axis=1, runs=True),
        case(floats(0), axis=None, runs=False),
    ],
    doc="The index of each element's (or slice's) group of equals: in sorted order, or runs in their order.",
)


@kernel(groups)
def _(xp, x, axis, runs, out=None):
    n = x.size if axis is None else x.shape[axis]
    rows = x.reshape(n, 1) if axis is None else xp.moveaxis(x, axis, 0).reshape(n, -1 if x.size else 0)
    numbers = group_rows(xp, rows, runs)
    return write_out(xp, numbers.reshape(x.shape) if axis is None else numbers, out)


def group_rows(xp, rows, runs: bool):
    """The index of the group of each row; groups are ordered by the first column first."""
    n = len(rows)
    order = xp.arange(n) if runs or not rows.size else xp.lexsort(rows.T[::-1])
    ranked, numbers = rows[order], xp.empty(n, "int64")
    numbers[order] = xp.cumsum(xp.append(0, (ranked[1:] != ranked[:-1]).any(1)))[:n]
    return numbers


firsts = define(
    "firsts(group)",
    data_dependent,
    examples=[ints(6, high=1), ints(0)],
    doc="The first position of each group 0, 1, 2, ...; eager only, because the shape depends on the elements.",
)
kernel(firsts, lambda xp, group: xp.unique(group, return_index=True)[1].astype("int64"))

bincount = define(
    "bincount(x, weights; minlength)",
    data_dependent,
    examples=[
        case(ints(6), 1, minlength=0),
        case(ints(6, dtype="int32"), floats(6), minlength=8),
        case(ints(0), 1, minlength=2),
    ],
    doc="The count of each of 0, 1, 2, ..., or the sum of its weights; eager only, because the shape depends on the "
    "elements.",
)


@kernel(bincount)
def _(xp, x, weights, minlength):
    check_natural(xp, x)
    kind = "int64" if weights.__class__ is int else "float32" if weights.dtype == "float32" else "float64"
    return xp.bincount(x, None if kind == "int64" else weights, minlength).astype(kind)


def check_natural(xp, x) -> None:
    if x.size and x.min() < 0:
        wrong, at = first_wrong(xp, x, x < 0, "the input")
        fail(OutOfRangeError, f"bincount: elements must be at least 0, got {wrong}{at}", "x[x >= 0]", x=spec_of(x))


def bin_range(xp, x, low: float, high: float) -> tuple:
    """The range of the bins: two different finite numbers."""
    if low != high or not x.size:
        check_bins(x, low, high)
        return (low - 1, high + 1) if low == high else (low, high)
    least, most, spec = x.min(), x.max(), spec_of(x)
    if on_host(x):
        check_bins(x, least, most)
    else:
        defer(("histc", spec), [-least, most], lambda negative, most: bins_error(spec, -negative, most))
    equal = (least == most).astype(x.dtype)
    return least - equal, most + equal


def check_bins(x, low: float, high: float) -> None:
    if (error := bins_error(spec_of(x), low, high)) is not None:
        error.where = here()
        raise error


def bins_error(x: Spec, low: float, high: float) -> OutOfRangeError | None:
    """The error for bins between two numbers that are not finite."""
    if math.isfinite(low) and math.isfinite(high):
        return None
    what, hint = f"histc: bins from {low} to {high}", "min= and max=, two finite numbers"
    return OutOfRangeError(what, values={"x": x}, hint=hint)


def histc_spec(x: Spec, bins: int, low: float, high: float) -> Spec:
    need_floating("histc", x)
    if bins < 1:
        raise OutOfRangeError(f"histc: bins must be at least 1, got {bins}", hint="at least 1")
    return x.replace(shape=(bins,))


histc = define(
    "histc(x; bins, low, high)",
    histc_spec,
    sharding=lambda x, bins, low, high: "... -> ." if low != high else None,
    examples=[
        case(floats(3, 5), bins=4, low=-1.0, high=1.5),
        case(floats(7, dtype="float32"), bins=3, low=0, high=0),
        case(floats(0), bins=2, low=0, high=0),
    ],
    doc="Counts in equal bins between two limits (0 and 0: the smallest and largest element).",
)


@kernel(histc)
def _(xp, x, bins, low, high, out=None):
    low, high = bin_range(xp, x, low, high)
    inside = (x >= low) & (x <= high)
    with silent():
        place = xp.clip(xp.nan_to_num((x - low) / (high - low) * bins), 0, bins - 1).astype("int64")
    counts = xp.zeros(bins)
    xp.add.at(counts, place.reshape(-1), inside.reshape(-1).astype("float64"))
    return write_out(xp, counts.astype(x.dtype), out)
