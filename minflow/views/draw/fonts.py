"""Upper bounds of text widths, and cutting and wrapping of text to a width.

The font that will display a picture is unknown: Helvetica, Arial or, on a small Linux, DejaVu Sans, a sixth wider. So
text is measured in the widest of these and fits with the others. Independent of rows and graphs. Read next:
`svg_writer.py`, text on a plate.
"""

from __future__ import annotations

import functools
import re
import unicodedata

from ...core.base.errors import clean

FONT_SIZE = 11  # font size in pictures of boxes, in pixels
WIDTH_MARGIN = 1.02  # margin for kerning and rounding
# widths in em of a full-width character, an emoji, and a character in no table
FULL_WIDTH, EMOJI_WIDTH, UNKNOWN_WIDTH = 1.0, 1.4, 1.1

# Hundredths of an em, rounded up: the wider of DejaVu Sans and Liberation Sans, from the tables of the fonts; regular
# and bold, for consecutive characters from the key on.
RANGE_WIDTHS = {
    " ": (
        "32 41 46 84 64 96 78 28 40 40 50 84 32 37 32 34 64 64 64 64 64 64 64 64 64 64 34 34 84 84 84 56 "
        "102 69 69 73 78 67 62 78 76 30 50 67 56 87 75 79 67 79 73 67 62 74 69 99 69 67 69 40 34 40 84 56 "
        "50 62 64 55 64 62 36 64 64 28 28 58 28 98 64 62 64 64 42 53 40 64 60 82 60 60 53 64 34 64 84",
        "35 46 53 84 70 101 88 31 46 46 53 84 38 42 38 37 70 70 70 70 70 70 70 70 70 70 40 40 84 84 84 62 "
        "100 78 77 74 84 69 69 83 84 38 56 78 64 100 84 86 74 86 78 73 69 82 78 111 78 73 73 46 37 46 84 56 "
        "50 68 72 60 72 68 44 72 72 35 35 67 35 105 72 69 72 72 50 60 48 72 66 93 65 66 59 72 37 72 84",
    ),
    "Α": (
        "69 69 56 69 67 69 76 79 30 67 69 87 75 65 79 76 67 69 64 62 67 80 69 84 77 30 67 66 55 64 34 58 "
        "66 64 60 62 55 55 64 62 34 59 60 64 56 56 62 69 64 59 64 61 58 66 58 72 84",
        "78 77 64 78 69 73 84 86 38 78 78 100 84 65 86 84 74 69 69 69 73 86 78 85 86 38 73 69 56 72 39 68 "
        "69 72 69 69 56 60 72 69 39 72 64 74 69 60 69 80 72 60 78 64 68 79 65 80 87",
    ),
    "А": (  # the Cyrillic one
        "69 69 69 61 79 67 108 65 75 75 71 76 87 76 79 76 67 73 62 64 87 69 78 69 107 110 84 89 69 72 108 73 "
        "62 62 59 53 70 62 91 54 65 65 61 64 76 66 62 66 64 55 59 60 86 60 69 60 92 95 71 79 59 55 85 61 "
        "62 62 63 53 55 53 28 28 28 91 90 66 61 65 60 66",
        "78 77 77 64 90 69 123 72 84 84 82 84 100 84 86 84 74 74 69 78 100 78 93 81 124 133 94 104 77 74 118 78 "
        "68 70 64 53 81 68 100 59 71 71 68 74 82 70 69 70 72 60 58 66 100 65 75 69 107 111 76 91 64 60 98 65 "
        "68 68 72 53 60 60 35 35 35 100 96 74 68 71 66 70",
    ),
}
SIGN_WIDTHS = ((40, "·ʼ‘’"), (51, "°²³▸▾"), (66, "–“”«»"), (77, "▁▂▃▄▅▆▇█"), (84, "×−±≈≠≤≥∞√↑↓↕✓✗"), (100, "…→←↔—"))
EM_WIDTHS: dict[bool, dict[str, float]] = {
    bold: {chr(ord(c) + i): int(n) / 100 for c, both in RANGE_WIDTHS.items() for i, n in enumerate(both[bold].split())}
    | {c: n / 100 for n, signs in SIGN_WIDTHS for c in signs}
    for bold in (False, True)
}


def text_width(text: str, size: float = FONT_SIZE, bold: bool = False) -> float:
    """Upper bound of the width of a text at this font size, in pixels."""
    ems = EM_WIDTHS[bold]
    return WIDTH_MARGIN * size * sum([ems.get(c) or unlisted_width(c, bold) for c in text[:500]])


@functools.lru_cache(maxsize=4096)
def unlisted_width(c: str, bold: bool) -> float:
    """Width in em of a character in no table. Accents have no width of their own."""
    kind = unicodedata.category(c)
    if kind in ("Mn", "Me"):
        return 0.0
    if unicodedata.east_asian_width(c) in "WF":
        return EMOJI_WIDTH if kind == "So" else FULL_WIDTH
    return EM_WIDTHS[bold].get(unicodedata.normalize("NFD", c)[0], UNKNOWN_WIDTH)


def truncated(text: str, width: float, size: float = FONT_SIZE, bold: bool = False) -> str:
    """The text, cut with an ellipsis to at most this width."""
    text = clean(text)
    if len(text) > 400:
        text = text[:400] + "…"
    if text_width(text, size, bold) <= width:
        return text
    return text[: prefix_length(text, width - text_width("…", size, bold), size, bold)] + "…"


def prefix_length(text: str, width: float, size: float, bold: bool) -> int:
    """Length of the longest prefix of at most this width."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if text_width(text[:middle], size, bold) <= width else (low, middle - 1)
    return low


def wrap_to_width(text: str, width: float, size: float = FONT_SIZE, bold: bool = False) -> list[str]:
    """The text in lines of at most this width, broken after words; a wider word is broken itself."""
    text, lines = clean(text), []
    while (n := prefix_length(text[:400], width, size, bold)) < len(text):
        at = text.rfind(" ", 0, n + 1)
        at = at if at > 0 else max(n, 1)
        lines.append(text[:at])
        text = text[at:].lstrip()
    return [*lines, text] if text or not lines else lines


def truncated_words(text: str, width: float) -> str:
    """The text, cut after a complete `name=value` if it has such parts, else after a word."""
    text = clean(text)
    if truncated(text, width) == text:
        return text
    joint = ", " if re.search(r"\w=", text) else " "
    parts = re.split(r", (?=\w+=)" if joint == ", " else " ", text[:400])
    shorter = (joint.join(parts[:n]) + joint.rstrip() + " …" for n in range(len(parts) - 1, 0, -1))
    return next(
        (words for words in shorter if truncated(words, width) == words),
        "…" if joint == ", " else truncated(text, width),
    )
