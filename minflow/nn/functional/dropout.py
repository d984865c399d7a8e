"""dropout, drawn from the default Generator. Read next: `../../core/ops/random.py`, how the bits are counted."""

from __future__ import annotations

from ...core.base.errors import OutOfRangeError
from ...core.mode import MODE
from ...core.ops.random import dropout as drop
from ...core.random import Generator, default_generator
from ...core.tensor import Tensor
from ...core.source_location import fail
from .arguments import check_tensor


def dropout(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False, generator: Generator | None = None
) -> Tensor:
    """In training each number becomes 0 with probability p, else x / (1 - p); otherwise out = x.

    Takes one counter of the generator, the default one where none is given. Raises OutOfRangeError unless 0 <= p <= 1.
    """
    check_tensor("dropout", input)
    if not 0 <= p <= 1:
        fail(
            OutOfRangeError, f"dropout: p is {p!r}, where a probability between 0 and 1 is wanted", "p=0.5", input=input
        )
    if not training or p == 0:
        return input
    counter, offset = MODE.get().draw(generator or default_generator)
    out, _ = drop(input, counter, p=float(p), offset=offset)
    return input.copy_(out) if inplace else out  # its gradient needs the mask only, so the input may go
