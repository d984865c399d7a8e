"""Cross-correlation of signals, images and volumes with filters: conv1d, conv2d, conv3d.

Read next: `conv_transpose.py`; `../../core/ops/conv.py` for images, `../../core/ops/conv_composites.py` for signals and
volumes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...core.base.errors import ShapeError
from ...core.functions.linear_algebra import match_product
from ...core.op import Op
from ...core.ops import conv_composites
from ...core.ops.complex import complex as complex_of
from ...core.ops.conv import conv2d as convolve
from ...core.source_location import fail
from ...core.tensor import Tensor
from .arguments import check_tensor, same_dtype, sizes
from .conv_shapes import explain_shapes
from .shape import pad

Sizes = int | Sequence[int]  # one for all axes, or one for each
Size1 = int | Sequence[int]  # ... of one axis
Size2 = int | Sequence[int]  # ... of two
Size3 = int | Sequence[int]  # ... of three


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

    input: float or complex (N, C, H, W) or (C, H, W). weight: (F, C / groups, KH, KW). bias: (F,) or None.
    stride s, padding p, dilation d: int or pair, in pixels; padding also "same" (stride 1 only) or "valid".
    Returns (N, F, (H + 2p - d*(KH-1) - 1) // s + 1, likewise for W). Raises ShapeError if C differs or the output would
    be empty.
    Source: Dumoulin & Visin 2016 (arXiv:1603.07285), relationships 6 and 15.
    """
    check_tensor("conv2d", input)
    x, w = input.spec, weight.spec
    if w.ndim != 4 or x.ndim not in (3, 4) or x.shape[-3] != w.shape[1] * groups or w.shape[0] % groups:
        explain_shapes(input, weight, groups)
    if bias is not None and bias.spec.shape != w.shape[:1]:
        what = f"conv2d: the bias must be ({w.shape[0]},), one element for each filter, got {bias.spec.shape}"
        fail(ShapeError, what, "weight.shape[0] numbers", input=input, weight=weight, bias=bias)
    strides, dilations = sizes("conv2d", "stride", stride, 1, 2), sizes("conv2d", "dilation", dilation, 1, 2)
    input, pads = same_padding("conv2d", input, padding, strides, dilations, w.shape[2:])
    if x.dtype is not w.dtype:
        input, weight = same_dtype("conv2d", input, weight)
    if input.spec.dtype.is_complex:
        return by_real_parts(lambda x, w, b: conv2d(x, w, b, strides, pads, dilations, groups), input, weight, bias)
    single = x.ndim == 3
    out = convolve(
        input.unsqueeze(0) if single else input, weight, stride=strides, padding=pads, dilation=dilations, groups=groups
    )
    if bias is not None:
        out = out + match_product(bias, out).reshape(1, -1, 1, 1)
    return out.squeeze(0) if single else out


def by_real_parts(conv: Callable[..., Tensor], input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """A convolution of complex numbers by three real ones: (a + ib)(c + id) = ac - bd + i((a + b)(c + d) - ac - bd).

    conv: the real convolution, a function of input, weight and bias.
    """
    a, b, c, d = input.real, input.imag, weight.real, weight.imag
    offset = None if bias is None else bias.to(weight.spec.dtype)
    first, second = conv(a, c, None if offset is None else offset.real), conv(b, d, None)
    both = conv(a + b, c + d, None if offset is None else offset.real + offset.imag)
    return complex_of(first - second, both - first - second)


def same_padding(
    name: str, input: Tensor, padding: Sizes | str, strides: tuple, dilations: tuple, kernel: tuple[int, ...]
) -> tuple[Tensor, tuple[int, ...]]:
    """Return (input, padding of each axis). "same" with an even kernel needs one more pixel at the end, which is added
    to the input.
    """
    n = len(strides)
    if padding == "valid":
        return input, (0,) * n
    if padding != "same":
        return input, sizes(name, "padding", padding, 0, n)
    if max(strides) > 1:
        what = f'{name}: padding "same" with stride {strides}'
        fail(ShapeError, what, "a padding in pixels: padding=1 for a kernel of 3", input=input)
    total = [d * (k - 1) for d, k in zip(dilations, kernel)]
    if any(t % 2 for t in total):
        input = pad(input, [width for t in reversed(total) for width in (0, t % 2)])
    return input, tuple(t // 2 for t in total)


def conv_nd(
    op: Op,
    n: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sizes,
    padding: Sizes | str,
    dilation: Sizes,
    groups: int,
) -> Tensor:
    """A cross-correlation over n axes."""
    name = op.name
    check_tensor(name, input)
    strides, dilations = sizes(name, "stride", stride, 1, n), sizes(name, "dilation", dilation, 1, n)
    x, pads = same_padding(name, input, padding, strides, dilations, weight.spec.shape[2:])
    x, weight = same_dtype(name, x, weight)
    attrs: Any = dict(stride=strides, padding=pads, dilation=dilations, groups=groups)
    if x.spec.dtype.is_complex:
        return by_real_parts(lambda *parts: conv_nd(op, n, *parts, **attrs), x, weight, bias)
    return op(x, weight, 0 if bias is None else match_product(bias, x), **attrs)


def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Size1 = 1,
    padding: Size1 | str = 0,
    dilation: Size1 = 1,
    groups: int = 1,
) -> Tensor:
    """out[n,f,i] = sum over c,u of input[n,c,i*s+u*d-p] * weight[f,c,u], plus bias[f].

    input: float or complex (N, C, L) or (C, L). weight: (F, C / groups, K). bias: (F,) or None.
    stride s, padding p, dilation d: in elements along L; padding also "same" (stride 1 only) or "valid".
    Returns (N, F, (L + 2p - d*(K-1) - 1) // s + 1). Raises ShapeError if C differs or the output would be empty.
    """
    return conv_nd(conv_composites.conv1d, 1, input, weight, bias, stride, padding, dilation, groups)


def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Size3 = 1,
    padding: Size3 | str = 0,
    dilation: Size3 = 1,
    groups: int = 1,
) -> Tensor:
    """Cross-correlate volumes with filters, plus bias[f]: as conv2d, with one more spatial axis.

    input: float or complex (N, C, D, H, W) or (C, D, H, W). weight: (F, C / groups, KD, KH, KW). bias: (F,) or None.
    stride, padding, dilation: int or three of them, in voxels; padding also "same" (stride 1 only) or "valid".
    Returns (N, F, D', H', W') with D' = (D + 2p - d*(KD-1) - 1) // s + 1. Raises ShapeError if C differs or the output
    would be empty.
    """
    return conv_nd(conv_composites.conv3d, 3, input, weight, bias, stride, padding, dilation, groups)


def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """conv1d of a sequence: input (T, N, C), weight (K, C, F), bias (F,), result (T + 2 * pad - K + 1, N, F)."""
    if input.ndim != 3 or weight.ndim != 3:
        what = f"conv_tbc: an input of {input.ndim} and a weight of {weight.ndim} axes"
        fail(ShapeError, what, "the input (time, batch, channels), the weight (K, channels, filters)", input=input)
    return conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad).permute(2, 0, 1)
