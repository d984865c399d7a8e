"""A step as a picture: a lane for the calls of the plan, and one for each thread with the chunks that it computed.

Phases differ by color, as in the memory map. Read next: `../text/threads.py`, the same as text.
"""

from __future__ import annotations

from ..draw import svg_writer as svg
from ..draw.lanes import RIGHT, TEXT_LEFT, WIDTH, Card, LaneBox
from ..records.reports import ThreadBar, Threads
from ..text.listing import clean, count
from ..text.numbers import percent, short_time
from ..text.threads import busy_seconds, thread_name, verdict
from .memory_map import OTHER_STYLE, PHASE_STYLES, phase_legend, phases_of

LEFT = 150
MIN_GAP = 0.6  # pixels: boxes of a phase with a smaller gap are drawn as one
MAX_MERGED_WIDTH = 11  # pixels: wider boxes of different calls are not merged
MAX_TITLES = 200  # boxes that all have a tooltip; if there are more, only the calls have one
MAX_TITLE_LINES = 3  # calls that a tooltip names


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
    legend = phase_legend(phases_of(record.bars), TEXT_LEFT, card.y + 6, sample)
    card.parts += legend
    card.y += 24 * bool(legend)
    card.sentence(verdict(record))
    return card.svg(headline(record))


def sample(x: float, y: float, phase: str) -> list[str]:
    fill, rim, _ = PHASE_STYLES.get(phase, OTHER_STYLE)
    return [svg.rect(x, y, 24, 12, fill=fill, stroke=rim)]


def merged_boxes(record: Threads, pixel: float) -> list[LaneBox]:
    """A box for each bar; small adjacent ones of a lane and a phase are one box, as are the pieces of a call that a
    thread took one after the other. pixel: seconds.
    """
    groups: list[list[ThreadBar]] = []
    last: dict[int, list[ThreadBar]] = {}  # lane -> its newest group
    for bar in record.bars:
        group = last.get(bar.thread)
        if group is not None and joins(group, bar, pixel):
            group.append(bar)
        else:
            last[bar.thread] = [bar]
            groups.append(last[bar.thread])
    few = len(groups) <= MAX_TITLES
    return [lane_box(group, few or group[0].thread < 0) for group in groups]


def joins(group: list[ThreadBar], bar: ThreadBar, pixel: float) -> bool:
    """True if a bar is drawn in one box with the group before it."""
    adjacent = group[0].phase == bar.phase and bar.start - group[-1].stop < MIN_GAP * pixel
    same = bar.thread >= 0 and bar.name == group[0].name == group[-1].name
    return adjacent and (same or bar.stop - group[0].start < MAX_MERGED_WIDTH * pixel)


def lane_box(group: list[ThreadBar], titled: bool) -> LaneBox:
    """The box of a group. titled: True if it has a tooltip."""
    first, stop = group[0], max([bar.stop for bar in group])
    words = clean(first.name).rpartition(".")[2] if first.thread < 0 else ""
    colors = PHASE_STYLES.get(first.phase, OTHER_STYLE)[:2]
    return LaneBox(first.thread + 1, first.start, stop, words, colors, title=box_title(group) if titled else ())


def box_title(group: list[ThreadBar]) -> tuple[str, ...]:
    """The calls of a box with the time of each, in lines."""
    seconds: dict[str, float] = {}
    for bar in group:
        seconds[bar.name] = seconds.get(bar.name, 0.0) + bar.stop - bar.start
    lines = [f"{name}: {short_time(time)}" for name, time in [*seconds.items()][:MAX_TITLE_LINES]]
    left = len(seconds) - len(lines)
    return *lines, *[f"and {count(left, 'more call')}"] * bool(left)
