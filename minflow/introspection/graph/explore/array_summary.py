"""Summary of an array: range, mean, norm, a histogram, a corner of its values, its feature maps.

Read next: `explorer_model.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ....core.backend import Array, backend_of_array, to_host
from ....views.explorer.tiles import MAX_CELLS, Tiles, tiles_of

BINS = 24
MAX_SAMPLE = 1 << 16  # elements that a histogram samples
CORNER_SHAPE = (6, 10)  # rows and columns of the values that are kept; a page shows as many columns as fit


@dataclass(frozen=True)
class Summary:
    """low, high, mean, norm: of the finite elements. non_finite: number of the others. counts: of equal bins from low
    to high.

    sampled: number of elements in the histogram, evenly spaced. corner: the first rows and columns, all with the same
    number of decimals. power: they are in units of ten to this power. zeros: number of elements that are exactly 0.
    tiles: the maps of an array with two axes or more.
    """

    spec: str
    size: int
    low: float
    high: float
    mean: float
    norm: float
    non_finite: int
    counts: tuple[int, ...]
    sampled: int
    corner: tuple[tuple[str, ...], ...]
    power: int = 0
    zeros: int = 0
    tiles: Tiles | None = None

    @property
    def text(self) -> str:
        if self.size == 1:
            return self.corner[0][0]
        low, high, mean, norm = map(number_text, (self.low, self.high, self.mean, self.norm))
        bad = f", {self.non_finite} not finite" if self.non_finite else ""
        share = round(100 * self.zeros / self.size)
        zeros = f", {share} % zeros" if share and self.low < self.high else ""
        return f"{low} to {high}, mean {mean}, norm {norm}{zeros}{bad}"


def summary_of(array: Array, map_cells: int = MAX_CELLS, every: bool = False) -> Summary:
    """map_cells: limit of the elements of maps that are kept; 0 keeps none.  every: True to keep maps of all leading
    indices.
    """
    spec = f"{array.dtype}{list(array.shape)}"
    if not array.size:
        return Summary(spec, 0, 0.0, 0.0, 0.0, 0.0, 0, (), 0, (("(empty)",),))
    flat, backend = array.reshape(-1), backend_of_array(array)
    xp = backend.namespace
    with backend.silent():
        wide = flat if flat.dtype.kind == "f" and flat.itemsize >= 4 else flat.astype("float64")
        norm = math.sqrt(float(xp.einsum("i,i->", wide, wide, dtype="float64")))
        bad = 0
        if not math.isfinite(norm):
            finite = wide[xp.isfinite(wide)].astype("float64")
            bad, wide = flat.size - finite.size, finite
            norm = math.sqrt(float(xp.dot(wide, wide)))
        if not wide.size:
            return Summary(spec, flat.size, 0.0, 0.0, 0.0, 0.0, bad, (), 0, *corner(array))
        low, high, mean = float(wide.min()), float(wide.max()), float(wide.mean(dtype="float64"))
        step = -(-wide.size // MAX_SAMPLE)
        some = wide[::step].astype("float64")
        if high > low and math.isfinite(high - low):
            # high - low may be 1e-310
            bins = xp.minimum(((some - low) / (high - low) * BINS).astype("int64"), BINS - 1)
            counts = tuple(xp.bincount(bins, minlength=BINS).tolist())
        else:
            counts = (some.size,)
        zeros = flat.size - int(xp.count_nonzero(flat))
        tiles = tiles_of(array, map_cells, every) if map_cells else None
    return Summary(spec, flat.size, low, high, mean, norm, bad, counts, some.size, *corner(array), zeros, tiles)


def corner(array: Array) -> tuple[tuple[tuple[str, ...], ...], int]:
    """The first rows and columns of the last two axes, at index 0 of all others; and the power of ten of their unit."""
    while array.ndim > 2:
        array = array[0]
    rows = to_host(array.reshape((1, 1, *array.shape)[-2:])[: CORNER_SHAPE[0], : CORNER_SHAPE[1]]).tolist()
    if array.dtype.kind != "f" or array.size == 1:
        return tuple([tuple([number_text(x) for x in row]) for row in rows]), 0
    most = max([abs(x) for row in rows for x in row if math.isfinite(x)], default=0.0)
    digit = math.floor(math.log10(most)) if most else 0
    power = 0 if -4 < digit < 6 else digit
    places = max(3 - digit + power, 0)
    return tuple([tuple([fixed_point_text(x, power, places) for x in row]) for row in rows]), power


def fixed_point_text(x: float, power: int, places: int) -> str:
    """x in units of ten to `power`, with `places` decimals; exact zeros are "0"."""
    if not x or not math.isfinite(x):
        return str(x) if x else "0"
    text = f"{x * 1e200 / 10.0 ** (power + 200) if power < -200 else x / 10.0**power:.{places}f}"
    return text if text.strip("-0.") else text.lstrip("-")


def number_text(x: object) -> str:
    return f"{x + 0.0:.4g}" if isinstance(x, float) else str(x)  # avoid "-0"
