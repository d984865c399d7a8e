"""The confusion matrix of a classifier, as a picture and as text: `confusion_matrix(targets, predictions)`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minflow.core.base.errors import DTypeError, ShapeError
from minflow.views.draw import theme
from minflow.views.text.tables import ruled_table
from minflow.views.words import say

from .drawing import GRID_STYLE, array_of, axes, describe, literal, numbers_of

MAX_CLASSES = 10_000  # limit for a confusion matrix, which has an entry for each pair
MAX_WRITTEN_CLASSES = 20  # up to this many classes, counts are written into the cells


def confusion_counts(targets: Any, predictions: Any, classes: int | None = None) -> np.ndarray:
    """Confusion counts, int64 (classes, classes): row i, column j is how often class i was predicted as class j.

    targets: (N,) integers.  predictions: (N,) integers, or (N, classes) scores, the highest of which is the prediction.
    """
    true, guess = class_indices(targets, "targets"), array_of(predictions)
    if guess.ndim == 2 and guess.shape[1] > 1:
        classes = max(classes or 0, guess.shape[1])
        guess = guess.argmax(axis=1)
    guess = class_indices(guess, "predictions")
    if true.shape != guess.shape:
        what = f"confusion_matrix: {true.size} targets and {guess.size} predictions"
        raise ShapeError(what, hint="one prediction for each target")
    least, most = (min(true.min(), guess.min()), max(true.max(), guess.max())) if true.size else (0, -1)
    classes = max(classes or 0, int(most) + 1)
    if least < 0 or not classes:
        what = f"classes must be 0, 1, 2, ..., got {int(least)}" if true.size else "no targets"
        raise DTypeError(f"confusion_matrix: {what}")
    if classes > MAX_CLASSES:
        what = f"confusion_matrix: at most {MAX_CLASSES} classes are supported, got {classes}"
        raise DTypeError(what, hint="number the classes 0, 1, 2, ...")
    return np.bincount(true * classes + guess, minlength=classes * classes).reshape(classes, classes)


def class_indices(x: Any, what: str) -> np.ndarray:
    """One class per sample, int64. Raises DTypeError for fractions, words and NaN, which would be counted as a wrong
    class.
    """
    hint = "integers; for a probability (p > 0.5).int(), for words np.unique(words, return_inverse=True)[1]"
    numbers = numbers_of(x, f"confusion_matrix: {what}", hint).reshape(-1)
    if not (np.isfinite(numbers) & (numbers == np.round(numbers)) & (abs(numbers) < 2**53)).all():
        raise DTypeError(f"confusion_matrix: {what} must be whole numbers", values={"got": describe(x)}, hint=hint)
    return numbers.astype(np.int64)


def count_names(names: Sequence[Any] | None) -> int | None:
    """Number of named classes, or None."""
    if names is not None and not hasattr(names, "__len__"):
        values = {"got": describe(names)}
        raise DTypeError("confusion_matrix: names must be a list", values=values, hint='names=["cat", "dog"]')
    return len(names) if names is not None else None


def class_names(names: Sequence[Any] | None, classes: int) -> list[str]:
    if names is not None and len(names) < classes:
        what = f"confusion_matrix: {len(names)} names for {classes} classes"
        raise ShapeError(what, hint="a name for each class, in their order")
    return [literal(name) for name in names[:classes]] if names is not None else [str(i) for i in range(classes)]


def confusion_matrix(
    targets: Any, predictions: Any, names: Sequence[Any] | None = None, *, normalize: bool = False, ax: Any = None
) -> Any:
    """Draw how often class i (row) was predicted as class j (column); returns the Axes.

    targets, predictions: see `confusion_counts`.  names: names of the classes.  normalize: True for shares of each row.
    Right answers are blue, mistakes orange on their own scale, so that even one mistake in a thousand is visible.
    """
    counts = confusion_counts(targets, predictions, count_names(names))
    words, n = class_names(names, len(counts)), len(counts)
    rows = counts.sum(axis=1, keepdims=True)
    shares = counts / np.maximum(rows, 1)
    side = min(3.0 + 0.34 * n, 9.0)
    ax = axes(ax, "confusion_matrix()", (side + 0.8, side))
    right, most = np.eye(n, dtype=bool), shares[~np.eye(n, dtype=bool)].max(initial=0.0)
    blue = ax.imshow(np.where(right, shares, np.nan), cmap="Blues", vmin=0, vmax=1)
    wrong = np.where(right | (counts == 0), np.nan, shares)
    orange = ax.imshow(wrong, cmap="Oranges", vmin=-most / 2, vmax=most * 2 or 1)
    if n <= MAX_WRITTEN_CLASSES:
        for edge in range(1, n):
            ax.axhline(edge - 0.5, **GRID_STYLE)
            ax.axvline(edge - 0.5, **GRID_STYLE)
    every = range(0, n, max(1, n // 40))
    turned = 0 if max(map(len, words)) <= 3 else 60
    ax.set_xticks(list(every), [words[i] for i in every], parse_math=False, rotation=turned)
    ax.set_yticks(list(every), [words[i] for i in every], parse_math=False)
    if n <= MAX_WRITTEN_CLASSES:
        for i in range(n):
            for j in range(n):
                if counts[i, j]:
                    content = f"{shares[i, j]:.2f}" if normalize else str(counts[i, j])
                    cell = (blue if i == j else orange).to_rgba(shares[i, j], bytes=True)
                    look = {"color": theme.text_color_on("#" + bytes(cell[:3]).hex()), "fontsize": 9 if n <= 12 else 7}
                    ax.text(j, i, content, ha="center", va="center", **look)
    ax.set_xlabel(say("predicted\nblue: right, orange: wrong; dark: often in its row"))
    ax.set_ylabel(say("true"))
    share = np.trace(counts) / max(counts.sum(), 1)
    ax.set_title(f"{count_right(counts)} ({share:.1%})")
    return ax


def confusion_text(targets: Any, predictions: Any, names: Sequence[Any] | None = None) -> str:
    """The confusion matrix as a table."""
    counts = confusion_counts(targets, predictions, count_names(names))
    words = class_names(names, len(counts))
    rows = [[word, *[str(n) if n else "." for n in row]] for word, row in zip(words, counts.tolist(), strict=True)]
    lines = ruled_table([say("true \\ predicted"), *words], rows, right=range(1, len(words) + 1))
    return "\n".join([*lines, count_right(counts)])


def count_right(counts: np.ndarray) -> str:
    return say("{right} of {all} right", right=np.trace(counts), all=counts.sum())
