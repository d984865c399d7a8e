"""Numbers that may be one or several: what layers of other programs import from here."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple]:
    """A function that gives `n` times one value, and of several their tuple."""

    def several(x: Any) -> tuple:
        return tuple(x) if isinstance(x, Iterable) else (x,) * n

    several.__name__ = name
    return several


_single, _pair, _triple, _quadruple = [_ntuple(n) for n in (1, 2, 3, 4)]
