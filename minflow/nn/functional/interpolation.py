"""interpolate: signals, images and volumes in another size. Each axis is a sum of taps: positions and their weights.

The taps are known from sizes alone, so they are constants of a graph. Read next: `grid_sampling.py`, for places that
are not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...core.base.errors import DTypeError, ShapeError
from ...core.functions.creation import from_numpy
from ...core.ops.index import take
from ...core.spec import float16, float32, float64, uint8
from ...core.tensor import Tensor
from ...core.source_location import fail
from .adaptive_pools import adaptive_avg_pool1d, adaptive_avg_pool3d
from .arguments import check_tensor, composite
from .pooling import adaptive_avg_pool2d

AREA = {1: adaptive_avg_pool1d, 2: adaptive_avg_pool2d, 3: adaptive_avg_pool3d}
AXES_OF = {
    "linear": (1,),
    "bilinear": (2,),
    "bicubic": (2,),
    "trilinear": (3,),
    **dict.fromkeys(("nearest", "nearest-exact", "area"), (1, 2, 3)),
}
CUBIC = -0.75  # the slope of the kernel, as in PyTorch and OpenCV. Keys 1981, eq. 15


def cubic_weights(t):
    """Weights of the four taps around a place that lies t behind the second. Numbers, arrays or tensors."""
    a = CUBIC
    near = lambda d: ((a + 2) * d - (a + 3)) * d * d + 1  # noqa: E731
    far = lambda d: ((a * d - 5 * a) * d + 8 * a) * d - 4 * a  # noqa: E731
    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


def taps(n: int, m: int, factor: float | None, mode: str, align: bool, real: type) -> list[tuple]:
    """[(positions, weights or None)]: what m numbers are made of, from n. factor: how much larger, where given."""
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


def smooth_taps(n: int, m: int, factor: float | None, mode: str, align: bool, real: type) -> list[tuple]:
    """taps() where smaller means a wider kernel, as in PIL: each new number is a mean over all that it covers."""
    ratio = real(1 / factor) if factor else real(n) / real(m)
    if align:
        ratio = real(n - 1) / real(m - 1) if m > 1 else real(0)
    wide, half = max(ratio, real(1)), 2 if mode == "bicubic" else 1
    middle = ratio * (np.arange(m, dtype=real) + real(0.5))
    first = np.maximum(np.trunc(middle - half * wide + real(0.5)), 0)
    last = np.minimum(np.trunc(middle + half * wide + real(0.5)), n)  # without it
    each = first + np.arange(int((last - first).max()))[:, None]
    d = np.abs(each - middle + real(0.5)) / wide
    near, far = (1.5 * d - 2.5) * d * d + 1, ((2.5 - 0.5 * d) * d - 4) * d + 2  # Keys 1981, eq. 8: slope -0.5
    weights = np.where(d < 1, near, far) if mode == "bicubic" else 1 - d
    weights = np.where((d < half) & (each < last), weights, 0)
    weights = weights / weights.sum(axis=0)
    return [(np.minimum(p, n - 1).astype("int64"), w) for p, w in zip(each, weights)]


def target(input: Tensor, n: int, size, scale_factor) -> tuple[tuple[int, ...], tuple]:
    """(the size of the result, the factor of each axis or None)."""
    if (size is None) == (scale_factor is None):
        what = f"interpolate: size is {size!r} and scale_factor is {scale_factor!r}, where one of them is wanted"
        fail(ShapeError, what, "size=(64, 64), or scale_factor=2", input=input)
    name, value = ("size", size) if scale_factor is None else ("scale_factor", scale_factor)
    each = tuple(value) if isinstance(value, list | tuple) else (value,) * n
    kind = "__index__" if size is not None else "__float__"
    if len(each) != n or not all(hasattr(v, kind) and not isinstance(v, bool) for v in each):
        words = "whole number" if size is not None else "number"
        what = f"interpolate: {name} is {value!r}, where a {words}, or one for each of {n} axes, is wanted"
        fail(ShapeError, what, "size=(64, 64), or scale_factor=2", input=input)
    have = input.spec.shape[2:]
    if not input.spec.shape[1]:
        fail(ShapeError, f"interpolate: the input has shape {input.spec.shape}, and no channel", "x.shape", input=input)
    if size is not None:
        wanted, factors = tuple(v.__index__() for v in each), (None,) * n
    else:
        factors = tuple(float(v) for v in each)
        wanted = tuple(int(m * f) if math.isfinite(f) else 0 for m, f in zip(have, factors))
    if min((*wanted, *have)) < 1:
        fail(
            ShapeError,
            f"interpolate: from {have} to {wanted}, where at least 1 is wanted",
            f"{name} above 0",
            input=input,
        )
    return wanted, factors


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
    """The input in another size: floor(size * scale_factor) where a factor is given.

    input: float (N, C, L), (N, C, H, W) or (N, C, D, H, W). mode: "nearest", "nearest-exact", "area" (the mean of what
    a new pixel covers), "linear" (N, C, L), "bilinear", "bicubic" (N, C, H, W), "trilinear" (N, C, D, H, W).
    align_corners: the middles of the outer pixels stay where they are, instead of their outer edges.
    recompute_scale_factor: the steps are those of the rounded size. antialias: "bilinear" and "bicubic" take
    the mean of all that a new pixel covers, as PIL does.
    """
    check_tensor("interpolate", input)
    n = input.spec.ndim - 2
    if mode not in AXES_OF:
        fail(ShapeError, f"interpolate: mode is {mode!r}", ", ".join(map(repr, AXES_OF)), input=input)
    if n not in AXES_OF[mode]:
        fits = [other for other, axes in AXES_OF.items() if n in axes]
        wanted_axes = " or ".join(str(a + 2) for a in AXES_OF[mode])
        what = f"interpolate: mode {mode!r} for an input of {n + 2} axes, wanted {wanted_axes}"
        fail(ShapeError, what, " or ".join(map(repr, fits)) or "x.unsqueeze(0): (N, C, ...)", input=input)
    if antialias and mode not in ("bilinear", "bicubic"):
        fail(ShapeError, f"interpolate: antialias for mode {mode!r}", 'mode="bilinear" or "bicubic"', input=input)
    plain = mode in ("nearest", "nearest-exact", "area")
    if plain and align_corners is not None:
        fail(
            ShapeError,
            f"interpolate: align_corners={align_corners!r} means nothing for mode {mode!r}",
            'mode="bilinear", or no align_corners',
            input=input,
        )
    dtype = input.spec.dtype
    if not dtype.floating and not (dtype is uint8 and mode.startswith("nearest")):
        fail(DTypeError, f"interpolate: the input is {dtype.name}, where floats are wanted", "x.float()", input=input)
    wanted, factors = target(input, n, size, scale_factor)
    if recompute_scale_factor and size is not None:
        fail(
            ShapeError,
            "interpolate: recompute_scale_factor with a size, which has no factor",
            "scale_factor=...",
            input=input,
        )
    if mode == "area":
        return AREA[n](input, wanted)
    if recompute_scale_factor:
        factors = (None,) * n
    half = dtype is float16 and not plain
    out = input.to(float32) if half else input
    real = np.float64 if dtype is float64 and not plain else np.float32
    for axis in range(n + 1, 1, -1):
        have, want, factor = out.spec.shape[axis], wanted[axis - 2], factors[axis - 2]
        if have != want or factor not in (None, 1.0):
            kernel = smooth_taps if antialias else taps
            out = resampled(out, axis, kernel(have, want, factor, mode, bool(align_corners), real))
    out = out.clone() if out is input else out
    return out.to(float16) if half else out


def resampled(x: Tensor, axis: int, each: list[tuple]) -> Tensor:
    """The weighted sum of x at several positions along an axis."""
    total = None
    for places, weights in each:
        term = take(x, from_numpy(places), axis=axis)
        if weights is not None:
            wide = (-1,) + (1,) * (x.spec.ndim - 1 - axis)
            term = term * from_numpy(weights.astype(x.spec.dtype.np).reshape(wide))
        total = term if total is None else total + term
    return total


def upsample(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """interpolate, by its older name."""
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size=None, scale_factor=None) -> Tensor:
    """interpolate with mode "nearest", by its older name."""
    return interpolate(input, size, scale_factor, "nearest")


def upsample_bilinear(input: Tensor, size=None, scale_factor=None) -> Tensor:
    """interpolate with mode "bilinear" and align_corners, by its older name."""
    return interpolate(input, size, scale_factor, "bilinear", True)
