"""Primitives that move or view elements without arithmetic: views, copies, casts, and writes through a view.

The kernel of a view always returns a NumPy view of its input, never a scalar: `core/functionalize.py` relies on that
for in-place writes. Read next: `core/functionalize.py`.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any

from ..backend import namespace, on_device, on_host
from ..base.dtypes import HALF_DTYPES
from ..base.errors import DTypeError, OutOfRangeError, ShapeError
from ..base.placement import broadcast
from ..context import current_context
from ..dispatch import apply
from ..host import HostArray, host_array, python_number
from ..host.float_warnings import silent
from ..kernels import calls_of, device_of, kernel
from ..mode import MODE
from ..op import define
from ..sharding import Labels, elementwise_labels, kept_labels, labels_of_call, local_spec, reshape_labels
from ..spec import DType, Spec, as_dtype, bfloat16, bool_, cpu, finfo, float32, float64, iinfo
from ..symbolic_shapes import SymInt
from .examples import case, distinct, floats, ints, strided, unary
from .global_tensors import as_global
from .rules import need_axis, need_spec


def apply_path(x, path):
    """Apply a path of views, `((op, attrs), ...)`, to x."""
    for op, attrs in path:
        x = apply(op, x, **attrs)
    return x


def filled(spec: Spec, value):
    """A tensor of this spec, on its device, filled with one value."""
    if spec.placement is not None:
        return filled_global(spec, value)
    place = {} if spec.device is cpu else {"device": spec.device}
    return full(shape=spec.shape, value=value, dtype=spec.dtype, **place)


def filled_global(spec: Spec, value):
    """`filled` for a global tensor, of which each rank makes its part; broadcast where `spec` has partial sums, or
    splits an axis that its shape does not have.
    """
    assert spec.placement is not None and spec.sbp is not None
    sbp = tuple([s if s.kind == "split" and s.dim < spec.ndim else broadcast for s in spec.sbp])
    rank, target = current_context().rank, (spec.placement, sbp)
    part = filled(local_spec(spec.replace(sbp=sbp), rank), value)
    return as_global(part, shape=spec.shape, target=target, rank=rank)


def zeros_of(spec: Spec):
    return filled(spec, 0)


def constant_beside(x, array: HostArray):
    """A tensor that takes ownership of an array, on the device of x; on each of its ranks if x is global."""
    spec = x.spec
    if spec.placement is None:
        return MODE.get().constant(array, spec.device)
    rank, shape, whole = current_context().rank, array.shape, (broadcast,) * len(spec.placement.hierarchy)
    local = local_spec(Spec(shape, as_dtype(array.dtype), spec.device, spec.placement, whole), rank)
    part = MODE.get().constant(array.reshape(-1)[: local.size].reshape(local.shape), spec.device)
    return as_global(part, shape=shape, target=(spec.placement, whole), rank=rank)


# ---- copies and casts --------------------------------------------------------------------------------------------

clone = define(
    "clone(x)",
    infer=lambda x: x,
    vjp=lambda g: g,
    elementwise="same",
    scalar=lambda b, x: x,
    domain="holomorphic",
    dtype_agnostic=True,
    linear=("x",),
    examples=unary(),
    doc="A copy that passes gradients.",
)


@kernel(clone)
def _(xp, x, out=None):
    if out is None:
        return x.copy()
    xp.copyto(out, x)  # takes a third of the time of `positive`
    return out


copy_to = define(
    "copy_to(x; device)",
    infer=lambda x, device: x,
    vjp=lambda g, x_spec: copy_to(g, device=x_spec.device),
    moves=True,
    host_inputs=("x",),
    storable=False,
    domain="holomorphic",
    dtype_agnostic=True,
    sharding="... -> ...",
    linear=("x",),
    examples=[case(floats(3, 4), device=cpu), case(floats(()), device=cpu), case(strided(4, 5), device=cpu)],
    doc="A copy on another device.",
)


@kernel(copy_to)
def _(xp, x, device, out=None):
    if out is None:
        return on_device(x, device)
    out[...] = on_device(x, device)
    return out


cast = define(
    "cast(x; dtype)",
    infer=lambda x, dtype: x.replace(dtype=dtype),
    vjp=lambda g, x_spec: cast(g, dtype=x_spec.dtype),
    domain="complex",
    dtype_agnostic=True,
    sharding="... -> ...",
    linear=lambda x, dtype: ("x",) if dtype.rank > 1 else (),
    examples=[
        case(floats(3, 4), dtype=float64),
        case(ints(3), dtype=float32),
        case(floats(()), dtype=bool_),
        case(strided(4, 5), dtype=float32),
    ],
    doc="Conversion to another dtype; floats are truncated to integers.",
)


@kernel(cast)
def _(xp, x, dtype: DType, out=None):
    x = x.real if x.dtype.kind == "c" and 0 < dtype.rank < 3 else x
    with silent():  # converting NaN to an integer is undefined, not an error
        if out is None:
            return x.astype(dtype.np, order="C")
        xp.copyto(out, x, casting="unsafe")
        return out


def in_dtype(x, dtype: DType):
    """Convert an input to the dtype that an op needs, by a visible `cast`; a number is returned unchanged."""
    return cast(x, dtype=dtype) if hasattr(x, "spec") and x.spec.dtype is not dtype else x


def run_in_dtype(mode, op, inputs, attrs, dtype: DType, specs):
    """Run an op on inputs of another dtype, as `infer` asks for; or, for bfloat16, in float32 with one rounding."""
    if specs is None:
        return mode.run(op, tuple([in_dtype(x, dtype) for x in inputs]), attrs)
    wide = [in_dtype(x, float32) if hasattr(x, "spec") and x.spec.dtype is bfloat16 else x for x in inputs]
    mode = mode if mode.low is None else mode.replace(low=None)  # autocast was applied already
    results = mode.run(op, tuple(wide), attrs)
    rounded = [
        x if (s is not None and x.spec.dtype is s.dtype) or x.spec.dtype is not float32 else in_dtype(x, bfloat16)
        for x, s in zip(results if op.many else [results], specs)
    ]
    return rounded if op.many else rounded[0]


def in_float32(function: Callable) -> Callable:
    """Compute in float32 if inputs are float16 or bfloat16, whose range or precision is too small for squares,
    exponentials and long sums; round once at the end.
    """

    def wide(x):
        return cast(x, dtype=float32) if is_half(x) else x

    def narrow(x, dtype: DType):
        return tuple([narrow(y, dtype) for y in x]) if isinstance(x, tuple) else cast(x, dtype=dtype)

    @functools.wraps(function)
    def wider(*args, **options):
        first = args[0] if args else next(iter(options.values()), None)
        if not is_half(first) or options.get("dtype"):
            return function(*args, **options)
        result = function(*[wide(x) for x in args], **{name: wide(x) for name, x in options.items()})
        return narrow(result, first.spec.dtype)

    return wider


def is_half(x) -> bool:
    return hasattr(x, "spec") and x.spec.dtype in HALF_DTYPES


def check_fits(value, dtype: DType) -> None:
    """Refuse a number that a dtype cannot hold: NaN and infinities as integers, and numbers out of range."""
    value = python_number(value)
    if isinstance(value, complex) and 0 < dtype.rank < 3:
        raise DTypeError(f"{value} does not fit into {dtype.name}, which has no imaginary part", hint="flow.complex64")
    if dtype.rank in (0, 3) or not isinstance(value, int | float) or (dtype.floating and not math.isfinite(value)):
        return
    limits = finfo(dtype) if dtype.floating else iinfo(dtype)
    if not limits.min <= value <= limits.max:
        raise OutOfRangeError(
            f"{value} does not fit into {dtype.name}, which holds {limits.min} to {limits.max}",
            hint="a wider dtype: float32, or float64"
            if dtype.floating or not math.isfinite(value)
            else "a wider dtype: int64, or float32",
        )


def full_spec(shape, value, dtype, device=cpu) -> Spec:
    check_fits(value, dtype)
    return Spec(shape, dtype, device)


full = define(
    "full(; shape, value, dtype, device)",
    infer=full_spec,
    domain="holomorphic",
    dtype_agnostic=True,
    examples=[case(shape=(2, 3), value=1.5, dtype=float32), case(shape=(), value=2, dtype=float64)],
    doc="A tensor filled with one value.",
)


@kernel(full, specialize=lambda shape, value, dtype, device=cpu: None if shape else host_array(value, dtype.np).copy)
def _(xp, shape, value, dtype, device=cpu, out=None):
    out = xp.empty(shape, dtype.np) if out is None else out
    out.fill(value)
    return out


# ---- views -------------------------------------------------------------------------------------------------------


def slice_bounds(index: tuple, size: int) -> tuple[int, int, int]:
    """`slice(*index).indices(size)` for a step of at least 1, also with symbolic sizes."""
    if not any([type(n) is SymInt for n in (*index, size)]):
        return slice(*index).indices(size)
    start, stop, step = index
    first, last = [default if n is None else n + size if n < 0 else n for n, default in ((start, 0), (stop, size))]
    return min(max(first, 0), size), min(max(last, 0), size), 1 if step is None else step


def getitem_spec(x: Spec, index: tuple) -> Spec:
    """The shape rule of basic indexing. A slice is a tuple (start, stop, step), which is hashable."""
    used = sum(1 for i in index if i is not None and i is not Ellipsis)
    if used > x.ndim:
        hint = "at most one index per axis" if x.ndim else "{x}.item() is its Python number"
        raise ShapeError(f"indexing: {used} indices for the {x.ndim} axes of {{x}}", hint=hint)
    shape, axis = [], 0
    for i in index:
        if i is None:
            shape.append(1)
        elif i is Ellipsis:
            shape += x.shape[axis : axis + x.ndim - used]
            axis += x.ndim - used
        elif i.__class__ is tuple:
            first, last, step = slice_bounds(i, x.shape[axis])
            shape.append(max(0, (last - first + step - (1 if step > 0 else -1)) // step))
            axis += 1
        else:
            n = x.shape[axis]
            if not -n <= i < n:
                hint = f"an index from {-n} to {n - 1}" if n else "an axis of size 0 has no element"
                raise OutOfRangeError(f"indexing: {i} is outside axis {axis} of {{x}}, which has size {n}", hint=hint)
            axis += 1
    return x.replace(shape=tuple(shape) + x.shape[axis:])


def indexed_labels(x: Spec, index: tuple) -> list[Labels]:
    """The labels of basic indexing: axes that are taken whole can be split."""
    kept = iter(range(x.ndim))
    result: list[int | None] = []
    for i in (*index, *[Ellipsis] * (Ellipsis not in index)):
        if i is None:
            result.append(None)
        elif i is Ellipsis:
            used = sum(1 for i in index if i is not None and i is not Ellipsis)
            result += [next(kept) for _ in range(x.ndim - used)]
        elif i.__class__ is tuple:
            whole = slice(*i).indices(x.shape[axis := next(kept)]) == (0, x.shape[axis], 1)
            result.append(axis if whole else None)
        else:
            next(kept)
    return [tuple([d if d in result else None for d in range(x.ndim)]), tuple(result)]


getitem = define(
    "getitem(x; index)",
    infer=getitem_spec,
    is_view=True,
    cached_view=True,
    vjp=lambda g, x_spec, index: view_write(zeros_of(x_spec), g, path=((getitem, {"index": index}),)),
    sharding=indexed_labels,
    linear=("x",),
    examples=[
        case(floats(3, 4), index=(1,)),
        case(floats(3, 4), index=((0, 3, 2), None, -1)),
        case(floats(5), index=(2,)),
        case(floats(2, 3, 4), index=(Ellipsis, (None, None, -1))),
        case(strided(4, 5), index=((1, 3, None),)),
    ],
    doc="Basic indexing, as in NumPy: integers, slices, None and Ellipsis; always a view.",
)


def index_view(index: tuple):
    """The function that applies an index. It appends an Ellipsis, so that NumPy returns a view and never a scalar."""
    index = tuple([slice(*i) if i.__class__ is tuple else i for i in index])
    return operator.itemgetter(index if Ellipsis in index else (*index, ...))


kernel(getitem, lambda xp, x, index: index_view(index)(x), specialize=lambda x, index: index_view(index))


def reshape_spec(x: Spec, shape: tuple[int, ...]) -> Spec:
    if math.prod(shape) != x.size:
        raise ShapeError(
            f"reshape: {{x}} has {x.size} elements, the shape {shape} has {math.prod(shape)}",
            hint="-1 for one axis lets minflow compute it: x.reshape(x.shape[0], -1)",
        )
    return x.replace(shape=shape)


reshape = define(
    "reshape(x; shape)",
    infer=reshape_spec,
    is_view=True,
    cached_view=True,
    vjp=lambda g, x_spec: reshape(g.contiguous(), shape=x_spec.shape),
    sharding=lambda x, shape: reshape_labels(x.shape, shape),
    linear=("x",),
    local_attrs="shape",
    examples=[case(floats(3, 4), shape=(2, 6)), case(floats(()), shape=(1, 1)), case(floats(0, 3), shape=(3, 0))],
    doc="A contiguous tensor in another shape.",
)
kernel(
    reshape, lambda xp, x, shape: x.reshape(shape), specialize=lambda x, shape: operator.methodcaller("reshape", shape)
)


def permute_spec(x: Spec, dims: tuple[int, ...]) -> Spec:
    if sorted(dims) != list(range(x.ndim)):
        raise ShapeError(
            f"permute: {dims} does not name each of the {x.ndim} axes of {{x}} once",
            hint=f"for example {tuple(range(x.ndim))[::-1]}",
        )
    return x.replace(shape=tuple([x.shape[d] for d in dims]))


permute = define(
    "permute(x; dims)",
    infer=permute_spec,
    is_view=True,
    cached_view=True,
    vjp=lambda g, dims: permute(g, dims=tuple(sorted(range(len(dims)), key=dims.__getitem__))),
    sharding=lambda x, dims: [tuple(range(x.ndim)), dims],
    linear=("x",),
    examples=[case(floats(2, 3, 4), dims=(2, 0, 1)), case(floats(3, 4), dims=(1, 0)), case(floats(()), dims=())],
    doc="x with its axes permuted.",
)
kernel(
    permute, lambda xp, x, dims: x.transpose(dims), specialize=lambda x, dims: operator.methodcaller("transpose", dims)
)


def expand_spec(x: Spec, shape: tuple[int, ...]) -> Spec:
    lead = len(shape) - x.ndim
    if lead < 0 or any(n != m and n != 1 for n, m in zip(x.shape, shape[lead:])):
        raise ShapeError(
            f"expand: {{x}} of shape {x.shape} cannot be repeated to shape {tuple(shape)}",
            hint="only axes of size 1, and new ones in front, can be repeated",
        )
    return x.replace(shape=tuple(shape))


expand = define(
    "expand(x; shape)",
    infer=expand_spec,
    is_view=True,
    cached_view=True,
    vjp=lambda g, x_spec: sum_to(g, shape=x_spec.shape),
    sharding=lambda x, shape: elementwise_labels([x], [x.replace(shape=shape)]),
    linear=("x",),
    local_attrs="shape",
    examples=[
        case(floats(3, 1), shape=(2, 3, 4)),
        case(floats(()), shape=(3,)),
        case(floats(3), shape=(3,)),
        case(floats(1, 3), shape=(0, 3)),
    ],
    doc="Repeat axes of size 1, and new axes in front, without copying.",
)


@kernel(expand, specialize=lambda x, shape: functools.partial(calls_of(x.device)[expand], shape=shape))
def _(xp, x, shape):
    return writable_like(xp.broadcast_to(x, shape), x)


def writable_like(view, x):
    """Make a view writable if `x` is: NumPy marks it read-only as a precaution, and `functionalize.write_into` checks
    itself.
    """
    if on_host(x) and x.flags.writeable:
        view.flags.writeable = True
    return view


detach = define(
    "detach(x)",
    infer=lambda x: x,
    is_view=True,
    sharding="... -> ...",
    linear=("x",),
    examples=[floats(3, 4), floats(())],
    doc="The same storage outside the tape: it passes no gradient.",
)
kernel(detach, lambda xp, x: x[...])

recompute = define(
    "recompute(x, after; call)",
    infer=lambda x, after, call: x,
    is_view=True,
    distributes=True,
    examples=[],
    doc="x unchanged: starts the recomputation of a checkpoint once the gradient `after` is available.",
)
kernel(recompute, lambda xp, x, after, call: x[...])


def diagonal_of(array, offset: int, dim1: int, dim2: int):
    """NumPy's diagonal, which in NumPy 2.4 reads outside the array for large offsets."""
    return array.diagonal(min(max(offset, -array.shape[dim1]), array.shape[dim2]), dim1, dim2)


