"""Gather and scatter by integer tensors, triangles, one-hot, flips and rolls.

Each index is checked before use: NumPy would name the wrong index, but not its position.
`x[index]` with lists, arrays and masks is reduced to `take` and `index_put` in `functions/indexing.py`.
by: the calling function, for errors; only some of them count negative indices from the end.
"""

from __future__ import annotations

import functools
import itertools
import math

from ..backend import on_host
from ..base.errors import DTypeError, ShapeError
from ..base.placement import partial_sum, split
from ..infer import data_dependent
from ..kernels import kernel
from ..op import define
from ..sharding import Labels, Row, kept_labels
from ..spec import Spec, int64
from .checks import FROM_THE_END, check_bounds, check_labels
from .examples import bools, case, floats, ints, strided
from .rules import broadcast_shape, need_axes, need_axis, need_index, write_out
from .shape import zeros_of


def output_like(xp, like, out):
    """A C-contiguous array to write into; `write_out` copies it to `out` if it is not `out` itself."""
    return out if out is not None and out.flags.c_contiguous else xp.empty(like.shape, like.dtype)


def copied(xp, x, out):
    result = output_like(xp, x, out)
    if result is not x:
        xp.copyto(result, x)
    return result


# ---- along one axis, by an index of any shape --------------------------------------------------------------------


def take_spec(x: Spec, index: Spec, axis: int, by: str = "indexing") -> Spec:
    need_axis(by, x, axis)
    need_index(by, index)
    return x.replace(shape=x.shape[:axis] + index.shape + x.shape[axis + 1 :])


def take_labels(x: Spec, index: Spec, axis: int, **_) -> list[Labels]:
    kept = kept_labels(x.ndim, axis)[0]
    places = tuple([("index", d) for d in range(index.ndim)])
    return [kept, places, (*kept[:axis], *places, *kept[axis + 1 :])]


def index_write_labels(x: Spec, index: Spec, src, axis: int, **_) -> list[Labels]:
    kept, places = kept_labels(x.ndim, axis)[0], (None,) * index.ndim
    return [kept, places, (*kept[:axis], *places, *kept[axis + 1 :]), kept]


take = define(
    "take(x, index; axis, by)",
    take_spec,
    dict(x=lambda g, x_spec, index, axis: index_add(zeros_of(x_spec), index, g, axis=axis)),
    domain="holomorphic",
    flops=0,
    reads_rows=True,
    moved_inputs=("index",),
    sharding=take_labels,
    linear=("x",),
    examples=[
        case(floats(5, 3), ints(4, high=5), axis=0),
        case(floats(3, 5, 2), ints(2, 4, low=-5, high=5), axis=1),
        case(floats(5), ints((), high=5), axis=0),
        case(strided(3, 5), ints(4, high=5, dtype="int32"), axis=1),
        case(floats(5, 3), ints(0, high=5), axis=0),
        case(ints(5, 3), ints(2, high=5), axis=0),
    ],
    doc="x at integer positions along an axis, which the axes of the index replace.",
)


@kernel(take)
def _(xp, x, index, axis, by="indexing", out=None):
    check_bounds(xp, by, index, x.shape[axis], axis, x)
    if out is None:
        out = xp.empty(x.shape[:axis] + index.shape + x.shape[axis + 1 :], x.dtype)
    if not out.size:
        return out
    if xp.may_share_memory(x, out):
        x = x.copy()
    if not on_host(x):
        return xp.take(x, index, axis=axis, out=out)
    # "raise" would buffer; only negative indices are left to wrap
    return xp.take(x, index, axis=axis, out=out, mode="wrap")


def index_write_spec(x: Spec, index: Spec, src, axis: int, by: str = "indexing") -> Spec:
    place = take_spec(x, index, axis, by)
    if isinstance(src, Spec):
        if src.dtype is not x.dtype:
            raise DTypeError(f"{by}: {{src}} is {src.dtype.name}, {{x}} is {x.dtype.name}", hint="{src}.to({x}.dtype)")
        if src.shape != place.shape:
            what = f"{by}: {{src}} must have shape {place.shape}, got {src.shape}"
            raise ShapeError(what, hint="{src}.expand(...)")
    return x


