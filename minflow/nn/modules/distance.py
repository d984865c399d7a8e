"""Layers of two inputs: CosineSimilarity, PairwiseDistance and Bilinear. Read next: `../functional/distance.py`."""

from __future__ import annotations

import math

from ...core.functions.creation import empty
from ...core.spec import Device, DType
from ...core.tensor import Tensor
from .. import functional as F, init
from ..module import Module
from ..parameter import Parameter
from .linear import check_size


class CosineSimilarity(Module):
    """sum(x1 * x2) / (|x1| * |x2|) along axis dim, where each norm is at least eps."""

    def __init__(self, dim: int = 1, eps: float = 1e-8):
        super().__init__()
        self.dim, self.eps = dim, eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """The norm of order p of x1 - x2 + eps along the last axis."""

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False):
        super().__init__()
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class Bilinear(Module):
    """out[k] = x1 @ weight[k] @ x2 + bias[k].

    x1: float (..., in1_features). x2: float (..., in2_features). weight: (out_features, in1_features, in2_features).
    bias: (out_features,), or None with bias=False. Both are initialized uniform in +-1/sqrt(in1_features).
    """

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Device | str | None = None,
        dtype: DType | None = None,
    ):
        super().__init__()
        check_size("Bilinear", "in1_features", in1_features, 1)
        check_size("Bilinear", "in2_features", in2_features)
        check_size("Bilinear", "out_features", out_features)
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        self.weight = Parameter(empty(out_features, in1_features, in2_features, dtype=dtype, device=device))
        self.bias: Parameter | None
        self.register_parameter("bias", Parameter(empty(out_features, dtype=dtype, device=device)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reinitialize weight and bias."""
        bound = 1 / math.sqrt(self.in1_features)
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        sizes = f"in1_features={self.in1_features}, in2_features={self.in2_features}"
        return f"{sizes}, out_features={self.out_features}, bias={self.bias is not None}"
