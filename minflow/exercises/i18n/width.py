"""Text in columns, where a Chinese sign is as wide as two letters and lines break between any two of them."""

from __future__ import annotations

import re
import unicodedata

NOT_FIRST = "，。、；：？！）」』】》”’…,.;:?!)]}"  # a line does not begin with these
NOT_LAST = "（「『【《“‘([{"


def width(text: str) -> int:
    """In columns of a terminal."""
    return sum(0 if unicodedata.combining(sign) else 1 + (unicodedata.east_asian_width(sign) in "WF") for sign in text)


def padded(text: str, columns: int) -> str:
    return text + " " * (columns - width(text))


def wrapped(line: str, columns: int) -> list[str]:
    """Lines of at most so many columns, broken at spaces and beside wide signs; a longer word stays whole. All begin
    with the indentation of the first."""
    indent = re.match(r"\s*", line).group()  # type: ignore[union-attr]
    lines, now = [], indent
    for part in parts(line[len(indent) :]):
        if now.strip() and width(now + part.rstrip()) > columns:
            lines.append(now.rstrip())
            now = indent
        now += part
    return [*lines, now.rstrip()]


def parts(text: str) -> list[str]:
    """What stays together: a word with the space behind it, a wide sign with the signs that it may not be parted
    from."""
    result = [""]
    for sign in text:
        last = result[-1][-1:]
        free = last.isspace() or wide(last) or wide(sign)
        if last and free and not sign.isspace() and sign not in NOT_FIRST and result[-1].rstrip()[-1:] not in NOT_LAST:
            result.append("")
        result[-1] += sign
    return result


def wide(sign: str) -> bool:
    return bool(sign) and unicodedata.east_asian_width(sign) in "WF"
