"""embedding and embedding_bag: rows of a weight by index. Read next: `../../core/ops/index.py`."""

from __future__ import annotations

from typing import Any

from ...core.backend import namespace
from ...core.base.errors import DTypeError, OutOfRangeError, ShapeError
from ...core.functions import index_add, norm, where
from ...core.functions.arguments import integer
from ...core.grad.function import Function
from ...core.grad.modes import no_grad
from ...core.ops.embedding import reduce_bags
from ...core.ops.index import take
from ...core.ops.shape import constant_beside, filled
from ...core.source_location import fail, warn
from ...core.spec import bool_, cpu
from ...core.tensor import Tensor
from .arguments import check_tensor


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """out[...] = weight[input[...]].

    input: int (...), each in [0, V). weight: float (V, D). Returns float (..., D). Row padding_idx gets no gradient.
    max_norm: rows that are looked up and whose norm of order norm_type is larger are first scaled down to it, in place.
    scale_grad_by_freq: the gradient of a row is divided by how often input contains its index.
    sparse: accepted with a warning, given once: gradients are dense in any case.
    Raises DTypeError unless input holds integers, OutOfRangeError for an index outside [0, V).
    """
    check_tensor("embedding", input)
    rows = weight.spec.shape[0]
    if weight.spec.ndim != 2:
        what = f"embedding: the weight must be (V, D), got {weight.spec.ndim} axes"
        fail(ShapeError, what, "one row per index", weight=weight)
    if input.spec.dtype.rank != 1:
        what = f"embedding: the indices must be integers, got {input.spec.dtype.name}"
        hint = "x.long(); was the layer before this one meant to come after it?"
        fail(DTypeError, what, hint, input=input, weight=weight)
    if padding_idx is not None and not -rows <= integer(padding_idx, "padding_idx") < rows:
        what = f"embedding: padding_idx is {padding_idx}, and the weight has {rows} rows"
        fail(OutOfRangeError, what, f"padding_idx from {-rows} to {rows - 1}", weight=weight)
    if sparse:
        warn("embedding: sparse=True has no effect, all gradients are dense", "sparse=False")
    if max_norm is not None:
        clip_row_norms(input, weight, float(max_norm), norm_type)
    out = take(weight, input, axis=0, by="embedding")
    if scale_grad_by_freq and out.requires_grad:
        out = ScaledGrad.apply(out, index_counts(input, rows, weight)[input].unsqueeze(-1))
    if padding_idx is not None and out.requires_grad:
        kept = (input != padding_idx % rows).unsqueeze(-1)
        out = where(kept, out, out.detach())
    return out


def index_counts(input: Tensor, rows: int, weight: Tensor) -> Tensor:
    """Count how often each row is looked up, in the dtype of the weight."""
    flat = input.reshape(-1)
    counts, ones = [filled(weight.spec.replace(shape=(n,)), v) for n, v in ((rows, 0), (flat.spec.size, 1))]
    return index_add(counts, 0, flat, ones)


def clip_row_norms(input: Tensor, weight: Tensor, max_norm: float, norm_type: float) -> None:
    """Scale down, in place, those rows that are looked up and whose norm is too large."""
    with no_grad():
        size = norm(weight, norm_type, 1, keepdim=True)
        long = (size > max_norm) & (index_counts(input, weight.spec.shape[0], weight) > 0).unsqueeze(-1)
        weight.copy_(where(long, weight * (max_norm / (size + 1e-7)), weight))


class ScaledGrad(Function):
    """The identity, with its gradient divided by `count`."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, count: Tensor) -> Tensor:
        ctx.save_for_backward(count)
        return rows.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple:
        return grad / ctx.saved_tensors[0], None


# ---- bags --------------------------------------------------------------------------------------------------------


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """The mean (sum, maximum) of the rows of each bag: float (B, D); zeros for an empty bag.

    input: int (B, N), or all bags concatenated (n,) with offsets (B,), the start of each (with include_last_offset also
    the end of the last one). per_sample_weights: factors of input's shape, for mode="sum". padding_idx: index that is
    ignored. The other arguments are those of embedding.
    """
    name, tensors = "embedding_bag", dict(input=input, weight=weight)
    for argument, x in tensors.items():
        check_tensor(name, x, argument)
    if mode not in ("sum", "mean", "max"):
        fail(ShapeError, f"{name}: mode is {mode!r}", 'mode="sum", "mean" or "max"', **tensors)
    if per_sample_weights is not None and (mode != "sum" or per_sample_weights.spec.shape != input.spec.shape):
        what = f"{name}: per_sample_weights of shape {list(per_sample_weights.spec.shape)} with mode={mode!r}"
        fail(ShapeError, what, f'mode="sum", and weights of the shape {list(input.spec.shape)}', **tensors)
    ndim, size = input.spec.ndim, input.spec.size
    if ndim not in (1, 2) or (ndim == 1) == (offsets is None) or (offsets is not None and offsets.spec.ndim != 1):
        what = f"{name}: input has {ndim} axes, offsets {'are not given' if offsets is None else offsets.spec}"
        fail(ShapeError, what, "input (B, N) without offsets, or input (n,) with offsets (B,)", **tensors)
    if offsets is None:
        bags = input.spec.shape[0]
        place = constant_beside(input, namespace().arange(bags)).unsqueeze(1).expand(input.spec.shape).reshape(size)
    else:
        starts = offsets[:-1] if include_last_offset else offsets
        bags = starts.spec.size
        if offsets.array is not None and offsets.device is cpu and offsets.is_local and bags and offsets.array[0]:
            what = f"{name}: offsets must begin with 0, got {offsets.array[0]}"
            fail(OutOfRangeError, what, "offsets[0] == 0", **tensors, offsets=offsets)
        place = (constant_beside(input, namespace().arange(size)).unsqueeze(1) >= starts).sum(1) - 1
    flat = input.reshape(size)
    rows = embedding(flat, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.reshape(size, 1).to(rows.dtype)
    if padding_idx is None:
        counted = filled(input.spec.replace(shape=(size,), dtype=bool_), 1)
    else:
        counted = flat != padding_idx % weight.spec.shape[0]
    return reduce_bags(rows, place, counted, bags=bags, pooling=mode)
