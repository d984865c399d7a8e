"""Addresses of arrays, and how work is split into chunks. Read next: `tasks.py`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


def at(array: np.ndarray) -> int:
    """Return the address of an array, which the caller must keep alive."""
    return array.ctypes.data


class BlockSplit(NamedTuple):
    """How blocks are split into chunks: several blocks per chunk, or several chunks (pieces) per block."""

    blocks: int
    chunk_blocks: int
    pieces: int

    @property
    def chunks(self) -> int:
        """Number of chunks."""
        return -(-self.blocks // self.chunk_blocks) * self.pieces


def split_blocks(blocks: int, rows: int, most: int, least: int, most_pieces: int = 64) -> BlockSplit:
    """Split blocks of `rows` rows.

    A block of more than `most` rows is split into up to `most_pieces` chunks; a chunk of several blocks has at least
    `least` rows.
    """
    return BlockSplit(blocks, max(1, least // rows), min(-(-rows // most), most_pieces, 64))
