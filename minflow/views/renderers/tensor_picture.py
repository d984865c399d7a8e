"""A TensorRecord as a picture: heat maps with their color scale, a histogram, and the statistics in words.

Cells and slices are drawn on the page itself, all words on plates. Without written numbers the cells are one PNG. NaN
and infinity are signs on yellow, never conveyed by color alone. Pure functions of records. Read next:
`../html/page.py`, cards; `images.py`, tensors as images.
"""

from __future__ import annotations

from html import escape

import numpy as np

from ..draw import svg_writer as svg, theme
from ..draw.fonts import text_width, wrap_to_width
from ..draw.png import data_uri, enlarged, png
from ..html.page import CARD_STYLE, NO_MATH, picture_card
from ..text.listing import clean
from ..text.sparkline import short_number
from ..words import say
from .tensor import (
    GAP,
    MAX_TEXT_ELEMENTS,
    MAX_WRITTEN_CELLS,
    MIN_CELL_SIZE,
    SLICES_WIDTH,
    TensorRecord,
    cell_text,
    fits_as_text,
    numbers_line,
    shown_line,
)

COLOR_LEVELS = 48  # colors of a scale
NAN_INDEX, INF_INDEX, NEG_INF_INDEX, PAPER_INDEX = (
    COLOR_LEVELS,
    COLOR_LEVELS + 1,
    COLOR_LEVELS + 2,
    COLOR_LEVELS + 3,
)  # palette indices after those of the scale
DIVERGING_COLORS = ((43, 95, 168), (247, 247, 247), (181, 71, 11))  # below zero, zero, above zero
SEQUENTIAL_COLORS = ((247, 251, 255), (107, 163, 214), (8, 48, 107))  # from the least to the greatest
NONFINITE_BACKGROUND, NONFINITE_SIGN = (
    (255, 236, 153),
    (122, 31, 21),
)  # background and sign of a cell that is not finite
MAX_TEXT_CHARS = 2600  # characters of the elements below a card; text/plain has all
TEXT_CELL = (58, 20)  # size in pixels of a cell with a written number
LEFT, TOP, FONT_SIZE, LINE_HEIGHT = 34, 44, 11.5, 16  # pixels: least origin of the cells; font size; line height
SCALE_WIDTH, SCALE_PLATE_WIDTH = 190, 218  # pixels: the color scale, and the plate under it


def scale_of(record: TensorRecord) -> tuple[float, float, bool]:
    """Values of the first and the last color, and True if the color in the middle means zero."""
    _, low, high = record.histogram
    if low < 0 < high:
        most = max(-low, high)
        return -most, most, True
    return low, high, False


def palette(diverging: bool) -> np.ndarray:
    """Colors of the scale, then of NaN, inf, -inf and of the gaps between slices, as uint8 (n, 3)."""
    points = np.array(DIVERGING_COLORS if diverging else SEQUENTIAL_COLORS, float)
    at = np.linspace(0, len(points) - 1, COLOR_LEVELS)
    colors = [np.interp(at, range(len(points)), points[:, k]) for k in range(3)]
    return np.concatenate(
        [
            np.stack(colors, 1).round(),
            [NONFINITE_SIGN, NONFINITE_SIGN, NONFINITE_SIGN, (255, 255, 255), NONFINITE_BACKGROUND],
        ]
    ).astype(np.uint8)


def palette_indices(cells: np.ndarray, low: float, high: float) -> np.ndarray:
    """Palette indices of the cells; NAN_INDEX, INF_INDEX or NEG_INF_INDEX for those that are not finite."""
    with np.errstate(all="ignore"):
        share = (cells - low) / (high - low) if high > low else np.full(cells.shape, 0.5)
        numbers = np.nan_to_num(np.clip(share, 0, 1) * (COLOR_LEVELS - 1), nan=0.0).round().astype(np.uint8)
    numbers[np.isnan(cells)], numbers[np.isposinf(cells)], numbers[np.isneginf(cells)] = (
        NAN_INDEX,
        INF_INDEX,
        NEG_INF_INDEX,
    )
    return numbers


