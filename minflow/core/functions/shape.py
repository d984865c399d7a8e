"""Shapes and axes with PyTorch's arguments; views where PyTorch returns views.

`reshape` copies if the strides allow no view, by the same rule in both modes. Read next: `indexing.py`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..backend import Array
from ..base.errors import DTypeError, OutOfRangeError, ShapeError
from ..base.legacy_dispatch import overloaded
from ..dispatch import apply
from ..functionalize import is_contiguous, strided_array, view_path
from ..messages.wrong_arguments import explain_error, not_a_tensor
from ..ops import index as i, shape as s
from ..source_location import fail
from ..spec import promote
from ..symbolic_shapes import RELATIONS, decide_structure
from .arguments import (
    accept_axis,
    check_min_axes,
    common_shape,
    ensure_tensor,
    integer,
    is_sequence,
    is_tensor,
    normalize_axis,
    sizes,
    to,
    unique_axes,
)

if TYPE_CHECKING:
    from ..tensor import Tensor


FULL_SLICE = (None, None, None)  # a slice in the attrs of getitem


def infer_size(shape: tuple[int, ...], total: int, name: str, x: Any) -> tuple[int, ...]:
    """Return the shape with its -1, if any, replaced."""
    known = 1
    for n in shape:
        if n.__class__ is not int or n < 0:
            break
        known *= n
    else:
        if known == total:
            return tuple(shape)
    shape = tuple([integer(n, "size") for n in shape])
    if shape.count(-1) > 1 or any(n < -1 for n in shape):
        fail(ShapeError, f"{name}: {shape} is not a shape", "at most one size may be -1, which is then computed", x=x)
    if -1 in shape:
        known = math.prod([n for n in shape if n != -1])
        if known == 0 or total % known:
            what = f"{name}: {total} elements do not fill {shape}"
            fail(ShapeError, what, "sizes whose product divides the number of elements", x=x)
        shape = tuple([total // known if n == -1 else n for n in shape])
    elif math.prod(shape) != total:
        hint = "-1 stands for the size that fits: x.reshape(x.shape[0], -1)" if x.shape and total else "x.reshape(-1)"
        fail(ShapeError, f"{name}: {total} elements do not fit {shape}, which has {math.prod(shape)}", hint, x=x)
    return shape


def as_sizes(shape: tuple) -> Any:
    """Return the sizes of f(2, 3) or f((2, 3))."""
    return shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape


@overloaded
def reshape(input: Tensor, *sizes: Any, shape: Any = None) -> Tensor:
    """The same elements in another shape, in which one size may be -1; a view if the strides allow one, else a copy."""
    shape = sizes if shape is None else (*sizes, shape)
    try:
        if len(shape) == 1 and type(shape[0]) is not int and is_sequence(shape[0]):
            shape = shape[0]
        shape = infer_size(shape, input.spec.size, "reshape", input)
        return apply(s.reshape, input, shape=shape) if input._alias is None else reshape_to(input, shape)
    except Exception as error:
        raise explain_error(error, reshape, (input, *shape), {})  # noqa: B904 (the cause is set)


def reshape_to(input: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A view if the strides allow one, else a copy; a trace knows the strides from the view path."""
    return apply(s.reshape, input if has_view(input, shape) else s.clone(input), shape=shape)


def has_view(input: Tensor, shape: tuple[int, ...]) -> bool:
    """True if a view of this shape exists, that is, if each new axis stays within old axes without gaps."""
    if is_contiguous(input):
        return True
    if input.array is not None and input.spec.placement is None:
        return array_has_view(input.array, shape)
    return decide_structure("view", view_path(input), shape)


RELATIONS["view"] = lambda path, shape: array_has_view(strided_array(*path), shape)


def array_has_view(array: Array, shape: tuple[int, ...]) -> bool:
    """True if the array has a view of this shape."""
    if array.flags.c_contiguous:  # also if empty
        return True
    groups: list[list[int]] = []  # [elements, stride] of adjacent old axes without gaps
    for n, stride in zip(array.shape, array.strides):
        if n != 1:
            if groups and groups[-1][1] == n * stride:
                groups[-1] = [groups[-1][0] * n, stride]
            else:
                groups.append([n, stride])
    left = 1
    for n in shape:
        if left == 1 and n != 1:
            left = groups.pop(0)[0]
        if left % n:
            return False
        left //= n
    return True


