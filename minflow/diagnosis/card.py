"""An error as a card: what, got, expected, where, try, and the graph up to the node that failed, that node red.

Pure functions of a record, which `diagnosis/failure.py` reads from a traceback. The same on dark and light themes, and
in an untrusted notebook: inline styles, `<img>` and `<details>` only. Read next: `notebook.py`, when a card is shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from textwrap import wrap

from ..views.draw.boxes import diagram_of
from ..views.draw.fold import NEAR, near_the_end
from ..views.html.page import CARD, NO_MATH, picture_card
from ..views.records.structure import GraphRecord, TapeRecord
from ..views.draw.engines import render_svg
from ..views.html.table import CELL, GREEN, INK, NAME, RED, SIGN, low
from ..views.text.listing import clean, cut, graph_text, tape_text

LINES = 30  # of the graph as text
WIDE = 110  # columns of a sentence as text
LONG = 4000  # characters of a line, at most
TITLE = 300  # of the title: a deep module has a long name
MANY = 20  # lines of a part, at most


@dataclass(frozen=True)
class CardRecord:
    """title: "ShapeError in model.fc1".  what: the sentence.  values: (name, value) that the error tells.  got: (name,
    spec) that went into what failed.  expected: what would have gone in, empty where nobody knows.  where, hint: the
    other parts.  told: how the error reached the user, if not by itself.  graph: what was recorded up to there.
    code: the line of code where it was called.  made: the place that made the layer, and the line of code there.
    """

    title: str
    what: str
    values: tuple[tuple[str, str], ...] = ()
    got: tuple[tuple[str, str], ...] = ()
    expected: str = ""
    where: str = ""
    hint: str = ""
    told: str = ""
    graph: GraphRecord | TapeRecord | None = None
    code: str = ""
    made: tuple[str, ...] = ()


def rows(record: CardRecord) -> list[tuple[str, list[str]]]:
    """(what a row is called, its lines): got, expected, where, made at, try; and what else the error tells by name."""
    got = {name for name, _ in record.got}
    others = [pair for pair in record.values if pair[0] not in got]
    found = [
        ("got", [f"{name}  {spec}".strip() for name, spec in record.got]),
        ("with" if record.got else "values", [f"{name}  {value}".strip() for name, value in others]),
        ("expected", [record.expected]),
        ("where", [record.where, *([f"    {record.code}"] if record.code else [])]),
        ("made at", [record.made[0], *(f"    {line}" for line in record.made[1:])] if record.made else []),
        ("try", record.hint.split("\n")),
        ("told by", [record.told]),
    ]
    return [(name, few([clean(cut(line, LONG)) for line in lines])) for name, lines in found if any(lines)]


def few(lines: list[str]) -> list[str]:
    return lines if len(lines) <= MANY else [*lines[:MANY], f"... {len(lines) - MANY:,} more"]


def card_text(record: CardRecord) -> str:
    """The card for a terminal, a screen reader, and a notebook without pictures."""
    lines = [clean(cut(record.title, TITLE)), *[f"  {line}" for line in few([clean(x) for x in cut(record.what, LONG).split("\n")])]]
    for name, values in rows(record):
        for i, value in enumerate(values):
            lines += wrap(value, WIDE, initial_indent=f"  {name if not i else '':<9} ", subsequent_indent=" " * 12, break_on_hyphens=False)
    if record.graph is not None and record.graph.nodes:
        lines += ["", graph_lines(record.graph)]
    return "\n".join(lines)


def graph_lines(graph: GraphRecord | TapeRecord) -> str:
    graph = near_the_end(graph, LINES)
    return tape_text(graph, LINES) if isinstance(graph, TapeRecord) else graph_text(graph, LINES)


COLOURS = {"got": RED, "expected": GREEN}


def card_html(record: CardRecord) -> str:
    """The card on a light ground of its own."""
    parts = [
        f'<div style="color:{RED};font-size:14px;font-weight:600">{SIGN} {escape(clean(cut(record.title, TITLE)))}</div>',
        f'<div style="font-size:13px;margin:2px 0 6px;white-space:pre-wrap">{text_html(record.what)}</div>',
        '<table style="border-collapse:collapse;margin:0;background:#ffffff">',
    ]
    for name, lines in rows(record):
        look = f"{CELL};color:{COLOURS.get(name, INK)}"
        value = "<br>".join(map(escape, lines))
        parts.append(f'<tr style="background:#ffffff"><td style="{NAME}">{name}</td><td style="{look}">{value}</td></tr>')
    parts.append("</table>")
    parts.append(graph_html(record))
    return f'<div {NO_MATH} style="{CARD};border-left:4px solid {RED};padding:8px 12px;text-align:left">{"".join(parts)}</div>'


def text_html(text: str) -> str:
    return escape("\n".join(few([clean(line) for line in cut(text, LONG).split("\n")])))


def graph_html(record: CardRecord) -> str:
    """The picture, with its text folded below it; nothing where there is no graph."""
    if record.graph is None or not record.graph.nodes:
        return ""
    head = f'<div style="font-size:12px;color:#57606a;margin:8px 0 2px">{escape(clean(record.graph.title))}</div>'
    svg = render_svg(diagram_of(near_the_end(record.graph), NEAR))[0]
    return head + low(picture_card(svg, alt(record), graph_lines(record.graph)))


def alt(record: CardRecord) -> str:
    """The picture in words."""
    inside = f"{record.graph.title}; " if record.graph is not None else ""
    got = ", ".join(f"{name} {spec}" for name, spec in record.got)
    parts = [f"{inside}red: {record.title}", f"got {got}" if got else "", f"expected {record.expected}" if record.expected else ""]
    return ", ".join(" ".join(part.split()) for part in parts if part)


def card_bundle(record: CardRecord) -> dict[str, str]:
    """mime type -> data."""
    return {"text/html": card_html(record), "text/plain": card_text(record)}
