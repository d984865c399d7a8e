"""Batch normalization with batch statistics, and one op for its three gradients; layer norm and group norm.

Sources: Ioffe & Szegedy 2015 (arXiv:1502.03167), algorithm 1 and section 3; Ba, Kiros &
Hinton 2016, eq. 4; Wu & He 2018 (arXiv:1803.08494), eq. 1 and 7. The fast kernels are in
`../../platforms/numpy/norm.py`.
"""

from __future__ import annotations

from ..base.errors import ShapeError
from ..kernels import kernel
from ..op import define
from ..sharding import Labels
from ..spec import Spec, default_dtype, promote
from .elementwise import rsqrt
from .examples import case, floats, positive, strided
from .global_tensors import added_up
from .pool import avg_pool2d
from .reduce import mean as average, sum as total
from .rules import is_number, need_floating, need_spec
from .shape import filled, in_float32, pad, reshape


def channel_shape(ndim: int) -> tuple[int, ...]:
    return (1, -1) + (1,) * (ndim - 2)


def other_axes(ndim: int) -> tuple[int, ...]:
    """All axes except the channel axis."""
    return (0, *range(2, ndim))


def batch_spec(x: Spec, weight: Spec, bias: Spec, eps: float):
    need_floating("batch_norm", x)
    channels = x.shape[1] if x.ndim > 1 else 0
    if x.ndim < 2 or weight.shape != (channels,):
        raise ShapeError(
            f"batch_norm: {{x}} has {channels} channels (axis 1), {{weight}} is for "
            f"{weight.shape[0] if weight.ndim else 1}",
            hint="num_features is the number of channels of the input, shape (N, C, ...)",
        )
    if x.size and x.size // channels == 1:
        raise ShapeError(
            "batch_norm: {x} has one element per channel, which has no variance",
            hint="batches of two or more; model.eval() uses the running statistics",
        )
    need_spec("batch_norm", x.replace(shape=weight.shape), weight=weight, bias=bias)
    return x, weight, weight


def batch_grad_spec(grad: Spec, x: Spec, weight: Spec, mean: Spec, var: Spec, eps: float):
    need_spec("batch_norm", x, grad=grad)
    need_spec("batch_norm", weight, mean=mean, var=var)
    return batch_spec(x, weight, weight, eps)


def batch_norm_rule(g, x, weight, out1, out2, eps):
    return batch_norm_grad(g[0], x, weight, out1, out2, eps=eps)


