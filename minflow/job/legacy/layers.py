"""flow.layers: ops with variables, which are created by name in the job being built.

A variable is named `<layer>-<part>`, so layers of the same name in different jobs share variables; two layers with the
same name in one job are an error. Works only inside job functions. Read next: `nn.py`, the ops; `../build.py`, which
creates variables.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

from ...core.base.errors import JobError, ShapeError
from ...core.functions import expand, matmul, mean as average, relu as relu_op, reshape, square
from ...core.functions.creation import full
from ...core.messages.suggestions import missing_names
from ...core.mode import MODE, using
from ...core.ops.norm import batch_norm
from ...core.source_location import fail
from ...core.spec import DType, float16, float32
from ...core.tensor import Tensor
from ...nn.functional.arguments import check_tensor
from ..build_context import building
from ..checks import check_initializer, check_regularizer
from ..scope import namespace
from .initializers import constant_initializer, ones_initializer, xavier_uniform_initializer, zeros_initializer
from .nn import along, axis_of, batch_normalization as normalized_by, bias_add, layer_norm as normalized
from .op_name import described, with_call_errors
from .windows import FORMATS, Sizes, check_rank, conv, is_last, sizes
from .zero_init_check import check_zero_kernel


class Layer:
    """Services of the build for a layer: its full name, its variables, and a scope for its ops."""

    def __init__(self, kind: str, inputs: Any, name: str | None, default: str):
        self.what = f"flow.layers.{kind}"
        self.build = building(self.what)
        check_tensor(self.what, inputs, "inputs")
        if name is not None and not isinstance(name, str):
            fail(JobError, f"{self.what}: name is {name!r}, not a string", f'name="{default.lower()}1"', name=name)
        self.label = default if name is None else name
        self.name = self.build.name(name, default)

    def variable(
        self,
        part: str,
        shape: Sequence[int],
        dtype: DType,
        initializer: Any,
        regularizer: Any = None,
        trainable: bool = True,
        own_name: str | None = None,
        distribute: Any = None,
    ) -> Tensor:
        """The variable `<layer>-<part>`, or own_name prefixed with the namespaces. It must be new in this job."""
        check_initializer(self.what, initializer)
        check_regularizer(self.what, regularizer)
        name = f"{self.name}-{part}" if own_name is None else self.build.name(own_name, part)
        return self.build.variable(
            *(name, tuple(shape), dtype, initializer, regularizer, trainable),
            **{"reuse": False, "what": self.what, "distribute": distribute},
        )

    def scope(self) -> Any:
        """Scope in which views and errors show the ops under the layer's name."""
        mode = MODE.get()
        return using(mode.replace(scope=f"{mode.scope}.{self.label}" if mode.scope else self.label))

    def activated(self, activation: Callable | None, out: Tensor) -> Tensor:
        """activation(out, name="activation"), as in OneFlow; without the name if the function does not take one."""
        if activation is None:
            return out
        if not callable(activation):
            what = f"{self.what}: activation is {activation!r}, which cannot be called"
            fail(JobError, what, "activation=flow.nn.relu, the function itself", activation=activation)
        with namespace(self.label):  # an activation may be a layer itself: "conv1-activation-alpha"
            return activation(out, name="activation") if takes_name(activation) else activation(out)

    def check_floating(self, inputs: Tensor) -> None:
        if not inputs.spec.floating:
            what = f"{self.what}: the input must be floating, got {inputs.spec.dtype.name}"
            fail(JobError, what, "flow.cast(x, flow.float)", inputs=inputs)

    def count(self, argument: str, value: Any) -> int:
        """Check an integer of at least 1."""
        if not hasattr(value, "__index__") or isinstance(value, bool) or value.__index__() < 1:
            what = f"{self.what}: {argument} must be an integer of at least 1, got {value!r}"
            fail(JobError, what, f"{argument}=10")
        return value.__index__()


def takes_name(function: Callable) -> bool:
    """True if the function has an argument `name`. `**options` are ignored: they may be passed on to a function
    without one.
    """
    try:
        return "name" in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


# ---- products ----------------------------------------------------------------------------------------------------


