"""An error as a card: what, got, expected, where, try, and the graph up to the node that failed, that node red.

Pure functions of a record, which `card_record.py` makes of a traceback. The same on dark and light themes, and
in an untrusted notebook: inline styles, `<img>` and `<details>` only. Read next: `notebook.py`, when a card is shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from textwrap import wrap

from ..views.draw.boxes import diagram_of
from ..views.draw.fold import NEAR, near_the_end
from ..views.html.page import FAINT, picture_card
from ..views.records.graph import GraphRecord
from ..views.records.tape import TapeRecord
from ..views.draw.engines import render_svg
from ..views.html.table import BAD, GOOD, SIGN, framed, inner_picture, table
from ..views.text.listing import clean, cut, graph_text, tape_text

LINES = 30  # of the graph as text
WIDE = 110  # columns of a sentence as text
LONG = 4000  # characters of a line, at most
TITLE = 300  # of the title: a deep module has a long name
MANY = 20  # lines of a part, at most


@dataclass(frozen=True)
class CardRecord:
    """title: "ShapeError in model.fc1".  what: the sentence.  values: (name, value) that the error gives.  got: (name,
    spec) that went into what failed.  expected: what would have gone in, empty where nobody knows.  where, hint: the
    other parts.  raised_as: the error that carried it to the user, if another did.  graph: what was recorded up to
    there.  code: the line of code where it was called.  created: the place that created the layer, and its line.
    """

    title: str
    what: str
    values: tuple[tuple[str, str], ...] = ()
    got: tuple[tuple[str, str], ...] = ()
    expected: str = ""
    where: str = ""
    hint: str = ""
    raised_as: str = ""
    graph: GraphRecord | TapeRecord | None = None
    code: str = ""
    created: tuple[str, ...] = ()


def rows(record: CardRecord) -> list[tuple[str, list[str]]]:
    """(name of a row, its lines): got, expected, where, made at, try; and the other values that the error names."""
    got = {name for name, _ in record.got}
    others = [pair for pair in record.values if pair[0] not in got]
    parts = [
        ("got", [f"{name}  {spec}".strip() for name, spec in record.got]),
        ("with" if record.got else "values", [f"{name}  {value}".strip() for name, value in others]),
        ("expected", [record.expected]),
        ("where", [record.where, *([f"    {record.code}"] if record.code else [])]),
        ("made at", [*record.created[:1], *(f"    {line}" for line in record.created[1:])]),
        ("try", record.hint.split("\n")),
        ("came as", [record.raised_as]),
    ]
    return [(name, few([clean(cut(line, LONG)) for line in lines])) for name, lines in parts if any(lines)]


def few(lines: list[str]) -> list[str]:
    return lines if len(lines) <= MANY else [*lines[:MANY], f"... {len(lines) - MANY:,} more"]


def card_text(record: CardRecord) -> str:
    """The card for a terminal, a screen reader, and a notebook without pictures."""
    lines = [clean(cut(record.title, TITLE))]
    lines += [f"  {line}" for line in few([clean(x) for x in cut(record.what, LONG).split("\n")])]
    for name, values in rows(record):
        for i, value in enumerate(values):
            first, rest = f"  {'' if i else name:<9} ", " " * 12
            lines += wrap(value, WIDE, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)
    if record.graph is not None and record.graph.nodes:
        lines += ["", graph_lines(record.graph)]
    return "\n".join(lines)


def graph_lines(graph: GraphRecord | TapeRecord) -> str:
    graph = near_the_end(graph, LINES)
    return tape_text(graph, LINES) if isinstance(graph, TapeRecord) else graph_text(graph, LINES)


COLORS = {"got": BAD, "expected": GOOD}


def card_html(record: CardRecord) -> str:
    """The card, in the colours of the page."""
    title = escape(clean(cut(record.title, TITLE)))
    what = f'<div style="font-size:13px;margin:2px 0 6px;white-space:pre-wrap">{text_html(record.what)}</div>'
    marked = [(name, "<br>".join(map(escape, lines)), COLORS.get(name, "")) for name, lines in rows(record)]
    return framed(BAD, f"{SIGN} {title}", what + table(marked) + graph_html(record))


def text_html(text: str) -> str:
    return escape("\n".join(few([clean(line) for line in cut(text, LONG).split("\n")])))


def graph_html(record: CardRecord) -> str:
    """The picture, with its text folded below it; nothing where there is no graph."""
    if record.graph is None or not record.graph.nodes:
        return ""
    head = f'<div style="font-size:12px;{FAINT};margin:8px 0 2px">{escape(clean(record.graph.title))}</div>'
    svg = render_svg(diagram_of(near_the_end(record.graph), NEAR))[0]
    return head + inner_picture(picture_card(svg, alt(record), graph_lines(record.graph)))


def alt(record: CardRecord) -> str:
    """The picture in words."""
    inside = f"{record.graph.title}; " if record.graph is not None else ""
    got = ", ".join(f"{name} {spec}" for name, spec in record.got)
    expected = f"expected {record.expected}" if record.expected else ""
    parts = [f"{inside}red: {record.title}", f"got {got}" if got else "", expected]
    return ", ".join(" ".join(part.split()) for part in parts if part)


def card_bundle(record: CardRecord) -> dict[str, str]:
    """mime type -> data."""
    return {"text/html": card_html(record), "text/plain": card_text(record)}
