"""Converters of losses. Scores are (N, C, ...), or (C,) for a single example, which becomes a batch of one."""

from __future__ import annotations

from ..builder import converter
from .index import as_index

FIRST = [0]


def by_class(b, node, operator: str, x, labels) -> str:
    """A loss over classes; labels have the same axes in ONNX as in minflow."""
    single, labels = node.inputs[0].spec.ndim == 1, as_index(b, node, 1, labels)
    if single:
        x, labels = b.op("Unsqueeze", x, b.const(FIRST)), b.op("Reshape", labels, b.const([1]))
    loss = b.op(operator, x, labels, ignore_index=node.attrs["ignore_index"], reduction=node.attrs["reduction"])
    return b.op("Squeeze", loss, b.const(FIRST)) if single and node.attrs["reduction"] == "none" else loss


@converter("nll")
def _(b, node, x, labels):
    return by_class(b, node, "NegativeLogLikelihoodLoss", x, labels)


@converter("softmax_cross_entropy")
def _(b, node, x, labels):
    loss = by_class(b, node, "SoftmaxCrossEntropyLoss", x, labels)
    if not b.is_used(node, 1):
        return loss, None
    return loss, b.op("Softmax", x, axis=1 if node.inputs[0].spec.ndim > 1 else 0)


@converter("binary_entropy")
def _(b, node, p, target):
    """-(target * log(p) + (1 - target) * log(1 - p)), with logarithms clamped at -100."""
    dtype = node.out_specs[0].dtype
    p, target = b.value(p, dtype), b.value(target, dtype)
    one, least = b.const(1, dtype), b.const(-100, dtype)
    yes, no = (b.op("Max", b.op("Log", q), least) for q in (p, b.op("Sub", one, p)))
    return b.op("Sub", b.op("Mul", b.op("Sub", target, one), no), b.op("Mul", target, yes))


@converter("logit_entropy")
def _(b, node, x, target):
    """target * relu(-x) + (1 - target) * relu(x) + log(1 + exp(-|x|)), so that no exponential overflows."""
    dtype = node.out_specs[0].dtype
    x, target, one = b.value(x, dtype), b.value(target, dtype), b.const(1, dtype)
    tail = b.op("Log", b.op("Add", one, b.op("Exp", b.op("Neg", b.op("Abs", x)))))
    wrong = b.op(
        "Add", b.op("Mul", target, b.op("Relu", b.op("Neg", x))), b.op("Mul", b.op("Sub", one, target), b.op("Relu", x))
    )
    return b.op("Add", wrong, tail)


@converter("at_least")
def _(b, node, x):
    return b.op("Max", x, b.const(node.attrs["least"], node.out_specs[0].dtype))
