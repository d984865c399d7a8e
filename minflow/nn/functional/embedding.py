"""embedding: from indices to rows of numbers. Read next: `../../core/ops/index.py`."""

from __future__ import annotations

from ...core.errors import DTypeError, OutOfRangeError, ShapeError
from ...core.op import MODE, fail
from ...core.functions import where
from ...core.tensor import Tensor
from .arguments import check_tensor


def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = None) -> Tensor:
    """out[...] = weight[input[...]].

    input: int (...), each in [0, V).  weight: float (V, D).  Returns float (..., D). Row padding_idx gets no gradient.
    Raises DTypeError unless input holds integers, OutOfRangeError for an index outside [0, V).
    """
    check_tensor("embedding", input)
    rows = weight.spec.shape[0]
    if weight.spec.ndim != 2:
        fail(
            ShapeError,
            f"embedding: the weight has {weight.spec.ndim} axes, wanted (V, D)",
            "one row per index",
            weight=weight,
        )
    if input.spec.dtype.rank != 1:
        fail(
            DTypeError,
            f"embedding: the indices are {input.spec.dtype.name}, wanted integers",
            "x.long(); was the layer before this one meant to come after it?",
            input=input,
            weight=weight,
        )
    check_rows(input, weight)
    out = weight[input]
    if padding_idx is not None and out.requires_grad:
        kept = (input != padding_idx % rows).unsqueeze(-1)
        out = where(kept, out, out.detach())
    return out


def check_rows(input: Tensor, weight: Tensor) -> None:
    """Refuse indices outside [0, V), where the numbers are known (not while tracing)."""
    if input.array is None or MODE.get().trace or not input.spec.size:
        return
    low, high, rows = int(input.array.min()), int(input.array.max()), weight.spec.shape[0]
    if low < 0 or high >= rows:
        fail(
            OutOfRangeError,
            f"embedding: index {low if low < 0 else high} is outside 0 to {rows - 1}, the rows of the weight",
            f"nn.Embedding({max(high + 1, rows)}, {weight.spec.shape[1]}), if there are so many; indices count from 0",
            input=input,
            weight=weight,
        )
