"""The losses, with checks for common mistakes, above all in labels, before they compute.

Inputs are predictions, targets the true values. reduction: "mean", "sum" or "none".
Read next: `../../core/ops/loss_distance.py`, the ops of losses; `../../core/ops/softmax.py`, the fused cross-entropy.
"""

from __future__ import annotations

from typing import Any

from ...core.backend import namespace_of
from ...core.base.errors import DTypeError, OutOfRangeError, ShapeError
from ...core.functions.arguments import integer, is_symbolic, number_or_symbol, with_numbers
from ...core.ir import Value
from ...core.mode import MODE
from ...core.ops import loss, loss_classes, loss_distance
from ...core.ops.checks import check_labels as check_numbers
from ...core.ops.index import checked_labels
from ...core.ops.softmax import nll, softmax_cross_entropy
from ...core.source_location import describe, fail, name_of, warn
from ...core.spec import Spec
from ...core.tensor import Tensor
from .arguments import check_reduction, check_tensor, legacy_reduction

# ---- numbers against numbers -------------------------------------------------------------------------------------


@legacy_reduction("input target size_average reduce reduction weight")
def mse_loss(input: Tensor, target: Tensor, reduction: str = "mean", weight: Tensor | None = None) -> Tensor:
    """(input - target)**2. Both float, of one shape (others broadcast, with a warning if that enlarges the result).

    weight: a factor for each element, in the input's shape; the mean is then weighted.
    """
    check_pair("mse_loss", input, target, reduction)
    return loss_distance.mse_loss(input, target, checked_weight("mse_loss", input, weight), reduction=reduction)


@legacy_reduction("input target size_average reduce reduction weight")
def l1_loss(input: Tensor, target: Tensor, reduction: str = "mean", weight: Tensor | None = None) -> Tensor:
    """|input - target|. Both float, of one shape (other shapes broadcast, with a warning if that enlarges the result).

    weight: a factor for each element, in the input's shape; the mean is then weighted.
    """
    check_pair("l1_loss", input, target, reduction)
    return loss_distance.l1_loss(input, target, checked_weight("l1_loss", input, weight), reduction=reduction)


def checked_weight(name: str, input: Tensor, weight: Tensor | None) -> Tensor | int:
    """The weight, or 1 if there is none. Refuses weights whose shape differs from the input's."""
    if weight is None:
        return 1
    check_tensor(name, weight, "weight")
    if weight.spec.shape != input.spec.shape:
        what = f"{name}: weight has shape {list(weight.spec.shape)}, input has {list(input.spec.shape)}"
        fail(ShapeError, what, "weight.expand(input.shape): one for each element", input=input, weight=weight)
    return weight


def check_pair(name: str, input: Any, target: Any, reduction: str) -> None:
    check_tensor(name, input)
    check_tensor(name, target, "target")
    check_reduction(name, reduction)
    a, b = input.spec, target.spec
    if not a.floating and (name == "huber_loss" or not b.floating):
        what = f"{name}: the input must be floating, got {a.dtype.name}"
        fail(DTypeError, what, "input.float()", input=input, target=target)
    if a.shape == b.shape:
        return
    if not all(n == m or 1 in (n, m) for n, m in zip(a.shape[::-1], b.shape[::-1])):
        what = f"{name}: input has shape {list(a.shape)}, target has {list(b.shape)}"
        fail(ShapeError, what, mismatch_hint(a, b), input=input, target=target)
    if broadcast_enlarges(a.shape, b.shape):
        warn(
            f"{name}: the shapes of input and target differ, and broadcasting pairs every element with every other",
            f"{mismatch_hint(a, b)}: then both have one shape",
            input=input,
            target=target,
        )


def mismatch_hint(a: Spec, b: Spec) -> str:
    """Return the hint for an input and a target of different shapes."""
    for long, short, hint in ((a, b, "target.unsqueeze({0}), or input.squeeze({0})"), (b, a, "target.squeeze({0})")):
        for k in reversed(range(long.ndim)):
            if long.shape[k] == 1 and long.shape[:k] + long.shape[k + 1 :] == short.shape:
                return hint.format(k)
    if [n for n in a.shape if n != 1] == [n for n in b.shape if n != 1]:
        return "target.reshape(input.shape)"
    if b.dtype.rank == 1 and a.ndim == b.ndim + 1 and b.shape == a.shape[:-1]:  # most likely class indices
        return (
            f"F.one_hot(target, {a.shape[-1]}).float(); or nn.CrossEntropyLoss(), which takes class indices as they are"
        )
    return f"a target of the input's shape {list(a.shape)}"


