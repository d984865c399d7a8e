"""Views with overlapping elements: by explicit strides, and sliding windows. Read next: `core/functions/scatter.py`."""

from __future__ import annotations

import math

from ..backend import namespace
from ..base.errors import OutOfRangeError, ShapeError
from ..kernels import kernel
from ..op import define
from ..sharding import kept_labels
from ..spec import Spec
from .examples import case, floats, strided
from .index import index_add
from .rules import need_axis
from .shape import constant_beside, permute, reshape, zeros_of


def as_strided_spec(x: Spec, size: tuple[int, ...], stride: tuple[int, ...], offset: int) -> Spec:
    if len(size) != len(stride) or min((*size, *stride), default=0) < 0:
        raise ShapeError(
            f"as_strided: sizes {size} and strides {stride}", hint="one stride of at least 0 for each size"
        )
    last = offset + sum([(n - 1) * k for n, k in zip(size, stride)])
    if 0 not in size and not 0 <= offset <= last < x.size:
        raise OutOfRangeError(
            f"as_strided: sizes {size}, strides {stride} and offset {offset} "
            f"reach element {last}, and there are {x.size}",
            hint="the sum of (size - 1) * stride, plus the offset, must be below the number of elements",
        )
    return x.replace(shape=size)


as_strided = define(
    "as_strided(x; size, stride, offset)",
    as_strided_spec,
    lambda g, x_spec, size, stride, offset: as_strided_grad(g, x_spec, size, stride, offset),
    is_view=True,
    attr_kinds={"size": "sizes", "stride": "sizes", "offset": "natural"},
    linear=("x",),
    examples=[
        case(floats(3, 4), size=(2, 2), stride=(1, 5), offset=1),
        case(floats(6), size=(4, 3), stride=(1, 1), offset=0),
        case(floats(5), size=(2, 0), stride=(1, 1), offset=0),
        case(floats(4), size=(), stride=(), offset=2),
    ],
    doc="A view of a contiguous tensor by sizes, strides and an offset, in elements.",
)


@kernel(as_strided)
def _(xp, x, size, stride, offset):
    flat = x.reshape(-1)[offset:] if 0 not in size else x.reshape(-1)[:0]
    steps = [k * x.itemsize if n > 1 and flat.size else 0 for n, k in zip(size, stride)]
    return xp.lib.stride_tricks.as_strided(flat, size, steps)


def as_strided_grad(g, x: Spec, size, stride, offset: int):
    """g added up at its source; an element that occurs several times gets the sum."""
    xp = namespace()
    places = xp.full(size, offset, "int64")
    for axis, (n, k) in enumerate(zip(size, stride)):
        places += (xp.arange(n) * k).reshape((-1,) + (1,) * (len(size) - 1 - axis))
    empty = zeros_of(g.spec.replace(shape=(x.size,)))
    flat = reshape(g.contiguous(), shape=(math.prod(size),))
    return reshape(index_add(empty, constant_beside(g, places.reshape(-1)), flat, axis=0), shape=x.shape)


def windows_spec(x: Spec, dim: int, size: int, step: int) -> Spec:
    need_axis("unfold", x, dim)
    n = x.shape[dim]
    if not 0 <= size <= n or step < 1:
        raise OutOfRangeError(
            f"unfold: windows of {size} every {step} along axis {dim} of {{x}}, which has size {n}",
            hint=f"a size from 0 to {n}, and a step of at least 1",
        )
    return x.replace(shape=(*x.shape[:dim], (n - size) // step + 1, *x.shape[dim + 1 :], size))


windows = define(
    "windows(x; dim, size, step)",
    windows_spec,
    lambda g, x_spec, dim, size, step: windows_grad(g, x_spec, dim, size, step),
    is_view=True,
    sharding=lambda x, dim, **_: [kept_labels(x.ndim, dim)[0], (*kept_labels(x.ndim, dim)[0], None)],
    linear=("x",),
    examples=[
        case(floats(7), dim=0, size=3, step=2),
        case(floats(2, 5, 3), dim=1, size=2, step=1),
        case(strided(4, 6), dim=1, size=4, step=1),
        case(floats(3), dim=0, size=0, step=1),
    ],
    doc="Sliding windows along an axis, which then counts windows; their elements are a new last axis.",
)


@kernel(windows)
def _(xp, x, dim, size, step):
    shape, steps = [*x.shape, size], [*x.strides, x.strides[dim]]
    shape[dim], steps[dim] = (x.shape[dim] - size) // step + 1, x.strides[dim] * min(step, x.shape[dim])
    return xp.lib.stride_tricks.as_strided(x, shape, steps)


def windows_grad(g, x: Spec, dim: int, size: int, step: int):
    count, axes, xp = g.spec.shape[dim], list(range(x.ndim)), namespace()
    places = (xp.arange(count) * step)[:, None] + xp.arange(size)
    g = permute(g, dims=(*axes[: dim + 1], x.ndim, *axes[dim + 1 :]))
    return index_add(zeros_of(x.replace(dtype=g.spec.dtype)), constant_beside(g, places), g.contiguous(), axis=dim)
