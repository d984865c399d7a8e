"""All parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

from ...core.base.errors import ShapeError
from ...core.functions import cat
from ...core.grad.modes import no_grad
from ...core.source_location import fail
from ...core.tensor import Tensor


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Concatenate the elements of all parameters: float (total,). Gradients flow through."""
    return cat([p.reshape(-1) for p in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Copy a vector, as parameters_to_vector made it, into the parameters. Raises ShapeError if its length differs."""
    parameters = list(parameters)
    total = sum(p.spec.size for p in parameters)
    if vec.spec.shape != (total,):
        what = f"vector_to_parameters: the parameters hold {total} elements"
        fail(ShapeError, what, "the same parameters in the same order", vec=vec)
    with no_grad():
        start = 0
        for p in parameters:
            p.copy_(vec[start : start + p.spec.size].reshape(p.spec.shape))
            start += p.spec.size