def diagonal_spec(x: Spec, **places: int) -> Spec:
    return x.replace(shape=diagonal_of(namespace().broadcast_to(False, x.shape), **places).shape)


def diagonal_labels(x: Spec, offset: int, dim1: int, dim2: int) -> list[Labels]:
    labels = kept_labels(x.ndim, (dim1, dim2))[0]
    return [labels, (*[d for d in labels if d is not None], None)]


diagonal = define(
    "diagonal(x; offset, dim1, dim2)",
    infer=diagonal_spec,
    is_view=True,
    vjp=lambda g, x_spec, offset, dim1, dim2: view_write(
        zeros_of(x_spec), g, path=((diagonal, {"offset": offset, "dim1": dim1, "dim2": dim2}),)
    ),
    sharding=diagonal_labels,
    linear=("x",),
    examples=[case(floats(3, 4), offset=0, dim1=0, dim2=1), case(floats(2, 3, 3), offset=-1, dim1=1, dim2=2)],
    doc="The diagonal of two axes, as the last axis.",
)


@kernel(diagonal)
def _(xp, x, offset, dim1, dim2):
    return writable_like(diagonal_of(x, offset, dim1, dim2), x)


# ---- writes through a view, and their gradients -------------------------------------------------------------------


def view_write_spec(base: Spec, value, path) -> Spec:
    place = base
    for op, attrs in path:
        if not op.is_view:
            raise ShapeError(
                f"view_write: {op.name} is not a view op", hint="the result of getitem, permute or diagonal"
            )
        place = op.infer(place, **attrs)
    if isinstance(value, Spec) and (value.dtype is not place.dtype or expand_spec(value, place.shape) is not place):
        raise DTypeError(
            f"view_write: {{value}} is {value.dtype.name}, the place for it {place.dtype.name}",
            hint="{value}.to({base}.dtype)",
        )
    return base


