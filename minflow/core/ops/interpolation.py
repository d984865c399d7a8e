"""Interpolation: resize signals, images and volumes. Along each axis, an output is a weighted sum of taps.

A tap is a position and its weight. The taps depend only on sizes, so they are constants of a graph. Compiled kernels:
`../../platforms/compiled/kernels/interpolation.py`. Read next: `grid_sampling.py`, for positions that are tensors.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

from ..backend import namespace
from ..base.errors import DTypeError, ShapeError
from ..host import HostArray
from ..infer import check_memory
from ..op import define
from ..spec import DType, Spec, float16, float32, float64, int64, uint8
from .examples import case, floats, ints, strided
from .index import take
from .shape import cast, constant_beside

MODES = "nearest", "nearest-exact", "linear", "cubic"
Real = Callable[[float], Any]  # the type of scalars in which positions and weights are computed
Tap = tuple[HostArray, HostArray | None]  # (positions, weights or None)
CUBIC_PARAMETER = -0.75  # parameter a of the kernel, as in PyTorch and OpenCV. Keys 1981, eq. 15


def cubic_weights(t: Any) -> list[Any]:
    """Weights of the four taps around a position at distance t after the second. t: number, array or tensor."""
    a = CUBIC_PARAMETER
    near = lambda d: ((a + 2) * d - (a + 3)) * d * d + 1
    far = lambda d: ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


def taps(n: int, m: int, factor: float | None, mode: str, align: bool, real: Real) -> list[Tap]:
    """Return [(positions, weights or None)]: taps of m output elements over n input elements. factor: scale or None."""
    xp, ratio = namespace(), real(1 / factor) if factor else real(n) / real(m)
    i = xp.arange(m, dtype=real)
    if mode in ("nearest", "nearest-exact"):
        places = xp.floor((i + real(0.5)) * ratio if mode == "nearest-exact" else i * ratio)
        return [(xp.minimum(places, n - 1).astype("int64"), None)]
    if align:
        places = i * (real(n - 1) / real(m - 1) if m > 1 else real(0))
    else:
        places = (i + real(0.5)) * ratio - real(0.5)
    if mode == "cubic":
        first = xp.floor(places)
        return [
            (xp.clip(first + k - 1, 0, n - 1).astype("int64"), w) for k, w in enumerate(cubic_weights(places - first))
        ]
    places = xp.maximum(places, 0)
    first = xp.minimum(xp.floor(places), n - 1)
    part = xp.clip(places - first, 0, 1)
    return [(first.astype("int64"), 1 - part), (xp.minimum(first + 1, n - 1).astype("int64"), part)]


def smooth_taps(n: int, m: int, factor: float | None, mode: str, align: bool, real: Real) -> list[Tap]:
    """Return taps with antialiasing: when shrinking, the kernel covers all inputs of an output, as in PIL."""
    xp, ratio = namespace(), real(1 / factor) if factor else real(n) / real(m)
    if align:
        ratio = real(n - 1) / real(m - 1) if m > 1 else real(0)
    wide, half = max(ratio, real(1)), 2 if mode == "cubic" else 1
    middle = ratio * (xp.arange(m, dtype=real) + real(0.5))
    first = xp.maximum(xp.trunc(middle - half * wide + real(0.5)), 0)
    last = xp.minimum(xp.trunc(middle + half * wide + real(0.5)), n)  # exclusive end
    each = first + xp.arange(int((last - first).max()))[:, None]
    d = xp.abs(each - middle + real(0.5)) / wide
    near, far = (1.5 * d - 2.5) * d * d + 1, ((2.5 - 0.5 * d) * d - 4) * d + 2  # Keys 1981, eq. 8: slope -0.5
    weights = xp.where(d < 1, near, far) if mode == "cubic" else 1 - d
    weights = xp.where((d < half) & (each < last), weights, 0)
    weights = weights / weights.sum(axis=0)
    return [(xp.minimum(p, n - 1).astype("int64"), w) for p, w in zip(each, weights)]


@functools.lru_cache(maxsize=256)
def known_taps(
    n: int, m: int, factor: float | None, mode: str, align: bool, antialias: bool, real: Real
) -> tuple[Tap, ...]:
    """Taps in read-only arrays, cached."""
    check_memory("interpolate", (Spec((m,), int64), Spec((m,), float64)))
    found = (smooth_taps if antialias else taps)(n, m, factor, mode, align, real)
    for array in itertools.chain.from_iterable(found):
        if array is not None:
            array.flags.writeable = False
    return tuple(found)


def changed_axes(shape: tuple[int, ...], output_size: tuple[int, ...], factors: tuple) -> list[int]:
    """The axes that change, in order of computation."""
    sizes = [*zip(shape[2:], output_size, factors)]
    return [i + 2 for i, (n, m, factor) in reversed([*enumerate(sizes)]) if n != m or factor not in (None, 1.0)]


def axis_taps(
    shape: tuple[int, ...],
    dtype: DType,
    output_size: tuple[int, ...],
    factors: tuple[float | None, ...],
    mode: str,
    align_corners: bool,
    antialias: bool,
) -> Iterator[tuple[int, tuple[Tap, ...]]]:
    """Yield (axis, its taps) for each axis that changes."""
    real = (float64 if dtype is float64 and mode in ("linear", "cubic") else float32).np.type
    for axis in changed_axes(shape, output_size, factors):
        sizes = shape[axis], output_size[axis - 2], factors[axis - 2]
        yield axis, known_taps(*sizes, mode, align_corners, antialias, real)


def interpolate_spec(x: Spec, output_size, factors, mode, align_corners, antialias) -> Spec:
    nearest = mode.startswith("nearest")
    if mode not in MODES or (antialias and nearest):
        raise ShapeError(f"interpolate: mode {mode!r}, antialias {antialias}", hint=f"mode: {', '.join(MODES)}")
    if not x.dtype.floating and not (x.dtype is uint8 and nearest):
        raise DTypeError(f"interpolate: {{x}} must be floating, got {x.dtype.name}", hint="{x}.float()")
    if not 3 <= x.ndim <= 5 or len(output_size) != x.ndim - 2 or len(factors) != x.ndim - 2:
        raise ShapeError(f"interpolate: {{x}} of shape {x.shape} to {output_size}", hint="(N, C, H, W) to (64, 64)")
    if min(*output_size, *x.shape[1:]) < 1:
        raise ShapeError(f"interpolate: each size must be at least 1, got {output_size} from {x.shape}")
    for have, want, factor in zip(x.shape[2:], output_size, factors):
        if factor is not None and not (0 < factor < math.inf and want <= have * factor < want + 1):
            raise ShapeError(f"interpolate: size {have} times {factor} is not {want}", hint="factors: None")
    return x.replace(shape=(*x.shape[:2], *output_size))


def interpolate_parts(x, output_size, factors, mode, align_corners, antialias):
    half = x.spec.dtype is float16 and not mode.startswith("nearest")
    out = wide = cast(x, dtype=float32) if half else x
    for axis, each in axis_taps(x.spec.shape, x.spec.dtype, output_size, factors, mode, align_corners, antialias):
        out = apply_taps(out, axis, each)
    out = out.clone() if out is wide else out
    return cast(out, dtype=float16) if half else out


def apply_taps(x, axis: int, each: tuple[Tap, ...]):
    """Sum the weighted elements of x at the taps, along an axis. Each constant has memory of its own."""
    total: Any = None
    for places, weights in each:
        term = take(x, constant_beside(x, places.copy()), axis=axis)
        if weights is not None:
            wide = weights.astype(x.spec.dtype.np).reshape(-1, *[1] * (x.spec.ndim - 1 - axis))
            term = term * constant_beside(x, wide)
        total = term if total is None else total + term
    return total


def resized(x, *output_size: int, factors=None, mode="linear", align_corners=False, antialias=False):
    """An example."""
    return case(
        x,
        output_size=output_size,
        factors=factors or (None,) * len(output_size),
        mode=mode,
        align_corners=align_corners,
        antialias=antialias,
    )


interpolate = define(
    "interpolate(x; output_size, factors, mode, align_corners, antialias)",
    interpolate_spec,
    decompose=interpolate_parts,
    unread=["x"],
    slow_on_numpy=True,
    examples=[
        resized(floats(2, 3, 4, 4), 7, 7),  # both axes have the same taps
        resized(floats(1, 2, 4, 5), 9, 5, align_corners=True),
        resized(strided(2, 3, 4, 5), 8, 10, factors=(2.0, 2.0), mode="nearest"),
        resized(floats(2, 1, 5), 8, factors=(1.7,), mode="nearest-exact"),
        resized(floats(0, 3, 4), 6),
        resized(floats(1, 2, 2, 3, 4), 3, 3, 6),
        resized(floats(2, 2, 6, 5), 4, 8, mode="cubic"),
        resized(floats(1, 2, 9, 8), 4, 3, antialias=True),
        resized(floats(1, 2, 9, 8), 4, 8, mode="cubic", antialias=True),
        resized(floats(1, 2, 3, 4), 3, 4),
        resized(floats(1, 2, 3, 4, dtype="float32"), 6, 4),
        resized(floats(1, 2, 3, 4, dtype="float16"), 5, 7),
        resized(ints(1, 2, 3, 4, dtype="uint8"), 6, 8, mode="nearest"),
    ],
    doc=(
        "Resize the axes from the third on. factors: scale of each axis, of which output_size is the floor, or None. "
        'mode: "nearest", "nearest-exact", "linear" or "cubic".'
    ),
)
