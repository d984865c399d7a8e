"""softmax, log_softmax, and the losses over classes that are fused with them.

Classes are along axis 1 (axis 0 of a single example). Labels that equal `ignore_index` are ignored.
Source: Goodfellow, Bengio & Courville 2016, section 6.2.2.3.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from ..backend import on_host
from ..base.errors import OutOfRangeError, ShapeError
from ..host.float_warnings import silent
from ..kernels import kernel
from ..op import OPS, define
from ..sharding import Labels, kept_labels
from ..source_location import fail
from ..spec import Spec, float16, float32, spec_of
from .compare import ne
from .elementwise import exp
from .examples import case, floats, ints, strided
from .reduce import sum as total
from .rules import need_axis, need_floating, need_index, need_spec, via_float32
from .shape import cast, filled, in_float32, reshape


def softmax_spec(op: str):
    def infer(x: Spec, dim: int) -> Spec:
        need_floating(op, x)
        if x.ndim:
            need_axis(op, x, dim)
        return x

    return infer


SHAPES = [
    case(floats(3, 4), dim=1),
    case(floats(3, 4), dim=0),
    case(floats(2, 3, 4), dim=1),
    case(floats(5), dim=0),
    case(floats(0, 3), dim=1),
    case(strided(4, 5), dim=1),
    case(floats(3, dtype="float32"), dim=0),
]


def kept_sum(x, dim: int):
    return total(x, axis=(dim,), keepdims=True) if x.spec.ndim else x


def as_float32(x):
    """float16 as float32, because cancellation and long sums lose too much precision in it."""
    return cast(x, dtype=float32) if x.spec.dtype is float16 else x


def softmax_slope(g, out, dim: int):
    return out * (g - kept_sum(g * out, dim))


softmax = define(
    "softmax(x; dim)",
    softmax_spec("softmax"),
    lambda g, out, dim: softmax_slope(as_float32(g), as_float32(out), dim),
    flops=4,
    sharding=lambda x, dim: kept_labels(x.ndim, dim),
    examples=SHAPES,
    doc="exp(x) / sum(exp(x)) along an axis.",
)


def row_max(xp, x, axis):
    """The largest element along an axis, which is kept."""
    if on_host(x):
        return xp.maximum.reduce(x, axis, keepdims=True, initial=-xp.inf)  # 10 % faster than max
    return x.max(axis, keepdims=True) if x.size else 0


@kernel(softmax)
@via_float32
def _(xp, x, dim, out=None):
    out, axis = xp.empty(x.shape, x.dtype) if out is None else out, dim if x.ndim else None
    with silent():
        xp.subtract(x, row_max(xp, x, axis), out=out)
        xp.exp(out, out=out)
        return xp.divide(out, xp.add.reduce(out, axis, keepdims=True), out=out)


log_softmax = define(
    "log_softmax(x; dim)",
    softmax_spec("log_softmax"),
    lambda g, out, dim: as_float32(g) - exp(as_float32(out)) * kept_sum(as_float32(g), dim),
    flops=4,
    sharding=lambda x, dim: kept_labels(x.ndim, dim),
    examples=SHAPES,
    doc="log(softmax(x)) along an axis, computed without overflow.",
)


@kernel(log_softmax)
@via_float32
def _(xp, x, dim, out=None):
    out, axis = xp.empty(x.shape, x.dtype) if out is None else out, dim if x.ndim else None
    with silent():
        xp.subtract(x, row_max(xp, x, axis), out=out)
        return xp.subtract(out, xp.log(xp.add.reduce(xp.exp(out), axis, keepdims=True)), out=out)


# ---- shared by the losses: scores as rows, and labels that count ------------------------------------------------


def axis_of_classes(ndim: int) -> int:
    return 1 if ndim > 1 else 0


def as_rows(xp, x):
    """Reshape (N, C, ...) or (C,) to (examples, C)."""
    if x.ndim == 1:
        return x[None]
    return x if x.ndim == 2 else xp.moveaxis(x, 1, -1).reshape(-1, x.shape[1])


def from_rows(xp, flat, shape, out):
    """Reshape (examples, C) back to `shape`, in out if that is given."""
    if len(shape) > 2:
        flat = xp.moveaxis(flat.reshape(shape[0], *shape[2:], shape[1]), -1, 1)
    out[...] = flat.reshape(shape)
    return out


def mask_ignored(xp, labels, ignore_index: int):
    """(labels with 0 for ignored ones, mask of the others or None for all, number of the others).

    The number of labels on a device is an array there.
    """
    labels = labels.reshape(-1)
    if on_host(labels) and not (labels == ignore_index).any():
        return labels, None, labels.size
    keep = labels != ignore_index
    return xp.where(keep, labels, 0), keep, int(keep.sum()) if on_host(labels) else keep.sum()


def with_checked_labels(function: Callable) -> Callable:
    """Wrap a kernel whose second input is labels.

    Labels of a program are checked before (`checked_labels`); labels in a loaded graph may be anything, and NumPy finds
    wrong ones at no extra cost. On another device, they select other elements.
    """

    @functools.wraps(function)
    def run(xp, *arrays, out=None, **attrs):
        try:
            return function(xp, *arrays, out=out, **attrs)
        except IndexError:
            what = f"cross_entropy: labels go from {arrays[1].min()} to {arrays[1].max()}, and some are not classes"
            fail(OutOfRangeError, what, "labels from 0 to the number of classes minus 1", labels=spec_of(arrays[1]))

    return run


def reduce_rows(xp, losses, n, reduction: str, out):
    """Reduce one loss per example (0 for ignored ones); the mean of none is NaN, as in PyTorch."""
    if reduction == "none":
        out[...] = losses.reshape(out.shape)
    elif reduction == "sum":
        out[...] = losses.sum()
    else:
        out[...] = losses.sum() / n.astype(losses.dtype) if hasattr(n, "dtype") else losses.sum() / n if n else xp.nan
    return out


def loss_spec(x: Spec, labels: Spec, reduction: str, op: str = "cross_entropy") -> Spec:
    need_floating(op, x)
    need_index(op, labels, "labels")
    axis = axis_of_classes(x.ndim)
    if not x.ndim or labels.shape != x.shape[:axis] + x.shape[axis + 1 :] or not x.shape[axis]:
        raise ShapeError(
            f"{op}: {{labels}} is {list(labels.shape)}, {{x}} {list(x.shape)}",
            hint="scores (N, C, ...) and labels (N, ...)",
        )
    return x.replace(shape=labels.shape if reduction == "none" else ())


def scores_spec(x: Spec, labels: Spec, grad: Spec, reduction: str) -> Spec:
    """The spec of x; raises unless the loss of x has the spec of this cotangent."""
    need_spec("cross_entropy", loss_spec(x, labels, reduction), grad=grad)
    return x


def example_labels(x: Spec, reduction: str) -> tuple[Labels, Labels, Labels]:
    """Labels of scores, of their classes, and of losses: examples can be split, except those of a mean, whose number
    each rank would need.
    """
    axis = axis_of_classes(x.ndim)
    scores = tuple([None if d == axis or reduction == "mean" else d for d in range(x.ndim)])
    labels = scores[:axis] + scores[axis + 1 :]
    return scores, labels, labels if reduction == "none" else ()


def mean_of_sums(name: str) -> Callable:
    """`Op.on_ranks` of a loss: with the reduction "mean", the sum divided by the number of labels of all ranks."""

    @in_float32
    def parts(x, labels, ignore_index, reduction):
        result = OPS[name](x, labels, ignore_index=ignore_index, reduction="sum")
        counted = total(cast(ne(labels, ignore_index), dtype=x.spec.dtype), axis=None, keepdims=False)
        return (result[0] / counted, *result[1:]) if isinstance(result, list | tuple) else result / counted

    return lambda reduction, **_: parts if reduction == "mean" else None


def row_scale(xp, g, keep, n, reduction: str):
    """The factor of each example's gradient: a number, or one per example."""
    if reduction == "mean":
        g = g / (xp.maximum(n, 1).astype(g.dtype) if hasattr(n, "dtype") else g.dtype.type(n or 1))
    scale = g.reshape(-1, 1) if reduction == "none" else g
    return scale if keep is None else scale * keep.reshape(-1, 1)