index_add = define(
    "index_add(x, index, src; axis, by)",
    index_write_spec,
    dict(x=lambda g: g, src=lambda g, index, axis: take(g, index, axis=axis)),
    alias_safe=True,
    domain="holomorphic",
    flops=1,
    moved_inputs=("index",),
    sharding=index_write_labels,
    linear=("x, src",),
    rows=lambda x, index, src, axis, **_: [
        Row((partial_sum, split(k), split(axis + k)), (partial_sum,)) for k in range(index.ndim) if x.differentiable
    ],
    examples=[
        case(floats(5, 3), ints(7, high=5), floats(7, 3), axis=0),
        case(floats(3, 4, 2), ints(2, 3, low=-4, high=4), floats(3, 2, 3, 2), axis=1),
        case(floats(5), ints((), high=5), floats(()), axis=0),
        case(floats(5, 3), ints(0, high=5), floats(0, 3), axis=0),
        case(strided(5, 3), ints(3, high=5), strided(3, 3), axis=0),
    ],
    doc="x with src added at integer positions along an axis; repeated positions accumulate.",
)


@kernel(index_add)
def _(xp, x, index, src, axis, by="indexing", out=None):
    check_bounds(xp, by, index, x.shape[axis], axis)
    result = copied(xp, x, out)
    add_at(xp, result, (slice(None),) * axis + (index,), src)
    return write_out(xp, result, out)


def add_at(xp, x, index, src) -> None:
    """Add src to x at positions, which may repeat. CuPy adds floats and a few integers, so complex numbers are added in
    parts, and other integers as the unsigned ones of 64 bits that have the same bits.
    """
    if on_host(x) or x.dtype.kind == "f":
        xp.add.at(x, index, src)
        return
    if x.dtype.kind == "c":
        src = xp.asarray(src, x.dtype)
        xp.add.at(x.real, index, src.real)
        xp.add.at(x.imag, index, src.imag)
        return
    total = x.astype("int64")
    xp.add.at(total.view("uint64"), index, xp.asarray(src, "int64").view("uint64"))
    x[...] = total.astype(x.dtype)


index_put = define(
    "index_put(x, index, src; axis, by)",
    index_write_spec,
    dict(
        x=lambda g, index, axis: index_put(g, index, 0, axis=axis),
        src=lambda g, index, axis: take(g, index, axis=axis),
    ),
    domain="holomorphic",
    number_inputs=("src",),
    moved_inputs=("index",),
    sharding=index_write_labels,
    linear=("x, src",),
    examples=[
        case(floats(1, 3), ints(1, high=1), floats(1, 3), axis=0),
        case(floats(3, 5), ints((), high=5), floats(3), axis=1),
        case(floats(5, 3), ints(4, high=5), 1.5, axis=0),
        case(strided(3, 4), ints(2, low=-4, high=4), 0, axis=1),
        case(floats(5, 3), ints(0, high=5), floats(0, 3), axis=0),
    ],
    doc="x with src written to integer positions along an axis; at a repeated position the last one wins.",
)


@kernel(index_put)
def _(xp, x, index, src, axis, by="indexing", out=None):
    check_bounds(xp, by, index, x.shape[axis], axis)
    result = copied(xp, x, out)
    result[(slice(None),) * axis + (index,)] = src
    return write_out(xp, result, out)


def ravel_spec(*index, shape: tuple[int, ...], by: str = "indexing") -> Spec:
    arrays = {f"index[{i}]": s for i, s in enumerate(index) if isinstance(s, Spec)}
    for name, s in arrays.items():
        need_index(by, s, name)
    if len(index) != len(shape) or math.prod(shape) >= 1 << 62 or any(s in (float, complex) for s in index):
        raise ShapeError(f"{by}: {len(index)} indices into the shape {shape}", hint="an integer index for each axis")
    return next(iter(arrays.values())).replace(
        shape=broadcast_shape(by, {name: s.shape for name, s in arrays.items()}), dtype=int64
    )


ravel_index = define(
    "ravel_index(*index; shape, by)",
    ravel_spec,
    number_inputs=("index",),
    moved_inputs=("index",),
    sharding=lambda *index, **_: ", ".join(["..."] * len(index)) + "-> ...",
    examples=[
        case(ints(4, high=3), ints(4, low=-5, high=5), shape=(3, 5)),
        case(ints(4, 1, high=3), ints(2, high=5), 1, shape=(3, 5, 2)),
        case(ints((), high=3), shape=(3,)),
    ],
    doc="The position in the flattened tensor, from one integer index per axis, broadcast.",
)


@kernel(ravel_index)
def _(xp, *index, shape, by="indexing", out=None):
    total, step = 0, 1
    for axis in range(len(shape) - 1, -1, -1):
        i = xp.asarray(index[axis])
        check_bounds(xp, by, i, shape[axis], axis)
        i = i.astype("int64")  # the axis may be longer than a small dtype can hold
        total = total + xp.where(i < 0, i + shape[axis], i) * step
        step *= shape[axis]
    if out is None:
        return xp.asarray(total)
    xp.copyto(out, total)
    return out