@in_float32
def batch_norm_parts(x, weight, bias, eps):
    """batch_norm by sums, which are those of all ranks if the batch is split."""
    shape, axes = channel_shape(x.spec.ndim), other_axes(x.spec.ndim)
    count = max(x.spec.size // max(x.spec.shape[1], 1), 1)
    mean = added_up(total(x, axis=axes, keepdims=True)) / count
    moved = x - mean
    var = added_up(total(moved * moved, axis=axes, keepdims=False)) / count
    scale = weight * rsqrt(var + eps)
    return moved * scale.reshape(shape) + bias.reshape(shape), mean.flatten(), var


batch_norm = define(
    "batch_norm(x, weight, bias; eps) -> y, mean, var",
    batch_spec,
    {"x, weight, bias": batch_norm_rule},
    flops=6,  # mean 1, variance 3, scale and shift 2
    on_ranks=lambda **_: batch_norm_parts,
    examples=[
        case(floats(4, 3, 2, 2), positive(3), floats(3), eps=1e-5),
        case(floats(5, 3), positive(3), floats(3), eps=0.1),
        case(strided(2, 3, 4), positive(3), floats(3), eps=1e-5),
    ],
    doc="(x - mean) / sqrt(var + eps) * weight + bias per channel (axis 1); also the batch's mean and biased variance.",
    slow_on_numpy=True,
)


@kernel(batch_norm)
def _(xp, x, weight, bias, eps):
    shape, axes = channel_shape(x.ndim), other_axes(x.ndim)
    count = max(x.size // max(x.shape[1], 1), 1)
    mean = x.sum(axes) / count
    moved = x - mean.reshape(shape)
    var = (moved * moved).sum(axes) / count
    return moved * (weight / xp.sqrt(var + eps)).reshape(shape) + bias.reshape(shape), mean, var


def batch_norm_grad_rule(g, grad, x, weight, mean, var, eps):
    """Second derivatives: the gradient of the three gradients, written in ops."""
    shape, axes = (
        channel_shape(x.spec.ndim)[:1] + (x.spec.shape[1],) + (1,) * (x.spec.ndim - 2),
        other_axes(x.spec.ndim),
    )
    wide = lambda v: reshape(v, shape=shape)
    over = lambda v: average(v, axis=axes, keepdims=True)
    inverse = wide(rsqrt(var + eps))
    hat = (x - wide(mean)) * inverse
    gx, gw, gb = g
    count = x.spec.size // x.spec.shape[1]
    to_grad = to_x = to_weight = None
    if gx is not None:
        scaled = inverse * wide(weight)
        along = over(gx * hat)  # the component of gx along hat, per channel
        to_grad = scaled * (gx - over(gx) - hat * along)
        slope = over(grad * hat)
        to_weight = total(to_grad * grad, axis=axes, keepdims=False) / weight
        back = scaled * inverse
        mixed = over(gx * grad) - over(gx) * over(grad) - 3.0 * along * slope
        to_x = -back * (hat * mixed + along * (grad - over(grad)) + slope * (gx - over(gx)))
    if gw is not None:
        first = wide(gw) * hat
        to_grad = first if to_grad is None else to_grad + first
        slope = over(grad * hat)
        second = wide(gw) * inverse * (grad - over(grad) - hat * slope)
        to_x = second if to_x is None else to_x + second
    if gb is not None:
        first = wide(gb) + 0.0 * grad
        to_grad = first if to_grad is None else to_grad + first
    del count
    return to_grad, to_x, to_weight


def channel_labels(grad: Spec, *_: Spec, eps: float) -> list[Labels]:
    image: Labels = (None, "c", *[None] * (grad.ndim - 2))
    return [image, image, *[("c",)] * 3, image, ("c",), ("c",)]


batch_norm_grad = define(
    "batch_norm_grad(grad, x, weight, mean, var; eps) -> gx, gweight, gbias",
    batch_grad_spec,
    {"grad, x, weight": batch_norm_grad_rule},
    flops=9,  # two sums 5, gradient 4
    sharding=channel_labels,
    examples=[case(floats(4, 3, 2, 2), floats(4, 3, 2, 2), positive(3), floats(3), positive(3), eps=1e-5)],
    # mean and var are functions of x: the rule differentiates through them, a numeric check of this op does not
    second_order=False,
    doc="The gradients of batch_norm with respect to x, weight and bias, given the mean and var of x.",
    slow_on_numpy=True,
)


@kernel(batch_norm_grad)
def _(xp, grad, x, weight, mean, var, eps):
    shape, axes = channel_shape(x.ndim), other_axes(x.ndim)
    count = max(x.size // max(x.shape[1], 1), 1)
    inverse = (1 / xp.sqrt(var + eps)).reshape(shape)
    hat = (x - mean.reshape(shape)) * inverse
    gweight, gbias = (grad * hat).sum(axes), grad.sum(axes)
    direct = grad - hat * gweight.reshape(shape) / count - gbias.reshape(shape) / count
    return weight.reshape(shape) * inverse * direct, gweight, gbias


# ---- normalization within an example -----------------------------------------------------------------------------


def layer_norm_spec(x: Spec, weight: Spec | type, bias: Spec | type, axes: tuple[int, ...], eps: float) -> Spec:
    need_floating("layer_norm", x)
    need_last_axes("layer_norm", x, axes)
    need_vectors("layer_norm", x.replace(shape=x.shape[-len(axes) :]), weight=weight, bias=bias)
    return x


def need_last_axes(name: str, x: Spec, axes: tuple[int, ...]) -> None:
    count = len(axes)
    if not 0 < count <= x.ndim or tuple(axes) != tuple(range(-count, 0)):
        raise ShapeError(f"{name}: {{x}} is normalized over its last axes, not over {axes}", hint="axes=(-1,)")


def need_vectors(name: str, like: Spec, **tensors: Spec | type) -> None:
    """Refuse weights and biases of another shape or of a wider dtype; a number is one for all elements."""
    for key, t in tensors.items():
        if isinstance(t, Spec) and promote(like, t) is not like.dtype:
            need_spec(name, like, **{key: t})
        if isinstance(t, Spec):
            need_spec(name, like.shape, **{key: t})


def layer_norm_parts(x, weight, bias, axes, eps):
    centered = x - x.mean(axes, keepdim=True)
    return scale_and_shift(centered * rsqrt((centered * centered).mean(axes, keepdim=True) + eps), weight, bias)


def scale_and_shift(x, weight, bias):
    x = x if is_number(weight, 1) else x * weight
    return x if is_number(bias, 0) else x + bias


layer_norm = define(
    "layer_norm(x, weight, bias; axes, eps)",
    layer_norm_spec,
    decompose=layer_norm_parts,
    dtype_agnostic=False,
    number_inputs=["weight", "bias"],
    unread=["bias"],
    examples=[
        case(floats(4, 3), positive(3), floats(3), axes=(-1,), eps=1e-5),
        case(floats(2, 3, 4), 1, 0, axes=(-2, -1), eps=0.1),
        case(strided(3, 4), positive(4), 0, axes=(-1,), eps=1e-5),
    ],
    doc="(x - mean) / sqrt(var + eps) * weight + bias over the last axes; 1 and 0 for no weight and no bias.",
    slow_on_numpy=True,
)


def group_norm_spec(x: Spec, weight: Spec | type, bias: Spec | type, groups: int, eps: float) -> Spec:
    need_floating("group_norm", x)
    if x.ndim < 2 or groups < 1 or x.shape[1] % groups:
        raise ShapeError(
            f"group_norm: the channels of {{x}} (axis 1) cannot be split into {groups} groups",
            hint="a number of groups that divides the channels",
        )
    need_vectors("group_norm", x.replace(shape=x.shape[1:2]), weight=weight, bias=bias)
    return x


def group_norm_parts(x, weight, bias, groups, eps):
    """The groups of each example are the channels of a batch norm; a single element has no variance there."""
    rows = x.shape[0] * groups
    elements = x.spec.size // rows if rows else 0
    if elements > 1:
        ones, zeros = (filled(x.spec.replace(shape=(rows,)), v) for v in (1.0, 0.0))
        out, _, _ = batch_norm(x.reshape(1, rows, elements), ones, zeros, eps=eps)
    else:
        out = layer_norm(x.reshape(rows, elements), 1, 0, axes=(-1,), eps=eps)
    wide = lambda v: v if isinstance(v, int | float) else v.reshape((1, x.shape[1]) + (1,) * (x.spec.ndim - 2))
    return scale_and_shift(out.reshape(x.shape), wide(weight), wide(bias))


group_norm = define(
    "group_norm(x, weight, bias; groups, eps)",
    group_norm_spec,
    decompose=group_norm_parts,
    dtype_agnostic=False,
    number_inputs=["weight", "bias"],
    unread=["bias"],
    examples=[
        case(floats(2, 4, 3), positive(4), floats(4), groups=2, eps=1e-5),
        case(floats(2, 3, 2, 2), 1, 0, groups=3, eps=0.1),
        case(strided(3, 4, 5), positive(4), 0, groups=1, eps=1e-5),
    ],
    doc="Normalize each group of channels (axis 1) of each example to mean 0 and variance 1; then scale and shift.",
    slow_on_numpy=True,
)


def rms_norm_spec(x: Spec, weight: Spec | type, axes: tuple[int, ...], eps: float) -> Spec:
    need_floating("rms_norm", x)
    need_last_axes("rms_norm", x, axes)
    need_vectors("rms_norm", x.replace(shape=x.shape[-len(axes) :]), weight=weight)
    return x


rms_norm = define(
    "rms_norm(x, weight; axes, eps)",
    rms_norm_spec,
    decompose=lambda x, weight, axes, eps: scale_and_shift(
        x * rsqrt((x * x).mean(axes, keepdim=True) + eps), weight, 0
    ),
    number_inputs=["weight"],
    examples=[
        case(floats(4, 3), positive(3), axes=(-1,), eps=1e-5),
        case(floats(2, 3, 4), 1, axes=(-2, -1), eps=0.1),
        case(strided(3, 4), positive(4), axes=(-1,), eps=1e-5),
        case(floats(4, 3, dtype="float32"), 1, axes=(-1,), eps=1e-5),
    ],
    doc="x / sqrt(mean of x**2 + eps) * weight over the last axes; 1 for no weight. Zhang & Sennrich 2019, eq. 4.",
)


def batch_norm_inference_spec(x: Spec, mean: Spec, var: Spec, weight: Spec | type, bias: Spec | type, eps) -> Spec:
    if x.ndim < 2:
        raise ShapeError(f"batch_norm_inference: {{x}} must be (N, C, ...), got {x.ndim} axes", hint="x.unsqueeze(0)")
    affine = {name: v for name, v in (("weight", weight), ("bias", bias)) if isinstance(v, Spec)}
    need_spec("batch_norm_inference", x.shape[1:2], mean=mean, var=var, **affine)
    dtype = promote(x, mean, var, weight, bias)
    return x.replace(dtype=dtype if dtype.rank > 1 else default_dtype())


def batch_norm_inference_parts(x, mean, var, weight, bias, eps):
    """One multiplication and one addition per element: scale and shift are computed per channel."""
    scale = rsqrt(var + eps)
    scale = scale if is_number(weight, 1) else scale * weight
    shift = -mean * scale if is_number(bias, 0) else bias - mean * scale
    shape = channel_shape(x.spec.ndim)
    return x * scale.reshape(shape) + shift.reshape(shape)


batch_norm_inference = define(
    "batch_norm_inference(x, mean, var, weight, bias; eps)",
    batch_norm_inference_spec,
    decompose=batch_norm_inference_parts,
    domain="complex",
    number_inputs=["weight", "bias"],
    unread=["bias"],
    examples=[
        case(floats(2, 3, 4), floats(3), positive(3), positive(3), floats(3), eps=1e-5),
        case(strided(2, 3, 2, 2), floats(3), positive(3), 1, 0, eps=0.1),
        case(floats(4, 3), floats(3), positive(3), positive(3), 0, eps=1e-5),
    ],
    doc="(x - mean) / sqrt(var + eps) * weight + bias per channel (axis 1); 1 and 0 for no weight and no bias.",
)


def local_response_norm_spec(x: Spec, size: int, alpha: float, beta: float, k: float) -> Spec:
    need_floating("local_response_norm", x)
    if x.ndim < 3 or not x.size or size < 1:
        raise ShapeError(
            f"local_response_norm: {{x}} must be (N, C, L) or have more axes, and not be empty, and size at least 1, "
            f"got {size}",
            hint="size=5",
        )
    return x


def local_response_norm_parts(x, size, alpha, beta, k):
    shape = x.spec.shape
    squares = (x * x).reshape(shape[0], 1, shape[1], x.spec.size // (shape[0] * shape[1]))
    squares = pad(squares, widths=((0, 0), (0, 0), (size // 2, (size - 1) // 2), (0, 0)), value=0)
    windows = dict(kernel_size=(size, 1), stride=(1, 1), padding=(0, 0))
    means = avg_pool2d(squares, **windows, ceil_mode=False, count_include_pad=True, divisor_override=None)
    return x / (means.reshape(shape) * alpha + k) ** beta


local_response_norm = define(
    "local_response_norm(x; size, alpha, beta, k)",
    local_response_norm_spec,
    decompose=local_response_norm_parts,
    attr_kinds={"beta": "real", "k": "real"},
    examples=[
        case(floats(2, 5, 3), size=3, alpha=0.5, beta=0.75, k=1.0),
        case(floats(2, 4, 2, 3), size=4, alpha=1e-4, beta=0.5, k=2.0),
        case(strided(1, 3, 2), size=1, alpha=1.0, beta=0.75, k=1.0),
    ],
    doc="x / (k + alpha * mean of x**2 over `size` neighboring channels)**beta. Krizhevsky et al. 2012, section 3.3.",
)
