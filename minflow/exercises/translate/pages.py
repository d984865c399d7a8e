"""Pages to translate: the checker, the exercises of each lesson, and each lesson's notebook."""

from __future__ import annotations

import ast
import difflib
import inspect
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from .. import i18n, registry
from ..definition import Exercise
from ..exam import plans, variants
from ..i18n import po
from . import markdown, notebook

PACKAGE = Path(__file__).resolve().parents[2]
VIEWS, WIDGETS = PACKAGE / "views", PACKAGE.parent / "widgets" / "minflow_widgets"


class Page(NamedTuple):
    """A page to translate.

    name: "checker", "pictures", "l02" or "02_downhill". file: its PO file. texts: English text -> where it is used.
    terms: words that a lesson introduces. data: the lesson's notebook.
    """

    name: str
    file: Path
    texts: dict[str, str]
    terms: Iterable[str] = ()
    data: bytes = b'{"cells": []}'

    @property
    def entries(self) -> list[po.Entry]:
        """Entries of its PO file; [] if there is none."""
        return po.read(self.file) if self.file.is_file() else []


def all_pages(language: str, notebooks: Path) -> list[Page]:
    """All pages. notebooks: folder of the course."""
    place = i18n.FOLDER / language
    result = [
        Page("checker", place / "checker.po", checker_texts()),
        Page("exam", place / "exam.po", exam_texts()),
        Page("pictures", place / "pictures.po", picture_texts()),
    ]
    for lesson in registry.course_lessons():
        texts = merge_places(
            (text, f"l{lesson}/{exercise.name}.py")
            for exercise in map(registry.find, registry.course_lessons()[lesson])
            for text in exercise_texts(exercise)
        )
        result.append(Page(f"l{lesson}", place / f"l{lesson}.po", texts))
    for path in sorted(notebooks.rglob("*.ipynb")):
        if not any(part.startswith(".") for part in path.relative_to(notebooks).parts):
            name = path.relative_to(notebooks).with_suffix("").as_posix()
            data = path.read_bytes()
            file = notebook.po_file(language, notebooks, path)
            result.append(Page(name, file, notebook.texts(data), notebook.terms(data), data))
    return result


