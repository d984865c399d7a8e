"""einops backend: `rearrange(x, "b c h w -> b (h w) c")` works on minflow tensors, eagerly and in graphs.

einops tries each subclass of its AbstractBackend whose `framework_name` is imported. `../import_aliases.py` imports
this file right after einops. Read next: `einops.py`, the layers.
"""

from __future__ import annotations

import importlib

from einops._backends import AbstractBackend

from ..core import functions as F
from ..core.tensor import Tensor


class MinflowBackend(AbstractBackend):
    """Tensor functions that einops needs. Sizes are ints, also in a graph, so einops computes all shapes itself."""

    framework_name = "minflow"

    def is_appropriate_type(self, tensor):
        return isinstance(tensor, Tensor)

    def from_numpy(self, x):
        return F.creation.from_numpy(x)

    def to_numpy(self, x):
        return x.detach().numpy()

    def arange(self, start, stop):
        return F.creation.arange(start, stop)

    def transpose(self, x, axes):
        return x.permute(axes)

    def reduce(self, x, operation, axes):
        names = {"min": "amin", "max": "amax"}  # amin and amax split the gradient among ties
        if operation in ("min", "max", "sum", "mean"):
            return getattr(x, names.get(operation, operation))(dim=tuple(axes))
        for axis in sorted(axes, reverse=True):  # prod, any, all
            x = getattr(x, operation)(dim=axis)
        return x

    def stack_on_zeroth_dimension(self, tensors):
        return F.stack(tensors)

    def add_axes(self, x, n_axes, pos2len):
        repeats = [-1] * n_axes
        for position, length in pos2len.items():
            x = x.unsqueeze(position)
            repeats[position] = length
        return x.expand(repeats)

    def tile(self, x, repeats):
        return x.repeat(repeats)

    def concat(self, tensors, axis):
        return F.cat(tensors, dim=axis)

    def add_axis(self, x, new_position):
        return x.unsqueeze(new_position)

    def is_float_type(self, x):
        return x.is_floating_point()

    def einsum(self, pattern, *x):
        return F.einsum(pattern, *x)

    def layers(self):
        return importlib.import_module("minflow.compat.einops")
