"""Losses of labels, with class weights and smoothing, and their gradients: one read of the scores each.

The mean needs the sum of all labels' weights, so it takes a second launch. Read next: `sources/cross_entropy.cu`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....core.backend import Array, is_array
from ....core.kernels import kernel
from ....core.ops.loss_classes import cross_entropy, nll_loss
from ....core.ops.softmax import axis_of_classes, nll, nll_grad, softmax_cross_entropy, softmax_cross_entropy_grad
from ....core.spec import Spec
from ..device_code import C_NAMES, supported
from ..row_teams import BLOCK, MOST_BLOCKS, contiguous, launch_rows, lines, row_blocks, sum_dtype, team_size

SOURCE = "cross_entropy.cu"
OPTIONS: dict[str, Any] = dict(platform="cupy", declines=True, bfloat16=True, tolerance=128)  # sums of both signs
INTEGERS = [name for name in C_NAMES if "int" in name]
LEAST = 1e-300  # no least sum of weights: that of no labels gives NaN


def fits(like: Array, labels: Array, weight: Array | float, *floats: Array | None) -> bool:
    """True for labels that are integers on the device, and a weight that is a number or has float elements."""
    return (
        is_array(labels)
        and supported(labels, dtypes=INTEGERS)
        and supported(like, *[x for x in floats if x is not None])
        and (supported(weight) if is_array(weight) else not isinstance(weight, complex))
    )


def pointer_and_number(weight: Array | float) -> tuple[Array | None, float]:
    """The arguments of a kernel for a weight per class, or one number."""
    return (weight, 1.0) if is_array(weight) else (None, float(weight))


def dtypes(x: Array, labels: Array, weight: Array | float) -> dict[str, Any]:
    return {"T": x.dtype, "L": labels.dtype, "W": getattr(weight, "dtype", x.dtype), "ACC": sum_dtype(x)}


def losses(
    xp: Any,
    x: Array,
    labels: Array,
    weight: Array | float,
    loss: Array,
    ignore_index: int,
    reduction: str,
    smoothing: float = 0.0,
    probabilities: Array | None = None,
    scores: int = 1,
) -> Any:
    """Write the loss of scores, or of log-probabilities; and the probabilities, if an array for them is given."""
    (x, labels), whole = contiguous(xp, x, labels), reduction != "none"
    if not fits(x, labels, weight, loss, probabilities):
        return NotImplemented
    rows, columns, inner = lines(x, axis_of_classes(x.ndim))
    team, types = team_size(rows, columns, inner) if scores else 1, dtypes(x, labels, weight)
    blocks = row_blocks(rows, team, MOST_BLOCKS)
    parts = xp.empty((blocks, 2), types["ACC"]) if whole else None
    outs = probabilities, None if whole else loss, parts
    sizes = float(smoothing), rows, columns, inner, ignore_index
    options: dict[str, Any] = dict(types=types, SCORES=scores)
    given = x, labels, *pointer_and_number(weight)
    launch_rows(SOURCE, "loss_rows", rows, team, *given, *outs, *sizes, most=blocks, **options)
    if whole:
        launch_rows(SOURCE, "add_losses", 1, BLOCK, parts, loss, blocks, int(reduction == "mean"), **options)
    return loss


def gradient(
    xp: Any,
    x: Array | None,
    labels: Array,
    weight: Array | float,
    grad: Array,
    out: Array,
    ignore_index: int,
    reduction: str,
    smoothing: float = 0.0,
    probabilities: Array | None = None,
    scores: int = 1,
    least: float = LEAST,
) -> Any:
    """Write the gradient with respect to scores x, or with `probabilities` in place of x; or to log-probabilities.

    least: the least sum of the weights by which the gradient of a mean is divided.
    """
    labels, grad = contiguous(xp, labels, grad)
    if x is not None or probabilities is not None:
        (given,) = contiguous(xp, probabilities if x is None else x)
    else:
        given = out
    if not fits(out, labels, weight, grad, given) or not out.dtype == grad.dtype == given.dtype:
        return NotImplemented
    rows, columns, inner = lines(out, axis_of_classes(out.ndim))
    team, types = team_size(rows, columns, inner), dtypes(out, labels, weight)
    options: dict[str, Any] = dict(types=types, SCORES=scores)
    factors, parts, blocks = pointer_and_number(weight), None, 0
    if reduction == "mean":
        blocks = row_blocks(rows, 1, BLOCK)
        parts = xp.empty((blocks, 2), types["ACC"])
        counted = labels, *factors, parts, rows, columns, ignore_index
        launch_rows(SOURCE, "count_labels", rows, 1, *counted, most=blocks, **options)
    sizes = float(smoothing), least, blocks, rows, columns, inner, ignore_index, int(reduction == "none")
    arrays = given, None if probabilities is None else given, labels, grad, *factors, parts, out
    launch_rows(SOURCE, "loss_grad_rows", rows, team, *arrays, *sizes, most=MOST_BLOCKS, **options)
    return out


def new_loss(xp: Any, x: Array, labels: Array, reduction: str) -> Array:
    return xp.empty(labels.shape if reduction == "none" else (), x.dtype)


@kernel(softmax_cross_entropy, **OPTIONS)
def _(xp, x, labels, ignore_index, reduction, out=None):
    out = (new_loss(xp, x, labels, reduction), xp.empty(x.shape, x.dtype)) if out is None else out
    done = losses(xp, x, labels, 1, out[0], ignore_index, reduction, probabilities=out[1])
    return NotImplemented if done is NotImplemented else out


@kernel(softmax_cross_entropy_grad, **OPTIONS)
def _(xp, probs, labels, grad, ignore_index, reduction, out=None):
    out = xp.empty(probs.shape, probs.dtype) if out is None else out
    return gradient(xp, None, labels, 1, grad, out, ignore_index, reduction, probabilities=probs, least=1.0)


@kernel(nll, **OPTIONS)
def _(xp, x, labels, ignore_index, reduction, out=None):
    out = new_loss(xp, x, labels, reduction) if out is None else out
    return losses(xp, x, labels, 1, out, ignore_index, reduction, scores=0)


@kernel(nll_grad, **OPTIONS)
def _(xp, grad, labels, shape, ignore_index, reduction, out=None):
    out = xp.empty(shape, grad.dtype) if out is None else out
    return gradient(xp, None, labels, 1, grad, out, ignore_index, reduction, scores=0, least=1.0)


@kernel(nll_loss, **OPTIONS)
def _(xp, x, labels, weight, ignore_index, reduction, out=None):
    out = new_loss(xp, x, labels, reduction) if out is None else out
    return losses(xp, x, labels, weight, out, ignore_index, reduction, scores=0)


@kernel(cross_entropy, **OPTIONS)
def _(xp, x, labels, weight, ignore_index, label_smoothing, reduction, out=None):
    out = new_loss(xp, x, labels, reduction) if out is None else out
    return losses(xp, x, labels, weight, out, ignore_index, reduction, label_smoothing)


def only_of_scores(grad: Spec, x: Spec, labels: Spec, weight: Spec | type, needs: int, **attrs: Any) -> bool:
    """True if the weight needs no gradient."""
    return needs == 1 and grad.dtype is x.dtype


@kernel(nll_loss.gradient, **OPTIONS, accepts=only_of_scores)
def _(xp, grad, x, labels, weight, ignore_index, reduction, needs, out=None):
    return gradient_of_composite(xp, grad, x, labels, weight, ignore_index, reduction, needs, out, scores=0)


@kernel(cross_entropy.gradient, **OPTIONS, accepts=only_of_scores)
def _(xp, grad, x, labels, weight, ignore_index, label_smoothing, reduction, needs, out=None):
    options = dict(smoothing=label_smoothing)
    return gradient_of_composite(xp, grad, x, labels, weight, ignore_index, reduction, needs, out, **options)


def gradient_of_composite(
    xp: Any,
    grad: Array,
    x: Array,
    labels: Array,
    weight: Array | float,
    ignore_index: int,
    reduction: str,
    needs: int,
    outs: Sequence[Array] | None,
    **options: Any,
) -> Any:
    """Write the gradient with respect to x. Declines if that of the weight is needed, too."""
    if outs is None or needs != 1:
        return NotImplemented
    done = gradient(xp, x, labels, weight, grad, outs[0], ignore_index, reduction, **options)
    return NotImplemented if done is NotImplemented else outs
