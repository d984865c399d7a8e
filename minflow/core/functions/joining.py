"""Stacking, splitting, rotating, and combining tensors element by element.

Read next: `counting.py`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..backend import namespace
from ..base.errors import OutOfRangeError, ShapeError
from ..infer import check_memory
from ..ops import index as i, shape as s
from ..source_location import fail
from ..spec import Spec, int64, promote
from .arguments import accept_axis, check_min_axes, ensure_tensor, integer, is_sequence, is_tensor, normalize_axis, to
from .shape import cat, chunk, flatten, flip, meshgrid, reshape, split, stack, transpose, unsqueeze, vstack

if TYPE_CHECKING:
    from ..tensor import Tensor


MAX_PARTS = 1_000_000  # of a tensor; more are a mistake and would exhaust memory


def map_tensors(function: Callable, tensors: tuple) -> Any:
    """Apply `function` to one tensor, or to each of several."""
    if len(tensors) == 1 and is_sequence(tensors[0]):
        return tuple([function(ensure_tensor(x)) for x in tensors[0]])
    return (
        function(ensure_tensor(tensors[0]))
        if len(tensors) == 1
        else tuple([function(ensure_tensor(x)) for x in tensors])
    )


def at_least_1(x: Tensor) -> Tensor:
    return x if x.spec.ndim else s.reshape(x, shape=(1,))


def at_least_2(x: Tensor) -> Tensor:
    return x if x.spec.ndim > 1 else unsqueeze(at_least_1(x), 0)


def at_least_3(x: Tensor) -> Tensor:
    return x if x.spec.ndim > 2 else unsqueeze(at_least_2(x), -1)


def atleast_1d(*tensors: Tensor) -> Any:
    """Views with at least one axis: a number becomes a vector of one element. Several tensors give a tuple."""
    return map_tensors(at_least_1, tensors)


def atleast_2d(*tensors: Tensor) -> Any:
    """Views with at least two axes: a vector becomes a row. Several tensors give a tuple."""
    return map_tensors(at_least_2, tensors)


def atleast_3d(*tensors: Tensor) -> Any:
    """Views with at least three axes: (n,) becomes (1, n, 1), (m, n) becomes (m, n, 1). Several tensors: a tuple."""
    return map_tensors(at_least_3, tensors)


def column_stack(tensors: Sequence) -> Tensor:
    """Concatenate along axis 1; numbers and vectors become columns."""
    tensors = [ensure_tensor(x) for x in tensors]
    return cat([s.reshape(x, shape=(x.spec.size, 1)) if x.spec.ndim < 2 else x for x in tensors], 1)


def dstack(tensors: Sequence) -> Tensor:
    """Concatenate along axis 2, after `atleast_3d`."""
    return cat([at_least_3(ensure_tensor(x)) for x in tensors], 2)


row_stack = vstack


# ---- splitting
# -----------------------------------------------------------------------------------------------------------


@accept_axis
def tensor_split(input: Tensor, indices_or_sections: int | Sequence[int] | Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """Split along `dim` into views: n parts (the first ones one longer if needed), or parts ending at given indices."""
    check_min_axes("tensor_split", input)
    axis = normalize_axis(dim, input.spec.ndim, input)
    size, places = input.spec.shape[axis], indices_or_sections
    if is_tensor(places):
        if places.spec.ndim > 1:
            what = f"tensor_split: the indices must be a vector, got {places.spec.ndim} axes"
            fail(ShapeError, what, "places.flatten()", places=places)
        places = places.tolist()
    if not is_sequence(places):
        parts = integer(places, "indices_or_sections")
        if not 0 < parts <= MAX_PARTS:
            what = f"tensor_split: the number of parts must be from 1 to {MAX_PARTS:,}, got {parts}"
            fail(OutOfRangeError, what, "another number, or a list of indices", x=input)
        return split(input, [size // parts + (k < size % parts) for k in range(parts)], axis)
    ends = [integer(n, "indices_or_sections") for n in places]
    lead = ((None, None, None),) * axis
    return tuple([s.getitem(input, index=(*lead, slice_of(a, b, size))) for a, b in zip([0, *ends], [*ends, size])])


def slice_of(start: int, stop: int, size: int) -> tuple[int, int, None]:
    """A slice from start to stop by Python's rules; empty if stop is before start."""
    first, last, _ = s.slice_bounds((start, stop, None), size)
    return first, max(first, last), None


def make_split(name: str, axes: int, axis: int) -> Callable[[Tensor, int | Sequence[int] | Tensor], tuple[Tensor, ...]]:
    """Make hsplit, vsplit or dsplit: split along one axis, into equal parts if their number is given."""

    def cut(input: Tensor, indices_or_sections: int | Sequence[int] | Tensor) -> tuple[Tensor, ...]:
        check_min_axes(name, input, axes)
        dim = axis if input.spec.ndim > axis else 0
        if not is_sequence(indices_or_sections) and not is_tensor(indices_or_sections):
            parts, size = integer(indices_or_sections, "indices_or_sections"), input.spec.shape[dim]
            if parts < 1 or size % parts:
                what = f"{name}: axis {dim} of size {size} cannot be split into {parts} equal parts"
                hint = "a number that divides it; or flow.tensor_split, whose parts may differ by one"
                fail(ShapeError, what, hint, x=input)
        return tensor_split(input, indices_or_sections, dim)

    cut.__name__ = cut.__qualname__ = name
    vectors = ", or axis 0 of a vector," if axes == 1 else ""
    cut.__doc__ = f"""Split along axis {axis}{vectors} into views: n equal parts, or parts that end at given indices."""
    return cut


