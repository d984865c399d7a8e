"""OneFlow's metrics: top-k membership, area under the ROC curve, and non-maximum suppression of boxes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..base.errors import DTypeError, ShapeError, TraceError
from ..mode import MODE
from ..ops import boxes as b, compare as c, elementwise as e
from ..ops.order_statistics import searchsorted
from ..ops.shape import detach, reshape
from ..source_location import fail
from ..spec import float32, float64, int64
from .arguments import to
from .reduction import sum
from .sorting import argsort, sort

if TYPE_CHECKING:
    from ..tensor import Tensor


def roc_auc_score(label: Tensor, pred: Tensor) -> Tensor:
    """`float32 (1,)`: the fraction of pairs of a positive (label 1) and a negative in which the positive has the higher
    prediction; ties count half. NaN if there is only one class.

    Source: Hanley & McNeil 1982, "The meaning and use of the area under a ROC curve".
    """
    if label.spec.size != pred.spec.size:
        what = f"roc_auc_score: {label.spec.size} labels for {pred.spec.size} predictions"
        fail(ShapeError, what, "one for each", label=label, pred=pred)
    positive, pred = to(c.ne(label.reshape(-1), 0), float64), detach(pred).reshape(-1)
    ranked = sort(pred, 0).values
    below, upto = [to(searchsorted(ranked, pred, right=right, dtype=int64), float64) for right in (False, True)]
    rank = (below + upto + 1) / 2  # ties share the mean of their ranks
    n = sum(positive)
    pairs = n * (pred.spec.size - n)
    area = (sum(rank * positive) - n * (n + 1) / 2) / pairs
    return reshape(to(area, float32), shape=(1,))


def nms(boxes: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """`int64 (k,)`: indices of the boxes that non-maximum suppression keeps, by descending score.

    A box is dropped if its intersection over union with a kept box is above iou_threshold. boxes: (n, 4), x1, y1, x2,
    y2. Eager only. Source: Girshick et al. 2014, arXiv:1311.2524, section 2.3.
    """
    if MODE.get().trace is not None:
        what = "nms: the number of boxes depends on the elements, which are not known while a graph is built"
        fail(TraceError, what, "do it before or after the call", boxes=boxes)
    if boxes.spec.ndim != 2 or boxes.spec.shape[1] != 4 or scores.spec.shape != boxes.spec.shape[:1]:
        what = f"nms: boxes of shape {boxes.spec.shape} and scores of shape {scores.spec.shape}"
        fail(ShapeError, what, "(n, 4) and (n,)", boxes=boxes, scores=scores)
    if not boxes.spec.dtype.floating:
        fail(DTypeError, f"nms: boxes must be floating, got {boxes.spec.dtype.name}", "boxes.float()", boxes=boxes)
    order = argsort(detach(scores), 0, descending=True)
    return b.nms(detach(boxes), order, threshold=float(iou_threshold))


def in_top_k(targets: Tensor, predictions: Tensor, k: int) -> Tensor:
    """`bool`: True if the prediction of the target is among the k largest of its row; ties count as True."""
    rows = e.sub(predictions, predictions.gather(1, targets.reshape(-1, 1)))
    return c.lt(sum(c.gt(rows, 0), 1), k)
