"""Reductions: sums, means, products, extremes, median; and the cumulative sum.

`axis` is a sorted tuple of axes, or None for all of them; argmax, argmin and cumsum take one axis.
float16 is summed in float32. Read next: `functions/reduction.py`, the public functions with PyTorch's arguments.
"""

from __future__ import annotations

import math
from functools import partial

from ..backend import namespace, on_host
from ..base.errors import ShapeError
from ..host.float_warnings import silent
from ..kernels import kernel
from ..op import define
from ..sharding import reduction_labels, summed_labels, whole_lines
from ..spec import Spec, bool_, float32, float64, int64
from .compare import eq, isnan, logical_or
from .elementwise import where
from .examples import bools, case, distinct, floats, ints, positive, strided
from .index import flip
from .rules import (
    count,
    cumulative_rule,
    keepdims_shape,
    need_axis,
    need_floating,
    reduced,
    via_float32,
    widen_integers,
)
from .shape import cast, cat, expand, filled, getitem, in_float32, permute, reshape, zeros_of

EXAMPLES = [
    case(floats(3, 4), axis=None, keepdims=False),
    case(floats(2, 3, 4), axis=(1,), keepdims=False),
    case(floats(2, 3, 4), axis=(0, 2), keepdims=True),
    case(floats(()), axis=None, keepdims=False),
    case(strided(4, 5), axis=(0,), keepdims=False),
    case(floats(3, 4, dtype="float32"), axis=(1,), keepdims=False),
]
EMPTY_EXAMPLES = [case(floats(0, 3), axis=(0,), keepdims=False), case(floats(0, 3), axis=(1,), keepdims=True)]
INTEGERS = [case(ints(3, 4), axis=(0,), keepdims=False), case(bools(3, 4), axis=None, keepdims=False)]
MAX_NUMPY_ELEMENTS = 1 << 12  # elements; above that, a fast kernel may be quicker


def expand_reduced(g, x: Spec, axis):
    """g, which has a reduced shape, broadcast over the axes that were reduced."""
    if g.spec.ndim:
        g = reshape(g.contiguous(), shape=keepdims_shape(x.shape, axis))
    return expand(g, shape=x.shape)


def sum_dtype(x):
    """The dtype for sums: NumPy's own choice, except for float16."""
    return "float32" if x.dtype.char == "e" else None


sum = define(
    "sum(x; axis, keepdims)",
    lambda x, axis, keepdims: widen_integers(reduced(x, axis, keepdims)),
    lambda g, x_spec, axis: expand_reduced(g, x_spec, axis),
    domain="holomorphic",
    flops=1,
    sharding=lambda x, axis, keepdims: summed_labels(x.ndim, axis, keepdims),
    linear=("x",),
    attr_kinds={"axis": "integers or None"},
    examples=[*EXAMPLES, *EMPTY_EXAMPLES, *INTEGERS],
    doc="The sum; int64 for bools and integers.",
)


def numpy_sum(x: Spec, axis, keepdims: bool):
    """NumPy's own sum, for few elements, if strides and class cannot change its order of summation."""
    ndim = 0 if axis is None else x.ndim - len(axis)
    if x.size >= MAX_NUMPY_ELEMENTS or x.dtype not in (float32, float64) or keepdims or ndim > 1:
        return None
    xp = namespace()
    return partial(xp.add.reduce, axis=axis) if ndim else lambda array: xp.asarray(xp.add.reduce(array, axis))


@kernel(sum, specialize=numpy_sum)
def _(xp, x, axis, keepdims, out=None):
    return xp.add.reduce(x, axis, dtype=sum_dtype(x), keepdims=keepdims, out=out)


def mean_spec(x: Spec, axis, keepdims: bool) -> Spec:
    if not x.dtype.is_complex:
        need_floating("mean", x)
    return reduced(x, axis, keepdims)


@in_float32
def mean_of_sum(x, axis, keepdims):
    """The mean of parts of unequal size is a sum over all of them, which ranks add up before the division."""
    return sum(x, axis=axis, keepdims=keepdims) / (count(x.spec.shape, axis) or math.nan)


mean = define(
    "mean(x; axis, keepdims)",
    mean_spec,
    lambda g, x_spec, axis: expand_reduced(g / max(count(x_spec.shape, axis), 1), x_spec, axis),
    domain="holomorphic",
    flops=1,
    attr_kinds={"axis": "integers or None"},
    on_ranks=lambda **_: mean_of_sum,
    examples=EXAMPLES,
    doc="The sum divided by the count; NaN if there are no elements.",
)


@kernel(mean)
def _(xp, x, axis, keepdims, out=None):
    n = count(x.shape, axis) or xp.nan
    if sum_dtype(x):
        return xp.true_divide(
            xp.add.reduce(x, axis, dtype="float32", keepdims=keepdims), n, out=out, casting="same_kind"
        )
    return xp.true_divide(xp.add.reduce(x, axis, keepdims=keepdims, out=out), n, out=out)


