"""Series as a still picture: an SVG with its own light background, the same in every notebook and theme.

Pure functions, the same text for the same numbers. Read next: `loss_curve.py`, which shows it at the end of a run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from minflow.views.draw import svg_writer as svg

from .panels import drawn, latest, panels, rows, spans_decades, warnings
from .scales import isolated, levels, limits, ticks, with_gaps
from .series import SMALL, Series, number

WIDTH, HEIGHT = 720, 230  # of the picture, and of one row of panels, in pixels
LEFT, RIGHT, BOTTOM, LINE = 52, 14, 24, 15  # margins around a plot, at least, and the height of a line of text
DIGIT = 6.5  # about the width of a digit
COLORS = ("#1f5fa8", "#b5470b", "#1d7a46", "#7b3fa0")
DASHES = ("", "7 3", "2 3", "8 3 2 3")
INK, FAINT, RED = "#24292f", "#d0d7de", "#b42318"
OLD, MARK = "#a3abb3", "#57606a"  # the previous run; the ends of epochs
# height of the status and of a row of strips; up to how many values are drawn as dots too
BAR, STRIP, DOTS = 22, 130, 24


class Scene(NamedTuple):
    """What all panels share. limits: of the x axis.  before: name -> series of the previous run.  series: of all
    panels."""

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
    """The picture as SVG text: `status` on top, then panels, two to a row, small ones in a row of strips; `note` below.

    marks: (step, seconds, text) of vertical lines.  before: series of the previous run, faint behind those of their
    name.  log: None: where values are far apart.  gaps: (from, to) in seconds, in which no line is drawn on a time
    axis.
    """
    titles, lines = panels(series, declared) or ["loss"], drawn(series, declared)
    known = {s.name: s for s in before}
    ends = limits([s.points(x)[0] for s in (*lines, *known.values())])
    scene = Scene(x, log, marks, known, ends, series, gaps if x == "time" else ())
    parts, top = [], BAR if status else 0
    for row in rows(titles):
        width = WIDTH / len(row)
        height = STRIP if titles[row[0]] in SMALL and len(row) < len(titles) else HEIGHT
        for k, i in enumerate(row):
            panel = Panel(titles[i], [s for s in lines if s.word == titles[i]], width, height, scene)
            parts.append(svg.group(panel.parts, transform=f"translate({k * width:g} {top})"))
        top += height
    height = top + (20 if note else 0)
    if status:
        parts.append(svg.text(10, 16, status, fill=INK))
    if note:  # stopped by whom runs it: no error
        parts.append(svg.text(10, height - 8, note, fill=INK if note == "stopped" else RED))
    return svg.picture(parts, WIDTH, height, describe(series, note))


def describe(series: list[Series], note: str = "") -> str:
    """The picture in words: what each series is now and was at best."""
    last = max((s.steps[-1] for s in series if s.count), default=None)
    parts = ["no values" if last is None else f"step {number(last)}"]
    for s in series:
        bad = f" ({': '.join(warnings(series, s))})" if s.bad else ""
        parts.append(", ".join(filter(None, [s.label(latest(series, s)), s.epoch_means()])) + bad)
    return "; ".join([*parts, note] if note else parts)


class Panel:
    """One plot with its legend on top. parts: its elements."""

    def __init__(self, title: str, members: list[Series], width: float, height: float, scene: Scene):
        self.scene, self.parts = scene, []
        lines = [(s, *s.points(scene.x), *s.means(scene.x)) for s in members]
        old = [scene.before[s.name].points(scene.x) for s in members if s.name in scene.before]
        numbers = np.concatenate([np.empty(0), *[y for _, _, y, *_ in lines], *[y for _, y in old]])
        chosen = scene.log is None and spans_decades(title, [numbers])
        self.log = (chosen or bool(scene.log)) and bool((numbers > 0).any())
        self.low, self.high = limits([np.log10(numbers[numbers > 0]) if self.log else numbers])
        self.top = 10 + LINE * max(sum(1 + len(under(scene.series, s)) for s in members), 1)
        self.right, self.bottom = width - RIGHT, height - BOTTOM - LINE
        numbered = bool(scene.marks) and height > STRIP
        self.above = 18 if numbered else 6  # room for numbers of epochs: no line goes through them
        grid = levels(self.low, self.high, self.log, max(2, int((self.bottom - self.top) // 30)))
        self.left = max(LEFT, 12 + math.ceil(DIGIT * max([len(label) for _, label in grid], default=0)))
        if not members:
            self.text(self.left, 18, f"no {title} yet")
        self.axes(grid, width)
        self.marks(numbered)
        window = max((w for *_, w in lines), default=0)
        notes = {
            "log scale: over 4 decades": chosen,
            f"thick line: mean of {window}": bool(window),
            "grey: previous run": bool(old),
            "steps: epoch means": any(s.epochs for s in members),
            "numbered: epochs": numbered,
        }
        self.caption(members, width, [note for note, holds in notes.items() if holds])
        for x, y in old:
            self.line(x, y, stroke=OLD)
        row = 0
        for k, (s, *curves) in enumerate(lines):
            self.series(s, *curves, color=COLORS[k % len(COLORS)], dash=DASHES[k % len(DASHES)], row=row)
            row += 1 + len(under(scene.series, s))

    # ---- places ------------------------------------------------------------------------------------------------------

    def across(self, x):
        low, high = self.scene.limits
        return self.left + (x - low) / (high - low) * (self.right - self.left)

    def up(self, y):
        return self.bottom - (y - self.low) / (self.high - self.low) * (self.bottom - self.top - self.above)

    def points(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.across(x), self.up(np.log10(np.where(y > 0, y, np.nan)) if self.log else y)

    # ---- elements ----------------------------------------------------------------------------------------------------

    def text(self, x: float, y: float, words: str, color: str = INK, anchor: str = "start") -> None:
        self.parts.append(svg.text(x, y, words, fill=color, text_anchor=anchor))

    def path(self, d: str, **look: object) -> None:
        self.parts.append(svg.path(d, **look))

    def line(self, x: np.ndarray, y: np.ndarray, **look: object) -> None:
        self.path(outline(*self.points(x, y)), fill="none", **look)

    def dots(self, points, radius: float, color: str) -> None:
        self.parts += [svg.element("circle", cx=a, cy=b, r=radius, fill=color) for a, b in points]

    # ---- what stands in the plot -------------------------------------------------------------------------------------

    def axes(self, grid: list[tuple[float, str]], width: float) -> None:
        for level, label in grid:
            y = round(float(self.up(level)), 1)
            self.path(f"M{self.left} {y:.1f}H{self.right:g}", stroke=FAINT)
            self.text(self.left - 6, y + 4, label, anchor="end")
        for x in ticks(*self.scene.limits, max(2, int(width // 110))):
            self.text(self.across(x), self.bottom + 16, number(x), anchor="middle")
        axes = f"M{self.left} {self.top}V{self.bottom}H{self.right:g}"
        self.path(axes, fill="none", stroke=INK, stroke_opacity=".6")

    def marks(self, numbered: bool) -> None:
        """Vertical lines at the marks; a text where there is room for it."""
        free = self.left
        for step, seconds, label in self.scene.marks:
            at = float(self.across(step if self.scene.x == "step" else seconds))
            self.path(f"M{at:.1f} {self.top}V{self.bottom}", stroke=MARK, stroke_dasharray="1 3")
            short = label if len(label) <= 12 else label[:11] + "\u2026"
            if numbered and at - 4 - DIGIT * len(short) > free:
                self.text(round(at, 1) - 3, self.top + 10, short, MARK, "end")
                free = at + 3

    def caption(self, members: list[Series], width: float, notes: list[str]) -> None:
        """What the x axis is, and as many notes as there is room for."""
        words = ["step" if self.scene.x == "step" else "seconds since its start"]
        words += [s.sampled() for s in members if s.every > 1][:1]
        for note in notes:
            words += [note] if 5.6 * len("; ".join([*words, note])) < width else []
        self.text((self.left + self.right) / 2, self.bottom + 31, "; ".join(words), anchor="middle")

    def stairs(self, s: Series, color: str) -> None:
        """The means of epochs, each from its first step to its last, where a dot stands."""
        each = [(t0, t1, mean) if self.scene.x == "time" else (x0, x1, mean) for x0, x1, mean, t0, t1 in s.stairs()]
        ends = np.array([end for x0, x1, _ in each for end in (x0, x1)])
        across, up = self.points(ends, np.array([mean for *_, mean in each for _ in (0, 1)], float))
        self.path(outline(across, up), fill="none", stroke=color, stroke_width=1.2)
        self.dots([(a, b) for a, b in zip(across[1::2].tolist(), up[1::2].tolist()) if b == b], 2.5, color)

    def series(self, s: Series, x, y, mean_x, mean_y, window: int, color: str, dash: str, row: int) -> None:
        """One line, its mean over `window` values where it has one, and its words in row `row` of the legend."""
        gaps = self.scene.gaps
        (x, y), (mean_x, mean_y) = with_gaps(x, y, gaps), with_gaps(mean_x, mean_y, gaps)
        if window:
            self.line(x, y, stroke=color, stroke_width=1, stroke_opacity=".35")
            self.line(mean_x, mean_y, stroke=color, stroke_width=2, stroke_dasharray=dash)
        else:
            self.line(x, y, stroke=color, stroke_width=1.6, stroke_dasharray=dash)
        across, up = self.points(x, y)
        if not window and s.count <= DOTS:
            self.dots([(a, b) for a, b in zip(across.tolist(), up.tolist()) if b == b], 2.5, color)
        else:
            self.dots(isolated(across, up), 2, color)
        self.stairs(s, color)
        y = 12 + row * LINE
        self.path(f"M{self.left} {y}h20", stroke=color, stroke_width=2, stroke_dasharray=dash)
        self.text(self.left + 26, y + 4, s.label(latest(self.scene.series, s)))
        for k, (words, bad) in enumerate(under(self.scene.series, s), 1):
            self.text(self.left + 26, y + 4 + k * LINE, words, RED if bad else INK)
        if s.bad:
            at = min(max(self.across(s.bad[0 if self.scene.x == "step" else 2]), self.left), self.right)
            self.path(f"M{at:.1f} {self.top}V{self.bottom}", stroke=RED, stroke_dasharray="4 3")


def under(series: list[Series], s: Series) -> list[tuple[str, bool]]:
    """Rows of the legend below that of a line, and whether they are of what went wrong."""
    means = s.epoch_now()
    return [(means, False)] * bool(means) + [(words, True) for words in warnings(series, s)]


def outline(x: np.ndarray, y: np.ndarray) -> str:
    """The path through the points; NaN makes a gap."""
    parts, pen = [], "M"
    for a, b in zip(np.round(x, 1).tolist(), np.round(y, 1).tolist(), strict=True):
        if b != b:
            pen = "M"
            continue
        parts.append(f"{pen}{a:g} {b:g}")
        pen = "L"
    return "".join(parts)