OPTIONS = dict(ignore_index=-100, reduction="mean")
LOSSES = [
    case(floats(3, 4), ints(3, high=4), **OPTIONS),
    case(floats(3, 4), ints(3, high=4), ignore_index=2, reduction="sum"),
    case(floats(2, 3, 4), ints(2, 4, high=3), ignore_index=-100, reduction="none"),
    case(floats(4), ints((), high=4), **OPTIONS),
    case(strided(4, 5), ints(4, high=5, dtype="int32"), ignore_index=1, reduction="mean"),
]

# ---- negative log-likelihood -------------------------------------------------------------------------------------

nll = define(
    "nll(x, labels; ignore_index, reduction)",
    lambda x, labels, ignore_index, reduction: loss_spec(x, labels, reduction),
    dict(
        x=lambda g, labels, x_spec, ignore_index, reduction: nll_grad(
            g, labels, shape=x_spec.shape, ignore_index=ignore_index, reduction=reduction
        )
    ),
    autocast="float32",
    flops=1,
    sharding=lambda x, labels, ignore_index, reduction: example_labels(x, reduction),
    linear=("x",),
    on_ranks=mean_of_sums("nll"),
    examples=LOSSES,
    doc="-x[label] of each example: the loss of log-probabilities.",
)


@kernel(nll)
@via_float32
@with_checked_labels
def _(xp, x, labels, ignore_index, reduction, out=None):
    out = xp.empty(labels.shape if reduction == "none" else (), x.dtype) if out is None else out
    flat = as_rows(xp, x)
    chosen, keep, n = mask_ignored(xp, labels, ignore_index)
    losses = -flat[xp.arange(len(flat)), chosen]
    return reduce_rows(xp, losses if keep is None else xp.where(keep, losses, 0), n, reduction, out)


