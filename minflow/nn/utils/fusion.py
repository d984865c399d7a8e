"""Fold batch norm into the layer before it, for evaluation; create layers whose parameters will be overwritten."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

from ...core.base.errors import ModuleError
from ...core.functions import rsqrt
from ...core.functions.creation import ones_like, zeros_like
from ...core.source_location import fail
from ...core.tensor import Tensor
from ..module import Module
from ..parameter import Parameter

Layer = TypeVar("Layer", bound=Module)


def folded(
    weight: Tensor,
    bias: Tensor | None,
    mean: Tensor,
    var: Tensor,
    eps: float,
    scale: Tensor | None,
    shift: Tensor | None,
    axis: int = 0,
) -> tuple[Parameter, Parameter]:
    bias, scale = zeros_like(mean) if bias is None else bias, ones_like(mean) if scale is None else scale
    shift = zeros_like(mean) if shift is None else shift
    factor = scale * rsqrt(var + eps)
    along = [1] * weight.spec.ndim
    along[axis] = -1
    new = weight * factor.to(weight.dtype).reshape(*along), ((bias - mean) * factor + shift).to(bias.dtype)
    return (
        Parameter(new[0].detach(), requires_grad=weight.requires_grad),
        Parameter(new[1].detach(), requires_grad=bias.requires_grad),
    )


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """(weight, bias) of a convolution that equals a convolution and the batch norm after it in evaluation.

    bn_rm, bn_rv: the running mean and variance; bn_w, bn_b: weight and bias of the batch norm, or None.
    """
    return folded(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, int(transpose))


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None = None,
    bn_b: Tensor | None = None,
) -> tuple[Parameter, Parameter]:
    """(weight, bias) of a linear layer that equals a linear layer and the batch norm after it in evaluation."""
    return folded(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)


def fuse_conv_bn_eval(conv: Layer, bn: Any, transpose: bool = False) -> Layer:
    """A convolution that equals `conv` and the batch norm `bn` after it. Both must be in evaluation mode."""
    return fused("fuse_conv_bn_eval", conv, bn, int(transpose))


def fuse_linear_bn_eval(linear: Layer, bn: Any) -> Layer:
    """A linear layer that equals `linear` and the batch norm `bn` after it. Both must be in evaluation mode."""
    if bn.num_features != linear.out_features and bn.num_features != 1:
        what = f"fuse_linear_bn_eval: {linear.out_features} outputs, {bn.num_features} features of the batch norm"
        fail(ModuleError, what, "the batch norm that follows this layer")
    return fused("fuse_linear_bn_eval", linear, bn, 0)


def fused(name: str, layer: Layer, bn: Any, axis: int) -> Layer:
    if layer.training or bn.training:
        fail(ModuleError, f"{name}: both must be in evaluation mode", "layer.eval() and bn.eval() first")
    if bn.running_mean is None or bn.running_var is None:
        fail(ModuleError, f"{name}: the batch norm has no running statistics", "track_running_stats=True")
    new: Any = copy.deepcopy(layer)
    numbers = (bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias)
    new.weight, new.bias = folded(new.weight, new.bias, *numbers, axis=axis)
    return new


def skip_init(module_cls: type[Module], *args: Any, **kwargs: Any) -> Any:
    """Create `module_cls(*args, **kwargs)`, whose parameters will be overwritten; here they are initialized anyway."""
    if not (isinstance(module_cls, type) and issubclass(module_cls, Module)):
        fail(ModuleError, f"skip_init: {module_cls!r} is not a module class", "skip_init(nn.Linear, 3, 2)")
    return module_cls(*args, **kwargs)
