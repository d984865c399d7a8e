"""Addresses of arrays, scratch memory, and how work is cut: what all that calls compiled functions needs."""

from __future__ import annotations

import numpy as np

from ..core.backend.scratch import buffer


def at(array: np.ndarray) -> int:
    """Its address. Somebody must hold the array: what is large of `scratch` is its caller's alone."""
    return array.ctypes.data


def scratch(purpose: str, count: int) -> np.ndarray:
    """This thread's memory for a purpose."""
    return buffer(f"machine {purpose}", (count,), "f4")


def cut(blocks: int, rows: int, most: int, least: int) -> tuple[int, int]:
    """(blocks of a chunk, chunks of a block), of blocks of so many rows: a block above `most` rows is cut into chunks,
    64 at most, and a chunk has `least` rows or more where there are several blocks."""
    return max(1, least // rows), min(-(-rows // most), 64)