# A primitive: the gradient needs only x and its mean, and float16 is squared in float32.
var = define(
    "var(x; axis, keepdims, correction)",
    lambda x, axis, keepdims, correction: var_spec(x, axis, keepdims),
    lambda g, x, axis, correction: (
        expand_reduced(g, x.spec, axis) * var_grad_factor(x, axis, count(x.spec.shape, axis) - correction)
    ),
    flops=4,
    attr_kinds={"axis": "integers or None"},
    sharding=reduction_labels,
    examples=[case(m.inputs[0], **m.attrs, correction=k) for m, k in zip(EXAMPLES, (1, 0, 1, 0, 0.5, 1))],
    doc="Squared distances to the mean, summed and divided by the count minus `correction`.",
)


def var_spec(x: Spec, axis, keepdims: bool) -> Spec:
    need_floating("var", x)
    return reduced(x, axis, keepdims)


def var_grad_factor(x, axis, free: float):
    """The factor in the gradient of var. Without degrees of freedom it is as in PyTorch: infinite over all axes."""
    middle = mean(x, axis=axis, keepdims=True)
    if axis is None and free <= 0:
        return where(eq(x, middle), math.nan, math.inf)
    return (x - middle) * (2 / free if free else math.inf)


@kernel(var)
@via_float32
def _(xp, x, axis, keepdims, correction, out=None):
    n = count(x.shape, axis)
    with silent():
        away = x - xp.add.reduce(x, axis, keepdims=True) / (n or xp.nan)
        total = xp.add.reduce(away * away, axis, keepdims=keepdims)
        return xp.true_divide(total, max(n - correction, 0.0) if n else 0.0, out=out)


prod = define(
    "prod(x; axis, keepdims)",
    lambda x, axis, keepdims: widen_integers(reduced(x, axis, keepdims)),
    lambda g, x, axis: product_of_others(g, x, axis),
    domain="holomorphic",
    autocast="float32",
    flops=1,
    attr_kinds={"axis": "integers or None"},
    sharding=reduction_labels,
    examples=[*EXAMPLES, *EMPTY_EXAMPLES, *INTEGERS, case(positive(3, 4), axis=(0,), keepdims=False)],
    doc="The product; int64 for bools and integers.",
)
kernel(
    prod,
    lambda xp, x, axis, keepdims, out=None: xp.multiply.reduce(x, axis, dtype=sum_dtype(x), keepdims=keepdims, out=out),
)