hsplit, vsplit, dsplit = make_split("hsplit", 1, 1), make_split("vsplit", 2, 0), make_split("dsplit", 3, 2)


def split_with_sizes(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Split along `dim` into views of these sizes."""
    return split(input, list(split_sizes), dim)


# ---- flipping and rotating
# --------------------------------------------------------------------------------------------------------


def fliplr(input: Tensor) -> Tensor:
    """The columns (axis 1) in reverse order; a copy."""
    check_min_axes("fliplr", input, 2)
    return flip(input, 1)


def flipud(input: Tensor) -> Tensor:
    """The rows (axis 0) in reverse order; a copy."""
    check_min_axes("flipud", input)
    return flip(input, 0)


def rot90(input: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """Rotate by k quarter turns, from the first of two axes towards the second; a copy."""
    check_min_axes("rot90", input, 2)
    if not is_sequence(dims) or len(dims) != 2:
        fail(ShapeError, f"rot90: dims must be two axes, got {dims!r}", "dims=(0, 1)", x=input)
    a, b = [normalize_axis(d, input.spec.ndim, input) for d in dims]
    if a == b:
        fail(ShapeError, f"rot90: dims {tuple(dims)} names one axis twice", "dims=(0, 1)", x=input)
    quarters = integer(k, "k") % 4
    if quarters == 0:
        return s.clone(input)
    return flip(input, a, b) if quarters == 2 else transpose(flip(input, b if quarters == 1 else a), a, b)


def ravel(input: Tensor) -> Tensor:
    """All elements as a vector; a view if input is contiguous, else a copy."""
    return reshape(input.contiguous(), -1)


def narrow_copy(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """A copy of `narrow(input, dim, start, length)`."""
    return s.clone(input.narrow(dim, start, length))


# ---- combining ------------------------------------------------------------------------------------------------------


def block_diag(*tensors: Tensor) -> Tensor:
    """A block diagonal matrix of these matrices, zeros elsewhere; a vector is a row."""
    given = [ensure_tensor(x) for x in (tensors[0] if len(tensors) == 1 and is_sequence(tensors[0]) else tensors)]
    blocks = [at_least_2(x) for x in given]
    for k, x in enumerate(blocks):
        if x.spec.ndim > 2:
            what = f"block_diag: tensor {k} must have at most 2 axes, got {x.spec.ndim}"
            fail(ShapeError, what, "a list of its matrices", **{f"tensors[{k}]": x})
    if not blocks:
        return s.full(shape=(1, 0), value=0, dtype=promote(float))
    dtype, width, before, rows = promote(*[x.spec for x in given]), sum([x.spec.shape[1] for x in blocks]), 0, []
    for x in blocks:
        n, m = x.spec.shape
        left, right = [s.zeros_of(x.spec.replace(shape=(n, k), dtype=dtype)) for k in (before, width - before - m)]
        rows.append(s.cat(left, to(x, dtype), right, dim=1))
        before += m
    return s.cat(*rows, dim=0)


def check_vectors(name: str, tensors: Sequence) -> list:
    """Refuse anything but a sequence of vectors."""
    for k, x in enumerate(tensors):
        if x.spec.ndim != 1:
            what = f"{name}: tensor {k} must be a vector, got {x.spec.ndim} axes"
            fail(ShapeError, what, "x.flatten()", **{f"tensors[{k}]": x})
    return list(tensors)


def cartesian_prod(*tensors: Tensor) -> Tensor:
    """`(n1 * n2 * ..., k)`: all tuples of one element from each of k vectors; the last one varies fastest."""
    vectors = check_vectors("cartesian_prod", tensors[0] if len(tensors) == 1 and is_sequence(tensors[0]) else tensors)
    return vectors[0] if len(vectors) == 1 else stack([flatten(x) for x in meshgrid(*vectors)], 1)


def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """`(m, r)`: all selections of r elements of a vector, in its order. with_replacement: elements may repeat."""
    check_vectors("combinations", [input])
    r = integer(r, "r")
    if r < 0:
        what = f"combinations: r must be at least 0, got {r}"
        fail(OutOfRangeError, what, "r elements are in each combination", x=input)
    if not r:
        return s.zeros_of(input.spec.replace(shape=(0,)))
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    n = input.spec.size
    check_memory("combinations", [Spec((math.comb(n + r - 1 if with_replacement and n else n, r), r), int64)])
    places = namespace().fromiter(itertools.chain.from_iterable(choose(range(n), r)), "int64").reshape(-1, r)
    return i.take(input, s.constant_beside(input, places), axis=0)


def unsafe_chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Same as chunk: writing into a part is always safe here."""
    return chunk(input, chunks, dim)


def unsafe_split(tensor: Tensor, split_size: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Same as split: writing into a part is always safe here."""
    return split(tensor, split_size, dim)


def unsafe_split_with_sizes(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Same as split_with_sizes: writing into a part is always safe here."""
    return split_with_sizes(input, split_sizes, dim)
