"""Reports of an nn.Graph as text, for terminals, screen readers and golden tests.

About 100 columns, so that lines do not wrap in a notebook beside its file browser. Pure functions: equal records give
equal text. Read next: `../../introspection/graph/listing/reports.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from textwrap import wrap
from typing import Any

from ...core.base.display import Display
from ..records.reports import (
    Block,
    Change,
    FirstCallTimeline,
    FrozenValues,
    GraphReport,
    GraphTree,
    KernelListing,
    Lanes,
    MemoryMap,
    Operation,
    PlanListing,
    PlanReasons,
    RankLanes,
    Roofline,
    SbpCalls,
    Stages,
    Threads,
    TreeRow,
)
from .listing import clean, count, shape_of
from .numbers import ms, nbytes_text, percent, shares, step_text
from .plan import kernels_sheet, plan_sheet, roofline_text
from .ranks import ranks_text
from .sharding import sbp_sheet
from .tables import LINE_WIDTH, ON_PAGE, Bar, Cell, Sheet, Table, cut, sheet_text, table
from .threads import threads_text
from .trees import outer_rows, within_limit

PICTURE_COLUMNS = 60  # columns of a picture of characters
PICTURE_ROWS = 12
OPERATION_WIDTH = 98  # columns of an operation
SHAPES_WIDTH = 50  # columns of the input and output shapes of a module
MAX_LISTED_VALUES = 12  # values of the arena that are listed
CONTEXT_LINES = 1  # unchanged operations shown around a change


class Report(Display):
    """A report that prints as text, and is a table or a picture in a notebook. `.record` is the data, `.text` the
    text.
    """

    def __init__(self, record: GraphReport):
        self.record = record

    @property
    def text(self) -> str:
        shown = RENDERERS[type(self.record)](self.record)
        return shown if isinstance(shown, str) else sheet_text(shown)

    def __repr__(self) -> str:
        return self.text


class PlanReport(Report):
    """The calls of a plan; prints as a table."""

    record: PlanListing

    def slowest(self, n: int = 10) -> PlanReport:
        """The `n` calls that took the longest, slowest first."""
        calls = sorted(self.record.calls, key=lambda call: -(call.seconds or 0))[:n]
        whole = sum(call.seconds or 0 for call in self.record.calls) or 1.0
        part = percent(sum(call.seconds or 0 for call in calls) / whole)
        title = f"{self.record.title}; the {len(calls)} slowest take {part} of the time"
        return PlanReport(replace(self.record, title=title, calls=tuple(calls)))


# ---- the tree --------------------------------------------------------------------------------------------------------


def repeat_text(row: TreeRow) -> str:
    """Number of modules that a row represents; its parameters are those of each."""
    return f"x{row.count:,}" + (" (each)" if row.params else "")


def tree_text(record: GraphTree) -> str:
    return within_limit(lambda most: sheet_text(tree_sheet(record, most)))


def tree_sheet(record: GraphTree, most: int) -> Sheet:
    """The tree with at most `most` rows."""
    rows: list[tuple[str | Cell, ...]] = []
    for i, depth, hidden in outer_rows([row.depth for row in record.rows], most):
        row, indent = record.rows[i], "  " * depth
        if hidden:
            more = f"{indent}... {count(record.modules(i, hidden), 'more module')}"
            rows.append((Cell(more, more), "", ""))
            continue
        name = f"{indent}{clean(row.path.rpartition('.')[2] if depth else row.path)}: {clean(row.kind)}"
        short, extra = [f"({x})" if x else "" for x in (cut(clean(row.extra), 26), row.extra)]
        times = f"  {repeat_text(row)}" if row.count > 1 else ""
        both, known = (row.inputs, row.outputs), bool(row.inputs or row.outputs)
        flow = cut(" -> ".join(map(", ".join, both)), SHAPES_WIDTH) if known else ""
        shapes = " -> ".join([", ".join(map(shape_of, specs)) for specs in both]) if known else ""
        calls = (f"ran {row.calls} times",) if (row.calls or 0) > 1 else ()
        rows.append(
            (
                Cell(f"{name}{short}{times}", f"{name}{extra}{times}"),
                f"{row.params:,}" if row.params else "-",
                Cell(flow, shapes, badges=(*calls, *row.badges)),
            )
        )
    return Sheet(record.title, [Table(("module", "parameters", "input -> output"), rows, (1,))])


# ---- passes ----------------------------------------------------------------------------------------------------------


def stages_sheet(record: Stages) -> Sheet:
    most = max((row.arena for row in record.rows), default=0) or 1
    rows = [
        (
            row.name,
            f"{row.nodes:,}",
            str(row.removed or "-"),
            str(row.added or "-"),
            nbytes_text(row.arena),
            Bar(None, row.arena / most),
            ms(row.seconds) if row.seconds else "-",
            row.does,
        )
        for row in record.rows
    ]
    head = ("pass", "operations", "removed", "added", "arena", ON_PAGE, "time", "what it does")
    return Sheet(record.title, [Table(head, rows, (1, 2, 3, 4, 6))])


def change_text(record: Change) -> str:
    lines, marks = [clean(record.title)], [mark for mark, _ in record.lines]
    near = [any(m != " " for m in marks[max(i - CONTEXT_LINES, 0) : i + CONTEXT_LINES + 1]) for i in range(len(marks))]
    i = 0
    while i < len(marks):
        if near[i]:
            text = clean(record.lines[i][1])
            # Long lines may differ only at the end, so cutting would make before and after look equal.
            parts = (
                wrap(text, OPERATION_WIDTH, subsequent_indent="    ", break_on_hyphens=False)
                if marks[i] != " "
                else [cut(text, OPERATION_WIDTH)]
            )
            lines += [f"{marks[i]} {part}".rstrip() for part in parts]
            i += 1
            continue
        end = i
        while end < len(marks) and not near[end]:
            end += 1
        lines.append(f"  ... {end - i} operations as before")
        i = end
    return "\n".join(lines if any(m != " " for m in marks) else [*lines, "  nothing changed"])


# ---- a step ----------------------------------------------------------------------------------------------------------


def lanes_sheet(record: Lanes) -> Sheet:
    whole = sum(lane.seconds or 0 for lane in record.lanes)
    rows: list[tuple[str | Cell | Bar, ...]] = []
    for lane, whole_percent in zip(record.lanes, shares([lane.seconds or 0 for lane in record.lanes])):
        share = (lane.seconds or 0) / whole if whole else 0.0
        time = (ms(lane.seconds), f"{whole_percent}%") if lane.seconds is not None else ("-", "-")
        bar = Bar("#" * round(24 * share), share, phase=lane.phase)
        rows.append((lane.phase, f"{lane.ops:,}", nbytes_text(lane.nbytes), *time, bar))
    ops, nbytes = sum(x.ops for x in record.lanes), sum(x.nbytes for x in record.lanes)
    rows.append(("step", f"{ops:,}", nbytes_text(nbytes), ms(whole) if whole else "-", "", ""))
    parts: list[Table | str] = [Table(("phase", "operations", "written", "time", "share", ""), rows, (1, 2, 3, 4))]
    parts += [f"a step takes {step_text(whole, record.timing)}"] if whole else []
    parts += [views_note(record)] if record.views else []
    if record.slowest:
        most = max(x.seconds for x in record.slowest) or 1.0
        slow = [
            (
                Cell(cut(clean(x.name), 52), x.name),
                x.phase,
                nbytes_text(x.nbytes),
                ms(x.seconds),
                Bar(None, x.seconds / most, phase=x.phase),
                location_text(x),
            )
            for x in record.slowest
        ]
        parts.append(Table(("the slowest", "phase", "written", "time", ON_PAGE, "line, module"), slow, (2, 3)))
    return Sheet(record.title, parts)


def views_note(record: Lanes) -> str:
    are = "is a view" if record.views == 1 else "are views"
    return f"{record.views:,} of the operations {are} and need{'s' * (record.views == 1)} no call"


def location_text(x: Operation) -> str:
    """Source line and module of an operation: `In[3]:12 in model.fc1`."""
    return clean(x.where) + (f" in {cut(clean(x.module), 32)}" if x.module else "")


def memory_text(record: MemoryMap) -> str:
    lines = [
        clean(record.title),
        *[line for sentence in memory_sentences(record) for line in wrap(sentence, LINE_WIDTH)],
        f"{record.in_place} updates are written in place, into the states; "
        f"no placement needs less than {nbytes_text(record.least)}",
    ]
    if record.device:
        name, *sizes = record.device
        arrays, pool, free, whole = map(nbytes_text, sizes)
        lines.append(f"{name}: arrays {arrays}, the pool holds {pool}; {free} of {whole} are free for all processes")
    if record.blocks:
        lines += [*wrap(peak_text(record), LINE_WIDTH), "", *memory_picture(record)]
        rows: list[tuple[str, ...]] = [("the largest values", "spec", "offset", "bytes", "steps")]
        for block in sorted(record.blocks, key=lambda b: (-b.nbytes, b.first, b.offset))[:MAX_LISTED_VALUES]:
            span = f"{block.first} to {block.last}" if block.last < record.steps else f"{block.first} to the end"
            rows.append((cut(clean(block.name), 52), block.spec, f"{block.offset:,}", f"{block.nbytes:,}", span))
        lines += ["", *table(rows, (2, 3))]
    return "\n".join(lines)


def memory_sentences(record: MemoryMap) -> list[str]:
    """The arena, its peak, and the memory outside it, related by numbers."""
    step, most = peak(record)
    outside = [("parameters, buffers and other states", record.states), ("inputs", record.inputs)]
    outside += [("workspace of the kernels", record.workspace), ("new outputs of each call", record.fresh)]
    around = ", ".join([f"{name} {nbytes_text(n)}" for name, n in outside if n])
    whole = record.arena + sum([n for _, n in outside])
    used = f"{nbytes_text(most)} of it are in use and {nbytes_text(record.arena - most)} are gaps"
    values = f"for {count(len(record.blocks), 'value')} of {nbytes_text(record.total)} in all"
    inside = (
        f"The arena has {nbytes_text(record.arena)}, {values}: at the peak, in step {step} of {record.steps}, {used}."
    )
    outside_text = f"Outside it: {around}. Together {nbytes_text(whole)}."
    return [inside if record.blocks else "The arena is empty.", *[outside_text] * bool(around)]


def peak(record: MemoryMap) -> tuple[int, int]:
    """(step, bytes) of the peak: the first step at which the values take most memory. A value that overwrites its input
    takes no additional memory.
    """
    change: dict[int, int] = {}
    starts: dict[int, list[Block]] = {}
    for block in record.blocks:
        change[block.first] = change.get(block.first, 0) + block.nbytes
        change[block.last + 1] = change.get(block.last + 1, 0) - block.nbytes
        starts.setdefault(block.first, []).append(block)
    twice: dict[int, int] = {}  # step of an overwrite -> bytes shared by both values, which are live in that step
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


def values_at_peak(record: MemoryMap) -> list[Block]:
    """The values that are live at the peak, largest first; if two share a place, only the new one."""
    step, _ = peak(record)
    live = [b for b in record.blocks if b.first <= step <= b.last]
    written = [b for b in live if b.first == step]
    over = [
        b
        for b in live
        if b.first < step and any(b.offset < x.offset + x.nbytes and x.offset < b.offset + b.nbytes for x in written)
    ]
    return sorted([b for b in live if b not in over], key=lambda b: (-b.nbytes, b.offset))


def peak_text(record: MemoryMap, most: int = 3) -> str:
    """The largest values at the peak."""
    live = values_at_peak(record)
    named = ", ".join(f"{cut(clean(b.name), 40)} {nbytes_text(b.nbytes)}" for b in live[:most])
    left = f" and {count(len(live) - most, 'smaller one')}" if len(live) > most else ""
    return f"The largest at the peak: {named}{left}."


def memory_picture(record: MemoryMap) -> list[str]:
    """Addresses downwards, steps to the right; a digit is the occupied share of a cell in tenths, # a full cell."""
    columns = min(PICTURE_COLUMNS, record.steps + 1)
    size, step = max(record.arena, 1) / PICTURE_ROWS, (record.steps + 1) / columns
    lines = [f"{'address':>9}  steps 0 to {record.steps} ->"]
    for row in range(PICTURE_ROWS):
        low, high = row * size, (row + 1) * size
        full = [
            sum(occupied_bytes(b, low, high, int(c * step), int((c + 1) * step)) for b in record.blocks)
            for c in range(columns)
        ]
        lines.append(f"{nbytes_text(int(low)):>9} |{''.join([cell(n / size) for n in full])}|")
    return lines


