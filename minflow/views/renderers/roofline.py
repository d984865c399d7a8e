"""A roofline as a picture: operations per byte to the right, operations per second upwards, both logarithmic.

The slanted lines are the limits of memory bandwidth, for cache and for memory; the horizontal one is the limit of
computing. A mark is a call of a graph, larger for longer calls. Source: Williams, Waterman & Patterson 2009. Depends on
records only. Read next: `../text/plan.py`, the same as text.
"""

from __future__ import annotations

import math

from ..draw import svg_writer as svg, theme
from ..draw.fonts import text_width, truncated
from ..records.reports import PlanCall, Roofline
from ..text.listing import clean, count
from ..text.numbers import ms, percent, rate_text, short_time, step_text
from ..text.plan import intensity, limit_share, note_lines, timed_calls
from .memory_map import OTHER_STYLE, PHASE_STYLES, phase_legend, phases_of

WIDTH, LEFT, RIGHT, TOP, PLOT_HEIGHT = 760, 84, 34, 70, 300
MAX_NAMED_CALLS = 8  # calls with a number in the picture and a line below it
LINE_HEIGHT, MIN_MARK_SIZE, MAX_MARK_SIZE = 17, 3.5, 11  # pixels: line height; least and greatest half size of a mark
MIN_LIMIT_SHARE = 1e-5  # fraction of the limit; slower calls are drawn at the bottom


