"""Layers that change only the shape: Flatten, Unflatten.

Read next: `linear.py`, the layer that usually follows Flatten.
"""

from __future__ import annotations

from ...core.base.errors import OutOfRangeError
from ...core.functions.arguments import integer
from ...core.source_location import fail
from ...core.tensor import Tensor
from ..functional.arguments import check_tensor
from ..module import Module


class Flatten(Module):
    """Merge the axes start_dim to end_dim into one: (N, C, H, W) becomes (N, C * H * W)."""

    _repr_attributes = ("start_dim", "end_dim")

    def __init__(self, start_dim: int = 1, end_dim: int = -1):
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Tensor) -> Tensor:
        check_tensor("Flatten", input)
        if 0 < integer(self.start_dim, "start_dim") >= (input.ndim or 1):
            what = f"Flatten merges the axes from {self.start_dim} on, but the input has only {input.ndim}"
            hint = "x.unsqueeze(0) for one example: the first axis counts the examples of a batch"
            fail(OutOfRangeError, what, hint, input=input)
        return input.flatten(self.start_dim, self.end_dim)


class Unflatten(Module):
    """Split axis `dim` into the axes unflattened_size: (N, C * H * W) becomes (N, C, H, W)."""

    _repr_attributes = ("dim", "unflattened_size")

    def __init__(self, dim: int, unflattened_size: tuple[int, ...] | list[int]):
        super().__init__()
        self.dim, self.unflattened_size = dim, tuple(unflattened_size)

    def forward(self, input: Tensor) -> Tensor:
        check_tensor("Unflatten", input)
        return input.unflatten(self.dim, self.unflattened_size)
