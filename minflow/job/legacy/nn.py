"""flow.nn of job functions: the lower-case functions, and losses that used to be functions and share a name with a
class.

LEGACY lists the functions that `minflow.nn` gets besides its classes; CAPITALS those that share, or may share, a name
with a class: the function is selected if the first argument is a tensor. All accept eager tensors as well; outside a
job dropout is active. Read next: `windows.py`, `losses.py`, `layers.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.base.errors import OutOfRangeError, ShapeError
from ...core.functions import add, gt, mean, reshape, rsqrt, sigmoid, square
from ...core.functions.arguments import in_float32
from ...core.functions.creation import ones
from ...core.functions.random import dropout as drop
from ...core.ops import activation
from ...core.ops.elementwise import relu as relu_op
from ...core.ops.softmax import log_softmax, softmax as softmax_op
from ...core.random import Generator
from ...core.source_location import fail
from ...core.spec import int8
from ...core.tensor import Tensor
from ...nn import functional as modern
from ...nn.functional import leaky_relu as leaky
from ...nn.functional.arguments import check_tensor
from ..build_context import current
from .op_name import folded, takes_name


def axis_of(what: str, x: Tensor, axis: Any) -> int:
    """Convert an axis to a non-negative one. Raises ShapeError if there is no such axis."""
    check_tensor(what, x)
    ndim = x.spec.ndim
    if not hasattr(axis, "__index__") or not -ndim <= axis < ndim:
        fail(ShapeError, f"{what}: axis is {axis!r}, and the input has {ndim} axes", f"{-ndim} to {ndim - 1}", input=x)
    return axis % ndim


# ---- elementwise -------------------------------------------------------------------------------------------------


@takes_name
def relu(x: Tensor) -> Tensor:
    """max(x, 0)."""
    check_tensor("nn.relu", x)
    return relu_op(x)


@takes_name
def relu6(x: Tensor) -> Tensor:
    """min(max(x, 0), 6)."""
    check_tensor("nn.relu6", x)
    return activation.relu6(x)


@takes_name
def leaky_relu(x: Tensor, alpha: float = 0.2) -> Tensor:
    """x where x > 0, else alpha * x. OneFlow's default slope is 0.2."""
    return leaky(x, alpha)


@folded
def elu(x: Tensor, alpha: float = 1.0) -> Tensor:
    """x where x > 0, else alpha * (exp(x) - 1). Clevert et al. 2016, eq. 15."""
    return modern.elu(x, alpha)


@folded
@in_float32
def swish(x: Tensor, beta: float = 1.0) -> Tensor:
    """x * sigmoid(beta * x). Ramachandran et al. 2017."""
    check_tensor("nn.swish", x)
    return x * sigmoid(x * beta)


@folded
def mish(x: Tensor) -> Tensor:
    """x * tanh(log(1 + exp(x))). Misra 2019."""
    return modern.mish(x)


@folded
def hardsigmoid(x: Tensor) -> Tensor:
    """min(max(x / 6 + 1 / 2, 0), 1)."""
    return modern.hardsigmoid(x)


@folded
def hardswish(x: Tensor) -> Tensor:
    """x * hardsigmoid(x). Howard et al. 2019, section 5.2."""
    return modern.hardswish(x)


