"""Counting: `bincount`, `histogram`, `unique`, `isin`, and positions in sorted edges (`searchsorted`).

Read next: `scatter.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..backend import namespace
from ..base.errors import DTypeError, OutOfRangeError, ShapeError, TraceError
from ..mode import MODE
from ..ops import compare as c, elementwise as e, index as i, order_statistics as o, shape as s
from ..source_location import fail
from ..spec import as_dtype, int32, int64, promote
from . import return_types
from .arguments import ensure_tensor, integer, is_sequence, is_tensor, normalize_axis, to
from .quantiles import aminmax
from .reduction import sum

if TYPE_CHECKING:
    from ..base.dtypes import DTypeLike
    from ..tensor import Tensor


def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """`int64 (max + 1,)`: how often each of 0, 1, 2, ... occurs in a vector; with weights, the sum of their weights.

    minlength: minimum length of the result. Raises TraceError in a graph, because the length depends on the data.
    """
    if input.spec.dtype.rank != 1 or input.spec.ndim != 1:
        what = f"bincount: input must be a vector of integers, got {input.spec}"
        fail(DTypeError if input.spec.dtype.rank != 1 else ShapeError, what, "x.long().flatten()", input=input)
    if weights is not None and weights.spec.shape != input.spec.shape:
        what = f"bincount: {weights.spec.size} weights for {input.spec.size} elements"
        fail(ShapeError, what, "one for each", input=input, weights=weights)
    minlength = integer(minlength, "minlength")
    if minlength < 0:
        fail(OutOfRangeError, f"bincount: minlength is {minlength}", "0 or more", input=input)
    return o.bincount(input, 1 if weights is None or not input.spec.size else s.detach(weights), minlength=minlength)


def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """`(bins,)`: counts in equal bins from min to max (0 and 0: the smallest and largest element of the input).

    Elements outside the range, and NaN, are not counted. Raises DTypeError for integers.
    """
    bins = integer(bins, "bins")
    if bins < 1 or not min <= max:
        what = f"histc: {bins} bins from {min} to {max}"
        fail(OutOfRangeError, what, "at least one bin, the smaller number first", input=input)
    return o.histc(s.detach(input), bins=bins, low=float(min), high=float(max))


def histogram(
    input: Tensor,
    bins: int | Sequence[int] | Tensor = 100,
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> return_types.histogram:
    """`(hist, bin_edges)`: counts per bin, or the sums of their weights.

    bins: number of equal bins in `range` (default: from the smallest to the largest element), or a vector of edges.
    density: normalize so that the area under the histogram is 1. A bin contains its left edge, the last one both.
    """
    if not input.spec.dtype.floating:
        what = f"histogram: the input must be floating, got {input.spec.dtype.name}"
        fail(DTypeError, what, "input.float()", input=input)
    values, dtype = s.detach(input).reshape(-1), input.spec.dtype
    edges = s.clone(s.detach(to(bins, dtype))) if is_tensor(bins) else even_edges(values, integer(bins, "bins"), range)
    if weight is not None and weight.spec.shape != input.spec.shape:
        fail(
            ShapeError,
            f"histogram: weight must have the shape of input, {list(input.spec.shape)}, got {list(weight.spec.shape)}",
            "flow.ones_like(input) counts each element once",
            input=input,
            weight=weight,
        )
    n = edges.spec.size - 1
    if edges.spec.ndim != 1 or n < 1:
        fail(ShapeError, f"histogram: edges of shape {edges.spec.shape}", "a vector of at least two edges", bins=edges)
    first, last = s.getitem(edges, index=(0,)), s.getitem(edges, index=(n,))
    inside = c.logical_and(c.ge(values, first), c.le(values, last))
    places = e.clamp(e.sub(o.searchsorted(edges, values, right=True, dtype=int64), 1), 0, n - 1)
    one = s.filled(values.spec.replace(dtype=dtype), 1) if weight is None else to(s.detach(weight), dtype).reshape(-1)
    hist = i.index_add(
        s.zeros_of(values.spec.replace(shape=(n,), dtype=dtype)), places, e.where(inside, one, 0), axis=0
    )
    if density:
        hist = hist / (
            sum(hist) * (s.getitem(edges, index=((1, n + 1, None),)) - s.getitem(edges, index=((0, n, None),)))
        )
    return return_types.histogram(hist, edges)


def even_edges(values: Tensor, bins: int, ends: Any) -> Tensor:
    """bins + 1 equally spaced edges, the last one exactly as given."""
    if bins < 1:
        fail(OutOfRangeError, f"histogram: {bins} bins", "at least 1", bins=bins)
    if ends is not None:
        if len(ends) != 2 or not all(map(math.isfinite, ends)) or ends[0] > ends[1]:
            what = f"histogram: range is {ends!r}"
            fail(OutOfRangeError, what, "two finite numbers, the smaller one first", range=ends)
        low, high = [s.filled(values.spec.replace(shape=()), float(end)) for end in ends]
    elif values.spec.size:
        low, high = aminmax(values)
    else:
        low, high = [s.filled(values.spec.replace(shape=()), end) for end in (0.0, 1.0)]
    alike = c.eq(low, high)
    low, high = e.where(alike, low - 0.5, low), e.where(alike, high + 0.5, high)
    if MODE.get().trace is None and not math.isfinite(float(low) + float(high)):
        fail(OutOfRangeError, "histogram: the input must have a finite range", "range=(low, high)", input=values)
    share = s.constant_beside(values, namespace().arange(bins + 1) / bins)
    return to(e.lerp(to(low, share.spec.dtype), to(high, share.spec.dtype), share), values.spec.dtype)


# ---- equal elements
# ----------------------------------------------------------------------------------------------------


def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
    *,
    dtype: DTypeLike | None = None,
) -> Any:
    """The distinct elements in sorted order; with `dim`, the distinct slices along it. Eager only.

    return_inverse: also the index of each element among them. return_counts: also how often each occurs. dtype: of
    these two, int64 by default.
    """
    found = unique_of("unique", input, False, return_inverse, return_counts, dim)
    return found if dtype is None or is_tensor(found) else (found[0], *[to(x, as_dtype(dtype)) for x in found[1:]])


def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """Collapse runs of equal elements (or slices along `dim`) to one; see `unique`. Eager only."""
    return unique_of("unique_consecutive", input, True, return_inverse, return_counts, dim)


def unique_of(name: str, input: Tensor, runs: bool, return_inverse: bool, return_counts: bool, dim: int | None) -> Any:
    if MODE.get().trace is not None:
        what = f"{name}: the shape of the result depends on the elements, which do not exist while a graph is built"
        hint = "do it before the call; flow.sort and flow.one_hot(x, n).sum(0) have fixed shapes"
        fail(TraceError, what, hint, input=input)
    axis = None if dim is None else normalize_axis(dim, input.spec.ndim, input)
    if dim is not None and not input.spec.ndim:
        fail(ShapeError, f"{name}: dim is {dim}, and the tensor has no axes", "no dim", input=input)
    group = o.groups(s.detach(input), axis=axis, runs=runs)
    flat = group.reshape(-1)
    result = i.take(input if axis is not None else input.reshape(-1), o.firsts(flat), axis=axis or 0)
    more = [group] if return_inverse else []
    more += [o.bincount(flat, 1, minlength=0)] if return_counts else []
    return (result, *more) if more else result


def isin(
    elements: Tensor | float, test_elements: Tensor | float, *, assume_unique: bool = False, invert: bool = False
) -> Tensor:
    """`bool`: True where an element of elements is in test_elements (invert: is not). NaN is never in it."""
    elements, test_elements = ensure_tensor(elements), ensure_tensor(test_elements)
    return o.isin(elements, test_elements, invert=bool(invert))


# ---- positions in sorted edges
# ----------------------------------------------------------------------------------------


def searchsorted(
    sorted_sequence: Tensor,
    values: Tensor,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """`int64`: the index at which each value would be inserted into a sorted vector (or row by row), before equal ones.

    right, or side="right": after equal ones. sorter: the indices that sort an unsorted sequence.
    """
    if side not in (None, "left", "right") or (side == "left" and right):
        what = f"searchsorted: side is {side!r}" + (" and right is True" if right else "")
        fail(DTypeError, what, '"left" or "right"', values=values)
    edges = ensure_tensor(sorted_sequence)
    if sorter is not None:
        edges = i.gather(edges, sorter, dim=edges.spec.ndim - 1, by="searchsorted")
    return insertion_index("searchsorted", edges, values, right or side == "right", out_int32)


def bucketize(input: Tensor, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """`int64`: the index of the bucket between sorted boundaries: boundaries[i - 1] < x <= boundaries[i].

    right: boundaries[i - 1] <= x < boundaries[i].
    """
    boundaries = ensure_tensor(boundaries)
    if boundaries.spec.ndim != 1:
        what = f"bucketize: the boundaries must be a vector, got {boundaries.spec.ndim} axes"
        fail(ShapeError, what, "flow.searchsorted takes a row for each row", boundaries=boundaries)
    return insertion_index("bucketize", boundaries, input, right, out_int32)


def insertion_index(name: str, edges: Tensor, values: Tensor, right: bool, short: bool) -> Tensor:
    if not is_tensor(values) and edges.spec.ndim != 1 and not is_sequence(values):
        fail(ShapeError, f"{name}: a number among rows of edges", "a vector of edges", edges=edges)
    values = ensure_tensor(values)
    dtype = promote(edges.spec, values.spec)
    return o.searchsorted(
        s.detach(to(edges, dtype)), s.detach(to(values, dtype)), right=bool(right), dtype=int32 if short else int64
    )
