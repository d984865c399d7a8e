"""dropout, drawn from the default Generator. Read next: `../../core/ops/random.py`, how its counter works."""

from __future__ import annotations

from typing import Any

from ...core.base.errors import OutOfRangeError
from ...core.functions.arguments import is_symbolic
from ...core.functions.random import dropout as drop
from ...core.random import Generator, default_generator
from ...core.source_location import fail
from ...core.tensor import Tensor
from .arguments import check_tensor


def keeps_all(name: str, input: Tensor, p: Any) -> bool:
    """True if p is 0. Raises OutOfRangeError if it is not a probability."""
    check_tensor(name, input)
    if is_symbolic(p):
        return False
    if not 0 <= p <= 1:
        fail(OutOfRangeError, f"{name}: p must be a probability between 0 and 1, got {p!r}", "p=0.5", input=input)
    return bool(p == 0)


def dropout(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False, generator: Generator | None = None
) -> Tensor:
    """In training set each element to 0 with probability p, else to x / (1 - p); in evaluation return the input.

    Uses one counter value of the generator (None: the default one). p: a number, or a 0-d tensor, which draws other
    elements. Raises OutOfRangeError unless 0 <= p <= 1, which is not checked for a tensor in a graph.
    """
    if keeps_all("dropout", input, p) or not training:
        return input
    out = drop(input, p, generator=generator or default_generator)
    return input.copy_(out) if inplace else out  # the gradient needs only the mask, so the input may be overwritten
