"""A timeline, or two on one scale, as a picture: lanes of bars, and the formula as bars below.

Bars are drawn on the page itself; names to the left, seconds below and sentences at the end are on plates.
Read next: `record.py`, the data; `../html/page.py`, pictures in a notebook.
"""

from __future__ import annotations

import math

from ..draw import svg_writer as svg, theme
from ..draw.fonts import text_width, truncated, wrap_to_width
from .record import (
    LANES,
    MIN_WAIT_SHARE,
    Bar,
    StepTimes,
    Term,
    TimelinePair,
    TimelineRecord,
    bars,
    durations_text,
    formula_text,
    measured_text,
    ms,
    pair_verdict,
    remarks_text,
    renumbered,
    step_range,
    step_terms,
    time_range,
    verdict,
    wait_legend,
)

WIDTH, LEFT, RIGHT = 760, 104, 22
LANE_STEP, BAR_HEIGHT = 25, 18  # pixels: distance of lanes, height of a bar
FORMULA_LEFT, PLATE_LEFT = 276, 4  # left edge of the formula's bars, and of plates
# font sizes of text, and of numbers in bars and on the axis; line height
FONT_SIZE, SMALL_FONT_SIZE, LINE_HEIGHT = 12, 11, 17
LANE_COLORS = {  # lane or term of the formula -> (fill, rim); others are gray
    "loader": (theme.PALE_BLUE, theme.BLUE),
    "queue": (theme.PLATE, theme.LINE),
    "compute": (theme.PALE_AMBER, theme.AMBER),
    "callback": (theme.PALE_GREEN, theme.GREEN),
}
LANE_COLORS["load"] = LANE_COLORS["loader"]
FAILED_COLORS = theme.PALE_RED, theme.RED
LANE_THREADS = {"loader": "your loop", "queue": "step waits", "compute": "the worker", "callback": "the worker"}


def round_step(seconds: float, count: int = 6) -> float:
    """1, 2 or 5 times a power of ten, such that about `count` of them cover `seconds`."""
    rough = max(seconds, 1e-9) / count
    scale = 10.0 ** math.floor(math.log10(rough))
    return next(scale * m for m in (1, 2, 5, 10) if scale * m >= rough * 0.999)


