"""Matrices that are placed on several devices, a row for each and a column for each device: `on_devices(...)`.

Read next: `attention.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minflow.core.base.errors import DTypeError, ShapeError
from minflow.views.draw import theme
from minflow.views.text.listing import clean
from minflow.views.words import say

from .drawing import PLATE_STYLE, axes, literal, numbers_of, set_caption

PLACEMENTS = {"S0": "split by rows", "S1": "split by columns", "B": "a copy on each", "P": "summands"}
FILLS = {"S0": theme.PALE_BLUE, "S1": theme.PALE_BLUE, "B": theme.PALE_BLUE, "P": theme.PALE_AMBER}
GAP = 1.5  # cells between two matrices
CELL, SMALL_CELL = 0.28, 0.12  # inches: of a cell with its number, and of one without
MOST_WIDTH = 9.0  # inches


def on_devices(*placed: tuple[str, Sequence[Any], str], numbers: bool = True, ax: Any = None) -> Any:
    """Draw how matrices are placed on devices; returns the Axes.

    placed: for each matrix its name, the list of its parts, one for each device, and its placement. "S0" and "S1": each
    device has other rows or columns, "B": each has all elements, "P": each has summands, and their sum is the matrix.
    Elements that a device does not have are left empty. numbers: False draws the cells without their elements.
    """
    if not placed:
        raise ShapeError("on_devices: got no matrix", hint='on_devices(("x", [part_0, part_1], "S0"))')
    rows = [checked(*one) for one in placed]
    many = max(len(parts) for _, parts, _ in rows)
    sizes = [whole_shape(parts, way) for _, parts, way in rows]
    across = max(width for _, width in sizes) + GAP
    down = sum(height + GAP for height, _ in sizes)
    scale = min(CELL if numbers else SMALL_CELL, MOST_WIDTH / (many * across + 4))
    left = GAP + 1.2 / scale  # the names are about an inch wide
    ax = axes(ax, "on_devices()", (scale * (many * across + left), scale * (down + 1)))
    top = 0.0
    for (name, parts, way), (height, width) in zip(rows, sizes):
        ax.text(-0.8, top + height / 2, literal(f"{name}: {way}"), ha="right", va="center", **words())
        offset = 0
        for d, part in enumerate(parts):
            first = {"S0": (offset, 0), "S1": (0, offset)}.get(way, (0, 0))
            draw_part(ax, part, (height, width), first, (top, d * across), FILLS[way], numbers)
            offset += part.shape[0] if way == "S0" else part.shape[1]
        top += height + GAP
    for d in range(many):
        ax.text(
            d * across + (across - GAP) / 2, -0.6, say("device {number}", number=d), ha="center", va="bottom", **words()
        )
    ax.set(xlim=(-left, many * across), ylim=(top, -GAP), aspect="equal")
    ax.set_axis_off()
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_visible(False)  # an axis that is only off has a plate
    said = ", ".join(f"{name} ({PLACEMENTS[way]})" for name, _, way in rows)
    return set_caption(ax, clean(f"Matrices on {many} devices: {said}."), text_of(rows))


def checked(name: str, parts: Sequence[Any], way: str) -> tuple[str, list[np.ndarray], str]:
    if way not in PLACEMENTS:
        raise DTypeError(f"on_devices: {name} has the placement {way!r}", hint=f"one of {', '.join(PLACEMENTS)}")
    arrays = [numbers_of(part, f"on_devices: {name}", "a list of matrices") for part in parts]
    if not arrays or any(array.ndim != 2 for array in arrays):
        shapes = [list(array.shape) for array in arrays]
        raise ShapeError(f"on_devices: {name} must be a list of matrices, got shapes {shapes}", hint="np.split(x, 2)")
    return name, arrays, way


def whole_shape(parts: list[np.ndarray], way: str) -> tuple[int, int]:
    """Shape of the matrix that the parts belong to."""
    height, width = parts[0].shape
    if way == "S0":
        return sum(part.shape[0] for part in parts), width
    return height, sum(part.shape[1] for part in parts) if way == "S1" else width


def draw_part(ax: Any, part: Any, shape: Any, first: Any, corner: Any, fill: str, numbers: bool) -> None:
    """Draw the outline of a matrix of that shape, and in it the cells of a part whose first element is at `first`."""
    from matplotlib.patches import Rectangle

    (top, left), (height, width) = corner, shape
    for (i, j), number in np.ndenumerate(part):
        row, column = top + first[0] + i, left + first[1] + j
        ax.add_patch(Rectangle((column, row), 1, 1, facecolor=fill, edgecolor=theme.LINE, linewidth=0.5))
        if numbers:
            look = {"color": theme.TEXT_COLOR, "fontsize": 9}
            ax.text(column + 0.5, row + 0.5, f"{number:.3g}", ha="center", va="center", **look)
    ax.add_patch(Rectangle((left, top), width, height, fill=False, edgecolor=theme.LINE, linewidth=1))


def words() -> dict[str, Any]:
    return {"color": theme.TEXT_COLOR, "fontsize": 9, "bbox": PLATE_STYLE, "parse_math": False}


def text_of(rows: list[tuple[str, list[np.ndarray], str]]) -> str:
    """The parts of each matrix as text."""
    lines = []
    for name, parts, way in rows:
        lines.append(clean(f"{name}: {way}, {PLACEMENTS[way]}"))
        lines += [f"  device {d}: {np.array2string(part, prefix=' ' * 12)}" for d, part in enumerate(parts)]
    return "\n".join(lines)
