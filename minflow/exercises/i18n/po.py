"""PO files, as translators' programs (Poedit, Weblate) read and write them: entries of a text and its translation.

What we need of the format and no more: comments, the flag `fuzzy`, msgctxt, msgid, msgstr. Plural forms are not read.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable
from pathlib import Path

HEAD = (
    'msgid ""\nmsgstr ""\n"Language: {language}\\n"\n"MIME-Version: 1.0\\n"\n'
    '"Content-Type: text/plain; charset=UTF-8\\n"\n"Content-Transfer-Encoding: 8bit\\n"\n'
)
WRITTEN = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}
READ = {"n": "\n", "t": "\t", "r": "\r"}


@dataclasses.dataclass
class Entry:
    """text: English.  translation: "" if there is none yet.  fuzzy: the translation is of an earlier text.
    where: the cell or the file that it comes from, for the translator.  before: the text that `translation` is of."""

    text: str
    translation: str = ""
    fuzzy: bool = False
    where: str = ""
    before: str = ""

    @property
    def current(self) -> bool:
        return bool(self.translation) and not self.fuzzy


def read(file: Path) -> list[Entry]:
    """The entries of a file, without its head and without those that are no longer used."""
    return parsed(file.read_text(encoding="utf-8"))


def parsed(text: str) -> list[Entry]:
    result = []
    for block in re.split(r"\n\s*\n", text.replace("\r\n", "\n")):
        found: dict[str, str] = {}
        name = ""
        for line in block.split("\n"):
            match = re.fullmatch(r'\s*(#[|])?\s*(?:(msgctxt|msgid|msgstr)\s+)?"(.*)"\s*', line)
            if match:
                old, word, piece = match.groups()
                name = (old or "") + word if word else name
                found[name] = found.get(name, "") + plain(piece)
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


def plain(piece: str) -> str:
    return re.sub(r"\\(.)", lambda match: READ.get(match.group(1), match.group(1)), piece)


def write(entries: Iterable[Entry], language: str) -> str:
    """The text of a PO file."""
    return "\n".join([HEAD.format(language=language), *map(block, entries)])


def block(entry: Entry) -> str:
    lines = [f"#: {entry.where}"] if entry.where else []
    if entry.fuzzy:
        lines.append("#, fuzzy")
        lines += [f"#| {line}" for line in quoted("msgid", entry.before)] if entry.before else []
    return "\n".join([*lines, *quoted("msgid", entry.text), *quoted("msgstr", entry.translation), ""])


def quoted(name: str, text: str) -> list[str]:
    """One line; for a text of several lines an empty one first and then one for each."""
    pieces = [
        '"' + "".join(WRITTEN.get(sign, sign) for sign in line) + '"'
        for line in re.findall(r"[^\n]*\n|[^\n]+|^$", text)
    ]
    return [f"{name} {pieces[0]}"] if len(pieces) == 1 else [f'{name} ""', *pieces]
