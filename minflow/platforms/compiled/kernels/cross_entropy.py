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
from ..codegen.jit import intrinsic
from ..codegen.llvm import LANES, number_at, put
from ..codegen.vectors import BYTES, add, called, divide, filled, load_some, multiply, store_some, subtract, total
from ..lowering import lowers
from ..runtime.instructions import instruction, word_at
from ..runtime.tasks import Task, Workspace
from .elementwise import flat

CHUNK = 1 << 13  # elements of a chunk


@intrinsic
def exp(context, x):
    return x(x), lambda context, builder, _, a: vector_math.exp(builder, *a)


@intrinsic
def larger(context, x, y):
    """Maximum of each lane; y where x is NaN."""
    return x(x, x), lambda context, builder, _, a: builder.select(builder.fcmp_ordered(">", *a), *a)


@intrinsic
def largest(context, x):
    """Maximum of the lanes, ignoring NaN."""
    return x.number(x), lambda context, builder, _, a: called(
        builder, f"llvm.vector.reduce.fmax.v{LANES}f32", llvm.FLOAT, *a
    )


@instruction
def rows_of_softmax(words, chunk, scratch):
    """Compute softmax and loss of some rows.

    words: x, labels, probabilities, losses of rows, rows, classes, ignored label, rows of a chunk.
    """
    rows, classes, ignored, some = word_at(words, 4), word_at(words, 5), word_at(words, 6), word_at(words, 7)
    least, zero = filled(np.float32(-np.inf)), filled(np.float32(0))
    for row in range(chunk * some, min((chunk + 1) * some, rows)):
        x, out = word_at(words, 0) + BYTES * classes * row, word_at(words, 2) + BYTES * classes * row
        most, sums = least, zero
        for i in range(0, classes, LANES):
            most = larger(load_some(x + BYTES * i, classes - i, least), most)
        top = largest(most)
        for i in range(0, classes, LANES):
            powers = exp(subtract(load_some(x + BYTES * i, classes - i, least), filled(top)))
            store_some(out + BYTES * i, classes - i, powers)
            sums = add(sums, powers)
        whole = np.float32(total(sums))
        for i in range(0, classes, LANES):
            store_some(
                out + BYTES * i, classes - i, divide(load_some(out + BYTES * i, classes - i, zero), filled(whole))
            )
        label, loss = word_at(word_at(words, 1), row), np.float32(np.nan)
        if 0 <= label < classes:
            loss = np.float32(math.log(whole)) - (number_at(x, label) - top)
        put(word_at(words, 3), row, np.float32(0) if label == ignored else loss)


@instruction
def loss_of_rows(words, chunk, scratch):
    """Sum or average the losses: words losses, labels, loss, rows, ignored label, 1 for the mean."""
    found, count = 0.0, 0
    for row in range(word_at(words, 3)):
        found += number_at(word_at(words, 0), row)
        count += word_at(word_at(words, 1), row) != word_at(words, 4)
    if word_at(words, 5):
        found = found / count if count else np.nan
    put(word_at(words, 2), 0, np.float32(found))


@instruction
def count_rows(words, chunk, scratch):
    """Compute the factor for all gradients: words labels, grad, factor, rows, ignored label, 1 for the mean."""
    count = 0
    for row in range(word_at(words, 3)):
        count += word_at(word_at(words, 0), row) != word_at(words, 4)
    grad = number_at(word_at(words, 1), 0)
    put(word_at(words, 2), 0, grad / np.float32(max(count, 1)) if word_at(words, 5) else grad)


@instruction
def rows_of_gradient(words, chunk, scratch):
    """Compute the gradient of some rows.

    words: probabilities, labels, factor, out, rows, classes, ignored label, rows of a chunk.
    """
    rows, classes, ignored, some = word_at(words, 4), word_at(words, 5), word_at(words, 6), word_at(words, 7)
    zero = filled(np.float32(0))
    for row in range(chunk * some, min((chunk + 1) * some, rows)):
        probs, out = word_at(words, 0) + BYTES * classes * row, word_at(words, 3) + BYTES * classes * row
        label, factor = word_at(word_at(words, 1), row), number_at(word_at(words, 2), 0)
        if label == ignored:
            label, factor = 0, np.float32(0)
        elif not 0 <= label < classes:
            label, factor = 0, np.float32(np.nan)
        for i in range(0, classes, LANES):
            store_some(
                out + BYTES * i, classes - i, multiply(load_some(probs + BYTES * i, classes - i, zero), filled(factor))
            )
        put(out, label, number_at(out, label) - factor)


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
    arrays: Sequence, outs: Sequence, room: Workspace, ignore_index: int, reduction: str
) -> list[Task] | None:
    (x, labels), (loss, probs) = arrays, outs
    if not fits(labels, reduction, x, probs, loss):
        return None
    rows, classes = x.shape
    some, losses = max(1, CHUNK // classes), room.take(rows)
    return [
        rows_of_softmax(-(-rows // some), x, labels, probs, losses, rows, classes, ignore_index, some),
        loss_of_rows(1, losses, labels, loss, rows, ignore_index, reduction == "mean"),
    ]


def softmax_cross_entropy_grad(
    arrays: Sequence, outs: Sequence, room: Workspace, ignore_index: int, reduction: str
) -> list[Task] | None:
    (probs, labels, grad), (out,) = arrays, outs
    if not fits(labels, reduction, probs, grad, out):
        return None
    rows, classes = probs.shape
    some, factor = max(1, CHUNK // classes), room.take(1)
    return [
        count_rows(1, labels, grad, factor, rows, ignore_index, reduction == "mean"),
        rows_of_gradient(-(-rows // some), probs, labels, factor, out, rows, classes, ignore_index, some),
    ]


lowers(OPS["softmax_cross_entropy"], softmax_cross_entropy)
lowers(OPS["softmax_cross_entropy_grad"], softmax_cross_entropy_grad)
