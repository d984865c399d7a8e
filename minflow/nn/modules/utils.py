"""Helpers for arguments that are one value or several, which layers of other programs import."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple]:
    """Make a function that repeats a single value `n` times, and turns several values into a tuple."""

    def several(x: Any) -> tuple:
        return tuple(x) if isinstance(x, Iterable) else (x,) * n

    several.__name__ = name
    return several


_single, _pair, _triple, _quadruple = [_ntuple(n) for n in (1, 2, 3, 4)]