def path_labels(base: Spec, value, path) -> list[Labels]:
    """The labels of a write: axes of the base that each view of the path takes whole. A view whose attrs depend on the
    part of a rank keeps none.
    """
    place = base
    kept: tuple[Any, ...] = tuple(range(base.ndim))
    for op, attrs in path:
        after = op.infer(place, **attrs)
        before, found = labels_of_call(op, (place,), attrs, (after,))
        known = dict(zip(before, kept)) if not op.local_attrs else {}
        kept, place = tuple([None if d is None else known.get(d) for d in found] or [None] * after.ndim), after
    repeated: Any = elementwise_labels([value], [place])[0]
    labels = tuple([d if d in kept else None for d in range(base.ndim)])
    return [labels, tuple([None if d is None else kept[d] for d in repeated]), labels]


view_write = define(
    "view_write(base, value; path)",
    infer=view_write_spec,
    alias_safe=True,
    vjp=dict(
        base=lambda g, value_spec, path: view_write(g, zeros_of(value_spec), path=path),
        value=lambda g, path: apply_path(g, path),
    ),
    domain="complex",  # moves elements, also between a complex base and its real view
    dtype_agnostic=True,
    sharding=path_labels,
    linear=("base, value",),
    examples=[
        case(floats(3, 4), floats(4), path=((getitem, {"index": (1,)}),)),
        case(
            floats(3, 4), floats(2, 2), path=((permute, {"dims": (1, 0)}), (getitem, {"index": ((0, 2, 1), (1, 3, 1))}))
        ),
    ],
    doc="`base` with `value` written through a path of views.",
)


