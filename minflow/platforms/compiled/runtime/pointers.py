"""Addresses of arrays, and how work is cut."""

from __future__ import annotations

import numpy as np


def at(array: np.ndarray) -> int:
    """Its address. Somebody must hold the array."""
    return array.ctypes.data


def cut(blocks: int, rows: int, most: int, least: int) -> tuple[int, int]:
    """(blocks of a chunk, chunks of a block), of blocks of so many rows: a block above `most` rows is cut into chunks,
    64 at most, and a chunk has `least` rows or more where there are several blocks.
    """
    return max(1, least // rows), min(-(-rows // most), 64)
