"""A TensorRecord as a picture: heat maps with their colour scale, a histogram and the statistics in words.

An SVG on a light ground of its own; the cells are one PNG inside it. NaN and infinity are drawn as signs, on yellow,
never by colour alone. Pure functions of records. Read next: `../html/page.py`, cards; `images.py`, tensors as
photographs.
"""

from __future__ import annotations

from html import escape

import numpy as np

from ..draw import svg_writer as svg
from ..html.page import CARD, NO_MATH, picture_card
from ..draw.png import data_uri, enlarged, png
from ..text.sparkline import short_number
from .tensor import ACROSS, GAP, LEAST, NUMBERS, TINY, TensorRecord, cell_text, numbers_line, shown_line, with_numbers
from ..text.listing import clean
from ..text.tables import cut

INK, FAINT, BAR = "#24292f", "#57606a", "#5b6775"
LEVELS = 48  # colours of a scale
NAN, PLUS, MINUS, PAPER = LEVELS, LEVELS + 1, LEVELS + 2, LEVELS + 3  # numbers of the palette after those of the scale
DOWN = ((43, 95, 168), (247, 247, 247), (181, 71, 11))  # below zero, zero, above zero
UP = ((247, 251, 255), (107, 163, 214), (8, 48, 107))  # from the least to the greatest
GROUND, SIGN = (255, 236, 153), (122, 31, 21)  # of a cell that is no number, and the sign on it
LONGEST = 2600  # characters of the numbers below a card; all of them stand in text/plain
TEXT_CELL = (58, 20)  # a cell with its number written in it, in pixels
LEFT, TOP = 34, 58


def scale_of(record: TensorRecord) -> tuple[float, float, bool]:
    """What the first and the last colour mean, and whether the colour in the middle stands for zero."""
    _, low, high = record.histogram
    if low < 0 < high:
        most = max(-low, high)
        return -most, most, True
    return low, high, False


def palette(diverging: bool) -> np.ndarray:
    """The colours of the scale, then those of NaN, inf, -inf and of the paper between slices, as uint8 (n, 3)."""
    points = np.array(DOWN if diverging else UP, float)
    at = np.linspace(0, len(points) - 1, LEVELS)
    colors = [np.interp(at, range(len(points)), points[:, k]) for k in range(3)]
    return np.concatenate([np.stack(colors, 1).round(), [SIGN, SIGN, SIGN, (255, 255, 255), GROUND]]).astype(np.uint8)


def levels(cells: np.ndarray, low: float, high: float) -> np.ndarray:
    """Numbers of the palette for finite cells; NAN, PLUS or MINUS for others."""
    with np.errstate(all="ignore"):
        share = (cells - low) / (high - low) if high > low else np.full(cells.shape, 0.5)
        numbers = np.nan_to_num(np.clip(share, 0, 1) * (LEVELS - 1), nan=0.0).round().astype(np.uint8)
    numbers[np.isnan(cells)], numbers[np.isposinf(cells)], numbers[np.isneginf(cells)] = NAN, PLUS, MINUS
    return numbers


