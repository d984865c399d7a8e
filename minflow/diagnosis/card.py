"""An error as a card: what, got, expected, where, try; folded below, the graph up to the failed node, and the
traceback. A warning is a smaller card.

Pure functions of a record, which `card_record.py` makes from a traceback. Cards use the colors of the page, in dark
and light themes, and mark only what is wrong; they need only inline styles, `<img>` and `<details>`, so they also work
in untrusted notebooks. Read next: `ipython.py`, when a card is shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from textwrap import wrap

from ..core.base.errors import clean_lines
from ..views.draw.boxes import diagram_of
from ..views.draw.engines import opened_svg, render_svg
from ..views.draw.fold import NEARBY_BOXES, fold_near_end
from ..views.draw.theme import AMBER, AMBER_TEXT, PALE_AMBER, PALE_GREEN, PALE_RED, RED, RED_TEXT, TEXT_COLOR
from ..views.html.page import FAINT_STYLE, picture_card
from ..views.html.table import CROSS_MARK, framed, inner_picture, table
from ..views.records.graph import GraphRecord
from ..views.records.tape import TapeRecord
from ..views.text.listing import clean, cut, graph_text, tape_text

MAX_GRAPH_LINES = 30  # lines of the graph as text
TEXT_WIDTH = 110  # columns of a sentence as text
MAX_CHARS = 4000  # characters of a line, at most
MAX_TITLE = 300  # characters of the title: a deep module has a long name
MAX_LINES = 20  # lines of a part, at most
MIN_GRAPH_OPS = 3  # smallest graph that is shown: the card already describes one or two operations


@dataclass(frozen=True)
class CardRecord:
    """Contents of an error or warning card.

    title: "ShapeError in model.fc1".  what: the sentence.  values: (name, value) that the error names.  got: (name,
    spec) of the inputs of the failed call.  expected: inputs that would fit; empty if unknown.  where, hint: the other
    parts.  raised_as: the error that wrapped it, if any.  graph: recorded up to the failure.  code: the source line of
    the call.  created_at: where the layer was created, and that source line.  notes: `__notes__` added to the error.
    error: False for a warning.
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
    created_at: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    error: bool = True


def rows(record: CardRecord) -> list[tuple[str, list[str]]]:
    """(label, lines) of the rows got, expected, where, created, try, and of the other values that the error names."""
    got = {name for name, _ in record.got}
    others = [pair for pair in record.values if pair[0] not in got]
    created = record.created_at if not record.where.endswith(record.created_at[:1]) else ()
    parts = [
        ("got", [f"{name}  {spec}".strip() for name, spec in record.got]),
        ("with" if record.got else "values", [f"{name}  {value}".strip() for name, value in others]),
        ("expected", [record.expected]),
        ("where", [record.where, *([f"    {record.code}"] if record.code else [])]),
        ("created", [*created[:1], *(f"    {line}" for line in created[1:])]),
        ("try", record.hint.split("\n")),
        ("came as", [record.raised_as]),
        ("note", [note for note in record.notes if "\n" not in note]),
    ]
    return [(name, limit_lines([clean(cut(line, MAX_CHARS)) for line in lines])) for name, lines in parts if any(lines)]


def limit_lines(lines: list[str]) -> list[str]:
    return lines if len(lines) <= MAX_LINES else [*lines[:MAX_LINES], f"... {len(lines) - MAX_LINES:,} more"]


def card_text(record: CardRecord) -> str:
    """The card for terminals, screen readers, and notebooks without pictures."""
    lines = [clean(cut(record.title, MAX_TITLE))]
    lines += [f"  {line}" for line in limit_lines([clean(x) for x in cut(record.what, MAX_CHARS).split("\n")])]
    for name, values in rows(record):
        for i, value in enumerate(values):
            first, rest = f"  {'' if i else name:<9} ", " " * (12 + len(value) - len(value.lstrip()))
            lines += wrap(value, TEXT_WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)
    lines += ["\n" + clean_lines(note) for note in record.notes if "\n" in note]
    if shows_graph(record):
        lines += ["", graph_lines(record.graph)]
    return "\n".join(lines)


def shows_graph(record: CardRecord) -> bool:
    nodes = record.graph.nodes if record.graph is not None else ()
    return sum(n.count for n in nodes if n.kind == "op") >= MIN_GRAPH_OPS


