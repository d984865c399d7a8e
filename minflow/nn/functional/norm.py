"""Normalization to mean 0 and variance 1, over the batch or within each example.

Read next: `../../core/ops/norm.py`.
"""

from __future__ import annotations

from ...core.base.dtypes import HALF_DTYPES
from ...core.base.errors import DTypeError, OutOfRangeError, ShapeError
from ...core.functionalize import apply_inplace
from ...core.grad.modes import no_grad
from ...core.ops import norm
from ...core.ops.elementwise import mix
from ...core.ops.shape import filled
from ...core.source_location import fail
from ...core.spec import float32
from ...core.tensor import Tensor
from .arguments import check_scalar, check_tensor, same_dtype


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float | Tensor = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """(input - mean) / sqrt(var + eps) * weight + bias for each channel (axis 1).

    input: float (N, C, ...). The other tensors: (C,) or None. training: mean and var are the batch's (var biased), and
    running = (1 - momentum) * running + momentum * batch's (var unbiased); otherwise they are the running ones.
    Raises ShapeError in training if a channel has only one element. Ioffe & Szegedy 2015, algorithms 1 and 2.
    """
    check_tensor("batch_norm", input)
    x = input.spec
    if x.ndim < 2:
        fail(ShapeError, f"batch_norm: the input must be (N, C, ...), got {x.ndim} axes", "x.unsqueeze(0)", input=input)
    check_scalar("batch_norm", eps=eps, momentum=momentum)
    if not eps >= 0 or (training and not eps):
        what = f"batch_norm: eps must be a number above 0, got {eps!r}"
        fail(OutOfRangeError, what, "eps=1e-5: it keeps the root from dividing by 0", input=input)
    if not training and (running_mean is None or running_var is None):
        what = "batch_norm: there are no running statistics, and training is False"
        fail(ShapeError, what, "training=True", input=input)
    if (running_mean is None) != (running_var is None):
        what = "batch_norm: one of running_mean and running_var is given, and not the other"
        fail(ShapeError, what, "both, or neither", running_mean=running_mean, running_var=running_var)
    if not isinstance(momentum, int | float | Tensor):
        what = f"batch_norm: momentum must be a number from 0 to 1, got {momentum!r}"
        fail(DTypeError, what, "momentum=0.1", input=input)
    for name, numbers in dict(running_mean=running_mean, running_var=running_var, weight=weight, bias=bias).items():
        if numbers is not None and numbers.spec.shape != x.shape[1:2]:
            what = f"batch_norm: {name} must be ({x.shape[1]},), one element for each channel, got {numbers.spec.shape}"
            hint = f"nn.BatchNorm1d({x.shape[1]}), BatchNorm2d: axis 1 of the input is the channels"
            fail(ShapeError, what, hint, input=input)
    if x.dtype in HALF_DTYPES:  # the squares would overflow; parameters may be float32, as in mixed precision
        weight, bias = (t if t is None else t.to(float32) for t in (weight, bias))
        return batch_norm(input.to(float32), running_mean, running_var, weight, bias, training, momentum, eps).to(
            x.dtype
        )
    if weight is not None and weight.spec.dtype is not x.dtype:
        input, weight = same_dtype("batch_norm", input, weight)
    if not training:
        assert running_mean is not None and running_var is not None
        if running_mean.spec.dtype in HALF_DTYPES:  # like PyTorch, compute scale and shift in float32
            running_mean, running_var = running_mean.to(float32), running_var.to(float32)
        return normalize_with_stats(input, running_mean, running_var, weight, bias, eps)
    channels = x.shape[1:2]
    each = input.spec.replace(shape=channels)
    weight = filled(each, 1.0) if weight is None else weight
    bias = filled(each, 0.0) if bias is None else bias
    out, mean, var = norm.batch_norm(input, weight, bias, eps=float(eps))
    move_running_stats(running_mean, running_var, mean, var, momentum, x.size // channels[0] if channels[0] else 0)
    return out


def move_running_stats(
    running_mean: Tensor | None,
    running_var: Tensor | None,
    mean: Tensor,
    var: Tensor,
    momentum: float | Tensor,
    count: float,
) -> None:
    """Move running statistics towards those of a batch. var: biased.  count: the elements of a channel."""
    if running_mean is not None and running_var is not None and count:
        with no_grad():
            apply_inplace(mix, running_mean, mean, 1 - momentum, momentum)
            apply_inplace(mix, running_var, var, 1 - momentum, momentum * (count / max(count - 1, 1)))


def normalize_with_stats(
    x: Tensor, mean: Tensor, var: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float
) -> Tensor:
    affine = 1 if weight is None else weight, 0 if bias is None else bias
    return norm.batch_norm_inference(x, mean, var, *affine, eps=float(eps))


def per_channel(values: Tensor, x: Tensor) -> Tensor:
    return values.reshape((1, -1) + (1,) * (x.spec.ndim - 2))


def layer_norm(
    input: Tensor,
    normalized_shape: tuple[int, ...] | list[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """(input - mean) / sqrt(var + eps) * weight + bias, with mean and biased var over the axes of normalized_shape.

    input: float (..., *normalized_shape), whose last axes are normalized. weight, bias: normalized_shape or None. Ba,
    Kiros & Hinton 2016, eq. 4.
    """
    check_tensor("layer_norm", input)
    check_scalar("layer_norm", eps=eps)
    shape, have = tuple(normalized_shape), input.spec.shape
    if not shape or have[-len(shape) :] != shape:
        fail(
            ShapeError,
            f"layer_norm: the input ends with {list(have[-len(shape) :])}, normalized_shape is {list(shape)}",
            f"nn.LayerNorm({have[-1] if len(shape) == 1 or len(have) < 3 else list(have[1:])})"
            if have
            else f"an input of shape (..., {', '.join(map(str, shape))})",
            input=input,
        )
    for name, tensor in (("weight", weight), ("bias", bias)):
        if tensor is not None and tensor.spec.shape != shape:
            what = f"layer_norm: the {name} has shape {list(tensor.spec.shape)}, normalized_shape is {list(shape)}"
            fail(ShapeError, what, f"a {name} of normalized_shape", **{name: tensor})
    axes = tuple(range(-len(shape), 0))
    if input.spec.dtype in HALF_DTYPES:  # the squares would overflow; parameters may be float32, as in mixed precision
        return layer_norm_impl(input.to(float32), axes, weight, bias, eps).to(input.spec.dtype)
    if weight is not None and weight.spec.dtype is not input.spec.dtype:
        input, weight = same_dtype("layer_norm", input, weight)
    return layer_norm_impl(input, axes, weight, bias, eps)


def layer_norm_impl(x: Tensor, axes: tuple[int, ...], weight: Tensor | None, bias: Tensor | None, eps: float) -> Tensor:
    return norm.layer_norm(x, 1 if weight is None else weight, 0 if bias is None else bias, axes=axes, eps=eps)
