"""Error messages for images that do not match a convolution's filters. Read next: `conv.py`."""

from __future__ import annotations

import math
from typing import NoReturn

from ...core.base.errors import ShapeError
from ...core.source_location import fail, name_of
from ...core.spec import Spec
from ...core.tensor import Tensor
from .arguments import Unquoted


def explain_shapes(input: Tensor, weight: Tensor, groups: int) -> NoReturn:
    x, w, name = input.spec, weight.spec, name_of(weight, "weight")
    if w.ndim != 4:
        what = f"conv2d: {name} must be (F, C, KH, KW), got {w.ndim} axes"
        fail(ShapeError, what, "filters with four axes", input=input, weight=weight)
    if w.shape[0] % groups:
        what = f"conv2d: {name} has {w.shape[0]} filters, which groups={groups} does not divide"
        fail(ShapeError, what, f"a multiple of {groups} filters", input=input, weight=weight)
    channels, layer = w.shape[1] * groups, bool(getattr(weight, "_label", ""))
    if x.ndim not in (3, 4):
        what = f"conv2d: the input must be (N, C, H, W) or (C, H, W), got {x.ndim} ax{'i' if x.ndim == 1 else 'e'}s"
        hint, shape = image_reshape_hint(x, channels)
        fail(ShapeError, what, hint, input=input, weight=weight, **expected_input(x, shape, hint))
    shape = None
    what = f"conv2d: the input has {x.shape[-3]} channels (axis {x.ndim - 3}), {name} takes {channels}"
    if x.shape[-1] == channels:
        shape = (*x.shape[:-3], channels, *x.shape[-3:-1])
        order = "0, 3, 1, 2" if x.ndim == 4 else "2, 0, 1"
        hint = f"x.permute({order}): channels come before height and width, here they are last"
    elif x.ndim == 3 and x.shape[1] == channels and (n := square_side(x.shape[2])):
        shape = (*x.shape[:2], n, n)
        hint = f"x.reshape({x.shape[0]}, {channels}, {n}, {n}), if its last axis is a flattened image of {n}x{n}"
    elif x.ndim == 3 and channels == 1:
        shape = (x.shape[0], 1, *x.shape[1:])
        hint = "x.unsqueeze(1): (N, H, W) lacks the axis of channels"
    elif layer:
        hint = f"nn.Conv2d({x.shape[-3]}, {w.shape[0]}, ...): in_channels comes first"
    else:
        hint = f"filters of shape (F, {x.shape[-3] // groups}, {w.shape[2]}, {w.shape[3]})"
    fail(ShapeError, what, hint, input=input, weight=weight, **expected_input(x, shape, hint))


def expected_input(x: Spec, shape: tuple[int, ...] | None, hint: str) -> dict[str, Unquoted]:
    """Return the expected shape, as a value of the error; empty if the hint offers several shapes."""
    return {} if shape is None or " if " in hint else {"expected": Unquoted(f"input {x.replace(shape=shape)}")}


def square_side(pixels: int) -> int:
    """Return the side (at least 2) of a square image with this number of pixels; 0 if there is none."""
    n = math.isqrt(pixels)
    return n if n > 1 and n * n == pixels else 0


def image_reshape_hint(x: Spec, channels: int) -> tuple[str, tuple[int, ...] | None]:
    """Return (hint, the resulting shape) for an input with too few or too many axes that may contain images."""
    if x.ndim > 4:
        shape = (math.prod(x.shape[:-3]), *x.shape[-3:])
        return "x.flatten(0, -4) makes one axis of all before (C, H, W)", shape if shape[1] == channels else None
    if not x.ndim:
        return "x.reshape(N, C, H, W)", None
    size, rows = x.shape[-1], 1 if x.ndim == 1 else x.shape[0]
    n = square_side(size // channels) if size % channels == 0 else 0
    flat = f"x.reshape({rows}, {channels}, {n or 'H'}, {n or 'W'})"
    if x.ndim == 2 and channels == 1 and (n == 0 or rows == size):
        one = f"x.reshape(1, 1, {rows}, {size}) if x is one image of {rows}x{size}"
        return f"{one}; {flat} if each row is one", (1, 1, rows, size)
    square = (rows, channels, n, n) if n else None
    return f"{flat}: the images are flattened, give them back their height and width", square
