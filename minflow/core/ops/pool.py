"""Max and average pooling over windows of an image, and their gradients.

Windows are visited as K*K shifted views of the whole array, never pixel by pixel. Read next: `conv.py`.
"""

from __future__ import annotations

import functools
import math
from itertools import product
from typing import Any

from ..base.errors import ShapeError
from ..kernels import kernel
from ..op import define
from ..spec import Spec, int64
from .checks import check_bounds
from .conv import Pair, Sizes, check_border, need_window, pixels_under, positions
from .examples import case, distinct, floats, ints
from .rules import need_floating, need_index, need_spec, via_float32

AXES = {1: "three axes, (N, C, L)", 2: "four axes, (N, C, H, W)", 3: "five axes, (N, C, D, H, W)"}


def by(sizes: Sizes) -> str:
    """Sizes as messages show them, "3x4"."""
    return "x".join(map(str, sizes))


def pool_spec(
    op: str, x: Spec, kernel_size: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, ceil_mode: bool
) -> Spec:
    """The rule for windows over the last axes, as many as the window has."""
    need_floating(op, x)
    n = len(kernel_size)
    if x.ndim != n + 2:
        raise ShapeError(f"{op}: {{x}} must have {AXES[n]}", hint="x.unsqueeze(0) for one image")
    need_window(op, kernel_size, stride, padding, dilation)
    for n, k, p in zip(x.shape[2:], kernel_size, padding):
        if p > k // 2:
            raise ShapeError(
                f"{op}: padding must be at most half of the window of {k}, got {p}",
                hint="less padding: each window must overlap the image",
            )
        if k > n + 256:
            raise ShapeError(f"{op}: a window of {k} on {n} pixels", hint="adaptive pooling sees the whole image")
    out = positions(x.shape[2:], kernel_size, stride, padding, dilation, ceil_mode)
    if min(out) < 1:
        raise ShapeError(
            f"{op}: a window of {by(kernel_size)} does not fit in {{x}} with {by(x.shape[2:])} pixels",
            hint="a smaller window, or fewer poolings before this layer",
        )
    check_border(op, x.shape, out, padding, x.dtype.itemsize)
    return x.replace(shape=(*x.shape[:2], *out))


def padded_with(xp, x, size: Pair, kernel_size: Pair, stride: Pair, padding: Pair, dilation: Pair, value):
    """x with a border of `value`, as far as the windows reach."""
    need = [(n - 1) * s + d * (k - 1) + 1 for n, s, d, k in zip(size, stride, dilation, kernel_size)]
    n, c, h, w = x.shape
    if not any(padding) and need[0] <= h and need[1] <= w:
        return x
    shape = n, c, max(need[0], h + padding[0]), max(need[1], w + padding[1])
    out = xp.full(shape, value, x.dtype)
    out[:, :, padding[0] : padding[0] + h, padding[1] : padding[1] + w] = x
    return out


# ---- max pooling -------------------------------------------------------------------------------------------------

WINDOW_ATTRS = dict(stride=(2, 2), padding=(0, 0), dilation=(1, 1), ceil_mode=False)
MAX_CASES: list[tuple[Any, ...]] = [
    ((2, 3, 4, 6), dict(kernel_size=(2, 2))),
    ((1, 2, 5, 5), dict(kernel_size=(2, 2), ceil_mode=True)),
    ((1, 2, 6, 7), dict(kernel_size=(3, 2), stride=(1, 2), padding=(1, 1))),
    ((1, 1, 7, 7), dict(kernel_size=(2, 3), dilation=(2, 2), stride=(1, 1))),
    ((0, 2, 4, 4), dict(kernel_size=(2, 2))),
]

max_pool2d = define(
    "max_pool2d(x; kernel_size, stride, padding, dilation, ceil_mode) -> y, indices",
    lambda x, **options: (lambda y: (y, y.replace(dtype=int64)))(pool_spec("max_pool2d", x, **options)),
    dict(
        x=lambda g, out1, x_spec, kernel_size, stride, dilation: max_pool2d_grad(
            g[0], out1, shape=x_spec.shape, apart=all(s > d * (k - 1) for s, k, d in zip(stride, kernel_size, dilation))
        )
    ),
    flops=lambda out, x, kernel_size, **_: out.size * math.prod(kernel_size),
    sharding="n c . . -> n c . ., n c . .",
    examples=[case(distinct(*shape), **(WINDOW_ATTRS | o)) for shape, o in MAX_CASES],
    doc="The maximum of each window (ties: the first; NaN wins, the last one), and its position in H * W.",
    slow_on_numpy=True,
)


def argmax_of(xp, seen):
    """The index of the maximum along axis 0: the first of ties, the last NaN, as in PyTorch."""
    nan = xp.isnan(seen)
    return xp.where(nan.any(0), len(seen) - 1 - xp.argmax(nan[::-1], 0), xp.argmax(seen, 0))