def broadcast_enlarges(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """True if broadcasting gives a larger shape than either: (N,) with (N, 1) gives (N, N)."""
    size = max(len(a), len(b))
    wide = [(1,) * (size - len(x)) + x for x in (a, b)]
    return any(n == 1 != m for n, m in zip(*wide)) and any(m == 1 != n for n, m in zip(*wide))


# ---- probabilities of yes and no ---------------------------------------------------------------------------------


@legacy_reduction("input target weight size_average reduce reduction")
def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """-(target * log(input) + (1 - target) * log(1 - input)), with the logarithms clamped at -100.

    input: probabilities in [0, 1], float; target: float of the same shape. weight: broadcasts to it.
    """
    check_same("binary_cross_entropy", input, target, reduction)
    check_weights("binary_cross_entropy", weight=weight)
    return loss.binary_cross_entropy(input, target, or_one(weight), reduction=reduction)


@legacy_reduction("input target weight size_average reduce reduction pos_weight")
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Binary cross-entropy of sigmoid(input), computed without overflow.

    input: logits, float; target: float of the same shape, in [0, 1]. weight, pos_weight: broadcast to it; pos_weight is
    the factor of the target 1 relative to the target 0.
    """
    check_same("binary_cross_entropy_with_logits", input, target, reduction)
    check_weights("binary_cross_entropy_with_logits", weight=weight, pos_weight=pos_weight)
    if computed_by(input, "sigmoid"):
        warn(
            "binary_cross_entropy_with_logits: its input comes from sigmoid, which this loss applies itself",
            "leave sigmoid out of the model, or use nn.BCELoss",
            input=input,
        )
    return loss.binary_cross_entropy_with_logits(input, target, or_one(weight), or_one(pos_weight), reduction=reduction)


def or_one(weight: Tensor | None) -> Tensor | int:
    """The weight, or 1, which the ops of losses take for none."""
    return 1 if weight is None else weight


def check_weights(name: str, **weights: Any) -> None:
    for argument, weight in weights.items():
        if weight is not None:
            check_tensor(name, weight, argument)


def check_same(name: str, input: Any, target: Any, reduction: str) -> None:
    check_tensor(name, input)
    check_tensor(name, target, "target")
    check_reduction(name, reduction)
    a, b = input.spec, target.spec
    if a.shape != b.shape:
        what = f"{name}: input has shape {list(a.shape)}, target has {list(b.shape)}"
        fail(ShapeError, what, mismatch_hint(a, b), input=input, target=target)
    if not a.floating or not b.floating:
        which, spec = ("input", a) if not a.floating else ("target", b)
        what = f"{name}: the {which} must be floating, got {spec.dtype.name}"
        fail(DTypeError, what, f"{which}.float()", input=input, target=target)


# ---- one class of several -----------------------------------------------------------------------------------------


def computed_by(input: Tensor, *names: str) -> str:
    """Return the name of the op that made a recorded tensor, or the base of a view, if it is one of `names`."""
    value = input._value
    while value is not None:
        op = value.node.op
        if op.name in names:
            return op.name
        value = value.node.inputs[0] if op.is_view and isinstance(value.node.inputs[0], Value) else None
    return ""


@legacy_reduction("input target weight size_average ignore_index reduce reduction label_smoothing")
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """-log softmax(input)[target], with the softmax over axis 1 (axis 0 of a single example).

    input: logits, float (N, C, ...) or (C,). target: class indices, int (N, ...) or (), each in [0, C) or ignore_index;
    or probabilities, float of input's shape. weight: (C,), a factor for each class; the mean is then weighted.
    label_smoothing in [0, 1]: this share of each target is spread over all classes (Szegedy et al. 2016, section 7).
    Raises ShapeError, DTypeError or OutOfRangeError for labels of the wrong shape, dtype or range.
    """
    check_classes("cross_entropy", input, weight, reduction)
    check_tensor("cross_entropy", target, "target")
    label_smoothing = number_or_symbol(label_smoothing)
    symbolic = is_symbolic(label_smoothing)
    if not symbolic and not 0 <= label_smoothing <= 1:
        what = f"cross_entropy: label_smoothing is {label_smoothing}"
        fail(OutOfRangeError, what, "a share between 0 and 1, such as 0.1")
    before = computed_by(input, "softmax", "log_softmax")
    if before:
        warn(
            f"cross_entropy: its input comes from {before}, and cross_entropy applies softmax itself",
            f"leave {before} out of the model and give cross_entropy the logits"
            + ("; or use nn.NLLLoss" if before == "log_softmax" else ""),
            input=input,
        )
    if target.spec.floating and target.spec.shape == input.spec.shape and target.spec.ndim:
        soft, smoothing = loss_classes.soft_cross_entropy, {"label_smoothing": label_smoothing}
        return with_numbers(soft, input, target, or_one(weight), **smoothing, reduction=reduction)
    target = check_labels("cross_entropy", input, target, ignore_index)
    options: Any = {"ignore_index": ignore_index, "reduction": reduction}
    if weight is None and not symbolic and label_smoothing == 0:
        return softmax_cross_entropy(input, target, **options)[0]
    options["label_smoothing"] = label_smoothing
    return with_numbers(loss_classes.cross_entropy, input, target, or_one(weight), **options)


@legacy_reduction("input target weight size_average ignore_index reduce reduction")
def nll_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean"
) -> Tensor:
    """-weight[target] * input[target]; the mean is the sum divided by the sum of the weights.

    input: log-probabilities, float (N, C, ...) or (C,). target: int (N, ...) or (), in [0, C) or ignore_index.
    weight: (C,).
    """
    check_classes("nll_loss", input, weight, reduction)
    check_tensor("nll_loss", target, "target")
    target = check_labels("nll_loss", input, target, ignore_index)
    if computed_by(input, "softmax"):
        warn(
            "nll_loss: its input comes from softmax, and must be logarithms of probabilities",
            "log_softmax in place of softmax; or nn.CrossEntropyLoss on the logits",
            input=input,
        )
    if weight is None:
        return nll(input, target, ignore_index=ignore_index, reduction=reduction)
    return loss_classes.nll_loss(input, target, weight, ignore_index=ignore_index, reduction=reduction)


def check_classes(name: str, input: Any, weight: Any, reduction: str) -> None:
    check_tensor(name, input)
    check_reduction(name, reduction)
    x = input.spec
    if not x.ndim:
        what = f"{name}: the input must be scores (N, C), got one number"
        fail(ShapeError, what, "model(x) without .sum() or .mean()", input=input)
    if not x.floating:
        what = f"{name}: the input must be floating scores, got {x.dtype.name}"
        fail(DTypeError, what, f"the order is {name}(input, target): predictions first, then labels", input=input)
    classes = x.shape[1] if x.ndim > 1 else x.shape[0]
    if weight is not None and weight.spec.shape != (classes,):
        what = f"{name}: weight has shape {list(weight.spec.shape)}, there are {classes} classes"
        fail(ShapeError, what, f"one number for each of {classes} classes", input=input, weight=weight)


def check_labels(name: str, input: Tensor, target: Tensor, ignore_index: int) -> Tensor:
    """Check shape, dtype and range of class indices; each mistake has its own hint.

    While tracing, the range check is a node of the graph.
    """
    x, t = input.spec, target.spec
    integer(ignore_index, "ignore_index")
    classes = x.shape[1] if x.ndim > 1 else x.shape[0]
    expected = (x.shape[0], *x.shape[2:]) if x.ndim > 1 else ()
    if t.shape != expected:
        extra = t.ndim == len(expected) + 1
        if extra and t.shape == x.shape and not t.floating:
            hint = f"target.argmax({min(x.ndim, 2) - 1}) for class indices"
            if name == "cross_entropy":
                hint = f"target.float() for probabilities of one-hot form, or {hint}"
        elif extra and (axes := [k for k in range(t.ndim) if t.shape == (*expected[:k], 1, *expected[k:])]):
            hint = f"target.squeeze({axes[-1]}): labels have no axis for the classes"
        elif t.ndim == len(expected) and t.shape[:1] != expected[:1]:
            hint = "as many labels as examples: were both cut into batches alike?"
        elif x.ndim == 4 and t.ndim == 1:
            hint = "x.flatten(1) and a Linear layer before the loss: the scores of images are (N, C)"
        elif x.shape[-1:] != t.shape[-1:] and x.ndim == 3 and t.shape == x.shape[:2]:
            hint = "input.transpose(1, 2), or input.flatten(0, 1) and target.flatten(): classes are axis 1 of the input"
        else:
            hint = "one label for each example"
        what = f"{name}: the target must be {list(expected)} for scores {list(x.shape)}, got {list(t.shape)}"
        fail(ShapeError, what, hint, input=input, target=target)
    if t.dtype.rank != 1:
        hint = "target.long()" if t.floating or t.dtype.rank == 0 else "class numbers"
        what = f"{name}: the target is {t.dtype.name}, and class indices are integers"
        fail(DTypeError, what, hint, input=input, target=target)
    if target.array is None or MODE.get().trace:
        return checked_labels(target, loss=name, classes=classes, ignore_index=ignore_index)
    try:
        check_numbers(namespace_of(target.array), name, target.array, classes, ignore_index)
    except OutOfRangeError as error:
        error.values |= {name_of(x, name): describe(x) for name, x in (("target", target), ("input", input))}
        raise
    return target