def nonfinite_cell(kind: int, size: int) -> np.ndarray:
    """A cell of `size` pixels that is not finite: a cross for NaN, a plus or a minus for the infinities."""
    cell = np.full((size, size), COLOR_LEVELS + 4, np.uint8)
    at, middle, thick = np.arange(1, size - 1), size // 2, max(1, size // 8)
    for k in range(-(thick // 2), thick - thick // 2):
        if kind == NAN_INDEX:
            cell[at, np.clip(at + k, 1, size - 2)] = cell[at, np.clip(size - 1 - at + k, 1, size - 2)] = NAN_INDEX
        else:
            cell[middle + k, at] = kind
            if kind == INF_INDEX:
                cell[at, middle + k] = kind
    return cell


def cell_pixels(cells: np.ndarray, size: int) -> np.ndarray:
    """Cells as squares of pixels, those that are not finite with their signs."""
    pixels = enlarged(cells, size)
    for kind in (NAN_INDEX, INF_INDEX, NEG_INF_INDEX):
        if (cells == kind).any():
            mask = enlarged(cells == kind, size)
            tiled = np.tile(nonfinite_cell(kind, size), cells.shape)
            pixels[mask] = tiled[mask]
    return pixels


def tensor_svg(record: TensorRecord, asked: bool = False) -> str:
    """The picture of a record. asked: True if numbers were requested; if they do not fit, the picture then says why
    they are missing.
    """
    low, high, diverging = scale_of(record)
    cells = [np.array(tile.cells) for tile in record.tiles]
    numbers = fits_as_text(record)
    left = max(LEFT, 16 + int(text_width(f"{record.rows - 1:,}", FONT_SIZE)))
    draw = number_grid if numbers else mosaic
    parts, width, height = draw(record, cells, scale_of(record), left) if cells else ([], 0, 0)
    parts += scale_and_histogram(record, low, high, diverging, left + width + 22)
    width, height = max(left + width + 22 + SCALE_PLATE_WIDTH, 460), max(TOP + height, TOP + 87)
    title = f"{record.spec}  ·  {record.about}" if record.about else record.spec
    head = [
        (line, bold)
        for words, bold in ((title, True), (numbers_line(record), False))
        for line in wrap_to_width(words, width - 4 * svg.PADDING, FONT_SIZE, bold)
    ]
    plate = max(text_width(line, FONT_SIZE, bold) for line, bold in head) + 2 * svg.PADDING
    top = LINE_HEIGHT * len(head) + 6
    above = [svg.rect(4, 4, plate, top, rx=4, fill=theme.TEXT_PLATE)]
    above += [
        svg.text(4 + svg.PADDING, LINE_HEIGHT * (k + 1) + 2, line, font_weight="bold" if bold else None)
        for k, (line, bold) in enumerate(head)
    ]
    notes = [shown_line(record)] if shown_line(record) else []
    if asked and cells and not numbers:
        columns, rows = MAX_WRITTEN_CELLS
        notes.append(f"colors only: numbers are written into at most {rows} rows and {columns} columns")
    if not numbers and (record.nan or record.positive_inf or record.negative_inf):
        signs = ((record.nan, "× NaN"), (record.positive_inf, "+ inf"), (record.negative_inf, "− -inf"))
        notes.append("signs: " + ", ".join(name for n, name in signs if n))
    notes = [line for note in notes for line in wrap_to_width(note, width - 4 * svg.PADDING, FONT_SIZE)]
    if notes:
        parts.append(svg.label(4 + svg.PADDING, height + 20, *notes, size=FONT_SIZE, text_color=theme.MUTED))
        height += LINE_HEIGHT * len(notes) + 8
    all_ = [*above, svg.group(parts, transform=f"translate(0 {top - TOP + 26})")]
    return svg.picture(all_, width, height + top - TOP + 34, alt_text(record), font_size=FONT_SIZE)


def alt_text(record: TensorRecord) -> str:
    """Alternative text of the picture."""
    about = f", {record.about}" if record.about else ""
    return clean(f"Tensor {record.spec}{about}; {numbers_line(record)}")


def number_grid(record: TensorRecord, cells: list[np.ndarray], scale: tuple[float, float, bool], left: int):
    """A small grid with each element written into its cell: (parts, width, height)."""
    colors = ["#" + bytes(color).hex() for color in palette(scale[2])]
    text_colors = [theme.text_color_on(color) for color in colors]
    across, down = TEXT_CELL
    rows, columns = cells[0].shape
    title = 0 if len(cells) == 1 else 22
    step_x, step_y = across * columns + GAP + 12, down * rows + GAP + title + 12
    parts = []
    for k, (tile, values) in enumerate(zip(record.tiles, cells, strict=True)):
        x, y = left + k % record.across * step_x, TOP + title + k // record.across * step_y
        indices = palette_indices(values, *scale[:2])
        indices[indices >= COLOR_LEVELS] = COLOR_LEVELS + 4
        parts.append(index_plate(x, y - 17, across * columns - 1, 15))
        parts += [
            svg.text(x + across * j + 28, y - 5, str(j), fill=theme.MUTED, text_anchor="middle") for j in range(columns)
        ]
        parts.append(index_plate(x - 24, y, 22, down * rows - 1))
        parts += [svg.text(x - 6, y + down * i + 14, str(i), fill=theme.MUTED, text_anchor="end") for i in range(rows)]
        if title:
            parts.append(svg.label(x + svg.PADDING, y - 24, tile.title, size=FONT_SIZE))
        for i, j in np.ndindex(rows, columns):
            square = f"M{x + across * j} {y + down * i}h{across - 1}v{down - 1}h{1 - across}z"
            parts.append(svg.path(square, fill=colors[indices[i, j]]))
        for text_color in ("#000000", "#ffffff"):
            words = [
                svg.text(x + across * j + 28, y + down * i + 14, cell_text(record, values[i, j].item()))
                for i, j in np.ndindex(rows, columns)
                if text_colors[indices[i, j]] == text_color
            ]
            parts.append(svg.group(words, text_anchor="middle", fill=text_color, font_size=11))
    beneath = -(-len(cells) // record.across)
    return parts, step_x * record.across - GAP - 12, step_y * beneath - GAP - 12 + title


def index_plate(x: float, y: float, width: float, height: float) -> str:
    """The plate under the row or column indices."""
    return svg.rect(x, y, width, height, rx=3, fill=theme.TEXT_PLATE)


def mosaic(record: TensorRecord, cells: list[np.ndarray], scale: tuple[float, float, bool], left: int):
    """Heat maps side by side, as one PNG: (parts, width, height)."""
    rows, columns = cells[0].shape
    one = len(cells) == 1
    room = SLICES_WIDTH // record.across - GAP  # width available for each
    side = 480 if rows == 1 else 336 if one else 84
    size = max(MIN_CELL_SIZE, min(24 if rows > 1 else 18, side // max(rows, columns), room // columns))
    title = 0 if one else 20
    across = min(len(cells), record.across)
    step_x, step_y = columns * size + GAP, rows * size + GAP + title
    width, height = step_x * across - GAP, step_y * -(-len(cells) // across) - GAP
    paper = np.full((height, width), PAPER_INDEX, np.uint8)
    parts = []
    for k, (tile, values) in enumerate(zip(record.tiles, cells, strict=True)):
        x, y = k % across * step_x, k // across * step_y + title
        paper[y : y + rows * size, x : x + columns * size] = cell_pixels(palette_indices(values, *scale[:2]), size)
        if title:
            parts.append(svg.label(left + x + svg.PADDING, TOP + y - 7, tile.title))
    look = {"style": "image-rendering:pixelated", "href": data_uri(png(paper, palette(scale[2]), PAPER_INDEX))}
    parts.insert(0, svg.element("image", x=left, y=TOP, width=width, height=height, **look))
    if one:
        parts.append(svg.rect(left - 0.5, TOP - 0.5, width + 1, height + 1, fill="none", stroke=theme.LINE))
        last = f"{record.columns - 1:,}"
        look = {"fill": theme.MUTED, "text_anchor": "end"}
        parts.append(index_plate(left, TOP - 19, max(width, text_width(last, FONT_SIZE) + 20), 16))
        parts.append(svg.text(left + 3, TOP - 7, "0", fill=theme.MUTED))
        parts.append(svg.text(left + max(width, text_width(last, FONT_SIZE) + 20) - 3, TOP - 7, last, **look))
        if rows > 1:
            parts.append(index_plate(4, TOP, left - 8, height))
            parts.append(svg.text(left - 7, TOP + 12, "0", **look))
            parts.append(svg.text(left - 7, TOP + height - 3, f"{record.rows - 1:,}", **look))
    return parts, width, height


def scale_and_histogram(record: TensorRecord, low: float, high: float, diverging: bool, x: float) -> list[str]:
    """A plate to the right of the cells: the color scale with the values at its ends, and above it the histogram."""
    counts, first, last = record.histogram
    # no histogram from -1e308 to 1e308, whose range overflows
    if not high > low or record.true is not None or not counts:
        return []
    strip = data_uri(png(np.arange(COLOR_LEVELS, dtype=np.uint8)[None], palette(diverging)))
    base, many = TOP + 53, len(record.tiles) > 1
    most = max(counts)
    start, end = x + (first - low) / (high - low) * SCALE_WIDTH, x + (last - low) / (high - low) * SCALE_WIDTH
    step = (end - start) / len(counts)
    bars = []
    for i, n in enumerate(counts):
        tall = max(n / most * 48, 1.0)
        bars.append(f"M{start + i * step:.1f} {base}v{-tall:.1f}h{max(step - 0.6, 0.6):.1f}v{tall:.1f}z" if n else "")
    under = base + 4
    ends = (
        ("≤ " if record.minimum < low else "") + short_number(low),
        ("≥ " if record.maximum > high else "") + short_number(high),
    )
    parts = [
        index_plate(x - 10, TOP - 17, SCALE_WIDTH + 20, 104 + 15 * many),
        svg.text(x, TOP - 2, say("how often; tallest bar: {share:.0%}", share=most / sum(counts)), fill=theme.MUTED),
        svg.path("".join(bars), fill=theme.MUTED),
        svg.element("image", x=x, y=under, width=SCALE_WIDTH, height=10, preserveAspectRatio="none", href=strip),
        svg.rect(x, under, SCALE_WIDTH, 10, fill="none", stroke=theme.MUTED),
        svg.text(x, under + 23, ends[0]),
        svg.text(x + SCALE_WIDTH, under + 23, ends[1], text_anchor="end"),
    ]
    if many:
        words = f"one scale for all {len(record.tiles)} pictures"
        parts.append(svg.text(x, under + 38, words, fill=theme.MUTED))
    if diverging and max(text_width(end, FONT_SIZE) for end in ends) < SCALE_WIDTH / 2 - 10:
        parts.append(svg.text(x + SCALE_WIDTH / 2, under + 23, "0", text_anchor="middle"))
    return parts


def tensor_html(record: TensorRecord, always: bool = False) -> str:
    """The card of a tensor; empty if it is better shown as text, unless `always`."""
    if record.symbolic:
        line = f"<b>{escape(clean(record.spec))}</b> · {escape(record.about)}"
        line += "<br>its numbers are known when the graph runs"
        return f'<div {NO_MATH} style="{CARD_STYLE};font-size:13px">{line}</div>'
    if not record.tiles or (record.size <= MAX_TEXT_ELEMENTS and not always):
        return ""
    text = (
        record.text
        if len(record.text) <= MAX_TEXT_CHARS
        else record.text[:MAX_TEXT_CHARS] + "\n... (print it to see all)"
    )
    return picture_card(
        tensor_svg(record, always), alt_text(record), text + (f"\ngrad: {record.grad}" if record.grad else "")
    )
