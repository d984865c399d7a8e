"""embedding and one_hot: from class numbers to rows of numbers. Read next: `../../core/ops/index.py`."""

from __future__ import annotations

from ...core.errors import DTypeError, OutOfRangeError, ShapeError
from ...core.op import MODE, fail
from ...core.ops.shape import expand
from ...core.spec import int64
from ...core.creation import arange
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
    check_range(
        "embedding: the indices", input, rows, f"nn.Embedding with more rows, or indices from 0 to {rows - 1}", weight
    )
    out = weight[input]
    if padding_idx is not None and out.requires_grad:
        kept = (input != padding_idx % rows).unsqueeze(-1)
        out = where(kept, out, out.detach())
    return out


def check_range(what: str, input: Tensor, size: int, hint: str, weight: Tensor | None = None) -> None:
    """Refuse indices outside [0, size), where the numbers are known (not while tracing)."""
    if input.array is None or MODE.get().trace or not input.spec.size:
        return
    low, high = int(input.array.min()), int(input.array.max())
    if low < 0 or high >= size:
        others = {} if weight is None else {"weight": weight}
        fail(
            OutOfRangeError,
            f"{what} go from {low} to {high}, there are {size}: 0 to {size - 1}",
            hint,
            input=input,
            **others,
        )


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """1 in the place of each class number, else 0: int (...) becomes int64 (..., num_classes).

    num_classes -1: the largest class number + 1, which only eager mode can know.
    """
    check_tensor("one_hot", tensor, "tensor")
    if tensor.spec.dtype.rank != 1:
        fail(
            DTypeError,
            f"one_hot: the class numbers are {tensor.spec.dtype.name}, wanted integers",
            "labels.long()",
            tensor=tensor,
        )
    if num_classes < 0:
        num_classes = int(tensor.max()) + 1
    check_range("one_hot: the class numbers", tensor, num_classes, "num_classes=-1 takes as many as there are")
    classes = expand(arange(num_classes), shape=(*tensor.spec.shape, num_classes))
    return (tensor.unsqueeze(-1) == classes).to(int64)
