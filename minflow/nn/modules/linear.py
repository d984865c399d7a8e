"""Layers: Identity and Linear.

Read next: `../functional/linear.py`, the computation of Linear and its error messages for shapes.
"""

from __future__ import annotations

import math
from typing import Any

from ...core.base.errors import ShapeError
from ...core.functions.creation import empty
from ...core.source_location import fail
from ...core.spec import Device, DType
from ...core.tensor import Tensor
from .. import functional as F, init
from ..module import Module
from ..parameter import Parameter


class Identity(Module):
    """out = x. Accepts and ignores any arguments, so that it can replace another layer."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input


class Linear(Module):
    """out = x @ weight.T + bias.

    x: float (..., in_features). weight: (out_features, in_features). bias: (out_features,), or None with bias=False.
    Returns float (..., out_features). Both are initialized uniform in +-1/sqrt(in_features).
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Device | str | None = None,
        dtype: DType | None = None,
    ):
        super().__init__()
        for name, value in (("in_features", in_features), ("out_features", out_features)):
            check_size("Linear", name, value)
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter(empty(out_features, in_features, dtype=dtype, device=device))
        self.bias: Parameter | None
        self.register_parameter("bias", Parameter(empty(out_features, dtype=dtype, device=device)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reinitialize weight and bias."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


def check_size(layer: str, name: str, value: Any, least: int = 0) -> None:
    """Raise an error unless a size is an integer of at least `least`."""
    if isinstance(value, bool) or not hasattr(value, "__index__") or value.__index__() < least:
        what = f"{layer}: {name} must be an integer of at least {least}, got {value!r}"
        fail(ShapeError, what, f"int({name})" if isinstance(value, float) else "sizes in the order of the signature")