def product_of_others(g, x, axis):
    """g times the product of all other factors, by a tree of products, up and down again.

    It never divides, so a factor may be 0, and second derivatives are correct there too.
    """
    shape, axes = x.spec.shape, tuple(range(x.spec.ndim)) if axis is None else axis
    kept = tuple([i for i in range(len(shape)) if i not in axes])
    sizes, n = tuple([shape[i] for i in kept]), count(shape, axis)
    if not n:
        return zeros_of(x.spec)
    level = reshape(permute(x, dims=kept + axes).contiguous(), shape=(*sizes, n))
    ones = filled(x.spec.replace(shape=(*sizes, (1 << (n - 1).bit_length()) - n)), 1)
    level, pairs = cat(level, ones, dim=len(sizes)), []
    while (size := level.spec.shape[-1]) > 1:
        pairs.append([getitem(level, index=(Ellipsis, half)) for half in ((0, size // 2, 1), (size // 2, size, 1))])
        level = pairs[-1][0] * pairs[-1][1]
    rest = reshape(g.contiguous(), shape=(*sizes, 1))
    for left, right in reversed(pairs):
        rest = cat(rest * right, rest * left, dim=len(sizes))
    rest = reshape(
        getitem(rest, index=(Ellipsis, (0, n, 1))).contiguous(), shape=sizes + tuple([shape[i] for i in axes])
    )
    return permute(rest, dims=tuple([(kept + axes).index(i) for i in range(len(shape))]))


def nonempty_spec(name: str, x: Spec, axis) -> Spec:
    """The shape rule of ops that need at least one element along the axes."""
    if not count(x.shape, axis):
        place = "" if axis is None else f" along {'axis' if len(axis) == 1 else 'axes'} {', '.join(map(str, axis))}"
        raise ShapeError(
            f"{name}: {{x}} has no elements{place}, and of nothing there is no {name.removeprefix('a')}",
            hint="check x.numel() first",
        )
    return x


def extreme_op(name: str, method: str, doc: str):
    op = define(
        f"{name}(x; axis, keepdims)",
        lambda x, axis, keepdims: reduced(nonempty_spec(name, x, axis), axis, keepdims),
        lambda g, x, out, axis: divide_among_extremes(g, x, out, axis),
        sharding=reduction_labels,
        examples=[*[case(distinct(*m.inputs[0].shape), **m.attrs) for m in EXAMPLES[:3]], *EXAMPLES[3:], *INTEGERS],
        flops=1,
        attr_kinds={"axis": "integers or None"},
        doc=doc,
    )
    kernel(op, lambda xp, x, axis, keepdims, out=None: getattr(x, method)(axis, out=out, keepdims=keepdims))
    return op


def divide_among_extremes(g, x, out, axis):
    """Divide g among the elements that equal the result; NaN elements count as equal to a NaN result."""
    hit = cast(logical_or(eq(x, expand_reduced(out, x.spec, axis)), isnan(x)), dtype=g.spec.dtype)
    return expand_reduced(g / reshape(sum(hit, axis=axis, keepdims=False), shape=g.spec.shape), x.spec, axis) * hit


amax = extreme_op("amax", "max", "The maximum; NaN wins; ties share the gradient.")
amin = extreme_op("amin", "min", "The minimum; NaN wins; ties share the gradient.")


median = define(
    "median(x)",
    lambda x: nonempty_spec("median", x, None).replace(shape=()),
    lambda g, x, out: divide_among_extremes(g, x, out, None),
    examples=[distinct(5), distinct(3, 4), floats(()), strided(4, 5), floats(5, dtype="float32"), ints(7)],
    doc="The median (the lower of two middle elements); NaN wins; ties share the gradient.",
)


@kernel(median)
def _(xp, x, out=None):
    flat = x.reshape(-1)
    ranked = xp.partition(flat, ((flat.size - 1) // 2, flat.size - 1))
    middle, last = ranked[(flat.size - 1) // 2], ranked[-1]
    out = xp.empty((), x.dtype) if out is None else out
    # NaN is sorted last
    out[...] = middle if on_host(x) and last == last else xp.where(last == last, middle, last)
    return out


def arg_op(name: str, doc: str):
    def infer(x: Spec, axis: int | None, keepdims: bool) -> Spec:
        if axis is not None:
            need_axis(name, x, axis)
        axes = None if axis is None else (axis,)
        if not count(x.shape, axes):
            raise ShapeError(f"{name}: {{x}} has no elements to choose from", hint="check x.numel() first")
        return reduced(x, axes, keepdims).replace(dtype=int64)

    op = define(
        f"{name}(x; axis, keepdims)",
        infer,
        attr_kinds={"axis": "integer or None"},
        sharding=reduction_labels,
        doc=doc,
        examples=[
            case(distinct(3, 4), axis=None, keepdims=False),
            case(distinct(2, 3, 4), axis=1, keepdims=True),
            case(distinct(3, 4), axis=0, keepdims=False),
            case(floats(()), axis=None, keepdims=False),
            case(ints(3, 4), axis=1, keepdims=False),
            case(strided(4, 5), axis=0, keepdims=False),
        ],
    )
    kernel(op, lambda xp, x, axis, keepdims, out=None: getattr(xp, name)(x, axis, keepdims=keepdims, out=out))
    return op


argmax = arg_op("argmax", "The index of the first maximum, in the flattened tensor if axis is None.")
argmin = arg_op("argmin", "The index of the first minimum, in the flattened tensor if axis is None.")


def quantifier(name: str, doc: str):
    op = define(
        f"{name}(x; axis, keepdims)",
        lambda x, axis, keepdims: reduced(x, axis, keepdims).replace(dtype=bool_),
        domain="complex",
        sharding=reduction_labels,
        examples=[*EXAMPLES, *EMPTY_EXAMPLES, *INTEGERS],
        attr_kinds={"axis": "integers or None"},
        doc=doc,
    )
    kernel(op, lambda xp, x, axis, keepdims, out=None: getattr(x, name)(axis, out=out, keepdims=keepdims))
    return op


any = quantifier("any", "True if an element is nonzero.")
all = quantifier("all", "True if all elements are nonzero.")


cumsum = define(
    "cumsum(x; axis)",
    cumulative_rule("cumsum"),
    lambda g, axis: flip(cumsum(flip(g, axes=(axis,)), axis=axis), axes=(axis,)),
    domain="holomorphic",
    flops=1,
    sharding=whole_lines(2),
    linear=("x",),
    examples=[
        case(floats(3, 4), axis=0),
        case(floats(2, 3, 4), axis=1),
        case(strided(4, 5), axis=1),
        case(floats(0, 3), axis=0),
        case(ints(3, 4), axis=1),
        case(bools(4), axis=0),
    ],
    doc="The cumulative sum along an axis.",
    slow_on_numpy=True,
)
kernel(cumsum, lambda xp, x, axis, out=None: xp.add.accumulate(x, axis, dtype=sum_dtype(x), out=out))
