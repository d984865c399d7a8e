"""`minflow exercises translate`: brings translations up to date, says what they lack, builds lessons from them.

English is the source: notebooks, definitions of exercises, and `say("...")` in the checker. Of each page there is a PO
file; pages that are not translated yet, or not after a change, stand in `words/zh/not_yet.txt`.
"""

from __future__ import annotations

import fnmatch
from pathlib import Path

from ...core.messages import invocation
from ...io import atomic
from .. import i18n
from ..i18n import po
from .checks import differences, glossary
from .notebook import in_language
from .pages import Page, all_pages, merged


def not_yet(language: str) -> list[str]:
    """Names of pages, or patterns of names."""
    lines = (i18n.FOLDER / language / "not_yet.txt").read_text(encoding="utf-8").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def waits(page: Page, language: str) -> bool:
    return any(fnmatch.fnmatchcase(page.name, pattern) for pattern in not_yet(language))


def update(language: str, notebooks: Path, *names: str) -> list[Path]:
    """Write the texts of the pages into their PO files: of those that are named, else of all that are or should be
    translated. Returns the files that changed."""
    changed, every = [], all_pages(language, notebooks)
    known = {entry.text: entry.translation for page in every for entry in page.entries if entry.current}
    for page in every:
        if page.name in names or not names and (page.file.is_file() or not waits(page, language)):
            text = po.write(merged(page.entries, page.texts, known), language)
            if not page.file.is_file() or page.file.read_text(encoding="utf-8") != text:
                page.file.parent.mkdir(parents=True, exist_ok=True)
                atomic.write(page.file, text)
                changed.append(page.file)
    return changed


def check(language: str, notebooks: Path, *names: str) -> list[str]:
    """What is to be done, a line each; none if all is as it should be."""
    result, every = [], all_pages(language, notebooks)
    for page in every:
        if not names or page.name in names:
            result += [f"{page.name}: {line}" for line in missing(page, language) + faults(page, language)]
    files = {page.file for page in every}
    return result + [
        f"{file}: there is no such page any more; delete it or rename it"
        for folder in (i18n.FOLDER / language, notebooks / language)
        for file in sorted(folder.rglob("*.po"))
        if file not in files
    ]


def missing(page: Page, language: str) -> list[str]:
    """What has no translation, unless the page may wait for it."""
    entries = {entry.text: entry for entry in page.entries}
    new = [text for text in page.texts if text not in entries]
    open_ = [text for text in page.texts if text in entries and not entries[text].current]
    gone = [text for text in entries if text not in page.texts]
    if waits(page, language):
        return (
            []
            if new or open_ or gone or page.name not in not_yet(language)
            else [f"all of it is translated: take its name out of words/{language}/not_yet.txt"]
        )
    last = (
        f"translate what is empty or fuzzy in {page.file.name}. To change the English first, write {page.name} "
        f"into words/{language}/not_yet.txt."
    )
    if new or gone:
        again = invocation.command("exercises", "translate", "--update", language)
        return [
            f"{len(new)} texts are new or changed, {len(gone)} are gone, such as {(new or gone)[0][:60]!r}. "
            f"Run: {again}. Then {last}"
        ]
    return [f"{len(open_)} texts are not translated, such as {open_[0][:60]!r}: {last}"] if open_ else []


def faults(page: Page, language: str) -> list[str]:
    """What the translations that are there have otherwise than the English, or than the glossary."""
    result, table = [], glossary(language)
    for entry in page.entries:
        if entry.current:
            lines = differences(entry.text, entry.translation, language, form=page.name == "checker")
            term = entry.text.strip("*_ ")
            if entry.text in page.terms and not entry.translation.strip("*_ ").startswith(table.get(term, ("\n",))[0]):
                lines.append(
                    f"a table of words has {entry.translation!r}, words/{language}/glossary.tsv {table[term][0]!r}"
                    if term in table
                    else f"words/{language}/glossary.tsv lacks it"
                )
            result += [f"{entry.text[:60]!r}: {line}" for line in lines]
    return result


def build(language: str, notebooks: Path, folder: Path) -> list[Path]:
    """Write the lessons in that language into a folder. What is not translated stays English."""
    content, result = in_language(language, notebooks), []
    for path in sorted(notebooks.rglob("*.ipynb")):
        if not any(part.startswith(".") for part in path.relative_to(notebooks).parts):
            place = folder / path.relative_to(notebooks)
            place.parent.mkdir(parents=True, exist_ok=True)
            atomic.write(place, content(path, path.read_bytes()))
            result.append(place)
    return result


def command(task: str, language: str, notebooks: Path, rest: list[str]) -> int:
    """The command line's. task: "update", "check" or "build"."""
    if language not in i18n.languages():
        print(f"There is no language {language!r}; here are: {', '.join(i18n.languages())}")
        return 1
    if task == "build":
        print(f"{len(build(language, notebooks, Path(rest[0])))} lessons are in {rest[0]}")
        return 0
    if task == "update":
        for file in update(language, notebooks, *rest):
            print(f"updated: {file}")
    lines = check(language, notebooks, *rest)
    waiting = [page.name for page in all_pages(language, notebooks) if waits(page, language)]
    print("\n".join(lines) if lines else "All translations that should be there are up to date.")
    if waiting:
        print(f"In English, or partly so: {', '.join(waiting)}")
    return int(bool(lines)) if task == "check" else 0
