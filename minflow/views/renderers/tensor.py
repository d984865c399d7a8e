"""A tensor at a glance: a record of a few thousand elements and the statistics of all, as text and as a picture.

Runs only when a tensor is displayed. A tensor is anything with `.spec`, `.array` and `._value`. For a large one, only
some rows, columns and slices are drawn, but any NaN or infinity in them is visible.
Read next: `tensor_picture.py`, the picture; `../show.py`, the caller.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...core.backend import to_host
from ...core.ir import Source, where_text
from ..records.arrays import numbers_text
from ..text.listing import clean
from ..text.sparkline import BARS, shaded, short_number
from ..text.tables import table
from ..words import say

MAX_TEXT_ELEMENTS = 16  # tensors with at most this many elements stay text, which is read faster than a picture
MAX_SIDE = 48  # largest number of rows and columns in the picture of a single matrix
MAX_SLICE_SIDE = 28  # largest number of rows and columns of a slice among several
MAX_CELLS = 5000  # cells of all slices together: fits into 20 kB of HTML
MAX_SLICES = 24
MAX_ADJACENT = 8  # slices
# pixels: width of adjacent slices; gap between them; least size of a cell
SLICES_WIDTH, GAP, MIN_CELL_SIZE = 560, 14, 5
# columns and rows of all slices together, up to which each element is written into its cell
MAX_WRITTEN_CELLS = (12, 16)
# above this many elements, statistics are those of a sample: all of them would cause a visible delay
MAX_EXACT_ELEMENTS = 2**24
HISTOGRAM_BINS = 24  # of the histogram


@dataclass(frozen=True)
class Tile:
    """One matrix of a tensor. cells: rows of floats; NaN or infinite if any element of the cell's block is."""

    title: str
    cells: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class TensorRecord:
    """Contents of a card. about: origin of the tensor.  rows, columns: sizes of the matrices, of which `tiles` shows
    some, `across` of them side by side.  minimum, mean, maximum: those of the finite elements.  nan, positive_inf,
    negative_inf: number of elements that are NaN, inf, -inf.  true: number of True elements of a bool tensor, else
    None.  sample_size: number of elements in the statistics.  histogram: (counts, first edge, last edge); its range is
    that of the colors.
    text: the repr.
    """

    spec: str
    about: str
    size: int
    text: str
    grad: str = ""
    tiles: tuple[Tile, ...] = ()
    slices: int = 1
    rows: int = 1
    columns: int = 1
    across: int = 1
    minimum: float = 0.0
    mean: float = 0.0
    maximum: float = 0.0
    nan: int = 0
    positive_inf: int = 0
    negative_inf: int = 0
    true: int | None = None
    sample_size: int = 0
    histogram: tuple[tuple[int, ...], float, float] = ((), 0.0, 0.0)
    whole: bool = False  # True for integers and bools
    complex: bool = False  # True if elements are the adjacent real and imaginary parts of complex numbers
    symbolic: bool = False

    @property
    def nodes(self) -> tuple[Tile, ...]:
        return self.tiles


def array_of(tensor: Any) -> np.ndarray | None:
    """The array on the host; None for a symbolic tensor."""
    return None if tensor.array is None else to_host(tensor.array)


def about(tensor: Any) -> str:
    """The origin of a tensor in words."""
    value, symbolic = tensor._value, tensor.array is None
    label = f" ({clean(tensor._label)})" if getattr(tensor, "_label", "") else ""
    if value is None:
        result = getattr(tensor, "_graph_name", "")
        return (
            "symbolic: a value of a graph being built" if symbolic else f"result of {clean(result)}" if result else ""
        )
    node = value.node
    if isinstance(node, Source):
        kind = f"{node.op} {clean(node.name)}".strip() if symbolic else "leaf, requires grad"
        return f"symbolic: {kind} of a graph" if symbolic else kind + label
    module = f" in {clean(node.scope)}" if node.scope else ""
    place = f" at {clean(where_text(node.where))}" if node.where else ""
    return f"{'symbolic: ' if symbolic else ''}result of {clean(str(node.op))}{place}{module}"


