"""Read and write PO files, the format of translation tools such as Poedit and Weblate.

Supports comments, the flag `fuzzy`, msgctxt, msgid and msgstr; no plural forms.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable
from pathlib import Path

HEADER = (
    'msgid ""\nmsgstr ""\n"Language: {language}\\n"\n"MIME-Version: 1.0\\n"\n'
    '"Content-Type: text/plain; charset=UTF-8\\n"\n"Content-Transfer-Encoding: 8bit\\n"\n'
)
ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}
UNESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


@dataclasses.dataclass
class Entry:
    """A text and its translation.

    text: English. translation: "" if missing. fuzzy: True if the translation is of an earlier text, `before`.
    where: the cell or file of the text, for translators.
    """

    text: str
    translation: str = ""
    fuzzy: bool = False
    where: str = ""
    before: str = ""

    @property
    def current(self) -> bool:
        return bool(self.translation) and not self.fuzzy


def read(file: Path) -> list[Entry]:
    """Entries of a file, without the header and obsolete entries."""
    return parse(file.read_text(encoding="utf-8"))


def parse(text: str) -> list[Entry]:
    result = []
    for block in re.split(r"\n\s*\n", text.replace("\r\n", "\n")):
        found: dict[str, str] = {}
        name = ""
        for line in block.split("\n"):
            match = re.fullmatch(r'\s*(#[|])?\s*(?:(msgctxt|msgid|msgstr)\s+)?"(.*)"\s*', line)
            if match:
                old, word, piece = match.groups()
                name = (old or "") + word if word else name
                found[name] = found.get(name, "") + unescape(piece)
            elif line.startswith("#,") and "fuzzy" in line:
                found["fuzzy"] = "yes"
            elif line.startswith("#:"):
                found["where"] = f"{found.get('where', '')} {line[2:].strip()}".strip()
        if found.get("msgid"):
            result.append(
                Entry(
                    found["msgid"],
                    found.get("msgstr", ""),
                    "fuzzy" in found,
                    found.get("where", ""),
                    found.get("#|msgid", ""),
                )
            )
    return result


def unescape(piece: str) -> str:
    return re.sub(r"\\(.)", lambda match: UNESCAPES.get(match.group(1), match.group(1)), piece)


def write(entries: Iterable[Entry], language: str) -> str:
    """Format entries as a PO file."""
    return "\n".join([HEADER.format(language=language), *map(format_entry, entries)])


def format_entry(entry: Entry) -> str:
    lines = [f"#: {entry.where}"] if entry.where else []
    if entry.fuzzy:
        lines.append("#, fuzzy")
        lines += [f"#| {line}" for line in field_lines("msgid", entry.before)] if entry.before else []
    return "\n".join([*lines, *field_lines("msgid", entry.text), *field_lines("msgstr", entry.translation), ""])


def field_lines(name: str, text: str) -> list[str]:
    """Lines of one field; a text of several lines starts with an empty string, as is usual in PO files."""
    pieces = [
        '"' + "".join(ESCAPES.get(sign, sign) for sign in line) + '"'
        for line in re.findall(r"[^\n]*\n|[^\n]+|^$", text)
    ]
    return [f"{name} {pieces[0]}"] if len(pieces) == 1 else [f'{name} ""', *pieces]