def merge_places(texts: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Merge (text, place) pairs into text -> all places."""
    result: dict[str, list[str]] = {}
    for text, where in texts:
        if markdown.has_words(text) and where not in result.setdefault(text, []):
            result[text].append(where)
    return {text: " ".join(places) for text, places in result.items()}


def exercise_texts(exercise: Exercise) -> Iterator[str]:
    """Yield the texts of an exercise that the checker may show, with the literal texts and results of its cases."""
    yield from (exercise.question, exercise.hint, exercise.fact, exercise.sibling, *exercise.forbidden.values())
    for wrong in exercise.wrongs:
        yield from (wrong.name, *wrong.hints)
    if exercise.make_cases is not None:
        tree = ast.parse(Path(inspect.getfile(exercise.make_cases)).read_text(encoding="utf-8"))
        given = [
            (word.arg, word.value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "case"
            for word in node.keywords
        ]
        runs = {getattr(value, "id", "") for arg, value in given if arg == "run"}
        shown = [value for arg, value in given if arg == "expected" or isinstance(value, ast.Constant)]
        for function in tree.body:
            if isinstance(function, ast.FunctionDef) and function.name in runs:
                shown += [node.value for node in ast.walk(function) if isinstance(node, ast.Return) and node.value]
        yield from (text for value in shown for text in possible_texts(value))


def possible_texts(node: ast.expr) -> list[str]:
    """Literal texts that an expression may give, directly or as a part of a condition."""
    if isinstance(node, ast.IfExp):
        return possible_texts(node.body) + possible_texts(node.orelse)
    if isinstance(node, ast.BoolOp):
        return [text for value in node.values for text in possible_texts(value)]
    return [node.value] if isinstance(node, ast.Constant) and isinstance(node.value, str) else []


def exam_texts() -> dict[str, str]:
    """Texts of the variants for exams: tasks, and the names and hints of their own wrong answers."""
    found = []
    for name in plans.coverage()[0]:
        known: Any = variants.family(name)
        file = f"exam/{name}"
        texts = [variants.READ_AGAIN, known.task]
        if callable(known.variants):
            every: list[Any] = [registry.find(f"{name}_{variants.key_of(seed, name)}") for seed in range(12)]
            texts += [one.task.args[0] for one in every]  # see variants.question
            texts += [text for one in every for wrong in one.wrongs for text in (wrong.name, *wrong.hints)]
        else:
            texts += [change.asks for change in known.variants]
        found += [(text, file) for text in texts]
    return merge_places(found)


def checker_texts() -> dict[str, str]:
    """Texts of all `say("...")` calls in the package, except in its pictures -> the files that contain them."""
    return said_in(path for path in PACKAGE.rglob("*.py") if VIEWS not in path.parents)


def picture_texts() -> dict[str, str]:
    """Texts of all `say("...")` calls in pictures and widgets -> the files that contain them."""
    return said_in([*VIEWS.rglob("*.py"), *WIDGETS.rglob("*.py")])


def said_in(files: Iterable[Path]) -> dict[str, str]:
    found = []
    for path in sorted(files):
        source = path.read_text(encoding="utf-8")
        if re.search(r"\bimport\b.*\bsay\b", source):
            place = path.relative_to(WIDGETS.parent if WIDGETS in path.parents else PACKAGE)
            found += [(text, place.as_posix()) for text in literal_texts(source)]
    return merge_places(found)


def literal_texts(source: str) -> list[str]:
    """Literal texts that a program passes to `say`: directly, in a conditional, or from a table of the same file.

    Raises ValueError for a concatenated or formatted text, which cannot be looked up.
    """
    tree = ast.parse(source)
    tables = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }

    def of(node: ast.expr) -> list[str]:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return [node.value]
        if isinstance(node, ast.IfExp):
            return of(node.body) + of(node.orelse)
        if isinstance(node, ast.JoinedStr | ast.BinOp):
            raise ValueError(f"line {node.lineno}: say(...) must get a literal text, got {ast.unparse(node)}")
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in tables:
            return of(tables[node.value.id])
        if isinstance(node, ast.Dict):
            return [text for value in node.values for text in of(value)]
        return [text for value in getattr(node, "elts", ()) for text in of(value)]

    return [
        text
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and node.args
        and getattr(node.func, "id", getattr(node.func, "attr", "")) == "say"
        for text in of(node.args[0])
    ]


def merge_entries(old: list[po.Entry], texts: dict[str, str], known: dict[str, str]) -> list[po.Entry]:
    """Entries for the texts, with the translations of the old entries.

    A new text gets its translation from `known`, if another page has it, else that of the most similar old text, marked
    as fuzzy.
    """
    kept = {entry.text: entry for entry in old}
    free = [entry for entry in old if entry.translation and entry.text not in texts]
    result = []
    for text, where in texts.items():
        entry = po.Entry(text, where=where)
        if text in kept:
            was = kept[text]
            entry.translation, entry.fuzzy, entry.before = was.translation, was.fuzzy, was.before
        elif text in known:
            entry.translation = known[text]
        elif free:
            near = max(free, key=lambda other: similarity(other, entry))
            if similarity(near, entry) > 0.6:
                entry.translation, entry.fuzzy, entry.before = near.translation, True, near.before or near.text
                free.remove(near)
        result.append(entry)
    return result


def similarity(a: po.Entry, b: po.Entry) -> float:
    """Similarity of two entries, from 0 to 1, plus 0.1 if they come from the same place."""
    return difflib.SequenceMatcher(None, a.text, b.text, autojunk=False).ratio() + 0.1 * (a.where == b.where)
