"""A card with lanes of boxes over a time axis, and sentences below: the timeline of a job, the threads of a step.

Everything is drawn on the page itself; text outside boxes has a halo.
Read next: `../timeline/svg.py` and `../renderers/threads.py`, which use it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from . import svg_writer as svg, theme
from .fonts import text_width, truncated, wrap_to_width

WIDTH, RIGHT = 760, 22
LANE_STEP, BAR_HEIGHT = 25, 18  # pixels: distance of lanes, height of a box
TEXT_LEFT = 4 + svg.PADDING  # left edge of names and sentences
# font sizes of text, and of text in boxes and on the axis; line height
FONT_SIZE, SMALL_FONT_SIZE, LINE_HEIGHT = 12, 11, 17
MIN_FILLED_WIDTH = 8  # pixels: narrower boxes have the color of their rim
MIN_CUT_WIDTH = 56  # pixels: in wider boxes, words that do not fit are cut
MIN_WAIT_WIDTH = 2.5  # pixels: narrower dashed boxes are not drawn
MIN_NAMED_WAIT_WIDTH = 48  # pixels: wider ones have a word

Colors = tuple[str, str]  # fill, rim
FAILED_COLORS: Colors = theme.PALE_RED, theme.RED


class LaneBox(NamedTuple):
    """A box. lane: index of its lane.  start, stop: seconds.  words: written into it if there is room.  row, rows: its
    row within the lane, and their number.  dashed: True for a wait.  title: the lines of its tooltip, if any.
    """

    lane: int
    start: float
    stop: float
    words: str
    colors: Colors
    row: int = 0
    rows: int = 1
    dashed: bool = False
    title: tuple[str, ...] = ()


def round_step(whole: float, count: int = 6) -> float:
    """1, 2 or 5 times a power of ten, such that about `count` of them cover `whole` > 0."""
    rough = whole / count
    scale = 10.0 ** math.floor(math.log10(rough))
    return next(scale * m for m in (1, 2, 5, 10) if scale * m >= rough * 0.999)


def fitting(words: str, width: float, tall: float) -> str:
    """The words as they are written into a box, cut if there is room for a part of them; empty if there is none."""
    if tall <= SMALL_FONT_SIZE:
        return ""
    if text_width(words, SMALL_FONT_SIZE) + 2 < width:
        return words
    return truncated(words, width - 4, SMALL_FONT_SIZE) if width > MIN_CUT_WIDTH else ""


class Card:
    """A column of SVG elements; the next begins at `y`. left: pixels for the names of lanes.  said: sentences at the
    end, with their styles.
    """

    def __init__(self, left: float) -> None:
        self.left = left
        self.parts: list[str] = []
        self.said: list[tuple[str, str, bool]] = []
        self.y = 4.0

    def text(self, x: float, y: float, content: str, text_color: str = theme.TEXT_COLOR, **look: object) -> None:
        self.parts.append(svg.text(x, y, content, fill=text_color, **svg.HALO, **look))

    def path(self, d: str, color: str = theme.LINE, **look: object) -> None:
        self.parts.append(svg.path(d, stroke=color, **look))

    def sentence(self, content: str, text_color: str = theme.TEXT_COLOR, bold: bool = False) -> None:
        """Add a sentence below everything else, wrapped."""
        lines = wrap_to_width(content, WIDTH - 2 * TEXT_LEFT, FONT_SIZE, bold) if content else []
        self.said += [(line, text_color, bold) for line in lines]

    def svg(self, alt: str) -> str:
        self.y += 4
        for line, text_color, bold in self.said:
            self.y += LINE_HEIGHT
            self.text(TEXT_LEFT, self.y - 1, line, text_color, font_weight="bold" if bold else None)
        return svg.picture(self.parts, WIDTH, math.ceil(self.y + 10), alt, font_size=FONT_SIZE)

    def heading(self, title: str, note: str = "") -> None:
        wide = text_width("  " + note, FONT_SIZE)
        title = truncated(title, WIDTH - 2 * TEXT_LEFT - wide, FONT_SIZE, bold=True)
        head = svg.span(title, font_weight="bold"), svg.span("  " + note, fill=theme.MUTED)
        self.parts.append(svg.element("text", *head, x=TEXT_LEFT, y=self.y + 14, fill=theme.TEXT_COLOR, **svg.HALO))
        self.y += LINE_HEIGHT + 5

    def lanes(
        self, names: Sequence[tuple[str, str, str]], boxes: Iterable[LaneBox], start: float, seconds: float
    ) -> Callable[[float], float]:
        """Draw lanes from `start`; `seconds` is the full width. Return the function from a time to its x coordinate.

        names: (name, note below it, color of its stripe or "") of each lane.
        """
        top, right = self.y, WIDTH - RIGHT
        self.y += LANE_STEP * len(names)
        for i, (name, note, color) in enumerate(names):
            y = top + i * LANE_STEP
            self.path(f"M{self.left} {y + LANE_STEP - 0.5:g}H{right}", stroke_width=".5", stroke_dasharray="1 3")
            self.text(TEXT_LEFT, y + (11 if note else 16), name, font_weight="bold")
            self.text(TEXT_LEFT, y + 22, note, theme.MUTED, font_size=SMALL_FONT_SIZE)
            self.parts += [svg.rect(TEXT_LEFT - svg.PADDING, y + 2, 3, LANE_STEP - 4, rx=1.5, fill=color)] * bool(color)
        across = lambda t: self.left + (t - start) / seconds * (right - self.left)
        plain: dict[Colors, list[str]] = {}  # boxes without words: many, so one path for each color
        named: dict[Colors, list[str]] = {}  # those with a tooltip
        for box in sorted(boxes, key=lambda b: not b.dashed):
            x, tall = across(box.start), BAR_HEIGHT / box.rows
            y = top + box.lane * LANE_STEP + (LANE_STEP - BAR_HEIGHT) / 2 + box.row * tall
            width, tall = max(across(box.stop) - x, 0.3), tall - (box.rows > 1)
            if box.dashed:
                self.wait(x, y, width)
            elif fitting(box.words, width, tall):
                self.box(x, y, width, tall, box.colors, box.words, box.title)
            else:
                colors = box.colors if width > MIN_FILLED_WIDTH else (box.colors[1],) * 2
                d = f"M{x:.1f} {svg.number(y)}h{width:.1f}v{svg.number(tall)}h{-width:.1f}z"
                if box.title:
                    named.setdefault(colors, []).append(svg.path(d, svg.titled(box.title)))
                else:
                    plain.setdefault(colors, []).append(d)
        for (fill, rim), paths in plain.items():
            self.path("".join(paths), rim, fill=fill, stroke_width=0.7)
        for (fill, rim), elements in named.items():
            self.parts.append(svg.group(elements, fill=fill, stroke=rim, stroke_width=0.7))
        self.y += 2
        return across

    def wait(self, x: float, y: float, width: float) -> None:
        if width > MIN_WAIT_WIDTH:
            fill = theme.PLATE if width > MIN_NAMED_WAIT_WIDTH else "none"
            look = {"fill": fill, "stroke": theme.LINE, "stroke_dasharray": "2 2"}
            self.parts.append(svg.rect(x, y + 1, width, BAR_HEIGHT - 2, **look))
        if width > MIN_NAMED_WAIT_WIDTH:
            look = {"text_anchor": "middle", "font_size": SMALL_FONT_SIZE, "fill": theme.MUTED}
            self.parts.append(svg.text(x + width / 2, y + 13, "waits", **look))

    def box(
        self, x: float, y: float, width: float, tall: float, colors: Colors, words: str, title: Sequence[str] = ()
    ) -> None:
        fill, rim = colors
        tooltip = svg.titled(title) if title else ""
        self.parts.append(svg.rect(x, y, width, tall, tooltip, rx=1.5, fill=fill, stroke=rim, stroke_width=1.6))
        if words := fitting(words, width, tall):
            text_color = theme.RED_TEXT if colors == FAILED_COLORS else theme.TEXT_COLOR
            look = {"text_anchor": "middle", "font_size": SMALL_FONT_SIZE, "pointer_events": "none" if title else None}
            self.parts.append(svg.text(x + width / 2, y + tall / 2 + 4, words, fill=text_color, **look))

    def axis(self, seconds: float) -> None:
        step = round_step(seconds)
        unit, name = (1e-6, "µs") if seconds < 2e-4 else (1e-3, "ms") if seconds < 10 else (1.0, "s")
        digits = max(0, -math.floor(math.log10(step / unit) + 1e-9))
        for k in range(int(seconds / step + 1e-9) + 1):
            x = self.left + k * step / seconds * (WIDTH - self.left - RIGHT)
            self.path(f"M{x:.1f} {self.y:g}v5")
            label = f"{k * step / unit:.{digits}f}" if k else f"0 {name}"  # zero without decimals
            self.text(x, self.y + 16, label, theme.MUTED, text_anchor="middle", font_size=SMALL_FONT_SIZE)
        self.y += 24
