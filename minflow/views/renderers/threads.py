"""A step as a picture: a lane for the calls of the plan, and one for each thread with the chunks that it computed.

Phases differ by color, as in the memory map. Read next: `../text/threads.py`, the same as text.
"""

from __future__ import annotations

from ..draw import svg_writer as svg
from ..draw.lanes import PLATE_LEFT, RIGHT, WIDTH, Card, LaneBox
from ..records.reports import Threads
from ..text.listing import clean
from ..text.numbers import percent
from ..text.threads import busy_seconds, thread_name, verdict
from .memory_map import OTHER_STYLE, PHASE_STYLES, phase_legend, phases_of

LEFT = 150
MIN_GAP = 0.6  # pixels: boxes of a phase with a smaller gap are drawn as one
MAX_MERGED_WIDTH = 11  # pixels: wider boxes of different calls are not merged


def headline(record: Threads) -> str:
    """The picture in one sentence."""
    return f"{clean(record.title)}: {verdict(record)}"


def threads_svg(record: Threads) -> str:
    card, whole = Card(LEFT), record.seconds or 1e-9
    card.heading(clean(record.title))
    shares = [f"{percent(seconds / whole)} of the step" for seconds in busy_seconds(record)]
    names = [("calls", "", ""), *[(thread_name(i), share, "") for i, share in enumerate(shares)]]
    card.lanes(names, merged_boxes(record, whole / (WIDTH - LEFT - RIGHT)), 0.0, whole)
    card.axis(whole)
    legend = phase_legend(phases_of(record.bars), PLATE_LEFT, card.y + 6, sample)
    card.parts += legend
    card.y += 24 * bool(legend)
    card.sentence(verdict(record))
    return card.svg(headline(record))


def sample(x: float, y: float, phase: str) -> list[str]:
    fill, rim, _ = PHASE_STYLES.get(phase, OTHER_STYLE)
    return [svg.rect(x, y, 24, 12, fill=fill, stroke=rim)]


def merged_boxes(record: Threads, pixel: float) -> list[LaneBox]:
    """A box for each bar; adjacent ones of a lane and a phase are one box. pixel: seconds."""
    last: dict[int, LaneBox] = {}
    done: list[LaneBox] = []
    for bar in record.bars:
        colors = PHASE_STYLES.get(bar.phase, OTHER_STYLE)[:2]
        words = clean(bar.name).rpartition(".")[2] if bar.thread < 0 else ""
        box = LaneBox(bar.thread + 1, bar.start, bar.stop, words, colors)
        before = last.get(bar.thread)
        if before is not None:
            adjacent = before.colors == colors and bar.start - before.stop < MIN_GAP * pixel
            small = bar.stop - before.start < MAX_MERGED_WIDTH * pixel
            if adjacent and (small or bar.thread >= 0):
                box = before._replace(stop=max(bar.stop, before.stop))
            else:
                done.append(before)
        last[bar.thread] = box
    return [*done, *last.values()]
