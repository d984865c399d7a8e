"""`x[index]` with lists, arrays and masks, reduced to `take` and `index_put`.

The basic parts (slices, None, Ellipsis) become a view. The axes that are indexed by integers are moved next to each
other and merged, and their indices combined to positions. `Tensor.__getitem__` handles purely basic indices itself.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..base.errors import DTypeError, OutOfRangeError, ShapeError
from ..host import HostArray, host_array, python_number
from ..ir import NUMBERS
from ..mode import MODE
from ..ops import index as i, shape as s
from ..ops.elementwise import where
from ..ops.global_tensors import on_each_rank
from ..source_location import fail
from ..spec import bool_, uint8
from .arguments import cast_fill_value, cast_for_write, cast_number, is_tensor, to
from .gather import is_mask, positions

if TYPE_CHECKING:
    from ..tensor import Tensor


FULL_SLICE = (None, None, None)


def entries_of(x: Tensor, index: Tensor) -> list:
    """Return the index as a list of slices as tuples, ints, None and integer tensors; masks become their positions.

    Ellipsis is replaced by full slices.
    """
    parts = [one_entry(x, part) for part in (index if isinstance(index, tuple) else (index,))]
    ndim = x.spec.ndim
    used = sum([part.spec.ndim if is_mask(part) else part is not None and part is not Ellipsis for part in parts])
    if used > ndim:
        hint = "at most one index per axis" if ndim else "x.item() is its Python number"
        fail(ShapeError, f"indexing: {used} axes are indexed, and the tensor has {ndim}", hint, x=x)
    dots = [k for k, part in enumerate(parts) if part is Ellipsis]
    if len(dots) > 1:
        what = "indexing: more than one Ellipsis"
        fail(ShapeError, what, "x[..., 0] has one, which covers all axes that are not indexed", x=x)
    if dots:
        parts[dots[0] : dots[0] + 1] = [FULL_SLICE] * (ndim - used)
    entries: list = []
    axis = 0
    for part in parts:
        if is_mask(part):
            entries += unmasked(x, part, axis)
            axis += part.spec.ndim
        else:
            entries.append(part)
            axis += part is not None
    return entries


def tensor_like(x: Tensor, data: Any) -> Tensor:
    """A tensor of data of the program; a global one if x is global."""
    new = MODE.get().tensor_of(data)
    return new if x.spec.placement is None else on_each_rank(new, x.spec.placement)


def one_entry(x: Tensor, part: Any) -> Any:
    """Convert a part of an index of x: None, Ellipsis, an int, a slice as a tuple, or a tensor of integers or bools."""
    part = python_number(part)
    if part is None or part is Ellipsis or part.__class__ is int:
        return part
    if isinstance(part, slice):
        if part.step is not None and part.step < 1:
            what = f"a slice with step {part.step}"
            fail(OutOfRangeError, what, "flow.flip(x, [0]) reverses an axis", step=part.step)
        return tuple([n if n is None else n.__index__() for n in (part.start, part.stop, part.step)])
    if isinstance(part, list | tuple | range):
        part = host_array([p.tolist() if is_tensor(p) else p for p in part])
        part = part.astype("int64") if not part.size else part
    if isinstance(part, bool | HostArray):
        part = tensor_like(x, part)
    if not is_tensor(part):
        what = f"indexing: {type(part).__name__} cannot be an index"
        fail(DTypeError, what, "an int, slice, None, ..., a list, or a tensor of integers or bools", index=part)
    if part.spec.dtype is uint8:  # as in PyTorch, a mask
        part = to(part, bool_)
    if part.spec.dtype.floating:
        what = f"indexing: an index must hold integers or bools, got {part.spec.dtype.name}"
        fail(DTypeError, what, "index.long()", index=part)
    return part


def unmasked(x: Tensor, mask: Tensor, axis: int) -> list:
    """One tensor of integers per axis of the mask."""
    result = x.spec.shape[axis : axis + mask.spec.ndim]
    if result != mask.spec.shape:
        at = next(d for d, (n, m) in enumerate(zip(result, mask.spec.shape)) if n != m)
        fail(
            OutOfRangeError,
            f"indexing: a mask must have the sizes of the axes that it indexes, got {mask.spec.shape[at]} (axis "
            f"{at} of the mask) for {result[at]} (axis {axis + at} of the tensor)",
            "compare the tensor itself, as in x[x > 0]",
            x=x,
            mask=mask,
        )
    if not mask.spec.ndim:  # x[True]: a new axis, of size 1 or 0
        chosen = i.nonzero(s.reshape(mask, shape=(1,)))
        return [("new", s.reshape(chosen, shape=(chosen.spec.shape[0],)))]
    positions = i.nonzero(mask)
    return [s.getitem(positions, index=(FULL_SLICE, d)) for d in range(mask.spec.ndim)]


def new_axis(entry: Any) -> bool:
    """True if this is a 0-d mask, which indexes a new axis of size 1."""
    return isinstance(entry, tuple) and entry[:1] == ("new",)


def advanced_target(x: Tensor, index: Tensor) -> Any:
    """(y, positions, axis) with x[index] == `take(y, positions, axis)`: y is x with its indexed axes merged.

    As in PyTorch, ints (also 0-d tensors) remove their axes first; in NumPy they count as arrays, which moves the axes
    of x[0, :, [1, 2]].
    """
    if is_mask(index) and index.spec.ndim > 1 and x.spec.placement is None:
        sizes = index.spec.shape
        if sizes == x.spec.shape[: len(sizes)]:  # as below, without an integer tensor for each axis
            chosen = i.nonzero(index.reshape(math.prod(sizes)))
            return x.reshape(math.prod(sizes), *x.spec.shape[len(sizes) :]), chosen.reshape(chosen.spec.shape[0]), 0
    entries = entries_of(x, index)
    arrays = any([is_tensor(entry) and entry.spec.ndim for entry in entries]) or any(
        [new_axis(entry) for entry in entries]
    )
    basic, indices, places, single, separated, closed, axis = [], [], [], [], False, False, 0
    for entry in entries:
        if new_axis(entry) or (is_tensor(entry) and (entry.spec.ndim or not arrays)):
            separated |= closed
            indices.append(entry[1] if new_axis(entry) else entry)
            places.append(axis)
            basic.append(None if new_axis(entry) else FULL_SLICE)
            axis += 1
        elif is_tensor(entry):
            single.append((axis, entry))
            basic.append(FULL_SLICE)
        else:
            basic.append(entry)
            if entry.__class__ is not int:
                closed = bool(indices)
                axis += 1
    y = x if all(entry == FULL_SLICE for entry in basic) else s.getitem(x, index=tuple(basic))
    for axis, entry in single:
        y = i.take(y, entry, axis=axis)
    shape = y.spec.shape
    axis = 0 if separated else places[0]
    if places != list(range(axis, axis + len(places))):
        rest = [d for d in range(len(shape)) if d not in places]
        y = s.permute(y, dims=tuple(rest[:axis] + places + rest[axis:]))
    if len(indices) == 1:
        return y, indices[0], axis
    sizes = tuple([shape[d] for d in places])
    merged = s.reshape(
        y.contiguous(), shape=(*y.spec.shape[:axis], math.prod(sizes), *y.spec.shape[axis + len(places) :])
    )
    return merged, i.ravel_index(*indices, shape=sizes), axis


def advanced_getitem(x: Tensor, index: Any) -> Tensor:
    """x[index]; a copy, as in NumPy's advanced indexing."""
    y, positions, axis = advanced_target(x, index)
    return i.take(y, positions, axis=axis)


