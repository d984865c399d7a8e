"""Markdown in pieces that are translated one by one: a paragraph, a list item, a heading, a cell of a table.

Line by line, without a tree: what stands between the texts is kept as it is, so that putting the pieces together again
gives the very same text. (mdpo numbers all items of a list 1, sets rows of tables anew, and lost half a sentence.)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

BLOCK = r"</?(?:details|summary|div|p|center|table|thead|tbody|tr|td|th|ul|ol|li|br|hr|img)\b[^>\n]*>"
LEAD = re.compile(rf"[ \t]*(?:>[ \t]?|(?:[*+-]|\d+[.)])[ \t]+|\#{{1,6}}[ \t]+|{BLOCK}[ \t]*)*")
TRAIL = re.compile(rf"(?:\s|{BLOCK})*\Z")
STARTS = re.compile(rf"[ \t]*(?:>|(?:[*+-]|\d+[.)])[ \t]|\#{{1,6}}[ \t]|{BLOCK}|<!--|```|~~~|\$\$|\||$)", re.MULTILINE)
QUOTE = re.compile(r"(?:[ \t]*>[ \t]?)*")
HEADING = re.compile(r"#[ \t]+$")
DIVIDER = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*\n?")
CODE = re.compile(r"(?<!`)(`+)(?!`)(?:.*?[^`])??\1(?!`)", re.DOTALL)
MATH = re.compile(r"(?<![\\$])\$\$.+?\$\$|(?<![\\$])\$(?![\s$])(?:[^$\\]|\\.)*?(?<!\s)\$(?!\d)", re.DOTALL)
LINK = re.compile(r"(?<=\]\()[^)\s]+(?=\))|https?://[^\s)>]+")


class Piece(NamedTuple):
    """raw: what stands before the text.  text: what is translated, "" for the last piece.  indent: what stands before
    each further line of the text, as in a quotation."""

    raw: str
    text: str
    indent: str = ""


def split(source: str) -> list[Piece]:
    """The pieces of a Markdown text."""
    pieces: list[Piece] = []
    raw = ""
    for chunk, indent in chunks(re.findall(r"[^\n]*\n|[^\n]+", source)):
        text = "" if indent is None else chunk[: TRAIL.search(chunk).start()]  # type: ignore[union-attr]
        if has_words(text):
            shared = indent if all(line.startswith(indent) for line in text.split("\n")[1:]) else ""
            pieces.append(Piece(raw, text.replace(f"\n{shared}", "\n"), shared))
            raw = chunk[len(text) :]
        else:
            raw += chunk
    return [*pieces, Piece(raw, "")]


def chunks(lines: list[str]) -> Iterator[tuple[str, str | None]]:
    """(a part of the source, None) for what is kept as it is: code blocks, formulas on lines of their own, comments,
    the signs of headings and lists; (text, what stands before its further lines) for the rest."""
    i = 0
    while i < len(lines):
        first, line = i, lines[i]
        inner = line.lstrip(" \t>")
        i += 1
        if inner.startswith("|"):
            for part in [line] if DIVIDER.fullmatch(line) else re.split(r"((?<!\\)\|[ \t]*)", line):
                yield part, None if part.startswith("|") else ""
            continue
        for opens, closes in (("```", "```"), ("~~~", "~~~"), ("$$", "$$"), ("<!--", "-->")):
            if inner.startswith(opens):
                while i < len(lines) and closes not in "".join(lines[first:i]).lstrip(" \t>")[len(opens) :]:
                    i += 1
                yield "".join(lines[first:i]), None
                break
        else:
            lead = LEAD.match(line).group()  # type: ignore[union-attr]
            quote = QUOTE.match(line).group()  # type: ignore[union-attr]
            if not HEADING.search(lead) and len(lead) < len(line.rstrip("\n")):
                while i < len(lines) and not STARTS.match(lines[i].removeprefix(quote)):
                    i += 1
            yield lead, None
            yield "".join(lines[first:i])[len(lead) :], quote


def rebuild(source: str, translate: Callable[[str], str]) -> str:
    """The text with each piece translated."""
    return "".join(
        raw + (translate(text).replace("\n", f"\n{indent}") if text else "") for raw, text, indent in split(source)
    )


def texts(source: str) -> list[str]:
    return [piece.text for piece in split(source) if piece.text]


def has_words(text: str) -> bool:
    """Is there anything in it to translate? Code, formulas, addresses and single letters are not; a Chinese sign is."""
    return bool(re.search(r"[^\W\d_]{2}|[\u3400-\u9fff]", without_code(text)))


def without_code(text: str) -> str:
    for form in (CODE, MATH, LINK):
        text = form.sub(" ", text)
    return text
