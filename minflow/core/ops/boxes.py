"""Non-maximum suppression of image boxes. Read next: `core/functions/metrics.py`."""

from __future__ import annotations

from ..infer import data_dependent
from ..kernels import kernel
from ..op import define
from .examples import case, floats, ints

nms = define(
    "nms(boxes, order; threshold)",
    data_dependent,
    examples=[
        case(floats(5, 4)(layout=lambda a: abs(a).cumsum(1)), ints(3), threshold=0.3),
        case(floats(0, 4), ints(0), threshold=0.5),
    ],
    doc="Indices of the boxes that overlap no kept box before them by more than the threshold; eager only.",
)


@kernel(nms)
def _(xp, boxes, order, threshold):
    x1, y1, x2, y2 = boxes.astype("float64").T
    areas, kept, left = (x2 - x1) * (y2 - y1), [], order
    while left.size:
        best, left = left[0], left[1:]
        kept.append(best)
        wide = xp.minimum(x2[best], x2[left]) - xp.maximum(x1[best], x1[left])
        high = xp.minimum(y2[best], y2[left]) - xp.maximum(y1[best], y1[left])
        both = xp.maximum(wide, 0) * xp.maximum(high, 0)
        left = left[~(both > threshold * (areas[best] + areas[left] - both))]
    return xp.asarray(kept, "int64")
