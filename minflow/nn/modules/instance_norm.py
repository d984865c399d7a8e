"""Layers: InstanceNorm1d, InstanceNorm2d, InstanceNorm3d. Read next: `../functional/group_norm.py`, `norm.py`."""

from __future__ import annotations

from ...core.base.errors import ShapeError
from ...core.source_location import fail, warn
from ...core.spec import Device, DType
from ...core.tensor import Tensor
from .. import functional as F
from .legacy_overload import LegacyOverload
from .norm import INPUT_SHAPES, BatchNorm


class InstanceNorm(LegacyOverload, BatchNorm):
    """out = (x - mean) / sqrt(var + eps) * weight + bias, with mean and var of each channel of each example.

    With track_running_stats, evaluation mode uses running statistics. Ulyanov, Vedaldi & Lempitsky 2016, eq. 1.
    """

    _axes = (3, 4, 5)

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Device | str | None = None,
        dtype: DType | None = None,
        *,
        bias: bool = True,
    ):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def forward(self, input: Tensor) -> Tensor:
        self._check_input(input)
        single = len(self._axes) == 2 and input.spec.ndim < self._axes[-1]
        by_input = self.training or not self.track_running_stats
        momentum, x = 0.0 if self.momentum is None else self.momentum, input.unsqueeze(0) if single else input
        out = F.instance_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias, by_input, momentum, self.eps
        )
        return out.squeeze(0) if single else out

    def _check_input(self, input: Tensor) -> None:
        """Raise ShapeError if the input does not have the axes of this layer."""
        name = type(self).__name__
        F.arguments.check_tensor(name, input)
        self._check_input_dim(input)
        shape = input.spec.shape
        axis = len(shape) - self._axes[0] if len(self._axes) == 2 else 1
        if shape[axis] != self.num_features:
            what = f"{name}: the input has {shape[axis]} channels (axis {axis}), num_features is {self.num_features}"
            hint = f"nn.{name}({shape[axis]})"
            if self.affine:
                fail(ShapeError, what, hint, input=input)
            warn(what, hint, input=input)

    def _check_input_dim(self, input: Tensor) -> None:
        """Raise ShapeError for another number of axes; classes of programs override it."""
        name, expected, shape = type(self).__name__, INPUT_SHAPES[self._axes[-1]], input.spec.shape
        if len(shape) not in self._axes:
            what = f"{name}: the input must be {expected} or {expected.replace('N, ', '')}, got {len(shape)} axes"
            fail(ShapeError, what, "x.unsqueeze(0) for one example of one channel", input=input)


class InstanceNorm1d(InstanceNorm, axes=(2, 3)):
    """x: float (N, C, L) or (C, L)."""


class InstanceNorm2d(InstanceNorm, axes=(3, 4)):
    """x: float (N, C, H, W) or (C, H, W)."""


class InstanceNorm3d(InstanceNorm, axes=(4, 5)):
    """x: float (N, C, D, H, W) or (C, D, H, W)."""
