"""Notebooks as plain data: released lessons, and files from learners, which may contain anything.

A notebook is the dict of its JSON, with each cell's source as one string. The cells of an exercise have the ids
`slope-task`, `slope-answer` and `slope-check`. Runs nothing. Read next: `grade.py`.
"""

from __future__ import annotations

import ast
import contextlib
import csv
import functools
import io
import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ... import course
from ...io import atomic
from ...io.files import open_regular
from .. import cells, external
from ..answer_source import top_names
from ..definition import Exercise
from ..i18n import language, say
from ..registry import all_exercises as all_exercises, find, lesson_exercises, lessons
from ..translate.notebook import in_language

MAX_BYTES = 50_000_000  # bytes of a notebook that `read` accepts
MAX_ITEMS = 1_000_000  # values in it: an empty list takes 64 bytes of memory for 3 bytes of the file
MAX_CELLS = 5_000
MAX_DEPTH = 30  # folders in folders
MAX_SOURCE = 100_000  # characters of a cell that is parsed: its syntax tree takes 600 times the memory
MAX_CODE = 1_000_000  # characters of all code cells
PARTS = ("task", "answer", "check")
VARIANT_ANSWER = re.compile(r"([a-z0-9-]{1,60}-[0-9a-f]{8})-answer")
BINDS = re.compile(r"^(?:(?:async +)?def|class) +(\w+)|^(\w+) *=(?!=)", re.MULTILINE)


class NotebookError(ValueError):
    """The file is not a readable notebook. The text says why, in one line."""


# ---- files ----------------------------------------------------------------------------------------------------------


def read(path: Path, links: bool = True, outputs: bool = True) -> dict[str, Any]:
    """Read a notebook, dropping invalid cells. links: True to follow links. outputs: False to drop those.

    Raises NotebookError.
    """
    return parse(content(path, links), outputs)


def read_release(path: Path) -> dict[str, Any]:
    """Read a notebook of the course in the language of the command. Raises NotebookError."""
    data, top = content(path), course.source()
    return parse(in_language(language(), top)(path, data) if path.is_relative_to(top) else data)


def content(path: Path, links: bool = True) -> bytes:
    """Bytes of a notebook. Raises NotebookError if it is not a plain file or too large."""
    try:
        with open_regular(path, links) as file:
            result = file.read(MAX_BYTES + 1)
    except OSError as error:
        linked = not links and os.path.islink(path)
        raise NotebookError("it is a link" if linked else error.strerror or type(error).__name__) from error
    if len(result) > MAX_BYTES:
        raise NotebookError(say("it has more than {bytes} bytes", bytes=f"{MAX_BYTES:,}"))
    return result


def parse(content: bytes, outputs: bool = True) -> dict[str, Any]:
    """Notebook from its bytes, without invalid cells. Raises NotebookError."""
    if sum(content.count(sign) for sign in (b",", b"[", b"{")) > MAX_ITEMS:
        raise NotebookError(f"it has more than {MAX_ITEMS:,} values")
    try:
        data = json.loads(content, object_hook=None if outputs else without_outputs)
    except (ValueError, RecursionError, MemoryError) as error:
        raise NotebookError(say("it is not JSON")) from error
    if not isinstance(data, dict) or not isinstance(data.get("cells"), list):
        raise NotebookError(say("it has no list of cells: is its format nbformat 4?"))
    data["cells"] = [normalized_cell(cell) for cell in data["cells"] if isinstance(cell, dict)]
    if len(data["cells"]) > MAX_CELLS:
        raise NotebookError(f"it has more than {MAX_CELLS:,} cells")
    if sum(len(cell["source"]) for cell in data["cells"] if cell.get("cell_type") == "code") > MAX_CODE:
        raise NotebookError(f"it has more than {MAX_CODE:,} characters of code")
    if not isinstance(data.get("metadata"), dict):
        data["metadata"] = {}
    return data


def without_outputs(part: dict[str, Any]) -> dict[str, Any]:
    return {**part, "outputs": []} if "outputs" in part else part


def format_remark(notebook: dict[str, Any]) -> str:
    """Remark on a notebook that Jupyter would not open, "" for others."""
    version = notebook.get("nbformat")
    if type(version) is int and version == 4:
        return ""
    return f"its nbformat is {version!r:.20}: Jupyter needs 4" if "nbformat" in notebook else "it has no nbformat"


def normalized_cell(cell: dict[str, Any]) -> dict[str, Any]:
    """Normalize a cell: source as one string, metadata as a dict."""
    source = cell.get("source", "")
    if isinstance(source, list):
        source = "".join(line for line in source if isinstance(line, str))
    metadata = cell.get("metadata")
    return {
        **cell,
        "source": source if isinstance(source, str) else "",
        "metadata": metadata if isinstance(metadata, dict) else {},
    }


def write(path: Path, notebook: dict[str, Any]) -> None:
    """Write the notebook in Jupyter's format, atomically."""
    written = [{**cell, "source": cell["source"].splitlines(keepends=True)} for cell in notebook["cells"]]
    text = json.dumps({**notebook, "cells": written}, indent=1, ensure_ascii=False) + "\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic.write(path, text.encode("utf-8", "replace"))