@kernel(view_write)
def _(xp, base, value, path, out=None):
    out = xp.empty(base.shape, base.dtype) if out is None else out
    if out is not base:
        xp.copyto(out, base)
    place, calls = out, calls_of(device_of((out,)))
    for op, attrs in path:
        place = calls[op](place, **attrs)
    place[...] = value
    return out


def unrecorded_spec(new: Spec, old: Spec) -> Spec:
    need_spec("unrecorded", old, new=new)
    return old


unrecorded = define(
    "unrecorded(new, old)",
    infer=unrecorded_spec,
    vjp=dict(old=lambda g: g),
    is_view=True,
    second_order=False,  # its gradient deliberately differs from its derivative
    sharding="..., ... -> ...",
    linear=("new, old",),
    examples=[],
    doc="A write outside the tape: the value is `new`, gradients pass to `old` as if nothing was written.",
)
kernel(unrecorded, lambda xp, new, old: new)

overwritten = define(
    "overwritten(new, old)",
    infer=lambda new, old: unrecorded_spec(new, old),
    vjp=dict(new=lambda g: g, old=lambda g: zeros_of(g.spec)),
    is_view=True,
    sharding="..., ... -> ...",
    linear=("new, old",),
    examples=[case(floats(3, 4), floats(3, 4)), case(floats(()), floats(()))],
    doc="`new` in place of `old`, which stays on the tape with the gradient 0: `y.zero_()`.",
)
kernel(overwritten, lambda xp, new, old: new)


