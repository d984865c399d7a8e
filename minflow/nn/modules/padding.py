"""Layers that pad: with a constant, or reflected, replicated or circular. Read next: `../../core/ops/padding.py`."""

from __future__ import annotations

from typing import SupportsIndex

from ...core.tensor import Tensor
from .. import functional as F
from .by_axes import ByAxes

Widths = int | tuple[int, ...]


class Pad(ByAxes):
    """padding: a width for all sides, or (left, right, top, bottom, front, back).

    Negative widths crop.
    """

    _axes: int
    _mode = "constant"

    def __init__(self, padding: Widths):
        super().__init__()
        if isinstance(padding, SupportsIndex):
            padding = (padding,) * (2 * self._axes)
        self.padding = tuple(padding)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ConstantPad(Pad):
    __doc__ = f"{Pad.__doc__}\n    value: the fill value.\n    "

    def __init__(self, padding: Widths, value: float):
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(ConstantPad, axes=1):
    """Pad with a constant. x: (..., L)."""


class ConstantPad2d(ConstantPad, axes=2):
    """Pad with a constant. x: (..., H, W)."""


class ConstantPad3d(ConstantPad, axes=3):
    """Pad with a constant. x: (..., D, H, W)."""


class ZeroPad(ConstantPad):
    _shared_doc = Pad.__doc__

    def __init__(self, padding: Widths):
        super().__init__(padding, 0.0)

    extra_repr = Pad.extra_repr


class ZeroPad1d(ZeroPad, ConstantPad1d, axes=1):
    """Pad with zeros. x: (..., L)."""


class ZeroPad2d(ZeroPad, ConstantPad2d, axes=2):
    """Pad with zeros. x: (..., H, W)."""


class ZeroPad3d(ZeroPad, ConstantPad3d, axes=3):
    """Pad with zeros. x: (..., D, H, W)."""


class ReflectionPad1d(Pad, axes=1):
    """Pad with the input reflected at its edge. x: (N, C, L) or (C, L)."""

    _mode = "reflect"


class ReflectionPad2d(Pad, axes=2):
    """Pad with the input reflected at its edge. x: (N, C, H, W) or (C, H, W)."""

    _mode = "reflect"


class ReflectionPad3d(Pad, axes=3):
    """Pad with the input reflected at its edge. x: (N, C, D, H, W) or (C, D, H, W)."""

    _mode = "reflect"


class ReplicationPad1d(Pad, axes=1):
    """Pad by repeating the edge. x: (N, C, L) or (C, L)."""

    _mode = "replicate"


class ReplicationPad2d(Pad, axes=2):
    """Pad by repeating the edge. x: (N, C, H, W) or (C, H, W)."""

    _mode = "replicate"


class ReplicationPad3d(Pad, axes=3):
    """Pad by repeating the edge. x: (N, C, D, H, W) or (C, D, H, W)."""

    _mode = "replicate"


class CircularPad1d(Pad, axes=1):
    """Pad with the other end of the input. x: (N, C, L) or (C, L)."""

    _mode = "circular"


class CircularPad2d(Pad, axes=2):
    """Pad with the other end of the input. x: (N, C, H, W) or (C, H, W)."""

    _mode = "circular"


class CircularPad3d(Pad, axes=3):
    """Pad with the other end of the input. x: (N, C, D, H, W) or (C, D, H, W)."""

    _mode = "circular"
