"""dropout, drawn from the default Generator. Read next: `../../core/ops/random.py`, how its counter works."""

from __future__ import annotations

from ...core.base.errors import OutOfRangeError
from ...core.functions.random import dropout as drop
from ...core.random import Generator, default_generator
from ...core.source_location import fail
from ...core.tensor import Tensor
from .arguments import check_tensor


def dropout(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False, generator: Generator | None = None
) -> Tensor:
    """In training set each element to 0 with probability p, else to x / (1 - p); in evaluation return the input.

    Uses one counter value of the generator (None: the default one). Raises OutOfRangeError unless 0 <= p <= 1.
    """
    check_tensor("dropout", input)
    if not 0 <= p <= 1:
        fail(OutOfRangeError, f"dropout: p must be a probability between 0 and 1, got {p!r}", "p=0.5", input=input)
    if not training or p == 0:
        return input
    out = drop(input, float(p), generator=generator or default_generator)
    return input.copy_(out) if inplace else out  # the gradient needs only the mask, so the input may be overwritten
