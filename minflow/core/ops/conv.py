"""conv2d and its two gradients, computed for one filter position at a time.

The three ops are bilinear in (image, filter, cotangent), and each is the gradient of the others, so any derivative is
one of them again. Source: Dumoulin & Visin 2016 (arXiv:1603.07285), relationships 6 and 15.
Read next: `../../platforms/numpy/conv.py`, the fast kernels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import product
from typing import Any

from ..base.errors import DTypeError, ShapeError
from ..kernels import kernel
from ..op import define
from ..sharding import Labels
from ..spec import Spec
from .examples import case, floats, strided
from .rules import need_floating, need_spec, via_float32

Pair = tuple[int, int]
Sizes = tuple[int, ...]


def positions(
    size: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes = (1, 1), ceil_mode: bool = False
) -> Sizes:
    """The number of positions of a filter or window along each axis.

    In ceil mode the last one may extend past the edge, but must begin inside.
    """
    result = []
    for n, k, s, p, d in zip(size, kernel, stride, padding, dilation):
        reach = n + 2 * p - d * (k - 1) - 1
        m = (-(-reach // s) if ceil_mode else reach // s) + 1
        result.append(m - 1 if ceil_mode and (m - 1) * s >= n + p else m)
    return tuple(result)


def need_window(op: str, kernel_size: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> None:
    """Refuse an empty window, a stride of 0, negative padding, and sizes of more or fewer axes."""
    least = (("kernel_size", kernel_size, 1), ("stride", stride, 1), ("padding", padding, 0), ("dilation", dilation, 1))
    for name, sizes, n in least:
        hint = f"{name}={(max(n, 1),) * len(kernel_size)}"
        if len(sizes) != len(kernel_size):
            raise ShapeError(f"{op}: {name} must have {len(kernel_size)} sizes, got {tuple(sizes)}", hint=hint)
        if min(sizes) < n:
            raise ShapeError(f"{op}: {name} must be at least {n}, got {tuple(sizes)}", hint=hint)


def check_border(op: str, shape: Sizes, out: Sizes, padding: Sizes, itemsize: int) -> None:
    """Refuse padding that takes far more memory than the images on both sides of it (and at least 64 MB)."""
    channels, *size = shape[-len(out) - 1 :]
    grown = [n + 2 * p for n, p in zip(size, padding)]
    if channels * math.prod(grown) * itemsize > 1 << 26 and math.prod(grown) > 256 * (math.prod(size) + math.prod(out)):
        before, after, result = ["x".join(map(str, sizes)) for sizes in (size, grown, out)]
        raise ShapeError(
            f"{op}: images of {before} pixels with padding {tuple(padding)} are {after}, and the result {result}",
            hint="less padding, and a smaller stride",
        )


def conv_spec(x: Spec, weight: Spec, stride: Pair, padding: Pair, dilation: Pair, groups: int) -> Spec:
    need_floating("conv2d", x)
    need_spec("conv2d", None, weight=weight)
    if x.dtype is not weight.dtype:
        raise DTypeError(
            f"conv2d: dtypes differ, {x.dtype.name} of {{x}} and {weight.dtype.name} of {{weight}}",
            hint="{x}.to({weight}.dtype)",
        )
    if x.ndim != 4 or weight.ndim != 4:
        raise ShapeError(
            "conv2d: {x} and {weight} must have four axes, (N, C, H, W) and (F, C, KH, KW)",
            hint="x.unsqueeze(0) for one image",
        )
    if x.shape[1] != weight.shape[1] * groups:
        hint = "x.permute(0, 3, 1, 2): channels come before height and width"
        if x.shape[3] != weight.shape[1] * groups:
            hint = "a layer whose in_channels is the number of channels of its input"
        raise ShapeError(
            f"conv2d: {{x}} has {x.shape[1]} channels (axis 1), {{weight}} takes {weight.shape[1] * groups}"
            + (f" in {groups} groups" if groups > 1 else ""),
            hint=hint,
        )
    need_window("conv2d", weight.shape[2:], stride, padding, dilation)
    if groups < 1 or not weight.shape[0]:
        raise ShapeError(f"conv2d: {weight.shape[0]} filters in {groups} groups", hint="at least one of each")
    if weight.shape[0] % groups:
        raise ShapeError(
            f"conv2d: {weight.shape[0]} filters cannot be split into {groups} groups", hint="a multiple of groups"
        )
    out = positions(x.shape[2:], weight.shape[2:], stride, padding, dilation)
    if min(out) < 1:
        grown = tuple(n + 2 * p for n, p in zip(x.shape[2:], padding))
        reach = tuple(d * (k - 1) + 1 for k, d in zip(weight.shape[2:], dilation))
        raise ShapeError(
            f"conv2d: the filter reaches over {reach[0]}x{reach[1]} pixels, {{x}} has {grown[0]}x{grown[1]} with its "
            f"padding",
            hint="larger images, more padding, or fewer poolings before this layer",
        )
    check_border("conv2d", x.shape, out, padding, x.dtype.itemsize)
    return x.replace(shape=(x.shape[0], weight.shape[0], *out))


def input_grad_spec(grad: Spec, weight: Spec, shape, **geometry) -> Spec:
    x = grad.replace(shape=shape)
    need_spec("conv2d_input_grad", conv_spec(x, weight, **geometry), grad=grad)
    return x


def weight_grad_spec(grad: Spec, x: Spec, shape, **geometry) -> Spec:
    weight = grad.replace(shape=shape)
    need_spec("conv2d_weight_grad", conv_spec(x, weight, **geometry), grad=grad)
    return weight


def conv_labels(x: Spec, groups: int) -> tuple[Labels, Labels, Labels]:
    """Labels of images, filters and their cross-correlation. Channels can be split if they are one group each, or all
    one group.
    """
    alone, channels = groups == x.shape[1] > 1, groups == 1
    filters = "c" if alone else "f" if channels else None
    c = "c" if alone or channels else None
    return ("n", c, None, None), (filters, c if channels else None, None, None), ("n", filters, None, None)


def local_groups(attrs: Mapping, x: Spec, weight: Spec) -> int:
    """The number of groups of the channels that one rank has."""
    return max(x.shape[1], 1) if attrs["groups"] > 1 == weight.shape[1] else attrs["groups"]


GEOMETRY = dict(stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1)
CASES: list[tuple[Any, ...]] = [
    ((2, 3, 6, 5), (4, 3, 3, 2), {}),
    ((2, 3, 5, 5), (4, 3, 1, 1), {}),
    ((2, 4, 6, 6), (6, 2, 3, 3), dict(groups=2, padding=(1, 1), stride=(2, 1))),
    ((2, 4, 6, 6), (4, 1, 3, 3), dict(groups=4, padding=(1, 1), stride=(2, 2))),
    ((2, 3, 7, 7), (6, 1, 3, 3), dict(groups=3, padding=(2, 1), dilation=(2, 1))),
    ((1, 2, 8, 8), (3, 2, 3, 3), dict(dilation=(2, 3), padding=(2, 3), stride=(1, 2))),
    ((0, 3, 5, 5), (2, 3, 3, 3), dict(padding=(1, 1))),
    ((3, 4, 4, 4), (5, 4, 1, 1), dict(stride=(2, 2))),
]


def out_shape(x, w, o):
    g = GEOMETRY | o
    return x[0], w[0], *positions(x[2:], w[2:], g["stride"], g["padding"], g["dilation"])


conv2d = define(
    "conv2d(x, weight; stride, padding, dilation, groups)",
    conv_spec,
    dict(
        x=lambda g, weight, x_spec, stride, padding, dilation, groups: conv2d_input_grad(
            g, weight, shape=x_spec.shape, stride=stride, padding=padding, dilation=dilation, groups=groups
        ),
        weight=lambda g, x, weight_spec, stride, padding, dilation, groups: conv2d_weight_grad(
            g, x, shape=weight_spec.shape, stride=stride, padding=padding, dilation=dilation, groups=groups
        ),
    ),
    autocast="lower",
    macs=lambda out, x, weight, **_: out.size * math.prod(weight.shape[1:]),
    sharding=lambda x, weight, groups, **_: conv_labels(x, groups),
    linear=("x", "weight"),
    local_attrs=lambda attrs, ins, outs: {"groups": local_groups(attrs, *ins)},
    examples=[
        *[case(floats(*x), floats(*w), **(GEOMETRY | o)) for x, w, o in CASES],
        case(strided(1, 2, 4, 4), floats(2, 2, 3, 3), **GEOMETRY),
    ],
    doc="Cross-correlation of images (N, C, H, W) with filters (F, C / groups, KH, KW).",
    slow_on_numpy=True,
)

conv2d_input_grad = define(
    "conv2d_input_grad(grad, weight; shape, stride, padding, dilation, groups)",
    input_grad_spec,
    dict(
        grad=lambda g, weight, stride, padding, dilation, groups: conv2d(
            g, weight, stride=stride, padding=padding, dilation=dilation, groups=groups
        ),
        weight=lambda g, grad, weight_spec, stride, padding, dilation, groups: conv2d_weight_grad(
            grad, g, shape=weight_spec.shape, stride=stride, padding=padding, dilation=dilation, groups=groups
        ),
    ),
    autocast="lower",
    macs=lambda out, grad, weight, **_: grad.size * math.prod(weight.shape[1:]),
    sharding=lambda grad, weight, shape, groups, **_: conv_labels(grad.replace(shape=shape), groups)[::-1],
    linear=("grad", "weight"),
    local_attrs=lambda attrs, ins, outs: {"shape": outs[0].shape, "groups": local_groups(attrs, outs[0], ins[1])},
    examples=[case(floats(*out_shape(x, w, o)), floats(*w), shape=x, **(GEOMETRY | o)) for x, w, o in CASES],
    doc="The gradient of conv2d with respect to its images.",
    slow_on_numpy=True,
)

conv2d_weight_grad = define(
    "conv2d_weight_grad(grad, x; shape, stride, padding, dilation, groups)",
    weight_grad_spec,
    dict(
        grad=lambda g, x, stride, padding, dilation, groups: conv2d(
            x, g, stride=stride, padding=padding, dilation=dilation, groups=groups
        ),
        x=lambda g, grad, x_spec, stride, padding, dilation, groups: conv2d_input_grad(
            grad, g, shape=x_spec.shape, stride=stride, padding=padding, dilation=dilation, groups=groups
        ),
    ),
    macs=lambda out, grad, x, **_: grad.size * math.prod(out.shape[1:]),
    sharding=lambda grad, x, groups, **_: [conv_labels(x, groups)[k] for k in (2, 0, 1)],
    linear=("grad", "x"),
    local_attrs=lambda attrs, ins, outs: {"shape": outs[0].shape, "groups": local_groups(attrs, ins[1], outs[0])},
    examples=[case(floats(*out_shape(x, w, o)), floats(*x), shape=w, **(GEOMETRY | o)) for x, w, o in CASES],
    doc="The gradient of conv2d with respect to its filters.",
    slow_on_numpy=True,
)


# ---- the kernels -------------------------------------------------------------------------------------------------


def pixels_under(x, u: int, v: int, size: Sizes, stride: Sizes, dilation: Sizes):
    """The pixels under filter position (u, v): a view of shape (..., OH, OW)."""
    top, left = u * dilation[0], v * dilation[1]
    return x[
        ...,
        top : top + (size[0] - 1) * stride[0] + 1 : stride[0],
        left : left + (size[1] - 1) * stride[1] + 1 : stride[1],
    ]


def split_groups(x, groups: int):
    """Reshape (N, C, H, W) to (N, groups, C / groups, H, W)."""
    return x.reshape(x.shape[0], groups, x.shape[1] // groups, *x.shape[2:])


def zero_padded(xp, x, padding: Pair):
    """Images with a border of zeros."""
    return xp.pad(x, ((0, 0), (0, 0), *[(p, p) for p in padding]))


@kernel(conv2d)
@via_float32
def _(xp, x, weight, stride, padding, dilation, groups):
    size = positions(x.shape[2:], weight.shape[2:], stride, padding, dilation)
    x = split_groups(zero_padded(xp, x, padding), groups)
    filters = weight.reshape(groups, len(weight) // groups, *weight.shape[1:])
    out = xp.zeros((len(x), groups, filters.shape[1], *size), x.dtype)
    for u, v in product(*map(range, weight.shape[2:])):
        out += xp.einsum("ngchw,gfc->ngfhw", pixels_under(x, u, v, size, stride, dilation), filters[..., u, v])
    return out.reshape(len(x), len(weight), *size)


@kernel(conv2d_input_grad)
@via_float32
def _(xp, grad, weight, shape, stride, padding, dilation, groups):
    (n, c, h, w), (ph, pw) = shape, padding
    filters = weight.reshape(groups, len(weight) // groups, *weight.shape[1:])
    out = xp.zeros((n, c, h + 2 * ph, w + 2 * pw), grad.dtype)
    for u, v in product(*map(range, weight.shape[2:])):
        met = pixels_under(split_groups(out, groups), u, v, grad.shape[2:], stride, dilation)
        met += xp.einsum("ngfhw,gfc->ngchw", split_groups(grad, groups), filters[..., u, v])
    return out[:, :, ph : ph + h, pw : pw + w]


@kernel(conv2d_weight_grad)
@via_float32
def _(xp, grad, x, shape, stride, padding, dilation, groups):
    x = split_groups(zero_padded(xp, x, padding), groups)
    out = xp.empty(shape, grad.dtype)
    for u, v in product(*map(range, shape[2:])):
        met = pixels_under(x, u, v, grad.shape[2:], stride, dilation)
        out[..., u, v] = xp.einsum("ngfhw,ngchw->gfc", split_groups(grad, groups), met).reshape(shape[:2])
    return out
