"""Series as a static picture: lines on the page itself, numbers and words on plates at the edges of each plot.

Pure functions: equal numbers give equal text. Read next: `loss_curve.py`, which shows it at the end of a run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from minflow.views.draw import svg_writer as svg, theme
from minflow.views.draw.fonts import text_width, truncated, wrap_to_width
from minflow.views.words import say

from .legend import Row, describe, is_problem, legend
from .panels import line_series, looks, panel_rows, panels, scale_members, spans_decades
from .scales import apart, from_zero, isolated, levels, limits, ticks, with_gaps
from .series import STRIP_WORDS, Series, number

PICTURE_WIDTH, ROW_HEIGHT = 720, 230  # pixels: the picture, and one row of panels
LEFT, RIGHT, BOTTOM, LINE_HEIGHT = 52, 14, 39, 15  # least margins around a plot; line height
FONT_SIZE, PLATE_LEFT, LEGEND_LEFT = 11.5, 4, 38  # font size; left edge of plates; left edge of legend text
COLORS = theme.BLUE, theme.AMBER, theme.GREEN, theme.VIOLET
DASHES = ("", "7 3", "2 3", "8 3 2 3")
GRID_STYLE = {"stroke_width": ".5", "stroke_dasharray": "1 2"}
# height of a row of strips, and of epoch numbers; space between columns of a legend
STRIP_HEIGHT, EPOCH_NUMBERS_HEIGHT, COLUMN_GAP = 130, 16, 14
# means of more epochs are a line, not rings; pixels between points from which each has a dot
MANY_EPOCHS, APART = 30, 10


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
    runs: Mapping[str, Mapping] | None = None,
) -> str:
    """The picture as SVG text: `status` on top, then panels, two per row, small ones in a row of strips; `note` below.

    marks: (step, seconds, text) of vertical lines.  before: series of the previous run, drawn faint behind those of the
    same name.  log: None to choose by the range of the values.  gaps: (from, to) in seconds without a line on a time
    axis.  runs: columns of the first legend, as in `legend`.
    """
    titles, lines = panels(series, declared) or ["loss"], line_series(series, declared)
    known = {s.name: s for s in before}
    ends = limits([s.points(x)[0] for s in (*lines, *known.values())])
    scene = Scene(x, log, marks, known, ends, series, gaps if x == "time" else ())
    head = wrap_to_width(status, PICTURE_WIDTH - 2 * PLATE_LEFT - 2 * svg.PADDING, FONT_SIZE) if status else []
    parts, top = (
        [svg.label(PLATE_LEFT + svg.PADDING, 16, *head, size=FONT_SIZE, fill=theme.TEXT_PLATE)] if head else [],
        LINE_HEIGHT * len(head) + 9 * bool(head),
    )
    for row in panel_rows(titles):
        width = PICTURE_WIDTH / len(row)
        strip = titles[row[0]] in STRIP_WORDS and len(row) < len(titles)
        members = [[s for s in lines if s.word == titles[i]] for i in row]
        room = width - LEGEND_LEFT - svg.PADDING - RIGHT
        legends = [layout(legend(series, each, runs if i == 0 else None), room) for i, each in zip(row, members)]
        most = max(map(len, legends))
        height = STRIP_HEIGHT + LINE_HEIGHT * max(most - 1, 0) if strip else ROW_HEIGHT + LINE_HEIGHT * max(most - 4, 0)
        for k, i in enumerate(row):
            panel = Panel(titles[i], members[k], legends[k], width, height, scene, strip)
            parts.append(svg.group(panel.parts, transform=f"translate({k * width:g} {top})"))
        top += height
    if note:
        foot = wrap_to_width(note, PICTURE_WIDTH - 2 * PLATE_LEFT - 2 * svg.PADDING, FONT_SIZE)
        wrong = is_problem(note)
        text_color, fill = (theme.RED_TEXT, theme.PALE_RED) if wrong else (theme.TEXT_COLOR, theme.TEXT_PLATE)
        parts.append(
            svg.label(PLATE_LEFT + svg.PADDING, top + 18, *foot, size=FONT_SIZE, text_color=text_color, fill=fill)
        )
        top += LINE_HEIGHT * len(foot) + 11
    return svg.picture(parts, PICTURE_WIDTH, top, describe(series, note), font_size=FONT_SIZE)


class Panel:
    """One plot with its legend on top. parts: its elements."""

    def __init__(
        self,
        title: str,
        members: list[Series],
        rows: list[Line],
        width: float,
        height: float,
        scene: Scene,
        strip: bool,
    ):
        self.scene = scene
        self.parts: list[str] = []
        most = int(width) // 2  # of points: the least and greatest of each four pixels
        lines: list[Any] = [(s, *s.points(scene.x, most), *thick_line(s, scene.x)) for s in members]
        old = [scene.before[s.name].points(scene.x, most) for s in members if s.name in scene.before]
        steady = scale_members(members)
        numbers = np.concatenate([np.empty(0), *[y for s, _, y, *_ in lines if s in steady], *[y for _, y in old]])
        chosen = scene.log is None and spans_decades(title, [numbers])
        self.log = (chosen or bool(scene.log)) and bool((numbers > 0).any())
        self.low, self.high = limits([np.log10(numbers[numbers > 0]) if self.log else numbers])
        self.low = self.low if self.log else from_zero(self.low, self.high)
        rows = rows or [Line([(0, say("no {name} yet", name=title), "start")])]
        self.plate(
            PLATE_LEFT,
            PLATE_LEFT,
            LEGEND_LEFT + svg.PADDING - PLATE_LEFT + max(line.width for line in rows),
            LINE_HEIGHT * len(rows) + 5,
        )
        self.top = 2 * PLATE_LEFT + 9 + LINE_HEIGHT * len(rows)
        self.width, self.right, self.bottom = width, width - RIGHT, height - BOTTOM
        numbered = bool(scene.marks) and not strip
        self.above = EPOCH_NUMBERS_HEIGHT + 4 if numbered else 6  # keeps lines out of the epoch numbers
        grid = levels(self.low, self.high, self.log, max(2, int((self.bottom - self.top) // 30)))
        self.left = max(
            LEFT, 2 * PLATE_LEFT + 10 + math.ceil(max([text_width(label, FONT_SIZE) for _, label in grid], default=0))
        )
        self.axes(grid)
        self.marks(numbered)
        means = [words for *_, words in lines if words]
        first, last = scene.limits
        self.late = first > max(1, 0.05 * (last - first))  # so near to 0 it is not worth a remark
        cut = not self.log and (self.low > 0 or self.high < 0)
        if cut:
            self.broken(self.left, self.bottom - 5, False)
        if self.late:
            self.broken(self.left + 9, self.bottom, True)
        notes = {
            say("values from {low}", low=number(self.low)): cut,
            say("log scale: over 4 decades"): chosen,
            say("thick line: {mean}", mean=means[0] if means else ""): bool(means),
            say("rings: epoch means"): any(0 < len(s.epochs) <= MANY_EPOCHS for s in members),
            say("gray: previous run"): bool(old),
            say("diverged runs leave the scale"): len(steady) < len(members),
            say("numbered: epochs"): numbered,
        }
        self.caption(title, members, [note for note, holds in notes.items() if holds])
        for x, y in old:
            self.line(x, y, stroke=theme.LINE)
        look = [(COLORS[color], DASHES[dash]) for color, dash in looks(members)]
        for (s, *curves), (color, dash) in zip(lines, look):
            self.series(s, curves, color, dash)
        self.legend(rows, look)

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
        self.parts.append(svg.rect(x, y, width, height, rx=4, fill=theme.TEXT_PLATE))

    def path(self, d: str, **look: object) -> None:
        self.parts.append(svg.path(d, **look))

    def line(self, x: np.ndarray, y: np.ndarray, **look: object) -> None:
        self.path(outline(*self.points(x, y)), fill="none", **look)

    def dots(self, points, radius: float, color: str) -> None:
        if points:
            self.parts.append(svg.group([svg.element("circle", cx=a, cy=b, r=radius) for a, b in points], fill=color))

    # ---- contents of the plot ----------------------------------------------------------------------------------------

    def axes(self, grid: list[tuple[float, str]]) -> None:
        """Plates with numbers at the left and below, which meet in the corner; dotted lines across the plot."""
        self.plate(PLATE_LEFT, self.top - 4, self.left - 2 * PLATE_LEFT, self.bottom - self.top + 14)
        self.plate(PLATE_LEFT, self.bottom + 6, self.width - 2 * PLATE_LEFT, BOTTOM - 8)
        last = math.inf
        for level, label in grid:
            y = round(float(self.up(level)), 1)
            if last - y < 12:  # on a log scale, some are too close
                continue
            last = y
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
        words = [say("step" if self.scene.x == "step" else "seconds since its start")]
        if any(s.shown for s in members):
            words = [say("{name} by {axis}", name=title, axis=words[0])]
        if self.late:
            words[0] += say(", from {first}", first=number(self.scene.limits[0]))
        words += [sampled for s in members if (sampled := s.sampled())][:1]
        for note in notes:
            words += (
                [note]
                if text_width("; ".join([*words, note]), FONT_SIZE) < self.width - 2 * PLATE_LEFT - 2 * svg.PADDING
                else []
            )
        shown, half = "; ".join(words), text_width("; ".join(words), FONT_SIZE) / 2 + PLATE_LEFT + svg.PADDING
        self.text(min((self.left + self.right) / 2, self.width - half), self.bottom + 32, shown, theme.MUTED, "middle")

    def broken(self, x: float, y: float, along: bool) -> None:
        """Two strokes across an axis that does not start at 0."""
        for d in (0, 4):
            ends = f"M{x + d - 2:g} {y + 4:g}l4-8" if along else f"M{x - 4:g} {y - d + 2:g}l8-4"
            self.path(ends, stroke=theme.LINE)

    def rings(self, s: Series, color: str) -> None:
        """The means of epochs, a ring at the end of each, which leaves the line visible."""
        ends = [(seconds if self.scene.x == "time" else step, mean) for step, mean, seconds in s.epoch_ends()]
        across, up = self.points(*np.array(ends, float).T)
        look = {"fill": "none", "stroke": color, "stroke_width": 1.5}
        places = zip(across.round(1).tolist(), up.round(1).tolist())
        rings = [svg.element("circle", cx=a, cy=b, r=3.5) for a, b in places if b == b]
        self.parts.append(svg.group(rings, **look))

    def series(self, s: Series, curves: Sequence, color: str, dash: str) -> None:
        """One line, and its mean. curves: x and y of both, and of what it is the mean, "" without one."""
        x, y, mean_x, mean_y, mean = curves
        gaps = self.scene.gaps
        (x, y), (mean_x, mean_y) = with_gaps(x, y, gaps), with_gaps(mean_x, mean_y, gaps)
        if mean:
            self.line(x, y, stroke=color, stroke_width=".6")
            self.line(mean_x, mean_y, stroke=color, stroke_width=2.4, stroke_dasharray=dash)
        else:
            self.line(x, y, stroke=color, stroke_width=1.6, stroke_dasharray=dash)
        across, up = self.points(x, y)
        dotted = not mean or bool(s.sampled())
        self.dots(apart(across, up, APART) if dotted else isolated(across, up), 2 if mean else 2.5, color)
        if 0 < len(s.epochs) <= MANY_EPOCHS:
            self.rings(s, color)
        if s.first_nonfinite:
            at = min(max(self.across(s.first_nonfinite[0 if self.scene.x == "step" else 2]), self.left), self.right)
            self.path(f"M{at:.1f} {self.top}V{self.bottom}", stroke=theme.RED, stroke_dasharray="4 3")

    def legend(self, rows: list[Line], look: list[tuple[str, str]]) -> None:
        """The rows of the legend, with a sample before the name of each line."""
        colors = {"bad": theme.RED_TEXT, "head": theme.MUTED}
        for k, (texts, line, kind) in enumerate(rows):
            y = 14 + k * LINE_HEIGHT
            if line is not None:
                color, dash = look[line]
                self.path(f"M{PLATE_LEFT + svg.PADDING} {y}h22", stroke=color, stroke_width=2.4, stroke_dasharray=dash)
            for x, words, anchor in texts:
                self.text(LEGEND_LEFT + round(x, 1), y + 4, words, colors.get(kind, theme.TEXT_COLOR), anchor)


def thick_line(s: Series, x: str) -> tuple[np.ndarray, np.ndarray, str]:
    """x and y of the smoothed line, and in words what it is; "" without one."""
    if len(s.epochs) > MANY_EPOCHS:
        steps, means, seconds = np.array(s.epoch_ends(), float).T
        return (steps if x == "step" else seconds), means, say("epoch means")
    across, means, window = s.means(x)
    words = say("mean over {n:,} steps" if s.sampled() else "mean of {n:,} values", n=window)
    return across, means, words if window else ""


class Line(NamedTuple):
    """A line of a legend. texts: (x, text, anchor).  line, kind: as in `Row`."""

    texts: list[tuple[float, str, str]]
    line: int | None = None
    kind: str = ""

    @property
    def width(self) -> float:
        x, words, anchor = self.texts[-1]
        return x if anchor == "end" else x + text_width(words, FONT_SIZE)


def layout(rows: list[Row], room: float) -> list[Line]:
    """The lines of a legend no wider than `room` pixels. Columns are dropped from the right, and names are cut;
    sentences are wrapped. `legendOf` in curve_panel.js does the same.
    """
    table = [row.cells for row in rows if len(row.cells) > 1]
    widths = [max([text_width(words, FONT_SIZE) for words in column]) for column in zip(*table)]
    while len(widths) > 2 and sum(widths) + COLUMN_GAP * (len(widths) - 1) > room:
        widths.pop()
    if widths:
        widths[0] -= max(sum(widths) + COLUMN_GAP * (len(widths) - 1) - room, 0)
    ends = (np.cumsum([width + COLUMN_GAP for width in widths]) - COLUMN_GAP).tolist()
    lines: list[Line] = []
    for cells, line, kind in rows:
        if len(cells) > 1:
            name = truncated(cells[0], widths[0], FONT_SIZE)
            lines.append(
                Line([(0, name, "start"), *[(x, words, "end") for x, words in zip(ends[1:], cells[1:])]], line, kind)
            )
        else:
            wrapped = wrap_to_width(cells[0], room, FONT_SIZE)
            lines += [Line([(0, words, "start")], None if k else line, kind) for k, words in enumerate(wrapped)]
    return lines


def outline(x: np.ndarray, y: np.ndarray) -> str:
    """The path through the points, with gaps at NaN: a start, then differences, in tenths of a pixel."""
    there = np.isfinite(x + y)
    points = np.rint(10 * np.where(there, [x, y], 0.0)).T.astype(int).tolist()
    parts: list[str] = []
    last: list[int] | None = None
    for point, finite in zip(points, there.tolist()):
        if finite and last is None:
            parts.append(f"M{tenths(point[0])} {tenths(point[1])}l")
        elif finite and last is not None:
            parts.append(f"{tenths(point[0] - last[0])} {tenths(point[1] - last[1])}")
        last = point if finite else None
    return " ".join(parts).replace("l ", "l").replace(" -", "-").replace(" M", "M").replace("lM", "M").removesuffix("l")


def tenths(n: int) -> str:
    """n / 10, as short as possible."""
    return f"{n / 10:g}".replace("0.", ".", 1) if -10 < n < 10 else f"{n / 10:g}"
