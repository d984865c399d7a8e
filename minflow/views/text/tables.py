"""Tables of text with aligned columns, text cut to a width, and sheets: reports that are printed or shown on a page.

Read next: its users, `listing.py` and `reports.py`; `../html/reports.py`, sheets on a page.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from textwrap import wrap
from typing import NamedTuple

from ...core.base.errors import clean

LINE_WIDTH = 110  # columns of a sentence


def cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."


def table(rows: Sequence[Sequence[str]], right: Iterable[int] = ()) -> list[str]:
    """Align columns; those in `right` are right-aligned. The first row is the head."""
    widths, flush = [max(map(len, column)) for column in zip(*rows)], set(right)
    lines = [[f"{c:>{w}}" if i in flush else f"{c:<{w}}" for i, (c, w) in enumerate(zip(row, widths))] for row in rows]
    return ["  ".join(cells).rstrip() for cells in lines]


def ruled_table(head: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[int] = ()) -> list[str]:
    """The table with a rule below its head."""
    first, *rest = table([[clean(str(c)) for c in row] for row in (head, *rows)], right)
    return [first, "-" * max(map(len, (first, *rest))), *rest]


# ---- sheets ----------------------------------------------------------------------------------------------------------


class Cell(NamedTuple):
    """A cell of a sheet that differs in print and on a page. more: a faint line below it, on a page only.  badges:
    behind it, in brackets or framed.

    In the head of a table, None leaves the column out.
    """

    text: str | None
    page: str | None
    more: str = ""
    badges: tuple[str, ...] = ()


class Bar(NamedTuple):
    """A bar. share, start: its length and its start, as fractions of the full width.  phase: determines its color."""

    text: str | None
    share: float
    start: float = 0.0
    phase: str = ""


class Table(NamedTuple):
    """A table of a sheet. head: the names of the columns, which may all be empty.  right: columns of numbers."""

    head: Sequence[str | Cell]
    rows: Sequence[Sequence[str | Cell | Bar]]
    right: Iterable[int] = ()


class Sheet(NamedTuple):
    """A report as a title, tables and sentences."""

    title: str
    parts: Sequence[Table | str]


ON_PAGE = Cell(None, "")  # head of a column that is not printed


def printed(cell: str | Cell | Bar) -> str | None:
    if isinstance(cell, Cell) and cell.badges:
        return f"{cell.text}  {' '.join([f'[{badge}]' for badge in cell.badges])}".strip()
    return cell if isinstance(cell, str) else cell.text


def sheet_text(sheet: Sheet) -> str:
    lines = [clean(sheet.title)]
    for k, part in enumerate(sheet.parts):
        if isinstance(part, str):
            lines += [clean(line) for line in wrap(part, LINE_WIDTH)]
            continue
        columns = [i for i, cell in enumerate(part.head) if printed(cell) is not None]
        rows = [[clean(printed(row[i]) or "") for i in columns] for row in (part.head, *part.rows)]
        lines += [""] * bool(k)
        lines += table(rows if any(rows[0]) else rows[1:], [n for n, i in enumerate(columns) if i in part.right])
    return "\n".join(lines)
