"""The arena of a graph's plan as a picture: addresses upwards, steps to the right, a rectangle for each value.

Phases differ by color and by hatching; large values are named. Depends on records only. Read next:
`../text/reports.py`, the same as text; `../html/page.py`, pictures in a notebook.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from ..draw import svg_writer as svg, theme
from ..draw.fonts import FONT_SIZE, text_width, truncated, wrap_to_width
from ..draw.lanes import round_step
from ..records.reports import Block, MemoryMap
from ..text.listing import clean
from ..text.numbers import nbytes_text
from ..text.reports import memory_sentences, peak, peak_text

WIDTH, LEFT, RIGHT, TOP, PLOT_HEIGHT = 760, 96, 22, 54, 300
# phase -> (fill, edge, hatching: 1 rises, -1 falls, 0 is horizontal, None: none)
PHASE_STYLES = {
    "forward": (theme.PALE_BLUE, theme.BLUE, None),
    "backward": (theme.PALE_AMBER, theme.AMBER, 1),
    "recompute": (theme.PALE_VIOLET, theme.VIOLET, -1),
    "optimizer": (theme.PALE_GREEN, theme.GREEN, 0),
}
OTHER_STYLE = (theme.PLATE, theme.LINE, None)
MIN_NAME_WIDTH = 96  # minimum width of a name, in pixels
MAX_TITLES = 100  # values with a tooltip: a picture of a large model must stay small
HATCH_SPACING = 8  # pixels between the lines of a hatching


def headline(record: MemoryMap) -> str:
    """The map in words."""
    return f"{clean(record.title)}. {' '.join(memory_sentences(record))}"


def memory_svg(record: MemoryMap) -> str:
    """The picture. Addresses begin at the bottom."""
    step, most = peak(record)
    phases = phases_of(record.blocks)
    across = lambda t: LEFT + t / (record.steps + 1) * (WIDTH - LEFT - RIGHT)
    up = lambda n: TOP + PLOT_HEIGHT - n / max(record.arena, 1) * PLOT_HEIGHT
    parts = [
        svg.label(svg.PADDING, 16, truncated(record.title, WIDTH - 12, bold=True), bold=True),
        svg.rect(LEFT, TOP, WIDTH - LEFT - RIGHT, PLOT_HEIGHT, fill="none", stroke=theme.LINE),
    ]
    for i in range(5):
        y = TOP + PLOT_HEIGHT * (1 - i / 4)
        parts.append(svg.path(f"M{LEFT - 4} {y:g}H{LEFT}", stroke=theme.LINE))
        parts.append(
            svg.label(LEFT - 12, y + 4, nbytes_text(record.arena * i // 4), anchor="end", text_color=theme.MUTED)
        )
    parts.append(svg.label(svg.PADDING, TOP - 14, "address", text_color=theme.MUTED))
    for t in range(0, record.steps + 1, max(1, round(round_step(record.steps + 1, 8)))):
        x = (across(t) + across(t + 1)) / 2
        parts.append(svg.path(f"M{x:.1f} {TOP + PLOT_HEIGHT}v4", stroke=theme.LINE))
        parts.append(svg.label(x, TOP + PLOT_HEIGHT + 17, str(t), anchor="middle", text_color=theme.MUTED))
    axis = "step of the plan: the operations in the order in which they run"
    parts.append(svg.label(LEFT + svg.PADDING, TOP + PLOT_HEIGHT + 38, axis, text_color=theme.MUTED))
    blocks, names = value_elements(record.blocks, across, up)
    # the pointer finds the values below their names
    parts += [*blocks, svg.group([*peak_mark(across, step, most), *names], pointer_events="none")]
    note = "color: phase; a box: one value, until it is last read" if len(phases) < 4 else ""
    parts += phase_legend(phases, LEFT, TOP + PLOT_HEIGHT + 52, hatched_sample, note)
    width = WIDTH - 2 * svg.PADDING - 8
    lines = [line for sentence in memory_sentences(record) for line in wrap_to_width(sentence, width)]
    lines.append(truncated(peak_text(record, 2), width))
    bottom = TOP + PLOT_HEIGHT + 90
    parts.append(svg.label(svg.PADDING, bottom, *lines))
    return svg.picture(parts, WIDTH, round(bottom + len(lines) * svg.LINE_HEIGHT * FONT_SIZE), headline(record))


def visible_ends(blocks: tuple[Block, ...]) -> list[int]:
    """The last step of each value, minus one if another value overwrites it in that step, so that both are visible."""
    starts: dict[int, list[Block]] = {}
    for block in blocks:
        starts.setdefault(block.first, []).append(block)
    meet = lambda x, b: x is not b and x.offset < b.offset + b.nbytes and b.offset < x.offset + x.nbytes
    over = [any(meet(x, b) for x in starts.get(b.last, ())) for b in blocks]
    return [b.last - 1 if taken and b.last > b.first else b.last for b, taken in zip(blocks, over)]


def value_elements(blocks: tuple[Block, ...], across, up) -> tuple[list[str], list[str]]:
    """(elements of the values: for each phase its rectangles and one path for hatching; names that fit).

    Values do not overlap, so drawing order does not matter. The largest have a tooltip, as elements of their own; the
    others are one path.
    """
    boxes: dict[tuple[str, float], list[str]] = {}
    titled: dict[tuple[str, float], list[str]] = {}
    lines: dict[str, list[str]] = {}
    names: list[str] = []
    area = lambda block: block.nbytes * (block.last - block.first + 1)
    large = {id(block) for block in sorted(blocks, key=area, reverse=True)[:MAX_TITLES]}
    for block, last in zip(blocks, visible_ends(blocks)):
        x, y = across(block.first), up(block.offset + block.nbytes)
        wide, tall = max(across(last + 1) - x, 1.0), max(up(block.offset) - y, 0.8)
        phase = block.phase if block.phase in PHASE_STYLES else ""
        key, d = (phase, 0.8 if tall > 3 else 0.3), f"M{x:.1f} {y:.1f}h{wide:.1f}v{tall:.1f}h{-wide:.1f}z"
        if id(block) in large:
            titled.setdefault(key, []).append(svg.path(d, svg.titled(value_title(block))))
        else:
            boxes.setdefault(key, []).append(d)
        if wide > 4 and tall > 6:
            lines.setdefault(phase, []).append(hatch_path(x, y, wide, tall, phase))
        names += value_label(block, x, y, wide, tall)
    parts = []
    for (phase, stroke), paths in boxes.items():
        fill, edge, _ = PHASE_STYLES.get(phase, OTHER_STYLE)
        parts.append(svg.path("".join(paths), fill=fill, stroke=edge, stroke_width=stroke))
    for (phase, stroke), elements in titled.items():
        fill, edge, _ = PHASE_STYLES.get(phase, OTHER_STYLE)
        parts.append(svg.group(elements, fill=fill, stroke=edge, stroke_width=stroke))
    parts += [hatch_element("".join(paths), phase) for phase, paths in lines.items()]
    return parts, names


def value_title(block: Block) -> list[str]:
    """The lines of the tooltip of a value."""
    steps = f"step {block.first}" if block.first == block.last else f"steps {block.first} to {block.last}"
    return [block.name, f"{block.spec}, {nbytes_text(block.nbytes)}, {steps}", *[block.where] * bool(block.where)]


def value_label(block: Block, x: float, y: float, wide: float, tall: float) -> list[str]:
    """The name and size of a value on a plate over its hatching, if they fit into the rectangle."""
    on_end = wide < MIN_NAME_WIDTH
    long, high = (tall, wide) if on_end else (wide, tall)
    if long < MIN_NAME_WIDTH or high < 19:
        return []
    words = [block.name, f"{block.spec}, {nbytes_text(block.nbytes)}"][: 2 if high >= 36 else 1]
    lines = [truncated(line, long - 2 * svg.PADDING - 2) for line in words]
    along, across = 1 + svg.PADDING, high / 2 + 4 - 7.5 * (len(lines) - 1)
    start, base = (x + across, y + tall - along) if on_end else (x + along, y + across)
    name = svg.label(start, base, *lines, fill=PHASE_STYLES.get(block.phase, OTHER_STYLE)[0])
    return [svg.group([name], transform=f"rotate(-90 {svg.number(start)} {svg.number(base)})") if on_end else name]


def peak_mark(across, step: int, most: int) -> list[str]:
    """The step at which the values take most memory, and how much."""
    x = (across(step) + across(step + 1)) / 2
    anchor = "start" if x < WIDTH / 3 else "end" if x > WIDTH * 2 / 3 else "middle"
    words = f"peak: {nbytes_text(most)} at step {step}"
    return [
        svg.path(f"M{x:.1f} {TOP - 5}V{TOP + PLOT_HEIGHT}", stroke=theme.RED, stroke_width=1.5, stroke_dasharray="5 3"),
        svg.label(x, TOP - 10, words, bold=True, text_color=theme.RED_TEXT, fill=theme.PALE_RED, anchor=anchor),
    ]


def hatch_path(x: float, y: float, wide: float, tall: float, phase: str) -> str:
    """Path data of the hatching of a rectangle: lines of one common grid, with the slope of the phase."""
    _, _, lean = PHASE_STYLES.get(phase, OTHER_STYLE)
    if lean is None:
        return ""
    lines = []
    a, b = (y, y + tall) if lean == 0 else (x + y, x + wide + y + tall) if lean > 0 else (y - x - wide, y + tall - x)
    for n in range(math.ceil(a / HATCH_SPACING), math.floor(b / HATCH_SPACING) + 1):
        c = n * HATCH_SPACING
        if lean == 0:  # y = c
            x1, x2 = x, x + wide
        elif lean > 0:  # y = c - x
            x1, x2 = max(x, c - y - tall), min(x + wide, c - y)
        else:  # y = c + x
            x1, x2 = max(x, y - c), min(x + wide, y + tall - c)
        if x1 < x2:
            lines.append(f"M{x1:.1f} {c - lean * x1:.1f}L{x2:.1f} {c - lean * x2:.1f}")
    return "".join(lines)


def hatch_element(path: str, phase: str) -> str:
    """The hatching as an element; empty if there are no lines."""
    return svg.path(
        path, stroke=PHASE_STYLES.get(phase, OTHER_STYLE)[1], stroke_width=".4", fill="none", pointer_events="none"
    )


def hatched_sample(x: float, y: float, phase: str) -> list[str]:
    fill, edge, _ = PHASE_STYLES.get(phase, OTHER_STYLE)
    box = svg.rect(x, y, 24, 12, fill=fill, stroke=edge)
    return [box, hatch_element(hatch_path(x, y, 24, 12, phase), phase)]


def phases_of(things: Iterable[Any]) -> list[str]:
    """The phases of calls, values or bars, in the order of a step; "" for any other."""
    found = {thing.phase if thing.phase in PHASE_STYLES else "" for thing in things}
    return [phase for phase in (*PHASE_STYLES, "") if phase in found]


def phase_legend(
    phases: list[str], x: float, y: float, sample: Callable[[float, float, str], list[str]], note: str = ""
) -> list[str]:
    """Each phase by name behind its sample, 24 pixels wide and 12 high; then the note."""
    parts: list[str] = []
    for phase in phases:
        words = phase or "other"
        parts += [*sample(x, y, phase), svg.label(x + 30 + svg.PADDING, y + 10, words)]
        x += 54 + text_width(words)
    return parts + [svg.label(x + svg.PADDING, y + 10, note, text_color=theme.MUTED)] * bool(phases and note)