@kernel(max_pool2d)
def _(xp, x, kernel_size, stride, padding, dilation, ceil_mode):
    size = positions(x.shape[2:], kernel_size, stride, padding, dilation, ceil_mode)
    if not x.size:
        return xp.empty((*x.shape[:2], *size), x.dtype), xp.empty((*x.shape[:2], *size), "int64")
    wide = padded_with(xp, x, size, kernel_size, stride, padding, dilation, -xp.inf)
    seen = xp.stack([pixels_under(wide, u, v, size, stride, dilation) for u, v in product(*map(range, kernel_size))])
    number = argmax_of(xp, seen)
    row = xp.arange(size[0])[:, None] * stride[0] - padding[0] + number // kernel_size[1] * dilation[0]
    column = xp.arange(size[1]) * stride[1] - padding[1] + number % kernel_size[1] * dilation[1]
    # if all are -inf, the first one that is not padding
    row, column = [xp.where(at < 0, at % d, at) for at, d in zip((row, column), dilation)]
    return xp.take_along_axis(seen, number[None], 0)[0], row * x.shape[3] + column


def unpool_spec(op: str, x: Spec, indices: Spec, picked: Spec) -> Spec:
    """The Spec of an unpooling (x, which has the size of the image) or of its inverse (the elements at the indices)."""
    need_index(op, indices, "indices")
    need_spec(op, indices.shape, **{"grad" if op.endswith("grad") else "indices": picked})
    if x.ndim != 4 or indices.ndim != 4 or x.shape[:2] != indices.shape[:2]:
        raise ShapeError(f"{op}: {{indices}} is {indices}, of images {list(x.shape)}", hint="(N, C, H, W) for both")
    return x if op.endswith("grad") else picked


max_pool2d_grad = define(
    "max_pool2d_grad(grad, indices; shape, apart)",
    lambda grad, indices, shape, apart: unpool_spec("max_pool2d_grad", grad.replace(shape=shape), indices, grad),
    dict(grad=lambda g, indices: picked(g, indices)),
    flops=1,
    sharding="n c . ., n c . . -> n c . .",
    linear=("grad",),
    local_attrs="shape",
    examples=[case(floats(2, 3, 2, 2), ints(2, 3, 2, 2, high=16), shape=(2, 3, 4, 4), apart=False)],
    doc="The cotangent added to the position of each window's maximum; apart: windows do not overlap.",
    slow_on_numpy=True,
)


@kernel(max_pool2d_grad)
def _(xp, grad, indices, shape, apart):
    check_bounds(xp, "max_pool2d_grad", indices, shape[2] * shape[3], 2)
    images = xp.arange(shape[0] * shape[1]).reshape(shape[0], shape[1], 1, 1)
    flat = images * (shape[2] * shape[3]) + indices
    total = xp.zeros(math.prod(shape))
    cotangents = grad.reshape(-1).astype("float64")
    if apart:  # -0.0 stays, so that a ReLU's mask may come first (compiler/passes/relu_pool_reorder.py)
        total[flat.reshape(-1)] = cotangents
    else:
        xp.add.at(total, flat.reshape(-1), cotangents)
    return total.reshape(shape).astype(grad.dtype)


picked = define(
    "max_pool2d_pick(x, indices)",
    lambda x, indices: unpool_spec("max_pool2d_pick", x, indices, x.replace(shape=indices.shape)),
    dict(x=lambda g, indices, x_spec: max_pool2d_grad(g, indices, shape=x_spec.shape, apart=False)),
    sharding="n c . ., n c . . -> n c . .",
    linear=("x",),
    examples=[case(floats(2, 3, 4, 4), ints(2, 3, 2, 2, high=16))],
    doc="The elements of an image at given positions in H * W.",
)


@kernel(picked)
def _(xp, x, indices):
    check_bounds(xp, "max_pool2d_pick", indices, x.shape[2] * x.shape[3], 2)
    flat, places = (a.reshape(*a.shape[:2], a.shape[2] * a.shape[3]) for a in (x, indices))
    return xp.take_along_axis(flat, places, 2).reshape(indices.shape)


# ---- average pooling
# ----------------------------------------------------------------------------------------------------

MEAN_ATTRS = WINDOW_ATTRS | dict(count_include_pad=True, divisor_override=None)
del MEAN_ATTRS["dilation"]
AVG_CASES: list[tuple[Any, ...]] = [
    ((2, 3, 4, 6), dict(kernel_size=(2, 2))),
    ((1, 2, 5, 5), dict(kernel_size=(3, 3), ceil_mode=True, padding=(1, 1), count_include_pad=False)),
    ((1, 2, 5, 6), dict(kernel_size=(3, 2), ceil_mode=True, padding=(1, 1), stride=(2, 3))),
    ((1, 2, 5, 5), dict(kernel_size=(2, 2), stride=(1, 1), divisor_override=3)),
    ((0, 2, 4, 4), dict(kernel_size=(2, 2))),
]