class Axes:
    """Mapping from values to pixels, with powers of ten from `low` to `high` on both axes."""

    def __init__(self, record: Roofline, calls: list[PlanCall]):
        limits = record.peaks
        xs = [intensity(call) for call in calls]
        ridge = limits.flops / limits.copies[-1][1]
        self.x = math.floor(math.log10(min([*xs, ridge / 30]))), math.ceil(math.log10(max([*xs, ridge * 30])))
        ys = [call.flops / call.seconds for call in calls if call.flops and call.seconds]
        least = max(min([*ys, limits.copies[-1][1] * 10.0 ** self.x[0]]), MIN_LIMIT_SHARE * limits.flops)
        self.y = math.floor(math.log10(least)), math.ceil(math.log10(max([*ys, limits.flops]) * 1.3))

    def across(self, x: float) -> float:
        low, high = self.x
        return LEFT + (math.log10(x) - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    def up(self, y: float) -> float:
        low, high = self.y
        y = max(y, 10.0**low)
        return TOP + PLOT_HEIGHT - (math.log10(y) - low) / (high - low) * PLOT_HEIGHT


def headline(record: Roofline) -> str:
    """The picture in one sentence."""
    limits = record.peaks
    cache, memory = [rate_text(speed, "B") for _, speed in (limits.copies[0], limits.copies[-1])]
    said = f"{clean(record.title)}: {rate_text(limits.flops, 'FLOP')} at most, copies {cache} in the cache, "
    said += f"{memory} in memory"
    return said + (f"; {count(len(record.calls), 'call')}" if record.calls else "")


def roofline_svg(record: Roofline) -> str:
    calls = timed_calls(record)
    placed = [call for call in calls if call.flops]
    axes = Axes(record, placed)
    kernels = "compiled kernels" if record.peaks.compiled else "NumPy's kernels"
    about = f"what {count(record.peaks.threads, 'thread')} can do, measured with {kernels}"
    if calls and record.timing:
        about += f"; the step: {step_text(record.timing.seconds, record.timing)}"
    parts = [
        svg.label(
            svg.PADDING + 2,
            16,
            truncated(record.title, WIDTH - 16, bold=True),
            truncated(about, WIDTH - 16),
            bold=True,
            rest=theme.MUTED,
        )
    ]
    parts += [*frame(axes), *limit_lines(record, axes), *call_marks(record, calls, axes)]
    y = TOP + PLOT_HEIGHT + 62
    phases, note = phases_of(placed), "the larger a mark, the longer the call"
    parts += phase_legend(phases, svg.PADDING, y - 10, lambda x, y, phase: [mark_shape(x + 12, y + 6, 6, phase)], note)
    y += 26 * bool(phases)
    for i, call in enumerate(calls[:MAX_NAMED_CALLS], 1):
        words = f"{ms(call.seconds or 0)}, {percent(limit_share(call, record.peaks))} of what is possible"
        words += "" if call.flops else "; it only moves data, and is not in the diagram"
        name = truncated(f"{i}: {call.name}", WIDTH - 2 * svg.PADDING - 16 - text_width(f", {words}"))
        parts.append(svg.label(svg.PADDING + 2, y, f"{name}, {words}"))
        y += LINE_HEIGHT
    y += LINE_HEIGHT // 2 * bool(record.note)
    for line in note_lines(record):
        parts.append(svg.label(svg.PADDING + 2, y, line, text_color=theme.MUTED))
        y += LINE_HEIGHT
    return svg.picture(parts, WIDTH, y + 2, headline(record))


def power_text(n: int) -> str:
    """A power of ten in full: 10, 0.01, 1000."""
    return f"{10.0**n:.{max(0, -n)}f}"


def frame(axes: Axes) -> list[str]:
    """The axes with a thin line at each power of ten."""
    bottom, right = TOP + PLOT_HEIGHT, WIDTH - RIGHT
    parts = [svg.rect(LEFT, TOP, right - LEFT, PLOT_HEIGHT, fill="none", stroke=theme.LINE)]
    for n in range(axes.x[0], axes.x[1] + 1):
        x = axes.across(10.0**n)
        parts.append(
            svg.path(f"M{x:.1f} {TOP}V{bottom + 4}", stroke=theme.LINE, stroke_width=".5", stroke_dasharray="1 4")
        )
        parts.append(svg.label(x, bottom + 18, power_text(n), anchor="middle", text_color=theme.MUTED))
    for n in range(axes.y[0], axes.y[1] + 1):
        y = axes.up(10.0**n)
        parts.append(
            svg.path(f"M{LEFT - 4} {y:.1f}H{right}", stroke=theme.LINE, stroke_width=".5", stroke_dasharray="1 4")
        )
        parts.append(svg.label(LEFT - 12, y + 4, power_text(n - 9), anchor="end", text_color=theme.MUTED))
    parts.append(svg.label(LEFT + svg.PADDING, TOP - 8, "GFLOP/s", text_color=theme.MUTED))
    said = "operations for each byte that is read or written"
    parts.append(svg.label(right - svg.PADDING, bottom + 39, said, anchor="end", text_color=theme.MUTED))
    return parts


def limit_lines(record: Roofline, axes: Axes) -> list[str]:
    """The limits of bandwidth and computing; the cache's line is dashed, above that of memory."""
    limits, left = record.peaks, 10.0 ** axes.x[0]
    right, level = 10.0 ** axes.x[1], axes.up(limits.flops)
    parts, labels = [], []
    for (size, speed), look, name in ((limits.copies[0], "6 3", "cache"), (limits.copies[-1], "", "memory")):
        start = max(left, 10.0 ** axes.y[0] / speed)
        ridge = limits.flops / speed
        if ridge <= start:
            continue
        x, y = axes.across(start), axes.up(start * speed)
        parts.append(
            svg.path(
                f"M{x:.1f} {y:.1f}L{axes.across(ridge):.1f} {level:.1f}",
                stroke=theme.TEAL,
                stroke_width=2,
                stroke_dasharray=look,
                fill="none",
            )
        )
        low = name == "memory"
        at = start * (ridge / start) ** 0.62
        labels.append(
            svg.label(
                axes.across(at) + (12 if low else -12),
                axes.up(at * speed) + (14 if low else -6),
                f"{name}: {rate_text(speed, 'B')}",
                anchor="start" if low else "end",
            )
        )
    ridge = limits.flops / limits.copies[0][1]
    parts.append(
        svg.path(
            f"M{axes.across(max(left, ridge)):.1f} {level:.1f}H{axes.across(right):.1f}",
            stroke=theme.TEAL,
            stroke_width=2,
        )
    )
    labels.append(
        svg.label(
            WIDTH - RIGHT - svg.PADDING - 4, level - 10, f"computing: {rate_text(limits.flops, 'FLOP')}", anchor="end"
        )
    )
    return parts + labels


def call_marks(record: Roofline, calls: list[PlanCall], axes: Axes) -> list[str]:
    """A mark for each call, the longest first, so that short ones remain visible on top; and the numbers of the
    longest, side by side if their marks overlap.
    """
    longest = max([call.seconds or 0 for call in calls], default=0.0)
    parts: list[str] = []
    groups: list[list] = []  # [x, y, numbers] of overlapping marks
    for i, call in enumerate(calls, 1):
        if not call.flops:
            continue
        x, y = axes.across(intensity(call)), axes.up(call.flops / (call.seconds or 1))
        size = MIN_MARK_SIZE + (MAX_MARK_SIZE - MIN_MARK_SIZE) * math.sqrt((call.seconds or 0) / longest)
        tooltip = (
            call.name,
            f"{short_time(call.seconds or 0)}, {percent(limit_share(call, record.peaks))} of what is possible",
        )
        parts.append(svg.group([svg.titled(tooltip), mark_shape(x, y, size, call.phase)]))
        if i <= MAX_NAMED_CALLS:
            near = next(
                (group for group in groups if abs(group[0] - size - x) < 30 and abs(group[1] - y) < LINE_HEIGHT), None
            )
            if near is None:
                groups.append([x + size, y, [str(i)]])
            else:
                near[2].append(str(i))
    return parts + [svg.label(x + 8, y + 4, ", ".join(numbers)) for x, y, numbers in groups]


def mark_shape(x: float, y: float, size: float, phase: str) -> str:
    """A circle, a square, a triangle or a diamond for the phase, so that phases differ without color."""
    fill, rim, _ = PHASE_STYLES.get(phase, OTHER_STYLE)
    look = {"fill": fill, "stroke": rim, "stroke_width": 1.6, "fill_opacity": ".8"}
    if phase == "backward":
        return svg.rect(x - 0.9 * size, y - 0.9 * size, 1.8 * size, 1.8 * size, **look)
    if phase == "recompute":
        return svg.path(f"M{x:.1f} {y - size:.1f}l{size:.1f} {2 * size:.1f}h{-2 * size:.1f}z", **look)
    if phase == "optimizer":
        side = f"{size:.1f}"
        return svg.path(f"M{x:.1f} {y - size:.1f}l{side} {side}l-{side} {side}l-{side} -{side}z", **look)
    return svg.element("circle", cx=x, cy=y, r=size, **look)
