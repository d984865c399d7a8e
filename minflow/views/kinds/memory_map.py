"""The arena of a graph's plan as a picture: addresses upwards, steps to the right, a rectangle for each value.

Phases differ by colour and by hatching, and the large values say their names. Knows records only. Read next:
`../text/reports.py`, the same in words; `../html/page.py`, pictures in a notebook.
"""

from __future__ import annotations

import math

from ..draw import svg_writer as svg
from ..records.reports import Block, MemoryMap
from ..text.reports import nbytes_text
from ..text.tables import cut
from ..text.listing import clean

WIDTH, LEFT, RIGHT, TOP, TALL = 760, 84, 22, 62, 300
INK, SOFT, FAINT, RED = "#24292f", "#57606a", "#d0d7de", "#b42318"
# phase -> (fill, edge, how its hatching leans: 1 rises, -1 falls, 0 is level, None: none)
LOOKS = {
    "forward": ("#dbe8f8", "#1f5fa8", None),
    "backward": ("#fbe3d4", "#a8420a", 1),
    "recompute": ("#e6e0f5", "#5b3fa0", -1),
    "optimizer": ("#dcf1e4", "#1d7a46", 0),
}
OTHER = ("#eceff2", "#4b5563", None)
GRID = 8  # pixels from one line of a hatching to the next
LETTER = 6.3  # pixels, about, of one letter


def peak(record: MemoryMap) -> tuple[int, int]:
    """(step, bytes): where the values take the most at a time, the first such step. A value that is written over the
    one it was made of takes no more room than that."""
    change: dict[int, int] = {}
    starts: dict[int, list[Block]] = {}
    for block in record.blocks:
        change[block.first] = change.get(block.first, 0) + block.nbytes
        change[block.last + 1] = change.get(block.last + 1, 0) - block.nbytes
        starts.setdefault(block.first, []).append(block)
    twice: dict[int, int] = {}  # in the step of the write both are live, in one place
    for block in record.blocks:
        for x in starts.get(block.last, ()):
            shared = min(x.offset + x.nbytes, block.offset + block.nbytes) - max(x.offset, block.offset)
            if block.first < x.first and shared > 0:
                twice[block.last] = twice.get(block.last, 0) + shared
    taken, highest = 0, (0, 0)
    for step in sorted(change):
        taken += change[step]
        real = taken - twice.get(step, 0)
        highest = (step, real) if real > highest[1] else highest
    return highest


def headline(record: MemoryMap) -> str:
    """The map in one sentence."""
    step, most = peak(record)
    return (
        f"{clean(record.title)}: {len(record.blocks)} values of {nbytes_text(record.total)} in all share "
        f"{nbytes_text(record.arena)}; "
        f"most at a time: {nbytes_text(most)}, at step {step} of {record.steps}"
    )


def round_step(whole: int, count: int = 8) -> int:
    """1, 2 or 5 times a power of ten, so that at most about `count` of it are `whole`."""
    size = 1
    while size * count < whole:
        size = size * 5 // 2 if str(size)[0] == "2" else size * 2
    return size


