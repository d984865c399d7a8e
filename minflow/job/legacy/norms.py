"""GroupNorm, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d of Blobs: legacy functions that share a name with a class.

`flow.nn.InstanceNorm2d(blob)` returns the normalized Blob, with variables `<name>_gamma` and `<name>_beta`. Read next:
`overloads.py`, which chooses between function and class; `layers.py`, the layers with lower-case names.
"""

from __future__ import annotations

from typing import Any

from ...core.base.errors import ShapeError
from ...core.functions import reshape
from ...core.source_location import fail
from ...core.tensor import Tensor
from ...nn import functional as modern
from ...nn.functional.arguments import check_tensor
from ..build_context import building
from .initializers import ones_initializer, zeros_initializer
from .op_name import described

AXES = {"InstanceNorm1d": 3, "InstanceNorm2d": 4, "InstanceNorm3d": 5}


def normalized(kind: str, x: Tensor, groups: int, eps: float, affine: bool, name: str | None) -> Tensor:
    """Normalize each of `groups` parts of an example to mean 0 and variance 1; gamma and beta have one element per
    part.
    """
    build = building(f"flow.nn.{kind}")
    parts = reshape(x, (x.spec.shape[0], groups, -1))
    out = modern.instance_norm(parts, eps=eps)
    if affine:
        if name is None:  # the first unused name in this job: another job shares it by its position
            number = 0
            while build.name(f"{kind}_{number}_gamma", kind) in build.named:
                number += 1
            name = f"{kind}_{number}"
        fill = dict(gamma=ones_initializer(), beta=zeros_initializer())
        gamma, beta = [
            build.variable(
                build.name(f"{name}_{each}", kind), (1, groups, 1), x.spec.dtype, how, what=f"flow.nn.{kind}"
            )
            for each, how in fill.items()
        ]
        out = out * gamma + beta
    return reshape(out, x.spec.shape)


def group_norm(
    x: Tensor, num_groups: int = 32, eps: float = 1e-05, affine: bool = True, name: str | None = None
) -> Tensor:
    """(x - mean) / sqrt(var + eps) * gamma + beta, mean and var (biased) of each group of channels of each example.

    x: float (N, C, ...), C a multiple of num_groups. gamma, beta: (1, num_groups, 1), one element per group, as in
    OneFlow; the modern class has one per channel. Wu & He 2018, eq. 1 and 7.
    """
    check_tensor("nn.GroupNorm", x)
    if x.spec.ndim < 3 or num_groups < 1 or x.spec.shape[1] % num_groups:
        what = f"nn.GroupNorm: num_groups is {num_groups} for shape {list(x.spec.shape)}"
        fail(ShapeError, what, "(N, C, ...) with C a multiple of num_groups", x=x)
    return normalized("GroupNorm", x, num_groups, eps, affine, name)


def instance(kind: str) -> Any:
    def function(x: Tensor, eps: float = 1e-05, affine: bool = True, name: str | None = None) -> Tensor:
        check_tensor(f"nn.{kind}", x)
        if x.spec.ndim != AXES[kind]:
            what = f"nn.{kind}: the input must have {AXES[kind]} axes, got {x.spec.ndim}"
            fail(ShapeError, what, f"flow.nn.InstanceNorm{x.spec.ndim - 2}d, or (N, C, ...)", x=x)
        return normalized(kind, x, x.spec.shape[1], eps, affine, name)

    doc = (
        "(x - mean) / sqrt(var + eps) * gamma + beta, mean and var (biased) of each channel of each example. "
        f"x: float, {AXES[kind]} axes (N, C, ...). gamma, beta: (1, C, 1). Ulyanov, Vedaldi & Lempitsky 2016, eq. 1."
    )
    return described(function, kind, doc)


instance_norm1d = instance("InstanceNorm1d")
instance_norm2d = instance("InstanceNorm2d")
instance_norm3d = instance("InstanceNorm3d")