def view(input: Tensor, *shape: int | Sequence[int]) -> Tensor:
    """The same elements in another shape, always as a view. Raises ShapeError if the strides would require a copy."""
    try:
        shape = infer_size(as_sizes(shape), input.spec.size, "view", input)
    except Exception as error:
        raise explain_error(error, view, (input, *shape), {})  # noqa: B904 (the cause is set)
    if not has_view(input, shape):
        what = "view: this shape needs a copy, because the tensor is not contiguous (it is transposed or strided)"
        fail(ShapeError, what, "x.reshape(...), which copies if necessary", x=input)
    return apply(s.reshape, input, shape=shape)


@overloaded
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Merge the axes from start_dim to end_dim into one; a view if the strides allow one, else a copy."""
    shape = input.spec.shape
    start, end = normalize_axis(start_dim, len(shape), input), normalize_axis(end_dim, len(shape), input)
    if not shape:
        return s.reshape(input, shape=(1,))
    if start > end:
        what = f"flatten: start_dim {start_dim} comes after end_dim {end_dim}"
        fail(OutOfRangeError, what, "the smaller one first", x=input)
    return (
        input
        if start == end
        else reshape_to(input, (*shape[:start], math.prod(shape[start : end + 1]), *shape[end + 1 :]))
    )


def unflatten(input: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    """Split one axis into several."""
    check_min_axes("unflatten", input)
    shape, axis = input.spec.shape, normalize_axis(dim, input.spec.ndim, input)
    return s.reshape(
        input, shape=(*shape[:axis], *infer_size(tuple(sizes), shape[axis], "unflatten", input), *shape[axis + 1 :])
    )


@overloaded
def squeeze(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """Remove the axes of size 1, or those of them that `dim` names."""
    shape = input.spec.shape
    named = range(len(shape)) if dim is None else unique_axes(dim, input)
    return s.reshape(input, shape=tuple([n for d, n in enumerate(shape) if n != 1 or d not in named]))


def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """Insert an axis of size 1 at `dim`."""
    shape = input.spec.shape
    axis = normalize_axis(dim, len(shape) + 1, input)
    return s.reshape(input, shape=(*shape[:axis], 1, *shape[axis:]))


# ---- permuting axes ---------------------------------------------------------------------------------------


def permute(input: Tensor, *dims: int | Sequence[int]) -> Tensor:
    """Permute the axes; a view."""
    try:
        ndim = input.spec.ndim
        return s.permute(input, dims=tuple([normalize_axis(d, ndim, input) for d in sizes(dims)]))
    except Exception as error:
        raise explain_error(error, permute, (input, *dims), {})  # noqa: B904 (the cause is set)


@overloaded
def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Swap two axes; a view."""
    try:
        ndim = input.spec.ndim
        a, b = normalize_axis(dim0, ndim, input), normalize_axis(dim1, ndim, input)
        order = list(range(ndim))
        if ndim:
            order[a], order[b] = b, a
        return s.permute(input, dims=tuple(order))
    except Exception as error:
        raise explain_error(error, transpose, (input, dim0, dim1), {})  # noqa: B904 (the cause is set)


swapdims = transpose


def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """NumPy's name for `transpose`."""
    return transpose(input, axis0, axis1)


def t(input: Tensor) -> Tensor:
    """The transposed matrix; a tensor with fewer axes is returned unchanged."""
    if input.spec.ndim > 2:
        what = f"t: input must have at most 2 axes, got {input.spec.ndim}"
        fail(ShapeError, what, "x.transpose(0, 1), or x.mT for the last two", x=input)
    return s.permute(input, dims=(1, 0) if input.spec.ndim == 2 else tuple(range(input.spec.ndim)))