def sign(kind: int, size: int) -> np.ndarray:
    """A cell of `size` pixels that is no number: a cross for NaN, a plus and a minus for the infinities."""
    cell = np.full((size, size), LEVELS + 4, np.uint8)
    at, middle, thick = np.arange(1, size - 1), size // 2, max(1, size // 8)
    for k in range(-(thick // 2), thick - thick // 2):
        if kind == NAN:
            cell[at, np.clip(at + k, 1, size - 2)] = cell[at, np.clip(size - 1 - at + k, 1, size - 2)] = NAN
        else:
            cell[middle + k, at] = kind
            if kind == PLUS:
                cell[at, middle + k] = kind
    return cell


def painted(cells: np.ndarray, size: int) -> np.ndarray:
    """Cells as squares of pixels, those that are no numbers with their signs."""
    pixels = enlarged(cells, size)
    for kind in (NAN, PLUS, MINUS):
        if (cells == kind).any():
            mask = enlarged(cells == kind, size)
            tiled = np.tile(sign(kind, size), cells.shape)
            pixels[mask] = tiled[mask]
    return pixels


def tensor_svg(record: TensorRecord, asked: bool = False) -> str:
    """The picture of a record. asked: for its numbers, so that it says why they are not written where they do not
    fit."""
    low, high, diverging = scale_of(record)
    cells = [np.array(tile.cells) for tile in record.tiles]
    numbers = with_numbers(record)
    if not cells:
        parts, width, height = [], 0, 0
    elif numbers:
        parts, width, height = written(record, cells, low, high, diverging)
    else:
        parts, width, height = mosaic(record, cells, low, high, diverging)
    side = scale_and_histogram(record, low, high, diverging, LEFT + width + 22)
    height = max(TOP + height + 22, TOP + 112)
    width = max(LEFT + width + 22 + 190, 460)
    head = cut(clean(f"{record.spec}  ·  {record.about}" if record.about else record.spec), 90)
    parts += [svg.text(8, 20, head, fill=INK, font_weight="bold"), svg.text(8, 38, numbers_line(record), fill=INK)]
    notes = [shown_line(record)] if shown_line(record) else []
    if asked and cells and not numbers:
        notes.append(f"colours only: numbers are written into at most {NUMBERS[1]} rows and {NUMBERS[0]} columns")
    if not numbers and (record.nan or record.plus or record.minus):
        signs = ((record.nan, "× NaN"), (record.plus, "+ inf"), (record.minus, "− -inf"))
        notes.append("signs: " + ", ".join(name for n, name in signs if n))
    for note in notes:
        height += 16
        parts.append(svg.text(8, height - 8, note, fill=FAINT))
    return svg.picture([*parts, *side], width, height, alt_text(record))


def alt_text(record: TensorRecord) -> str:
    """The picture in words."""
    about = f", {record.about}" if record.about else ""
    return clean(f"Tensor {record.spec}{about}; {numbers_line(record)}")


def written(record: TensorRecord, cells: list[np.ndarray], low: float, high: float, diverging: bool):
    """Few enough cells to write each number into its own: (parts, width, height)."""
    colors = palette(diverging)
    light = colors.astype(int) @ (299, 587, 114) > 140_000
    wide, tall = TEXT_CELL
    rows, columns = cells[0].shape
    title = 0 if len(cells) == 1 else 15
    step_x, step_y = wide * columns + GAP + 12, tall * rows + GAP + title + 12
    parts = []
    for k, (tile, values) in enumerate(zip(record.tiles, cells, strict=True)):
        x, y = LEFT + k % record.across * step_x, TOP + title + k // record.across * step_y
        indices = levels(values, low, high)
        indices[indices >= LEVELS] = LEVELS + 4
        ground = indices.repeat(tall, axis=0).repeat(wide, axis=1)
        ground[tall - 1 :: tall] = ground[:, wide - 1 :: wide] = PAPER
        image = {"width": wide * columns, "height": tall * rows, "href": data_uri(png(ground, colors))}
        parts.append(svg.element("image", x=x, y=y, **image))
        numbers = [svg.text(x - 6, y + tall * i + 14, str(i)) for i in range(rows)]
        parts.append(svg.group(numbers, text_anchor="end", fill=FAINT))
        numbers = [svg.text(x + wide * j + 28, y - 5, str(j)) for j in range(columns)]
        parts.append(svg.group(numbers, text_anchor="middle", fill=FAINT))
        if title:
            parts.append(svg.text(x, y - 19, tile.title, fill=INK))
        for dark in (False, True):
            words = [
                svg.text(x + wide * j + 28, y + tall * i + 14, cell_text(record, number))
                for i, row in enumerate(values.tolist())
                for j, number in enumerate(row)
                if bool(light[indices[i, j]]) is not dark
            ]
            parts.append(svg.group(words, text_anchor="middle", fill="#ffffff" if dark else INK))
    down = -(-len(cells) // record.across)
    return parts, step_x * record.across - GAP - 12, step_y * down - GAP - 12 + title


def mosaic(record: TensorRecord, cells: list[np.ndarray], low: float, high: float, diverging: bool):
    """Heat maps side by side, as one PNG: (parts, width, height)."""
    rows, columns = cells[0].shape
    one = len(cells) == 1
    room = ACROSS // record.across - GAP  # what each may be wide
    side = 480 if rows == 1 else 336 if one else 84
    size = max(LEAST, min(24 if rows > 1 else 18, side // max(rows, columns), room // columns))
    title = 0 if one else 15
    across = min(len(cells), record.across)
    step_x, step_y = columns * size + GAP, rows * size + GAP + title
    width, height = step_x * across - GAP, step_y * -(-len(cells) // across) - GAP
    paper = np.full((height, width), PAPER, np.uint8)
    parts = []
    for k, (tile, values) in enumerate(zip(record.tiles, cells, strict=True)):
        x, y = k % across * step_x, k // across * step_y + title
        paper[y : y + rows * size, x : x + columns * size] = painted(levels(values, low, high), size)
        if title:
            parts.append(svg.text(LEFT + x, TOP + y - 4, tile.title, fill=FAINT))
    look = {"style": "image-rendering:pixelated", "href": data_uri(png(paper, palette(diverging)))}
    parts.insert(0, svg.element("image", x=LEFT, y=TOP, width=width, height=height, **look))
    if one:
        parts.append(svg.rect(LEFT - 0.5, TOP - 0.5, width + 1, height + 1, fill="none", stroke=BAR,
                              stroke_opacity=".5"))
        parts.append(svg.text(LEFT, TOP - 5, "0", fill=FAINT))
        parts.append(svg.text(LEFT + width, TOP - 5, f"{record.columns - 1:,}", fill=FAINT, text_anchor="end"))
        if rows > 1:
            parts.append(svg.text(LEFT - 5, TOP + 10, "0", fill=FAINT, text_anchor="end"))
            parts.append(svg.text(LEFT - 5, TOP + height, f"{record.rows - 1}", fill=FAINT, text_anchor="end"))
    return parts, width, height


def scale_and_histogram(record: TensorRecord, low: float, high: float, diverging: bool, x: float) -> list[str]:
    """The colour scale with the numbers at its ends, and over it how often each occurs, at the right of the cells."""
    counts, first, last = record.histogram
    # no counts: from -1e308 to 1e308, no float says how far that is
    if not high > low or record.true is not None or not counts:
        return []
    strip = data_uri(png(np.arange(LEVELS, dtype=np.uint8)[None], palette(diverging)))
    wide, base = 150, TOP + 62
    most = max(counts)
    start, end = x + (first - low) / (high - low) * wide, x + (last - low) / (high - low) * wide
    step = (end - start) / len(counts)
    bars = []
    for i, n in enumerate(counts):
        tall = max(n / most * 50, 1.0)
        bars.append(f"M{start + i * step:.1f} {base}v{-tall:.1f}h{max(step - 0.6, 0.6):.1f}v{tall:.1f}z" if n else "")
    share = f"how often; tallest bar: {most / sum(counts):.0%}"
    under = base + 4
    ends = (("≤ " if record.least < low else "") + short_number(low),
            ("≥ " if record.most > high else "") + short_number(high))
    parts = [
        svg.text(x, TOP + 4, share, fill=FAINT),
        svg.path("".join(bars), fill=BAR),
        svg.element("image", x=x, y=under, width=wide, height=10, preserveAspectRatio="none", href=strip),
        svg.rect(x, under, wide, 10, fill="none", stroke=BAR, stroke_opacity=".5"),
        svg.text(x, under + 23, ends[0], fill=INK),
        svg.text(x + wide, under + 23, ends[1], fill=INK, text_anchor="end"),
    ]
    if len(record.tiles) > 1:
        parts.append(svg.text(x, under + 38, f"one scale for all {len(record.tiles)} pictures", fill=FAINT))
    return parts + ([svg.text(x + wide / 2, under + 23, "0", fill=INK, text_anchor="middle")] if diverging else [])


def tensor_html(record: TensorRecord, always: bool = False) -> str:
    """The card of a tensor; empty for what reads better as text, unless `always`."""
    if record.symbolic:
        line = f"<b>{escape(clean(record.spec))}</b> · {escape(record.about)}"
        return f'<div {NO_MATH} style="{CARD};font-size:13px">{line}<br>its numbers are known when the graph runs</div>'
    if not record.tiles or (record.size <= TINY and not always):
        return ""
    text = record.text if len(record.text) <= LONGEST else record.text[:LONGEST] + "\n... (print it to see all)"
    return picture_card(tensor_svg(record, always), alt_text(record),
                        text + (f"\ngrad: {record.grad}" if record.grad else ""))


