"""Layers: GroupNorm, RMSNorm, RMSLayerNorm, LocalResponseNorm, CrossMapLRN2d.

Read next: `../functional/group_norm.py`.
"""

from __future__ import annotations

from typing import SupportsIndex

from ...core.base.errors import ShapeError
from ...core.functions.creation import ones, zeros
from ...core.source_location import fail
from ...core.spec import Device, DType
from ...core.tensor import Tensor
from .. import functional as F
from ..module import Module
from ..parameter import Parameter
from .legacy_overload import LegacyOverload
from .linear import check_size
from .norm import Norm


class GroupNorm(LegacyOverload, Norm):
    """out = (x - mean) / sqrt(var + eps) * weight + bias, with mean and var of each group of channels of each example.

    x: float (N, num_channels, ...). weight, bias: (num_channels,). Wu & He 2018, eq. 1 and 7.
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Device | str | None = None,
        dtype: DType | None = None,
        *,
        bias: bool = True,
    ):
        super().__init__()
        for name, value in (("num_groups", num_groups), ("num_channels", num_channels)):
            check_size("GroupNorm", name, value, 1)
        if num_channels % num_groups:
            what = f"GroupNorm: num_channels is {num_channels}, which num_groups={num_groups} does not divide"
            fail(ShapeError, what, f"a multiple of {num_groups} for num_channels, or another num_groups")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        numbers = lambda f, there: Parameter(f(num_channels, dtype=dtype, device=device)) if there else None
        self.register_parameter("weight", numbers(ones, affine))
        self.register_parameter("bias", numbers(zeros, affine and bias))

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}"


class RMSNorm(Norm):
    """out = x / sqrt(mean of x**2 + eps) * weight, with the mean over the axes of normalized_shape.

    x: float (..., *normalized_shape). eps: by default, the machine epsilon of the dtype. Zhang & Sennrich 2019, eq. 4.
    """

    def __init__(
        self,
        normalized_shape: int | list[int] | tuple[int, ...],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Device | str | None = None,
        dtype: DType | None = None,
    ):
        super().__init__()
        shape = (normalized_shape,) if isinstance(normalized_shape, SupportsIndex) else tuple(normalized_shape)
        self.normalized_shape, self.eps, self.elementwise_affine = shape, eps, elementwise_affine
        weight = Parameter(ones(*shape, dtype=dtype, device=device)) if elementwise_affine else None
        self.register_parameter("weight", weight)

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class RMSLayerNorm(Module):
    """RMSNorm over the last axis, of size hidden_size, with eps 1e-6; the name in OneFlow and T5."""

    def __init__(self, hidden_size: int, eps: float = 1e-6):
        super().__init__()
        check_size("RMSLayerNorm", "hidden_size", hidden_size, 1)
        self.weight, self.variance_epsilon = Parameter(ones(hidden_size)), eps

    def forward(self, hidden_states: Tensor) -> Tensor:
        return F.rms_norm(hidden_states, self.weight.shape, self.weight, self.variance_epsilon)


class LocalResponseNorm(Module):
    """out = x / (k + alpha * mean of x**2 over `size` neighboring channels)**beta.

    x: float (N, C, ...). Channels beyond the first and the last are zeros. Krizhevsky et al. 2012, section 3.3.
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0):
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(LocalResponseNorm):
    """The old name of LocalResponseNorm, for images (N, C, H, W) only."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1):
        super().__init__(size, alpha, beta, k)

    def forward(self, input: Tensor) -> Tensor:
        F.arguments.check_tensor("CrossMapLRN2d", input)
        if input.spec.ndim != 4:
            what = f"CrossMapLRN2d: the input must be (N, C, H, W), got {input.spec.ndim} axes"
            fail(ShapeError, what, "nn.LocalResponseNorm takes signals and volumes too", input=input)
        return super().forward(input)