@folded
def hardtanh(x: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """min(max(x, min_val), max_val)."""
    return modern.hardtanh(x, min_val, max_val)


# ---- along an axis -----------------------------------------------------------------------------------------------


@takes_name
def softmax(logits: Tensor, axis: int | None = None) -> Tensor:
    """exp(x) / sum(exp(x)) along an axis, the last one if None."""
    return softmax_op(logits, dim=axis_of("nn.softmax", logits, -1 if axis is None else axis))


@takes_name
def logsoftmax(logits: Tensor, axis: int | None = None) -> Tensor:
    """log(softmax(x)) along an axis, the last one if None."""
    return log_softmax(logits, dim=axis_of("nn.logsoftmax", logits, -1 if axis is None else axis))


@takes_name
def bias_add(value: Tensor, bias: Tensor, data_format: str | None = None) -> Tensor:
    """Add a bias to each channel. Channels are axis 1, or the last axis with a data_format "N...C".

    value: (N, C, ...).  bias: (C,).  Raises ShapeError if the sizes differ.
    """
    check_tensor("nn.bias_add", value, "value")
    check_tensor("nn.bias_add", bias, "bias")
    if data_format is None or data_format.startswith("NC"):
        axis = 1
    elif data_format.startswith("N") and data_format.endswith("C"):
        axis = value.spec.ndim - 1
    else:
        what = f"nn.bias_add: data_format is {data_format!r}"
        fail(ShapeError, what, 'data_format="NC..." or "N...C", such as "NHWC"')
    shape = value.spec.shape
    if value.spec.ndim < 2 or bias.spec.shape != shape[axis : axis + 1]:
        hint = 'data_format="NHWC" where channels are the last axis'
        what = f"nn.bias_add: value has {list(shape)} (channels are axis {axis}), bias {list(bias.spec.shape)}"
        fail(ShapeError, what, hint, value=value, bias=bias)
    return add(value, along(bias, axis, len(shape)))


def along(numbers: Tensor, axis: int, ndim: int) -> Tensor:
    """Reshape (C,) to (1, ..., C, ..., 1), which broadcasts along one axis of ndim."""
    return numbers if axis == ndim - 1 else reshape(numbers, (-1,) + (1,) * (ndim - axis - 1))


def axes_of(what: str, x: Tensor, axes: int | Sequence[int]) -> tuple[int, ...]:
    chosen = tuple(axes) if isinstance(axes, list | tuple) else (axes,)
    return tuple(sorted({axis_of(what, x, axis) for axis in chosen}))


@folded
@in_float32
def moments(x: Tensor, axes: int | Sequence[int], shift: Any = None, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """(mean, biased variance) over the axes. The variance is computed from centered values, to avoid cancellation.

    shift: must be None; OneFlow never used it.
    """
    check_tensor("nn.moments", x)
    if shift is not None:
        fail(ShapeError, "nn.moments: shift must be None, since it is never used", "shift=None", input=x)
    reduced = axes_of("nn.moments", x, axes)
    middle = mean(x, reduced, keepdim=True)
    spread = mean(square(x - middle), reduced, keepdim=True)
    if keepdims:
        return middle, spread
    shape = [n for axis, n in enumerate(x.spec.shape) if axis not in reduced]
    return reshape(middle, tuple(shape)), reshape(spread, tuple(shape))


@folded
def fused_bias_add_gelu(value: Tensor, bias: Tensor, data_format: str | None = None) -> Tensor:
    """gelu(bias_add(value, bias, data_format))."""
    return modern.gelu(bias_add(value, bias, data_format))


@folded
def fused_bias_add_dropout(
    value: Tensor, bias: Tensor, data_format: str | None = None, rate: float = 0.5, seed: int | None = None
) -> Tensor:
    """dropout(bias_add(value, bias, data_format), rate)."""
    return dropout(bias_add(value, bias, data_format), rate, None, seed)


@folded
def fused_self_attention_query_mul_key_and_value(x: Tensor, head_size: int, alpha: float = 1.0) -> tuple:
    """(alpha * queries @ keys.T, values), each (B, H, M, ...), of x (M, B, H * 3 * head_size)."""
    parts = reshape(x, (*x.spec.shape[:2], -1, 3, head_size)).permute(3, 1, 2, 0, 4)
    return parts[0] @ parts[1].mT * alpha, parts[2]


@folded
def batch_normalization(
    x: Tensor,
    mean: Tensor,
    variance: Tensor,
    offset: Tensor | None = None,
    scale: Tensor | None = None,
    variance_epsilon: float = 1e-5,
    axis: int = 1,
) -> Tensor:
    """(x - mean) / sqrt(variance + epsilon) * scale + offset, with given statistics.

    mean, variance, offset, scale: (C,), where C is the size of `axis`; or with as many axes as x, broadcasting.
    """
    what = "nn.batch_normalization"
    axis = axis_of(what, x, axis)
    ndim, size = x.spec.ndim, x.spec.shape[axis]
    for argument, value in dict(mean=mean, variance=variance, offset=offset, scale=scale).items():
        if value is not None and value.spec.ndim != ndim and value.spec.shape != (size,):
            fitting = [a for a in range(ndim) if x.spec.shape[a : a + 1] == value.spec.shape]
            hint = f"axis={fitting[0] if fitting else 1}: the axis of the channels"
            wrong = f"{what}: {argument} has shape {list(value.spec.shape)}, axis {axis} of x has {size}"
            fail(ShapeError, wrong, hint, x=x, **{argument: value})

    def spread(value: Tensor) -> Tensor:
        return value if value.spec.ndim == ndim else along(value, axis, ndim)

    factor = rsqrt(variance + variance_epsilon)
    factor = spread(factor) if scale is None else spread(factor) * spread(scale)
    out = (x - spread(mean)) * factor
    return out if offset is None else out + spread(offset)


@folded
@in_float32
def layer_norm(
    inputs: Tensor,
    gamma: Tensor | None = None,
    beta: Tensor | None = None,
    begin_norm_axis: int = 1,
    begin_params_axis: int = -1,
    epsilon: float = 1e-5,
) -> Tensor:
    """(x - mean) / sqrt(var + epsilon) * gamma + beta, mean and var (biased) over axes from begin_norm_axis onwards.

    gamma, beta: the shape of the axes from begin_params_axis onwards. Ba, Kiros & Hinton 2016, eq. 4.
    """
    what = "nn.layer_norm"
    first, params = axis_of(what, inputs, begin_norm_axis), axis_of(what, inputs, begin_params_axis)
    shape = inputs.spec.shape[params:]
    for argument, value in dict(gamma=gamma, beta=beta).items():
        if value is not None and value.spec.shape != shape:
            what = (
                f"{what}: {argument} has shape {list(value.spec.shape)}, begin_params_axis={params} wants {list(shape)}"
            )
            hint = f"begin_params_axis={inputs.spec.ndim - value.spec.ndim}"
            fail(ShapeError, what, hint, inputs=inputs, **{argument: value})
    axes = tuple(range(first, inputs.spec.ndim))
    centered = inputs - mean(inputs, axes, keepdim=True)
    out = centered * rsqrt(mean(square(centered), axes, keepdim=True) + epsilon)
    out = out if gamma is None else out * gamma
    return out if beta is None else out + beta


# ---- random ------------------------------------------------------------------------------------------------------


@takes_name
def dropout(x: Tensor, rate: float, noise_shape: Sequence[int] | None = None, seed: int | None = None) -> Tensor:
    """0 with probability rate, else x / (1 - rate). Returns x itself in a predict job and for rate 0.

    noise_shape: shape of the random mask, which broadcasts to x: (N, C, 1, 1) drops whole channels. seed: use a
    separate generator with this seed. Raises OutOfRangeError unless 0 <= rate < 1. Srivastava et al. 2014.
    """
    check_tensor("nn.modules.dropout", x)
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate < 1:
        what = f"nn.dropout: rate must be in [0, 1), got {rate!r}"
        fail(OutOfRangeError, what, "rate=0.5", input=x)
    build = current()
    if rate == 0 or (build is not None and not build.training):
        return x
    generator = None if seed is None else Generator(seed)
    if noise_shape is None:
        return drop(x, float(rate), generator=generator)
    return x * noise(x, float(rate), tuple(noise_shape), generator)


def noise(like: Tensor, rate: float, shape: tuple[int, ...], generator: Generator | None) -> Tensor:
    """0 with probability rate, else 1 / (1 - rate), of a shape that broadcasts to `like`."""
    have = like.spec.shape
    if len(shape) > len(have) or any(n not in (1, m) for n, m in zip(shape[::-1], have[::-1])):
        hint = f"{(*have[:2], *[1] * (len(have) - 2))}: 1 along axes that share one value"
        fail(ShapeError, f"nn.dropout: noise_shape {shape} does not broadcast to {have}", hint, input=like)
    return drop(ones(shape, dtype=like.spec.dtype), rate, generator=generator)


@takes_name
def random_mask_like(
    like: Tensor, rate: float, seed: int | None = None, noise_shape: Sequence[int] | None = None
) -> Tensor:
    """int8 of `like`'s shape (or noise_shape): 0 with probability rate, else 1, also in predict jobs."""
    check_tensor("nn.random_mask_like", like)
    if not 0 <= rate < 1:
        fail(OutOfRangeError, f"nn.random_mask_like: rate must be in [0, 1), got {rate!r}", "rate=0.5", like=like)
    shape = tuple(like.spec.shape if noise_shape is None else noise_shape)
    drawn = drop(ones(shape), float(rate), generator=None if seed is None else Generator(seed)) if rate else ones(shape)
    return gt(drawn, 0).to(int8)
