"""Checks of a translation: code, formulas and numbers that differ, broken Markdown, words not in the glossary."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections import Counter
from pathlib import Path

from .. import i18n
from . import code
from .markdown import CODE, LINK, MATH, without_code

HAN = r"[\u3400-\u9fff]"
NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
TAG = re.compile(r"</?[a-zA-Z][^<>]*>")


def differences(text: str, translation: str, language: str = "zh", form: bool = False) -> list[str]:
    """Describe each problem in one line. form: True if the text has names in braces."""
    found = []
    for name, signs in (("code", CODE), ("formulas", MATH), ("addresses", LINK), ("HTML", TAG), ("numbers", NUMBER)):
        english, other = (
            Counter(found.group() for found in signs.finditer(bare(source, name))) for source in (text, translation)
        )
        for these, side in ((english - other, "English"), (other - english, language)):
            if these:
                found.append(f"{name} only in {side}: {', '.join(these)}")
    if form and i18n.placeholders(text) != i18n.placeholders(translation):
        found.append(f"names in braces: {sorted(i18n.placeholders(text))}, {sorted(i18n.placeholders(translation))}")
    if not emphasis(text):
        found += emphasis(translation)
    if re.search(r"\n\s*\n", translation) and not re.search(r"\n\s*\n", text):
        found.append("an empty line ends a paragraph")
    return found + (chinese(translation) if language == "zh" else []) + glossary_mismatches(text, translation, language)


def code_differences(text: str, translation: str, language: str = "zh") -> list[str]:
    """Describe the problems of a comment or a string of a code cell; parts in braces may be in another order."""
    here, there = code.fields(text), code.fields(translation)
    found = [] if here == there else [f"parts in braces: {' '.join(here)}, in {language}: {' '.join(there)}"]
    return found + differences(code.prose(text), code.prose(translation), language)


def bare(source: str, name: str) -> str:
    """Remove the parts that are counted under other names; digits of names in braces are not numbers."""
    if name != "code":
        source = CODE.sub(" ", source)
    if name in ("HTML", "numbers"):
        source = LINK.sub(" ", MATH.sub(" ", source))
    return re.sub(r"\{\w*(?::[^{}]*)?\}", " ", TAG.sub(" ", source)) if name == "numbers" else source


def emphasis(text: str) -> list[str]:
    """Find stars that Markdown does not read as bold or italic.

    By CommonMark's rule, a star after a letter does not open before punctuation, and a star before a letter does not
    close after punctuation. This is common in Chinese, which has no spaces.
    """
    for signs in (CODE, MATH):
        text = signs.sub(lambda match: match.group()[0] + "x" * (len(match.group()) - 2) + match.group()[-1], text)
    open_: list[int] = []
    wrong: list[str] = []
    for match in re.finditer(r"(?<!\\)\*+", text):
        before, after = text[: match.start()][-1:] or " ", text[match.end() :][:1] or " "
        opens = not after.isspace() and (not is_sign(after) or before.isspace() or is_sign(before))
        closes = not before.isspace() and (not is_sign(before) or after.isspace() or is_sign(after))
        place = text[max(match.start() - 6, 0) : match.end() + 6].replace("\n", " ")
        if closes and open_ and open_[-1][0] == match.group():
            open_.pop()
        elif opens:
            open_.append((match.group(), place))
        elif not (before.isspace() and after.isspace()):
            wrong.append(f"Markdown does not see this star: ...{place}...")
    return wrong + [f"a star that opens and does not close: ...{place}..." for _, place in open_]


def is_sign(sign: str) -> bool:
    return unicodedata.category(sign)[0] in "PS"


def chinese(text: str) -> list[str]:
    """Find half-width punctuation in Chinese text, and missing spaces between Chinese and Latin letters."""
    for signs in (CODE, MATH, LINK):
        text = signs.sub("x", text)
    found = [
        f"a sign of half width: ...{excerpt(text, match)}..."
        for match in re.finditer(
            rf"(?<={HAN})[,;:!?]|(?<={HAN})\.(?=\s|$)|(?<![\]A-Za-z0-9_])\([^()]*{HAN}[^()]*\)", text
        )
    ]
    return found + [
        f"a space is missing: ...{excerpt(text, match)}..."
        for match in re.finditer(rf"{HAN}[A-Za-z0-9]|[A-Za-z0-9%]{HAN}", text)
    ]


def excerpt(text: str, match: re.Match) -> str:
    return text[max(match.start() - 4, 0) : match.end() + 4].replace("\n", " ")


# ---- glossary ------------------------------------------------------------------------------------------------------


@functools.cache
def glossary(language: str) -> dict[str, tuple[str, ...]]:
    """English word -> its translations; the first is the one for tables of words."""
    return {line[0]: tuple(line[1].split("|")) for line in glossary_rows(language)}


def glossary_rows(language: str) -> list[list[str]]:
    file = Path(i18n.FOLDER, language, "glossary.tsv")
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    return [line.split("\t") for line in text.splitlines() if "\t" in line and not line.startswith("#")]


@functools.cache
def terms(language: str) -> re.Pattern:
    """Pattern of the glossary's words with one translation everywhere, longest first, singular and plural."""
    every = sorted((line[0] for line in glossary_rows(language) if line[2:] != ["table"]), key=len, reverse=True)
    return re.compile(rf"(?<![\w.-])({'|'.join(map(re.escape, every)) or '(?!)'})(?:e?s)?(?![\w(-])", re.IGNORECASE)


def glossary_mismatches(text: str, translation: str, language: str) -> list[str]:
    """Report glossary words with another translation. Words that stay English are names in code."""
    met, kept = (
        {match.group(1).lower() for match in terms(language).finditer(without_code(source))}
        for source in (text, translation)
    )
    table = {english.lower(): other for english, other in glossary(language).items()}
    return [
        f"{english!r} is {' or '.join(table[english])} in the glossary"
        for english in sorted(met - kept)
        if not any(word in translation for word in table[english])
    ]
