"""A timeline, or two on one scale, as a picture on one light card: lanes of bars, and the formula as bars below.

Read next: `record.py`, what is drawn; `../html/page.py`, pictures in a notebook.
"""

from __future__ import annotations

import math

from ..draw import svg_writer as svg
from .record import (
    LANES, SHORTEST, Bar, StepTimes, Term, TimelinePair, TimelineRecord, bars, besides, dashed, extent, formula,
    measured, ms, numbered, pair_verdict, parts, terms, verdict, which,
)

WIDTH, LEFT, RIGHT = 760, 104, 22
LANE, TALL = 25, 18  # pixels from lane to lane, and of a bar
INK, SOFT, BACK, RED = "#24292f", "#57606a", "#f3f4f6", "#b42318"
COLORS = {"loader": "#1f5fa8", "queue": "#4b5563", "compute": "#a8420a", "callback": "#1d7a46"}
# of the terms; others are grey
TERM_COLORS = {"load": COLORS["loader"], "compute": COLORS["compute"], "callback": COLORS["callback"]}
THREADS = {"loader": "your loop", "queue": "step waits", "compute": "the worker", "callback": "the worker"}
LINE = 17


def wrapped(content: str, width: int = 112) -> list[str]:
    lines = [""]
    for word in content.split():
        if len(lines[-1]) + len(word) + 1 > width and lines[-1]:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + word
    return lines


def round_step(seconds: float, count: int = 6) -> float:
    """1, 2 or 5 times a power of ten, so that about `count` of it are `seconds`."""
    rough = max(seconds, 1e-9) / count
    scale = 10.0 ** math.floor(math.log10(rough))
    return next(scale * m for m in (1, 2, 5, 10) if scale * m >= rough * 0.999)


