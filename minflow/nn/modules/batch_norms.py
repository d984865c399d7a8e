"""Other batch norms: SyncBatchNorm, over several ranks, and OneFlow's FusedBatchNorm. Read next: `norm.py`."""

from __future__ import annotations

from typing import Any

from ...core.base.dtypes import HALF_DTYPES
from ...core.base.errors import GraphError, ShapeError
from ...core.functions.creation import full
from ...core.functions.shape import cat
from ...core.grad.function import Function
from ...core.source_location import fail
from ...core.spec import Device, DType, float32
from ...core.tensor import Tensor
from ...distributed.collectives import all_reduce, member
from .. import functional as F
from ..functional.norm import move_running_stats, per_channel
from ..module import Module
from .norm import BatchNorm, BatchNorm1d, BatchNorm2d, BatchNorm3d


class SumOverRanks(Function):
    """The sum of a tensor over the ranks of a group. Its gradient is the sum of the gradients that all ranks have."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Any) -> Tensor:
        ctx.group, out = group, x.clone()
        all_reduce(out, group=group)
        return out

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple:
        return SumOverRanks.apply(g, ctx.group), None


class SyncBatchNorm(BatchNorm):
    __doc__ = f"""Batch norm whose mean and var, in training mode, are those of the batches of all ranks together.

    x: float (N, C, ...); N may differ between ranks. process_group: the ranks, by default all. All of them call forward
    and backward. On one rank, and in evaluation mode, it is BatchNorm. {BatchNorm.__doc__}"""
    _axes = (2, 3, 4, 5)

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Device | str | None = None,
        dtype: DType | None = None,
        *,
        bias: bool = True,
    ):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _normalize(self, input: Tensor, *stats: Any) -> Tensor:
        if not self.training or input.is_global or member(self.process_group, "SyncBatchNorm").size == 1:
            return super()._normalize(input, *stats)
        if input.array is None:
            fail(
                GraphError,
                "SyncBatchNorm: a graph cannot compute statistics over several ranks yet",
                "eager code; or BatchNorm2d, with the statistics of each rank",
                input=input,
            )
        return self._normalize_over_ranks(input, *stats)

    def _normalize_over_ranks(
        self,
        input: Tensor,
        running_mean: Tensor | None,
        running_var: Tensor | None,
        weight: Tensor | None,
        bias: Tensor | None,
        from_batch: bool,
        momentum: float | Tensor,
        eps: float,
    ) -> Tensor:
        """F.batch_norm of the batches of all ranks, concatenated along axis 0: the part of this rank.

        The squares are summed about the mean of all ranks, since a difference of large sums would lose digits.
        """
        x = input.to(float32) if input.dtype in HALF_DTYPES else input
        axes = (0, *range(2, x.ndim))
        counted = cat([x.sum(axes), full((1,), float(x.numel() // x.shape[1]), dtype=x.dtype)])
        totals = SumOverRanks.apply(counted, self.process_group)
        count = totals[-1].item()
        if count == 1:
            what = f"SyncBatchNorm: each channel has one element on all ranks together, {list(input.shape)} here"
            fail(ShapeError, what, "model.eval(); or a larger batch", input=input)
        mean = totals[:-1] / count
        centered = x - per_channel(mean, x)
        var = SumOverRanks.apply(centered.square().sum(axes), self.process_group) / count
        move_running_stats(running_mean, running_var, mean, var, momentum, count)
        scale = (var + eps).rsqrt()
        out = centered * per_channel(scale if weight is None else scale * weight, x)
        out = out if bias is None else out + per_channel(bias, x)
        return out.to(input.dtype) if input.dtype in HALF_DTYPES else out

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """Replace each BatchNorm of the module by a SyncBatchNorm with the same tensors and state."""
        if isinstance(module, BatchNorm) and not isinstance(module, cls):
            options = module.eps, module.momentum, module.affine, module.track_running_stats
            new = cls(module.num_features, *options, process_group)
            for name, tensor in module._parameters.items():
                new.register_parameter(name, tensor)
            for name, tensor in module._buffers.items():
                new.register_buffer(name, tensor)
            return new.train(module.training)
        for name, child in list(module.named_children()):
            module.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return module


class FusedBatchNorm(BatchNorm):
    """relu(batch norm(x) + addend): OneFlow's layer for the end of a residual block; addend is None or like x."""

    def forward(self, x: Tensor, addend: Tensor | None = None) -> Tensor:
        out = super().forward(x)
        return F.relu(out if addend is None else out + addend)


class FusedBatchNorm1d(FusedBatchNorm, BatchNorm1d, axes=(2, 3)):
    """x: float (N, C) or (N, C, L)."""


class FusedBatchNorm2d(FusedBatchNorm, BatchNorm2d, axes=(4,)):
    """x: float (N, C, H, W)."""


class FusedBatchNorm3d(FusedBatchNorm, BatchNorm3d, axes=(5,)):
    """x: float (N, C, D, H, W)."""
