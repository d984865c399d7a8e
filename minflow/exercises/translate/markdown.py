"""Split Markdown into pieces to translate: a paragraph, a list item, a heading, a table cell.

It works line by line, without a syntax tree, and keeps everything between the pieces, so that joining them gives
exactly the same text. (mdpo numbers all list items 1, reformats table rows, and lost half a sentence.)
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
    """A piece of Markdown.

    raw: source before the text, kept. text: to be translated, "" in the last piece. indent: prefix of each further line
    of the text, as in a quotation.
    """

    raw: str
    text: str
    indent: str = ""


def split(source: str) -> list[Piece]:
    """Split a Markdown text into pieces."""
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
    """Yield (source, None) for parts to keep and (text, prefix of its further lines) for parts to translate.

    Code blocks, display formulas, comments and the marks of headings and lists are kept.
    """
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
    """Translate each piece of a text and join them again."""
    return "".join(
        raw + (translate(text).replace("\n", f"\n{indent}") if text else "") for raw, text, indent in split(source)
    )


def translatable_texts(source: str) -> list[str]:
    return [piece.text for piece in split(source) if piece.text]


def has_words(text: str) -> bool:
    """True if a text has words: two letters or a Chinese character, outside code, formulas and URLs."""
    return bool(re.search(r"[^\W\d_]{2}|[\u3400-\u9fff]", without_code(text)))


def without_code(text: str) -> str:
    for form in (CODE, MATH, LINK):
        text = form.sub(" ", text)
    return text
