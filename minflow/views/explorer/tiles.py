"""Maps of an array, the matrices of its last two axes: the channels of an image, the filters of a convolution, the
heads of an attention, a weight. They are kept as elements with one scale of colors; a page draws some at a time.

Pure functions of arrays. Read next: `widgets/minflow_widgets/explorer/maps.js`, which draws them.
"""

from __future__ import annotations

import base64
import math
from dataclasses import dataclass, field

import numpy as np

from ...core.backend import Array, to_host
from ..renderers.tensor_picture import DIVERGING_COLORS, NONFINITE_SIGN, SEQUENTIAL_COLORS
from ..text.listing import count
from ..text.sparkline import short_number

# limits of one array: elements of its maps; elements if there is room for no more; elements along a side of a map
MAX_CELLS, MIN_CELLS, MAX_SIDE = 1 << 20, 12_544, 256
MIN_SIDE = 32  # maps are left out before they are drawn coarser than this
PAGE_MAPS, PAGE_CELLS = 64, 1 << 17  # limits of the maps that are sent at a time: their number, their elements
MIN_FEATURE_CHANNELS = 4  # an image with fewer channels is taken for a color image; then several images are shown


@dataclass(frozen=True)
class Tiles:
    """The first maps of an array.

    values: float32 of `shape` (maps, height, width).  whole: shape of the array.  step: one row and one column of
    `step` is kept.  low, high: ends of the scale of colors, with 0 in the middle if there are both signs.
    """

    values: bytes = field(repr=False)
    shape: tuple[int, int, int]
    whole: tuple[int, ...]
    step: int
    low: float
    high: float

    @property
    def cells(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)


def tiles_of(array: Array, limit: int = MAX_CELLS, every: bool = False) -> Tiles | None:
    """The maps of (..., channels, height, width): the channels of the first image, or, with fewer than
    MIN_FEATURE_CHANNELS channels, of the first images. None for arrays of one axis, and if a map is a single row or
    column. limit: elements that may be kept.  every: True to keep the maps of all leading indices, as of filters.
    """
    if array.ndim < 2 or min(array.shape[-2:]) < 2 or not array.size or array.dtype.kind not in "fiub":
        return None
    whole, limit = array.shape, max(limit, MIN_CELLS)
    array = array.reshape(-1, *(1, *array.shape)[-3:])
    images, channels, height, width = array.shape
    if every:
        wanted = images * channels
    elif channels >= MIN_FEATURE_CHANNELS:
        wanted = channels
    else:
        wanted = min(images * channels, max(MIN_CELLS // (height * width), channels))
    side = max(height, width)
    needed = math.ceil(math.sqrt(wanted * height * width / limit))
    step = max(-(-side // MAX_SIDE), min(needed, -(-side // MIN_SIDE)))
    n = min(wanted, max(limit // (-(-height // step) * -(-width // step)), 1))
    some = to_host(array[: -(-n // channels), :, ::step, ::step]).astype(np.float32)
    some = some.reshape(-1, *some.shape[2:])[:n]
    finite = some[np.isfinite(some)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    if low < 0 < high:
        high = max(-low, high)
        low = -high
    return Tiles(some.tobytes(), some.shape, whole, step, low, high)


def tiles_page(tiles: Tiles, page: int = 0) -> dict:
    """A page of the maps, in the form that the script draws.

    shape: (maps, height, width) of `data`, float32 in base64.  first: index of the first map, of `count` that are kept;
    leading: sizes of the axes that number them.  low, high: ends of the scale, `ends` as text; `colors`: at its ends
    and in its middle; `wrong`: of elements that are not finite.  page: of `pages`.
    """
    n, height, width = tiles.shape
    most = max(1, min(PAGE_MAPS, PAGE_CELLS // (height * width)))
    pages = -(-n // most)
    page = min(max(page, 0), pages - 1)
    first = page * most
    values = np.frombuffer(tiles.values, np.float32).reshape(tiles.shape)[first : first + most]
    return {
        "words": page_caption(tiles, first, values),
        "shape": values.shape,
        "data": base64.b64encode(values.astype("<f4").tobytes()).decode(),
        "first": first,
        "count": n,
        "leading": tiles.whole[:-2],
        "step": tiles.step,
        "low": tiles.low,
        "high": tiles.high,
        "colors": DIVERGING_COLORS if tiles.low < 0 < tiles.high else SEQUENTIAL_COLORS,
        "wrong": NONFINITE_SIGN,
        "ends": [short_number(tiles.low), short_number(tiles.high)],
        "page": page,
        "pages": pages,
    }


def page_caption(tiles: Tiles, first: int, values: np.ndarray) -> str:
    """Which maps these are, and the meaning of the colors."""
    *leading, height, width = tiles.whole
    size = f"{height:,} × {width:,}"
    if leading:
        ends = [[int(i) for i in np.unravel_index(k, leading)] for k in (first, first + len(values) - 1)]
        shown = " to ".join(map(str, ends[: len(values)]))
        maps = "map" if len(values) == 1 else "maps"
        parts = [f"{maps} {shown} of {' × '.join([f'{n:,}' for n in leading])}, each {size}"]
    else:
        parts = [size]
    parts += [f"one row and column of {tiles.step} is drawn"] if tiles.step > 1 else []
    wrong = values.size - int(np.isfinite(values).sum())
    low, high = short_number(tiles.low), short_number(tiles.high)
    if wrong == values.size:
        pass
    elif tiles.low < 0 < tiles.high:
        parts.append(f"blue {low}, white 0, orange {high}")
    else:
        parts.append(f"white {low} to dark blue {high}" if tiles.low < tiles.high else f"all {low}")
    return "; ".join(parts + ([f"{count(wrong, 'cell')} not finite, dark red"] if wrong else []))