# ---- undoing broadcasting, and concatenation --------------------------------------------------------------------


def sum_to_spec(x: Spec, shape: tuple[int, ...]) -> Spec:
    return expand_spec(x.replace(shape=shape), x.shape).replace(shape=shape)


sum_to = define(
    "sum_to(x; shape)",
    infer=sum_to_spec,
    vjp=lambda g, x_spec: expand(g, shape=x_spec.shape),
    domain="holomorphic",
    flops=1,
    sharding=lambda x, shape: elementwise_labels([x.replace(shape=shape)], [x])[::-1],
    linear=("x",),
    local_attrs="shape",
    examples=[
        case(floats(3, 4), shape=(1, 4)),
        case(floats(2, 3, 4), shape=(3, 1)),
        case(floats(3, 4), shape=()),
        case(floats(0, 3), shape=(3,)),
        case(strided(4, 5), shape=(5,)),
    ],
    doc="Sum over broadcast axes, down to `shape`.",
)


@kernel(sum_to)
def _(xp, x, shape, out=None):
    lead = x.ndim - len(shape)
    axes = tuple(range(lead)) + tuple([lead + i for i, n in enumerate(shape) if n == 1 and x.shape[lead + i] != 1])
    out = xp.empty(shape, x.dtype) if out is None else out
    xp.add.reduce(x, axes, keepdims=True, out=out.reshape((1,) * lead + shape))
    return out