def graph_lines(graph: GraphRecord | TapeRecord) -> str:
    graph = fold_near_end(graph, MAX_GRAPH_LINES)
    return tape_text(graph, MAX_GRAPH_LINES) if isinstance(graph, TapeRecord) else graph_text(graph, MAX_GRAPH_LINES)


PRE_STYLE = (
    "color:inherit;background:transparent;margin:4px 0 0;font-size:12px;line-height:1.35;white-space:pre-wrap;"
    "overflow-wrap:anywhere"
)
SUMMARY_STYLE = f"cursor:pointer;font-size:12px;{FAINT_STYLE}"


def plate_html(text: str, ink: str, ground: str) -> str:
    """Text on a small light background, readable on any page."""
    return f'<span style="color:{ink};background:{ground};border-radius:3px;padding:0 4px">{text}</span>'


def card_html(record: CardRecord, traceback: str = "") -> str:
    """The card in the colors of the page; the traceback is folded."""
    rim, ink, ground = (RED, RED_TEXT, PALE_RED) if record.error else (AMBER, AMBER_TEXT, PALE_AMBER)
    mark = CROSS_MARK if record.error else "!"
    title = plate_html(f"{mark} {escape(clean(cut(record.title, MAX_TITLE)))}", ink, ground)
    inside = [f'<div style="font-size:13px;margin:2px 0 6px;white-space:pre-wrap">{text_html(record.what)}</div>']
    inside.append(table([(name, "<br>".join(marked_lines(record, name, lines)), "") for name, lines in rows(record)]))
    inside += [folded_html(*note.replace(":\n", "\n", 1).split("\n", 1)) for note in record.notes if "\n" in note]
    inside += [graph_html(record), folded_html("traceback", traceback)]
    return framed(rim, title, "".join(inside))


def marked_lines(record: CardRecord, name: str, lines: list[str]) -> list[str]:
    """The lines of a row as HTML, with the wrong input and the expected one on a plate."""
    wrong = wrong_index(record) if name == "got" else -1
    if name == "expected":
        return [plate_html(escape(line), TEXT_COLOR, PALE_GREEN) for line in lines]
    return [plate_html(x, RED_TEXT, PALE_RED) if i == wrong else x for i, x in enumerate(map(escape, lines))]


def wrong_index(record: CardRecord) -> int:
    """Index of the wrong input, the one with an expected value; -1 if unknown."""
    expected = record.expected.partition("  ")[0]
    names = [name.partition(",")[0] for name, _ in record.got]
    return names.index(expected) if expected in names else -1


def folded_html(head: str, text: str) -> str:
    """Text that opens on a click; empty if there is none."""
    if not text:
        return ""
    return (
        f'<details><summary style="{SUMMARY_STYLE}">{escape(clean(head))}</summary>'
        f'<pre style="{PRE_STYLE}">{escape(clean_lines(text))}</pre></details>'
    )


def text_html(text: str) -> str:
    return escape("\n".join(limit_lines([clean(line) for line in cut(text, MAX_CHARS).split("\n")])))


def graph_html(record: CardRecord) -> str:
    """The picture with its text folded below; empty if there is no graph."""
    graph = record.graph
    if graph is None or not shows_graph(record):
        return ""
    diagram = diagram_of(fold_near_end(graph), NEARBY_BOXES)
    svg, opened = render_svg(diagram)[0], opened_svg(graph, len(diagram.boxes))
    picture = inner_picture(picture_card(svg, alt_text(record), graph_lines(graph), live=True, opened=opened))
    return f'<details><summary style="{SUMMARY_STYLE}">{escape(clean(graph.title))}</summary>{picture}</details>'


def alt_text(record: CardRecord) -> str:
    """Alternative text of the picture."""
    inside = f"{record.graph.title}; " if record.graph is not None else ""
    got = ", ".join(f"{name} {spec}" for name, spec in record.got)
    expected = f"expected {record.expected}" if record.expected else ""
    parts = [f"{inside}red: {record.title}", f"got {got}" if got else "", expected]
    return ", ".join(" ".join(part.split()) for part in parts if part)


def card_bundle(record: CardRecord, traceback: str = "") -> dict[str, str]:
    """MIME type -> data."""
    return {"text/html": card_html(record, traceback), "text/plain": card_text(record)}
