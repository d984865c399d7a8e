"""Series as a still picture: an SVG with its own light background, the same in every notebook and theme.

Pure functions, the same text for the same numbers. Read next: `loss_curve.py`, which shows it at the end of a run.
"""

from __future__ import annotations

import math
from html import escape

import numpy as np

from .series import Series, number, panels

WIDTH, HEIGHT = 720, 230  # of the picture, and of one row of panels, in pixels
LEFT, RIGHT, BOTTOM, LINE = 52, 14, 24, 15  # margins around a plot, and the height of a line of text
COLORS = ("#1f5fa8", "#b5470b", "#1d7a46", "#7b3fa0")
DASHES = ("", "7 3", "2 3", "8 3 2 3")
INK, FAINT, RED, CARD = "#24292f", "#d0d7de", "#b42318", "#ffffff"


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """About `count` round numbers within low..high."""
    if not high > low:
        return [low]
    rough = (high - low) / count
    scale = 10.0 ** math.floor(math.log10(rough))
    step = next(scale * m for m in (1, 2, 5, 10) if scale * m >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [k * step for k in range(first, math.floor(high / step + 1e-9) + 1)]


def limits(arrays: list[np.ndarray]) -> tuple[float, float]:
    """The least and greatest finite number, apart by something where they are equal."""
    numbers = np.concatenate([np.empty(0), *arrays])
    numbers = numbers[np.isfinite(numbers)]
    low, high = (float(numbers.min()), float(numbers.max())) if numbers.size else (0.0, 1.0)
    if high > low:
        return low, high
    room = abs(low) * 0.1 or 1.0
    return low - room, high + room


def draw(series: list[Series], note: str = "") -> str:
    """The picture as SVG text. Panels stand side by side, three to a row; `note` is a line below them."""
    titles = panels(series) or ["loss"]
    columns = min(len(titles), 3)
    width = WIDTH / columns
    rows = -(-len(titles) // columns)
    height = rows * HEIGHT + (20 if note else 0)
    parts = [f'<rect width="{WIDTH}" height="{height}" fill="{CARD}"/>']
    for i, title in enumerate(titles):
        members = [s for s in series if s.word == title]
        parts.append(f'<g transform="translate({i % columns * width:g} {i // columns * HEIGHT})">{panel(title, members, width)}</g>')
    if note:
        parts.append(text(10, height - 8, note, RED))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="{escape(describe(series, note), True)}" font-family="Helvetica, Arial, sans-serif" font-size="11.5">'
        + "".join(parts)
        + "</svg>"
    )


def describe(series: list[Series], note: str = "") -> str:
    """The picture in words: what each series is now and was at best."""
    last = max((s.steps[-1] for s in series if s.count), default=None)
    parts = ["no values" if last is None else f"step {number(last)}"]
    for s in series:
        parts.append(s.label() + (f" ({s.warning()})" if s.bad else ""))
    return "; ".join([*parts, note] if note else parts)


def text(x: float, y: float, content: str, color: str = INK, anchor: str = "start") -> str:
    return f'<text x="{x:g}" y="{y:g}" fill="{color}" text-anchor="{anchor}">{escape(content)}</text>'


def panel(title: str, members: list[Series], width: float) -> str:
    """One plot with its legend on top."""
    lines = [(s, *s.points(), *s.means()) for s in members]
    x_low, x_high = limits([x for _, x, *_ in lines])
    y_low, y_high = limits([y for _, _, y, *_ in lines])
    legend = sum(1 + bool(s.bad) for s in members)
    top, right, bottom = 10 + LINE * max(legend, 1), width - RIGHT, HEIGHT - BOTTOM - LINE

    def across(x):
        return LEFT + (x - x_low) / (x_high - x_low) * (right - LEFT)

    def up(y):
        return bottom - (y - y_low) / (y_high - y_low) * (bottom - top - 6)

    parts = [] if members else [text(LEFT, 18, f"no {title} yet")]
    for y in ticks(y_low, y_high, 4):
        parts.append(f'<path d="M{LEFT} {up(y):.1f}H{right:g}" stroke="{FAINT}"/>')
        parts.append(text(LEFT - 6, round(up(y), 1) + 4, number(y), anchor="end"))
    for x in ticks(x_low, x_high, max(2, int(width // 110))):
        parts.append(text(round(across(x), 1), bottom + 16, number(x), anchor="middle"))
    parts.append(f'<path d="M{LEFT} {top}V{bottom}H{right:g}" fill="none" stroke="{INK}" stroke-opacity=".6"/>')
    window = max((w for *_, w in lines), default=0)
    under = f"step; thick line: mean of {window}" if window else "step"
    parts.append(text((LEFT + right) / 2, bottom + 31, under, anchor="middle"))
    row = 0
    for k, (s, x, y, mx, my, w) in enumerate(lines):
        color, dash = COLORS[k % len(COLORS)], DASHES[k % len(DASHES)]
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        look = f'stroke="{color}" stroke-width="{1 if w else 1.6}" stroke-opacity="{0.35 if w else 1}"'
        parts.append(path(across(x), up(y), look + (dashed if not w else "")))
        if w:
            parts.append(path(across(mx), up(my), f'stroke="{color}" stroke-width="2"' + dashed))
        if s.count == 1 and not s.bad:
            parts.append(f'<circle cx="{across(x)[0]:.1f}" cy="{up(y)[0]:.1f}" r="2.5" fill="{color}"/>')
        parts.append(f'<path d="M{LEFT} {12 + row * LINE}h20" stroke="{color}" stroke-width="2"{dashed}/>')
        parts.append(text(LEFT + 26, 16 + row * LINE, s.label()))
        row += 1
        if s.bad:
            at = min(max(across(s.bad[0]), LEFT), right)
            parts.append(f'<path d="M{at:.1f} {top}V{bottom}" stroke="{RED}" stroke-dasharray="4 3"/>')
            parts.append(text(LEFT + 26, 16 + row * LINE, s.warning(), RED))
            row += 1
    return "".join(parts)


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
