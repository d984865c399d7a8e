"""Series as a still picture: an SVG with its own light background, the same in every notebook and theme.

Pure functions, the same text for the same numbers. Read next: `loss_curve.py`, which shows it at the end of a run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

import numpy as np

from minflow.views.text.listing import clean

from .series import SMALL, Series, drawn, latest, number, panels, rows, wide

WIDTH, HEIGHT = 720, 230  # of the picture, and of one row of panels, in pixels
LEFT, RIGHT, BOTTOM, LINE = 52, 14, 24, 15  # margins around a plot, at least, and the height of a line of text
DIGIT = 6.5  # about the width of a digit
COLORS = ("#1f5fa8", "#b5470b", "#1d7a46", "#7b3fa0")
DASHES = ("", "7 3", "2 3", "8 3 2 3")
INK, FAINT, RED, CARD = "#24292f", "#d0d7de", "#b42318", "#ffffff"
OLD, MARK = "#a3abb3", "#57606a"  # the previous run; the ends of epochs
TINY, HUGE = 1e-300, 1e300  # of a scale: differences and quotients of what it shows are floats too
# height of the status and of a row of strips; up to how many values are drawn as dots too
BAR, STRIP, DOTS = 22, 130, 24


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """About `count` round numbers within low..high, two at least: a single one does not tell a scale."""
    if not high - low > TINY:
        return [low]
    rough = (high - low) / count
    scale = 10.0 ** math.floor(math.log10(rough))
    step = next(scale * m for m in (1, 2, 5, 10) if scale * m >= rough * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    if last <= first and count < 32:
        return ticks(low, high, 2 * count)
    return [k * step for k in range(first, last + 1)]


def limits(arrays: list[np.ndarray]) -> tuple[float, float]:
    """The least and greatest finite number, apart by something where they are equal."""
    numbers = np.concatenate([np.empty(0), *arrays])
    numbers = numbers[np.isfinite(numbers)]
    low, high = (max(float(numbers.min()), -HUGE), min(float(numbers.max()), HUGE)) if numbers.size else (0.0, 1.0)
    if high - low > TINY:
        return low, high
    room = abs(low) * 0.1
    room = room if room > TINY else 1.0
    return low - room, high + room


def draw(series: list[Series], note: str = "", declared: tuple[str, ...] = (), status: str = "", marks: Sequence = (),
         x: str = "step", log: bool | None = None, before: Sequence[Series] = (), gaps: Sequence = ()) -> str:  # fmt: skip
    """The picture as SVG text: `status` on top, then panels, two to a row, small ones in a row of strips; `note` below.

    marks: (step, seconds, text) of vertical lines.  before: series of the previous run, faint behind those of their
    name.
    log: None: where values are far apart.  gaps: (from, to) in seconds, in which no line is drawn on a time axis.
    """
    titles, lines = panels(series, declared) or ["loss"], drawn(series, declared)
    known = {s.name: s for s in before}
    scene = Scene(x, log, marks, known, limits([s.points(x)[0] for s in (*lines, *known.values())]), series, gaps if x == "time" else ())
    parts, top = [], BAR if status else 0
    for row in rows(titles):
        width = WIDTH / len(row)
        tall = STRIP if titles[row[0]] in SMALL and len(row) < len(titles) else HEIGHT
        for k, i in enumerate(row):
            members = [s for s in lines if s.word == titles[i]]
            parts.append(f'<g transform="translate({k * width:g} {top})">{panel(titles[i], members, width, tall, scene)}</g>')
        top += tall
    height = top + (20 if note else 0)
    parts.insert(0, f'<rect width="{WIDTH}" height="{height}" fill="{CARD}"/>')
    if status:
        parts.append(text(10, 16, status))
    if note:
        parts.append(text(10, height - 8, note, INK if note == "stopped" else RED))  # by whom runs it: no error
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="{escape(clean(describe(series, note)), True)}" font-family="Helvetica, Arial, sans-serif" font-size="11.5">'
        + "".join(parts)
        + "</svg>"
    )


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


def describe(series: list[Series], note: str = "") -> str:
    """The picture in words: what each series is now and was at best."""
    last = max((s.steps[-1] for s in series if s.count), default=None)
    parts = ["no values" if last is None else f"step {number(last)}"]
    for s in series:
        parts.append(s.label(latest(series, s)) + (f" ({s.warning()})" if s.bad else ""))
    return "; ".join([*parts, note] if note else parts)


def text(x: float, y: float, content: str, color: str = INK, anchor: str = "start") -> str:
    return f'<text x="{x:g}" y="{y:g}" fill="{color}" text-anchor="{anchor}">{escape(clean(content))}</text>'


def panel(title: str, members: list[Series], width: float, tall: float, scene: Scene) -> str:
    """One plot with its legend on top."""
    lines = [(s, *s.points(scene.x), *s.means(scene.x)) for s in members]
    old = [scene.before[s.name].points(scene.x) for s in members if s.name in scene.before]
    x_low, x_high = scene.limits
    numbers = np.concatenate([np.empty(0), *[y for _, _, y, *_ in lines], *[y for _, y in old]])
    far = scene.log is None and wide(title, [numbers])
    log = (far or bool(scene.log)) and bool((numbers > 0).any())
    y_low, y_high = limits([np.log10(numbers[numbers > 0]) if log else numbers])
    legend = sum(1 + bool(s.bad) for s in members)
    top, right, bottom = 10 + LINE * max(legend, 1), width - RIGHT, tall - BOTTOM - LINE
    told = bool(scene.marks) and tall > STRIP
    above = 18 if told else 6  # room for numbers of epochs: no line goes through them
    levels = scale(y_low, y_high, log, max(2, int((bottom - top) // 30)))
    left = max(LEFT, 12 + math.ceil(DIGIT * max([len(label) for _, label in levels], default=0)))

    def across(x):
        return left + (x - x_low) / (x_high - x_low) * (right - left)

    def up(y):
        return bottom - (y - y_low) / (y_high - y_low) * (bottom - top - above)

    def scaled(y):
        return np.log10(np.where(y > 0, y, np.nan)) if log else y

    parts = [] if members else [text(left, 18, f"no {title} yet")]
    for place, label in levels:
        parts.append(f'<path d="M{left} {up(place):.1f}H{right:g}" stroke="{FAINT}"/>')
        parts.append(text(left - 6, round(up(place), 1) + 4, label, anchor="end"))
    for x in ticks(x_low, x_high, max(2, int(width // 110))):
        parts.append(text(round(across(x), 1), bottom + 16, number(x), anchor="middle"))
    parts.append(f'<path d="M{left} {top}V{bottom}H{right:g}" fill="none" stroke="{INK}" stroke-opacity=".6"/>')
    parts += marks(scene, across, left, top, bottom, told)
    window = max((w for *_, w in lines), default=0)
    under = ["step" if scene.x == "step" else "seconds since its start"]
    under += [s.sampled() for s in members if s.every > 1][:1]
    for more in ("log scale: over 4 decades" if far else "",
                 f"thick line: mean of {window}" if window else "", "grey: previous run" if old else "",
                 "numbered: epochs" if told else ""):  # fmt: skip
        under += [more] if more and 5.6 * len("; ".join([*under, more])) < width else []
    parts.append(text((left + right) / 2, bottom + 31, "; ".join(under), anchor="middle"))
    for x, y in old:
        parts.append(path(across(x), up(scaled(y)), f'stroke="{OLD}"'))
    row = 0
    for k, (s, x, y, mx, my, w) in enumerate(lines):
        (x, y), (mx, my) = parted(x, y, scene.gaps), parted(mx, my, scene.gaps)
        color, dash = COLORS[k % len(COLORS)], DASHES[k % len(DASHES)]
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        look = f'stroke="{color}" stroke-width="{1 if w else 1.6}" stroke-opacity="{0.35 if w else 1}"'
        parts.append(path(across(x), up(scaled(y)), look + (dashed if not w else "")))
        if w:
            parts.append(path(across(mx), up(scaled(my)), f'stroke="{color}" stroke-width="2"' + dashed))
        elif s.count <= DOTS:
            parts += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="2.5" fill="{color}"/>'
                      for a, b in zip(across(x).tolist(), up(scaled(y)).tolist()) if b == b]  # fmt: skip
        if w or s.count > DOTS:
            parts += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="2" fill="{color}"/>' for a, b in alone(across(x), up(scaled(y)))]
        parts.append(f'<path d="M{left} {12 + row * LINE}h20" stroke="{color}" stroke-width="2"{dashed}/>')
        parts.append(text(left + 26, 16 + row * LINE, s.label(latest(scene.series, s))))
        row += 1
        if s.bad:
            at = min(max(across(s.bad[0 if scene.x == "step" else 2]), left), right)
            parts.append(f'<path d="M{at:.1f} {top}V{bottom}" stroke="{RED}" stroke-dasharray="4 3"/>')
            parts.append(text(left + 26, 16 + row * LINE, s.warning(), RED))
            row += 1
    return "".join(parts)


def marks(scene: Scene, across, left: float, top: float, bottom: float, told: bool) -> list[str]:
    """Vertical lines at the marks; a text where there is room for it."""
    parts, free = [], left
    for step, seconds, label in scene.marks:
        at = float(across(step if scene.x == "step" else seconds))
        parts.append(f'<path d="M{at:.1f} {top}V{bottom}" stroke="{MARK}" stroke-dasharray="1 3"/>')
        short = label if len(label) <= 12 else label[:11] + "\u2026"
        if told and at - 4 - DIGIT * len(short) > free:
            parts.append(text(round(at, 1) - 3, top + 10, short, MARK, "end"))
            free = at + 3
    return parts


def parted(x: np.ndarray, y: np.ndarray, gaps: Sequence) -> tuple[np.ndarray, np.ndarray]:
    """The points, with a gap in the line wherever there is one on the axis."""
    for a, b in gaps:
        inside, middle = (x > a) & (x < b), (a + b) / 2
        at = int(x.searchsorted(middle))
        x, y = np.insert(x, at, middle), np.insert(np.where(inside, np.nan, y), at, np.nan)
    return x, y


def alone(x: np.ndarray, y: np.ndarray) -> list[tuple[float, float]]:
    """The points that no line leads to: those between two gaps."""
    there = np.concatenate([[False], np.isfinite(y), [False]])
    at = np.flatnonzero(there[1:-1] & ~there[:-2] & ~there[2:])
    return list(zip(x[at].tolist(), y[at].tolist()))


def scale(low: float, high: float, log: bool, count: int) -> list[tuple[float, str]]:
    """Where lines across the plot stand, and what they say. Under log, low and high are exponents of ten."""
    if not log:
        return [(y, number(y)) for y in ticks(low, high, count)]
    low, high = max(low, -300.0), min(high, 300.0)  # beyond, ten to that power is no float
    first, last = math.ceil(low - 1e-9), math.floor(high + 1e-9)
    if last > first:
        return [(float(y), number(10.0**y)) for y in range(first, last + 1, math.ceil((last - first) / count))]
    between = [y for y in ticks(10.0**low, 10.0**high, count) if y > 0]
    return [(math.log10(y), number(y)) for y in between]


def path(x: np.ndarray, y: np.ndarray, style: str) -> str:
    """A line through the points; NaN makes a gap."""
    parts, pen = [], "M"
    for a, b in zip(np.round(x, 1).tolist(), np.round(y, 1).tolist(), strict=True):
        if b != b:
            pen = "M"
            continue
        parts.append(f"{pen}{a:g} {b:g}")
        pen = "L"
    return f'<path d="{"".join(parts)}" fill="none" {style}/>' if parts else ""