def movedim(input: Tensor, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """Move some axes to other positions; the others keep their order."""
    ndim = input.spec.ndim
    source, destination = [x if is_sequence(x) else (x,) for x in (source, destination)]
    source, destination = [tuple([normalize_axis(d, ndim, input) for d in x]) for x in (source, destination)]
    if len(source) != len(destination) or len({*source}) != len(source) or len({*destination}) != len(destination):
        fail(ShapeError, f"movedim: {source} to {destination}", "as many positions as axes, each named once", x=input)
    order = [d for d in range(ndim) if d not in source]
    for to_, from_ in sorted(zip(destination, source)):
        order.insert(to_, from_)
    return s.permute(input, dims=tuple(order[:ndim]))  # a 0-d tensor has an axis 0 for `normalize_axis`


moveaxis = movedim


# ---- repeating ----------------------------------------------------------------------------------------------------


@overloaded
def expand(input: Tensor, *shape: int | Sequence[int]) -> Tensor:
    """Repeat axes of size 1, and new axes in front, without copying; -1 leaves an axis unchanged."""
    shape = sizes(shape)
    lead = len(shape) - input.spec.ndim
    if lead >= 0:
        if any(n == -1 for n in shape[:lead]):
            fail(ShapeError, f"expand: {shape} has -1 for a new axis", "-1 keeps the size of an existing axis", x=input)
        shape = tuple([input.spec.shape[d - lead] if n == -1 else n for d, n in enumerate(shape)])
    return s.expand(input, shape=shape)


def shape_of(name: str, other: Tensor) -> tuple[int, ...]:
    """The shape of `other`, for functions that take the target shape from a tensor."""
    if not is_tensor(other):
        raise not_a_tensor(name, "other", other)
    return other.spec.shape


def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """Expand to the shape of another tensor."""
    return s.expand(input, shape=shape_of("expand_as", other))


def broadcast_to(input: Tensor, shape: int | Sequence[int]) -> Tensor:
    """Broadcast input to this shape without copying."""
    return expand(input, shape)


def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Expand all tensors to their common shape."""
    shape = common_shape("broadcast_tensors", {f"tensors[{k}]": x for k, x in enumerate(tensors)})
    return tuple([s.expand(x, shape=shape) for x in tensors])


def repeat(input: Tensor, *times: int | Sequence[int]) -> Tensor:
    """Concatenate copies: `times` along each axis, new axes in front."""
    times = sizes(times)
    lead = len(times) - input.spec.ndim
    if lead < 0 or any(n < 0 for n in times):
        what = f"repeat: {times} for a tensor with {input.spec.ndim} axes"
        fail(ShapeError, what, "a number of at least 0 for each axis", x=input)
    shape = (1,) * lead + input.spec.shape
    apart = s.reshape(input, shape=tuple([m for n in shape for m in (1, n)]))
    wide = s.expand(apart, shape=tuple([m for n, k in zip(shape, times) for m in (k, n)]))
    return s.reshape(s.clone(wide), shape=tuple([n * k for n, k in zip(shape, times)]))


def tile(input: Tensor, *dims: int | Sequence[int]) -> Tensor:
    """`repeat` in which missing counts in front are 1."""
    dims = sizes(dims)
    return repeat(input, (1,) * (input.spec.ndim - len(dims)) + dims)


def repeat_interleave(
    input: Any, repeats: Any = None, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Repeat each element `repeats` times, along `dim` or in the flattened tensor.

    repeats: a number, or a vector with one count for each element; as the only argument, the elements are 0, 1, 2, ...
    output_size: the sum of that vector, required in a graph.
    """
    if repeats is None:
        input, repeats, dim = None, input, 0
    elif dim is None:
        input, dim = flatten(input), 0
    if is_tensor(repeats) and (repeats.spec.ndim or input is None):
        from .interleave import interleaved

        return interleaved(input, repeats, dim, output_size)
    axis, repeats = normalize_axis(dim, input.spec.ndim, input), integer(repeats, "repeats")
    if repeats < 0:
        fail(OutOfRangeError, f"repeat_interleave: repeats must be at least 0, got {repeats}", "0 or more", x=input)
    if not input.spec.ndim:
        input = s.reshape(input, shape=(1,))
    shape = input.spec.shape
    wide = s.expand(unsqueeze(input, axis + 1), shape=(*shape[: axis + 1], repeats, *shape[axis + 1 :]))
    return s.reshape(s.clone(wide), shape=(*shape[:axis], shape[axis] * repeats, *shape[axis + 1 :]))


# ---- joining and splitting
# ----------------------------------------------------------------------------------------------


@accept_axis
def cat(tensors: Sequence, dim: int = 0) -> Tensor:
    """Concatenate tensors along an axis, promoted to a common dtype."""
    if is_tensor(tensors) or not tensors:
        what = "cat: tensors must be a list or tuple of at least one tensor"
        fail(DTypeError, what, "flow.cat([a, b])", tensors=tensors)
    tensors = [x if hasattr(x, "spec") else ensure_tensor(x) for x in tensors]  # many: without a call for each
    if len(specs := dict.fromkeys([x.spec for x in tensors])) > 1:
        dtype = promote(*specs)
        tensors = [to(x, dtype) for x in tensors]
        tensors = [x for x in tensors if x.spec.shape != (0,)] or tensors  # as in PyTorch
    axis = normalize_axis(dim, tensors[0].spec.ndim, tensors[0])
    if not tensors[0].spec.ndim:
        fail(ShapeError, "cat: tensors must have at least one axis", "flow.stack([a, b])", first=tensors[0])
    return s.cat(*tensors, dim=axis)


concatenate = cat
concat = overloaded(cat, "concat")


@overloaded
@accept_axis
def stack(tensors: Sequence, dim: int = 0) -> Tensor:
    """Concatenate tensors of one shape along a new axis."""
    if is_tensor(tensors):
        tensors = unbind(tensors)
    if isinstance(tensors, bytes | bytearray | memoryview):
        what = f"stack: tensors must be a list or tuple of tensors, got {tensors!r}"
        fail(DTypeError, what, "flow.stack([a, b])", tensors=tensors)
    tensors = [x if hasattr(x, "spec") else ensure_tensor(x) for x in tensors]  # many: without a call for each
    for k, x in enumerate(tensors):
        if x.spec.shape != tensors[0].spec.shape:
            what = f"stack: tensor {k} has shape {x.spec.shape}, the first one has {tensors[0].spec.shape}"
            hint = "tensors of the same shape; cat joins along an existing axis"
            fail(ShapeError, what, hint, **{"tensors[0]": tensors[0], f"tensors[{k}]": x})
    if not tensors:
        return cat(tensors)  # which refuses them
    axis, dtype = normalize_axis(dim, tensors[0].spec.ndim + 1, tensors[0]), promote(*[x.spec for x in tensors])
    return s.stack(*[to(x, dtype) for x in tensors], dim=axis)


def hstack(tensors: Sequence) -> Tensor:
    """Concatenate along axis 1, vectors along axis 0."""
    tensors = [s.reshape(x, shape=(1,)) if not x.spec.ndim else x for x in map(ensure_tensor, tensors)]
    return cat(tensors, 0 if tensors and tensors[0].spec.ndim < 2 else 1)


def vstack(tensors: Sequence) -> Tensor:
    """Concatenate along axis 0; vectors become rows."""
    return cat([s.reshape(x, shape=(1, x.spec.size)) if x.spec.ndim < 2 else x for x in map(ensure_tensor, tensors)], 0)


def narrow(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """`length` elements along `dim`, beginning at `start`; a view."""
    check_min_axes("narrow", input)
    axis, start, length = (
        normalize_axis(dim, input.spec.ndim, input),
        integer(start, "start"),
        integer(length, "length"),
    )
    size = input.spec.shape[axis]
    first = start + size if start < 0 else start
    if not 0 <= first <= size or not 0 <= length <= size - first:
        what = f"narrow: {length} elements from {start} on, but axis {axis} has size {size}"
        fail(OutOfRangeError, what, "start + length <= size", x=input)
    return s.getitem(input, index=(*(FULL_SLICE,) * axis, (first, first + length, None)))


def select(input: Tensor, dim: int, index: int) -> Tensor:
    """The slice at one index along `dim`, without that axis; a view."""
    check_min_axes("select", input)
    axis = normalize_axis(dim, input.spec.ndim, input)
    return s.getitem(input, index=(*(FULL_SLICE,) * axis, integer(index, "index")))


@accept_axis
def split(input: Tensor, split_size_or_sections: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Split along `dim` into views of this size (the last may be smaller), or of these sizes."""
    check_min_axes("split", input)
    axis = normalize_axis(dim, input.spec.ndim, input)
    size = input.spec.shape[axis]
    if is_sequence(split_size_or_sections):
        parts = [integer(n, "size") for n in split_size_or_sections]
        if sum(parts) != size or any(n < 0 for n in parts):
            what = f"split: the sizes {parts} add up to {sum(parts)}, axis {axis} has {size}"
            fail(ShapeError, what, "sizes that add up to it", x=input)
    else:
        step = integer(split_size_or_sections, "split_size")
        if step < 1 and (step or size):  # nothing may be split into a part of size 0
            what = f"split: the size of a part must be at least 1, got {step}"
            fail(OutOfRangeError, what, "a size of at least 1", x=input)
        return split_evenly(input, step, axis)
    ends = [0, *itertools.accumulate(parts)]
    front = (FULL_SLICE,) * axis
    return tuple([apply(s.getitem, input, index=(*front, (a, b, None))) for a, b in itertools.pairwise(ends)])


def split_evenly(input: Tensor, step: int, axis: int) -> tuple[Tensor, ...]:
    """The views of `step` elements along an axis; the last one may have fewer."""
    size, front = input.spec.shape[axis], (FULL_SLICE,) * axis
    starts = range(0, size or 1, step or 1)
    return tuple([apply(s.getitem, input, index=(*front, (a, min(a + step, size), None))) for a in starts])


@accept_axis
def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Split along `dim` into at most n views of equal size (the last may be smaller)."""
    check_min_axes("chunk", input)
    axis, chunks = normalize_axis(dim, input.spec.ndim, input), integer(chunks, "chunks")
    if chunks < 1:
        fail(OutOfRangeError, f"chunk: chunks must be at least 1, got {chunks}", "at least 1", x=input)
    if not input.spec.shape[axis]:
        return split(input, [0] * chunks, axis)
    return split_evenly(input, -(-input.spec.shape[axis] // chunks), axis)


@accept_axis
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """The slices along `dim`, each without that axis; views."""
    if not input.spec.ndim:
        fail(ShapeError, "unbind: the tensor must have at least one axis", "x.item() for its value", x=input)
    axis = normalize_axis(dim, input.spec.ndim, input)
    front = (FULL_SLICE,) * axis
    return tuple([apply(s.getitem, input, index=(*front, k)) for k in range(input.spec.shape[axis])])


# ---- reversing and rolling
# ------------------------------------------------------------------------------------------------------


def flip(input: Tensor, *dims: int | Sequence[int]) -> Tensor:
    """Reverse the order along some axes; a copy."""
    axes = unique_axes(sizes(dims), input)
    return i.flip(input, axes=tuple(sorted(axes)) if input.spec.ndim else ())


def roll(input: Tensor, shifts: int | Sequence[int], dims: int | Sequence[int] | None = None) -> Tensor:
    """Shift elements along some axes (or in the flattened tensor); elements that leave at the end re-enter at the
    start.
    """
    if dims is None:
        (shift,) = shifts if is_sequence(shifts) and len(shifts) == 1 else (shifts,)
        return s.reshape(i.roll(flatten(input), shifts=(integer(shift, "shifts"),), axes=(0,)), shape=input.spec.shape)
    check_min_axes("roll", input)
    shifts, dims = [tuple(x) if is_sequence(x) else (x,) for x in (shifts, dims)]
    if len(shifts) != len(dims):
        fail(ShapeError, f"roll: {len(shifts)} shifts for {len(dims)} dims", "one shift for each of the dims", x=input)
    return i.roll(
        input,
        shifts=tuple([integer(n, "shifts") for n in shifts]),
        axes=tuple([normalize_axis(d, input.spec.ndim, input) for d in dims]),
    )


def meshgrid(*tensors: Tensor, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Coordinate grids from coordinate vectors. indexing: "ij" (rows first, PyTorch's default) or "xy"."""
    if len(tensors) == 1 and is_sequence(tensors[0]):
        tensors = tuple(tensors[0])
    if not tensors:
        fail(ShapeError, "meshgrid needs at least one vector", "meshgrid(x, y): one vector for each axis")
    if indexing not in ("ij", "xy"):
        fail(DTypeError, f"meshgrid: indexing is {indexing!r}", '"ij" or "xy"')
    if indexing == "xy" and len(tensors) > 1:
        a, b, *rest = meshgrid(tensors[1], tensors[0], *tensors[2:])
        return b, a, *rest
    shape = tuple([x.spec.size for x in tensors])
    flat = [
        s.reshape(x, shape=(1,) * k + (n,) + (1,) * (len(shape) - 1 - k))
        for k, (x, n) in enumerate(zip(tensors, shape))
    ]
    return tuple([s.expand(x, shape=shape) for x in flat])


def numel(input: Tensor) -> int:
    """The number of elements."""
    return input.spec.size