class Card:
    """A column of SVG elements; the next begins at `y`. said: sentences at the end, with their styles."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.said: list[tuple[str, str, bool]] = []
        self.y = 4.0

    def text(self, x: float, y: float, content: str, text_color: str = theme.TEXT_COLOR, **look: object) -> None:
        self.parts.append(svg.text(x, y, content, fill=text_color, **look))

    def path(self, d: str, color: str = theme.LINE, **look: object) -> None:
        self.parts.append(svg.path(d, stroke=color, **look))

    def plate(self, x: float, y: float, width: float, height: float) -> None:
        self.parts.append(svg.rect(x, y, width, height, rx=4, fill=theme.PLATE))

    def sentence(self, content: str, text_color: str = theme.TEXT_COLOR, bold: bool = False) -> None:
        """Add a sentence below everything else, wrapped."""
        lines = wrap_to_width(content, WIDTH - 2 * PLATE_LEFT - 2 * svg.PADDING, FONT_SIZE, bold) if content else []
        self.said += [(line, text_color, bold) for line in lines]

    def svg(self, alt: str) -> str:
        width = max([text_width(line, FONT_SIZE, bold) for line, _, bold in self.said], default=0.0)
        self.y += 4
        self.plate(PLATE_LEFT, self.y, width + 2 * svg.PADDING, LINE_HEIGHT * len(self.said) + 6)
        for line, text_color, bold in self.said:
            self.y += LINE_HEIGHT
            self.text(PLATE_LEFT + svg.PADDING, self.y - 1, line, text_color, font_weight="bold" if bold else None)
        return svg.picture(self.parts, WIDTH, math.ceil(self.y + 10), alt, font_size=FONT_SIZE)

    def heading(self, title: str, note: str) -> None:
        room = WIDTH - 2 * PLATE_LEFT - 2 * svg.PADDING - text_width("  " + note, FONT_SIZE)
        title = truncated(title, room, FONT_SIZE, bold=True)
        self.plate(
            PLATE_LEFT,
            self.y,
            text_width(title, FONT_SIZE, True) + text_width("  " + note, FONT_SIZE) + 2 * svg.PADDING,
            LINE_HEIGHT + 2,
        )
        head = svg.span(title, font_weight="bold"), svg.span("  " + note, fill=theme.MUTED)
        self.parts.append(svg.element("text", *head, x=PLATE_LEFT + svg.PADDING, y=self.y + 14, fill=theme.TEXT_COLOR))
        self.y += LINE_HEIGHT + 5

    def lanes(
        self, title: str, note: str, steps: tuple[StepTimes, ...], seconds: float, room: float = 0.0, won: str = ""
    ) -> None:
        """Draw the bars of some steps; `seconds` is the full width. won: text between their end and `room` seconds."""
        drawn = bars(renumbered(steps))
        start, stop = time_range(drawn)
        self.heading(title, note)
        top = self.y
        lanes = [name for i, name in enumerate(LANES) if name != "callback" or any([bar.lane == i for bar in drawn])]
        across = lambda t: LEFT + (t - start) / seconds * (WIDTH - LEFT - RIGHT)
        bottom = top + len(lanes) * LANE_STEP
        self.plate(PLATE_LEFT, top, LEFT - 2 * PLATE_LEFT - 2, bottom - top)
        for i, name in enumerate(lanes):
            y = top + i * LANE_STEP
            self.path(f"M{LEFT} {y + LANE_STEP - 0.5:g}H{WIDTH - RIGHT}", stroke_width=".5", stroke_dasharray="1 3")
            self.text(PLATE_LEFT + svg.PADDING, y + 11, name, font_weight="bold")
            self.text(PLATE_LEFT + svg.PADDING, y + 22, LANE_THREADS[name], theme.MUTED, font_size=SMALL_FONT_SIZE)
            self.parts.append(svg.rect(PLATE_LEFT, y + 2, 3, LANE_STEP - 4, rx=1.5, fill=LANE_COLORS[name][1]))
        for bar in sorted(drawn, key=lambda b: b.kind != "wait"):
            self.bar(bar, across, top)
        end = across(stop)
        self.path(f"M{end:.1f} {top - 2:g}V{bottom + 4:g}", stroke_width=1.5)
        if won:
            far, middle = across(start + room), top + len(lanes) * LANE_STEP / 2
            if far > end:
                head = "m7 -4l-7 4l7 4" if far - end > 20 else ""
                self.path(f"M{far:.1f} {middle:g}H{end + 2:.1f}{head}", fill="none")
            if far - end > text_width(won, FONT_SIZE, True) + 40:
                look = {"size": FONT_SIZE, "anchor": "middle", "bold": True}
                self.parts.append(svg.label((end + far) / 2, middle + 4, won, **look))
        self.y = bottom + 2

    def bar(self, bar: Bar, across, top: float) -> None:
        x, width = across(bar.start), max(across(bar.stop) - across(bar.start), 1.0)
        tall = BAR_HEIGHT / bar.rows
        y = top + bar.lane * LANE_STEP + (LANE_STEP - BAR_HEIGHT) / 2 + bar.row * tall
        tall = tall - (1 if bar.rows > 1 else 0)
        if bar.kind == "wait":
            if width > MIN_WAIT_SHARE * (WIDTH - LEFT - RIGHT):
                look = {"fill": theme.PLATE if width > 48 else "none", "stroke": theme.LINE, "stroke_dasharray": "2 2"}
                self.parts.append(svg.rect(x, y + 1, width, BAR_HEIGHT - 2, **look))
            if width > 48:
                self.text(x + width / 2, y + 13, "waits", theme.MUTED, text_anchor="middle", font_size=SMALL_FONT_SIZE)
            return
        failed = bar.kind == "failed"
        self.filled(
            x,
            y,
            width,
            tall,
            FAILED_COLORS if failed else LANE_COLORS[LANES[bar.lane]],
            f"{bar.number}" + (" failed" if failed else ""),
        )

    def filled(self, x: float, y: float, width: float, tall: float, colors: tuple[str, str], words: str) -> None:
        """A bar with its text, if that fits."""
        fill, rim = colors
        look = {"fill": fill, "stroke": rim, "stroke_width": 1.6} if width > 8 else {"fill": rim}
        self.parts.append(svg.rect(x, y, width, tall, rx=1.5, **look))
        if text_width(words, SMALL_FONT_SIZE) + 2 < width and tall > 11:
            text_color = theme.RED_TEXT if colors == FAILED_COLORS else theme.TEXT_COLOR
            self.text(
                x + width / 2, y + tall / 2 + 4, words, text_color, text_anchor="middle", font_size=SMALL_FONT_SIZE
            )

    def axis(self, seconds: float) -> None:
        step = round_step(seconds)
        unit, name = (1e-6, "µs") if seconds < 2e-4 else (1e-3, "ms") if seconds < 10 else (1.0, "s")
        digits = max(0, -math.floor(math.log10(step / unit) + 1e-9))
        self.plate(LEFT - 20, self.y + 3, WIDTH - LEFT + 16, 18)
        for k in range(int(seconds / step + 1e-9) + 1):
            x = LEFT + k * step / seconds * (WIDTH - LEFT - RIGHT)
            self.path(f"M{x:.1f} {self.y:g}v5")
            label = f"{k * step / unit:.{digits}f}" if k else f"0 {name}"  # zero without decimals, at the plate's edge
            self.text(x, self.y + 16, label, theme.MUTED, text_anchor="middle", font_size=SMALL_FONT_SIZE)
        self.y += 24

    def sums(self, a: TimelineRecord, rows: list[tuple[str, float]]) -> None:
        """Draw the formula as bars: loop and worker in sequence, in parallel, and as measured."""
        loop, worker = step_terms(a)
        longest = max([a.sequential_seconds, 1e-9, *[seconds for _, seconds in rows]])
        across = lambda t: FORMULA_LEFT + t / longest * (WIDTH - FORMULA_LEFT - 12)

        def row(y: float, tall: float, bars: list[Term]) -> None:
            at = 0.0
            for name, seconds in bars:
                width = max(across(seconds) - FORMULA_LEFT, 1.0)
                self.filled(
                    across(at), y, width, tall, LANE_COLORS.get(name, LANE_COLORS["queue"]), f"{name} {ms(seconds)}"
                )
                at += seconds

        def words(y: float, name: str, seconds: float, weight: str = "") -> None:
            self.text(PLATE_LEFT + svg.PADDING, y, name)
            self.text(FORMULA_LEFT - 14, y, f"{ms(seconds)} a step", text_anchor="end", font_weight=weight)

        self.y += 4
        self.plate(PLATE_LEFT, self.y, FORMULA_LEFT - 2 * PLATE_LEFT - 4, 63 + (BAR_HEIGHT + 5) * len(rows))
        self.y += 4
        words(self.y + 13, "one after the other", a.sequential_seconds)
        row(self.y, BAR_HEIGHT, loop + worker)
        self.y += BAR_HEIGHT + 5
        words(self.y + 18, "at the same time, at best", a.overlapped_seconds)
        row(self.y, 13, loop)
        row(self.y + 14, 13, worker)
        self.y += 32
        for name, seconds in rows:
            words(self.y + 13, name, seconds, "bold")
            self.filled(FORMULA_LEFT, self.y, across(seconds) - FORMULA_LEFT, BAR_HEIGHT, LANE_COLORS["queue"], "")
            self.y += BAR_HEIGHT + 5
        self.y += 4


def timeline_svg(record: TimelineRecord) -> str:
    """The picture of one timeline."""
    shown, card = record.shown, Card()
    a, b = time_range(bars(shown))
    seconds = max(b - a, 1e-9)
    card.lanes(record.title, f"{step_range(shown)} in {ms(seconds)}{wait_legend(shown, seconds)}", shown, seconds)
    card.axis(seconds)
    card.sums(record, [(f"measured{', ' + record.mode if record.mode else ''}", record.step)])
    card.sentence(f"At best async is {formula_text(record)} times as fast as sync.")
    card.sentence(verdict(record), bold=True)
    if remarks_text(record):
        card.sentence(remarks_text(record))
    if record.left_out:
        card.sentence(record.left_out, theme.MUTED)
    return card.svg(f"Timeline of {record.title}: {durations_text(record)}; {verdict(record)}")


def pair_svg(record: TimelinePair) -> str:
    """Two timelines on one scale, sync above async."""
    card = Card()
    spans = [time_range(bars(steps)) for steps in record.shown]
    lengths = [max(b - a, 1e-9) for a, b in spans]
    seconds, gain = max(lengths), record.gain
    for i, (one, steps) in enumerate(zip((record.first, record.second), record.shown)):
        less = record.first.step - record.second.step
        won = f"{ms(less)} less a step" if i and less > 0 and lengths[1] < lengths[0] else ""
        note = f"{step_range(steps)}, a step every {ms(one.step)}{wait_legend(steps, seconds)}"
        card.lanes(one.title, note, steps, seconds, lengths[0] if i else 0.0, won)
        card.y += 4
    card.axis(seconds)
    names = [one.mode or "one" for one in (record.first, record.second)]
    names = names if names[0] != names[1] else [f"{names[0]}, above", f"{names[1]}, below"]
    card.sums(
        record.first, [(f"measured, {name}", one.step) for name, one in zip(names, (record.first, record.second))]
    )
    card.sentence(f"At best {formula_text(record.first)} times as fast.")
    card.sentence(f"Measured {measured_text(record)}.", bold=True)
    card.sentence(pair_verdict(record), bold=True)
    for more in dict.fromkeys([remarks_text(record.first), remarks_text(record.second)]):
        card.sentence(more)
    if record.left_out:
        card.sentence(record.left_out, theme.MUTED)
    return card.svg(
        f"{record.first.title} and {record.second.title}: at best {record.first.best:.2f} times as fast, "
        f"measured {gain:.2f}; " + pair_verdict(record)
    )
