"""All parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...core.base.errors import ShapeError
from ...core.functions import cat
from ...core.grad.modes import no_grad
from ...core.source_location import fail
from ...core.tensor import Tensor


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Concatenate the elements of all parameters: float (total,). Gradients flow through."""
    return cat([p.reshape(-1) for p in parameters])


def _flatten_dense_tensors(tensors: Iterable[Tensor]) -> Tensor:
    """parameters_to_vector under the name of `torch._utils`, which programs use to send many gradients as one."""
    return parameters_to_vector(tensors)


def _unflatten_dense_tensors(flat: Tensor, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Parts of the vector `flat` with the shapes of `tensors`, in their order."""
    parts = flat.split([t.spec.size for t in tensors])
    return tuple([part.reshape(t.spec.shape) for part, t in zip(parts, tensors, strict=True)])


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
