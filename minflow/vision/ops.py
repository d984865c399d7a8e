"""Operations on boxes, float (n, 4): x1, y1, x2, y2 in pixels. `nms` is in `core/functions/metrics.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.base.errors import OutOfRangeError, ShapeError
from ..core.functions import clamp, maximum, minimum, nms as nms, stack
from ..core.functions.creation import ones, zeros
from ..core.messages.suggestions import name_hints as _name_hints
from ..core.source_location import fail
from ..core.tensor import Tensor
from ..nn.module import Module


class FrozenBatchNorm2d(Module):
    """BatchNorm2d whose statistics, weight and bias are buffers: they stay as they were loaded."""

    _version = 2

    def __init__(self, num_features: int, eps: float = 1e-5):
        super().__init__()
        self.eps = eps
        for name, fill in (("weight", ones), ("bias", zeros), ("running_mean", zeros), ("running_var", ones)):
            self.register_buffer(name, fill(num_features))

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        state_dict.pop(f"{prefix}num_batches_tracked", None)  # of a BatchNorm2d
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def forward(self, x: Tensor) -> Tensor:
        """x: float (N, C, H, W)."""
        scale = self.weight * (self.running_var + self.eps).rsqrt()
        shift = self.bias - self.running_mean * scale
        return x * scale.reshape(1, -1, 1, 1) + shift.reshape(1, -1, 1, 1)

    def extra_repr(self) -> str:
        return f"{self.weight.shape[0]}, eps={self.eps}"


def check_boxes(name: str, *several: Tensor) -> None:
    for boxes in several:
        if boxes.ndim == 0 or boxes.shape[-1] != 4:
            what = f"{name}: boxes must have shape (n, 4), got {list(boxes.shape)}"
            fail(ShapeError, what, "x1, y1, x2, y2", boxes=boxes)


def box_area(boxes: Tensor) -> Tensor:
    """Areas (x2 - x1) * (y2 - y1) of the boxes: (n,)."""
    check_boxes("box_area", boxes)
    return (boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])


def box_iou(boxes1: Tensor, boxes2: Tensor) -> Tensor:
    """Intersection over union (n, m) of each pair of boxes.

    Everingham et al. 2010, "The PASCAL visual object classes challenge", section 4.2.
    """
    check_boxes("box_iou", boxes1, boxes2)
    a, b = boxes1.unsqueeze(-2), boxes2.unsqueeze(-3)
    sides = clamp(minimum(a[..., 2:], b[..., 2:]) - maximum(a[..., :2], b[..., :2]), min=0)
    both = sides[..., 0] * sides[..., 1]
    return both / (box_area(a) + box_area(b) - both)


def box_convert(boxes: Tensor, in_fmt: str, out_fmt: str) -> Tensor:
    """Convert boxes: "xyxy" two corners, "xywh" a corner and the size, "cxcywh" the center and the size."""
    check_boxes("box_convert", boxes)
    forms = ("xyxy", "xywh", "cxcywh")
    if in_fmt not in forms or out_fmt not in forms:
        what = f"box_convert: unknown format, from {in_fmt!r} to {out_fmt!r}"
        fail(OutOfRangeError, what, f"two of {', '.join(forms)}")
    a, b, c, d = (boxes[..., i] for i in range(4))
    if in_fmt == "cxcywh":
        a, b = a - c / 2, b - d / 2
    if in_fmt != "xyxy":
        c, d = a + c, b + d
    if out_fmt == "xyxy":
        return stack([a, b, c, d], -1)
    w, h = c - a, d - b
    return stack([a, b, w, h] if out_fmt == "xywh" else [a + w / 2, b + h / 2, w, h], -1)


def clip_boxes_to_image(boxes: Tensor, size: Sequence[int]) -> Tensor:
    """Clip boxes to an image of size (height, width)."""
    check_boxes("clip_boxes_to_image", boxes)
    height, width = size
    x, y = clamp(boxes[..., 0::2], min=0, max=width), clamp(boxes[..., 1::2], min=0, max=height)
    return stack([x[..., 0], y[..., 0], x[..., 1], y[..., 1]], -1)


def batched_nms(boxes: Tensor, scores: Tensor, idxs: Tensor, iou_threshold: float) -> Tensor:
    """`nms` per class: boxes of different classes do not suppress each other. idxs: classes (n,)."""
    check_boxes("batched_nms", boxes)
    if boxes.numel() == 0:
        return nms(boxes, scores, iou_threshold)
    # an offset for each class, so that boxes of different classes cannot overlap
    apart = idxs.to(boxes.dtype) * (boxes.max() - boxes.min() + 1)
    return nms(boxes + apart.unsqueeze(1), scores, iou_threshold)


__all__ = ["FrozenBatchNorm2d", "batched_nms", "box_area", "box_convert", "box_iou", "clip_boxes_to_image", "nms"]
__getattr__ = _name_hints("flow.vision.ops", globals())
