"""Pooling: the maximum or the mean of each window of an image. Read next: `../../core/ops/pool.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.base.errors import ShapeError
from ...core.functions.arguments import integer
from ...core.ops import pool
from ...core.source_location import fail
from ...core.tensor import Tensor
from .arguments import check_tensor, pair

Size2 = int | Sequence[int]  # one for both axes, or (rows, columns)
Pooled = Tensor | Any  # the maxima, a Tensor; or (maxima, indices) if return_indices is True


def to_image_batch(name: str, input: Tensor) -> Tensor:
    """Return (N, C, H, W) from a batch or a single image."""
    check_tensor(name, input)
    if input.spec.ndim not in (3, 4):
        hint = "x.flatten(0, -4) for more axes of examples" if input.spec.ndim > 4 else "x.reshape(N, C, H, W)"
        if input.spec.ndim == 2:
            hint = "pooling before nn.Flatten(); x.unsqueeze(1) if it is images without an axis of channels"
        what = f"{name}: the input must be (N, C, H, W) or (C, H, W), got {input.spec.ndim} axes"
        fail(ShapeError, what, hint, input=input)
    if 0 in input.spec.shape[-3:]:
        fail(ShapeError, f"{name}: an image of {list(input.spec.shape[-3:])} has no pixels", "x.shape", input=input)
    return input if input.spec.ndim == 4 else input.unsqueeze(0)


def window_attrs(name: str, kernel_size: Size2, stride: Size2 | None, padding: Size2) -> dict[str, Any]:
    """Return the attrs common to both pooling ops: pairs for rows and columns."""
    kernel = pair(name, "kernel_size", kernel_size, 1)
    return {
        "kernel_size": kernel,
        "stride": kernel if stride is None else pair(name, "stride", stride, 1),
        "padding": pair(name, "padding", padding, 0),
    }


def max_pool2d(
    input: Tensor,
    kernel_size: Size2,
    stride: Size2 | None = None,
    padding: Size2 = 0,
    dilation: Size2 = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Pooled:
    """The maximum of each window. input: float (N, C, H, W) or (C, H, W); padding is never the maximum.

    stride: kernel_size if None. ceil_mode: include a last window that extends beyond the edge. return_indices: also
    return the index in H * W of each maximum, int64.
    """
    x = to_image_batch("max_pool2d", input)
    attrs = window_attrs("max_pool2d", kernel_size, stride, padding)
    spread = pair("max_pool2d", "dilation", dilation, 1)
    out, indices = pool.max_pool2d(x, **attrs, dilation=spread, ceil_mode=bool(ceil_mode))
    if x is not input:
        out, indices = out.squeeze(0), indices.squeeze(0) if return_indices else indices
    return (out, indices) if return_indices else out


def avg_pool2d(
    input: Tensor,
    kernel_size: Size2,
    stride: Size2 | None = None,
    padding: Size2 = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each window. input: float (N, C, H, W) or (C, H, W).

    stride: kernel_size if None. count_include_pad: include the zeros of the padding in the mean. divisor_override:
    divide by this instead of the number of pixels.
    """
    x = to_image_batch("avg_pool2d", input)
    if divisor_override is not None and not integer(divisor_override, "divisor_override"):
        what = "avg_pool2d: divisor_override is 0"
        fail(ShapeError, what, "the number to divide each window's sum by, or None", input=input)
    attrs = window_attrs("avg_pool2d", kernel_size, stride, padding)
    attrs |= {"ceil_mode": bool(ceil_mode), "count_include_pad": bool(count_include_pad)}
    out = pool.avg_pool2d(x, **attrs, divisor_override=divisor_override)
    return out if x is input else out.squeeze(0)


def adaptive_avg_pool2d(input: Tensor, output_size: int | tuple[int | None, ...] | None) -> Tensor:
    """The mean of each of output_size windows: window i of n goes from floor(i*H/n) to ceil((i+1)*H/n).

    output_size: int, pair, or None for an axis that keeps its size. input: float (N, C, H, W) or (C, H, W).
    """
    x = to_image_batch("adaptive_avg_pool2d", input)
    requested = tuple(output_size) if isinstance(output_size, tuple | list) else (output_size, output_size)
    if len(requested) == 3:
        pair("adaptive_avg_pool2d", "output_size", requested, 1)
    filled = tuple(have if want is None else want for want, have in zip(requested, x.spec.shape[2:]))
    out = pool.adaptive_avg_pool2d(x, output_size=pair("adaptive_avg_pool2d", "output_size", filled, 1))
    return out if x is input else out.squeeze(0)
