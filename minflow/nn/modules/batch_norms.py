"""Batch norm under other names: SyncBatchNorm on one rank, OneFlow's FusedBatchNorm. Read next: `norm.py`."""

from __future__ import annotations

from typing import Any

from ...core.base.errors import RankError
from ...core.source_location import fail
from ...core.spec import Device, DType
from ...core.tensor import Tensor
from ...distributed.collectives import get_world_size
from .. import functional as F
from ..module import Module
from .norm import BatchNorm, BatchNorm1d, BatchNorm2d, BatchNorm3d


class SyncBatchNorm(BatchNorm):
    __doc__ = f"""Batch norm over the examples of all ranks. On one rank it is BatchNorm.

    x: float (N, C, ...). Raises RankError if it is trained on several ranks of process_group. {BatchNorm.__doc__}"""
    axes = (2, 3, 4, 5)

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

    def forward(self, x: Tensor) -> Tensor:
        if self.training and get_world_size(self.process_group) > 1:
            fail(
                RankError,
                "SyncBatchNorm cannot compute statistics over several ranks yet",
                "BatchNorm2d, with the statistics of each rank; or GroupNorm, which needs none of the batch",
                x=x,
            )
        return super().forward(x)

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