nll_grad = define(
    "nll_grad(grad, labels; shape, ignore_index, reduction)",
    lambda grad, labels, shape, ignore_index, reduction: scores_spec(
        grad.replace(shape=shape), labels, grad, reduction
    ),
    dict(
        grad=lambda g, labels, ignore_index, reduction: nll(g, labels, ignore_index=ignore_index, reduction=reduction)
    ),
    flops=1,
    sharding=lambda grad, labels, shape, ignore_index, reduction: example_labels(grad.replace(shape=shape), reduction)[
        ::-1
    ],
    linear=("grad",),
    local_attrs="shape",
    examples=[
        case(floats(()), ints(3, high=4), shape=(3, 4), **OPTIONS),
        case(floats(2, 4), ints(2, 4, high=3), shape=(2, 3, 4), ignore_index=1, reduction="none"),
    ],
    doc="The gradient of nll with respect to its scores.",
)


@kernel(nll_grad)
@with_checked_labels
def _(xp, grad, labels, shape, ignore_index, reduction, out=None):
    out = xp.empty(shape, grad.dtype) if out is None else out
    classes = shape[axis_of_classes(len(shape))]
    chosen, keep, n = mask_ignored(xp, labels, ignore_index)
    flat = xp.zeros((len(chosen), classes), grad.dtype)
    scale = xp.broadcast_to(row_scale(xp, grad, None, n, reduction), (len(flat), 1))[:, 0]
    flat[xp.arange(len(flat)), chosen] = -scale if keep is None else xp.where(keep, -scale, 0)  # no 0 * NaN
    return from_rows(xp, flat, shape, out)


# ---- fused softmax and cross-entropy ----------------------------------------------------------------------------


def cross_entropy_rule(g, out1, labels, ignore_index, reduction):
    """The gradient through the loss, and (in second derivatives) through the probabilities."""
    loss_g, probs_g = g
    result = None
    if loss_g is not None:
        result = softmax_cross_entropy_grad(out1, labels, loss_g, ignore_index=ignore_index, reduction=reduction)
    if probs_g is not None:
        through = out1 * (probs_g - kept_sum(probs_g * out1, axis_of_classes(out1.spec.ndim)))
        result = through if result is None else result + through
    return result


softmax_cross_entropy = define(
    "softmax_cross_entropy(x, labels; ignore_index, reduction) -> loss, probs",
    lambda x, labels, ignore_index, reduction: (loss_spec(x, labels, reduction), x),
    dict(x=cross_entropy_rule),
    autocast="float32",
    flops=4,
    sharding=lambda x, labels, ignore_index, reduction: (
        *example_labels(x, reduction),
        example_labels(x, reduction)[0],
    ),
    on_ranks=mean_of_sums("softmax_cross_entropy"),
    examples=LOSSES,
    doc="-log softmax(x)[label]; the second result, softmax(x), is saved for the gradient.",
    slow_on_numpy=True,
)