# ---- element by element along one axis (PyTorch's gather and scatter) --------------------------------------------


def gather_spec(x: Spec, index: Spec, *src, dim: int, by: str = "indexing") -> Spec:
    need_axis(by, x, dim)
    need_index(by, index)
    if index.ndim != x.ndim or any([n > m for d, (n, m) in enumerate(zip(index.shape, x.shape)) if d != dim]):
        raise ShapeError(
            f"{by}: {{index}} of shape {index.shape} does not fit into {{x}} of shape {x.shape}",
            hint=f"as many axes as {{x}}, and no axis longer, except axis {dim}",
        )
    if not src:
        return x.replace(shape=index.shape)
    if isinstance(src[0], Spec) and src[0].shape != index.shape:
        raise ShapeError(
            f"{by}: {{src}} has shape {src[0].shape}, {{index}} has {index.shape}", hint="the shapes must be the same"
        )
    if isinstance(src[0], Spec) and src[0].dtype is not x.dtype:
        raise DTypeError(f"{by}: {{src}} is {src[0].dtype.name}, {{x}} is {x.dtype.name}", hint="{src}.to({x}.dtype)")
    return x


def gather_labels(x: Spec, index: Spec, *src, dim: int, **_) -> list[Labels]:
    """The labels of gather and scatter: axes other than `dim` that the index has in full."""
    same = tuple([None if d == dim or n != m else d for d, (n, m) in enumerate(zip(x.shape, index.shape))])
    return [same, same, *[same for _ in src], same]


def index_grid(xp, by: str, x, index, dim: int):
    """The index of each element: one broadcastable array per axis."""
    check_bounds(xp, by, index, x.shape[dim], dim)
    return tuple(
        [
            index if d == dim else xp.arange(n).reshape((-1,) + (1,) * (index.ndim - 1 - d))
            for d, n in enumerate(index.shape)
        ]
    )