def memory_svg(record: MemoryMap) -> str:
    """The picture. Addresses begin at the bottom."""
    step, most = peak(record)
    phases = [phase for phase in (*LOOKS, "")
              if any(b.phase == phase or (not phase and b.phase not in LOOKS) for b in record.blocks)]
    across = lambda t: LEFT + t / (record.steps + 1) * (WIDTH - LEFT - RIGHT)  # noqa: E731
    up = lambda n: TOP + TALL - n / max(record.arena, 1) * TALL  # noqa: E731
    shares = (
        f"{nbytes_text(record.total)} of values share {nbytes_text(record.arena)}, "
        f"{nbytes_text(record.arena - most)} of it gaps at the peak; outside it: "
        f"states {nbytes_text(record.states)}, new outputs {nbytes_text(record.fresh)} a call"
    )
    parts = [
        svg.text(12, 20, cut(clean(record.title), 100), font_weight="bold", fill=INK),
        svg.text(12, 37, shares, fill=SOFT),
        svg.rect(LEFT, TOP, WIDTH - LEFT - RIGHT, TALL, fill="#ffffff", stroke=FAINT),
    ]
    for i in range(5):
        y = TOP + TALL * (1 - i / 4)
        parts.append(svg.path(f"M{LEFT - 4} {y:g}H{LEFT}", stroke=SOFT))
        parts.append(svg.text(LEFT - 7, y + 4, nbytes_text(record.arena * i // 4), text_anchor="end", fill=SOFT))
    parts.append(svg.text(12, TOP - 9, "address", fill=SOFT))
    size = round_step(record.steps)
    for t in range(0, record.steps + 1, size):
        x = (across(t) + across(t + 1)) / 2
        parts.append(svg.path(f"M{x:.1f} {TOP + TALL}v4", stroke=SOFT))
        parts.append(svg.text(x, TOP + TALL + 17, str(t), text_anchor="middle", fill=SOFT))
    axis = "step of the plan: the operations in the order in which they run"
    parts.append(svg.text(LEFT, TOP + TALL + 33, axis, fill=SOFT))
    parts += drawn(record.blocks, across, up)
    parts += mark(across, step, most)
    parts += legend(phases, TOP + TALL + 46)
    return svg.picture(parts, WIDTH, TOP + TALL + 72, headline(record))


def ends_of(blocks: tuple[Block, ...]) -> list[int]:
    """The last step of each value; where another is written over it in that step, the one before, so that both can be
    seen."""
    starts: dict[int, list[Block]] = {}
    for block in blocks:
        starts.setdefault(block.first, []).append(block)
    meet = lambda x, b: x is not b and x.offset < b.offset + b.nbytes and b.offset < x.offset + x.nbytes  # noqa: E731
    over = [any(meet(x, b) for x in starts.get(b.last, ())) for b in blocks]
    return [b.last - 1 if taken and b.last > b.first else b.last for b, taken in zip(blocks, over)]


def drawn(blocks: tuple[Block, ...], across, up) -> list[str]:
    """The values: of each phase one path for all rectangles and one for their hatching, and over them the names that
    fit.

    No two values take the same place, so the order of drawing shows nothing.
    """
    boxes: dict[tuple[str, float], list[str]] = {}
    lines: dict[str, list[str]] = {}
    names: list[str] = []
    for block, last in zip(blocks, ends_of(blocks)):
        x, y = across(block.first), up(block.offset + block.nbytes)
        wide, tall = max(across(last + 1) - x, 1.0), max(up(block.offset) - y, 0.8)
        phase = block.phase if block.phase in LOOKS else ""
        boxes.setdefault((phase, 0.8 if tall > 3 else 0.3),
                         []).append(f"M{x:.1f} {y:.1f}h{wide:.1f}v{tall:.1f}h{-wide:.1f}z")
        if wide > 4 and tall > 6:
            lines.setdefault(phase, []).append(hatched(x, y, wide, tall, phase))
        names += named(block, x, y, wide, tall)
    parts = []
    for (phase, stroke), paths in boxes.items():
        fill, edge, _ = LOOKS.get(phase, OTHER)
        parts.append(svg.path("".join(paths), fill=fill, stroke=edge, stroke_width=stroke))
    parts += [hatching("".join(paths), phase) for phase, paths in lines.items()]
    return [*parts, svg.group(names, fill=INK, **svg.HALO, stroke_linejoin="round")]


def named(block: Block, x: float, y: float, wide: float, tall: float) -> list[str]:
    """The name of a value and how large it is, where that fits into its rectangle."""
    room = int((wide - 8) / LETTER)
    on_end = room < 12 and wide >= 15 and tall >= 100
    room = int((tall - 8) / LETTER) if on_end else room
    if room < 12 or tall < 15:
        return []
    lines = [clean(block.name), f"{clean(block.spec)}, {nbytes_text(block.nbytes)}"][: 2 if tall >= 32 else 1]
    if on_end:
        middle, bottom = round(x + wide / 2 + 4, 1), round(y + tall - 4, 1)
        return [svg.text(middle, bottom, cut(lines[0], room), transform=f"rotate(-90 {middle} {bottom})")]
    top = y + tall / 2 + 4 - 7.5 * (len(lines) - 1)
    return [svg.text(x + 4, top + 15 * i, cut(line, room)) for i, line in enumerate(lines)]


def mark(across, step: int, most: int) -> list[str]:
    """The step at which the values take the most, and how much that is."""
    x = (across(step) + across(step + 1)) / 2
    anchor = "start" if x < WIDTH / 3 else "end" if x > WIDTH * 2 / 3 else "middle"
    words = f"peak: {nbytes_text(most)} at step {step}"
    return [
        svg.path(f"M{x:.1f} {TOP - 4}V{TOP + TALL}", stroke=RED, stroke_width=1.5, stroke_dasharray="5 3"),
        svg.text(x, TOP - 9, words, fill=RED, font_weight="bold", text_anchor=anchor),
    ]


def hatched(x: float, y: float, wide: float, tall: float, phase: str) -> str:
    """Lines inside a rectangle, all of one grid: rising, falling or level, as the phase has it. Path data."""
    _, _, lean = LOOKS.get(phase, OTHER)
    if lean is None:
        return ""
    lines = []
    a, b = (y, y + tall) if lean == 0 else (x + y, x + wide + y + tall) if lean > 0 else (y - x - wide, y + tall - x)
    for n in range(math.ceil(a / GRID), math.floor(b / GRID) + 1):
        c = n * GRID
        if lean == 0:  # y = c
            x1, x2 = x, x + wide
        elif lean > 0:  # y = c - x
            x1, x2 = max(x, c - y - tall), min(x + wide, c - y)
        else:  # y = c + x
            x1, x2 = max(x, y - c), min(x + wide, y + tall - c)
        if x1 < x2:
            lines.append(f"M{x1:.1f} {c - lean * x1:.1f}L{x2:.1f} {c - lean * x2:.1f}")
    return "".join(lines)


def hatching(path: str, phase: str) -> str:
    """The lines as an element; nothing where there are none."""
    return svg.path(path, stroke=LOOKS.get(phase, OTHER)[1], stroke_opacity=".35", fill="none")


def legend(phases: list[str], y: float) -> list[str]:
    parts = []
    for i, phase in enumerate(phases):
        x, (fill, edge, _) = LEFT + 118 * i, LOOKS.get(phase, OTHER)
        parts.append(svg.rect(x, y, 24, 12, fill=fill, stroke=edge))
        parts.append(hatching(hatched(x, y, 24, 12, phase), phase))
        parts.append(svg.text(x + 30, y + 10, phase or "other", fill=INK))
    note = "computed in; a box: one value, until it is last read"
    return parts + ([svg.text(WIDTH - RIGHT, y + 10, note, text_anchor="end", fill=SOFT)] if len(phases) < 4 else [])