def mean_spec(x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    return pool_spec("avg_pool2d", x, kernel_size, stride, padding, (1, 1), ceil_mode)


avg_pool2d = define(
    "avg_pool2d(x; kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)",
    mean_spec,
    lambda g, x_spec, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override: avg_pool2d_grad(
        g,
        shape=x_spec.shape,
        kernel_size=kernel_size,
        stride=stride,
        padding=padding,
        ceil_mode=ceil_mode,
        count_include_pad=count_include_pad,
        divisor_override=divisor_override,
    ),
    flops=lambda out, x, kernel_size, **_: out.size * math.prod(kernel_size),
    sharding="n c . . -> n c . .",
    linear=("x",),
    examples=[case(floats(*shape), **(MEAN_ATTRS | o)) for shape, o in AVG_CASES],
    doc="The mean of each window.",
)


def pool_grad_spec(op: str, grad: Spec, shape, rule) -> Spec:
    """The shape rule of a pooling gradient: images of `shape`, for which `rule` must give the spec of the cotangent."""
    x = grad.replace(shape=shape)
    need_spec(op, rule(x), grad=grad)
    return x


avg_pool2d_grad = define(
    "avg_pool2d_grad(grad; shape, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)",
    lambda grad, shape, count_include_pad, divisor_override, **window: pool_grad_spec(
        "avg_pool2d_grad", grad, shape, lambda x: pool_spec("avg_pool2d_grad", x, dilation=(1, 1), **window)
    ),
    lambda g, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override: avg_pool2d(
        g,
        kernel_size=kernel_size,
        stride=stride,
        padding=padding,
        ceil_mode=ceil_mode,
        count_include_pad=count_include_pad,
        divisor_override=divisor_override,
    ),
    flops=1,
    sharding="n c . . -> n c . .",
    linear=("grad",),
    local_attrs="shape",
    examples=[case(floats(2, 3, 2, 3), shape=(2, 3, 4, 6), kernel_size=(2, 2), **MEAN_ATTRS)],
    doc="Each element of the cotangent distributed evenly over its window.",
)


def divisors(xp, shape, size, kernel_size, stride, padding, include: bool, override, dtype):
    """The divisor of the sum of each window, of the shape `size`."""
    if override is not None:
        return xp.full(size, override, dtype)
    counts = []
    for n, m, k, s, p in zip(shape[2:], size, kernel_size, stride, padding):
        start = xp.arange(m) * s - p
        stop = xp.minimum(start + k, n + p)
        counts.append((stop - start) if include else (xp.minimum(stop, n) - xp.maximum(start, 0)))
    return functools.reduce(lambda sizes, n: sizes[..., None] * n, counts).astype(dtype)


@kernel(avg_pool2d)
@via_float32
def _(xp, x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, out=None):
    size = positions(x.shape[2:], kernel_size, stride, padding, (1, 1), ceil_mode)
    out = xp.empty((*x.shape[:2], *size), x.dtype) if out is None else out
    if not out.size:
        return out
    wide = padded_with(xp, x, size, kernel_size, stride, padding, (1, 1), 0)
    out.fill(0)
    for u in range(kernel_size[0]):
        for v in range(kernel_size[1]):
            xp.add(out, pixels_under(wide, u, v, size, stride, (1, 1)), out=out)
    return xp.divide(
        out,
        divisors(xp, x.shape, size, kernel_size, stride, padding, count_include_pad, divisor_override, x.dtype),
        out=out,
    )


@kernel(avg_pool2d_grad)
@via_float32
def _(xp, grad, shape, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, out=None):
    out = xp.empty(shape, grad.dtype) if out is None else out
    (ph, pw), (h, w) = padding, shape[2:]
    size = grad.shape[2:]
    if not grad.size:
        out.fill(0)
        return out
    need = [(n - 1) * s + k for n, s, k in zip(size, stride, kernel_size)]
    wide = xp.zeros((*shape[:2], max(need[0], h + 2 * ph), max(need[1], w + 2 * pw)), grad.dtype)
    shared = grad / divisors(
        xp, shape, size, kernel_size, stride, padding, count_include_pad, divisor_override, grad.dtype
    )
    for u in range(kernel_size[0]):
        for v in range(kernel_size[1]):
            place = pixels_under(wide, u, v, size, stride, (1, 1))
            xp.add(place, shared, out=place)
    out[...] = wide[:, :, ph : ph + h, pw : pw + w]
    return out


# ---- adaptive average pooling -----------------------------------------------------------------------


def windows(n: int, m: int) -> list[tuple[int, int]]:
    """The m windows of n pixels: [floor(i*n/m), ceil((i+1)*n/m))."""
    return [(i * n // m, -(-(i + 1) * n // m)) for i in range(m)]


def adaptive_spec(op: str, n: int, x: Spec, output_size: Sizes) -> Spec:
    """The rule for adaptive pooling of the last n axes."""
    need_floating(op, x)
    size = x.shape[2:]
    if x.ndim != n + 2 or not all(size):
        what = f"{op}: {{x}} must have {AXES[n]}, and at least one pixel"
        raise ShapeError(what, hint="x.unsqueeze(0) for one image")
    if len(output_size) != n or min(output_size) < 1:
        what = f"{op}: output_size must have {n} sizes of at least 1, got {output_size}"
        raise ShapeError(what, hint=f"output_size={(1,) * n}")
    pooled_once = [math.prod(size) // n * m for n, m in zip(size, output_size)]  # along one axis
    if max(pooled_once) > 256 * (math.prod(size) + math.prod(output_size)) + (1 << 16):
        raise ShapeError(f"{op}: from {by(size)} to {by(output_size)} pixels", hint="one axis after the other")
    return x.replace(shape=(*x.shape[:2], *output_size))


adaptive_avg_pool2d = define(
    "adaptive_avg_pool2d(x; output_size)",
    functools.partial(adaptive_spec, "adaptive_avg_pool2d", 2),
    lambda g, x_spec: adaptive_avg_pool2d_grad(g, shape=x_spec.shape),
    flops=1,
    sharding="n c . . -> n c . .",
    linear=("x",),
    examples=[case(floats(2, 3, 4, 6), output_size=(1, 1)), case(floats(2, 3, 5, 7), output_size=(3, 2)),
              case(floats(1, 2, 2, 2), output_size=(3, 3)),
              case(floats(0, 2, 4, 4), output_size=(2, 2))],
    doc="The mean of output_size windows that cover the image.",
    slow_on_numpy=True,
)  # fmt: skip

adaptive_avg_pool2d_grad = define(
    "adaptive_avg_pool2d_grad(grad; shape)",
    lambda grad, shape: pool_grad_spec(
        "adaptive_avg_pool2d_grad", grad, shape, lambda x: adaptive_spec("adaptive_avg_pool2d", 2, x, grad.shape[2:])
    ),
    lambda g, grad_spec: adaptive_avg_pool2d(g, output_size=grad_spec.shape[2:]),
    flops=1,
    sharding="n c . . -> n c . .",
    linear=("grad",),
    local_attrs="shape",
    examples=[case(floats(2, 3, 1, 1), shape=(2, 3, 4, 6)), case(floats(1, 2, 3, 2), shape=(1, 2, 5, 7))],
    doc="Each element of the cotangent distributed evenly over its window.",
)


@kernel(adaptive_avg_pool2d)
@via_float32
def _(xp, x, output_size, out=None):
    out = xp.empty((*x.shape[:2], *output_size), x.dtype) if out is None else out
    if not out.size:
        return out
    if output_size == (1, 1):
        xp.add.reduce(x, (2, 3), keepdims=True, out=out)
        return xp.true_divide(out, x.shape[2] * x.shape[3], out=out)
    # float64, so that nothing is rounded between the two passes
    rows = xp.empty((*x.shape[:2], output_size[0], x.shape[3]))
    for i, (start, stop) in enumerate(windows(x.shape[2], output_size[0])):
        xp.mean(x[:, :, start:stop], 2, dtype="float64", out=rows[:, :, i])
    for i, (start, stop) in enumerate(windows(x.shape[3], output_size[1])):
        xp.mean(rows[..., start:stop], 3, out=out[..., i])
    return out


@kernel(adaptive_avg_pool2d_grad)
@via_float32
def _(xp, grad, shape, out=None):
    out = xp.empty(shape, grad.dtype) if out is None else out
    if not grad.size:
        out.fill(0)
        return out
    if grad.shape[2:] == (1, 1):
        out[...] = grad * grad.dtype.type(1 / (shape[2] * shape[3]))
        return out
    rows = xp.zeros((*shape[:3], grad.shape[3]), grad.dtype)
    for i, (start, stop) in enumerate(windows(shape[2], grad.shape[2])):
        rows[:, :, start:stop] += grad[:, :, i : i + 1] * grad.dtype.type(1 / (stop - start))
    out.fill(0)
    for i, (start, stop) in enumerate(windows(shape[3], grad.shape[3])):
        out[..., start:stop] += rows[..., i : i + 1] * grad.dtype.type(1 / (stop - start))
    return out