@with_call_errors
def dense(
    inputs: Tensor,
    units: int,
    activation: Callable | None = None,
    use_bias: bool = True,
    kernel_initializer: Any = None,
    bias_initializer: Any = None,
    kernel_regularizer: Any = None,
    bias_regularizer: Any = None,
    trainable: bool = True,
    name: str = "Dense",
    model_distribute: Any = None,
) -> Tensor:
    """activation(inputs @ weight.T + bias), with the variables `<name>-weight` (units, K) and `<name>-bias` (units,).

    inputs: float (N, ..., K).  Returns (N, ..., units).  Both variables are 0 unless an initializer is passed, as in
    OneFlow: a hidden layer of zeros learns nothing. model_distribute: of the weight over ranks, split(0) for the units
    or split(1) for the features. Raises ShapeError for fewer than two axes, JobError for a name that is already used in
    the job.
    """
    layer = Layer("dense", inputs, name, "Dense")
    units, spec = layer.count("units", units), inputs.spec
    if spec.ndim < 2:
        what = f"flow.layers.dense: the input must have at least two axes, (N, K), got {spec.ndim}"
        fail(ShapeError, what, "flow.reshape(x, (1, -1))", inputs=inputs)
    layer.check_floating(inputs)
    features, dtype = spec.shape[-1], spec.dtype
    weight = layer.variable(
        *("weight", (units, features), dtype, kernel_initializer or constant_initializer(0)),
        *(kernel_regularizer, trainable),
        distribute=model_distribute,
    )
    if kernel_initializer is None:
        check_zero_kernel(layer.build, layer.name, weight, inputs)
    with layer.scope():
        flat = inputs if spec.ndim == 2 else reshape(inputs, (math.prod(spec.shape[:-1]), features))
        out = matmul(flat, weight.T)
        if use_bias:
            bias = layer.variable(
                *("bias", (units,), dtype, bias_initializer or constant_initializer(0), bias_regularizer, trainable),
                distribute=model_distribute if getattr(model_distribute, "axis", None) == 0 else None,
            )
            out = bias_add(out, bias)
        out = layer.activated(activation, out)
        return out if spec.ndim == 2 else reshape(out, (*spec.shape[:-1], units))


