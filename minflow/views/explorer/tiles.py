"""Channels of the first image, or heads of the first attention, of an array with three axes or more: small maps side by
side, in one picture with one scale. A corner of an activation alone would say little: it mostly shows the padding.

Pure functions of arrays. Read next: `../renderers/tensor_picture.py`, which defines the colors.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...core.backend import Array, to_host
from ..draw.png import data_uri, png
from ..renderers.tensor_picture import COLOR_LEVELS, PAPER_INDEX, palette, palette_indices
from ..text.listing import count
from ..text.sparkline import short_number

# limits: maps, cells of all maps (16 maps of 28 x 28), cells along a side
MAX_MAPS, MAX_CELLS, MAX_SIDE = 32, 12_544, 32
# widths in pixels: the picture, a map if there are at most eight, a map if more
PICTURE_WIDTH, LARGE_MAP_WIDTH, SMALL_MAP_WIDTH = 272, 64, 32
MIN_FEATURE_CHANNELS = 4  # an image with fewer channels is taken for a color image; then several images are shown


@dataclass(frozen=True)
class Tiles:
    """Maps of an array, quantized for a picture.

    cells: palette indices, uint8 of `shape` (maps, height, width).  last: index of the last map, such as
    (image, channel).

    whole: shape of the array.  step: one row and one column of `step` is drawn.  low, high: ends of the scale.
    """

    cells: bytes
    shape: tuple[int, int, int]
    last: tuple[int, ...]
    whole: tuple[int, ...]
    step: int
    low: float
    high: float

    @property
    def words(self) -> str:
        """Caption: which maps are shown, and the meaning of the colors."""
        *leading, height, width = [f"{n:,}" for n in self.whole]
        first = [0] * len(leading)
        shown = f"{first}" if self.shape[0] == 1 else f"{first} to {list(self.last)}"
        parts = [f"maps {shown} of {' × '.join(leading)}, each {height} × {width}"]
        parts += [f"one row and column of {self.step} is drawn"] if self.step > 1 else []
        wrong = sum(self.cells.count(bytes([COLOR_LEVELS + k])) for k in range(3))
        low, high = short_number(self.low), short_number(self.high)
        if wrong == len(self.cells):
            pass
        elif self.low < 0 < self.high:
            parts.append(f"blue {low}, white 0, orange {high}")
        else:
            parts.append(f"white {low} to dark blue {high}" if self.low < self.high else f"all {low}")
        return "; ".join(parts + ([f"{count(wrong, 'cell')} not finite, dark red"] if wrong else []))


def tiles_of(array: Array) -> Tiles | None:
    """As many maps of (..., channels, height, width) as fit: the channels of the first image, or, with fewer than
    MIN_FEATURE_CHANNELS channels, the first images. None for arrays of one or two axes, and if a map is a single row
    or column.
    """
    if array.ndim < 3 or min(array.shape[-2:]) < 2 or not array.size or array.dtype.kind not in "fiub":
        return None
    whole, leading = array.shape, array.shape[:-2]
    array = array.reshape(-1, *array.shape[-3:])
    images, channels, height, width = array.shape
    step = -(-max(height, width) // MAX_SIDE)
    one = -(-height // step) * -(-width // step)
    n = min(MAX_MAPS, max(MAX_CELLS // one, 1), channels if channels >= MIN_FEATURE_CHANNELS else images * channels)
    some = to_host(array[: -(-n // channels), :, ::step, ::step][:, :n])
    some = some.reshape(-1, *some.shape[2:])[:n].astype(
        np.float64 if array.dtype.kind != "f" or array.itemsize > 4 else np.float32
    )
    finite = some[np.isfinite(some)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    if low < 0 < high:
        high = max(-low, high)
        low = -high
    last = tuple([int(i) for i in np.unravel_index(n - 1, leading)])
    return Tiles(palette_indices(some, low, high).tobytes(), some.shape, last, whole, step, low, high)


def tiles_picture(tiles: Tiles) -> list:
    """[data URI of the picture, its display width in pixels, its caption, the ends of its scale, data URI of the
    scale].
    """
    n, height, width = tiles.shape
    size = max(
        1,
        min(
            12,
            (2 * LARGE_MAP_WIDTH if n == 1 else LARGE_MAP_WIDTH if n <= 8 else SMALL_MAP_WIDTH) // max(height, width),
        ),
    )
    across = max(1, min(n, (PICTURE_WIDTH + size) // ((width + 1) * size)))
    across = -(-n // -(-n // across))  # rows of equal length if possible
    sheet = np.full((-(-n // across) * (height + 1) - 1, across * (width + 1) - 1), PAPER_INDEX, np.uint8)
    for k, cells in enumerate(np.frombuffer(tiles.cells, np.uint8).reshape(tiles.shape)):
        y, x = k // across * (height + 1), k % across * (width + 1)
        sheet[y : y + height, x : x + width] = cells
    colors = palette(tiles.low < 0 < tiles.high)
    scale = png(np.arange(COLOR_LEVELS, dtype=np.uint8)[None], colors)
    ends = short_number(tiles.low), short_number(tiles.high)
    return [data_uri(png(sheet, colors)), sheet.shape[1] * size, tiles.words, *ends, data_uri(scale)]
