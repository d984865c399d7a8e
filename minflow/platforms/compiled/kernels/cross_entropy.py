"""Softmax cross-entropy and its gradient: each row is read once, and its losses are added in order.

Tasks cannot raise errors: a label out of range makes its row's loss and gradient NaN. Only a graph loaded from a file
can have such labels. Read next: `elementwise_loops.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ....core.op import OPS
from ..codegen import llvm, vector_math
from ..codegen.jit import emits, types
from ..codegen.llvm import LANES, called, number_at, put
from ..codegen.vectors import BYTES, filled, load_some, store_some, total, vector
from ..lowering import lowers
from ..runtime.instructions import instruction, word_at
from ..runtime.tasks import Task, Workspace
from .elementwise import flat

CHUNK = 1 << 13  # elements of a chunk


exp = emits(vector, vector)(vector_math.exp)


@emits(vector, vector, vector)
def max_ignoring_nan(builder, x, y):
    """Maximum of each lane; y where x is NaN."""
    return builder.select(builder.fcmp_ordered(">", x, y), x, y)


@emits(types.float32, vector)
def max_of_lanes(builder, x):
    """Maximum of the lanes, ignoring NaN."""
    return called(builder, f"llvm.vector.reduce.fmax.v{LANES}f32", llvm.FLOAT, x)


@instruction
def softmax_rows(chunk, scratch, x, labels, probabilities, losses, rows, classes, ignored, chunk_rows):
    """Compute the softmax of some rows of x (rows, classes), and their losses (rows,).

    labels: int64 (rows,); rows with the label `ignored` have loss 0.
    """
    least, zero = filled(np.float32(-np.inf)), filled(np.float32(0))
    for row in range(chunk * chunk_rows, min((chunk + 1) * chunk_rows, rows)):
        x_row, out_row = x + BYTES * classes * row, probabilities + BYTES * classes * row
        most, sums = least, zero
        for i in range(0, classes, LANES):
            most = max_ignoring_nan(load_some(x_row + BYTES * i, classes - i, least), most)
        top = max_of_lanes(most)
        for i in range(0, classes, LANES):
            powers = exp(load_some(x_row + BYTES * i, classes - i, least) - filled(top))
            store_some(out_row + BYTES * i, classes - i, powers)
            sums = sums + powers
        whole = np.float32(total(sums))
        for i in range(0, classes, LANES):
            store_some(
                out_row + BYTES * i, classes - i, load_some(out_row + BYTES * i, classes - i, zero) / filled(whole)
            )
        label, loss = word_at(labels, row), np.float32(np.nan)
        if 0 <= label < classes:
            loss = np.float32(math.log(whole)) - (number_at(x_row, label) - top)
        put(losses, row, np.float32(0) if label == ignored else loss)


@instruction
def reduce_losses(chunk, scratch, losses, labels, loss, rows, ignored, mean):
    """Sum (mean: average) the losses of rows whose label is not `ignored`."""
    total, count = 0.0, 0
    for row in range(rows):
        total += number_at(losses, row)
        count += word_at(labels, row) != ignored
    if mean:
        total = total / count if count else np.nan
    put(loss, 0, np.float32(total))


@instruction
def grad_factor(chunk, scratch, labels, grad, factor, rows, ignored, mean):
    """Compute the factor of all gradients: grad; for the mean, divided by the rows not ignored."""
    count = 0
    for row in range(rows):
        count += word_at(labels, row) != ignored
    value = number_at(grad, 0)
    put(factor, 0, value / np.float32(max(count, 1)) if mean else value)


@instruction
def softmax_grad_rows(chunk, scratch, probabilities, labels, factor, out, rows, classes, ignored, chunk_rows):
    """Compute the gradient of some rows: (probabilities - one_hot(label)) * factor.

    factor: address of a float32.  Others: see `softmax_rows`.
    """
    zero = filled(np.float32(0))
    for row in range(chunk * chunk_rows, min((chunk + 1) * chunk_rows, rows)):
        p_row, out_row = probabilities + BYTES * classes * row, out + BYTES * classes * row
        label, scale = word_at(labels, row), number_at(factor, 0)
        if label == ignored:
            label, scale = 0, np.float32(0)
        elif not 0 <= label < classes:
            label, scale = 0, np.float32(np.nan)
        for i in range(0, classes, LANES):
            store_some(
                out_row + BYTES * i, classes - i, load_some(p_row + BYTES * i, classes - i, zero) * filled(scale)
            )
        put(out_row, label, number_at(out_row, label) - scale)


def fits(labels, reduction: str, *arrays) -> bool:
    """True for rows of scores with int64 labels and a scalar loss."""
    return (
        flat(*arrays)
        and arrays[0].ndim == 2
        and reduction in ("mean", "sum")
        and isinstance(labels, np.ndarray)
        and labels.dtype == np.int64
        and labels.flags.c_contiguous
    )


def softmax_cross_entropy(
    arrays: Sequence, outs: Sequence, workspace: Workspace, ignore_index: int, reduction: str
) -> list[Task] | None:
    (x, labels), (loss, probs) = arrays, outs
    if not fits(labels, reduction, x, probs, loss):
        return None
    rows, classes = x.shape
    some, losses = max(1, CHUNK // classes), workspace.take(rows)
    return [
        softmax_rows(-(-rows // some), x, labels, probs, losses, rows, classes, ignore_index, some),
        reduce_losses(1, losses, labels, loss, rows, ignore_index, reduction == "mean"),
    ]


def softmax_cross_entropy_grad(
    arrays: Sequence, outs: Sequence, workspace: Workspace, ignore_index: int, reduction: str
) -> list[Task] | None:
    (probs, labels, grad), (out,) = arrays, outs
    if not fits(labels, reduction, probs, grad, out):
        return None
    rows, classes = probs.shape
    some, factor = max(1, CHUNK // classes), workspace.take(1)
    return [
        grad_factor(1, labels, grad, factor, rows, ignore_index, reduction == "mean"),
        softmax_grad_rows(-(-rows // some), probs, labels, factor, out, rows, classes, ignore_index, some),
    ]


lowers(OPS["softmax_cross_entropy"], softmax_cross_entropy)
lowers(OPS["softmax_cross_entropy_grad"], softmax_cross_entropy_grad)