def cat_spec(*specs: Spec, dim: int) -> Spec:
    first = specs[0]
    need_axis("cat", first, dim)
    for i, s in enumerate(specs):
        if s.dtype is not first.dtype:
            raise DTypeError(
                f"cat: {{tensors[{i}]}} is {s.dtype.name}, {{tensors[0]}} is {first.dtype.name}",
                hint=f"{{tensors[{i}]}}.to({{tensors[0]}}.dtype)",
            )
        if s.ndim != first.ndim or s.shape[:dim] != first.shape[:dim] or s.shape[dim + 1 :] != first.shape[dim + 1 :]:
            raise ShapeError(
                f"cat along axis {dim}: {{tensors[{i}]}} has shape {s.shape}, {{tensors[0]}} has {first.shape}",
                hint=f"all axes but {dim} must be equal; stack() joins along a new axis",
            )
    return first.replace(shape=(*first.shape[:dim], sum(s.shape[dim] for s in specs), *first.shape[dim + 1 :]))


def cat_slice(g, position, specs, dim):
    """The slice of the cotangent that belongs to one of the joined tensors."""
    start = sum(s.shape[dim] for s in specs[:position])
    return getitem(g, index=(*((None, None, None),) * dim, (start, start + specs[position].shape[dim], None)))


cat = define(
    "cat(*tensors; dim)",
    infer=cat_spec,
    vjp={"*tensors": cat_slice},
    elementwise=None,
    domain="holomorphic",
    dtype_agnostic=True,
    sharding=lambda *tensors, dim: kept_labels(tensors[0].ndim, dim)[:1] * (len(tensors) + 1),
    linear=("*tensors",),
    examples=[
        case(floats(2, 3), floats(4, 3), dim=0),
        case(floats(2, 1), strided(2, 3), floats(2, 0), dim=1),
        case(distinct(2), dim=0),
    ],
    doc="Tensors concatenated along an axis.",
)
kernel(cat, lambda xp, *tensors, dim, out=None: xp.concatenate(tensors, dim, out=out))


