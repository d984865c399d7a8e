"""A step as a picture: a lane for the calls of the plan, and one for each thread with the chunks that it computed.

Phases differ by color, as in the memory map. Read next: `../text/threads.py`, the same as text;
`../timeline/svg.py`, which draws the axis in the same way.
"""

from __future__ import annotations

from ..draw import svg_writer as svg, theme
from ..draw.fonts import text_width, truncated
from ..records.reports import Threads
from ..text.listing import clean
from ..text.numbers import percent
from ..text.threads import busy_seconds, thread_name, verdict
from ..timeline.svg import LEFT as NAMES, RIGHT, WIDTH, Card
from .memory_map import OTHER_STYLE, PHASE_STYLES

LANE_STEP, BAR_HEIGHT, TOP = 38, 26, 44  # pixels: distance of lanes, height of a bar, space above the first lane
LEFT = NAMES + 30
MIN_BAR_GAP = 0.6  # pixels: bars of a phase with a smaller gap are drawn as one
MIN_NAME_WIDTH = 44  # minimum width of a name, in pixels


def threads_svg(record: Threads) -> str:
    card, whole = Card(), record.seconds or 1e-9
    card.parts.append(svg.label(svg.PADDING + 2, 16, truncated(record.title, WIDTH - 16, bold=True), bold=True))
    across = lambda t: LEFT + t / whole * (WIDTH - LEFT - RIGHT)
    lanes = [
        ("calls", ""),
        *[
            (thread_name(i), f"{percent(seconds / whole)} of the step")
            for i, seconds in enumerate(busy_seconds(record))
        ],
    ]
    for i, (name, share) in enumerate(lanes):
        y = TOP + i * LANE_STEP
        card.path(f"M{LEFT} {y + LANE_STEP - 3:g}H{WIDTH - RIGHT}", stroke_width=".5", stroke_dasharray="1 3")
        card.parts.append(
            svg.label(
                svg.PADDING + 2, y + 10 + 7 * (not share), *filter(None, (name, share)), size=11, rest=theme.MUTED
            )
        )
    card.parts += drawn(record, across)
    card.y = TOP + len(lanes) * LANE_STEP
    axis(card, across, whole)
    phases = [phase for phase in PHASE_STYLES if any(bar.phase == phase for bar in record.bars)]
    x = float(LEFT)
    for phase in phases:
        fill, rim, _ = PHASE_STYLES[phase]
        card.parts += [
            svg.rect(x, card.y + 2, 20, 12, fill=fill, stroke=rim),
            svg.label(x + 26 + svg.PADDING, card.y + 12, phase),
        ]
        x += text_width(phase) + 26 + 4 * svg.PADDING
    card.y += 26
    card.sentence(verdict(record))
    return card.svg(f"{clean(record.title)}: {verdict(record)}")


def axis(card: Card, across, whole: float) -> None:
    """Milliseconds below the lanes."""
    for k in range(5):
        x = across(whole * k / 4)
        card.path(f"M{x:.1f} {card.y - 3:g}v5")
        anchor = "start" if not k else "end" if k == 4 else "middle"
        card.parts.append(
            svg.label(
                x, card.y + 15, f"{whole * k / 4 * 1e3:.1f}" + " ms" * (not k), anchor=anchor, text_color=theme.MUTED
            )
        )
    card.y += 30


def drawn(record: Threads, across) -> list[str]:
    """All bars of a phase as one path, adjacent bars merged; a name is drawn if its bar has room for it."""
    merged: list[list] = []  # [lane, phase, name, left, right]
    last: dict[int, list] = {}
    for bar in record.bars:
        left, right = across(bar.start), max(across(bar.stop), across(bar.start) + 0.3)
        before = last.get(bar.thread)
        if (
            before
            and before[1] == bar.phase
            and left - before[4] < MIN_BAR_GAP
            and ((bar.thread >= 0 and before[2] == bar.name) or right - before[3] < MIN_NAME_WIDTH / 4)
        ):
            before[4] = max(right, before[4])
            before[2] = before[2] if before[2] == bar.name else ""
        else:
            last[bar.thread] = [bar.thread, bar.phase, bar.name, left, right]
            merged.append(last[bar.thread])
    boxes: dict[str, list[str]] = {}
    names = []
    for thread, phase, name, left, right in merged:
        y, phase = TOP + (thread + 1) * LANE_STEP, phase if phase in PHASE_STYLES else ""
        boxes.setdefault(phase, []).append(f"M{left:.1f} {y}h{right - left:.1f}v{BAR_HEIGHT}h{left - right:.1f}z")
        if thread < 0 and right - left > MIN_NAME_WIDTH + 2 * svg.PADDING:
            words = truncated(clean(name).rpartition(".")[2], right - left - 2 * svg.PADDING)
            names.append(svg.label(left + svg.PADDING, y + 17, words, fill=PHASE_STYLES.get(phase, OTHER_STYLE)[0]))
    parts = []
    for phase, paths in boxes.items():
        fill, rim, _ = PHASE_STYLES.get(phase, OTHER_STYLE)
        parts.append(svg.path("".join(paths), fill=fill, stroke=rim, stroke_width=".6"))
    return parts + names
