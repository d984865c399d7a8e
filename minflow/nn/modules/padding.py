"""Layers that pad: with a constant, or reflected, replicated or circular. Read next: `../../core/ops/padding.py`."""

from __future__ import annotations

from typing import SupportsIndex

from ...core.tensor import Tensor
from .. import functional as F
from ..module import Module

Widths = int | tuple[int, ...]


class Pad(Module):
    """padding: a width for all sides, or (left, right, top, bottom, front, back).

    Negative widths crop.
    """

    axes, mode = 1, "constant"

    def __init__(self, padding: Widths):
        super().__init__()
        if isinstance(padding, SupportsIndex):
            padding = (padding,) * (2 * self.axes)
        self.padding = tuple(padding)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self.mode)

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


class ConstantPad1d(ConstantPad):
    __doc__ = f"Pad with a constant. x: (..., L). {ConstantPad.__doc__}"


class ConstantPad2d(ConstantPad):
    __doc__ = f"Pad with a constant. x: (..., H, W). {ConstantPad.__doc__}"
    axes = 2


class ConstantPad3d(ConstantPad):
    __doc__ = f"Pad with a constant. x: (..., D, H, W). {ConstantPad.__doc__}"
    axes = 3


class ZeroPad1d(ConstantPad):
    __doc__ = f"Pad with zeros. x: (..., L). {Pad.__doc__}"

    def __init__(self, padding: Widths):
        super().__init__(padding, 0.0)

    extra_repr = Pad.extra_repr


class ZeroPad2d(ZeroPad1d):
    __doc__ = f"Pad with zeros. x: (..., H, W). {Pad.__doc__}"
    axes = 2


class ZeroPad3d(ZeroPad1d):
    __doc__ = f"Pad with zeros. x: (..., D, H, W). {Pad.__doc__}"
    axes = 3


class ReflectionPad1d(Pad):
    __doc__ = f"Pad with the input reflected at its edge. x: (N, C, L) or (C, L). {Pad.__doc__}"
    mode = "reflect"


class ReflectionPad2d(ReflectionPad1d):
    __doc__ = f"Pad with the input reflected at its edge. x: (N, C, H, W) or (C, H, W). {Pad.__doc__}"
    axes = 2


class ReflectionPad3d(ReflectionPad1d):
    __doc__ = f"Pad with the input reflected at its edge. x: (N, C, D, H, W) or (C, D, H, W). {Pad.__doc__}"
    axes = 3


class ReplicationPad1d(Pad):
    __doc__ = f"Pad by repeating the edge. x: (N, C, L) or (C, L). {Pad.__doc__}"
    mode = "replicate"


class ReplicationPad2d(ReplicationPad1d):
    __doc__ = f"Pad by repeating the edge. x: (N, C, H, W) or (C, H, W). {Pad.__doc__}"
    axes = 2


class ReplicationPad3d(ReplicationPad1d):
    __doc__ = f"Pad by repeating the edge. x: (N, C, D, H, W) or (C, D, H, W). {Pad.__doc__}"
    axes = 3


class CircularPad1d(Pad):
    __doc__ = f"Pad with the other end of the input. x: (N, C, L) or (C, L). {Pad.__doc__}"
    mode = "circular"


class CircularPad2d(CircularPad1d):
    __doc__ = f"Pad with the other end of the input. x: (N, C, H, W) or (C, H, W). {Pad.__doc__}"
    axes = 2


class CircularPad3d(CircularPad1d):
    __doc__ = f"Pad with the other end of the input. x: (N, C, D, H, W) or (C, D, H, W). {Pad.__doc__}"
    axes = 3
