"""The calls of a plan as a table: operation, place of the result, duration, and share of the processor's limit;
and the limits of the processor in words.

Read next: `../renderers/roofline.py`, the same as a picture.
"""

from __future__ import annotations

from collections import Counter
from textwrap import wrap

from ..records.reports import KernelListing, PlanCall, PlanListing, Roofline, RooflinePeaks
from .listing import clean, count, cut, shape_of
from .numbers import ms, nbytes_text, percent, rate_text, step_text
from .tables import LINE_WIDTH, ON_PAGE, Bar, Cell, Sheet, Table, table

MAX_CALLS = 50  # calls that are shown, from the first
NAME_WIDTH, SHAPES_WIDTH, PLACE_WIDTH = 28, 18, 14  # columns of a name, of output shapes, of a source line
FLOW_WIDTH = 50  # columns of the shapes of inputs and result
MAX_LISTED_CALLS = 20  # calls listed below a roofline


def limit_share(call: PlanCall, peaks: RooflinePeaks | None) -> float:
    """Fraction of the processor's limit that the call reached: of computing if that takes longer than reading and
    writing, else of copying.
    """
    return peaks.min_seconds(call) / call.seconds if call.seconds and peaks else 0.0


def rates(call: PlanCall) -> tuple[str, str]:
    """(GFLOP/s, GB/s) of a timed call."""
    if not call.seconds:
        return "-", "-"
    operations = f"{call.flops / call.seconds / 1e9:.1f}" if call.flops else "-"
    return operations, f"{call.moved / call.seconds / 1e9:.1f}"


def shapes(specs: tuple[str, ...]) -> str:
    """Format shapes: 100×784, 784×512."""
    return clean(", ".join(map(shape_of, specs)))


def place_text(call: PlanCall) -> str:
    """The offset in the arena, or the place of a result elsewhere."""
    return call.place if call.offset is None else nbytes_text(call.offset)


def limits_note(peaks: RooflinePeaks) -> str:
    """The limits, and the meaning of a share."""
    cache, memory = [rate_text(speed, "B") for _, speed in (peaks.copies[0], peaks.copies[-1])]
    return (
        f"the share is of {rate_text(peaks.flops, 'FLOP')}, or where copying as many bytes takes longer of "
        f"that: {cache} in the cache, {memory} in memory"
    )


def kernels_headline(record: KernelListing) -> str:
    """The number of calls on each platform; if there are none, where else to look."""
    calls: Counter[str] = Counter()
    for call in record.calls:
        calls[call.platform] += call.count
    found = ", ".join([f"{n:,} {platform}" for platform, n in calls.most_common()])
    return f"{record.title}: {found or 'none ran in eager mode; graph.plan lists those of a graph'}"


def kernels_sheet(record: KernelListing) -> Sheet:
    rows = []
    for call in record.calls[:MAX_CALLS]:
        flow = f"{shapes(call.inputs)} -> {shapes(call.outputs)}"
        name, arrays = Cell(cut(clean(call.op), NAME_WIDTH), call.op), Cell(cut(flow, FLOW_WIDTH), flow)
        rows.append((name, arrays, call.platform, f"{call.count:,}"))
    parts: list[Table | str] = [Table(("operation", "inputs -> result", "platform", "calls"), rows, (3,))] * bool(rows)
    left = len(record.calls) - MAX_CALLS
    parts += [f"... {count(left, 'more row')}: .record.calls has all"] if left > 0 else []
    return Sheet(kernels_headline(record), parts)


def plan_sheet(record: PlanListing) -> Sheet:
    rows: list[tuple[str | Cell | Bar, ...]] = []
    for call in record.calls[:MAX_CALLS]:
        part = limit_share(call, record.peaks)
        flow = " -> ".join(filter(None, map(shapes, (call.inputs, call.outputs))))
        tasks = f" ({', '.join(dict.fromkeys(call.tasks))})" if call.tasks else ""
        module = f"in {call.module}" if call.module and not call.name.startswith(call.module) else ""
        rows.append(
            (
                str(call.step),
                Cell(cut(clean(call.name), NAME_WIDTH), call.name, flow + tasks),
                cut(shapes(call.outputs), SHAPES_WIDTH),
                call.platform,
                place_text(call),
                nbytes_text(call.nbytes),
                f"{call.seconds * 1e6:,.0f}" if call.seconds else "-",
                *rates(call),
                percent(part) if part else "-",
                Bar(None, min(part, 1.0), phase=call.phase),
                Cell(cut(clean(call.where), PLACE_WIDTH), call.where, module),
            )
        )
    head = ("", "operation", Cell("result", None), "platform", "arena", "bytes", "us", "GFLOP/s", "GB/s", "share")
    table = Table((*head, ON_PAGE, "line"), rows, (0, 4, 5, 6, 7, 8, 9))
    parts: list[Table | str] = [table] * bool(rows)
    left = len(record.calls) - MAX_CALLS
    parts += [f"... {count(left, 'more call')}: .slowest(10) has the slowest, .record.calls all"] if left > 0 else []
    parts += [limits_note(record.peaks)] if record.peaks else []
    return Sheet(record.title, [*parts, *map(clean, record.notes)])


def intensity(call: PlanCall) -> float:
    """Operations per byte read or written."""
    return (call.flops or 0) / max(call.moved, 1)


def timed_calls(record: Roofline) -> list[PlanCall]:
    """The timed calls, slowest first."""
    return sorted([call for call in record.calls if call.seconds], key=lambda call: -(call.seconds or 0))


def note_lines(record: Roofline) -> list[str]:
    """The note in lines of at most LINE_WIDTH columns."""
    return [clean(line) for line in wrap(record.note, LINE_WIDTH)]


def roofline_text(record: Roofline) -> str:
    limits = record.peaks
    rows = [("computing", "float32", rate_text(limits.flops, "FLOP"))]
    rows += [("copying", nbytes_text(size), rate_text(speed, "B")) for size, speed in limits.copies]
    kernels = "compiled kernels" if limits.compiled else "NumPy's kernels"
    lines = [
        clean(record.title),
        f"measured with {count(limits.threads, 'thread')}, {kernels}",
        *note_lines(record),
        *table(rows, (1, 2)),
        f"above {limits.flops / limits.copies[-1][1]:.1f} operations per byte, computing takes longer than reading "
        "and writing memory",
    ]
    calls = timed_calls(record)
    if calls:
        whole = sum(call.seconds or 0 for call in calls)
        listed: list[tuple[str, ...]] = [("", "operation", "us", "of all", "FLOP/byte", "GFLOP/s", "GB/s", "share")]
        for i, call in enumerate(calls[:MAX_LISTED_CALLS], 1):
            seconds = call.seconds or 0.0
            listed.append(
                (
                    str(i),
                    cut(clean(call.name), NAME_WIDTH + SHAPES_WIDTH),
                    f"{seconds * 1e6:,.0f}",
                    percent(seconds / whole),
                    f"{intensity(call):.2f}" if call.flops else "-",
                    *rates(call),
                    percent(limit_share(call, limits)),
                )
            )
        lines += ["", *table(listed, (0, 2, 3, 4, 5, 6, 7))]
        left = len(calls) - MAX_LISTED_CALLS
        all_text = f"in all {step_text(whole, record.timing)}"
        lines += [f"... {count(left, 'more call')}; {all_text}"] if left > 0 else [all_text]
        least = sum(limits.min_seconds(call) for call in calls)
        lines.append(f"at the ceilings all would take {ms(least)}: {percent(least / whole)}")
    return "\n".join(lines)
