"""Tables of text with aligned columns, and text cut to a width. Read next: its users, `listing.py` and `reports.py`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...core.base.errors import clean


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
