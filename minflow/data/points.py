"""Synthetic points: a line to fit, and classes in the plane to separate.

The function that generates them is known, so a model can be compared with the truth. Read next: `digits.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..core.base.errors import OutOfRangeError
from ..core.messages.suggestions import nearest
from ..core.source_location import fail

SLOPE, OFFSET = 3.0, -1.0  # of the line
TURNS = 1.5  # turns of each arm of the spiral


class PointKind(NamedTuple):
    classes: int
    noise: float  # default
    coordinates: Callable[
        [np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]
    ]  # classes, random in [0, 1) -> x0, x1


def blobs(y: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The corners of a triangle at distance 1 from its center, the first one above it."""
    angle = np.pi / 2 + 2 * np.pi * y / 3
    return np.cos(angle), np.sin(angle)


def moons(y: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two interleaved half circles, centered at (0, 0)."""
    side = np.where(y == 0, 1.0, -1.0)
    return side * (np.cos(np.pi * t) - 0.5), side * (np.sin(np.pi * t) - 0.25)


def spiral(y: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two arms that start near the center and end at distance 1; one is the other, rotated by half a turn."""
    angle = 2 * np.pi * TURNS * t + np.pi * y
    return (0.1 + 0.9 * t) * np.cos(angle), (0.1 + 0.9 * t) * np.sin(angle)


POINT_KINDS = {
    "blobs": PointKind(3, 0.25, blobs),
    "moons": PointKind(2, 0.1, moons),
    "spiral": PointKind(2, 0.03, spiral),
}
LINE_NOISE = 0.2


def points(kind: str, n: int = 200, noise: float | None = None, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Generate synthetic points: NumPy arrays `(x, y)`, the same for the same arguments.

    kind "line": x `float32[n]` in [-1, 1), y `float32[n]` = 3 * x - 1 + noise. A fit should find w = 3, b = -1.
    kind "blobs", "moons", "spiral": x `float32[n, 2]`, about -1.5 to 1.5, and y `int64[n]`, the class of each point.
    blobs: three classes around the corners of a triangle, linearly separable.  moons: two interleaved half circles.
    spiral: two arms that wind around each other, not linearly separable.

    n: the number of points, split evenly among the classes, in random order.
    noise: the standard deviation of the noise, on y for the line, else on both coordinates; default: line 0.2,
    blobs 0.25, moons 0.1, spiral 0.03; 0: none.
    Raises OutOfRangeError for any other kind, n below 1, a negative noise or seed.

    >>> x, y = points("moons", n=4)
    >>> x.shape, y.tolist()
    ((4, 2), [0, 0, 1, 1])
    """
    names = ["line", *POINT_KINDS]
    if kind not in names:
        hint = " or ".join(f'"{name}"' for name in nearest(str(kind), names) or names)
        fail(OutOfRangeError, "points: there is no such kind of points", hint, kind=kind)
    check_integer(1, "200", n=n)
    check_integer(0, "0", seed=seed)
    default_noise = LINE_NOISE if kind == "line" else POINT_KINDS[kind].noise
    noise = default_noise if noise is None else noise
    if isinstance(noise, bool) or not isinstance(noise, int | float | np.number) or not 0 <= noise < np.inf:
        fail(OutOfRangeError, "points: noise must be a number of at least 0", f"noise={default_noise}", noise=noise)
    rng = np.random.default_rng(seed)
    if kind == "line":
        x = rng.uniform(-1, 1, n).astype("float32")
        return x, (SLOPE * x + OFFSET + noise * rng.standard_normal(n)).astype("float32")
    y = rng.permutation(np.arange(n) % POINT_KINDS[kind].classes)
    x = np.stack(POINT_KINDS[kind].coordinates(y, rng.random(n)), axis=1) + noise * rng.standard_normal((n, 2))
    return x.astype("float32"), y


def check_integer(least: int, such_as: str, **values: object) -> None:
    """Raise an error unless a value is an integer of at least `least`."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            fail(OutOfRangeError, f"{name} must be an integer of at least {least}", f"{name}={such_as}", **values)
