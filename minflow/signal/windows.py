"""`flow.signal.windows`: signal windows of M elements. sym: symmetric, else without the last of one element more.

`flow.hann_window` and the like are the older names of some, periodic by default. Read next:
`../core/functions/windows.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from ..core.base.errors import OutOfRangeError
from ..core.functions import windows as _windows
from ..core.messages.suggestions import name_hints as _name_hints
from ..core.source_location import fail

__all__ = [
    "bartlett",
    "blackman",
    "cosine",
    "exponential",
    "gaussian",
    "general_cosine",
    "general_hamming",
    "hamming",
    "hann",
    "kaiser",
    "nuttall",
]


def points(name: str, M: int, sym: bool, options: dict[str, Any], shape: Any) -> Any:
    """A window of `shape(xp, t)` at points t in [0, 1]."""
    options.pop("layout", None)
    if unknown := {*options} - {"dtype", "device", "requires_grad"}:
        fail(OutOfRangeError, f"{name} has no argument {min(unknown)!r}", "dtype=, device=, requires_grad=")
    named = {key: options.get(key) for key in ("dtype", "device")}
    return _windows.window(name, M, not sym, shape, requires_grad=options.get("requires_grad", False), **named)


def bartlett(M: int, *, sym: bool = True, **options: Any) -> Any:
    """A triangle, 1 - |2t - 1|. options: dtype, device, requires_grad, here and below."""
    return points("bartlett", M, sym, options, lambda xp, t: 1 - xp.abs(2 * t - 1))


def general_cosine(M: int, *, a: Iterable[float], sym: bool = True, **options: Any) -> Any:
    """The sum of (-1)**i * a[i] * cos(2 pi i t)."""
    weights = list(a)
    if not weights:
        fail(OutOfRangeError, "general_cosine: a is empty", "a=[0.5, 0.5]")
    shape = lambda xp, t: sum((-1) ** i * w * xp.cos(2 * math.pi * i * t) for i, w in enumerate(weights))
    return points("general_cosine", M, sym, options, shape)


def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, **options: Any) -> Any:
    """alpha - (1 - alpha) * cos(2 pi t)."""
    return general_cosine(M, a=[alpha, 1 - alpha], sym=sym, **options)


def hamming(M: int, *, sym: bool = True, **options: Any) -> Any:
    """0.54 - 0.46 cos(2 pi t)."""
    return general_hamming(M, sym=sym, **options)


def hann(M: int, *, sym: bool = True, **options: Any) -> Any:
    """0.5 - 0.5 cos(2 pi t)."""
    return general_hamming(M, alpha=0.5, sym=sym, **options)


def blackman(M: int, *, sym: bool = True, **options: Any) -> Any:
    """0.42 - 0.5 cos(2 pi t) + 0.08 cos(4 pi t)."""
    return general_cosine(M, a=[0.42, 0.5, 0.08], sym=sym, **options)


def nuttall(M: int, *, sym: bool = True, **options: Any) -> Any:
    """0.364 - 0.489 cos(2 pi t) + 0.137 cos(4 pi t) - 0.011 cos(6 pi t)."""
    return general_cosine(M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], sym=sym, **options)


def cosine(M: int, *, sym: bool = True, **options: Any) -> Any:
    """The sine of half a turn, at the middle of each element."""
    length = M if sym else M + 1
    return points("cosine", M, sym, options, lambda xp, t: xp.sin(math.pi * (xp.arange(M) + 0.5) / length))


def exponential(M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, **options: Any) -> Any:
    """exp(-|i - center| / tau). center: the middle by default, which a symmetric window requires."""
    if tau <= 0 or (sym and center is not None):
        what = "exponential: tau must be above 0, and center is only for sym=False"
        fail(OutOfRangeError, what, "tau=1.0, sym=False", tau=tau, center=center)
    middle = ((M if not sym else M - 1) / 2) if center is None else center
    return points("exponential", M, sym, options, lambda xp, t: xp.exp(-xp.abs(xp.arange(M) - middle) / tau))


def gaussian(M: int, *, std: float = 1.0, sym: bool = True, **options: Any) -> Any:
    """exp(-(i - middle)**2 / (2 std**2))."""
    if std <= 0:
        fail(OutOfRangeError, f"gaussian: std must be above 0, got {std}", "std=1.0", std=std)
    middle = (M if not sym else M - 1) / 2
    return points("gaussian", M, sym, options, lambda xp, t: xp.exp(-(((xp.arange(M) - middle) / std) ** 2) / 2))


def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, **options: Any) -> Any:
    """See `flow.kaiser_window`."""
    shape = lambda xp, t: xp.i0(beta * xp.sqrt(xp.maximum(1 - xp.square(2 * t - 1), 0))) / xp.i0(beta)
    return points("kaiser", M, sym, options, shape)


__getattr__ = _name_hints("flow.signal.windows", globals())