@kernel(softmax_cross_entropy)
@via_float32
@with_checked_labels
def _(xp, x, labels, ignore_index, reduction, out=None):
    if out is None:
        out = xp.empty(labels.shape if reduction == "none" else (), x.dtype), xp.empty(x.shape, x.dtype)
    loss, probs = out
    flat = as_rows(xp, x)
    chosen, keep, n = mask_ignored(xp, labels, ignore_index)
    with silent():
        shifted = flat - row_max(xp, flat, 1)
        at_label = shifted[xp.arange(len(flat)), chosen]
        xp.exp(shifted, out=shifted)
        sums = shifted.sum(1, keepdims=True)
        xp.divide(shifted, sums, out=shifted)
        losses = xp.log(sums[:, 0]) - at_label
    from_rows(xp, shifted, x.shape, probs)
    reduce_rows(xp, losses if keep is None else xp.where(keep, losses, 0), n, reduction, loss)
    return out


def example_weights(grad, labels, shape, ignore_index: int, reduction: str):
    """The factors in the rule of the gradient op, as a tensor that broadcasts against the scores."""
    axis = axis_of_classes(len(shape))
    keep = cast(ne(labels, ignore_index), dtype=grad.spec.dtype)
    if reduction == "mean":
        grad = grad / total(keep, axis=None, keepdims=False)
    kept = reshape(keep, shape=(*shape[:axis], 1, *shape[axis + 1 :]))
    return reshape(grad, shape=kept.spec.shape) * kept if reduction == "none" else grad * kept


def scale_rule(g, probs, labels, grad_spec, ignore_index, reduction):
    ones = filled(grad_spec, 1)
    product = g * softmax_cross_entropy_grad(probs, labels, ones, ignore_index=ignore_index, reduction=reduction)
    axis = axis_of_classes(product.spec.ndim)
    return total(product, axis=(axis,) if reduction == "none" else None, keepdims=False)


softmax_cross_entropy_grad = define(
    "softmax_cross_entropy_grad(probs, labels, grad; ignore_index, reduction)",
    lambda probs, labels, grad, ignore_index, reduction: scores_spec(probs, labels, grad, reduction),
    dict(
        probs=lambda g, labels, grad, probs_spec, ignore_index, reduction: (
            g * example_weights(grad, labels, probs_spec.shape, ignore_index, reduction)
        ),
        grad=scale_rule,
    ),
    flops=2,
    sharding=lambda probs, labels, grad, ignore_index, reduction: (
        *example_labels(probs, reduction),
        example_labels(probs, reduction)[0],
    ),
    linear=("grad",),
    examples=[
        case(floats(3, 4, low=0.1, high=0.9), ints(3, high=4), floats(()), **OPTIONS),
        case(floats(2, 3, 4, low=0.1, high=0.9), ints(2, 4, high=3), floats(2, 4), ignore_index=1, reduction="none"),
        case(floats(3, 4, low=0.1, high=0.9), ints(3, high=4), floats(()), ignore_index=2, reduction="mean"),
    ],
    doc="(softmax(x) - one_hot(label)) * grad: the gradient of softmax_cross_entropy with respect to its scores.",
    slow_on_numpy=True,
)


@kernel(softmax_cross_entropy_grad)
@via_float32
@with_checked_labels
def _(xp, probs, labels, grad, ignore_index, reduction, out=None):
    out = xp.empty(probs.shape, probs.dtype) if out is None else out
    chosen, keep, n = mask_ignored(xp, labels, ignore_index)
    scale = row_scale(xp, grad, keep, n, reduction)
    if probs.ndim == 2:
        xp.multiply(probs, scale, out=out)
        index = xp.arange(len(probs)), chosen
        out[index] -= xp.broadcast_to(scale, (len(probs), 1))[:, 0]
        return out
    flat = as_rows(xp, probs).copy()
    flat[xp.arange(len(flat)), chosen] -= 1
    return from_rows(xp, flat * scale, probs.shape, out)
