"""Convolutions of signals and volumes, and transposed convolutions, as composites of conv2d and its gradient.

A signal is an image of one row. For a volume, the depth of the filter becomes channels (im2col along the depth), so
that one conv2d sums over it. A transposed convolution maps the output gradient of a convolution to its input gradient.
Source: Dumoulin & Visin 2016 (arXiv:1603.07285), chapter 4. Read next: `conv.py`, `columns.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..base.errors import DTypeError, ShapeError
from ..op import Op, define, parse_signature
from ..spec import Spec, promote
from .columns import col2im, im2col
from .conv import check_border, conv2d, conv2d_input_grad, need_window, positions
from .elementwise import add
from .examples import Case, case, floats, strided
from .rules import is_number, need_spec
from .shape import pad, reshape

AXES = {1: "L", 2: "H, W", 3: "D, H, W"}
Sizes = tuple[int, ...]


def check_filters(name: str, n: int, x: Spec, weight: Spec, bias: Spec | type, groups: int, transposed: bool) -> None:
    """Refuse an input, filters and bias that do not match. n: number of spatial axes.

    Filters are (F, C / groups, ...); those of a transposed convolution are (C, F / groups, ...).
    """
    need_spec(name, None, input=x, weight=weight)
    axes, channel_axis = AXES[n], x.ndim - n - 1
    first, second = ("C", "F / groups") if transposed else ("F", "C / groups")
    if weight.ndim != n + 2:
        kernel = "K" + axes.replace(", ", ", K")
        what = f"{name}: {{weight}} must be ({first}, {second}, {kernel}), got {weight.ndim} axes"
        raise ShapeError(what, hint=f"filters with {n + 2} axes")
    if not x.dtype.floating:
        raise DTypeError(f"{name}: the input must be floating, got {x.dtype.name}", hint="x.float()")
    if weight.dtype is not x.dtype:
        what = f"{name}: dtypes differ, {x.dtype.name} of {{input}} and {weight.dtype.name} of {{weight}}"
        raise DTypeError(what, hint="{input}.to({weight}.dtype)")
    if x.ndim not in (n + 1, n + 2):
        what = f"{name}: the input must be (N, C, {axes}) or (C, {axes}), got {x.ndim} axes"
        hint = f"x.flatten(0, {-n - 2}) makes one axis of examples" if x.ndim > n + 2 else f"x.reshape(N, C, {axes})"
        raise ShapeError(what, hint=hint)
    if groups < 1 or not weight.shape[0] or weight.shape[0] % groups:
        kind = "channels" if transposed else "filters"
        what = f"{name}: {weight.shape[0]} {kind} cannot be split into {groups} groups"
        raise ShapeError(what, hint="a multiple of groups")
    expected = weight.shape[0] if transposed else weight.shape[1] * groups
    if x.shape[channel_axis] != expected:
        have = f"{x.shape[channel_axis]} channels (axis {channel_axis})"
        hint = f"a layer whose in_channels is {x.shape[channel_axis]}"
        if x.shape[-1] == expected and channel_axis:
            hint = "x.movedim(-1, 1): channels come second, here they are last"
        raise ShapeError(f"{name}: the input has {have}, {{weight}} takes {expected}", hint=hint)
    filters = weight.shape[1] * groups if transposed else weight.shape[0]
    if isinstance(bias, Spec) and bias.shape != (filters,):
        what = f"{name}: the bias must be ({filters},), one element for each filter, got {bias.shape}"
        raise ShapeError(what, hint=f"({filters},)")


def result_spec(x: Spec, bias: Spec | type, n: int, filters: int, size: Sizes) -> Spec:
    dtype = promote(x, bias) if isinstance(bias, Spec) else x.dtype
    return x.replace(shape=(*x.shape[: -n - 1], filters, *size), dtype=dtype)


def batched(x: Any, n: int) -> Any:
    """The input as a batch of images or volumes; a signal is an image of one row."""
    shape = x.spec.shape
    wanted = (*(shape[:-n] if len(shape) == n + 2 else (1, *shape[:-n])), *(1,) * (n == 1), *shape[-n:])
    return x if wanted == shape else reshape(x, shape=wanted)


def rows(weight: Any) -> Any:
    """Filters of signals as filters of images of one row."""
    a, b, k = weight.spec.shape
    return reshape(weight, shape=(a, b, 1, k))


def finished(out: Any, bias: Any, x: Any, n: int) -> Any:
    """Add the bias of each filter, and remove the axes that the input does not have."""
    if not isinstance(bias, int | float):
        bias = reshape(bias, shape=(1, bias.spec.size) + (1,) * (out.spec.ndim - 2))
    out = out if is_number(bias, 0) else add(out, bias)
    shape = out.spec.shape
    wanted = (*(shape[:2] if x.spec.ndim == n + 2 else shape[1:2]), *shape[-n:])
    out = out.contiguous() if n == 3 else out
    return out if wanted == shape else reshape(out, shape=wanted)


def example(x: Any, weight: Any, bias: Any, groups: int = 1, **attrs: int | Sizes) -> Case:
    """An example of a convolution. attrs: sizes along all axes, or along each."""
    axes = len(weight.shape) - 2
    every = dict(stride=1, padding=0, dilation=1) | attrs
    sizes = {name: size if isinstance(size, tuple) else (size,) * axes for name, size in every.items()}
    return case(x, weight, bias, **sizes, groups=groups)


def convolution(signature: str, infer: Callable, decompose: Callable, examples: list[Case], doc: str) -> Op:
    """A convolution with a bias for each filter, or 0."""
    return define(
        signature,
        infer,
        decompose=decompose,
        number_inputs=["bias"],
        unread=["bias"],
        autocast="lower",
        attr_kinds={name: "sizes" for name in parse_signature(signature)[2] if name != "groups"},
        module=__name__,
        examples=examples,
        doc=doc,
    )


# ---- cross-correlation -------------------------------------------------------------------------------------------


def conv_rule(name: str, n: int) -> Callable:
    """The shape rule of a cross-correlation over n axes."""

    def rule(input: Spec, weight: Spec, bias: Spec | type, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int):
        check_filters(name, n, input, weight, bias, groups, transposed=False)
        size, kernel = input.shape[-n:], weight.shape[2:]
        reach = [d * (k - 1) + 1 for d, k in zip(dilation, kernel)]
        room = [m + 2 * p for m, p in zip(size, padding)]
        if any(r > m or not k for r, m, k in zip(reach, room, kernel)):
            what = f"{name}: the dilated filter has size {reach}, the padded input {room}"
            raise ShapeError(what, hint="a longer input, more padding, or fewer poolings before")
        need_window(name, kernel, stride, padding, dilation)
        out = positions(size, kernel, stride, padding, dilation)
        check_border(name, input.shape, out, padding, input.dtype.itemsize)
        return result_spec(input, bias, n, weight.shape[0], out)

    return rule


def conv1d_parts(input, weight, bias, stride, padding, dilation, groups):
    attrs = dict(stride=(1, *stride), padding=(0, *padding), dilation=(1, *dilation), groups=groups)
    return finished(conv2d(batched(input, 1), rows(weight), **attrs), bias, input, 1)


def conv3d_parts(input, weight, bias, stride, padding, dilation, groups):
    x = batched(input, 3)
    (n, c, d, h, w), (f, per_group, depth, kh, kw) = x.spec.shape, weight.spec.shape
    layers = im2col(
        x.reshape(n, c, d, h * w),
        kernel_size=(depth, 1),
        stride=(stride[0], 1),
        padding=(padding[0], 0),
        dilation=(dilation[0], 1),
    )
    size = layers.spec.shape[2] // (h * w)
    images = layers.reshape(n, c * depth, size, h, w).transpose(1, 2).reshape(n * size, c * depth, h, w)
    filters = weight.reshape(f, per_group * depth, kh, kw)
    out = conv2d(images, filters, stride=stride[1:], padding=padding[1:], dilation=dilation[1:], groups=groups)
    return finished(out.reshape(n, size, *out.spec.shape[1:]).transpose(1, 2), bias, input, 3)


conv1d = convolution(
    "conv1d(input, weight, bias; stride, padding, dilation, groups)",
    conv_rule("conv1d", 1),
    conv1d_parts,
    [
        example(floats(2, 3, 7), floats(4, 3, 3), floats(4), padding=1),
        example(floats(2, 4, 9), floats(6, 2, 2), 0, stride=2, padding=2, dilation=3, groups=2),
        example(strided(3, 5), floats(2, 3, 2), floats(2)),
        example(floats(0, 2, 5), floats(3, 2, 3), 0),
    ],
    "Cross-correlation of signals (N, C, L) or (C, L) with filters (F, C / groups, K), plus the bias of each filter.",
)
conv3d = convolution(
    "conv3d(input, weight, bias; stride, padding, dilation, groups)",
    conv_rule("conv3d", 3),
    conv3d_parts,
    [
        example(floats(2, 2, 3, 4, 3), floats(2, 2, 2, 3, 1), floats(2), stride=(1, 2, 1), padding=(1, 1, 0)),
        example(floats(2, 2, 3, 3, 3), floats(4, 1, 2, 2, 2), 0, stride=(2, 1, 1), dilation=(2, 1, 1), groups=2),
        example(strided(2, 3, 2, 2), floats(1, 2, 2, 2, 2), 0, padding=(0, 0, 1)),
    ],
    "Cross-correlation of volumes (N, C, D, H, W) or (C, D, H, W) with filters (F, C / groups, KD, KH, KW), plus the "
    "bias of each filter.",
)


# ---- transposed --------------------------------------------------------------------------------------------------


def transposed_size(
    size: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, output_padding: Sizes, dilation: Sizes
) -> Sizes:
    """The size of the result of a transposed convolution."""
    each = zip(size, kernel, stride, padding, output_padding, dilation)
    return tuple([(m - 1) * s - 2 * p + d * (k - 1) + extra + 1 for m, k, s, p, extra, d in each])


def transposed_rule(name: str, n: int) -> Callable:
    """The shape rule of a transposed convolution over n axes."""

    def rule(
        input: Spec,
        weight: Spec,
        bias: Spec | type,
        stride: Sizes,
        padding: Sizes,
        output_padding: Sizes,
        dilation: Sizes,
        groups: int,
    ):
        check_filters(name, n, input, weight, bias, groups, transposed=True)
        size, kernel, more = input.shape[-n:], weight.shape[2:], output_padding
        if len(more) != n or any(not 0 <= extra < max(s, d) for extra, s, d in zip(more, stride, dilation)):
            what = f"{name}: output_padding {more} is not below the stride {stride} or the dilation {dilation}"
            raise ShapeError(what, hint="less output_padding: it selects one of the sizes that the stride allows")
        out = transposed_size(size, kernel, stride, padding, more, dilation)
        if min(out, default=0) < 1 or not all(kernel) or not all(size):
            what = f"{name}: the result would have the size {out}"
            raise ShapeError(what, hint="a larger input or kernel, or less padding")
        need_window(name, kernel, stride, padding, dilation)
        return result_spec(input, bias, n, weight.shape[1] * groups, out)

    return rule


def transposed_parts(input, weight, bias, stride, padding, output_padding, dilation, groups):
    n, x = weight.spec.ndim - 2, batched(input, weight.spec.ndim - 2)
    out = transposed_size(x.spec.shape[-n:], weight.spec.shape[2:], stride, padding, output_padding, dilation)
    strides = [extra // s for extra, s in zip(output_padding, stride)]
    if any(strides):  # whole strides of output_padding: append zeros to the input
        x = pad(x, widths=(*((0, 0),) * (x.spec.ndim - n), *[(0, extra) for extra in strides]), value=0)
    if n == 3:
        return finished(transposed_volumes(x, weight, out, stride, padding, dilation, groups), bias, input, n)
    ones, zeros = (1,) * (2 - n), (0,) * (2 - n)
    y = conv2d_input_grad(
        x,
        weight if n == 2 else rows(weight),
        shape=(x.spec.shape[0], weight.spec.shape[1] * groups, *ones, *out),
        stride=(*ones, *stride),
        padding=(*zeros, *padding),
        dilation=(*ones, *dilation),
        groups=groups,
    )
    return finished(y, bias, input, n)


def transposed_volumes(x, weight, out: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int):
    """Apply each depth slice of the filter to each depth slice of the input; col2im sums the images over the depth."""
    (n, c, depth, h, w), (_, per_group, kd, kh, kw) = x.spec.shape, weight.spec.shape
    filters, pixels = per_group * groups, out[1] * out[2]
    images = conv2d_input_grad(
        x.transpose(1, 2).reshape(n * depth, c, h, w),
        weight.reshape(c, per_group * kd, kh, kw),
        shape=(n * depth, filters * kd, *out[1:]),
        stride=stride[1:],
        padding=padding[1:],
        dilation=dilation[1:],
        groups=groups,
    )
    columns = images.reshape(n, depth, filters * kd, pixels).transpose(1, 2).reshape(n, filters * kd, depth * pixels)
    y = col2im(
        columns,
        shape=(n, filters, out[0], pixels),
        kernel_size=(kd, 1),
        stride=(stride[0], 1),
        padding=(padding[0], 0),
        dilation=(dilation[0], 1),
    )
    return y.reshape(n, filters, *out)


def transposed_convolution(n: int, *examples: Case) -> Op:
    """The transposed convolution over n axes."""
    name, axes = f"conv_transpose{n}d", AXES[n]
    return convolution(
        f"{name}(input, weight, bias; stride, padding, output_padding, dilation, groups)",
        transposed_rule(name, n),
        transposed_parts,
        [*examples],
        f"The input gradient of a convolution, for (N, C, {axes}) or (C, {axes}) and filters "
        f"(C, F / groups, K{axes.replace(', ', ', K')}), plus the bias of each filter.",
    )


conv_transpose1d = transposed_convolution(
    1,
    example(floats(2, 3, 4), floats(3, 2, 3), floats(2), stride=2, padding=1, output_padding=1),
    example(floats(2, 4, 3), floats(4, 1, 2), 0, groups=2, dilation=3, output_padding=2),
    example(strided(2, 3), floats(2, 3, 2), floats(3), output_padding=0),
)
conv_transpose2d = transposed_convolution(
    2,
    example(floats(2, 3, 3, 2), floats(3, 2, 3, 2), floats(2), stride=2, padding=1, output_padding=(1, 0)),
    example(floats(1, 4, 2, 3), floats(4, 1, 2, 2), 0, groups=2, dilation=3, output_padding=2),
    example(strided(2, 3, 3), floats(2, 1, 2, 2), floats(1), output_padding=0),
)
conv_transpose3d = transposed_convolution(
    3,
    example(floats(1, 2, 2, 3, 2), floats(2, 2, 2, 1, 2), floats(2), stride=2, output_padding=(0, 1, 0)),
    example(floats(1, 2, 2, 2, 2), floats(2, 1, 2, 2, 2), 0, groups=2, dilation=2, padding=1, output_padding=0),
    example(strided(1, 2, 2, 2), floats(1, 1, 2, 2, 2), floats(1), output_padding=0),
)
