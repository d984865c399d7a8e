"""Where two implementations part: the first operation that gives other numbers, red; what was equal before it, green.

The record of `graph.compare(reference)` with its text and its picture; pure functions. Read next:
`../nn/graph/compare/compare.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from ..draw.fold import NEAR, near_the_end
from ..html.table import CELL, GREEN, INK, NAME, RED, SIGN, low
from ..draw.boxes import diagram_of
from ..html.page import CARD, NO_MATH, picture_card
from ..records.structure import GraphRecord
from ..draw.engines import render_svg
from ..text.listing import clean

LISTED = 12  # operations that are listed before the first that differs


@dataclass(frozen=True)
class PartingRow:
    """An operation of the graph. state: "equal", "differs", or "only" where the reference has none like it.

    there: the operation of the reference it was compared with.  difference: the largest |a - b|, NaN where only one is
    NaN.
    """

    name: str
    spec: str
    where: str
    state: str
    there: str = ""
    difference: float = 0.0


@dataclass(frozen=True)
class Parting:
    """rows: the operations in the order of the graph.  equal: both gave the same.  at: the number of the first that
    parts, or None.

    why: (name, sentence) of that operation.  output: the largest difference of what the two gave; None if the shapes
    differ.
    extra: operations that only the reference has.  tolerance: (rtol, atol), None for the default.
    graph: the picture, up to the first that parts.  reference: its name.  shapes: those of the outputs, where they
    differ.
    """

    title: str
    rows: tuple[PartingRow, ...]
    equal: bool
    at: int | None
    why: tuple[tuple[str, str], ...]
    output: float | None
    extra: tuple[str, ...]
    tolerance: tuple[float | None, float | None]
    graph: GraphRecord
    reference: str = "the reference"
    shapes: str = ""

    @property
    def first(self) -> PartingRow | None:
        """The first operation where the two part; None where they agree."""
        return None if self.at is None else self.rows[self.at]

    def __repr__(self) -> str:
        return parting_text(self)

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        bundle = {"text/plain": repr(self)}
        try:
            bundle["text/html"] = parting_html(self)
        except Exception as error:  # showing a thing must not break a cell
            bundle["text/plain"] += f"\n(no picture: {type(error).__name__}: {error})"
        return bundle


def number(x: float) -> str:
    return f"{x:.3g}"


def parting_text(record: Parting) -> str:
    lines = [clean(record.title)]
    end = len(record.rows) if record.at is None else record.at + 1
    start = max(0, end - LISTED)
    if start:
        same = sum(row.state == "equal" for row in record.rows[:start])
        lines.append(f"  ... {start} before, {same} of them equal")
    signs = {"equal": "  =", "only": "  ?", "differs": ">>>"}
    width = max([len(clean(row.name)) for row in record.rows[start:end]], default=0)
    for i, row in enumerate(record.rows[start:end], start):
        sign = ">>>" if i == record.at else signs[row.state]
        note = "" if row.state == "only" else f"  differs by {number(row.difference)}" if row.state == "differs" else ""
        lines.append(f"{sign} {clean(row.name):<{width}}  {clean(row.spec)}{note}  {clean(row.where)}".rstrip())
    lines += [clean(f"      {name}: {text}") for name, text in record.why]
    return "\n".join([*lines, *(clean(f"{name}: {text}") for name, text in ending(record))])


def ending(record: Parting) -> list[tuple[str, str]]:
    """(name, sentence): what both gave, and what only one of them has, where `why` has not told it."""
    if record.output is None:
        told = [("outputs", "have different shapes" + (f": {record.shapes}" if record.shapes else ""))]
    else:
        told = [("outputs", f"differ by at most {number(record.output)}" if record.output else "are equal bit for bit")]
    ours = [row.name for i, row in enumerate(record.rows) if row.state == "only" and i != record.at]
    theirs = [name for name in record.extra if name not in {text for _, text in record.why}]
    return told + [(name, few(names)) for name, names in (("only here", ours), (f"only in {record.reference}", theirs)) if names]


def few(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def parting_html(record: Parting) -> str:
    """A card like that of an error."""
    colour, sign = (GREEN, "\u2713") if record.equal else (RED, SIGN)
    rows = [*record.why, *ending(record)]
    colours = {"differs": RED, "here": RED, f"in {record.reference}": GREEN}
    cells = [
        f'<tr style="background:#ffffff"><td style="{NAME}">{escape(clean(name))}</td>'
        f'<td style="{CELL};color:{colours.get(name, INK)}">{escape(clean(text))}</td></tr>'
        for name, text in rows
    ]
    head = f'<div style="color:{colour};font-size:14px;font-weight:600;margin-bottom:4px">{sign} {escape(clean(record.title))}</div>'
    table = f'<table style="border-collapse:collapse;margin:0;background:#ffffff">{"".join(cells)}</table>'
    picture = ""
    if record.graph.nodes:
        svg = render_svg(diagram_of(near_the_end(record.graph), NEAR))[0]
        why = "; ".join(f"{name}: {text}" for name, text in record.why)
        picture = low(picture_card(svg, f"{record.title}; {why}", parting_text(record)))
    return f'<div {NO_MATH} style="{CARD};border-left:4px solid {colour};padding:8px 12px;text-align:left">{head}{table}{picture}</div>'
