"""Pad and wrap text for a terminal. A Chinese character takes two columns, and lines may break around it."""

from __future__ import annotations

import re
import unicodedata

NOT_FIRST = "，。、；：？！）」』】》”’…,.;:?!)]}"  # characters that must not start a line
NOT_LAST = "（「『【《“‘([{"


def width(text: str) -> int:
    """Width of a text in terminal columns."""
    return sum(0 if unicodedata.combining(sign) else 1 + (unicodedata.east_asian_width(sign) in "WF") for sign in text)


def padded(text: str, columns: int) -> str:
    return text + " " * (columns - width(text))


def wrapped(line: str, columns: int) -> list[str]:
    """Wrap a line at `columns`, breaking at spaces and around wide characters; longer words are not split.

    All lines get the indentation of the first.
    """
    indent = re.match(r"\s*", line).group()  # type: ignore[union-attr]
    lines, now = [], indent
    for part in unbreakable_parts(line[len(indent) :]):
        if now.strip() and width(now + part.rstrip()) > columns:
            lines.append(now.rstrip())
            now = indent
        now += part
    return [*lines, now.rstrip()]


def unbreakable_parts(text: str) -> list[str]:
    """Split a text into unbreakable parts: a word with the space after it, a wide character with its punctuation."""
    result = [""]
    for sign in text:
        last = result[-1][-1:]
        free = last.isspace() or is_wide(last) or is_wide(sign)
        if last and free and not sign.isspace() and sign not in NOT_FIRST and result[-1].rstrip()[-1:] not in NOT_LAST:
            result.append("")
        result[-1] += sign
    return result


def is_wide(sign: str) -> bool:
    return bool(sign) and unicodedata.east_asian_width(sign) in "WF"