def convolution(rank: int, doc: str | None = None) -> Callable:
    """The function `layers.conv<rank>d`, for images with `rank` axes. doc: conv2d's by default."""
    kind, default = f"conv{rank}d", f"Conv{rank}d"

    def function(
        inputs: Tensor,
        filters: int,
        kernel_size: Sizes = 1,
        strides: Sizes = 1,
        padding: Any = "VALID",
        data_format: str = FORMATS[rank][0],
        dilation_rate: Sizes | None = None,
        groups: int = 1,
        activation: Callable | None = None,
        use_bias: bool = True,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        trainable: bool = True,
        name: str = default,
        weight_name: str | None = None,
        bias_name: str | None = None,
    ) -> Tensor:
        """activation(conv2d(inputs, weight) + bias), with the variables `<name>-weight` and `<name>-bias` (filters,).

        inputs: float (N, C, H, W), weight (filters, C / groups, KH, KW); with "NHWC" (N, H, W, C) and (filters, KH, KW,
        C), groups 1. The weight is filled by xavier_uniform_initializer, the bias with 0. padding: "VALID"; "SAME" for
        ceil(n / stride) positions, the odd pixel first; "SAME_LOWER", the same; "SAME_UPPER", the odd pixel last; or a
        pair for each of the four axes. weight_name, bias_name: other names for the variables.
        """
        layer = Layer(kind, inputs, name, default)
        what, last = layer.what, is_last(layer.what, data_format, rank)
        check_rank(what, inputs, rank, data_format)
        filters, groups = layer.count("filters", filters), layer.count("groups", groups)
        kernel = sizes(what, "kernel_size", kernel_size, rank)
        channels, dtype = inputs.spec.shape[-1 if last else 1], inputs.spec.dtype
        if groups > 1 and last:
            what = f"{what}: groups={groups} with data_format {data_format}"
            fail(ShapeError, what, "channels first, such as NCHW, for groups")
        if channels % groups or filters % groups:
            hint = f"groups={math.gcd(channels, filters)}, or another divisor of both"
            what = f"{what}: groups={groups} divides {channels} channels into {filters} filters"
            fail(ShapeError, what, hint, inputs=inputs)
        layer.check_floating(inputs)
        shape = (filters, *kernel, channels) if last else (filters, channels // groups, *kernel)
        fill = kernel_initializer or xavier_uniform_initializer(data_format.upper())
        weight = layer.variable("weight", shape, dtype, fill, kernel_regularizer, trainable, weight_name)
        with layer.scope():
            out = conv(what, inputs, weight, strides, padding, data_format, dilation_rate, groups, rank)
            if use_bias:
                fill = bias_initializer or constant_initializer(0)
                bias = layer.variable("bias", (filters,), dtype, fill, bias_regularizer, trainable, bias_name)
                out = bias_add(out, bias, data_format.upper())
            return layer.activated(activation, out)

    return with_call_errors(described(function, kind, doc))


conv2d = convolution(2)
conv1d = convolution(
    1,
    'conv2d along one axis. inputs: float (N, C, W), or (N, W, C) with "NWC"; weight (filters, C / groups, KW).',
)
conv3d = convolution(
    3,
    'conv2d of volumes. inputs: float (N, C, D, H, W), or (N, D, H, W, C) with "NDHWC"; '
    "weight (filters, C / groups, KD, KH, KW).",
)


# ---- norms -------------------------------------------------------------------------------------------------------


@with_call_errors
def batch_normalization(
    inputs: Tensor,
    axis: int = -1,
    momentum: float = 0.99,
    epsilon: float = 0.001,
    center: bool = True,
    scale: bool = True,
    beta_initializer: Any = None,
    gamma_initializer: Any = None,
    beta_regularizer: Any = None,
    gamma_regularizer: Any = None,
    moving_mean_initializer: Any = None,
    moving_variance_initializer: Any = None,
    trainable: bool = True,
    training: bool = True,
    name: str = "BatchNorm",
) -> Tensor:
    """(inputs - mean) / sqrt(variance + epsilon) * gamma + beta for each channel; channels are the last axis by
    default.

    The variables are `<name>-gamma`, `-beta`, `-moving_mean` and `-moving_variance`, each (C,). In a train job mean and
    variance (biased) are the batch's, and moving = momentum * moving + (1 - momentum) * batch's when the step has run;
    with training=False or trainable=False, and in a predict job, they are the moving averages.
    After an NCHW conv2d pass axis=1. Ioffe & Szegedy 2015, algorithms 1 and 2.
    """
    layer = Layer("batch_normalization", inputs, name, "BatchNorm")
    axis = axis_of(layer.what, inputs, axis)
    shape = (inputs.spec.shape[axis],)
    dtype = float32 if inputs.spec.dtype is float16 else inputs.spec.dtype
    layer.check_floating(inputs)
    zeros, ones = zeros_initializer(), ones_initializer()
    beta = gamma = None
    if center:
        beta = layer.variable("beta", shape, dtype, beta_initializer or zeros, beta_regularizer, trainable)
    if scale:
        gamma = layer.variable("gamma", shape, dtype, gamma_initializer or ones, gamma_regularizer, trainable)
    moving_mean = layer.variable("moving_mean", shape, dtype, moving_mean_initializer or zeros, trainable=False)
    moving_variance = layer.variable(
        "moving_variance", shape, dtype, moving_variance_initializer or ones, trainable=False
    )
    with layer.scope():
        x = inputs if inputs.spec.dtype is dtype else inputs.to(dtype)
        if not (training and trainable and layer.build.training):
            out = normalized_by(x, moving_mean, moving_variance, beta, gamma, epsilon, axis)
        else:
            out, mean, variance = normalize_by_batch(x, axis, gamma, beta, epsilon)
            for moving, batch in ((moving_mean, mean), (moving_variance, variance)):
                layer.build.assign(moving, moving * momentum + batch.detach() * (1 - momentum))
        return out if inputs.spec.dtype is dtype else out.to(inputs.spec.dtype)


def normalize_by_batch(
    x: Tensor, axis: int, gamma: Tensor | None, beta: Tensor | None, epsilon: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalize x to mean 0 and variance 1 over all axes but one. Also returns the batch's mean and biased variance,
    (C,).
    """
    dtype, ndim, size = x.spec.dtype, x.spec.ndim, x.spec.shape[axis]
    gamma = full((size,), 1.0, dtype=dtype) if gamma is None else gamma
    beta = full((size,), 0.0, dtype=dtype) if beta is None else beta
    if axis == 1 and x.spec.size > size:
        out, mean, variance = batch_norm(x, gamma, beta, eps=float(epsilon))
        return out, mean, variance
    if axis == ndim - 1 and x.spec.size > size:  # channels last: rows of channels need no transposition
        rows = reshape(x, (x.spec.size // size, size))
        out, mean, variance = batch_norm(rows, gamma, beta, eps=float(epsilon))
        return reshape(out, x.spec.shape), mean, variance
    others = tuple(a for a in range(ndim) if a != axis)
    mean = average(x, others)
    variance = average(square(x - along(mean, axis, ndim)), others)
    return normalized_by(x, mean, variance, beta, gamma, epsilon, axis), mean, variance


@with_call_errors
def batch_normalization_add_relu(inputs: Tensor, addend: Tensor | None = None, **options: Any) -> Tensor:
    """relu(batch_normalization(inputs, ...) + addend): the end of a residual block. options: batch_normalization's."""
    out = batch_normalization(inputs, **options)
    return relu_op(out if addend is None else out + addend)


@with_call_errors
def batch_normalization_relu(inputs: Tensor, **options: Any) -> Tensor:
    """relu(batch_normalization(inputs, ...)). options: batch_normalization's."""
    return relu_op(batch_normalization(inputs, **options))


@with_call_errors
def layer_norm(
    inputs: Tensor,
    center: bool = True,
    scale: bool = True,
    trainable: bool = True,
    begin_norm_axis: int = 1,
    begin_params_axis: int = -1,
    epsilon: float = 1e-5,
    name: str = "LayerNorm",
) -> Tensor:
    """(inputs - mean) / sqrt(var + epsilon) * gamma + beta, mean and var over the axes from begin_norm_axis onwards.

    The variables are `<name>-gamma` and `<name>-beta`, with the shape of the axes from begin_params_axis onwards: by
    default the last axis. Ba, Kiros & Hinton 2016, eq. 4.
    """
    layer = Layer("layer_norm", inputs, name, "LayerNorm")
    shape = inputs.spec.shape[axis_of(layer.what, inputs, begin_params_axis) :]
    dtype = inputs.spec.dtype
    beta = layer.variable("beta", shape, dtype, zeros_initializer(), None, trainable) if center else None
    gamma = layer.variable("gamma", shape, dtype, ones_initializer(), None, trainable) if scale else None
    with layer.scope():
        return normalized(inputs, gamma, beta, begin_norm_axis, begin_params_axis, epsilon)


# ---- others ------------------------------------------------------------------------------------------------------


@with_call_errors
def prelu(
    inputs: Tensor,
    alpha_initializer: Any = None,
    alpha_regularizer: Any = None,
    shared_axes: Sequence[int] | None = None,
    trainable: bool = True,
    name: str = "PRelu",
    model_distribute: Any = None,
) -> Tensor:
    """inputs where above 0, else alpha * inputs. `<name>-alpha` has the shape of one example.

    shared_axes: axes of inputs along which alpha is shared: [2, 3] for one alpha per channel. alpha is 0 unless an
    initializer is passed. model_distribute: of alpha over ranks. He et al. 2015, eq. 1.
    """
    layer = Layer("prelu", inputs, name, "PRelu")
    shared = [axis_of(layer.what, inputs, axis) for axis in shared_axes or ()]
    if 0 in shared or inputs.spec.ndim < 2:
        what = f"{layer.what}: shared_axes {shared_axes} of an input with {inputs.spec.ndim} axes"
        fail(ShapeError, what, "axes from 1 on: the examples share alpha in any case", inputs=inputs)
    shape = [1 if axis in shared else n for axis, n in enumerate(inputs.spec.shape)][1:]
    alpha = layer.variable(
        *("alpha", shape, inputs.spec.dtype, alpha_initializer or constant_initializer(0)),
        *(alpha_regularizer, trainable),
        distribute=model_distribute,
    )
    with layer.scope():
        return relu_op(inputs) - relu_op(-inputs) * alpha


@with_call_errors
def upsample_2d(
    x: Tensor, size: Sizes = (2, 2), data_format: str = "NCHW", interpolation: str = "nearest", name: str = "Upsample2D"
) -> Tensor:
    """Repeat each pixel size[0] x size[1] times. x: (N, C, H, W), or (N, H, W, C) with "NHWC". It has no variables."""
    layer = Layer("upsample_2d", x, name, "Upsample2D")
    last = is_last(layer.what, data_format)
    check_rank(layer.what, x, 2, data_format)
    if interpolation != "nearest":
        what = f"{layer.what}: interpolation is {interpolation!r}"
        fail(JobError, what, 'interpolation="nearest" is the one that is there', x=x)
    height, width = sizes(layer.what, "size", size)
    shape = x.spec.shape
    with layer.scope():
        if last:
            n, h, w, c = shape
            wide = expand(reshape(x, (n, h, 1, w, 1, c)), (n, h, height, w, width, c))
            return reshape(wide, (n, h * height, w * width, c))
        n, c, h, w = shape
        wide = expand(reshape(x, (n, c, h, 1, w, 1)), (n, c, h, height, w, width))
        return reshape(wide, (n, c, h * height, w * width))


__all__ = """batch_normalization batch_normalization_add_relu batch_normalization_relu conv1d conv2d conv3d dense
    layer_norm prelu upsample_2d""".split()
__getattr__ = missing_names("flow.layers", globals())