def occupied_bytes(block: Block, low: float, high: float, first: int, last: int) -> float:
    """Bytes of [low, high) that the block occupies at step `first` (or at any step before `last`)."""
    if block.first > max(last - 1, first) or block.last < first:
        return 0.0
    return max(0.0, min(high, block.offset + block.nbytes) - max(low, block.offset))


def cell(share: float) -> str:
    return " " if share < 0.05 else "#" if share >= 0.95 else str(min(9, max(1, round(share * 10))))


def timeline_sheet(record: FirstCallTimeline) -> Sheet:
    whole = sum(seconds for _, seconds in record.bars) or 1.0
    rows, start = [], 0.0
    for name, seconds in record.bars:
        left = round(40 * start / whole)
        bar = " " * left + "#" * max(1, round(40 * (start + seconds) / whole) - left)
        rows.append((name, ms(seconds), Bar(f"|{bar:<40}|", seconds / whole, start / whole, "forward")))
        start += seconds
    return Sheet(record.title, [Table(("", "", ""), rows, (1,)) if rows else "it has not been called yet"])


# ---- plans ---------------------------------------------------------------------------------------------------------


def frozen_values_text(record: FrozenValues) -> str:
    lines = [clean(record.title)]
    for head, rows in (("fixed in this plan", record.built_in), ("read anew at each call", record.free)):
        lines.append(f"{head}:")
        lines += [
            f"  {line}" for line in table([(clean(what), clean(value)) for what, value in rows] or [("nothing", "")])
        ]
    return "\n".join(lines)