def assign_indexed(x: Tensor, index: Any, value: Any) -> Tensor:
    """Copy of x after x[index] = value; value (a tensor, an array or a number) is broadcast."""
    value = python_number(value)
    if not is_tensor(value) and value.__class__ not in NUMBERS:
        value = tensor_like(x, value).to(device=x.spec.device)
    mask = index[0] if isinstance(index, tuple) and len(index) == 1 else index
    if isinstance(mask, HostArray) and mask.dtype == bool:
        mask = tensor_like(x, mask)
    if (
        is_mask(mask)
        and mask.spec.shape == x.spec.shape[: mask.spec.ndim]
        and not getattr(getattr(value, "spec", None), "shape", ())
    ):
        value = cast_fill_value("indexing", value, x.spec.dtype, x=x, value=value)
        # Unlike positions, this works in a graph too.
        mask = mask.to(device=x.spec.device)
        return where(mask.reshape(mask.spec.shape + (1,) * (x.spec.ndim - mask.spec.ndim)), value, x)
    if is_tensor(value):
        value = cast_for_write("indexing", value, x.spec.dtype, x=x, value=value)
    else:
        value = cast_number("indexing", value, x.spec.dtype, x=x, value=value)
    y, places, axis = advanced_target(x, index)
    if y is not x and y.spec.shape == (x.spec.size,):  # x in one axis
        axis = 0
    elif y is not x:  # several axes are indexed: use positions in the flattened tensor
        y, axis = s.reshape(x.contiguous(), shape=(x.spec.size,)), 0
        places = advanced_getitem(positions(x), index)
    if is_tensor(value):
        shape = y.spec.shape[:axis] + places.spec.shape + y.spec.shape[axis + 1 :]
        lead = value.spec.ndim - len(shape)
        if lead > 0 and set(value.spec.shape[:lead]) == {1}:  # NumPy drops leading axes of size 1
            value = s.reshape(value.contiguous(), shape=value.spec.shape[lead:])
        value = value if value.spec.shape == shape else s.expand(value, shape=shape)
    changed = i.index_put(y, places, value, axis=axis)
    return changed if y is x else s.reshape(changed, shape=x.spec.shape)
