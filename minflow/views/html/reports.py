"""The reports of a graph in a notebook: cards with tables, bars and pictures.

Pure functions of records, inline styles only, every text escaped; pictures have their text form folded below. Read
next: `../text/reports.py`, the text forms; `../renderers/memory_map.py`, the picture.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from html import escape
from typing import Any

from ..draw import theme
from ..records.reports import (
    FirstCallTimeline,
    GraphTree,
    KernelListing,
    Lanes,
    MemoryMap,
    PlanListing,
    Roofline,
    Stages,
    Threads,
)
from ..renderers.memory_map import headline, memory_svg
from ..renderers.roofline import headline as roofline_headline, roofline_svg
from ..renderers.threads import threads_svg
from ..text.listing import clean, count, shape_of
from ..text.numbers import ms, nbytes_text, percent, shares
from ..text.plan import (
    MAX_CALLS,
    hidden_calls_note,
    hidden_kernels_note,
    kernels_headline,
    limit_share,
    limits_note,
    place_text,
    rates,
    roofline_text,
    shapes,
)
from ..text.reports import memory_text, repeat_text, views_note
from ..text.threads import threads_text, verdict
from ..text.trees import outer_rows, within_limit
from .page import CARD_STYLE, FAINT_STYLE, NO_MATH, RULE_COLOR, picture_card

CELL_STYLE = "padding:2px 10px 2px 0;vertical-align:top;text-align:left;border:0"
NO_WRAP = ";white-space:nowrap"
NAME_STYLE = "min-width:12em;overflow-wrap:anywhere"  # long names wrap, so that the columns to the right stay visible
NUMBER_STYLE = CELL_STYLE.replace("left", "right") + NO_WRAP
PHASE_COLORS = {"forward": theme.BLUE, "backward": theme.AMBER, "recompute": theme.VIOLET, "optimizer": theme.GREEN}
MAX_BAR_WIDTH = 104  # pixels of the longest bar
TRACK_COLOR = "rgba(125,133,144,.2)"  # background of a bar
WARNING_BADGES = ("never ran", "no gradient", "not registered")  # badges that usually indicate a mistake


def td(content: str, look: str = CELL_STYLE) -> str:
    return f'<td style="{look}">{content}</td>'


def safe(text: str) -> str:
    """User-supplied text as HTML."""
    return escape(clean(text))


def printable(text: str) -> str:
    return "\n".join(map(clean, text.split("\n")))


def code(text: str) -> str:
    return f'<span style="font-family:monospace">{safe(text)}</span>'


def faint(text: str) -> str:
    return f'<span style="{FAINT_STYLE}">{safe(text)}</span>'


def table(
    head: tuple[str, ...], rows: list[list[str]], right: tuple[int, ...] = (), look: str = "", whole: int = -1
) -> str:
    """An HTML table.

    rows: HTML.  right: columns of numbers.  look: style of all cells.  whole: a column whose lines do not wrap.
    """
    looks = [NUMBER_STYLE if i in right else CELL_STYLE + NO_WRAP * (i == whole) for i in range(len(head))]
    first = "".join(td(safe(name), f"{look};{FAINT_STYLE};font-weight:600") for name, look in zip(head, looks))
    body = ["".join(td(cell, look) for cell, look in zip(row, looks)) for row in rows]
    lines = "".join(f'<tr style="background:transparent">{cells}</tr>' for cells in (first, *body))
    common = f"border-collapse:collapse;margin:4px 0;background:transparent;color:inherit;font-size:12.5px{look}"
    return f'<table style="{common}">{lines}</table>'


def bar(share: float, color: str = theme.LINE, start: float = 0.0) -> str:
    """A bar that begins at `start`, both as fractions of the full width."""
    left = round(MAX_BAR_WIDTH * start)
    wide = max(1, round(MAX_BAR_WIDTH * (start + share)) - left) if share > 0 else 0
    inner = f'<div style="margin-left:{left}px;width:{wide}px;height:12px;background:{color}"></div>'
    return f'<div style="width:{MAX_BAR_WIDTH}px;margin-top:3px;background:{TRACK_COLOR}">{inner}</div>'


def badge(text: str) -> str:
    colors = (
        f"color:{theme.RED_TEXT};background:{theme.PALE_RED};border:1px solid {theme.RED}"
        if text.startswith(WARNING_BADGES)
        else f"border:1px solid {RULE_COLOR}"
    )
    look = f"{colors};border-radius:8px;padding:0 6px;margin-left:6px;font-size:11.5px;white-space:nowrap"
    return f'<span style="{look}">{safe(text)}</span>'


def card(record: Any, body: str) -> str:
    title = f'<div style="font-size:13px;font-weight:600">{safe(record.title)}</div>'
    return f'<div {NO_MATH} style="{CARD_STYLE};overflow-x:auto;text-align:left">{title}{body}</div>'


def tree_html(record: GraphTree) -> str:
    return within_limit(lambda most: tree_table(record, most))


def tree_table(record: GraphTree, most: int) -> str:
    """The table with at most `most` rows."""
    rows = []
    for i, depth, hidden in outer_rows([row.depth for row in record.rows], most):
        row, left = record.rows[i], f'<div style="margin-left:{min(depth, 24) * 18}px;{NAME_STYLE}">'
        if hidden:
            more = faint(f"... {count(record.modules(i, hidden), 'more module')}")
            rows.append([f"{left}{more}</div>", "", ""])
            continue
        name = row.path.rpartition(".")[2] if row.depth else row.path
        extra = f"({row.extra})" if row.extra else ""
        line = f"{left}{safe(f'{name}: {row.kind}')}{faint(extra) if extra else ''}"
        line += (f" <b>{repeat_text(row)}</b>" if row.count > 1 else "") + "</div>"
        calls = [f"ran {row.calls} times"] if (row.calls or 0) > 1 else []
        marks = "".join(map(badge, (*calls, *row.badges)))
        flow = " \u2192 ".join(safe(", ".join(map(shape_of, specs))) for specs in (row.inputs, row.outputs))
        flow = flow if row.inputs or row.outputs else ""
        rows.append([line, f"{row.params:,}" if row.params else "-", flow + marks])
    return card(record, table(("module", "parameters", "input \u2192 output"), rows, (1,), ";font-family:monospace", 2))


def stages_html(record: Stages) -> str:
    most = max((row.arena for row in record.rows), default=0) or 1
    rows = [
        [
            f"{code(row.name)}<br>{faint(row.does)}",
            f"{row.nodes:,}",
            str(row.removed or "-"),
            str(row.added or "-"),
            nbytes_text(row.arena),
            bar(row.arena / most),
            ms(row.seconds) if row.seconds else "-",
        ]
        for row in record.rows
    ]
    return card(record, table(("pass", "operations", "removed", "added", "memory", "", "time"), rows, (1, 2, 3, 4, 6)))


def lanes_html(record: Lanes) -> str:
    whole = sum(lane.seconds or 0 for lane in record.lanes)
    rows = []
    for lane, whole_percent in zip(record.lanes, shares([lane.seconds or 0 for lane in record.lanes])):
        time = [ms(lane.seconds), f"{whole_percent} %"] if lane.seconds is not None else ["-", "-"]
        part = (lane.seconds or 0) / whole if whole else 0.0
        rows.append(
            [
                safe(lane.phase),
                f"{lane.ops:,}",
                nbytes_text(lane.nbytes),
                *time,
                bar(part, PHASE_COLORS.get(lane.phase, theme.LINE)),
            ]
        )
    ops, nbytes = sum(x.ops for x in record.lanes), sum(x.nbytes for x in record.lanes)
    rows.append(
        ["<b>step</b>", f"{ops:,}", nbytes_text(nbytes), ms(whole) if whole else "-", "100 %" if whole else "-", ""]
    )
    body = table(("phase", "operations", "bytes written", "time", "share", ""), rows, (1, 2, 3, 4))
    body += f'<div style="font-size:12px;margin:0 0 8px">{faint(views_note(record))}</div>' if record.views else ""
    if record.slowest:
        most = max(x.seconds for x in record.slowest) or 1.0
        inside = [
            f"<br>{faint(f'in {x.module}')}" if x.module and not x.name.startswith(x.module) else ""
            for x in record.slowest
        ]
        slow = [
            [
                f'<div style="{NAME_STYLE}">{code(x.name)}{module}</div>',
                safe(x.phase),
                nbytes_text(x.nbytes),
                ms(x.seconds),
                bar(x.seconds / most, PHASE_COLORS.get(x.phase, theme.LINE)),
                code(x.where),
            ]
            for x, module in zip(record.slowest, inside)
        ]
        body += table(("the slowest", "phase", "bytes written", "time", "", "line"), slow, (2, 3), whole=5)
    return card(record, body)


def timeline_html(record: FirstCallTimeline) -> str:
    whole = sum(seconds for _, seconds in record.bars) or 1.0
    rows, start = [], 0.0
    for name, seconds in record.bars:
        rows.append([code(name), ms(seconds), bar(seconds / whole, PHASE_COLORS["forward"], start)])
        start += seconds / whole
    return card(record, table(("what", "time", "one after the other"), rows, (1,)))


def map_html(record: MemoryMap) -> str:
    return picture_card(memory_svg(record), headline(record), printable(memory_text(record)))


def plan_html(record: PlanListing) -> str:
    rows = []
    for call in record.calls[:MAX_CALLS]:
        part, color = limit_share(call, record.peaks), PHASE_COLORS.get(call.phase, theme.LINE)
        flow = " \u2192 ".join(filter(None, map(shapes, (call.inputs, call.outputs))))
        module = f" in {call.module}" if call.module and not call.name.startswith(call.module) else ""
        tasks = f" ({', '.join(dict.fromkeys(call.tasks))})" if call.tasks else ""
        name = f'<div style="{NAME_STYLE}">{safe(call.name)}<br>{faint(flow + tasks)}</div>'
        line = f'<div style="overflow-wrap:anywhere">{safe(call.where + module)}</div>'
        rows.append(
            [
                str(call.step),
                name,
                safe(call.platform),
                safe(place_text(call)),
                nbytes_text(call.nbytes),
                f"{call.seconds * 1e6:,.0f}" if call.seconds else "-",
                *rates(call),
                percent(part) if part else "-",
                bar(min(part, 1.0), color),
                line,
            ]
        )
    head = ("", "operation, shapes (tasks)", "platform", "arena", "bytes", "us", "GFLOP/s", "GB/s", "share", "", "line")
    below = hidden_calls_note(record), limits_note(record.peaks) if record.peaks else ""
    return card(record, table(head, rows, (0, 3, 4, 5, 6, 7, 8)) + notes(*below))


def notes(*texts: str) -> str:
    """Lines below a table; empty ones are left out."""
    return "".join([f'<div style="font-size:12px">{faint(text)}</div>' for text in texts if text])


def kernels_html(record: KernelListing) -> str:
    rows = [
        [
            safe(call.op),
            f"{safe(shapes(call.inputs))} \u2192 {safe(shapes(call.outputs))}",
            safe(call.platform),
            f"{call.count:,}",
        ]
        for call in record.calls[:MAX_CALLS]
    ]
    body = table(("operation", "inputs \u2192 result", "platform", "calls"), rows, (3,)) if rows else ""
    return card(replace(record, title=kernels_headline(record)), body + notes(hidden_kernels_note(record)))


def roofline_html(record: Roofline) -> str:
    return picture_card(roofline_svg(record), roofline_headline(record), roofline_text(record))


def threads_html(record: Threads) -> str:
    return picture_card(threads_svg(record), f"{clean(record.title)}: {verdict(record)}", threads_text(record))


HTML_RENDERERS: dict[type, Callable[[Any], str]] = {
    GraphTree: tree_html,
    Stages: stages_html,
    Lanes: lanes_html,
    FirstCallTimeline: timeline_html,
    MemoryMap: map_html,
    PlanListing: plan_html,
    KernelListing: kernels_html,
    Roofline: roofline_html,
    Threads: threads_html,
}


def report_html(record: Any) -> str:
    """The record as HTML; empty if it is shown as text or contains nothing."""
    empty = isinstance(record, MemoryMap) and not record.blocks
    return HTML_RENDERERS[type(record)](record) if type(record) in HTML_RENDERERS and not empty else ""
