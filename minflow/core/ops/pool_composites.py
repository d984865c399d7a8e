"""Pooling of signals and volumes, adaptive pooling, pooling by the p-norm, and unpooling: composite ops.

Each is a family of ops, one for each number n of spatial axes: `max_pool[1]` is max_pool1d. The input is (N, C, ...).
A signal is pooled as an image of one row, a volume in two passes: image by image, then along the depth. That is exact
for the maximum, and the first of equal maxima stays the first. Read next: `pool.py`, the ops on images.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

from ..backend import namespace
from ..base.errors import ShapeError
from ..host import HostArray
from ..op import Op, define
from ..spec import Spec, int64
from .examples import Case, case, distinct, floats, ints, positive
from .index import scatter, take
from .pool import AXES, adaptive_avg_pool2d, adaptive_spec, avg_pool2d, max_pool2d, picked, pool_spec
from .rules import need_floating, need_index, need_spec
from .shape import constant_beside, in_float32, zeros_of

UNPOOLED = dict(kernel_size=1, stride=1, padding=0, dilation=1)  # the attrs of an axis that is not pooled
SPACE = {1: (7,), 2: (5, 6), 3: (3, 4, 5)}  # sizes of examples


def family(
    signature: str,
    spec: Callable,
    parts: Callable,
    examples: Callable[[int], list[Case]],
    axes: tuple[int, ...] = (1, 3),
    **facts,
) -> dict[int, Op]:
    """n -> the op for n spatial axes.

    spec(name, x, *inputs, **attrs): its rule.  parts(n, x, *inputs, **attrs): its decomposition.  examples: of n.
    """
    name, rest = signature.split("(")

    def rule(n: int, *specs: Spec, **attrs):
        for attr, value in attrs.items():
            if isinstance(value, tuple) and len(value) != n:
                raise ShapeError(f"{name}{n}d: {attr} must have {n} entries, got {value}", hint=f"{attr}={(2,) * n}")
        return spec(f"{name}{n}d", *specs, **attrs)

    return {
        n: define(
            f"{name}{n}d({rest}",
            functools.partial(rule, n),
            decompose=functools.partial(parts, n),
            module=__name__,
            attr_kinds={attr: "sizes" for attr in UNPOOLED if attr in rest},
            examples=examples(n),
            **facts,
        )
        for n in axes
    }


def with_indices(y: Spec) -> tuple[Spec, Spec]:
    return y, y.replace(dtype=int64)


def window(n: int, kernel_size: int, stride: int, padding: int, **attrs) -> dict:
    """The attrs of an example: the same sizes for each axis."""
    return dict(kernel_size=(kernel_size,) * n, stride=(stride,) * n, padding=(padding,) * n, **attrs)


def image_attrs(axes: tuple[int | None, ...], **sizes: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """The attrs for the two axes of an image, from those for n axes; None is an axis that is not pooled."""
    return {name: tuple([UNPOOLED[name] if i is None else values[i] for i in axes]) for name, values in sizes.items()}


# ---- maxima ------------------------------------------------------------------------------------------------------


def maxima(n: int, x, pool: Callable):
    """(maxima, their positions in the last n axes, flattened). pool(images, axes): the same for images, with the attrs
    of these two axes; see `image_attrs`.
    """
    if n == 1:
        y, indices = pool(x.unsqueeze(2), (None, 0))
        return y.squeeze(2), indices.squeeze(2)
    if n == 2:
        return tuple(pool(x, (0, 1)))
    batch, channels, depth, height, width = x.spec.shape
    y, inner = pool(x.reshape(batch, channels * depth, height, width), (1, 2))
    rows, columns = y.spec.shape[2:]
    slices = batch, channels, depth, rows * columns
    y, outer = pool(y.reshape(slices), (0, None))
    indices = outer // (rows * columns) * (height * width) + picked(inner.reshape(slices), outer)
    shape = batch, channels, y.spec.shape[2], rows, columns
    return y.reshape(shape), indices.reshape(shape)


def max_pool_parts(n: int, x, ceil_mode: bool, **sizes):
    return maxima(n, x, lambda images, axes: max_pool2d(images, **image_attrs(axes, **sizes), ceil_mode=ceil_mode))


max_pool = {2: max_pool2d} | family(
    "max_pool(x; kernel_size, stride, padding, dilation, ceil_mode) -> y, indices",
    lambda *x, **attrs: with_indices(pool_spec(*x, **attrs)),
    max_pool_parts,
    lambda n: [
        case(distinct(2, 3, *SPACE[n]), **window(n, 2, 2, 0, dilation=(1,) * n, ceil_mode=False)),
        case(distinct(1, 2, *SPACE[n]), **window(n, 3, 2, 1, dilation=(1,) * n, ceil_mode=True)),
        case(distinct(1, 2, *SPACE[n]), **window(n, 2, 1, 0, dilation=(2,) * n, ceil_mode=False)),
    ],
    dtype_agnostic=False,
    doc="The maximum of each window (ties: the first; NaN wins, the last one), and its position in the last axes.",
)


def window_positions(n: int, m: int) -> HostArray:
    """(m, k) positions: those of each window, padded to the longest window by repeating its last position."""
    xp = namespace()
    starts, stops = xp.arange(m) * n // m, -(-(xp.arange(m) + 1) * n // m)
    return xp.minimum(starts[:, None] + xp.arange((stops - starts).max()), stops[:, None] - 1)


def adaptive_max_images(x, output_size: tuple[int, ...]):
    """`maxima` of images. All windows are gathered side by side, so that max_pool2d sees windows of equal size."""
    places = [window_positions(n, m) for n, m in zip(x.spec.shape[2:], output_size)]
    y = x
    for axis, place in enumerate(places, 2):
        if place.shape[1] > 1 or len(place) != x.spec.shape[axis]:
            y = take(y, constant_beside(y, place.reshape(-1)), axis=axis)
    kernel = tuple([place.shape[1] for place in places])
    y, indices = max_pool2d(y, kernel_size=kernel, stride=kernel, padding=(0, 0), dilation=(1, 1), ceil_mode=False)
    width = places[1].size
    row, column = [
        take(constant_beside(x, p.reshape(-1)), i, axis=0) for p, i in zip(places, (indices // width, indices % width))
    ]
    return y, row * x.spec.shape[3] + column


def adaptive_max_parts(n: int, x, output_size: tuple[int, ...]):
    def pool(images, axes):
        sizes = [m if i is None else output_size[i] for i, m in zip(axes, images.spec.shape[2:])]
        return adaptive_max_images(images, tuple(sizes))

    return maxima(n, x, pool)


adaptive_max_pool = family(
    "adaptive_max_pool(x; output_size) -> y, indices",
    lambda name, x, output_size: with_indices(adaptive_spec(name, len(output_size), x, output_size)),
    adaptive_max_parts,
    lambda n: [
        case(distinct(2, 3, *SPACE[n]), output_size=(1,) * n),
        case(distinct(1, 2, *SPACE[n]), output_size=(3, 2, 4)[:n]),
        case(distinct(1, 1, *SPACE[n]), output_size=(8,) * n),
    ],
    axes=(1, 2, 3),
    dtype_agnostic=False,
    doc="The maximum of each of output_size windows that cover the last axes, and its position in them.",
)


# ---- means -------------------------------------------------------------------------------------------------------


@in_float32  # round once, at the end, not between the two passes
def volume_means(x, over_images: Callable, over_depth: Callable):
    batch, channels, depth, height, width = x.spec.shape
    y = over_images(x.reshape(batch, channels * depth, height, width))
    rows, columns = y.spec.shape[2:]
    y = over_depth(y.reshape(batch, channels, depth, rows * columns))
    return y.reshape(batch, channels, y.spec.shape[2], rows, columns)


def avg_pool_parts(n: int, x, ceil_mode: bool, count_include_pad: bool, divisor_override: int | None, **sizes):
    def means(axes, divisor=divisor_override):
        attrs = dict(ceil_mode=ceil_mode, count_include_pad=count_include_pad, divisor_override=divisor)
        return lambda images: avg_pool2d(images, **image_attrs(axes, **sizes), **attrs)

    if n == 1:
        return means((None, 0))(x.unsqueeze(2)).squeeze(2)
    return volume_means(x, means((1, 2), None if divisor_override is None else 1), means((0, None)))


avg_pool = {2: avg_pool2d} | family(
    "avg_pool(x; kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)",
    lambda name, x, count_include_pad, divisor_override, **attrs: pool_spec(
        name, x, **attrs, dilation=(1,) * len(attrs["stride"])
    ),
    avg_pool_parts,
    lambda n: [
        case(
            floats(2, 3, *SPACE[n]),
            **window(n, k, s, p, ceil_mode=ceil, count_include_pad=include, divisor_override=divisor),
        )
        for k, s, p, ceil, include, divisor in (
            (2, 2, 0, False, True, None),
            (3, 2, 1, True, False, None),
            (2, 1, 1, False, True, 3),
        )
    ],
    unread=["x"],
    doc="The mean of each window.",
)


def adaptive_avg_parts(n: int, x, output_size: tuple[int, ...]):
    if n == 1:
        return adaptive_avg_pool2d(x.unsqueeze(2), output_size=(1, *output_size)).squeeze(2)

    def over_depth(y):
        batch, channels, depth, pixels = y.spec.shape
        y = adaptive_avg_pool2d(y.mT.reshape(batch, channels * pixels, 1, depth), output_size=(1, output_size[0]))
        return y.reshape(batch, channels, pixels, output_size[0]).mT.contiguous()

    return volume_means(x, functools.partial(adaptive_avg_pool2d, output_size=output_size[1:]), over_depth)


adaptive_avg_pool = {2: adaptive_avg_pool2d} | family(
    "adaptive_avg_pool(x; output_size)",
    lambda name, x, output_size: adaptive_spec(name, len(output_size), x, output_size),
    adaptive_avg_parts,
    lambda n: [
        case(floats(2, 3, *SPACE[n]), output_size=(1,) * n),
        case(floats(1, 2, *SPACE[n]), output_size=(3, 2, 4)[:n]),
    ],
    unread=["x"],
    doc="The mean of each of output_size windows that cover the last axes.",
)


# ---- the p-norm --------------------------------------------------------------------------------------------------


def lp_pool_spec(name: str, x: Spec, norm_type: float, kernel_size, stride, ceil_mode: bool) -> Spec:
    if not norm_type:
        raise ShapeError(f"{name}: norm_type must not be 0: the sum is raised to 1 / norm_type", hint="norm_type=2.0")
    n = len(kernel_size)
    return pool_spec(name, x, kernel_size, stride, (0,) * n, (1,) * n, ceil_mode)


def lp_pool_parts(n: int, x, norm_type: float, kernel_size, stride, ceil_mode: bool):
    geometry = dict(kernel_size=kernel_size, stride=stride, padding=(0,) * n, ceil_mode=ceil_mode)
    if math.isinf(norm_type):
        sign = math.copysign(1.0, norm_type)
        return max_pool[n](x.abs() * sign, **geometry, dilation=(1,) * n)[0] * sign
    means = avg_pool[n](x**norm_type, **geometry, count_include_pad=True, divisor_override=None)
    nothing = means == 0  # the root has an infinite slope there: no gradient
    root = (means.masked_fill(nothing, 1.0) * math.prod(kernel_size)) ** (1.0 / norm_type)
    return root.masked_fill(nothing, 0.0 if norm_type > 0 else math.inf)


lp_pool = family(
    "lp_pool(x; norm_type, kernel_size, stride, ceil_mode)",
    lp_pool_spec,
    lp_pool_parts,
    lambda n: [
        case(positive(2, 3, *SPACE[n]), norm_type=2.0, kernel_size=(2,) * n, stride=(2,) * n, ceil_mode=False),
        case(positive(1, 2, *SPACE[n]), norm_type=1.5, kernel_size=(3,) * n, stride=(2,) * n, ceil_mode=True),
        case(
            distinct(1, 2, *SPACE[n])(low=0.1),
            norm_type=math.inf,
            kernel_size=(2,) * n,
            stride=(2,) * n,
            ceil_mode=False,
        ),
    ],
    axes=(1, 2, 3),
    doc="The p-norm of each window, (sum of x**p)**(1/p), with p = norm_type.",
)


# ---- unpooling ---------------------------------------------------------------------------------------------------


def max_unpool_spec(name: str, x: Spec, indices: Spec, output_size: tuple[int, ...]) -> Spec:
    need_floating(name, x)
    need_index(name, indices, "indices")
    need_spec(name, x.shape, indices=indices)
    if x.ndim != len(output_size) + 2:
        raise ShapeError(f"{name}: {{x}} must have {AXES[len(output_size)]}", hint="x.unsqueeze(0) for one example")
    return x.replace(shape=(*x.shape[:2], *output_size))


def max_unpool_parts(n: int, x, indices, output_size: tuple[int, ...]):
    outer = x.spec.shape[:2]
    flat, places = [t.reshape(*outer, math.prod(x.spec.shape[2:])) for t in (x, indices)]
    zeros = zeros_of(x.spec.replace(shape=(*outer, math.prod(output_size))))
    return scatter(zeros, places, flat, dim=2, by=f"max_unpool{n}d").reshape(*outer, *output_size)


max_unpool = family(
    "max_unpool(x, indices; output_size)",
    max_unpool_spec,
    max_unpool_parts,
    lambda n: [
        case(
            floats(2, 3, *SPACE[n]),
            ints(2, 3, *SPACE[n])(
                layout=lambda a: namespace().arange(a.size).reshape(a.shape) % math.prod(a.shape[2:]) * 2
            ),
            output_size=(2 * SPACE[n][0], *SPACE[n][1:]),
        )
    ],
    axes=(1, 2, 3),
    unread=["x"],
    dtype_agnostic=False,
    doc="Zeros, with the elements of x at their indices in the flattened output_size.",
)
