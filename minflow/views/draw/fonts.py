"""How wide a text is, and what of it fits into a box.

Widths are estimates in fonts as wide as Helvetica; nothing here knows rows or graphs. Read next: `layout.py`.
"""

from __future__ import annotations

import re
import unicodedata

from ...core.base.errors import clean

SIZE = 11  # of text in a picture of boxes, in pixels
THIN, BROAD = 1.03, 1.11  # what a text takes more than Helvetica's widths, so that another font has room; a bold one


def wide(text: str, scale: float = THIN) -> float:
    """Pixels that a text takes at most, in fonts as wide as Helvetica."""
    return scale * SIZE * sum([EMS.get(c) or (1.0 if unicodedata.east_asian_width(c) in "WF" else 0.6)
                               for c in text[:500]])


# Widths in ems, of fonts as wide as Helvetica; of what is not here 0.6.
EMS = {c: em for em, chars in (
    (0.23, "ijl'|"), (0.29, "ftI.,:;!/\\ []()-"), (0.34, "r·"), (0.5, "cksvxyz"), (0.56, "abdeghnopqu0123456789_L?"),
    (0.58, "+<>=~×−▸▾"), (0.67, "ABEKPSVXY"), (0.73, "CDHNRUw"), (0.78, "GOQ"), (0.84, "mM"), (0.95, "W"),
    (1.0, "…→←↓↑↕—@%")) for c in chars}  # fmt: skip


def fitted(text: str, width: float, scale: float = THIN) -> str:
    """The text, cut so that it is no wider."""
    text = clean(text)
    if len(text) > 400:
        text = text[:400] + "…"
    if wide(text, scale) <= width:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if wide(text[:middle] + "…", scale) <= width else (low, middle - 1)
    return text[:low] + "…"


def fitted_words(text: str, width: float) -> str:
    """The text, cut behind a whole `name=value` where it has such parts, else behind a word."""
    text = clean(text)
    if fitted(text, width) == text:
        return text
    joint = ", " if re.search(r"\w=", text) else " "
    parts = re.split(r", (?=\w+=)" if joint == ", " else " ", text[:400])
    shorter = (joint.join(parts[:n]) + joint.rstrip() + " …" for n in range(len(parts) - 1, 0, -1))
    return next((words for words in shorter if fitted(words, width) == words),
                "…" if joint == ", " else fitted(text, width))
