"""Columns of text under each other, and texts cut to a width. Read next: `listing.py` and `reports.py`, the users."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...core.base.errors import clean


def cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."


def table(rows: Sequence[Sequence[str]], right: Iterable[int] = ()) -> list[str]:
    """Columns under each other; those numbered in `right` are set flush right. The first row is the head."""
    widths, flush = [max(map(len, column)) for column in zip(*rows)], set(right)
    lines = [[f"{c:>{w}}" if i in flush else f"{c:<{w}}" for i, (c, w) in enumerate(zip(row, widths))] for row in rows]
    return ["  ".join(cells).rstrip() for cells in lines]


def ruled_table(head: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[int] = ()) -> list[str]:
    """The same with a rule below its head."""
    first, *rest = table([[clean(str(c)) for c in row] for row in (head, *rows)], right)
    return [first, "-" * max(map(len, (first, *rest))), *rest]
