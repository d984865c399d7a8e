"""embedding: from indices to rows of numbers. Read next: `../../core/ops/index.py`."""

from __future__ import annotations

from ...core.base.errors import DTypeError, OutOfRangeError, ShapeError
from ...core.functions import where
from ...core.functions.arguments import integer
from ...core.ops.index import take
from ...core.tensor import Tensor
from ...core.where import fail
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
    if padding_idx is not None and not -rows <= integer(padding_idx, "padding_idx") < rows:
        what = f"embedding: padding_idx is {padding_idx}, and the weight has {rows} rows"
        fail(OutOfRangeError, what, f"padding_idx from {-rows} to {rows - 1}", weight=weight)
    out = take(weight, input, axis=0, by="embedding")
    if padding_idx is not None and out.requires_grad:
        kept = (input != padding_idx % rows).unsqueeze(-1)
        out = where(kept, out, out.detach())
    return out
