"""Translate the Markdown cells of a lesson piece by piece. Code cells, ids and everything else stay unchanged."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

from ..i18n import po
from . import markdown


def texts(data: bytes) -> dict[str, str]:
    """Texts of a notebook to translate: text -> ids of the cells that contain it."""
    result: dict[str, str] = {}
    for cell in json.loads(data)["cells"]:
        if cell["cell_type"] == "markdown":
            for text in markdown.translatable_texts("".join(cell["source"])):
                ids = result.get(text, "").split()
                result[text] = " ".join(ids if cell["id"] in ids else [*ids, cell["id"]])
    return result


def terms(data: bytes) -> list[str]:
    """Terms that a lesson introduces: the first column of the table in its cell `NAME-words`."""
    source = "".join("".join(cell["source"]) for cell in json.loads(data)["cells"] if cell["id"].endswith("-words"))
    rows = re.findall(r"^[ \t]*\|[ \t]*([^|\n]*?)[ \t]*\|", source, re.MULTILINE)[2:]  # after the head and the divider
    return [row for row in rows if markdown.has_words(row)]


def translate_notebook(data: bytes, table: dict[str, str]) -> bytes:
    """Translate a notebook by a table (English text -> translation)."""
    book = json.loads(data)
    for cell in book["cells"]:
        if cell["cell_type"] == "markdown":
            source = markdown.rebuild("".join(cell["source"]), lambda text: table.get(text, text))
            cell["source"] = source.splitlines(keepends=True) if isinstance(cell["source"], list) else source
    return (json.dumps(book, indent=1, ensure_ascii=False) + "\n").encode()


def po_file(language: str, notebooks: Path, path: Path) -> Path:
    """PO file of a lesson: notebooks/02_downhill.ipynb -> notebooks/zh/02_downhill.po."""
    return (notebooks / language / path.relative_to(notebooks)).with_suffix(".po")


def in_language(language: str, notebooks: Path) -> Callable[[Path, bytes], bytes]:
    """Return a function (file of the course, bytes) -> bytes in the language, unchanged without a translation."""

    def content(path: Path, data: bytes) -> bytes:
        file = po_file(language, notebooks, path) if path.suffix == ".ipynb" else None
        if file is None or not file.is_file():
            return data
        return translate_notebook(data, {entry.text: entry.translation for entry in po.read(file) if entry.current})

    return content
