"""`minflow exercises translate`: update and check translations, and build lessons from them.

The source is English: notebooks (with the comments of their code and the strings that it shows), definitions of
exercises, and `say("...")` in the checker and in pictures. Each page has a PO file.
Pages that may be incomplete are listed in `i18n/zh/not_yet.txt`. Read next: `pages.py`.
"""

from __future__ import annotations

import fnmatch
from pathlib import Path

from ...core.messages import invocation
from ...io import atomic
from .. import i18n
from ..i18n import po
from .checks import code_differences, differences, glossary
from .notebook import changed_programs, code_texts, in_language
from .pages import Page, all_pages, merge_entries

FORMS = ("checker", "exam", "pictures")  # pages of texts with values in braces


def not_yet(language: str) -> list[str]:
    """Names, or name patterns, of pages whose translation may be incomplete."""
    lines = (i18n.FOLDER / language / "not_yet.txt").read_text(encoding="utf-8").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def may_be_incomplete(page: Page, language: str) -> bool:
    return any(fnmatch.fnmatchcase(page.name, pattern) for pattern in not_yet(language))


def update(language: str, notebooks: Path, *names: str) -> list[Path]:
    """Write the texts of pages into their PO files. Returns the changed files.

    names: pages to update; by default all that are, or should be, translated.
    """
    changed, every = [], all_pages(language, notebooks)
    known = {entry.text: entry.translation for page in every for entry in page.entries if entry.current}
    for page in every:
        if page.name in names or (not names and (page.file.is_file() or not may_be_incomplete(page, language))):
            text = po.write(merge_entries(page.entries, page.texts, known), language)
            if not page.file.is_file() or page.file.read_text(encoding="utf-8") != text:
                page.file.parent.mkdir(parents=True, exist_ok=True)
                atomic.write(page.file, text)
                changed.append(page.file)
    return changed


def check(language: str, notebooks: Path, *names: str) -> list[str]:
    """List the problems of all pages, or of those named; [] if there are none."""
    result, every = [], all_pages(language, notebooks)
    for page in every:
        if not names or page.name in names:
            result += [
                f"{page.name}: {line}"
                for line in missing_translations(page, language) + translation_problems(page, language)
            ]
    files = {page.file for page in every}
    return result + [
        f"{file}: its page no longer exists; delete or rename the file"
        for folder in (i18n.FOLDER / language, notebooks / language)
        for file in sorted(folder.rglob("*.po"))
        if file not in files
    ]


def missing_translations(page: Page, language: str) -> list[str]:
    """Report missing translations, unless the page may be incomplete."""
    entries = {entry.text: entry for entry in page.entries}
    new = [text for text in page.texts if text not in entries]
    open_ = [text for text in page.texts if text in entries and not entries[text].current]
    gone = [text for text in entries if text not in page.texts]
    if may_be_incomplete(page, language):
        return (
            []
            if new or open_ or gone or page.name not in not_yet(language)
            else [f"all of it is translated: remove its name from i18n/{language}/not_yet.txt"]
        )
    last = (
        f"translate empty and fuzzy entries in {page.file.name}. To change the English first, add {page.name} "
        f"to i18n/{language}/not_yet.txt."
    )
    if new or gone:
        again = invocation.command("exercises", "translate", "--update", language)
        return [
            f"{len(new)} texts are new or changed, {len(gone)} are gone, such as {(new or gone)[0][:60]!r}. "
            f"Run: {again}. Then {last}"
        ]
    return [f"{len(open_)} texts are not translated, such as {open_[0][:60]!r}: {last}"] if open_ else []


def translation_problems(page: Page, language: str) -> list[str]:
    """Report translations that do not match the English text or the glossary."""
    result, table, in_code = [], glossary(language), code_texts(page.data)
    for entry in page.entries:
        if entry.current:
            lines = (
                code_differences(entry.text, entry.translation, language)
                if entry.text in in_code
                else differences(
                    entry.text, entry.translation, language, form=page.name in ("checker", "exam", "pictures")
                )
            )
            term = entry.text.strip("*_ ")
            if entry.text in page.terms and not entry.translation.strip("*_ ").startswith(table.get(term, ("\n",))[0]):
                lines.append(
                    f"a table of words has {entry.translation!r}, i18n/{language}/glossary.tsv {table[term][0]!r}"
                    if term in table
                    else f"i18n/{language}/glossary.tsv lacks it"
                )
            result += [f"{entry.text[:60]!r}: {line}" for line in lines]
    translated = {entry.text: entry.translation for entry in page.entries if entry.current}
    return result + [
        f"cell {name}: its code is another program when translated" for name in changed_programs(page.data, translated)
    ]


def build(language: str, notebooks: Path, folder: Path) -> list[Path]:
    """Write the lessons in a language into a folder. Untranslated texts stay English. Returns the files."""
    content, result = in_language(language, notebooks), []
    for path in sorted(notebooks.rglob("*.ipynb")):
        if not any(part.startswith(".") for part in path.relative_to(notebooks).parts):
            place = folder / path.relative_to(notebooks)
            place.parent.mkdir(parents=True, exist_ok=True)
            atomic.write(place, content(path, path.read_bytes()))
            result.append(place)
    return result


def command(task: str, language: str, notebooks: Path, rest: list[str]) -> int:
    """Run one task of the command line, "update", "check" or "build". Returns the exit code."""
    if language not in i18n.languages():
        print(f"There is no language {language!r}; there are: {', '.join(i18n.languages())}")
        return 1
    if task == "build":
        print(f"{len(build(language, notebooks, Path(rest[0])))} lessons are in {rest[0]}")
        return 0
    if task == "update":
        for file in update(language, notebooks, *rest):
            print(f"updated: {file}")
    lines = check(language, notebooks, *rest)
    waiting = [page.name for page in all_pages(language, notebooks) if may_be_incomplete(page, language)]
    print("\n".join(lines) if lines else "All required translations are up to date.")
    if waiting:
        print(f"Still partly in English: {', '.join(waiting)}")
    return int(bool(lines)) if task == "check" else 0