def cell(kind: str, source: str, name: str, **metadata: Any) -> dict[str, Any]:
    """Make a cell. kind: "code", "markdown" or "raw". name: its id."""
    result: dict[str, Any] = {"cell_type": kind, "id": name, "metadata": metadata, "source": source}
    return result | {"execution_count": None, "outputs": []} if kind == "code" else result


def notebooks(paths: Iterable[str]) -> list[Path]:
    """Notebooks among the paths and below the folders among them, without Jupyter's hidden files."""
    result: list[Path] = []
    for path in map(Path, paths):
        inside = sorted(files_below(path, ".ipynb")) if path.is_dir() else [path]
        result += [file for file in inside if file == path or course.is_visible(file, path)]
    return list(dict.fromkeys(result))


def files_below(top: Path, ending: str) -> Iterator[Path]:
    """Files whose names end so, at most MAX_DEPTH folders deep. Follows no links to folders."""
    folders = [(str(top), 0)]
    while folders:
        folder, depth = folders.pop()
        try:
            entries = list(os.scandir(folder))
        except OSError:  # it cannot be read, or its path is too long
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders += [(entry.path, depth + 1)] if depth < MAX_DEPTH else []
            elif entry.name.endswith(ending):
                yield Path(entry.path)


# ---- lessons --------------------------------------------------------------------------------------------------------


def releases(numbers: Iterable[str] | None = None) -> dict[str, Path]:
    """Lesson ("02") -> its notebook, for lessons with exercises.

    Raises LookupError for an unknown one in `numbers`, and for a number that two notebooks have.
    """
    files = external.notebooks(sorted(course.source().glob(external.LESSON_PATTERN)))
    every = {lesson: files[lesson] for lesson in lessons() if lesson in files}
    numbers = list(every) if not numbers else list(numbers)
    if missing := [lesson for lesson in numbers if lesson not in every]:
        text = say("there is no lesson {number} with exercises; there are:", number=missing[0])
        meant = [number.zfill(2) for number in re.findall(r"\d+", missing[0])]
        hint = say("Did you mean {option}?", option=f"--lesson {' '.join(meant)}") if {*meant} & {*every} else ""
        raise LookupError(f"{text} {', '.join(every)}. {hint}".rstrip())
    return {lesson: every[lesson] for lesson in numbers}


def cell_id(name: str, part: str) -> str:
    """Id of a cell of an exercise, such as "slope-answer"."""
    return f"{name}-{part}".replace("_", "-")


def exercise_cells(notebook: dict[str, Any]) -> dict[str, tuple[Exercise, str]]:
    """Cell id -> (exercise, "task", "answer" or "check"), for exercises whose answer cell is in the notebook."""
    ids = {name for cell in notebook["cells"] for name in cell_ids(cell)}
    return {
        cell_id(exercise.name, part): (exercise, part)
        for exercise in (*all_exercises(), *variants(ids))
        if cell_id(exercise.name, "answer") in ids
        for part in PARTS
    }


def variants(ids: Iterable[str]) -> list[Exercise]:
    """Variants for exams (exam/variants.py) among the ids of cells."""
    found = []
    for name in ids:
        if match := VARIANT_ANSWER.fullmatch(name):
            with contextlib.suppress(LookupError):  # not an exercise
                found.append(find(match[1].replace("-", "_")))
    return found


def exercises_of(notebook: dict[str, Any]) -> list[Exercise]:
    """Exercises of a release, in the order of its cells."""
    known = exercise_cells(notebook)
    return list(
        {
            known[name][0].name: known[name][0]
            for cell in notebook["cells"]
            for name in cell_ids(cell)
            if name in known
        }.values()
    )


def lesson_of(notebook: dict[str, Any], path: Path) -> str:
    """Lesson of a notebook: that of most of its exercises, else the number in its name. Raises NotebookError."""
    count: dict[str, int] = {}
    for exercise in exercises_of(notebook):
        count[exercise.lesson] = count.get(exercise.lesson, 0) + 1
    if count:
        return max(count, key=lambda lesson: count[lesson])
    if found := lesson_named(path):
        return found
    raise NotebookError(say("it is not a lesson with exercises"))


def lesson_named(path: Path) -> str:
    """Lesson by the name of a file, such as "02_downhill.ipynb", or of its folder, "ps02"; "" if neither names one."""
    numbers = [re.match(r"(\d\d)(?=_)", path.name), re.fullmatch(r"ps(\d\d)", path.absolute().parent.name)]
    return next((number[1] for number in numbers if number and number[1] in lessons()), "")


def points_of(lesson: str) -> int:
    """Sum of the points of a lesson's exercises; 0 for ""."""
    return sum(exercise.points for exercise in lesson_exercises(lesson))


def release_of(notebook: dict[str, Any], path: Path) -> dict[str, Any]:
    """The released lesson of a learner's notebook, in the language of the command. Raises NotebookError."""
    lesson = lesson_of(notebook, path)
    return read_release(releases([lesson])[lesson])


