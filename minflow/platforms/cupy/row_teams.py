"""Geometry of kernels that reduce rows, and dtypes of their sums: see `sources/rows.cuh`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ...core.backend import Array
from .device_code import WARP, launch

BLOCK = 256
MOST_BLOCKS = 1024  # of kernels whose blocks leave parts of a sum
LONG = 8192  # columns from which a row is worth a larger block


def lines(x: Array, axis: int) -> tuple[int, int, int]:
    """(number of rows along this axis, their number of columns, distance of neighbors in a row)."""
    columns = x.shape[axis] if x.ndim else 1
    inner = math.prod(x.shape[axis + 1 :]) if x.ndim else 1
    return x.size // columns, columns, inner


def team_size(rows: int, columns: int, inner: int = 1) -> int:
    """The number of threads for each row.

    Neighboring rows that are not contiguous are read together, by one thread each, if there are enough of them.
    """
    if inner > 1 and rows >= 32 * BLOCK:
        return 1
    if columns > WARP * WARP:
        return BLOCK if columns <= LONG else 2 * BLOCK
    return min(WARP, 1 << (columns - 1).bit_length())


def launch_rows(
    file: str,
    name: str,
    rows: int,
    team: int,
    *args: Array | float | None,
    types: Mapping[str, Any],
    most: int = 1 << 20,
    **macros: Any,
) -> None:
    """Run a function of a source whose blocks take rows by turns. team: threads per row.  most: number of blocks."""
    block = max(BLOCK, team)
    launch(file, name, row_blocks(rows, team, most), block, *args, types=types, TEAM=team, **macros)


def row_blocks(rows: int, team: int, most: int = 1 << 20) -> int:
    return min(most, -(-rows // (max(BLOCK, team) // team)))


def sum_dtype(x: Array) -> str:
    """The dtype of sums over x."""
    return "float64" if x.dtype.name == "float64" else "float32"


def contiguous(xp: Any, *arrays: Array) -> list[Array]:
    """The arrays themselves, or C-contiguous copies."""
    return [xp.ascontiguousarray(x) for x in arrays]
