"""Names and values in two columns, on a light ground: the table of a card. Read next: `page.py`, pictures in a
notebook."""

from __future__ import annotations

from .page import CARD

PLAIN = "padding:1px 10px 1px 0;vertical-align:top;text-align:left;background:#ffffff;border:0"
NAME = f"{PLAIN};color:#57606a;font-weight:600;white-space:nowrap"
CELL = f"{PLAIN};font-family:monospace;font-size:12.5px;white-space:pre-wrap"
SIGN = "\u2717"
RED, GREEN, INK = "#b42318", "#1d7a46", "#24292f"


def inner_picture(card: str) -> str:
    """The picture inside another card, and no higher than a screen."""
    return card.replace(CARD, BARE, 1).replace("max-width:100%;height:auto",
                                               "max-width:100%;max-height:900px;height:auto", 1)


BARE = "background:#ffffff;color:#24292f;max-width:100%"
