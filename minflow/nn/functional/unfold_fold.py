"""Windows as columns and back, and channels as pixels and back. Read next: `../../core/ops/columns.py`."""

from __future__ import annotations

import math

from ...core.base.errors import DTypeError, ShapeError
from ...core.functions.arguments import integer
from ...core.ops import pixel_shuffle as pixels
from ...core.ops.columns import col2im, im2col
from ...core.source_location import fail
from ...core.tensor import Tensor
from .arguments import check_tensor, sizes
from .conv import Size2, Sizes


def window_attrs(
    name: str, size: tuple[int, ...], kernel_size: Sizes, dilation: Sizes, padding: Sizes, stride: Sizes
) -> dict[str, tuple[int, ...]]:
    """Return the attrs of im2col for images of this size. Raises ShapeError if a window does not fit."""
    kernel, step = sizes(name, "kernel_size", kernel_size, 1, 2), sizes(name, "stride", stride, 1, 2)
    pad, spread = sizes(name, "padding", padding, 0, 2), sizes(name, "dilation", dilation, 1, 2)
    if any(d * (k - 1) + 1 > n + 2 * p for n, k, d, p in zip(size, kernel, spread, pad)):
        what = f"{name}: a window of {kernel} with dilation {spread} does not fit into {tuple(size)} with padding {pad}"
        fail(ShapeError, what, "a smaller window, or more padding")
    return dict(kernel_size=kernel, stride=step, padding=pad, dilation=spread)


def check_floating(name: str, input: Tensor) -> None:
    check_tensor(name, input)
    if not input.spec.dtype.floating:
        what = f"{name}: the input must be floating, got {input.spec.dtype.name}"
        fail(DTypeError, what, "x.float()", input=input)


def unfold(input: Tensor, kernel_size: Size2, dilation: Size2 = 1, padding: Size2 = 0, stride: Size2 = 1) -> Tensor:
    """The windows of images as columns (im2col): (N, C, H, W) to (N, C * KH * KW, L), L the number of positions.

    input: float (N, C, H, W) or (C, H, W). A convolution is a matrix product with these columns. Raises ShapeError if
    no window fits.
    """
    check_floating("unfold", input)
    if input.spec.ndim not in (3, 4) or not all(input.spec.shape[-3:]):
        what = f"unfold: the input must be (N, C, H, W) or (C, H, W), got {input.spec.shape}"
        fail(ShapeError, what, "x.unfold(dim, size, step) is for the windows of one axis", input=input)
    attrs = window_attrs("unfold", input.spec.shape[-2:], kernel_size, dilation, padding, stride)
    single = input.spec.ndim == 3
    out = im2col(input.unsqueeze(0) if single else input, **attrs)
    return out.squeeze(0) if single else out


def fold(
    input: Tensor, output_size: Size2, kernel_size: Size2, dilation: Size2 = 1, padding: Size2 = 0, stride: Size2 = 1
) -> Tensor:
    """Sum columns into images (col2im): (N, C * KH * KW, L) to (N, C, *output_size); overlapping windows are added.

    input: float (N, C * KH * KW, L) or (C * KH * KW, L), as unfold returns for images of output_size.
    """
    check_floating("fold", input)
    size = sizes("fold", "output_size", output_size, 1, 2)
    attrs = window_attrs("fold", size, kernel_size, dilation, padding, stride)
    shape, area = input.spec.shape, math.prod(attrs["kernel_size"])
    places = math.prod((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in zip(size, *attrs.values()))
    if len(shape) not in (2, 3) or not shape[-2] or shape[-2] % area or shape[-1] != places:
        what = f"fold: the input must be (N, C * {area}, {places}) for images of {size}, got {shape}"
        fail(ShapeError, what, "the result of F.unfold for such images, with the same options", input=input)
    single = len(shape) == 2
    x = input.unsqueeze(0) if single else input
    out = col2im(x, shape=(x.spec.shape[0], shape[-2] // area, *size), **attrs)
    return out.squeeze(0) if single else out


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Rearrange channels into pixels: (..., C * r * r, H, W) to (..., C, H * r, W * r). Shi et al. 2016, eq. 4.

    Raises ShapeError if r * r does not divide the channels.
    """
    check_tensor("pixel_shuffle", input)
    return pixels.pixel_shuffle(input, upscale_factor=integer(upscale_factor, "upscale_factor"))


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """The inverse of pixel_shuffle: (..., C, H * r, W * r) to (..., C * r * r, H, W)."""
    check_tensor("pixel_unshuffle", input)
    return pixels.pixel_unshuffle(input, downscale_factor=integer(downscale_factor, "downscale_factor"))


def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Interleave groups of channels (axis 1): the first of each group, then the second. Zhang et al. 2018, fig. 1."""
    check_tensor("channel_shuffle", input)
    return pixels.channel_shuffle(input, groups=integer(groups, "groups"))
