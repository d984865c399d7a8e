"""interpolate: resize signals, images and volumes. Along each axis, an output is a weighted sum of taps.

A tap is a position and its weight. The taps depend only on sizes, so they are constants of a graph. Read next:
`grid_sampling.py`, for positions that are tensors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.base.errors import DTypeError, ShapeError
from ...core.functions.creation import from_numpy
from ...core.ops.index import take
from ...core.source_location import fail
from ...core.spec import float16, float32, float64, uint8
from ...core.tensor import Tensor
from .adaptive_pools import adaptive_avg_pool1d, adaptive_avg_pool3d
from .arguments import check_tensor, composite
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
Real = type[np.floating]  # the type in which positions and weights are computed
Tap = tuple[np.ndarray, np.ndarray | None]  # (positions, weights or None)
CUBIC_PARAMETER = -0.75  # parameter a of the kernel, as in PyTorch and OpenCV. Keys 1981, eq. 15


def cubic_weights(t: Any) -> list[Any]:
    """Weights of the four taps around a position at distance t after the second. t: number, array or tensor."""
    a = CUBIC_PARAMETER
    near = lambda d: ((a + 2) * d - (a + 3)) * d * d + 1
    far = lambda d: ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


def taps(n: int, m: int, factor: float | None, mode: str, align: bool, real: Real) -> list[Tap]:
    """Return [(positions, weights or None)]: taps of m output elements over n input elements. factor: scale or None."""
    ratio = real(1 / factor) if factor else real(n) / real(m)
    i = np.arange(m, dtype=real)
    if mode in ("nearest", "nearest-exact"):
        places = np.floor((i + real(0.5)) * ratio if mode == "nearest-exact" else i * ratio)
        return [(np.minimum(places, n - 1).astype("int64"), None)]
    if align:
        places = i * (real(n - 1) / real(m - 1) if m > 1 else real(0))
    else:
        places = (i + real(0.5)) * ratio - real(0.5)
    if mode == "bicubic":
        first = np.floor(places)
        return [
            (np.clip(first + k - 1, 0, n - 1).astype("int64"), w) for k, w in enumerate(cubic_weights(places - first))
        ]
    places = np.maximum(places, 0)
    first = np.minimum(np.floor(places), n - 1)
    part = np.clip(places - first, 0, 1)
    return [(first.astype("int64"), 1 - part), (np.minimum(first + 1, n - 1).astype("int64"), part)]


def smooth_taps(n: int, m: int, factor: float | None, mode: str, align: bool, real: Real) -> list[Tap]:
    """Return taps with antialiasing: when shrinking, the kernel covers all inputs of an output, as in PIL."""
    ratio = real(1 / factor) if factor else real(n) / real(m)
    if align:
        ratio = real(n - 1) / real(m - 1) if m > 1 else real(0)
    wide, half = max(ratio, real(1)), 2 if mode == "bicubic" else 1
    middle = ratio * (np.arange(m, dtype=real) + real(0.5))
    first = np.maximum(np.trunc(middle - half * wide + real(0.5)), 0)
    last = np.minimum(np.trunc(middle + half * wide + real(0.5)), n)  # exclusive end
    each = first + np.arange(int((last - first).max()))[:, None]
    d = np.abs(each - middle + real(0.5)) / wide
    near, far = (1.5 * d - 2.5) * d * d + 1, ((2.5 - 0.5 * d) * d - 4) * d + 2  # Keys 1981, eq. 8: slope -0.5
    weights = np.where(d < 1, near, far) if mode == "bicubic" else 1 - d
    weights = np.where((d < half) & (each < last), weights, 0)
    weights = weights / weights.sum(axis=0)
    return [(np.minimum(p, n - 1).astype("int64"), w) for p, w in zip(each, weights)]


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
        fail(
            ShapeError,
            f"interpolate: each size must be at least 1, got {output_size} from {have}",
            f"{name} above 0",
            input=input,
        )
    return output_size, factors


@composite("interpolate")
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
        fail(
            ShapeError,
            f"interpolate: align_corners={align_corners!r} has no meaning for mode {mode!r}",
            'mode="bilinear", or no align_corners',
            input=input,
        )
    dtype = input.spec.dtype
    if not dtype.floating and not (dtype is uint8 and mode.startswith("nearest")):
        fail(DTypeError, f"interpolate: the input must be floating, got {dtype.name}", "x.float()", input=input)
    output_size, factors = output_size_and_factors(input, n, size, scale_factor)
    if recompute_scale_factor and size is not None:
        fail(
            ShapeError,
            "interpolate: recompute_scale_factor with a size, which has no factor",
            "scale_factor=...",
            input=input,
        )
    if mode == "area":
        return AREA_POOLS[n](input, output_size)
    if recompute_scale_factor:
        factors = (None,) * n
    half = dtype is float16 and not plain
    out = input.to(float32) if half else input
    real = np.float64 if dtype is float64 and not plain else np.float32
    for axis in range(n + 1, 1, -1):
        have, want, factor = out.spec.shape[axis], output_size[axis - 2], factors[axis - 2]
        if have != want or factor not in (None, 1.0):
            kernel = smooth_taps if antialias else taps
            out = apply_taps(out, axis, kernel(have, want, factor, mode, bool(align_corners), real))
    out = out.clone() if out is input else out
    return out.to(float16) if half else out


def apply_taps(x: Tensor, axis: int, each: Sequence[Tap]) -> Tensor:
    """Sum the weighted elements of x at the taps, along an axis."""
    total: Tensor | None = None
    for places, weights in each:
        term = take(x, from_numpy(places), axis=axis)
        if weights is not None:
            wide = (-1,) + (1,) * (x.spec.ndim - 1 - axis)
            term = term * from_numpy(weights.astype(x.spec.dtype.np).reshape(wide))
        total = term if total is None else total + term
    assert total is not None  # there is at least one tap
    return total


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