def plan_reasons_text(record: PlanReasons) -> str:
    lines = [clean(record.title)]
    for plan in record.plans:
        inputs = ", ".join(f"{clean(name)} {spec}" for name, spec in plan.inputs)
        lines.append(
            f"plan {plan.number}: {inputs or 'no inputs'}; {plan.nodes} operations, made in {ms(plan.seconds)}"
        )
        shown = plan.reasons[:8]
        lines += [f"  because {clean(what)}: {clean(old)} -> {clean(new)}" for what, old, new in shown]
        if len(plan.reasons) > len(shown):
            lines.append(f"  and {len(plan.reasons) - len(shown)} more of the kind")
        lines += [f"  {clean(plan.note)}"] if plan.note else []
        lines += [f"  Try: {clean(hint)}" for hint in plan.hints]
    return "\n".join(lines)


RENDERERS: dict[type, Callable[[Any], str | Sheet]] = {
    GraphTree: tree_text,
    Stages: stages_sheet,
    Change: change_text,
    Lanes: lanes_sheet,
    MemoryMap: memory_text,
    FirstCallTimeline: timeline_sheet,
    FrozenValues: frozen_values_text,
    PlanReasons: plan_reasons_text,
    SbpCalls: sbp_sheet,
    RankLanes: ranks_text,
    PlanListing: plan_sheet,
    KernelListing: kernels_sheet,
    Roofline: roofline_text,
    Threads: threads_text,
}
