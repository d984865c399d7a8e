"""Translations of the checker's texts: `say(text)` returns a text in the learner's language.

The source language is English, in the code. Translations are PO files: `zh/checker.po` for the texts of the checker,
`zh/l02.po` for the exercises of a lesson, `zh/pictures.po` for the words of pictures. They are read on first use in a
language other than English, and updated by `minflow exercises translate`. Read next: `po.py`.
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
    """Translate a text and fill in `{name}` from the values; without values, braces stay unchanged.

    Returns English if the translation is missing, out of date, or has other names in braces.
    """
    return translated(text, values, "*")


def say_in_picture(text: str, /, **values: Any) -> str:
    """`say` for a word of a picture, whose translation is in `pictures.po` alone: "points" are not marks there."""
    return translated(text, values, "pictures")


def say_of_lesson(lesson: str, text: str) -> str:
    """Translate a text of an exercise as its lesson does: the same name of a wrong answer may mean something else."""
    result = translated(text, {}, f"l{lesson}")
    return say(text) if result is text else result


def translated(text: str, values: dict[str, Any], pages: str) -> str:
    """The text in the learner's language, from the pages whose names match."""
    here = language()
    result = text if here == "en" else catalog(here, pages).get(text, text)
    if result is not text and values and placeholders(result) != placeholders(text):
        result = text
    return result.format(**values) if values else result


def language() -> str:
    """The learner's language, "en" or the name of a folder here: `$MINFLOW_LANG`, else that of the lessons in the
    working directory (`zh/`), else JupyterLab's, else "en".
    """
    named = language_code(os.environ.get("MINFLOW_LANG") or folder_language() or jupyterlab_language())
    return named if named in languages() else "en"


def language_code(name: str) -> str:
    """Language code of a locale: "zh" for "zh_CN.UTF-8"."""
    return re.split(r"[-_.@]", name.strip().lower())[0]


@functools.cache
def languages() -> tuple[str, ...]:
    """Languages with translations."""
    return tuple(sorted(folder.name for folder in FOLDER.iterdir() if any(folder.glob("*.po"))))


def folder_language() -> str:
    """Language whose name the working directory has, as the folder of a translated lesson; "" if none."""
    try:
        name = Path.cwd().name
    except OSError:  # the directory was deleted
        return ""
    return name if name in languages() else ""


@functools.cache
def jupyterlab_language() -> str:
    """Language chosen under Settings > Language, read from JupyterLab's settings file; "" if unknown.

    JupyterLab does not tell kernels.
    """
    paths = sys.modules.get("jupyter_core.paths")  # imported by every kernel
    if paths is None:
        return ""
    try:
        top = os.environ.get("JUPYTERLAB_SETTINGS_DIR") or Path(paths.jupyter_config_dir(), "lab", "user-settings")
        file = Path(top, "@jupyterlab", "translation-extension", "plugin.jupyterlab-settings")
        found = re.search(r'^\s*"locale"\s*:\s*"([\w-]+)"', file.read_text(encoding="utf-8"), re.MULTILINE)
    except (OSError, UnicodeError, RuntimeError):  # RuntimeError: the user has no home
        return ""
    return found.group(1) if found else ""


@functools.cache
def catalog(language: str, pages: str = "*") -> dict[str, str]:
    """English text -> translation, from the files of a language whose names match."""
    result: dict[str, str] = {}
    for file in sorted((FOLDER / language).glob(f"{pages}.po")):
        for entry in po.read(file):
            if entry.current:
                result.setdefault(entry.text, entry.translation)
    return result


def placeholders(text: str) -> set[str]:
    """Names in braces; {"?"} if the text is not a valid format string."""
    try:
        return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}
    except ValueError:
        return {"?"}


# ---- code with characters of a Chinese keyboard ---------------------------------------------------------------------

ASCII_FOR = {
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
ASCII_FOR |= {
    chr(code + 0xFEE0): chr(code) for code in range(0x21, 0x7F) if not chr(code).isalpha() and code != ord("_")
}
NOT_CODE = re.compile(
    r"#[^\n]*"
    r"|'''(?:\\.|(?!''').)*(?:'''|\Z)"
    r'|"""(?:\\.|(?!""").)*(?:"""|\Z)'
    r"|'(?:\\.|[^'\\\n])*'"
    r'|"(?:\\.|[^"\\\n])*"',
    re.DOTALL,
)


def find_non_ascii(source: str) -> list[tuple[int, int, str, str]]:
    """Find non-ASCII brackets, quotes and operators in code, as typed on a Chinese keyboard or copied from prose.

    Returns (line, column, character, ASCII replacement) of each, counted from 1. Strings and comments are skipped.
    """
    quiet = [(match.start(), match.end()) for match in NOT_CODE.finditer(source)]
    found = [
        match
        for match in re.finditer("|".join(map(re.escape, ASCII_FOR)), source)
        if not any(first <= match.start() < last for first, last in quiet)
    ]
    return [
        (
            source.count("\n", 0, match.start()) + 1,
            match.start() - source.rfind("\n", 0, match.start()),
            match.group(),
            ASCII_FOR[match.group()],
        )
        for match in found
    ]
