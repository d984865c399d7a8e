"""interpolate: resize signals, images and volumes. Read next: `../../core/ops/interpolation.py`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ...core.base.errors import DTypeError, ShapeError
from ...core.ops.interpolation import interpolate as resize
from ...core.source_location import fail
from ...core.spec import uint8
from ...core.tensor import Tensor
from .adaptive_pools import adaptive_avg_pool1d, adaptive_avg_pool3d
from .arguments import check_tensor
from .pooling import adaptive_avg_pool2d

AREA_POOLS: dict[int, Callable[[Tensor, tuple[int, ...]], Tensor]] = {
    1: adaptive_avg_pool1d,
    2: adaptive_avg_pool2d,
    3: adaptive_avg_pool3d,
}
MODE_AXES = {
    "linear": (1,),
    "bilinear": (2,),
    "bicubic": (2,),
    "trilinear": (3,),
    **dict.fromkeys(("nearest", "nearest-exact", "area"), (1, 2, 3)),
}


def output_size_and_factors(
    input: Tensor, n: int, size: int | Sequence[int] | None, scale_factor: float | Sequence[float] | None
) -> tuple[tuple[int, ...], tuple[float | None, ...]]:
    """Return (output size, the scale factor of each axis or None)."""
    if (size is None) == (scale_factor is None):
        what = f"interpolate: one of size and scale_factor must be given, got {size!r} and {scale_factor!r}"
        fail(ShapeError, what, "size=(64, 64), or scale_factor=2", input=input)
    name, value = ("size", size) if scale_factor is None else ("scale_factor", scale_factor)
    each: tuple[Any, ...] = tuple(value) if isinstance(value, list | tuple) else (value,) * n
    kind = "__index__" if size is not None else "__float__"
    if len(each) != n or not all(hasattr(v, kind) and not isinstance(v, bool) for v in each):
        words = "whole number" if size is not None else "number"
        what = f"interpolate: {name} must be a {words}, or one for each of {n} axes, got {value!r}"
        fail(ShapeError, what, "size=(64, 64), or scale_factor=2", input=input)
    have = input.spec.shape[2:]
    if not input.spec.shape[1]:
        fail(ShapeError, f"interpolate: the input {input.spec.shape} has no channels", "x.shape", input=input)
    factors: tuple[float | None, ...] = (None,) * n
    if size is not None:
        output_size = tuple(v.__index__() for v in each)
    else:
        factors = scales = tuple(float(v) for v in each)
        output_size = tuple(int(m * f) if math.isfinite(f) else 0 for m, f in zip(have, scales))
    if min((*output_size, *have)) < 1:
        what = f"interpolate: each size must be at least 1, got {output_size} from {have}"
        fail(ShapeError, what, f"{name} above 0", input=input)
    return output_size, factors


def interpolate(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resize the input; with a scale factor to floor(size * scale_factor).

    input: float (N, C, L), (N, C, H, W) or (N, C, D, H, W). mode: "nearest", "nearest-exact", "area" (the mean of the
    input pixels under an output pixel), "linear" (N, C, L), "bilinear", "bicubic" (N, C, H, W), "trilinear" (N, C, D,
    H, W).
    align_corners: keep the centers of the outer pixels in place, instead of their outer edges.
    recompute_scale_factor: compute the steps from the rounded size. antialias: when shrinking, "bilinear" and "bicubic"
    average over all input pixels under an output pixel, as PIL does.
    """
    check_tensor("interpolate", input)
    n = input.spec.ndim - 2
    if mode not in MODE_AXES:
        fail(ShapeError, f"interpolate: mode is {mode!r}", ", ".join(map(repr, MODE_AXES)), input=input)
    if n not in MODE_AXES[mode]:
        fits = [other for other, axes in MODE_AXES.items() if n in axes]
        wanted_axes = " or ".join(str(a + 2) for a in MODE_AXES[mode])
        what = f"interpolate: mode {mode!r} needs an input of {wanted_axes} axes, got {n + 2}"
        fail(ShapeError, what, " or ".join(map(repr, fits)) or "x.unsqueeze(0): (N, C, ...)", input=input)
    if antialias and mode not in ("bilinear", "bicubic"):
        fail(ShapeError, f"interpolate: antialias for mode {mode!r}", 'mode="bilinear" or "bicubic"', input=input)
    plain = mode in ("nearest", "nearest-exact", "area")
    if plain and align_corners is not None:
        what = f"interpolate: align_corners={align_corners!r} has no meaning for mode {mode!r}"
        fail(ShapeError, what, 'mode="bilinear", or no align_corners', input=input)
    dtype = input.spec.dtype
    if not dtype.floating and not (dtype is uint8 and mode.startswith("nearest")):
        fail(DTypeError, f"interpolate: the input must be floating, got {dtype.name}", "x.float()", input=input)
    output_size, factors = output_size_and_factors(input, n, size, scale_factor)
    if recompute_scale_factor and size is not None:
        what = "interpolate: recompute_scale_factor with a size, which has no factor"
        fail(ShapeError, what, "scale_factor=...", input=input)
    if mode == "area":
        return AREA_POOLS[n](input, output_size)
    if recompute_scale_factor:
        factors = (None,) * n
    return resize(
        input,
        output_size=output_size,
        factors=factors,
        mode=mode.removeprefix("bi").removeprefix("tri"),
        align_corners=bool(align_corners),
        antialias=antialias,
    )


def upsample(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """The old name of interpolate."""
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(
    input: Tensor, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None
) -> Tensor:
    """The old name of interpolate with mode "nearest"."""
    return interpolate(input, size, scale_factor, "nearest")


def upsample_bilinear(
    input: Tensor, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None
) -> Tensor:
    """The old name of interpolate with mode "bilinear" and align_corners=True."""
    return interpolate(input, size, scale_factor, "bilinear", True)