class Card:
    """SVG elements under each other; `y` is where the next begins."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.y = 12.0

    def text(self, x: float, y: float, content: str, color: str = INK, **look: object) -> None:
        self.parts.append(svg.text(x, y, content, fill=color, **look))

    def path(self, d: str, color: str = INK, **look: object) -> None:
        self.parts.append(svg.path(d, stroke=color, **look))

    def sentence(self, content: str, color: str = INK, **look: object) -> None:
        """Lines below all that is there."""
        for line in wrapped(content) if content else []:
            self.y += LINE
            self.text(12, self.y - 4, line, color, **look)

    def svg(self, alt: str) -> str:
        return svg.picture(self.parts, WIDTH, math.ceil(self.y + 10), alt, font_size=12)

    def lanes(self, title: str, note: str, steps: tuple[StepTimes, ...], seconds: float, room: float = 0.0,
              won: str = "") -> None:
        """The bars of some steps; `seconds` is the whole width. won: what to write between their end and `room`
        seconds."""
        drawn = bars(numbered(steps))
        start, stop = extent(drawn)
        self.y += LINE
        head = svg.span(title, font_weight="bold"), svg.span("  " + note, fill=SOFT)
        self.parts.append(svg.element("text", *head, x=12, y=self.y - 4, fill=INK))
        top = self.y + 3
        lanes = [name for i, name in enumerate(LANES) if name != "callback" or any([bar.lane == i for bar in drawn])]
        across = lambda t: LEFT + (t - start) / seconds * (WIDTH - LEFT - RIGHT)  # noqa: E731
        for i, name in enumerate(lanes):
            y = top + i * LANE
            self.parts.append(svg.rect(LEFT, y + 1, WIDTH - LEFT - RIGHT, LANE - 2, fill=BACK))
            self.text(12, y + 11, name, COLORS[name], font_weight="bold")
            self.text(12, y + 22, THREADS[name], SOFT, font_size=11)
        for bar in sorted(drawn, key=lambda b: b.kind != "wait"):
            self.bar(bar, across, top)
        bottom = top + len(lanes) * LANE
        end = across(stop)
        self.path(f"M{end:.1f} {top - 2:g}V{bottom + 4:g}", stroke_width=1.5)
        if won:
            far, middle = across(start + room), top + len(lanes) * LANE / 2
            if far - end > 130:
                self.path(f"M{far:.1f} {middle:g}H{end + 2:.1f}m7 -4l-7 4l7 4", fill="none")
                self.text((end + far) / 2, middle - 6, won, text_anchor="middle", font_weight="bold")
            elif far > end:
                self.path(f"M{far:.1f} {middle:g}H{end + 2:.1f}")
        self.y = bottom + 2

    def bar(self, bar: Bar, across, top: float) -> None:
        x, wide = across(bar.start), max(across(bar.stop) - across(bar.start), 1.0)
        tall = TALL / bar.rows
        y = top + bar.lane * LANE + (LANE - TALL) / 2 + bar.row * tall
        tall = tall - (1 if bar.rows > 1 else 0)
        if bar.kind == "wait":
            if wide > SHORTEST * (WIDTH - LEFT - RIGHT):
                self.parts.append(svg.rect(x, y + 1, wide, TALL - 2, fill=BACK, stroke=SOFT, stroke_dasharray="2 2"))
            if wide > 40:
                self.text(x + wide / 2, y + 13, "waits", SOFT, text_anchor="middle", font_size=11)
            return
        color = RED if bar.kind == "failed" else COLORS[LANES[bar.lane]]
        self.parts.append(svg.rect(x, y, wide, tall, rx=1.5, fill=color, fill_opacity="" if bar.number % 2 else ".88"))
        label = f"{bar.number}" + (" failed" if bar.kind == "failed" else "")
        if wide > 7 * len(label) + 2 and tall > 11:
            self.text(x + wide / 2, y + tall / 2 + 4, label, "#ffffff", text_anchor="middle", font_size=11)

    def axis(self, seconds: float) -> None:
        step = round_step(seconds)
        unit, name = (1e-3, "ms") if seconds < 10 else (1.0, "s")
        digits = max(0, -math.floor(math.log10(step / unit) + 1e-9))
        self.y += 12
        for k in range(int(seconds / step + 1e-9) + 1):
            x = LEFT + k * step / seconds * (WIDTH - LEFT - RIGHT)
            self.path(f"M{x:.1f} {self.y - 11:g}v4", SOFT)
            label = f"{k * step / unit:.{digits}f}" + (f" {name}" if k == 0 else "")
            self.text(x, self.y + 3, label, SOFT, text_anchor="middle", font_size=11)
        self.y += 8

    def sums(self, a: TimelineRecord, rows: list[tuple[str, float]]) -> None:
        """The formula as bars: loop and worker one behind the other, one above the other, and what was measured."""
        loop, worker = terms(a)
        longest = max([a.in_turn, 1e-9, *[seconds for _, seconds in rows]])
        left, wide = 190, WIDTH - 190 - 110
        across = lambda t: left + t / longest * wide  # noqa: E731

        def row(y: float, h: float, bars: list[Term]) -> None:
            at = 0.0
            for name, seconds in bars:
                x, w, label = across(at), max(across(seconds) - left, 1.0), f"{name} {ms(seconds)}"
                at += seconds
                self.parts.append(svg.rect(x, y, w, h, rx=1.5, fill=TERM_COLORS.get(name, SOFT)))
                if w > 6.5 * len(label):
                    self.text(x + w / 2, y + h / 2 + 4, label, "#ffffff", text_anchor="middle", font_size=11)

        self.y += 10
        self.text(12, self.y + 13, "one after the other")
        row(self.y, TALL, loop + worker)
        self.text(across(a.in_turn) + 6, self.y + 13, f"{ms(a.in_turn)} a step")
        self.y += TALL + 5
        self.text(12, self.y + 18, "at the same time, at best")
        row(self.y, 13, loop)
        row(self.y + 14, 13, worker)
        self.text(across(a.at_best) + 6, self.y + 18, f"{ms(a.at_best)} a step")
        self.y += 32
        for name, seconds in rows:
            self.text(12, self.y + 13, name)
            look = {"rx": 1.5, "fill": "#ffffff", "stroke": INK, "stroke_width": 1.5}
            self.parts.append(svg.rect(left, self.y, across(seconds) - left, TALL, **look))
            self.text(across(seconds) + 6, self.y + 13, f"{ms(seconds)} a step", font_weight="bold")
            self.y += TALL + 5


def timeline_svg(record: TimelineRecord) -> str:
    """One timeline."""
    shown, card = record.shown, Card()
    a, b = extent(bars(shown))
    seconds = max(b - a, 1e-9)
    card.lanes(record.title, f"{which(shown)} in {ms(seconds)}{dashed(shown, seconds)}", shown, seconds)
    card.axis(seconds)
    card.sums(record, [(f"measured{', ' + record.mode if record.mode else ''}", record.step)])
    card.sentence(f"At best async is {formula(record)} times as fast as sync.")
    card.sentence(verdict(record), font_weight="bold")
    if besides(record):
        card.sentence(besides(record))
    if record.left_out:
        card.sentence(record.left_out, SOFT)
    return card.svg(f"Timeline of {record.title}: {parts(record)}; {verdict(record)}")


def pair_svg(record: TimelinePair) -> str:
    """Two timelines on the same seconds, sync above async."""
    card = Card()
    spans = [extent(bars(steps)) for steps in record.shown]
    lengths = [max(b - a, 1e-9) for a, b in spans]
    seconds, gain = max(lengths), record.gain
    for i, (one, steps) in enumerate(zip((record.first, record.second), record.shown)):
        less = record.first.step - record.second.step
        won = f"{ms(less)} less a step" if i and less > 0 and lengths[1] < lengths[0] else ""
        note = f"{which(steps)}, a step every {ms(one.step)}{dashed(steps, seconds)}"
        card.lanes(one.title, note, steps, seconds, lengths[0] if i else 0.0, won)
        card.y += 4
    card.axis(seconds)
    names = [one.mode or "one" for one in (record.first, record.second)]
    names = names if names[0] != names[1] else [f"{names[0]}, above", f"{names[1]}, below"]
    card.sums(record.first,
              [(f"measured, {name}", one.step) for name, one in zip(names, (record.first, record.second))])
    card.sentence(f"At best {formula(record.first)} times as fast.")
    card.sentence(f"Measured {measured(record)}.", font_weight="bold")
    card.sentence(pair_verdict(record), font_weight="bold")
    for more in dict.fromkeys([besides(record.first), besides(record.second)]):
        card.sentence(more)
    if record.left_out:
        card.sentence(record.left_out, SOFT)
    return card.svg(f"{record.first.title} and {record.second.title}: at best {record.first.best:.2f} times as fast, "
                    f"measured {gain:.2f}; "
                     + pair_verdict(record))
