"""Fonts with which matplotlib draws the words of pictures in the learner's language."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

# Families with Chinese letters, of macOS, Windows and Linux; the first one that is installed is used.
FAMILIES = {
    "zh": (
        "PingFang SC",
        "Hiragino Sans GB",
        "Microsoft YaHei",
        "SimHei",
        "Noto Sans CJK SC",
        "Source Han Sans SC",
        "WenQuanYi Micro Hei",
        "Noto Sans CJK JP",
        "Arial Unicode MS",
    )
}


def use_fonts(language: str) -> None:
    """Let matplotlib, if it is installed, use a font of the language for letters that its usual fonts lack."""
    if language not in FAMILIES:
        return
    try:
        from matplotlib import font_manager, rcParams
    except ImportError:
        return
    manager = font_manager.fontManager
    if not set(FAMILIES[language]) & {font.name for font in manager.ttflist}:
        add_new_fonts(manager, font_manager.findSystemFonts())
    installed = {font.name for font in manager.ttflist}
    found = [name for name in FAMILIES[language] if name in installed]
    rcParams["font.family"] = list(dict.fromkeys([*rcParams["font.family"], *found[:1]]))


def add_new_fonts(manager: Any, files: list[str]) -> None:
    """Add fonts that are not in matplotlib's cached list, since they were installed later."""
    for file in set(files) - {font.fname for font in manager.ttflist}:
        with suppress(RuntimeError, OSError):  # not a font that matplotlib reads
            manager.addfont(file)
