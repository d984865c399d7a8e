"""`utils.tensor`: exchange tensors with PyTorch, over the same memory."""

from __future__ import annotations

from typing import Any

from ..core.base.errors import DTypeError
from ..core.functions.creation import from_numpy
from ..core.messages.suggestions import name_hints as _name_hints
from ..core.source_location import fail, need
from ..core.tensor import Tensor


def from_torch(torch_tensor: Any) -> Tensor:
    """Make a tensor that shares the memory of a PyTorch tensor, without its tape. Raises DTypeError for other types."""
    if isinstance(torch_tensor, Tensor) or not hasattr(torch_tensor, "detach"):
        what = f"from_torch takes a PyTorch tensor, got {type(torch_tensor).__name__}"
        hint = "flow.tensor(...) for numbers, flow.from_numpy(...) for an array"
        fail(DTypeError, what, hint, torch_tensor=torch_tensor)
    return from_numpy(torch_tensor.detach().cpu().numpy())


def to_torch(flow_tensor: Tensor) -> Any:
    """Make a PyTorch tensor that shares the memory of ours, without its tape. Requires the package torch."""
    if not isinstance(flow_tensor, Tensor):
        what = f"to_torch takes a minflow tensor, got {type(flow_tensor).__name__}"
        fail(DTypeError, what, "flow.tensor(...)", flow_tensor=flow_tensor)
    return need("torch", "to_torch").from_numpy(flow_tensor.detach().numpy())


__all__ = ["from_torch", "to_torch"]
__getattr__ = _name_hints("flow.utils.tensor", globals())
