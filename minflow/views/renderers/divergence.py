"""Two runs of one computation side by side: equal operations green, the first that differs red.

The record of `graph.compare(reference)` and `graph.compare_eager(...)` with its text and its picture; pure functions.
Read next: `../../introspection/graph/compare/compare.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from ...core.base.display import BundleDisplay
from ..draw.boxes import diagram_of
from ..draw.engines import render_svg
from ..draw.fold import NEARBY_BOXES, fold_near_end
from ..html.page import folded_below, picture_card
from ..html.table import BAD_COLOR, CROSS_MARK, GOOD_COLOR, framed, inner_picture, table
from ..records.graph import GraphRecord
from ..text.listing import clean

MAX_LISTED_OPS = 12  # operations listed before the first that differs
MAX_WORST_OPS = 10  # operations listed, largest difference first


@dataclass(frozen=True)
class ComparedOperation:
    """An operation of the graph. state: "equal", "differs", or "only" if the reference has no counterpart.

    there: the counterpart in the reference.  difference: the largest |graph - reference|, NaN if exactly one is NaN.
    scope: its module.  phase: "forward", "backward", "recompute" or "optimizer".
    """

    name: str
    spec: str
    where: str
    state: str
    there: str = ""
    difference: float = 0.0
    scope: str = ""
    phase: str = "forward"

    @property
    def same(self) -> bool:
        """True if both results are identical."""
        return self.state == "equal" and not self.difference


@dataclass(frozen=True)
class GraphComparison(BundleDisplay):
    """Result of the comparison of two runs.

    rows: the operations in graph order.  equal: True if both agree.  at: index of the first row that differs, or
    None.

    why: (name, sentence) about that operation.  output: the largest difference of the outputs; None if shapes differ.
    only_here, extra: operations that only the graph, or only the reference, has.  tolerance: (rtol, atol), None for the
    default.  graph: the picture, up to the first difference.  reference: its name.  shapes: shapes of the outputs, if
    they differ.  exact: True if results must be equal bit for bit and only compared operations are rows
    (`compare_eager`).
    """

    title: str
    rows: tuple[ComparedOperation, ...]
    equal: bool
    at: int | None
    why: tuple[tuple[str, str], ...]
    output: float | None
    extra: tuple[str, ...]
    tolerance: tuple[float | None, float | None]
    graph: GraphRecord
    reference: str = "the reference"
    shapes: str = ""
    only_here: tuple[str, ...] = ()
    exact: bool = False

    @property
    def first(self) -> ComparedOperation | None:
        """The first operation that differs, or None."""
        return None if self.at is None else self.rows[self.at]

    @property
    def largest(self) -> float:
        """The largest difference over all operations."""
        return max([row.difference for row in self.rows], default=0.0)

    def __repr__(self) -> str:
        return comparison_text(self)

    def bundle(self) -> dict[str, str]:
        """MIME type -> data."""
        return {"text/plain": repr(self), "text/html": comparison_html(self)}


def comparison_text(record: GraphComparison) -> str:
    lines = exact_lines(record) if record.exact else lines_to_divergence(record)
    return "\n".join([clean(record.title), *map(clean, lines)])


def exact_lines(record: GraphComparison) -> list[str]:
    """Count of operations without counterpart, and the operations with the largest differences."""
    lines, only = [], (len(record.only_here), len(record.extra))
    if any(only):
        lines.append(f"  not compared: {only[0]} that only the graph has, {only[1]} that only eager has")
    if record.first is not None:
        lines.append(f"  the first that differs: {record.first.name} at {record.first.where}")
    worst = [row for row in record.rows if row.state == "differs"]
    worst.sort(key=lambda row: -row.difference if row.difference == row.difference else float("-inf"))
    width = max([len(clean(row.name)) for row in worst[:MAX_WORST_OPS]], default=0)
    for row in worst[:MAX_WORST_OPS]:
        lines.append(f"  {clean(row.name):<{width}}  {row.difference:10.3e}  {row.spec}  {row.where}")
    return lines


def lines_to_divergence(record: GraphComparison) -> list[str]:
    """The operations up to the first that differs, the reason, and the outputs."""
    lines = []
    end = len(record.rows) if record.at is None else record.at + 1
    start = max(0, end - MAX_LISTED_OPS)
    if start:
        equal = sum(row.state == "equal" for row in record.rows[:start])
        lines.append(f"  ... {start} before, {equal} of them equal")
    signs = {"equal": "  =", "only": "  ?", "differs": ">>>"}
    width = max([len(clean(row.name)) for row in record.rows[start:end]], default=0)
    for i, row in enumerate(record.rows[start:end], start):
        sign = ">>>" if i == record.at else signs[row.state]
        note = f"  differs by {row.difference:.3g}" if row.state == "differs" else ""
        lines.append(f"{sign} {clean(row.name):<{width}}  {clean(row.spec)}{note}  {clean(row.where)}".rstrip())
    lines += [f"      {name}: {text}" for name, text in record.why]
    return lines + [f"{name}: {text}" for name, text in closing_rows(record)]


def closing_rows(record: GraphComparison) -> list[tuple[str, str]]:
    """(name, sentence) about the outputs, and about operations without counterpart unless `why` names them."""
    if record.output is None:
        outputs = "have different shapes" + (f": {record.shapes}" if record.shapes else "")
    else:
        outputs = f"differ by at most {record.output:.3g}" if record.output else "are equal bit for bit"
    ours = [name for name in record.only_here if record.first is None or name != record.first.name]
    theirs = [name for name in record.extra if name not in {text for _, text in record.why}]
    only = ("only here", ours), (f"only in {record.reference}", theirs)
    return [("outputs", outputs), *((name, first_names(names)) for name, names in only if names)]


def first_names(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def comparison_html(record: GraphComparison) -> str:
    """A card like that of an error; the picture is folded if both runs agree."""
    color, sign = (GOOD_COLOR, "\u2713") if record.equal else (BAD_COLOR, CROSS_MARK)
    marks = {"differs": BAD_COLOR, "here": BAD_COLOR, f"in {record.reference}": GOOD_COLOR}
    rows = [
        (clean(name), escape(clean(text)), marks.get(name, "")) for name, text in (*record.why, *closing_rows(record))
    ]
    picture = ""
    if record.graph.nodes:
        svg = render_svg(diagram_of(fold_near_end(record.graph), NEARBY_BOXES))[0]
        why = "; ".join(f"{name}: {text}" for name, text in record.why)
        picture = inner_picture(picture_card(svg, f"{record.title}; {why}", comparison_text(record), live=True))
        picture = folded_below("the last operations", picture) if record.equal else picture
    return framed(color, f"{sign} {escape(clean(record.title))}", table(rows) + picture)
