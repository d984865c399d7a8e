"""Addresses of arrays, and how work is split into chunks. Read next: `tasks.py`."""

from __future__ import annotations

import numpy as np


def at(array: np.ndarray) -> int:
    """Return the address of an array, which the caller must keep alive."""
    return array.ctypes.data


def cut(blocks: int, rows: int, most: int, least: int) -> tuple[int, int]:
    """Split blocks of `rows` rows; return (blocks per chunk, chunks per block).

    A block of more than `most` rows is split into up to 64 chunks; a chunk of several blocks has at least `least` rows.
    """
    return max(1, least // rows), min(-(-rows // most), 64)
