"""conv2d: cross-correlation of images with filters, and what to say where shapes do not fit.

Read next: `../../core/ops/conv.py`, the kernels.
"""

from __future__ import annotations

import math
from typing import NoReturn

from ...core.base.errors import ShapeError
from ...core.ops.conv import conv2d as convolve
from ...core.spec import Spec
from ...core.tensor import Tensor
from ...core.where import fail, name_of
from .arguments import Unquoted, check_tensor, pair, same_dtype

Size2 = int | tuple[int, int]


def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Size2 = 1,
    padding: Size2 | str = 0,
    dilation: Size2 = 1,
    groups: int = 1,
) -> Tensor:
    """out[n,f,i,j] = sum over c,u,v of input[n,c,i*s+u*d-p,j*s+v*d-p] * weight[f,c,u,v], plus bias[f].

    input: float (N, C, H, W) or (C, H, W).  weight: (F, C / groups, KH, KW).  bias: (F,) or None.
    stride s, padding p, dilation d: int or pair, in pixels; padding also "same" (stride 1 only) or "valid".
    Returns (N, F, (H + 2p - d*(KH-1) - 1) // s + 1, likewise for W). Raises ShapeError if C differs or nothing is left.
    Source: Dumoulin & Visin 2016 (arXiv:1603.07285), relationships 6 and 15.
    """
    check_tensor("conv2d", input)
    x, w = input.spec, weight.spec
    if w.ndim != 4 or x.ndim not in (3, 4) or x.shape[-3] != w.shape[1] * groups or w.shape[0] % groups:
        explain_shapes(input, weight, groups)
    if bias is not None and bias.spec.shape != w.shape[:1]:
        what = (f"conv2d: the bias has shape {bias.spec.shape}, "
                f"where one number for each of {w.shape[0]} filters is wanted")
        fail(ShapeError, what, "weight.shape[0] numbers", input=input, weight=weight, bias=bias)
    strides, dilations = pair("conv2d", "stride", stride, 1), pair("conv2d", "dilation", dilation, 1)
    input, pads = padded(input, padding, strides, dilations, w.shape[2:])
    if x.dtype is not w.dtype:
        input, weight = same_dtype("conv2d", input, weight)
    single = x.ndim == 3
    out = convolve(
        input.unsqueeze(0) if single else input, weight, stride=strides, padding=pads, dilation=dilations, groups=groups
    )
    if bias is not None:
        out = out + bias.reshape(1, -1, 1, 1)
    return out.squeeze(0) if single else out


def padded(input: Tensor, padding, strides: tuple[int, int], dilations: tuple[int, int], kernel: tuple[int, ...]):
    """(input, padding as a pair): "same" of an even kernel needs one more pixel behind, which is put there first."""
    if padding == "valid":
        return input, (0, 0)
    if padding != "same":
        return input, pair("conv2d", "padding", padding, 0)
    if strides != (1, 1):
        fail(
            ShapeError,
            f'conv2d: padding "same" with stride {strides}',
            "a number of pixels: padding=1 for a kernel of 3",
            input=input,
        )
    total = [d * (k - 1) for d, k in zip(dilations, kernel)]
    if total[0] % 2 or total[1] % 2:
        from .shape import pad

        input = pad(input, (0, total[1] % 2, 0, total[0] % 2))
    return input, (total[0] // 2, total[1] // 2)


def explain_shapes(input: Tensor, weight: Tensor, groups: int) -> NoReturn:
    x, w, name = input.spec, weight.spec, name_of(weight, "weight")
    if w.ndim != 4:
        fail(
            ShapeError,
            f"conv2d: {name} has {w.ndim} axes, wanted (F, C, KH, KW)",
            "filters with four axes",
            input=input,
            weight=weight,
        )
    if w.shape[0] % groups:
        fail(
            ShapeError,
            f"conv2d: {name} has {w.shape[0]} filters, which groups={groups} does not divide",
            f"a multiple of {groups}",
            input=input,
            weight=weight,
        )
    channels, layer = w.shape[1] * groups, bool(getattr(weight, "label", ""))
    if x.ndim not in (3, 4):
        what = f"conv2d: the input has {x.ndim} ax{'i' if x.ndim == 1 else 'e'}s, wanted (N, C, H, W) or (C, H, W)"
        hint, shape = images(x, channels)
        fail(ShapeError, what, hint, input=input, weight=weight, **expecting(x, shape, hint))
    shape = None
    what = f"conv2d: the input has {x.shape[-3]} channels (axis {x.ndim - 3}), {name} takes {channels}"
    if x.shape[-1] == channels:
        shape = (*x.shape[:-3], channels, *x.shape[-3:-1])
        order = "0, 3, 1, 2" if x.ndim == 4 else "2, 0, 1"
        hint = f"x.permute({order}): channels come before height and width, here they are last"
    elif x.ndim == 3 and x.shape[1] == channels and (n := side(x.shape[2])):
        shape = (*x.shape[:2], n, n)
        hint = f"x.reshape({x.shape[0]}, {channels}, {n}, {n}), if its last axis is a flattened image of {n}x{n}"
    elif x.ndim == 3 and channels == 1:
        shape = (x.shape[0], 1, *x.shape[1:])
        hint = "x.unsqueeze(1): (N, H, W) lacks the axis of channels"
    elif layer:
        hint = f"nn.Conv2d({x.shape[-3]}, {w.shape[0]}, ...): in_channels comes first"
    else:
        hint = f"filters of shape (F, {x.shape[-3] // groups}, {w.shape[2]}, {w.shape[3]})"
    fail(ShapeError, what, hint, input=input, weight=weight, **expecting(x, shape, hint))


def expecting(x: Spec, shape: tuple[int, ...] | None, hint: str) -> dict[str, Unquoted]:
    """The value of the error that says what the hint would give; none where the hint asks which of several is meant."""
    return {} if shape is None or " if " in hint else {"expected": Unquoted(f"input {x.but(shape=shape)}")}


def side(pixels: int) -> int:
    """The height and width of a square image of so many pixels, at least 2x2; 0 where there is none."""
    n = math.isqrt(pixels)
    return n if n > 1 and n * n == pixels else 0


def images(x: Spec, channels: int) -> tuple[str, tuple[int, ...] | None]:
    """(hint, the shape it gives) for an input with too few or too many axes: what the images in it may be."""
    if x.ndim > 4:
        shape = (math.prod(x.shape[:-3]), *x.shape[-3:])
        return "x.flatten(0, -4) makes one axis of all before (C, H, W)", shape if shape[1] == channels else None
    if not x.ndim:
        return "x.reshape(N, C, H, W)", None
    size, rows = x.shape[-1], 1 if x.ndim == 1 else x.shape[0]
    n = side(size // channels) if size % channels == 0 else 0
    flat = f"x.reshape({rows}, {channels}, {n or 'H'}, {n or 'W'})"
    if x.ndim == 2 and channels == 1 and (n == 0 or rows == size):
        one = f"x.reshape(1, 1, {rows}, {size}) if x is one image of {rows}x{size}"
        return f"{one}; {flat} if each row is one", (1, 1, rows, size)
    shape = (rows, channels, n, n) if n else None
    return f"{flat}: the images are flattened, give them back their height and width", shape
