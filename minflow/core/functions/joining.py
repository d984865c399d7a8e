"""Stacks and cuts: tensors given axes and joined, cut in parts, turned, and combined element by element.

Read next: `counting.py`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np

from ..base.errors import OutOfRangeError, ShapeError
from ..infer import check_memory
from ..mode import MODE
from ..ops import index as i
from ..ops import shape as s
from ..spec import Spec, int64, promote
from ..source_location import fail
from .arguments import axis_of, integer, is_tensor, need_axes, numpy_names, several, tensor_of, to
from .shape import cat, chunk, flatten, flip, meshgrid, reshape, split, stack, transpose, unsqueeze, vstack


MOST_PARTS = 1_000_000  # of a tensor: more are a mistake, and would fill the memory


def every(function: Callable, tensors: tuple):
    """`function` of one tensor, or of each of several."""
    if len(tensors) == 1 and several(tensors[0]):
        return tuple([function(tensor_of(x)) for x in tensors[0]])
    return function(tensor_of(tensors[0])) if len(tensors) == 1 else tuple([function(tensor_of(x)) for x in tensors])


def wide1(x):
    return x if x.spec.ndim else s.reshape(x, shape=(1,))


def wide2(x):
    return x if x.spec.ndim > 1 else unsqueeze(wide1(x), 0)


def wide3(x):
    return x if x.spec.ndim > 2 else unsqueeze(wide2(x), -1)


def atleast_1d(*tensors):
    """Tensors with at least one axis, views: a number becomes a vector of one. Of several tensors a tuple."""
    return every(wide1, tensors)


def atleast_2d(*tensors):
    """Tensors with at least two axes, views: a vector becomes a row. Of several tensors a tuple."""
    return every(wide2, tensors)


def atleast_3d(*tensors):
    """Tensors with at least three axes, views: a vector becomes (1, n, 1), a matrix (m, n, 1). Of several a tuple."""
    return every(wide3, tensors)


def column_stack(tensors: Sequence):
    """Side by side along axis 1; a number or a vector is a column."""
    tensors = [tensor_of(x) for x in tensors]
    return cat([s.reshape(x, shape=(x.spec.size, 1)) if x.spec.ndim < 2 else x for x in tensors], 1)


def dstack(tensors: Sequence):
    """One behind the other: along axis 2, where each tensor has at least three axes (`atleast_3d`)."""
    return cat([wide3(tensor_of(x)) for x in tensors], 2)


row_stack = vstack


# ---- cut -----------------------------------------------------------------------------------------------------------


@numpy_names
def tensor_split(input, indices_or_sections, dim: int = 0):
    """Parts along `dim`, views: so many (the first ones are longer where it does not divide), or cut before places."""
    need_axes("tensor_split", input)
    axis = axis_of(dim, input.spec.ndim, input)
    size, places = input.spec.shape[axis], indices_or_sections
    if is_tensor(places):
        if places.spec.ndim > 1:
            fail(
                ShapeError,
                f"tensor_split: the places have {places.spec.ndim} axes, a vector is wanted",
                "places.flatten()",
                places=places,
            )
        places = places.tolist()
    if not several(places):
        parts = integer(places, "indices_or_sections")
        if not 0 < parts <= MOST_PARTS:
            hint = f"from 1 to {MOST_PARTS:,}, or a list of places"
            fail(OutOfRangeError, f"tensor_split: {parts} parts", hint, x=input)
        return split(input, [size // parts + (k < size % parts) for k in range(parts)], axis)
    ends = [integer(n, "indices_or_sections") for n in places]
    lead = ((None, None, None),) * axis
    return tuple([s.getitem(input, index=(*lead, ends_of(a, b, size))) for a, b in zip([0, *ends], [*ends, size])])


def ends_of(start: int, stop: int, size: int) -> tuple[int, int, None]:
    """A slice from start to stop, as Python counts them, empty where stop comes first."""
    first, last, _ = slice(start, stop).indices(size)
    return first, max(first, last), None


def cut_evenly(name: str, axes: int, axis: int):
    """hsplit and its kind: along one axis, into parts that are equal where their number is given."""

    def cut(input, indices_or_sections):
        need_axes(name, input, axes)
        dim = axis if input.spec.ndim > axis else 0
        if not several(indices_or_sections) and not is_tensor(indices_or_sections):
            parts, size = integer(indices_or_sections, "indices_or_sections"), input.spec.shape[dim]
            if parts < 1 or size % parts:
                fail(
                    ShapeError,
                    f"{name}: axis {dim} of size {size} is not cut into {parts} equal parts",
                    "a number that divides it; or flow.tensor_split, whose parts may differ by one",
                    x=input,
                )
        return tensor_split(input, indices_or_sections, dim)

    cut.__name__ = cut.__qualname__ = name
    cut.__doc__ = f"""Parts along axis {axis}{" (of a vector: 0)" if axes == 1 else ""}, views: so many equal ones, or
    cut before the places of a list."""
    return cut


hsplit, vsplit, dsplit = cut_evenly("hsplit", 1, 1), cut_evenly("vsplit", 2, 0), cut_evenly("dsplit", 3, 2)


def split_with_sizes(input, split_sizes: Sequence[int], dim: int = 0):
    """Parts of these sizes along `dim`, views."""
    return split(input, list(split_sizes), dim)


# ---- turned --------------------------------------------------------------------------------------------------------


def fliplr(input):
    """The columns (axis 1) in reverse order; a copy."""
    need_axes("fliplr", input, 2)
    return flip(input, 1)


def flipud(input):
    """The rows (axis 0) in reverse order; a copy."""
    need_axes("flipud", input)
    return flip(input, 0)


def rot90(input, k: int = 1, dims: Sequence[int] = (0, 1)):
    """Turned by k quarters, from the first of two axes towards the second; a copy."""
    need_axes("rot90", input, 2)
    if not several(dims) or len(dims) != 2:
        fail(ShapeError, f"rot90: dims is {dims!r}, where two axes are wanted", "dims=(0, 1)", x=input)
    a, b = [axis_of(d, input.spec.ndim, input) for d in dims]
    if a == b:
        fail(ShapeError, f"rot90: dims {tuple(dims)} names one axis twice", "dims=(0, 1)", x=input)
    quarters = integer(k, "k") % 4
    if quarters == 0:
        return s.clone(input)
    return flip(input, a, b) if quarters == 2 else transpose(flip(input, b if quarters == 1 else a), a, b)


def ravel(input):
    """All elements as a vector; a view of a contiguous tensor, else a copy."""
    return reshape(input.contiguous(), -1)


def narrow_copy(input, dim: int, start: int, length: int):
    """As narrow, but a copy."""
    return s.clone(input.narrow(dim, start, length))


# ---- combined ------------------------------------------------------------------------------------------------------


def block_diag(*tensors):
    """The matrix with these matrices along its diagonal and zeros elsewhere; a vector is a row."""
    given = [tensor_of(x) for x in (tensors[0] if len(tensors) == 1 and several(tensors[0]) else tensors)]
    blocks = [wide2(x) for x in given]
    for k, x in enumerate(blocks):
        if x.spec.ndim > 2:
            fail(
                ShapeError,
                f"block_diag: tensor {k} has {x.spec.ndim} axes, a matrix has 2",
                "a list of its matrices",
                **{f"tensors[{k}]": x},
            )
    if not blocks:
        return s.full(shape=(1, 0), value=0, dtype=promote(float))
    dtype, width, before, rows = promote(*[x.spec for x in given]), sum([x.spec.shape[1] for x in blocks]), 0, []
    for x in blocks:
        n, m = x.spec.shape
        left, right = [s.full(shape=(n, k), value=0, dtype=dtype) for k in (before, width - before - m)]
        rows.append(s.cat(left, to(x, dtype), right, dim=1))
        before += m
    return s.cat(*rows, dim=0)


def vectors(name: str, tensors: Sequence) -> list:
    for k, x in enumerate(tensors):
        if x.spec.ndim != 1:
            fail(
                ShapeError,
                f"{name}: tensor {k} has {x.spec.ndim} axes, a vector has 1",
                "x.flatten()",
                **{f"tensors[{k}]": x},
            )
    return list(tensors)


def cartesian_prod(*tensors):
    """`(n1 * n2 * ..., k)`: each choice of one element from each of k vectors, the last changing fastest."""
    tensors = vectors("cartesian_prod", tensors[0] if len(tensors) == 1 and several(tensors[0]) else tensors)
    return tensors[0] if len(tensors) == 1 else stack([flatten(x) for x in meshgrid(*tensors)], 1)


def combinations(input, r: int = 2, with_replacement: bool = False):
    """`(m, r)`: each choice of r elements of a vector in its order, with_replacement: an element may come again."""
    vectors("combinations", [input])
    r = integer(r, "r")
    if r < 0:
        fail(OutOfRangeError, f"combinations: r is {r}", "how many are chosen: 0 or more", x=input)
    if not r:
        return s.full(shape=(0,), value=0, dtype=input.spec.dtype)
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    n = input.spec.size
    check_memory("combinations", [Spec((math.comb(n + r - 1 if with_replacement and n else n, r), r), int64)])
    places = np.fromiter(itertools.chain.from_iterable(choose(range(n), r)), "int64").reshape(-1, r)
    return i.take(input, MODE.get().tensor_of(places), axis=0)


def unsafe_chunk(input, chunks: int, dim: int = 0):
    """As chunk: a write into a part is always sound here."""
    return chunk(input, chunks, dim)


def unsafe_split(tensor, split_size, dim: int = 0):
    """As split: a write into a part is always sound here."""
    return split(tensor, split_size, dim)


def unsafe_split_with_sizes(input, split_sizes: Sequence[int], dim: int = 0):
    """As split_with_sizes: a write into a part is always sound here."""
    return split_with_sizes(input, split_sizes, dim)
