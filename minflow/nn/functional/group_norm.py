"""Normalization within an example: by groups of channels, single channels, root mean squares, neighboring channels.

Read next: `norm.py`, `../../core/ops/norm.py`: a group norm is a batch norm whose channels are the groups of an
example.
"""

from __future__ import annotations

import math
from typing import Any

from ...core.base.errors import DTypeError, OutOfRangeError, ShapeError
from ...core.functions.arguments import integer
from ...core.grad.modes import no_grad
from ...core.ops import norm
from ...core.ops.shape import filled
from ...core.source_location import fail
from ...core.spec import finfo, float16, float32
from ...core.tensor import Tensor
from .arguments import check_scalar, check_tensor, same_dtype
from .norm import layer_norm_impl, normalize_with_stats, per_channel


def check_channels(name: str, input: Tensor, **numbers: Tensor | None) -> None:
    """Refuse weights, biases and statistics that do not have one element per channel (axis 1)."""
    check_tensor(name, input)
    if input.spec.ndim < 2:
        what = f"{name}: the input must be (N, C, ...), got {input.spec.ndim} axes"
        fail(ShapeError, what, "x.unsqueeze(0) for one example", input=input)
    channels = input.spec.shape[1]
    for argument, tensor in numbers.items():
        if tensor is not None and tensor.spec.shape != (channels,):
            what = f"{name}: {argument} must be ({channels},), one element for each channel, got {tensor.spec.shape}"
            fail(ShapeError, what, "axis 1 of the input is the channels", input=input, **{argument: tensor})


def check_numbers(name: str, **values: Any) -> None:
    """Refuse values that are not a single number."""
    check_scalar(name, **values)
    for argument, value in values.items():
        if not hasattr(value, "__float__"):
            what = f"{name}: {argument} must be a number, got {value!r}"
            fail(DTypeError, what, f"{argument}=0.1", **{argument: value})


def promote_half(name: str, input: Tensor, *others: Tensor | None) -> list:
    """Convert the tensors to one dtype; float16 becomes float32, since its squares overflow."""
    if input.spec.dtype is float16:
        return [t if t is None else t.to(float32) for t in (input, *others)]
    if others and others[0] is not None:
        input, weight = same_dtype(name, input, others[0])
        return [input, weight, *others[1:]]
    return [input, *others]