def tensor_record(tensor: Any) -> TensorRecord:
    """Record of a tensor's elements; for a symbolic tensor, of what is known."""
    spec, array = str(tensor.spec), array_of(tensor)
    if array is None:
        return TensorRecord(spec, about(tensor), tensor.spec.size, repr(tensor), symbolic=True)
    if tensor.spec.placement is not None:
        spec = f"{spec}, this rank's part {list(array.shape)}"
    gradient = getattr(tensor, "_gradient", None)
    grad = numbers_text(array_of(gradient)) if gradient is not None else ""
    return array_record(array, spec, about(tensor), repr(tensor), grad)


def array_record(array: np.ndarray, spec: str, about: str = "", text: str = "", grad: str = "") -> TensorRecord:
    """Record of an array's elements, or, if complex, of its real and imaginary parts."""
    if array.dtype.kind == "c":
        parts = np.stack([array.real, array.imag], axis=-min(array.ndim, 2) - 1)
        record = array_record(parts.reshape(2, 1, -1) if array.ndim < 2 else parts, spec, about, text, grad)
        return replace(record, complex=True, tiles=tuple(map(part_named, record.tiles)))
    seen = array.reshape(-1) if array.flags.c_contiguous or array.size <= MAX_EXACT_ELEMENTS else array
    if array.size > MAX_EXACT_ELEMENTS:
        steps = [max(1, -(-n // 256)) for n in array.shape] if array.ndim > 1 else [-(-array.size // 2**20)]
        seen = array[tuple(slice(None, None, step) for step in steps)]
    seen = np.ascontiguousarray(seen).reshape(-1)
    fields: dict[str, Any] = {"sample_size": seen.size, "whole": array.dtype.kind != "f"}
    if array.dtype.kind == "f":
        finite = np.isfinite(seen)
        if not finite.all():
            bad = seen[~finite]
            fields |= {
                "nan": int(np.isnan(bad).sum()),
                "positive_inf": int((bad > 0).sum()),
                "negative_inf": int((bad < 0).sum()),
            }
            seen = seen[finite]
    elif array.dtype == bool:
        fields["true"] = int(seen.sum())
    if seen.size:
        with np.errstate(all="ignore"):
            mean = float(seen.mean(dtype=np.float64))
            fields |= {
                "minimum": float(seen.min()),
                "mean": mean,
                "maximum": float(seen.max()),
                "histogram": histogram(seen),
            }
    rows, columns = (array.shape[-2] if array.ndim > 1 else 1), (array.shape[-1] if array.ndim else 1)
    tiles, across = tiles_of(array) if array.size else ((), 1)
    slices = array.size // max(rows * columns, 1)
    return TensorRecord(spec, about, array.size, text, grad, tiles, slices, rows, columns, across, **fields)


def part_named(tile: Tile) -> Tile:
    """The tile of a stack of real and imaginary parts, with its part named in the title."""
    *index, part = tile.title[1:-1].split(", ")
    return replace(tile, title=f"{'imag' if part == '1' else 'real'} [{', '.join(index)}]".removesuffix(" []"))


def histogram(numbers: np.ndarray) -> tuple[tuple[int, ...], float, float]:
    """Counts in bins of equal width, and the values at both ends; one bin for each integer if there are few.

    An outlier does not push all other elements into one bin: the ends are then closer, and elements beyond them are
    counted in the outermost bin.
    """
    some = numbers[:: -(-numbers.size // 2**18)].astype(np.float64)
    low, high = float(numbers.min()), float(numbers.max())
    if numbers.size >= 50:
        inner = np.quantile(some, (0.02, 0.98)).tolist()
        room = inner[1] - inner[0]
        low = inner[0] - room if 0 < 10 * room < inner[0] - low else low
        high = inner[1] + room if 0 < 10 * room < high - inner[1] else high
    if not high > low or not np.isfinite(high - low):
        return (), low, high
    bins = int(high - low) + 1 if numbers.dtype.kind != "f" and high - low < HISTOGRAM_BINS else HISTOGRAM_BINS
    scaled = (
        (some - low) / (high - low + (bins < HISTOGRAM_BINS)) * min(bins, HISTOGRAM_BINS)
    )  # high - low may be 1e-310
    counts = np.bincount(np.clip(scaled, 0, bins - 1).astype(np.int64), minlength=bins)
    return tuple(counts.tolist()), low, high


def block_starts(size: int, limit: int) -> np.ndarray:
    """First indices of at most `limit` blocks that `size` rows are divided into."""
    blocks = min(size, limit)
    return np.arange(blocks) * size // blocks


def tiles_of(array: np.ndarray) -> tuple[tuple[Tile, ...], int]:
    """The first slices of an array, each reduced to a grid of visible cells, and how many are side by side.

    The last axis before the matrices runs from left to right (heads, input channels), those before it downward; if
    there is only one such axis (a batch), its slices fill row after row.
    """
    leading, (rows, columns) = array.shape[:-2], (1, 1, *array.shape)[-2:]
    many = array.size // (rows * columns)
    if many == 1:
        return (Tile("", block_samples(array.reshape(rows, columns), MAX_SIDE)),), 1
    limit = min(many, MAX_SLICES, max(2, MAX_CELLS // (min(rows, MAX_SLICE_SIDE) * min(columns, MAX_SLICE_SIDE))))
    last = next(n for n in reversed(leading) if n > 1)
    across = min(
        last, limit, MAX_ADJACENT, max(1, SLICES_WIDTH // (min(columns, MAX_SLICE_SIDE) * MIN_CELL_SIZE + GAP))
    )
    if last == many:
        places = list(range(limit))
    else:
        places = [row * last + k for row in range(min(many // last, limit // across)) for k in range(across)]
    indices = [tuple(map(int, np.unravel_index(i, leading))) for i in places]
    return tuple(Tile(str(list(index)), block_samples(array[index], MAX_SLICE_SIDE)) for index in indices), across


def block_samples(matrix: np.ndarray, limit: int) -> tuple[tuple[float, ...], ...]:
    """The middle element of each block, or, if the block has elements that are not finite, one of those (NaN first)."""
    tops, lefts = block_starts(matrix.shape[0], limit), block_starts(matrix.shape[1], limit)
    middle = [np.append(s[1:], n) + s for s, n in ((tops, matrix.shape[0]), (lefts, matrix.shape[1]))]
    with np.errstate(all="ignore"):
        cells = matrix[np.ix_(middle[0] // 2, middle[1] // 2)].astype(np.float64)
    if matrix.dtype.kind == "f" and matrix.size <= MAX_EXACT_ELEMENTS and not np.isfinite(matrix).all():
        for mark, test in ((-np.inf, np.isneginf), (np.inf, np.isposinf), (np.nan, np.isnan)):
            wrong = np.logical_or.reduceat(np.logical_or.reduceat(test(matrix), tops, axis=0), lefts, axis=1)
            cells[wrong] = mark
    return tuple(map(tuple, cells.tolist()))


# ---- text ----------------------------------------------------------------------------------------------------------


def marks(record: TensorRecord) -> list[str]:
    """`["3 NaN", "1 inf"]`: counts of elements that are not finite."""
    kinds = ((record.nan, "NaN"), (record.positive_inf, "inf"), (record.negative_inf, "-inf"))
    least = "at least " if record.sample_size < record.size else ""
    return [f"{least}{n:,} {name}" for n, name in kinds if n]


def numbers_line(record: TensorRecord) -> str:
    """Statistics in a line: `640 numbers: min -2, mean 0.1, max 3; 3 NaN`."""
    if record.complex:
        what = say("{n:,} real and imaginary parts", n=record.size)
    else:
        what = say("{n:,} number" if record.size == 1 else "{n:,} numbers", n=record.size)
    if not record.size:
        return say("no numbers")
    bad = marks(record)
    if record.true is not None:
        return (
            f"{record.true:,} of {what} true"
            if record.sample_size == record.size
            else f"{record.true:,} of {record.sample_size:,} sampled true"
        )
    if record.nan + record.positive_inf + record.negative_inf == record.sample_size:
        return f"{what}, none finite: {', '.join(bad)}"
    exact = not record.whole or abs(record.maximum) < 2**53  # larger integers are not exact as floats
    if record.minimum == record.maximum and exact and not bad and record.sample_size == record.size:
        return say("{numbers}, all {number}", numbers=what, number=short_number(record.minimum))
    low, mean, most = map(short_number, (record.minimum, record.mean, record.maximum))
    line = say("{numbers}: min {low}, mean {mean}, max {most}", numbers=what, low=low, mean=mean, most=most)
    line += "; " + ", ".join(bad) if bad else ""
    return line + (f" (a sample of {record.sample_size:,})" if record.sample_size < record.size else "")


def shown_line(record: TensorRecord) -> str:
    """The shown part of the tensor; empty if all is shown."""
    if not record.tiles:
        return ""
    cells = record.tiles[0].cells
    parts = [f"{len(record.tiles)} of {record.slices:,} slices"] if len(record.tiles) < record.slices else []
    if len(cells) < record.rows:
        parts.append(f"{len(cells)} of {record.rows:,} rows")
    if len(cells[0]) < record.columns:
        parts.append(f"{len(cells[0])} of {record.columns:,} columns")
    return "shown: " + ", ".join(parts) if parts else ""


def fits_as_text(record: TensorRecord) -> bool:
    """True if each element is written into its cell: all are shown, and they fit."""
    columns, rows = record.columns * record.across, record.rows * -(-len(record.tiles) // record.across)
    return (
        bool(record.tiles)
        and columns <= MAX_WRITTEN_CELLS[0]
        and rows <= MAX_WRITTEN_CELLS[1]
        and not shown_line(record)
    )


def cell_text(record: TensorRecord, x: float) -> str:
    if record.true is not None:
        return str(bool(x))
    return str(int(x)) if record.whole and abs(x) < 1e7 else f"{x:.3g}" if math.isfinite(x) else short_number(x)


def tensor_text(record: TensorRecord) -> str:
    """The card as text: spec and origin, statistics, a histogram, and the elements or the grid in shades."""
    lines = [f"{record.spec}  {record.about}".rstrip()]
    if record.symbolic:
        return lines[0] + "\nits numbers are known when the graph runs"
    lines.append(numbers_line(record))
    counts, low, high = record.histogram
    if counts:
        lines.append(f"values  {short_number(low)} {histogram_line(counts)} {short_number(high)}")
    if record.grad:
        lines.append(f"grad    {record.grad}")
    if fits_as_text(record):
        for tile in record.tiles:
            head = ["", *map(str, range(record.columns))]
            rows = [[str(i), *(cell_text(record, x) for x in row)] for i, row in enumerate(tile.cells)]
            lines += [tile.title, *(f"  {line}" for line in table([head, *rows], range(len(head))))]
    elif len(record.tiles) == 1 and 1 < len(record.tiles[0].cells) <= MAX_SLICE_SIDE:
        lines += [f"  {line}" for line in shaded(record.tiles[0].cells)]
        lines.append(shown_line(record))
    return "\n".join(line for line in lines if line)


def histogram_line(counts: tuple[int, ...]) -> str:
    """The counts as bars from zero, so that an empty bin looks empty."""
    most = max(counts)
    return "".join(" " if not n else BARS[min(n * len(BARS) // most, len(BARS) - 1)] for n in counts)