def stack_spec(*specs: Spec, dim: int) -> Spec:
    first = specs[0]
    if not 0 <= dim <= first.ndim:
        raise OutOfRangeError(f"stack: dim={dim} is out of range for {{tensors[0]}}, which has {first.ndim} axes")
    for i, s in enumerate(specs):
        if (s.dtype, s.shape) != (first.dtype, first.shape):
            raise ShapeError(f"stack: {{tensors[{i}]}} is {s}, {{tensors[0]}} is {first}", hint="tensors of one shape")
    return first.replace(shape=(*first.shape[:dim], len(specs), *first.shape[dim:]))


stack = define(
    "stack(*tensors; dim)",
    infer=stack_spec,
    vjp={"*tensors": lambda g, position, dim: getitem(g, index=(*((None, None, None),) * dim, position))},
    domain="holomorphic",
    dtype_agnostic=True,
    sharding=lambda *tensors, dim: [
        *[tuple(range(tensors[0].ndim))] * len(tensors),
        (*range(dim), None, *range(dim, tensors[0].ndim)),
    ],
    linear=("*tensors",),
    examples=[
        case(floats(2, 3), strided(2, 3), dim=1),
        case(floats(()), floats(()), dim=0),
        case(distinct(2), dim=1),
        case(floats(2, 0), floats(2, 0), dim=2),
    ],
    doc="Tensors of one shape, joined along a new axis.",
)
kernel(stack, lambda xp, *tensors, dim, out=None: xp.stack(tensors, dim, out=out))


def pad_spec(x: Spec, widths: tuple, value) -> Spec:
    check_fits(value, x.dtype)
    if len(widths) != x.ndim or any([width < 0 for both in widths for width in both]):
        raise ShapeError(f"pad: widths {widths} for the {x.ndim} axes of {{x}}", hint="(before, after) for each axis")
    return x.replace(shape=tuple([before + n + after for n, (before, after) in zip(x.shape, widths)]))


pad = define(
    "pad(x; widths, value)",
    infer=pad_spec,
    vjp=lambda g, x_spec, widths: getitem(
        g, index=tuple([(before, before + n, None) for n, (before, _) in zip(x_spec.shape, widths)])
    ),
    domain="holomorphic",
    dtype_agnostic=True,
    flops=0,
    sharding=lambda x, widths, value: kept_labels(x.ndim, [d for d, width in enumerate(widths) if width != (0, 0)]),
    linear=lambda x, widths, value: () if value else ("x",),
    examples=[
        case(floats(3, 4), widths=((0, 0), (1, 2)), value=0),
        case(strided(2, 3), widths=((2, 0), (0, 1)), value=1.5),
        case(floats(2, 0, 3), widths=((1, 1), (1, 0), (0, 0)), value=-2),
        case(floats(()), widths=(), value=0),
    ],
    doc="x with a border of one value; widths: (before, after) for each axis.",
)


@functools.lru_cache(256)
def pad_slices(shape: tuple, widths: tuple) -> tuple:
    """The new shape, the slices of x in it, and those of the border."""
    inside: tuple[slice, ...] = ()
    beside: list[tuple[slice, ...]] = []
    for n, (before, after) in zip(shape, widths):
        beside += [(*inside, slice(before))] * (before > 0) + [(*inside, slice(before + n, None))] * (after > 0)
        inside += (slice(before, before + n),)
    return tuple([before + n + after for n, (before, after) in zip(shape, widths)]), (*inside, ...), beside


@kernel(pad)
def _(xp, x, widths, value, out=None):
    shape, inside, beside = pad_slices(x.shape, widths)
    out = xp.empty(shape, x.dtype) if out is None else out
    for place in beside:
        out[place] = value
    out[inside] = x
    return out