def standardize(x: Tensor, eps: float) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Shift and scale rows (R, n) to mean 0 and variance 1; also return the means and variances if n is above 1."""
    rows, n = x.spec.shape
    if n < 2 or not rows:
        return layer_norm_impl(x, (-1,), None, None, eps), None, None
    ones, zeros = (filled(x.spec.replace(shape=(rows,)), v) for v in (1.0, 0.0))
    out, mean, var = norm.batch_norm(x.reshape(1, rows, n), ones, zeros, eps=eps)
    return out.reshape(rows, n), mean, var


def affine(out: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    out = out if weight is None else out * per_channel(weight, out)
    return out if bias is None else out + per_channel(bias, out)


def grouped(x: Tensor, groups: int, weight: Tensor | None, bias: Tensor | None, eps: float) -> Tensor:
    affine = 1 if weight is None else weight, 0 if bias is None else bias
    return norm.group_norm(x, *affine, groups=groups, eps=float(eps))


def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """(input - mean) / sqrt(var + eps) * weight + bias, with mean and biased var of each group of channels.

    input: float (N, C, ...); group i of an example has the channels from i*C/num_groups on. weight, bias: (C,) or None.
    Raises ShapeError if num_groups does not divide C. Wu & He 2018 (arXiv:1803.08494), eq. 1 and 7.
    """
    check_channels("group_norm", input, weight=weight, bias=bias)
    check_numbers("group_norm", eps=eps)
    shape, groups = input.spec.shape, integer(num_groups, "num_groups")
    if groups < 1 or shape[1] % groups:
        what = f"group_norm: {shape[1]} channels (axis 1) cannot be split into {groups} groups"
        fail(ShapeError, what, "a number of groups that divides the channels", input=input)
    if input.spec.size and input.spec.size == groups:
        what = "group_norm: each group of the only example has one element, which has no variance"
        fail(ShapeError, what, "fewer groups", input=input)
    x, weight, bias = promote_half("group_norm", input, weight, bias)
    out = grouped(x, groups, weight, bias, eps)
    return out.to(float16) if input.spec.dtype is float16 else out


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """(input - mean) / sqrt(var + eps) * weight + bias, with mean and var of each channel of each example.

    input: float (N, C, ...). The other tensors: (C,) or None. use_input_stats: mean and var are the input's (var
    biased), and running = (1 - momentum) * running + momentum * their average over the examples (var unbiased); else
    they are the running ones. Raises ShapeError if a channel has only one element. Ulyanov, Vedaldi & Lempitsky 2016,
    eq. 1.
    """
    check_channels("instance_norm", input, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias)
    check_numbers("instance_norm", eps=eps, momentum=momentum)
    if (running_mean is None) != (running_var is None) or (running_mean is None and not use_input_stats):
        what = "instance_norm: running_mean and running_var are both needed if use_input_stats is False"
        fail(ShapeError, what, "both, or neither with use_input_stats=True", input=input)
    shape = input.spec.shape
    n, rows = math.prod(shape[2:]), shape[0] * shape[1]
    if use_input_stats and n == 1:
        what = f"instance_norm: a channel of an input {shape} has one element, which has no variance"
        fail(ShapeError, what, "larger images, or fewer poolings before", input=input)
    x, weight, bias = promote_half("instance_norm", input, weight, bias)
    if not use_input_stats:
        assert running_mean is not None and running_var is not None
        out = normalize_with_stats(x, running_mean.to(x.spec.dtype), running_var.to(x.spec.dtype), weight, bias, eps)
    elif running_mean is None or running_var is None:
        out = grouped(x, max(shape[1], 1), weight, bias, eps)
    else:
        out, mean, var = standardize(x.reshape(rows, n), eps)
        out = affine(out.reshape(shape), weight, bias)
        if mean is not None and var is not None:
            with no_grad():
                pairs = ((running_mean, mean, 1.0), (running_var, var, n / (n - 1)))
                for running, now, factor in pairs:
                    new = now.detach().reshape(shape[:2]).mean(0) * (momentum * factor)
                    running.mul_(1 - momentum).add_(new.to(running.spec.dtype))
    return out.to(float16) if input.spec.dtype is float16 else out


def rms_norm(
    input: Tensor,
    normalized_shape: tuple[int, ...] | list[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    """input / sqrt(mean of input**2 + eps) * weight, with the mean over the last axes, those of normalized_shape.

    input: float (..., *normalized_shape). weight: normalized_shape or None. eps: finfo(dtype).eps if None.
    Zhang & Sennrich 2019 (arXiv:1910.07467), eq. 4.
    """
    check_tensor("rms_norm", input)
    check_numbers("rms_norm", **({} if eps is None else {"eps": eps}))
    shape, have = tuple(normalized_shape), input.spec.shape
    if not shape or have[-len(shape) :] != shape:
        what = f"rms_norm: the input ends with {list(have[-len(shape) :])}, normalized_shape is {list(shape)}"
        fail(ShapeError, what, "normalized_shape=x.shape[-1:] for the last axis", input=input)
    if weight is not None and weight.spec.shape != shape:
        what = f"rms_norm: the weight has shape {list(weight.spec.shape)}, normalized_shape is {list(shape)}"
        fail(ShapeError, what, "a weight of normalized_shape", weight=weight)
    x, weight = promote_half("rms_norm", input, weight)
    if not x.spec.dtype.floating:
        what = f"rms_norm: the input must be floating, got {x.spec.dtype.name}"
        fail(DTypeError, what, "x.float()", input=input)
    eps = finfo(x.spec.dtype).eps if eps is None else eps
    axes = tuple(range(-len(shape), 0))
    return norm.rms_norm(x, 1 if weight is None else weight, axes=axes, eps=float(eps)).to(input.spec.dtype)


def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """input / (k + alpha * mean of input**2 over `size` neighboring channels)**beta.

    input: float (N, C, L) or with more axes. The window has size // 2 channels before and (size - 1) // 2 after, with
    zeros beyond the ends. Krizhevsky, Sutskever & Hinton 2012, section 3.3.
    """
    check_tensor("local_response_norm", input)
    shape, size = input.spec.shape, integer(size, "size")
    check_numbers("local_response_norm", alpha=alpha, beta=beta, k=k)
    if len(shape) < 3:
        what = f"local_response_norm: the input must be (N, C, L) or have more axes, got {len(shape)} axes"
        fail(ShapeError, what, "x.unsqueeze(0) for one example", input=input)
    if size < 1:
        fail(OutOfRangeError, f"local_response_norm: size must be at least 1, got {size}", "size=5", input=input)
    if not input.spec.size:
        return input
    x = promote_half("local_response_norm", input)[0]
    out = norm.local_response_norm(x, size=size, alpha=float(alpha), beta=float(beta), k=float(k))
    return out.to(float16) if input.spec.dtype is float16 else out
