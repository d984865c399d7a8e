"""A timeline, or two on one scale, as a picture: lanes of bars, and the formula as bars below.

Read next: `record.py`, the data; `../draw/lanes.py`, which draws lanes; `../html/page.py`, pictures in a notebook.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..draw import svg_writer as svg, theme
from ..draw.fonts import text_width
from ..draw.lanes import BAR_HEIGHT, FAILED_COLORS, FONT_SIZE, TEXT_LEFT, WIDTH, Card, Colors, LaneBox
from .record import (
    LANES,
    OPTIONAL_LANES,
    StepTimes,
    Term,
    TimelinePair,
    TimelineRecord,
    bars,
    bars_since,
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

LEFT, FORMULA_LEFT = 104, 276  # left edge of lanes, and of the formula's bars
LANE_COLORS: dict[str, Colors] = {  # lane or term of the formula -> (fill, rim); others are gray
    "loader": (theme.PALE_BLUE, theme.BLUE),
    "queue": (theme.PLATE, theme.LINE),
    "compute": (theme.PALE_AMBER, theme.AMBER),
    "callback": (theme.PALE_GREEN, theme.GREEN),
    "GPU": (theme.PALE_VIOLET, theme.VIOLET),
}
LANE_COLORS["load"] = LANE_COLORS["loader"]
LANE_THREADS = {
    "loader": "your loop",
    "queue": "step waits",
    "compute": "the worker",
    "callback": "the worker",
    "GPU": "its stream",
}


class TimelineCard(Card):
    """A card of steps and of the formula."""

    def steps(
        self,
        title: str,
        note: str,
        steps: tuple[StepTimes, ...],
        seconds: float,
        room: float = 0.0,
        won: str = "",
        since: float | None = None,
    ) -> None:
        """Draw the bars of some steps; `seconds` is the full width. won: text between their end and `room` seconds.

        since: the time at the left edge; default: the start of the first bar.
        """
        drawn = bars(renumbered(steps)) if since is None else bars_since(steps, since)
        start, stop = time_range(drawn)
        start = start if since is None else since
        self.heading(title, note)
        top = self.y
        used = {LANES[bar.lane] for bar in drawn}
        lanes = [name for name in LANES if name in used or name not in OPTIONAL_LANES]
        boxes = []
        for bar in drawn:
            failed = bar.kind == "failed"
            name = LANES[bar.lane]
            colors = FAILED_COLORS if failed else LANE_COLORS[name]
            words, place = f"{bar.number}" + " failed" * failed, (lanes.index(name), bar.start, bar.stop)
            boxes.append(LaneBox(*place, words, colors, bar.row, bar.rows, bar.kind == "wait"))
        names = [(name, LANE_THREADS[name], LANE_COLORS[name][1]) for name in lanes]
        across = self.lanes(names, boxes, start, seconds)
        end = across(stop)
        self.path(f"M{end:.1f} {top - 2:g}V{self.y + 2:g}", stroke_width=1.5)
        if won:
            far, middle = across(start + room), (top + self.y - 2) / 2
            if far > end:
                head = "m7 -4l-7 4l7 4" if far - end > 20 else ""
                self.path(f"M{far:.1f} {middle:g}H{end + 2:.1f}{head}", fill="none")
            if far - end > text_width(won, FONT_SIZE, True) + 40:
                look = {"size": FONT_SIZE, "anchor": "middle", "bold": True}
                self.parts.append(svg.label((end + far) / 2, middle + 4, won, **look))

    def sums(self, a: TimelineRecord, rows: list[tuple[str, float]]) -> None:
        """Draw the formula as bars: loop and worker in sequence, in parallel, and as measured."""
        loop, worker = step_terms(a)
        longest = max([a.sequential_seconds, 1e-9, *[seconds for _, seconds in rows]])
        across = lambda t: FORMULA_LEFT + t / longest * (WIDTH - FORMULA_LEFT - 12)

        def row(y: float, tall: float, bars: list[Term]) -> None:
            at = 0.0
            for name, seconds in bars:
                width = max(across(seconds) - FORMULA_LEFT, 1.0)
                colors = LANE_COLORS.get(name, LANE_COLORS["queue"])
                self.box(across(at), y, width, tall, colors, f"{name} {ms(seconds)}")
                at += seconds

        def words(y: float, name: str, seconds: float, weight: str = "") -> None:
            self.text(TEXT_LEFT, y, name)
            self.text(FORMULA_LEFT - 14, y, f"{ms(seconds)} a step", text_anchor="end", font_weight=weight)

        self.y += 8
        words(self.y + 13, "one after the other", a.sequential_seconds)
        row(self.y, BAR_HEIGHT, loop + worker)
        self.y += BAR_HEIGHT + 5
        words(self.y + 18, "at the same time, at best", a.overlapped_seconds)
        row(self.y, 13, loop)
        row(self.y + 14, 13, worker)
        self.y += 32
        for name, seconds in rows:
            words(self.y + 13, name, seconds, "bold")
            self.box(FORMULA_LEFT, self.y, across(seconds) - FORMULA_LEFT, BAR_HEIGHT, LANE_COLORS["queue"], "")
            self.y += BAR_HEIGHT + 5
        self.y += 4


def timeline_svg(record: TimelineRecord) -> str:
    """The picture of one timeline."""
    shown, card = record.shown, TimelineCard(LEFT)
    a, b = time_range(bars(shown))
    seconds = max(b - a, 1e-9)
    card.steps(record.title, f"{step_range(shown)} in {ms(seconds)}{wait_legend(shown, seconds)}", shown, seconds)
    card.axis(seconds)
    card.sums(record, [(f"measured{', ' + record.mode if record.mode else ''}", record.step)])
    card.sentence(f"At best async is {formula_text(record)} times as fast as sync.")
    card.sentence(verdict(record), bold=True)
    if remarks_text(record):
        card.sentence(remarks_text(record))
    if record.left_out:
        card.sentence(record.left_out, theme.MUTED)
    return card.svg(f"Timeline of {record.title}: {durations_text(record)}; {verdict(record)}")


def live_svg(record: TimelineRecord, status: str, formula: str, seconds: float) -> str:
    """The lanes of a job that runs. seconds: the full width."""
    card = TimelineCard(LEFT)
    card.steps(record.title, f"{status}{wait_legend(record.shown, seconds)}", record.shown, seconds)
    card.axis(seconds)
    card.sentence(formula)
    return card.svg(f"Timeline of {record.title}, {status}; {formula}")


def live_pair_svg(records: Sequence[TimelineRecord], since: float, seconds: float, gain: str) -> str:
    """The lanes of several runs on one clock, in the `seconds` from `since`. gain: the sentence below."""
    card = TimelineCard(LEFT)
    for one in records:
        card.steps(
            one.title, f"a step every {ms(one.step)}{wait_legend(one.steps, seconds)}", one.steps, seconds, since=since
        )
        card.y += 4
    card.axis(seconds)
    card.sentence(gain, bold=True)
    return card.svg(f"Timelines of {' and '.join([one.title for one in records])}; {gain}")


def pair_svg(record: TimelinePair) -> str:
    """Two timelines on one scale, sync above async."""
    card = TimelineCard(LEFT)
    spans = [time_range(bars(steps)) for steps in record.shown]
    lengths = [max(b - a, 1e-9) for a, b in spans]
    seconds, gain = max(lengths), record.gain
    for i, (one, steps) in enumerate(zip((record.first, record.second), record.shown)):
        less = record.first.step - record.second.step
        won = f"{ms(less)} less a step" if i and less > 0 and lengths[1] < lengths[0] else ""
        note = f"{step_range(steps)}, a step every {ms(one.step)}{wait_legend(steps, seconds)}"
        card.steps(one.title, note, steps, seconds, lengths[0] if i else 0.0, won)
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
