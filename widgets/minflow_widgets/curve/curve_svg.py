"""Series as a static picture: lines on the page itself, numbers and words on plates at the edges of each plot.

Pure functions: equal numbers give equal text. Read next: `loss_curve.py`, which shows it at the end of a run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from minflow.views.draw import svg_writer as svg, theme
from minflow.views.draw.fonts import text_width, wrap_to_width

from .panels import latest_step, line_series, panel_rows, panels, scale_members, series_warnings, spans_decades
from .scales import isolated, levels, limits, ticks, with_gaps
from .series import STRIP_WORDS, Series, number

PICTURE_WIDTH, ROW_HEIGHT = 720, 230  # pixels: the picture, and one row of panels
LEFT, RIGHT, BOTTOM, LINE_HEIGHT = 52, 14, 39, 15  # least margins around a plot; line height
FONT_SIZE, PLATE_LEFT, LEGEND_LEFT = 11.5, 4, 38  # font size; left edge of plates; left edge of legend text
COLORS = theme.BLUE, theme.AMBER, theme.GREEN, theme.VIOLET
DASHES = ("", "7 3", "2 3", "8 3 2 3")
GRID_STYLE = {"stroke_width": ".5", "stroke_dasharray": "1 2"}
# height of a row of strips, and of epoch numbers; up to this many values get dots
STRIP_HEIGHT, EPOCH_NUMBERS_HEIGHT, MAX_DOTTED_VALUES = 130, 16, 24


class Scene(NamedTuple):
    """State shared by all panels. limits: limits of the x axis.  before: name -> series of the previous run.  series:
    those of all panels.
    """

    x: str
    log: bool | None
    marks: Sequence
    before: dict[str, Series]
    limits: tuple[float, float]
    series: list[Series]
    gaps: Sequence


def draw(
    series: list[Series],
    note: str = "",
    declared: tuple[str, ...] = (),
    status: str = "",
    marks: Sequence = (),
    x: str = "step",
    log: bool | None = None,
    before: Sequence[Series] = (),
    gaps: Sequence = (),
) -> str:
    """The picture as SVG text: `status` on top, then panels, two per row, small ones in a row of strips; `note` below.

    marks: (step, seconds, text) of vertical lines.  before: series of the previous run, drawn faint behind those of the
    same name.  log: None to choose by the range of the values.  gaps: (from, to) in seconds without a line on a time
    axis.
    """
    titles, lines = panels(series, declared) or ["loss"], line_series(series, declared)
    known = {s.name: s for s in before}
    ends = limits([s.points(x)[0] for s in (*lines, *known.values())])
    scene = Scene(x, log, marks, known, ends, series, gaps if x == "time" else ())
    head = wrap_to_width(status, PICTURE_WIDTH - 2 * PLATE_LEFT - 2 * svg.PADDING, FONT_SIZE) if status else []
    parts, top = (
        [svg.label(PLATE_LEFT + svg.PADDING, 16, *head, size=FONT_SIZE)] if head else [],
        LINE_HEIGHT * len(head) + 9 * bool(head),
    )
    for row in panel_rows(titles):
        width = PICTURE_WIDTH / len(row)
        strip = titles[row[0]] in STRIP_WORDS and len(row) < len(titles)
        members = [[s for s in lines if s.word == titles[i]] for i in row]
        legends = [[legend(series, s, width - LEGEND_LEFT - svg.PADDING - RIGHT) for s in each] for each in members]
        most = max([sum(map(len, each)) for each in legends])
        height = STRIP_HEIGHT + LINE_HEIGHT * max(most - 1, 0) if strip else ROW_HEIGHT + LINE_HEIGHT * max(most - 4, 0)
        for k, i in enumerate(row):
            panel = Panel(titles[i], members[k], legends[k], width, height, scene, strip)
            parts.append(svg.group(panel.parts, transform=f"translate({k * width:g} {top})"))
        top += height
    if note:
        foot = wrap_to_width(note, PICTURE_WIDTH - 2 * PLATE_LEFT - 2 * svg.PADDING, FONT_SIZE)
        wrong = note != "stopped"  # stopped by the user: not an error
        text_color, fill = (theme.RED_TEXT, theme.PALE_RED) if wrong else (theme.TEXT_COLOR, theme.PLATE)
        parts.append(
            svg.label(PLATE_LEFT + svg.PADDING, top + 18, *foot, size=FONT_SIZE, text_color=text_color, fill=fill)
        )
        top += LINE_HEIGHT * len(foot) + 11
    return svg.picture(parts, PICTURE_WIDTH, top, describe(series, note), font_size=FONT_SIZE)


def describe(series: list[Series], note: str = "") -> str:
    """The picture in words: the last and the best value of each series."""
    last = max((s.steps[-1] for s in series if s.count), default=None)
    parts = ["no values" if last is None else f"step {number(last)}"]
    for s in series:
        bad = f" ({': '.join(series_warnings(series, s))})" if s.first_nonfinite else ""
        parts.append(", ".join(filter(None, [s.label(latest_step(series, s)), s.epoch_means()])) + bad)
    return "; ".join([*parts, note] if note else parts)


class Panel:
    """One plot with its legend on top. parts: its elements."""

    def __init__(
        self, title: str, members: list[Series], legends: list, width: float, height: float, scene: Scene, strip: bool
    ):
        self.scene = scene
        self.parts: list[str] = []
        lines: list[Any] = [(s, *s.points(scene.x), *s.means(scene.x)) for s in members]
        old = [scene.before[s.name].points(scene.x) for s in members if s.name in scene.before]
        steady = scale_members(members)
        numbers = np.concatenate([np.empty(0), *[y for s, _, y, *_ in lines if s in steady], *[y for _, y in old]])
        chosen = scene.log is None and spans_decades(title, [numbers])
        self.log = (chosen or bool(scene.log)) and bool((numbers > 0).any())
        self.low, self.high = limits([np.log10(numbers[numbers > 0]) if self.log else numbers])
        said = [words for rows in legends for words, _ in rows] or [f"no {title} yet"]
        self.plate(
            PLATE_LEFT,
            PLATE_LEFT,
            LEGEND_LEFT + svg.PADDING - PLATE_LEFT + max(text_width(words, FONT_SIZE) for words in said),
            LINE_HEIGHT * len(said) + 5,
        )
        self.top = 2 * PLATE_LEFT + 9 + LINE_HEIGHT * len(said)
        self.width, self.right, self.bottom = width, width - RIGHT, height - BOTTOM
        numbered = bool(scene.marks) and not strip
        self.above = EPOCH_NUMBERS_HEIGHT + 4 if numbered else 6  # keeps lines out of the epoch numbers
        grid = levels(self.low, self.high, self.log, max(2, int((self.bottom - self.top) // 30)))
        self.left = max(
            LEFT, 2 * PLATE_LEFT + 10 + math.ceil(max([text_width(label, FONT_SIZE) for _, label in grid], default=0))
        )
        if not members:
            self.text(PLATE_LEFT + svg.PADDING, 18, said[0])
        self.axes(grid)
        self.marks(numbered)
        window = max((w for *_, w in lines), default=0)
        notes = {
            "log scale: over 4 decades": chosen,
            f"thick line: mean of {window}": bool(window),
            "gray: previous run": bool(old),
            "diverged runs leave the scale": len(steady) < len(members),
            "steps: epoch means": any(s.epochs for s in members),
            "numbered: epochs": numbered,
        }
        self.caption(title, members, [note for note, holds in notes.items() if holds])
        for x, y in old:
            self.line(x, y, stroke=theme.LINE)
        row = 0
        for k, (s, *curves) in enumerate(lines):
            look = k if s.style is None else s.style
            color, dash = COLORS[look % len(COLORS)], DASHES[(look + look // len(COLORS)) % len(DASHES)]
            x, y, mean_x, mean_y, window = curves
            self.series(s, x, y, mean_x, mean_y, window, color=color, dash=dash)
            self.legend(legends[k], row, color, dash)
            row += len(legends[k])

    # ---- places ------------------------------------------------------------------------------------------------------

    def across(self, x):
        low, high = self.scene.limits
        return self.left + (x - low) / (high - low) * (self.right - self.left)

    def up(self, y):
        y = np.clip(y, self.low, self.high)  # values beyond the scale are drawn at its edge
        return self.bottom - (y - self.low) / (self.high - self.low) * (self.bottom - self.top - self.above)

    def points(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.across(x), self.up(np.log10(np.where(y > 0, y, np.nan)) if self.log else y)

    # ---- elements ----------------------------------------------------------------------------------------------------

    def text(self, x: float, y: float, words: str, color: str = theme.TEXT_COLOR, anchor: str = "start") -> None:
        self.parts.append(svg.text(x, y, words, fill=color, text_anchor=anchor))

    def plate(self, x: float, y: float, width: float, height: float) -> None:
        self.parts.append(svg.rect(x, y, width, height, rx=4, fill=theme.PLATE))

    def path(self, d: str, **look: object) -> None:
        self.parts.append(svg.path(d, **look))

    def line(self, x: np.ndarray, y: np.ndarray, **look: object) -> None:
        self.path(outline(*self.points(x, y)), fill="none", **look)

    def dots(self, points, radius: float, color: str) -> None:
        self.parts += [svg.element("circle", cx=a, cy=b, r=radius, fill=color) for a, b in points]

    # ---- contents of the plot ----------------------------------------------------------------------------------------

    def axes(self, grid: list[tuple[float, str]]) -> None:
        """Plates with numbers at the left and below, which meet in the corner; dotted lines across the plot."""
        self.plate(PLATE_LEFT, self.top - 4, self.left - 2 * PLATE_LEFT, self.bottom - self.top + 14)
        self.plate(PLATE_LEFT, self.bottom + 6, self.width - 2 * PLATE_LEFT, BOTTOM - 8)
        for level, label in grid:
            y = round(float(self.up(level)), 1)
            self.path(f"M{self.left} {y:.1f}H{self.right:g}", stroke=theme.LINE, **GRID_STYLE)
            self.text(self.left - 10, y + 4, label, anchor="end")
        for x in ticks(*self.scene.limits, max(2, int(self.width // 110))):
            half = text_width(number(x), FONT_SIZE) / 2 + PLATE_LEFT + 2
            at = min(max(self.across(x), half), self.width - half)
            self.text(at, self.bottom + 18, number(x), anchor="middle")
        self.path(f"M{self.left} {self.top}V{self.bottom}H{self.right:g}", fill="none", stroke=theme.LINE)

    def marks(self, numbered: bool) -> None:
        """Vertical lines at the marks, with text if there is room."""
        free: float = self.left
        if numbered:
            self.plate(self.left + 3, self.top, self.right - self.left - 3, EPOCH_NUMBERS_HEIGHT)
        for step, seconds, label in self.scene.marks:
            at = float(self.across(step if self.scene.x == "step" else seconds))
            self.path(f"M{at:.1f} {self.top}V{self.bottom}", stroke=theme.LINE, stroke_dasharray="1 3")
            short = label if len(label) <= 12 else label[:11] + "\u2026"
            if numbered and at - 6 - text_width(short, FONT_SIZE) > free:
                self.text(round(at, 1) - 3, self.top + 12, short, theme.MUTED, "end")
                free = at + 3

    def caption(self, title: str, members: list[Series], notes: list[str]) -> None:
        """The label of the x axis, and as many notes as fit."""
        words = ["step" if self.scene.x == "step" else "seconds since its start"]
        if any(s.shown for s in members):
            words = [f"{title} by {words[0]}"]
        words += [s.sampled() for s in members if s.every > 1][:1]
        for note in notes:
            words += (
                [note]
                if text_width("; ".join([*words, note]), FONT_SIZE) < self.width - 2 * PLATE_LEFT - 2 * svg.PADDING
                else []
            )
        shown, half = "; ".join(words), text_width("; ".join(words), FONT_SIZE) / 2 + PLATE_LEFT + svg.PADDING
        self.text(min((self.left + self.right) / 2, self.width - half), self.bottom + 32, shown, theme.MUTED, "middle")

    def stairs(self, s: Series, color: str) -> None:
        """The means of epochs, each from its first step to its last, which has a dot."""
        each = [(t0, t1, mean) if self.scene.x == "time" else (x0, x1, mean) for x0, x1, mean, t0, t1 in s.stairs()]
        ends = np.array([end for x0, x1, _ in each for end in (x0, x1)])
        across, up = self.points(ends, np.array([mean for *_, mean in each for _ in (0, 1)], float))
        self.path(outline(across, up), fill="none", stroke=color, stroke_width=1.2)
        self.dots([(a, b) for a, b in zip(across[1::2].tolist(), up[1::2].tolist()) if b == b], 2.5, color)

    def series(self, s: Series, x, y, mean_x, mean_y, window: int, color: str, dash: str) -> None:
        """One line, and its mean over `window` values if it has one."""
        gaps = self.scene.gaps
        (x, y), (mean_x, mean_y) = with_gaps(x, y, gaps), with_gaps(mean_x, mean_y, gaps)
        if window:
            self.line(x, y, stroke=color, stroke_width=".6")
            self.line(mean_x, mean_y, stroke=color, stroke_width=2.4, stroke_dasharray=dash)
        else:
            self.line(x, y, stroke=color, stroke_width=1.6, stroke_dasharray=dash)
        across, up = self.points(x, y)
        if not window and s.count <= MAX_DOTTED_VALUES:
            self.dots([(a, b) for a, b in zip(across.tolist(), up.tolist()) if b == b], 2.5, color)
        else:
            self.dots(isolated(across, up), 2, color)
        self.stairs(s, color)
        if s.first_nonfinite:
            at = min(max(self.across(s.first_nonfinite[0 if self.scene.x == "step" else 2]), self.left), self.right)
            self.path(f"M{at:.1f} {self.top}V{self.bottom}", stroke=theme.RED, stroke_dasharray="4 3")

    def legend(self, rows: list[tuple[str, bool]], row: int, color: str, dash: str) -> None:
        """The legend of a line, starting at row `row`, with a sample of the line."""
        y = 14 + row * LINE_HEIGHT
        self.path(f"M{PLATE_LEFT + svg.PADDING} {y}h22", stroke=color, stroke_width=2.4, stroke_dasharray=dash)
        for k, (words, bad) in enumerate(rows):
            self.text(LEGEND_LEFT, y + 4 + k * LINE_HEIGHT, words, theme.RED_TEXT if bad else theme.TEXT_COLOR)


def legend(series: list[Series], s: Series, width: float) -> list[tuple[str, bool]]:
    """Rows of the legend of a line, each with True if it is a warning."""
    said = [(s.legend(latest_step(series, s)), False), (s.epoch_now(), False)]
    said += [(words, True) for words in series_warnings(series, s)]
    return [(row, bad) for words, bad in said if words for row in wrap_to_width(words, width, FONT_SIZE)]


def outline(x: np.ndarray, y: np.ndarray) -> str:
    """The path through the points, with gaps at NaN."""
    parts, pen = [], "M"
    for a, b in zip(np.round(x, 1).tolist(), np.round(y, 1).tolist(), strict=True):
        if b != b:
            pen = "M"
            continue
        parts.append(f"{pen}{a:g} {b:g}")
        pen = "L"
    return "".join(parts)
