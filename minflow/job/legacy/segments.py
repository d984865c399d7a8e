"""The part of `flow.math` that takes lists, labels and segments: add_n, polyval, in_top_k, unsorted_segment_sum, ...

`math.py` re-exports these functions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...core import functions as F
from ...core.base.errors import DTypeError, ShapeError
from ...core.functions import creation
from ...core.functions.arguments import common_shape, ensure_tensor, integer, normalize_axis, to
from ...core.ops import elementwise as e, index as i, reduce as r, shape as s
from ...core.source_location import fail
from ...core.spec import as_dtype, int8, int32
from .op_name import folded, takes_name

if TYPE_CHECKING:
    from ...core.spec import DType
    from ...core.tensor import Tensor


def several(name: str, inputs: Any) -> list:
    """The tensors of a list argument. Raises DTypeError for anything else, and for an empty list."""
    if not isinstance(inputs, list | tuple) or not inputs:
        fail(DTypeError, f"{name}: inputs must be a list of at least one tensor", f"{name}([a, b])", inputs=inputs)
    return [ensure_tensor(x) for x in inputs]


@folded
def add_n(inputs: Sequence) -> Tensor:
    """The sum of tensors of the same shape. Raises ShapeError if shapes differ: unlike add, it does not broadcast."""
    first, *others = several("add_n", inputs)
    total = first
    for k, x in enumerate(others, 1):
        if x.spec.shape != first.spec.shape:
            what = f"add_n: input {k} has shape {x.spec.shape}, the first one {first.spec.shape}"
            fail(ShapeError, what, "all alike; flow.math.add broadcasts", first=first, **{f"inputs[{k}]": x})
        total = e.add(total, x)
    return total


@folded
def polyval(coeffs: Sequence, x: Tensor) -> Tensor:
    """coeffs[0] * x**(n-1) + ... + coeffs[n-1], by Horner's rule. coeffs: numbers or tensors, the highest power
    first.
    """
    if not isinstance(coeffs, list | tuple):
        fail(DTypeError, "polyval: coeffs must be a list of numbers or tensors", "polyval([1, 2, 3], x)", coeffs=coeffs)
    total = s.full(shape=tuple(x.spec.shape), value=0, dtype=x.spec.dtype)
    for k, c in enumerate(coeffs):
        total = (total * x if k else total) + c
    return total


@folded
def in_top_k(targets: Tensor, predictions: Tensor, k: int) -> Tensor:
    """`int8 (N,)`: 1 if fewer than k classes of predictions `(N, classes)` score higher than the target; NaN and inf
    give 0.

    targets: integers `(N,)`.
    """
    targets, predictions, k = ensure_tensor(targets), ensure_tensor(predictions), integer(k, "k")
    if predictions.spec.ndim != 2 or targets.spec.shape != predictions.spec.shape[:1]:
        what = f"in_top_k: targets {targets.spec.shape} for predictions {predictions.spec.shape}"
        hint = "one target for each row of predictions: (N,) and (N, classes)"
        fail(ShapeError, what, hint, targets=targets, predictions=predictions)
    own = i.gather(predictions, F.reshape(targets, (targets.spec.size, 1)), dim=1)
    ahead = F.count_nonzero(F.gt(predictions, own), 1)
    finite = r.all(F.isfinite(own), axis=(1,), keepdims=False)
    return to(F.logical_and(F.lt(ahead, k), finite), int8)


@takes_name
def reduced_shape_elem_cnt(input_blob: Tensor, axis: Sequence[int] | None = None, dtype: DType | None = None) -> Tensor:
    """`int32 (1,)`: number of elements along `axis` (a list; None for all). dtype: dtype of the result."""
    shape = input_blob.spec.shape
    axes = range(len(shape)) if axis is None else {normalize_axis(d, len(shape), input_blob) for d in axis}
    return s.full(
        shape=(1,), value=math.prod([shape[d] for d in axes]), dtype=int32 if dtype is None else as_dtype(dtype)
    )


@takes_name
def broadcast_to_compatible_with(x: Tensor, compatible: Sequence) -> Tensor:
    """Broadcast x to the common shape of x and all tensors of the list `compatible`."""
    others = {f"compatible[{k}]": y for k, y in enumerate(several("broadcast_to_compatible_with", compatible))}
    return s.expand(x, shape=common_shape("broadcast_to_compatible_with", {"x": x, **others}))


# ---- triangles ---------------------------------------------------------------------------------------------------


def lower(x: Tensor, diagonal: int) -> Any:
    """bool (rows, columns): the lower triangle of the last two axes."""
    ones = s.full(shape=x.spec.shape[-2:], value=1, dtype=int8)
    return F.ne(i.tril(ones, diagonal=integer(diagonal, "diagonal")), 0)


@takes_name
def tril(x: Tensor, diagonal: int = 0, fill_value: float = 0) -> Tensor:
    """The lower triangle of the last two axes; fill_value above the given diagonal."""
    return (
        i.tril(x, diagonal=integer(diagonal, "diagonal"))
        if fill_value == 0
        else e.where(lower(x, diagonal), x, fill_value)
    )


@folded
def fused_scale_tril(x: Tensor, diagonal: int = 0, fill_value: float = 0, scale: float = 1) -> Tensor:
    """scale * x in the lower triangle of the last two axes; fill_value above the given diagonal."""
    return e.where(lower(x, diagonal), x if scale == 1 else x * scale, fill_value)


@folded
def fused_scale_tril_softmax_dropout(
    x: Tensor,
    diagonal: int = 0,
    fill_value: float = 0,
    scale: float = 1,
    rate: float = 0.0,
    noise_shape: Any = None,
    seed: int | None = None,
) -> Tensor:
    """Softmax over the last axis of fused_scale_tril, followed by dropout with probability rate.

    Dropout is active in predict jobs as well; rate=0 disables it. noise_shape, seed: as in flow.nn.dropout.
    """
    from .nn import random_mask_like

    shares = F.softmax(fused_scale_tril(x, diagonal, float(fill_value), float(scale)), -1)
    if not rate:
        return shares
    return shares * to(random_mask_like(x, rate, seed, noise_shape), shares.spec.dtype) * (1 / (1 - rate))


@folded
def fused_scale_tril_softmax_mask_scale(
    x: Tensor,
    mask: Tensor,
    diagonal: int = 0,
    tril_fill_value: float = -math.inf,
    tril_scale_value: float = 1.0,
    mask_scale_value: float = 1.0,
) -> Tensor:
    """Softmax over the last axis of fused_scale_tril, times the mask and mask_scale_value."""
    shares = F.softmax(fused_scale_tril(x, diagonal, float(tril_fill_value), float(tril_scale_value)), -1)
    return shares * to(mask, shares.spec.dtype) * mask_scale_value


# ---- segments ----------------------------------------------------------------------------------------------------


@folded
def unsorted_segment_sum(data: Any, segment_ids: Tensor, num_segments: int, axis: int = 0) -> Tensor:
    """The slices of data along `axis` added up by segment: out[k] = sum of data[j] over all j with segment_ids[j] == k.

    segment_ids: integers from 0 to num_segments - 1, of the size of that axis (or of that axis and those after it,
    which are then summed over too). Raises ShapeError if the sizes differ.
    """
    axis, shape = normalize_axis(axis, data.spec.ndim, data), data.spec.shape
    ids = segment_ids.spec.shape
    if not ids or shape[axis : axis + len(ids)] != ids:
        what = f"unsorted_segment_sum: segment_ids {ids} for axis {axis} of {shape}"
        hint = f"one segment for each slice: ({shape[axis] if shape else 1},)"
        fail(ShapeError, what, hint, data=data, segment_ids=segment_ids)
    before, after, n = shape[:axis], shape[axis + len(ids) :], segment_ids.spec.size
    data, segment_ids = F.reshape(data, (*before, n, *after)), F.reshape(segment_ids, (n,))
    empty = s.full(shape=(*before, integer(num_segments, "num_segments"), *after), value=0, dtype=data.spec.dtype)
    return i.index_add(empty, segment_ids, data, axis=axis)


@folded
def unsorted_segment_sum_like(data: Any, segment_ids: Tensor, like: Tensor, axis: int = 0) -> Tensor:
    """unsorted_segment_sum into the shape of `like`, whose size along `axis` is the number of segments."""
    return unsorted_segment_sum(data, segment_ids, like.spec.shape[normalize_axis(axis, like.spec.ndim, like)], axis)


@folded
def unsorted_batch_segment_sum(data: Any, segment_ids: Tensor, num_segments: int) -> Tensor:
    """unsorted_segment_sum for each example separately: segment_ids `(N, n)`, data `(N, n, ...)`, result `(N,
    num_segments, ...)`.
    """
    ids, shape, num_segments = segment_ids.spec.shape, data.spec.shape, integer(num_segments, "num_segments")
    if len(ids) < 2 or shape[: len(ids)] != ids:
        what = f"unsorted_batch_segment_sum: segment_ids {ids} for data {shape}"
        fail(ShapeError, what, "the shape of data's first axes, at least two", data=data, segment_ids=segment_ids)
    batch = math.prod(ids[:-1])
    own = F.repeat_interleave(starts(batch, num_segments), ids[-1])
    total = unsorted_segment_sum(
        F.reshape(data, (batch * ids[-1], *shape[len(ids) :])),
        F.reshape(segment_ids, (batch * ids[-1],)) + own,
        batch * num_segments,
    )
    return F.reshape(total, (*ids[:-1], num_segments, *shape[len(ids) :]))


def starts(batch: int, num_segments: int) -> Any:
    """`int64 (batch,)`: index of the first segment of each example."""
    return creation.arange(0, batch * num_segments, num_segments)
