"""A card with a table of names and values. Red and green mark rows, text keeps the color of the page.

Read next: `page.py`, pictures in a notebook.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

from ..draw.theme import GREEN, RED
from .page import CARD_STYLE, NO_MATH

PLAIN_STYLE = "padding:1px 10px 1px 0;vertical-align:top;text-align:left;border:0"
NAME_STYLE = f"{PLAIN_STYLE};opacity:.75;font-weight:600;white-space:nowrap"
CELL_STYLE = f"{PLAIN_STYLE};font-family:monospace;font-size:12.5px;white-space:pre-wrap;overflow-wrap:anywhere"
CROSS_MARK = "\u2717"
GOOD_COLOR, BAD_COLOR = GREEN, RED


def framed(color: str, title: str, inside: str) -> str:
    """A card with a stripe of that color on the left. title, inside: HTML."""
    look = f"{CARD_STYLE};border-left:4px solid {color};padding:8px 12px;text-align:left"
    head = f'<div style="font-size:14px;font-weight:600;margin-bottom:4px;overflow-wrap:anywhere">{title}</div>'
    return f'<div {NO_MATH} style="{look}">{head}{inside}</div>'


def table(rows: Iterable[tuple[str, str, str]]) -> str:
    """An HTML table of names and values.

    rows: (name, value as HTML, color of the mark before it, or empty).
    """
    cells = [
        f'<tr style="background:transparent"><td style="{NAME_STYLE}">{escape(name)}</td>'
        f'<td style="{CELL_STYLE};border-left:3px solid {color or "transparent"};padding-left:7px">{value}</td></tr>'
        for name, value, color in rows
    ]
    return f'<table style="border-collapse:collapse;margin:0;background:transparent">{"".join(cells)}</table>'


def inner_picture(card: str) -> str:
    """Prepare a picture for use inside another card: one that fits the width is limited to the height of a screen, a
    wider one scrolls.
    """
    return re.sub(
        r"max-width:100%;height:auto(?!;min-width)",
        "max-width:100%;max-height:900px;height:auto",
        card.replace(CARD_STYLE, TRANSPARENT_STYLE, 1),
        count=1,
    )


TRANSPARENT_STYLE = "background:transparent;color:inherit;max-width:100%"
