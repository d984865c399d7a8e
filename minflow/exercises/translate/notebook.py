"""Translate the cells of a lesson: Markdown piece by piece, and of code the comments and the strings that it shows."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ..i18n import po
from . import code, markdown


def texts(data: bytes) -> dict[str, str]:
    """Texts of a notebook to translate: text -> ids of the cells that contain it."""
    result: dict[str, str] = {}
    for cell, source in cells(data):
        found = markdown.translatable_texts(source) if cell["cell_type"] == "markdown" else texts_of_code(cell, source)
        for text in found:
            ids = result.get(text, "").split()
            result[text] = " ".join(ids if cell["id"] in ids else [*ids, cell["id"]])
    return result


def cells(data: bytes) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield the Markdown and code cells of a notebook with their sources."""
    for cell in json.loads(data)["cells"]:
        if cell["cell_type"] in ("markdown", "code"):
            yield cell, "".join(cell["source"])


def texts_of_code(cell: dict[str, Any], source: str) -> list[str]:
    """Texts of a code cell. Strings in the cell of an answer belong to the exercise, so they are not texts."""
    return code.texts(source, comments_only=cell["id"].endswith("-answer"))


def code_texts(data: bytes) -> set[str]:
    """Texts of all code cells of a notebook."""
    return {text for cell, source in cells(data) if cell["cell_type"] == "code" for text in texts_of_code(cell, source)}


def terms(data: bytes) -> list[str]:
    """Terms that a lesson introduces: the first column of the table in its cell `NAME-words`."""
    source = "".join("".join(cell["source"]) for cell in json.loads(data)["cells"] if cell["id"].endswith("-words"))
    rows = re.findall(r"^[ \t]*\|[ \t]*([^|\n]*?)[ \t]*\|", source, re.MULTILINE)[2:]  # after the head and the divider
    return [row for row in rows if markdown.has_words(row)]


def translate_notebook(data: bytes, table: dict[str, str]) -> bytes:
    """Translate a notebook by a table (English text -> translation)."""
    book = json.loads(data)
    in_code = {text: table[text] for text in code_texts(data) if text in table}
    for cell in book["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            source = markdown.rebuild(source, lambda text: table.get(text, text))
        elif cell["cell_type"] == "code":
            source = code.translate(source, in_code, comments_only=cell["id"].endswith("-answer"))
        cell["source"] = source.splitlines(keepends=True) if isinstance(cell["source"], list) else source
    return (json.dumps(book, indent=1, ensure_ascii=False) + "\n").encode()


def changed_programs(data: bytes, table: dict[str, str]) -> list[str]:
    """Ids of the code cells that are another program when translated by a table: a string was ended, for example."""
    return [
        cell["id"]
        for (cell, source), (_, other) in zip(cells(data), cells(translate_notebook(data, table)), strict=True)
        if cell["cell_type"] == "code" and not code.same_program(source, other)
    ]


def po_file(language: str, notebooks: Path, path: Path) -> Path:
    """PO file of a lesson: notebooks/02_downhill.ipynb -> notebooks/zh/02_downhill.po."""
    return (notebooks / language / path.relative_to(notebooks)).with_suffix(".po")


def in_language(language: str, notebooks: Path) -> Callable[[Path, bytes], bytes]:
    """Return a function (file of the course, bytes) -> bytes in the language, unchanged without a translation."""

    def content(path: Path, data: bytes) -> bytes:
        in_course = path.suffix == ".ipynb" and path.is_relative_to(notebooks)
        file = po_file(language, notebooks, path) if in_course else None
        if file is None or not file.is_file():
            return data
        return translate_notebook(data, {entry.text: entry.translation for entry in po.read(file) if entry.current})

    return content