def require_release(notebook: dict[str, Any], released: dict[str, Any]) -> None:
    """Raise NotebookError if a notebook has exercises, by the ids of its cells, but none of the release's."""
    theirs, ours = ([exercise.name for exercise in exercises_of(one)] for one in (notebook, released))
    if theirs and not set(theirs) & set(ours):
        raise NotebookError(
            say(
                "its exercises ({theirs}) are not those of the release ({ours}); an exam needs --release with the "
                "teacher's notebook of its seed",
                theirs=first_names(theirs),
                ours=first_names(ours),
            )
        )


def first_names(names: list[str]) -> str:
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")


# ---- the learner's answers ------------------------------------------------------------------------------------------


def cell_ids(cell: dict[str, Any]) -> list[str]:
    """Ids of a cell: Jupyter's, Colab's and nbgrader's."""
    grader = cell["metadata"].get("nbgrader")
    places = (cell.get("id"), cell["metadata"].get("id"), grader.get("grade_id") if isinstance(grader, dict) else None)
    return [name for name in places if isinstance(name, str)]


def find_answer(notebook: dict[str, Any], exercise: Exercise) -> tuple[str, str]:
    """Find the learner's answer. Returns its source, "" if there is none, and a remark, "" if nothing is unusual.

    Learners copy, split and delete cells. Among several cells with the answer's id, the last one with changes is used.
    A split answer is joined from the cells between task and check. Without the id, the last cell that binds the name of
    the answer is used.
    """
    code = [cell for cell in notebook["cells"] if cell.get("cell_type") == "code"]
    answer, check = cell_id(exercise.name, "answer"), cell_id(exercise.name, "check")
    own = [cell["source"] for cell in code if answer in cell_ids(cell)]
    written = [source for source in own if not cells.is_untouched(exercise.name, source)] or own
    remark = say("{count} cells have the id {id}", count=len(own), id=answer) if len(own) > 1 else ""
    last = written[-1] if written else ""
    if last.strip() and (exercise.answer in bound_names(last) or cells.is_untouched(exercise.name, last)):
        return last, remark
    if between := cells_between(notebook["cells"], cell_id(exercise.name, "task"), check):
        pieces = [cell["source"] for cell in between if cell.get("cell_type") == "code"]
        joined = "\n".join(pieces)
        if exercise.answer in bound_names(joined):
            return joined, say("the answer is in {count} cells", count=len(pieces))
    others = [
        cell["source"]
        for cell in code
        if check not in cell_ids(cell) and exercise.answer in bound_names(cell["source"])
    ]
    if others and not own:
        return others[-1], say("no cell has the id {id}: found by name", id=answer)
    return (written[-1], remark) if written else ("", say("no cell has the id {id}", id=answer))


def cells_between(all_cells: list[dict[str, Any]], first: str, last: str) -> list[dict[str, Any]]:
    """Cells between the one with id `first` and the next one with id `last`; [] unless both exist."""
    inside: list[dict[str, Any]] | None = None
    for cell in all_cells:
        if inside is not None and last in cell_ids(cell):
            return inside
        if first in cell_ids(cell):
            inside = []
        elif inside is not None:
            inside.append(cell)
    return []


def syntax_tree(source: str) -> ast.Module | None:
    """Syntax tree of a cell; None if it is not Python or too long."""
    try:
        return ast.parse(source) if len(source) <= MAX_SOURCE else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def as_python(source: str) -> str:
    """Replace IPython's own lines (`%time`, `!ls`) with `pass` if the source is not valid Python."""
    if syntax_tree(source) is not None:
        return source
    return re.sub(r"^([ \t]*)[%!].*$", r"\1pass", source, flags=re.MULTILINE)


@functools.lru_cache(200)
def bound_names(source: str) -> frozenset[str]:
    """Names that a cell binds outside functions and classes; found by a regular expression if it does not parse."""
    tree = syntax_tree(as_python(source))
    if tree is None:
        return frozenset(name for pair in BINDS.findall(source) for name in pair if name)
    return frozenset(top_names(tree))


def names_of(notebook: dict[str, Any]) -> set[str]:
    """Names that the code cells bind."""
    sources = [cell["source"] for cell in notebook["cells"] if cell.get("cell_type") == "code"]
    return {name for source in sources for name in bound_names(source)}


# ---- tables ---------------------------------------------------------------------------------------------------------


def to_csv(rows: Iterable[Iterable[Any]]) -> str:
    """Format rows as CSV. A text that a spreadsheet would read as a formula gets a leading quote."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows([escape_formula(value) for value in row] for row in rows)
    return file.getvalue()


def escape_formula(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    value = printable(value)
    return f"'{value}" if value.startswith(("=", "+", "-", "@", "\t")) else value


def table_cell(text: str) -> str:
    """Escape a text for a cell of a table in Markdown."""
    return text.replace("\n", " ").replace("|", "\\|")


def printable(text: str) -> str:
    """Replace characters that change the writing direction, end lines or are lone surrogates."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)
