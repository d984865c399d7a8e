"""Legacy array functions: shapes, joining, constants, and `assign`.

They accept Blobs, and eager tensors if no modern function has the same name or a legacy keyword is passed
(`overloads.py`). Arguments have the legacy order, `name` last. Gather and scatter: `gather.py`; padding: `padding.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ...core import functions as F
from ...core.base.errors import DTypeError, OutOfRangeError, ShapeError
from ...core.functions import creation
from ...core.functions.arguments import ensure_tensor, integer, normalize_axis, to
from ...core.functions.linear_algebra import promoted
from ...core.ir import NUMBERS
from ...core.mode import MODE
from ...core.ops import linalg, reduce as r, shape as s
from ...core.source_location import fail
from ...core.spec import DType, as_dtype, float32, int32, int64
from ..blob import Blob, bounded, distributed
from .op_name import also_called, folded, takes_name
from .segments import several

if TYPE_CHECKING:
    from ...core.tensor import Tensor


def listed(name: str, argument: str, value: Any) -> tuple[int, ...]:
    """The ints of a list or tuple argument. Raises DTypeError for anything else."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        example = f"{argument}=[{value}]" if isinstance(value, int) else f"{argument}=[0, 1]"
        fail(DTypeError, f"{name}: {argument} is {value!r}, not a list or tuple", example, **{argument: value})
    return tuple([integer(n, argument) for n in value])


# ---- shapes ------------------------------------------------------------------------------------------------------


@takes_name
def reshape(x: Tensor, shape: Sequence[int]) -> Tensor:
    """Reshape to a list of sizes, one of which may be -1."""
    return F.reshape(x, listed("reshape", "shape", shape))


dynamic_reshape = reshape


@takes_name
def reshape_like(x: Tensor, like: Tensor) -> Tensor:
    """Reshape x to the shape of `like`."""
    return F.reshape(x, tuple(like.spec.shape))


