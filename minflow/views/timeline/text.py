"""A timeline, or two on one scale, as text for terminals and screen readers.

Read next: `record.py`, the data and the sentences.
"""

from __future__ import annotations

from .record import (
    LANES,
    OPTIONAL_LANES,
    StepTimes,
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
    time_range,
    verdict,
)

COLUMNS = 84  # width of the lanes


def lanes_text(steps: tuple[StepTimes, ...], seconds: float, columns: int = COLUMNS) -> list[str]:
    """A line for each lane; a digit is the last digit of the step's number in the picture, a dot a wait of the loop."""
    drawn = bars(renumbered(steps))
    start = time_range(drawn)[0]
    lines = [[" "] * columns for _ in LANES]
    for bar in sorted(drawn, key=lambda b: b.kind != "wait"):  # busy overwrites wait
        first, last = [min(max(round((t - start) / seconds * columns), 0), columns) for t in (bar.start, bar.stop)]
        if LANES[bar.lane] in ("compute", "GPU") and last == first:
            first = min(first, columns - 1)
            last = first + 1  # the work of every step is visible, even of a short one at the end
        mark = "." if bar.kind == "wait" else "!" if bar.kind == "failed" else str(bar.number % 10)
        lines[bar.lane][first:last] = mark * (last - first)
    named = [f"  {name:9}{''.join(line).rstrip()}".rstrip() for name, line in zip(LANES, lines)]
    return [line for line, cells in zip(named, lines) if "".join(cells).strip() or line.strip() not in OPTIONAL_LANES]


LEGEND = "  (digits: the steps drawn here, counted from 1; .: the loop waits)"


def timeline_text(record: TimelineRecord) -> str:
    """The text of one timeline."""
    shown = record.shown
    a, b = time_range(bars(shown))
    lines = [f"{record.title}: {step_range(shown)} in {ms(b - a)}", *lanes_text(shown, max(b - a, 1e-9)), LEGEND]
    lines += [f"  {record.left_out}"] if record.left_out else []
    lines += [durations_text(record), f"at best async is {formula_text(record)} times as fast as sync", verdict(record)]
    lines += [remarks_text(record)] if remarks_text(record) else []
    return "\n".join(lines)


def pair_text(record: TimelinePair) -> str:
    """Both timelines on one scale, then the gain, and why it is not larger."""
    spans = [time_range(bars(steps)) for steps in record.shown]
    seconds = max([b - a for a, b in spans])
    lines = []
    for one, steps in zip((record.first, record.second), record.shown):
        lines += [f"{one.title}: {step_range(steps)}; {durations_text(one)}", *lanes_text(steps, seconds)]
    lines += [LEGEND] + ([f"  {record.left_out}"] if record.left_out else [])
    lines += [
        f"at best: {formula_text(record.first)} times as fast",
        f"measured: {measured_text(record)}",
        pair_verdict(record),
    ]
    lines += list(dict.fromkeys([more for one in (record.first, record.second) if (more := remarks_text(one))]))
    return "\n".join(lines)
