"""Addresses of arrays, scratch memory, and how work is cut: what all that calls compiled functions needs."""

from __future__ import annotations

import numpy as np

from ..core.backend.scratch import buffer


def at(array: np.ndarray) -> int:
    """Its address. Somebody must hold the array: what is large of `scratch` is its caller's alone."""
    return array.ctypes.data


def scratch(purpose: str, count: int, zeros: bool = False) -> np.ndarray:
    """This thread's memory for a purpose. zeros: borders and channels that nobody writes are read."""
    found = buffer(f"machine {purpose}", (count,), "f4")
    if zeros:
        found.fill(0)
    return found


def chunks_of(n: int, size: int) -> list[tuple[int, int]]:
    """(first, last) of so many images at a time."""
    return [(first, min(first + size, n)) for first in range(0, n, size)]


def cut(blocks: int, rows: int, most: int, least: int) -> tuple[int, int]:
    """(blocks of a chunk, chunks of a block), of blocks of so many rows: a block above `most` rows is cut into chunks,
    64 at most, and a chunk has `least` rows or more where there are several blocks."""
    return max(1, least // rows), min(-(-rows // most), 64)