def flat_positions(xp, by: str, x, index, dim: int):
    """The position of each element in the flattened x."""
    check_bounds(xp, by, index, x.shape[dim], dim)
    index, steps = xp.asarray(index, "int64"), [stride // x.itemsize for stride in x.strides]
    if by in FROM_THE_END:
        index = xp.where(index < 0, index + x.shape[dim], index)
    place = index if steps[dim] == 1 else index * steps[dim]
    for d, n in enumerate(index.shape):
        if d != dim and n > 1:
            place = place + (xp.arange(n) * steps[d]).reshape((-1,) + (1,) * (index.ndim - 1 - d))
    return place


gather = define(
    "gather(x, index; dim, by)",
    gather_spec,
    dict(x=lambda g, x_spec, index, dim: scatter_add(zeros_of(x_spec), index, g, dim=dim)),
    domain="holomorphic",
    flops=0,
    reads_rows=True,
    sharding=gather_labels,
    linear=("x",),
    examples=[
        case(floats(3, 4), ints(2, 4, high=3), dim=0),
        case(floats(3, 4), ints(2, 6, low=-4, high=4), dim=1),
        case(strided(3, 4), ints(3, 1, high=4), dim=1),
        case(floats(5), ints(0, high=5), dim=0),
    ],
    doc="out[i, j] = x[i, index[i, j]] for dim 1, and so on.",
    slow_on_numpy=True,
)


@kernel(gather)
def _(xp, x, index, dim, by="indexing", out=None):
    if not x.flags.c_contiguous:
        return write_out(xp, x[index_grid(xp, by, x, index, dim)], out)
    place = flat_positions(xp, by, x, index, dim)
    if not on_host(x):
        return x.reshape(-1).take(place, out=out)
    return x.reshape(-1).take(place, out=out, mode="clip")  # "raise" would buffer


SCATTER_EXAMPLES = [
    case(floats(3, 4), ints(1, 4, high=3), floats(1, 4), dim=0),
    case(floats(3, 4), ints(3, 1, low=-4, high=4), floats(3, 1), dim=1),
    case(strided(3, 4), ints(2, 1, high=4), strided(2, 1), dim=1),
    case(floats(5), ints(0, high=5), floats(0), dim=0),
]

scatter = define(
    "scatter(x, index, src; dim, by)",
    gather_spec,
    dict(x=lambda g, index, dim: scatter(g, index, 0, dim=dim), src=lambda g, index, dim: gather(g, index, dim=dim)),
    domain="holomorphic",
    number_inputs=("src",),
    sharding=gather_labels,
    linear=("x, src",),
    examples=[*SCATTER_EXAMPLES, case(floats(3, 4), ints(3, 2, high=4), 1.5, dim=1)],
    doc="x with x[i, index[i, j]] = src[i, j] for dim 1, and so on; src may be a number.",
)


@kernel(scatter)
def _(xp, x, index, src, dim, by="indexing", out=None):
    result = copied(xp, x, out)
    result[index_grid(xp, by, x, index, dim)] = src
    return write_out(xp, result, out)


scatter_add = define(
    "scatter_add(x, index, src; dim, by)",
    gather_spec,
    dict(x=lambda g: g, src=lambda g, index, dim: gather(g, index, dim=dim)),
    domain="holomorphic",
    sharding=gather_labels,
    linear=("x, src",),
    rows=lambda x, index, src, dim, **_: [
        Row((partial_sum, split(dim), split(dim) if isinstance(src, Spec) else None), (partial_sum,))
        for _ in range(x.ndim > 0 and x.differentiable)
    ],
    examples=[*SCATTER_EXAMPLES, case(floats(3, 4), ints(6, 4, high=3), floats(6, 4), dim=0)],
    doc="x with x[i, index[i, j]] += src[i, j] for dim 1, and so on; repeated positions accumulate.",
    slow_on_numpy=True,
)


@kernel(scatter_add)
def _(xp, x, index, src, dim, by="indexing"):
    result = x.copy()
    src = src.reshape(-1) if hasattr(src, "dtype") else src
    # Flattened, because add.at is slow with several axes.
    add_at(xp, result.reshape(-1), flat_positions(xp, by, result, index, dim).reshape(-1), src)
    return result


# ---- shapes that depend on element values
# -------------------------------------------------------------------------------

nonzero = define(
    "nonzero(x)",
    data_dependent,
    domain="complex",
    examples=[ints(3, 4, high=2), bools(5), bools(()), floats(0, 3)],
    doc="The positions of nonzero elements, one row each; eager only, because the shape depends on the elements.",
)
kernel(nonzero, lambda xp, x: xp.argwhere(x).astype("int64", order="C"))


# ---- triangles, classes, and orders ------------------------------------------------------------------------------


def triangle_spec(x: Spec, diagonal: int, op: str) -> Spec:
    if x.ndim < 2:
        raise ShapeError(f"{op}: {{x}} must have at least 2 axes, got {x.ndim}", hint="flow.diag, or reshape")
    return x


BAND_ROWS = 64  # rows per band of a triangle: left and right of the diagonal block, rows are copied or filled whole


@functools.lru_cache(64)
def outside_mask(xp, rows: int, columns: int, diagonal: int, lower: bool):
    """A mask of the elements outside a triangle; at most BAND rows and columns."""
    inside = xp.arange(columns) - diagonal - xp.arange(rows)[:, None]
    return inside > 0 if lower else inside < 0


def triangle(name: str, doc: str):
    lower = name == "tril"
    op = define(
        f"{name}(x; diagonal)",
        lambda x, diagonal: triangle_spec(x, diagonal, name),
        lambda g, diagonal: op(g, diagonal=diagonal),
        alias_safe=True,
        domain="holomorphic",
        flops=0,
        sharding="... . . -> ... . .",
        linear=("x",),
        doc=doc,
        examples=[
            case(floats(3, 4), diagonal=0),
            case(floats(2, 3, 3), diagonal=-1),
            case(strided(4, 3), diagonal=1),
            case(ints(3, 3), diagonal=0),
        ],
    )

    @kernel(op)
    def _(xp, x, diagonal, out=None):
        result, (rows, columns) = output_like(xp, x, out), x.shape[-2:]
        for first in range(0, rows, BAND_ROWS):
            last = min(first + BAND_ROWS, rows)
            start, end = [min(max(i + diagonal, 0), columns) for i in (first, last)]
            here, there = result[..., first:last, :], x[..., first:last, :]
            kept, rest = (slice(end), slice(end, None)) if lower else (slice(start, None), slice(start))
            if result is not x:
                here[..., kept] = there[..., kept]
            here[..., rest] = 0
            if start < end:
                xp.copyto(
                    here[..., start:end],
                    False,
                    where=outside_mask(xp, last - first, end - start, first + diagonal - start, lower),
                )
        return write_out(xp, result, out)

    return op


tril = triangle("tril", "The lower triangle: 0 above the diagonal.")
triu = triangle("triu", "The upper triangle: 0 below the diagonal.")


def one_hot_spec(index: Spec, num_classes: int) -> Spec:
    need_index("one_hot", index)
    return index.replace(shape=(*index.shape, num_classes), dtype=int64)


checked_labels = define(
    "checked_labels(labels; loss, classes, ignore_index)",
    lambda labels, loss, classes, ignore_index: need_index(loss, labels, "labels"),
    is_view=True,
    checks=True,
    sharding="... -> ...",
    examples=[case(ints(4, high=3), loss="cross_entropy", classes=3, ignore_index=-100)],
    doc="The labels of a loss, each checked to be a class; in a graph, this replaces the check that eager makes "
    "beforehand.",
)


@kernel(checked_labels)
def _(xp, labels, loss, classes, ignore_index):
    check_labels(xp, loss, labels, classes, ignore_index)
    return labels[...]


one_hot = define(
    "one_hot(index; num_classes)",
    one_hot_spec,
    sharding="... -> ... .",
    examples=[
        case(ints(4, high=3), num_classes=3),
        case(ints(2, 3, high=3), num_classes=5),
        case(ints((), high=2), num_classes=2),
    ],
    doc="1 at the class given by each integer, else 0.",
)


@functools.lru_cache(8)
def unit_rows(xp, many: int):
    """The rows that `one_hot` copies for the integers; for few classes."""
    return xp.eye(many, dtype="int64")


@kernel(one_hot)
def _(xp, index, num_classes, out=None):
    check_bounds(xp, "one_hot", index, num_classes, index.ndim)
    if num_classes <= 128:
        rows = unit_rows(xp, num_classes)
        return rows.take(index, 0, out, "clip") if on_host(index) else rows.take(index, 0, out)
    result = out if out is not None and out.flags.c_contiguous else xp.empty((*index.shape, num_classes), "int64")
    if result.size:
        result.fill(0)
        result.reshape(-1)[xp.arange(0, result.size, num_classes) + index.reshape(-1)] = 1
    return write_out(xp, result, out)


def flip_spec(x: Spec, axes: tuple[int, ...], shifts: tuple[int, ...] | None = None) -> Spec:
    need_axes("flip" if shifts is None else "roll", x, axes)
    if shifts is not None and len(shifts) != len(axes):
        raise ShapeError(f"roll: {len(shifts)} shifts along {len(axes)} axes", hint="a shift for each axis")
    return x


flip = define(
    "flip(x; axes)",
    flip_spec,
    lambda g, axes: flip(g, axes=axes),
    domain="holomorphic",
    flops=0,
    sharding=lambda x, axes, **_: kept_labels(x.ndim, axes),
    linear=("x",),
    examples=[
        case(floats(3, 4), axes=(0,)),
        case(floats(2, 3, 4), axes=(0, 2)),
        case(strided(4, 5), axes=(1,)),
        case(floats(()), axes=()),
    ],
    doc="A copy with the order along some axes reversed.",
)


@kernel(flip)
def _(xp, x, axes, out=None):
    turned = x[tuple([slice(None, None, -1 if d in axes else None) for d in range(x.ndim)])]
    return write_out(xp, xp.array(turned, order="C") if out is None or xp.may_share_memory(x, out) else turned, out)


roll = define(
    "roll(x; shifts, axes)",
    lambda x, shifts, axes: flip_spec(x, axes, shifts),
    lambda g, shifts, axes: roll(g, shifts=tuple([-s for s in shifts]), axes=axes),
    domain="holomorphic",
    flops=0,
    sharding=lambda x, axes, **_: kept_labels(x.ndim, axes),
    linear=("x",),
    examples=[
        case(floats(3, 4), shifts=(1,), axes=(0,)),
        case(floats(2, 3, 4), shifts=(-1, 2), axes=(0, 2)),
        case(strided(4, 5), shifts=(7,), axes=(1,)),
    ],
    doc="Elements shifted along some axes; those that leave at the end re-enter at the start.",
)


@kernel(roll)
def _(xp, x, shifts, axes, out=None):
    if out is None:
        out = xp.empty(x.shape, x.dtype)
    elif xp.may_share_memory(x, out):
        x = x.copy()
    parts: list = [[(slice(None), slice(None))]] * x.ndim  # of each axis: (places in the result, elements of x)
    for axis in set(axes):
        n = x.shape[axis]
        first = sum([shift for shift, a in zip(shifts, axes) if a == axis]) % n if n else 0
        if first:
            parts[axis] = [(slice(first, None), slice(n - first)), (slice(first), slice(n - first, None))]
    for chosen in itertools.product(*parts):
        places, sources = zip(*chosen)
        out[places] = x[sources]
    return out