@takes_name
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Merge the axes from start_dim to end_dim into one."""
    return F.flatten(input, start_dim, end_dim)


@takes_name
def transpose(
    a: Tensor, perm: Sequence[int] | None = None, conjugate: bool = False, batch_axis_non_change: bool = False
) -> Tensor:
    """Permute all axes: axis k of the result is axis perm[k] of a. The modern function swaps two axes instead.

    Raises DTypeError if perm is not a list, ShapeError if it does not name each axis once.
    """
    if not isinstance(perm, list | tuple):
        order = list(range(a.spec.ndim))[::-1]
        what = f"transpose: perm of a Blob must be a list with each axis once, got {perm!r}"
        fail(DTypeError, what, f"flow.transpose(a, perm={order}); a.transpose(dim0, dim1) swaps two axes", a=a)
    if conjugate:
        fail(DTypeError, "transpose: conjugate=True, and there are no complex numbers", "leave it out", a=a)
    return F.permute(a, *listed("transpose", "perm", perm))


@takes_name
def squeeze(input: Tensor, axis: Sequence[int] | int | None = None) -> Tensor:
    """Remove the axes of size 1, or those in `axis`. Raises ShapeError if one of these has another size."""
    shape = input.spec.shape
    if axis is None:
        return F.squeeze(input)
    axes = [axis] if isinstance(axis, int) else listed("squeeze", "axis", axis)
    axes = [normalize_axis(d, len(shape), input) for d in axes]
    for d in axes:
        if shape and shape[d] != 1:
            what = f"squeeze: axis {d} has size {shape[d]}, and only an axis of size 1 can go"
            fail(ShapeError, what, f"axis={[d for d, n in enumerate(shape) if n == 1]}, or leave it out", input=input)
    return F.squeeze(input, axes)


@takes_name
def expand_dims(input: Tensor, axis: int) -> Tensor:
    """Insert an axis of size 1 at `axis`."""
    return F.unsqueeze(input, axis)


@takes_name
def expand(x: Tensor, expand_size: Sequence[int]) -> Tensor:
    """Broadcast axes of size 1, and new leading axes, to the list expand_size; -1 leaves an axis unchanged."""
    return F.expand(x, listed("expand", "expand_size", expand_size))


@takes_name
def broadcast_like(x: Tensor, like: Tensor, broadcast_axes: Sequence[int] | None = None) -> Tensor:
    """Broadcast x to the shape of `like`. broadcast_axes: the axes of `like` that x lacks, if it has fewer axes."""
    if broadcast_axes is not None and x.spec.ndim < like.spec.ndim:
        for axis in sorted(
            {
                normalize_axis(d, like.spec.ndim, like)
                for d in listed("broadcast_like", "broadcast_axes", broadcast_axes)
            }
        ):
            x = F.unsqueeze(x, axis)
    return s.expand(x, shape=tuple(like.spec.shape))


@takes_name
def reverse(input: Tensor, axis: int | Sequence[int]) -> Tensor:
    """Reverse the order along one or several axes."""
    return F.flip(input, *((axis,) if isinstance(axis, int) else listed("reverse", "axis", axis)))


# ---- joined and cut ----------------------------------------------------------------------------------------------


@partial(takes_name, place=3)
def concat(
    inputs: Sequence | None = None,
    axis: int = 0,
    max_dim_size: int | None = None,
    values: Sequence | None = None,
) -> Tensor:
    """Concatenate tensors along an axis. values: older name of inputs.  max_dim_size: ignored (it was for dynamic
    shapes).

    Raises ShapeError if the other axes differ.
    """
    tensors = several("concat", values if inputs is None else inputs)
    return tensors[0] if len(tensors) == 1 else F.cat(tensors, axis)


@folded
def stack(inputs: Sequence, axis: int = 0) -> Tensor:
    """Stack tensors of the same shape along a new axis."""
    return F.stack(several("stack", inputs), axis)


def bounds(name: str, x: Tensor, entries: Any) -> list[range]:
    """Positions along each axis selected by a list of (start, stop, step); omitted axes are taken whole."""
    shape = x.spec.shape
    if not isinstance(entries, Sequence) or len(entries) > len(shape):
        what = f"{name}: slice_tup_list must be a list of at most {len(shape)} triples (start, stop, step)"
        fail(ShapeError, what, "slice_tup_list=[(0, 2, 1)]", x=x, slice_tup_list=entries)
    ranges = []
    for axis, n in enumerate(shape):
        entry = entries[axis] if axis < len(entries) else (None, None, None)
        if not isinstance(entry, Sequence) or len(entry) != 3:
            what = f"{name}: entry {axis} of slice_tup_list is {entry!r}, not (start, stop, step)"
            fail(ShapeError, what, "(None, None, None) for a whole axis", x=x)
        start, stop, step = [k if k is None else integer(k, "slice_tup_list") for k in entry]
        if step == 0:
            fail(OutOfRangeError, f"{name}: the step of axis {axis} is 0", "a step of 1, or of -1 to go backwards", x=x)
        if start is not None and not -n <= start < max(n, 1):
            what = f"{name}: start {start} is outside axis {axis}, which has size {n}"
            fail(OutOfRangeError, what, f"from {-n} to {n - 1}", x=x)
        if stop is not None and not -n - 1 <= stop <= n:
            what = f"{name}: stop {stop} is outside axis {axis}, which has size {n}"
            fail(OutOfRangeError, what, f"from {-n - 1} to {n}", x=x)
        ranges.append(range(n)[builtin_slice(start, stop, step)])
    return ranges


builtin_slice = slice


def forward(places: Sequence[range]) -> tuple[tuple, list[int]]:
    """Index that takes these positions in ascending order, and the axes that must be reversed."""
    rising = [p if p.step > 0 else p[::-1] for p in places]
    index = tuple([(p.start, max(p.stop, p.start), p.step) for p in rising])
    return index, [axis for axis, p in enumerate(places) if p.step < 0]


@takes_name
def slice_v2(x: Tensor, slice_tup_list: Sequence[Sequence[int | None]]) -> Tensor:
    """x[start:stop:step] for each axis; None means the corresponding end, a negative step goes backwards.

    Raises OutOfRangeError if a start is outside its axis or a stop is beyond its end.
    """
    index, backwards = forward(bounds("slice_v2", x, slice_tup_list))
    part = s.getitem(x, index=index)
    return F.flip(part, *backwards) if backwards else part


@also_called(input="x", slice_tup_list="begin")
@takes_name
def slice(x: Tensor, begin: Sequence, size: Sequence[int | None] | None = None) -> Tensor:
    """size[k] elements starting at begin[k], for each axis k. begin None: from the start; size None or -1: all
    remaining elements. Without size, as in OneFlow 1.0, begin (or slice_tup_list) is the slice_tup_list of slice_v2.
    """
    if size is None:
        return slice_v2(x, begin)
    shape = x.spec.shape
    for argument, value in (("begin", begin), ("size", size)):
        if not isinstance(value, Sequence) or len(value) != len(shape):
            what = f"slice: {argument} is {value!r}, and x has {len(shape)} axes"
            fail(ShapeError, what, "one number, or None, for each axis", x=x)
    entries = []
    for axis, (first, count, n) in enumerate(zip(begin, size, shape)):
        first = 0 if first is None else first
        start = first + n if first < 0 else first
        if count is not None and count != -1 and not 0 < count <= n - start:
            what = f"slice: {count} elements from {first} on, but axis {axis} has size {n}"
            fail(OutOfRangeError, what, "begin + size up to the size of the axis", x=x)
        entries.append((first, n if count is None or count == -1 else start + count, 1))
    return slice_v2(x, entries)


@also_called(input="x")
@folded
def slice_update(x: Tensor, update: Tensor, slice_tup_list: Sequence[Sequence[int | None]]) -> Tensor:
    """x with `update` in place of the slice that slice_v2 takes. A Blob, or a tensor that requires a gradient, is
    copied; any other tensor is written in place, as in OneFlow 1.0.
    """
    places = bounds("slice_update", x, slice_tup_list)
    shape = tuple([len(p) for p in places])
    if update.spec.shape != shape:
        what = f"slice_update: update has shape {update.spec.shape}, the place for it {shape}"
        fail(ShapeError, what, "the two alike", x=x, update=update)
    index, backwards = forward(places)
    update = to(F.flip(update, *backwards) if backwards else update, x.spec.dtype)
    out = s.view_write(x, update, path=((s.getitem, {"index": index}),))
    return out if isinstance(x, Blob) or x.requires_grad else x.copy_(out)


# ---- constants ---------------------------------------------------------------------------------------------------


@takes_name
def constant(value: Any, dtype: DType | None = None, shape: Sequence[int] | None = None) -> Tensor:
    """A tensor filled with one value, of shape `()` by default. dtype: by default float32 for a float, int32 for an
    int.
    """
    if value.__class__ not in NUMBERS:
        what = f"constant: value is {value!r}, not a number"
        fail(DTypeError, what, "flow.constant(0.5, flow.float32, (2, 3))", value=value)
    dtype = as_dtype(dtype) if dtype is not None else float32 if value.__class__ is float else int32
    return s.full(shape=() if shape is None else listed("constant", "shape", shape), value=value, dtype=dtype)


@takes_name
def constant_scalar(value: Any, dtype: DType | None = None) -> Tensor:
    """A constant of shape `(1,)`."""
    return constant(value, dtype, (1,))


@takes_name
def constant_like(like: Tensor, value: Any, dtype: DType | None = None) -> Tensor:
    """A constant with the shape of `like`, and its dtype by default."""
    result = constant(value, like.spec.dtype if dtype is None else dtype, tuple(like.spec.shape))
    return result.to(device=like.spec.device)


@takes_name
def zeros_like(like: Tensor, dtype: DType | None = None) -> Tensor:
    """Zeros with the shape of `like`."""
    return constant_like(like, 0, dtype)


@takes_name
def ones_like(like: Tensor, dtype: DType | None = None) -> Tensor:
    """Ones with the shape of `like`."""
    return constant_like(like, 1, dtype)


@takes_name
def zeros(shape: Sequence[int], dtype: DType | None = None) -> Tensor:
    """Zeros; shape is one list or tuple, dtype float32 by default."""
    return constant(0, float32 if dtype is None else dtype, shape)


@takes_name
def ones(shape: Sequence[int], dtype: DType | None = None) -> Tensor:
    """Ones; shape is one list or tuple, dtype float32 by default."""
    return constant(1, float32 if dtype is None else dtype, shape)


@takes_name
def range_of(start: float, limit: float | None = None, delta: float = 1, dtype: DType | None = None) -> Tensor:
    """Values from start to limit (exclusive) in steps of delta; with one argument, from 0 to that. dtype: int64 by
    default.
    """
    start, limit = (0, start) if limit is None else (start, limit)
    return creation.arange(start, limit, delta, dtype=int64 if dtype is None else dtype)


@takes_name
def elem_cnt(inputs: Any, dtype: DType | None = None) -> Tensor:
    """`int32 (1,)`: number of elements."""
    return s.full(shape=(1,), value=math.prod(inputs.spec.shape), dtype=int32 if dtype is None else as_dtype(dtype))


# ---- casts and copies --------------------------------------------------------------------------------------------


@takes_name
def cast(x: Tensor, dtype: Any) -> Tensor:
    """Cast x to another dtype; floats are truncated to integers."""
    return to(ensure_tensor(x), as_dtype(dtype))


@takes_name
def identity(x: Tensor) -> Tensor:
    """A copy of x."""
    return s.clone(x)


@takes_name
def identity_n(inputs: Sequence) -> list:
    """A copy of each tensor."""
    return [s.clone(x) for x in several("identity_n", inputs)]


@takes_name
def cast_to_static_shape(x: Tensor) -> Tensor:
    """A result of argwhere, nonzero or sync_dynamic_resize with all rows; any other Blob itself."""
    return Blob(None, x.spec, x._value, x._needs) if getattr(x, "bound", None) is not None else x


@takes_name
def sync_dynamic_resize(inputs: Tensor, size: Tensor) -> Tensor:
    """The first `size` (an int tensor of one element) rows of `inputs`. In a job, it can only be returned, as
    tp.ListNumpy, or go through cast_to_static_shape.
    """
    if size.spec.size != 1 or size.spec.floating:
        fail(ShapeError, f"sync_dynamic_resize: size is {size.spec}", "a tensor of one integer", size=size)
    return bounded(inputs, size) if inputs.array is None else inputs[: size.item()]


@takes_name
def amp_white_identity(x: Tensor) -> Tensor:
    """A copy of x. OneFlow used it to mark values that may be float16 in mixed precision."""
    return s.clone(x)


def cast_to_current_logical_view(x: Tensor) -> Tensor:
    """Return x itself: all ops of a job have one view, that of its function_config."""
    return x


def parallel_cast(
    input: Tensor, name: str | None = None, distribute: Any = None, gradient_distribute: Any = None
) -> Tensor:
    """The input with another distribution over its ranks, and its gradient with `gradient_distribute`; input itself if
    it is not on several ranks.
    """
    return distributed(input, distribute, gradient_distribute)


@folded
def count_not_finite(x: Tensor) -> Tensor:
    """`int64 (1,)`: number of elements that are NaN or infinite."""
    return F.reshape(r.sum(F.logical_not(F.isfinite(x)), axis=None, keepdims=False), (1,))


@folded
def multi_count_not_finite(x: Sequence) -> Tensor:
    """`int64 (1,)`: number of elements that are NaN or infinite in all tensors of a list."""
    first, *others = [count_not_finite(each) for each in several("multi_count_not_finite", x)]
    for other in others:
        first = first + other
    return first


@takes_name
def matmul(a: Tensor, b: Tensor, transpose_a: bool = False, transpose_b: bool = False, alpha: float = 1.0) -> Tensor:
    """alpha * (a @ b), optionally with the last two axes of a or b swapped. At least two axes; more are batch axes."""
    a, b = promoted("matmul", a, b)
    for argument, x in (("a", a), ("b", b)):
        if x.spec.ndim < 2:
            what = f"matmul: {argument} has {x.spec.ndim} axes, and for Blobs it takes matrices"
            fail(ShapeError, what, "flow.reshape(x, [1, -1]) makes a row of a vector", a=a, b=b)
    product = linalg.matmul(a, b, ta=bool(transpose_a), tb=bool(transpose_b))
    return product if alpha == 1 else product * alpha


@takes_name
def diag(x: Tensor, diagonal: int = 0) -> Tensor:
    """The diagonal of a matrix, or the matrix with a given vector as its diagonal."""
    return F.diag(x, diagonal)


@takes_name
def assign(ref: Tensor, value: Any, dtype: DType | None = None) -> None:
    """Write `value` into `ref`: in a job into a variable, when the step runs; outside a job into the tensor, at once.

    The value is cast to the dtype of ref. Raises ShapeError if the shapes differ.
    """
    value = ensure_tensor(value)
    if value.spec.shape != ref.spec.shape:
        what = f"assign: value has shape {value.spec.shape}, ref {ref.spec.shape}"
        fail(ShapeError, what, "the two alike", ref=ref, value=value)
    value = to(value, ref.spec.dtype)
    if MODE.get().trace is None:
        ref.copy_(value)
    else:
        from ..build_context import building

        building("flow.assign").assign(ref, value)


def convert_oneflow_dtype_to_numpy_dtype(oneflow_dtype: DType) -> Any:
    """NumPy type of a dtype: `np.float32` for `flow.float32`."""
    return as_dtype(oneflow_dtype).np.type
