"""The reports of a graph in a notebook: cards with tables, bars and pictures.

Pure functions of records, inline styles only, every text escaped; pictures have their text form folded below. Read
next: `../text/reports.py`, the text forms; `../renderers/memory_map.py`, the picture.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Any

from ..draw import theme
from ..records.reports import GraphTree, MemoryMap, RankLanes, Roofline, Threads
from ..renderers.memory_map import headline as memory_headline, memory_svg
from ..renderers.ranks import headline as ranks_headline, ranks_svg
from ..renderers.roofline import headline as roofline_headline, roofline_svg
from ..renderers.threads import headline as threads_headline, threads_svg
from ..text.listing import clean
from ..text.reports import RENDERERS, tree_sheet
from ..text.tables import Bar, Cell, Sheet
from ..text.trees import within_limit
from .page import CARD_STYLE, FAINT_STYLE, NO_MATH, RULE_COLOR, picture_card

CELL_STYLE = "padding:2px 10px 2px 0;vertical-align:top;text-align:left;border:0"
NO_WRAP = ";white-space:nowrap"
WRAP_STYLE = "overflow-wrap:anywhere"  # long names wrap, so that the columns to the right stay visible
NAME_STYLE = f"min-width:12em;{WRAP_STYLE}"
NUMBER_STYLE = CELL_STYLE.replace("left", "right") + NO_WRAP
PHASE_COLORS = {"forward": theme.BLUE, "backward": theme.AMBER, "recompute": theme.VIOLET, "optimizer": theme.GREEN}
MAX_WORD_WIDTH = 10  # characters of a word that a narrow column does not break
MAX_INDENT = 24  # em: the deepest level that is indented further
MAX_BAR_WIDTH = 104  # pixels of the longest bar
TRACK_COLOR = "rgba(125,133,144,.2)"  # background of a bar
WARNING_BADGES = ("never ran", "no gradient", "not registered")  # badges that usually indicate a mistake


def td(content: str, look: str = CELL_STYLE) -> str:
    return f'<td style="{look}">{content}</td>'


def safe(text: str) -> str:
    """User-supplied text as HTML, with an arrow for "->"."""
    return escape(clean(text).replace("->", "\u2192"))


def printable(text: str) -> str:
    return "\n".join(map(clean, text.split("\n")))


def faint(text: str) -> str:
    return f'<span style="{FAINT_STYLE}">{safe(text)}</span>'


def table(head: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[int] = ()) -> str:
    """An HTML table. rows: HTML.  right: columns of numbers."""
    looks = [NUMBER_STYLE if i in right else CELL_STYLE for i in range(len(head))]
    first = "".join(td(safe(name), f"{FAINT_STYLE};font-weight:600;{look}") for name, look in zip(head, looks))
    body = ["".join(map(td, row, looks)) for row in rows]
    lines = "".join(f'<tr style="background:transparent">{cells}</tr>' for cells in (first * any(head), *body))
    common = "border-collapse:collapse;margin:4px 0;background:transparent;color:inherit;font-size:12.5px"
    return f'<table style="{common}">{lines}</table>'


def bar(x: Bar) -> str:
    left = round(MAX_BAR_WIDTH * x.start)
    wide = max(1, round(MAX_BAR_WIDTH * (x.start + x.share)) - left) if x.share > 0 else 0
    color = PHASE_COLORS.get(x.phase, theme.LINE)
    inner = f'<div style="margin-left:{left}px;width:{wide}px;height:12px;background:{color}"></div>'
    return f'<div style="width:{MAX_BAR_WIDTH}px;margin-top:3px;background:{TRACK_COLOR}">{inner}</div>'


def cell_html(cell: str | Cell | Bar, first: bool) -> str:
    """A cell. first: True for the first two columns, which hold the name of a row."""
    if isinstance(cell, Bar):
        return bar(cell)
    if isinstance(cell, str):
        return safe(cell)
    page = cell.page or ""
    indent = 0.7 * (len(page) - len(page.lstrip()))
    word = min(max(map(len, page.split()), default=0), MAX_WORD_WIDTH)
    look = NAME_STYLE if first else f"min-width:{word}ch;{WRAP_STYLE}"
    look += f";margin-left:{min(indent, MAX_INDENT)}em" if indent else ""
    more = f"<br>{faint(cell.more)}" if cell.more else ""
    return f'<div style="{look}">{safe(page)}{"".join(map(badge, cell.badges))}{more}</div>'


def sheet_html(sheet: Sheet) -> str:
    """The tables and sentences of a report on a card."""
    parts = []
    for part in sheet.parts:
        if isinstance(part, str):
            parts.append(f'<div style="font-size:12px">{faint(part)}</div>')
            continue
        names = [cell if isinstance(cell, str) else cell.page for cell in part.head]
        columns = [i for i, name in enumerate(names) if name is not None]
        rows = [[cell_html(row[i], i < 2) for i in columns] for row in part.rows]
        right = [n for n, i in enumerate(columns) if i in part.right]
        parts.append(table([name for name in names if name is not None], rows, right))
    return card(sheet.title, "".join(parts))


def badge(text: str) -> str:
    colors = (
        f"color:{theme.RED_TEXT};background:{theme.PALE_RED};border:1px solid {theme.RED}"
        if text.startswith(WARNING_BADGES)
        else f"border:1px solid {RULE_COLOR}"
    )
    look = f"{colors};border-radius:8px;padding:0 6px;margin-left:6px;font-size:11.5px;white-space:nowrap"
    return f'<span style="{look}">{safe(text)}</span>'


def card(title: str, body: str) -> str:
    title = f'<div style="font-size:13px;font-weight:600">{safe(title)}</div>'
    return f'<div {NO_MATH} style="{CARD_STYLE};overflow-x:auto;text-align:left">{title}{body}</div>'


PICTURES: dict[type, tuple[Callable[[Any], str], Callable[[Any], str]]] = {  # functions of the SVG and its alt text
    MemoryMap: (memory_svg, memory_headline),
    Roofline: (roofline_svg, roofline_headline),
    Threads: (threads_svg, threads_headline),
    RankLanes: (ranks_svg, ranks_headline),
}


def report_html(record: Any) -> str:
    """The record as HTML; empty if it is shown as text or contains nothing."""
    if isinstance(record, GraphTree):
        return within_limit(lambda most: sheet_html(tree_sheet(record, most)))
    shown = RENDERERS[type(record)](record)
    if isinstance(shown, Sheet):
        return sheet_html(shown)
    if type(record) not in PICTURES or (isinstance(record, MemoryMap) and not record.blocks):
        return ""
    draw, headline = PICTURES[type(record)]
    return picture_card(draw(record), headline(record), printable(shown), live=True)
