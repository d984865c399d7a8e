"""Layers: BatchNorm1d, BatchNorm2d, BatchNorm3d, LayerNorm.

Read next: `../functional/norm.py`; `group_norm.py`, `instance_norm.py`.
"""

from __future__ import annotations

from typing import Any, SupportsIndex

from ...core.base.errors import ShapeError
from ...core.functions.creation import ones, tensor, zeros
from ...core.source_location import fail
from ...core.spec import Device, DType, int64
from ...core.tensor import Tensor
from .. import functional as F, init
from ..module import Module
from ..parameter import Parameter
from .by_axes import ByAxes
from .linear import check_size

INPUT_SHAPES = {2: "(N, C)", 3: "(N, C, L)", 4: "(N, C, H, W)", 5: "(N, C, D, H, W)"}


class Norm(Module):
    """Base of the norms: a weight initialized to 1 and a bias initialized to 0, both optional."""

    def reset_parameters(self) -> None:
        """Set weights to 1 and biases to 0."""
        for name, filled in (("weight", init.ones_), ("bias", init.zeros_)):
            if self._parameters.get(name) is not None:
                filled(self._parameters[name])


class BatchNorm(Norm, ByAxes):
    """out = (x - mean) / sqrt(var + eps) * weight + bias, with mean and var of each channel over all other axes.

    In training mode they come from the batch, and running_mean and running_var move towards them by `momentum` (None:
    their cumulative average); in evaluation mode the running statistics are used. Ioffe & Szegedy 2015, algorithms 1
    and 2.
    """

    _version = 2  # as in PyTorch

    _axes: tuple[int, ...] = (2, 3, 4, 5)

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Device | str | None = None,
        dtype: DType | None = None,
        *,
        bias: bool = True,
    ):
        super().__init__()
        check_size(type(self).__name__, "num_features", num_features, 1)
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        self.register_parameter("weight", Parameter(ones(num_features, dtype=dtype, device=device)) if affine else None)
        shift = Parameter(zeros(num_features, dtype=dtype, device=device)) if affine and bias else None
        self.register_parameter("bias", shift)
        track = track_running_stats
        self.register_buffer("running_mean", zeros(num_features, dtype=dtype, device=device) if track else None)
        self.register_buffer("running_var", ones(num_features, dtype=dtype, device=device) if track else None)
        self.register_buffer("num_batches_tracked", tensor(0, dtype=int64, device=device) if track else None)

    def reset_running_stats(self) -> None:
        """Set the running statistics to their initial values."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1.0)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Set weights to 1, biases to 0, and the running statistics to their initial values."""
        self.reset_running_stats()
        super().reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        self._check_input(input)
        average: float | Tensor = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                average = 1.0 / self.num_batches_tracked.to(input.dtype)
        from_batch = self.training or self.running_mean is None
        keep = not self.training or self.track_running_stats
        return self._normalize(
            input,
            self.running_mean if keep else None,
            self.running_var if keep else None,
            self.weight,
            self.bias,
            from_batch,
            average,
            self.eps,
        )

    def _normalize(self, input: Tensor, *stats: Any) -> Tensor:
        """Return F.batch_norm of these arguments; subclasses override it."""
        return F.batch_norm(input, *stats)

    def _check_input(self, input: Tensor) -> None:
        """Raise ShapeError if the input does not have the axes of this layer."""
        name = type(self).__name__
        F.arguments.check_tensor(name, input)
        shape = input.spec.shape
        self._check_input_dim(input)
        if shape[1] != self.num_features:
            last = shape[-1] == self.num_features and len(shape) > 2
            fail(
                ShapeError,
                f"{name}: the input has {shape[1]} channels (axis 1), num_features is {self.num_features}",
                "x.permute(0, 3, 1, 2): channels come second"
                if last and len(shape) == 4
                else "x.transpose(1, 2): channels come second"
                if last
                else f"nn.{name}({shape[1]})",
                input=input,
            )

    def _check_input_dim(self, input: Tensor) -> None:
        """Raise ShapeError for another number of axes; classes of programs override it."""
        name, shape = type(self).__name__, input.spec.shape
        if len(shape) not in self._axes:
            expected = " or ".join(INPUT_SHAPES[n] for n in self._axes)
            other = {2: "BatchNorm1d", 3: "BatchNorm1d", 4: "BatchNorm2d", 5: "BatchNorm3d"}.get(len(shape))
            hint = (
                f"nn.{other}({shape[1]})" if other else f"x.flatten({max(self._axes) - 1}) keeps axis 1, the channels"
            )
            hint = hint if len(shape) > 1 else f"x.reshape{expected.split(' or ')[0]}: channels are axis 1"
            fail(ShapeError, f"{name}: the input must be {expected}, got {len(shape)} axes", hint, input=input)

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"track_running_stats={self.track_running_stats}"
        )


class BatchNorm1d(BatchNorm, axes=(2, 3)):
    """x: float (N, C) or (N, C, L)."""


class BatchNorm2d(BatchNorm, axes=(4,)):
    """x: float (N, C, H, W)."""


class BatchNorm3d(BatchNorm, axes=(5,)):
    """x: float (N, C, D, H, W)."""


class LayerNorm(Norm):
    """out = (x - mean) / sqrt(var + eps) * weight + bias, with mean and var over the axes of normalized_shape.

    x: float (..., *normalized_shape). weight, bias: normalized_shape. Ba, Kiros & Hinton 2016, eq. 4.
    """

    def __init__(
        self,
        normalized_shape: int | list[int] | tuple[int, ...],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Device | str | None = None,
        dtype: DType | None = None,
    ):
        super().__init__()
        shape = (normalized_shape,) if isinstance(normalized_shape, SupportsIndex) else tuple(normalized_shape)
        self.normalized_shape, self.eps, self.elementwise_affine = shape, eps, elementwise_affine
        has_bias = elementwise_affine and bias
        self.register_parameter(
            "weight", Parameter(ones(*shape, dtype=dtype, device=device)) if elementwise_affine else None
        )
        self.register_parameter("bias", Parameter(zeros(*shape, dtype=dtype, device=device)) if has_bias else None)

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
