"""The learner's language: `say` gives a text in it.

English is the source and stands in the code. Translations are PO files, `zh/checker.po` for the texts of the checker
and `zh/l02.po` for those of a lesson's exercises: `minflow exercises translate` brings them up to date. They are read
when the first text is asked for in another language than English.
"""

from __future__ import annotations

import functools
import os
import re
import string
import sys
from pathlib import Path
from typing import Any

from . import po

FOLDER = Path(__file__).parent


def say(text: str, /, **values: Any) -> str:
    """The text in the learner's language, with `{name}` filled in where values are given; without values, braces stay
    as they are. A text whose translation is missing, out of date or has other names in braces stays English."""
    here = language()
    result = text if here == "en" else catalogue(here).get(text, text)
    if result is not text and values and places(result) != places(text):
        result = text
    return result.format(**values) if values else result


def language() -> str:
    """The learner's language, "en" or the name of a folder here: `$MINFLOW_LANG`, else JupyterLab's, else English."""
    named = short(os.environ.get("MINFLOW_LANG") or of_jupyterlab())
    return named if named in languages() else "en"


def short(name: str) -> str:
    """ "zh" for "zh_CN.UTF-8" """
    return re.split(r"[-_.@]", name.strip().lower())[0]


@functools.cache
def languages() -> tuple[str, ...]:
    """Those that there are translations for."""
    return tuple(sorted(folder.name for folder in FOLDER.iterdir() if any(folder.glob("*.po"))))


@functools.cache
def of_jupyterlab() -> str:
    """What the user chose under Settings > Language, "" where that is unknown: JupyterLab does not say it to kernels,
    but keeps it in a file."""
    paths = sys.modules.get("jupyter_core.paths")  # imported by every kernel
    if paths is None:
        return ""
    top = os.environ.get("JUPYTERLAB_SETTINGS_DIR") or os.path.join(paths.jupyter_config_dir(), "lab", "user-settings")
    file = Path(top, "@jupyterlab", "translation-extension", "plugin.jupyterlab-settings")
    try:
        found = re.search(r'^\s*"locale"\s*:\s*"([\w-]+)"', file.read_text(encoding="utf-8"), re.MULTILINE)
    except (OSError, UnicodeError):
        return ""
    return found.group(1) if found else ""


@functools.cache
def catalogue(language: str) -> dict[str, str]:
    """English text -> its translation, of all files of that language."""
    result: dict[str, str] = {}
    for file in sorted((FOLDER / language).glob("*.po")):
        for entry in po.read(file):
            if entry.current:
                result.setdefault(entry.text, entry.translation)
    return result


def places(text: str) -> set[str]:
    """The names in braces; {"?"} where the braces are no format."""
    try:
        return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}
    except ValueError:
        return {"?"}


# ---- code with characters of a Chinese keyboard ---------------------------------------------------------------------

PLAIN = {
    "、": ",",
    "。": ".",
    "“": '"',
    "”": '"',
    "‘": "'",
    "’": "'",
    "【": "[",
    "】": "]",
    "「": "[",
    "」": "]",
    "《": "<",
    "》": ">",
    "—": "-",
    "–": "-",
    "−": "-",
    "×": "*",
    "÷": "/",
    "≤": "<=",
    "≥": ">=",
    "≠": "!=",
    "…": "...",
    "￥": "$",
    "\u3000": " ",
    "\u00a0": " ",
    "\u200b": "",
    "\ufeff": "",
}
PLAIN |= {chr(code + 0xFEE0): chr(code) for code in range(0x21, 0x7F) if not chr(code).isalpha() and code != ord("_")}
QUIET = re.compile(
    r"#[^\n]*"
    r"|'''(?:\\.|(?!''').)*(?:'''|\Z)"
    r'|"""(?:\\.|(?!""").)*(?:"""|\Z)'
    r"|'(?:\\.|[^'\\\n])*'"
    r'|"(?:\\.|[^"\\\n])*"',
    re.DOTALL,
)


def odd_characters(source: str) -> list[tuple[int, int, str, str]]:
    """Brackets, quotes and other signs in code that are not those of a programming language, as they come from a
    Chinese keyboard or from a text. (line, column, sign, the plain sign) of each; line and column count from 1.
    Strings and comments may hold any."""
    quiet = [(match.start(), match.end()) for match in QUIET.finditer(source)]
    found = [
        match
        for match in re.finditer("|".join(map(re.escape, PLAIN)), source)
        if not any(first <= match.start() < last for first, last in quiet)
    ]
    return [
        (
            source.count("\n", 0, match.start()) + 1,
            match.start() - source.rfind("\n", 0, match.start()),
            match.group(),
            PLAIN[match.group()],
        )
        for match in found
    ]
