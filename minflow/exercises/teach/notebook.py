"""Notebooks as plain data: a lesson as it is released, and what learners give back, which may be anything.

A notebook is the dict of its JSON; each cell's source is one string. The cells of an exercise have the ids
`slope-task`, `slope-answer` and `slope-check`.
"""

from __future__ import annotations

import ast
import csv
import io
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ... import course
from ...io import atomic
from ...io.files import opened
from .. import cells
from ..definition import Exercise
from ..registry import course as all_exercises
from ..registry import lessons

LARGEST = 50_000_000  # bytes of a notebook that is read
PARTS = ("task", "answer", "check")
BINDS = re.compile(r"^(?:(?:async +)?def|class) +(\w+)|^(\w+) *=(?!=)", re.MULTILINE)


class NoNotebook(ValueError):
    """The file is no notebook that can be read. Its text says why, in one line."""


# ---- files ----------------------------------------------------------------------------------------------------------


def read(path: Path) -> dict[str, Any]:
    """The notebook in a file, without cells that are none. Raises NoNotebook."""
    try:
        with opened(path) as file:
            content = file.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise NoNotebook(f"it has more than {LARGEST:,} bytes")
        data = json.loads(content)
    except NoNotebook:
        raise
    except OSError as error:
        raise NoNotebook(error.strerror or type(error).__name__) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise NoNotebook("it is no JSON") from error
    if not isinstance(data, dict) or not isinstance(data.get("cells"), list):
        raise NoNotebook("it has no list of cells: is it of Jupyter 4 or later?")
    data["cells"] = [whole(cell) for cell in data["cells"] if isinstance(cell, dict)]
    if not isinstance(data.get("metadata"), dict):
        data["metadata"] = {}
    return data


def whole(cell: dict[str, Any]) -> dict[str, Any]:
    """The cell with its source as one string and with metadata, whatever they were."""
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
    """Write the notebook as Jupyter does, all or nothing."""
    written = [{**cell, "source": cell["source"].splitlines(keepends=True)} for cell in notebook["cells"]]
    text = json.dumps({**notebook, "cells": written}, indent=1, ensure_ascii=False) + "\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic.write(path, text.encode("utf-8", "replace"))


def cell(kind: str, source: str, name: str, **metadata: Any) -> dict[str, Any]:
    """A new cell. kind: "code", "markdown" or "raw"; name: its id."""
    result: dict[str, Any] = {"cell_type": kind, "id": name, "metadata": metadata, "source": source}
    return result | {"execution_count": None, "outputs": []} if kind == "code" else result


def notebooks(paths: Iterable[str]) -> list[Path]:
    """The notebooks that are named, and those in the folders that are named, without what Jupyter keeps hidden."""
    result: list[Path] = []
    for path in map(Path, paths):
        inside = sorted(path.rglob("*.ipynb")) if path.is_dir() else [path]
        result += [file for file in inside if file == path or course.shown(file, path)]
    return list(dict.fromkeys(result))


# ---- lessons --------------------------------------------------------------------------------------------------------


def releases(wanted: Iterable[str] | None = None) -> dict[str, Path]:
    """Lesson ("02") -> its notebook, of those that have exercises. Raises LookupError for one that is wanted and is
    not there."""
    files = {file.name[:2]: file for file in sorted(course.source().glob("[0-9][0-9]_*.ipynb"))}
    every = {lesson: files[lesson] for lesson in lessons() if lesson in files}
    wanted = list(every) if not wanted else list(wanted)
    if missing := [lesson for lesson in wanted if lesson not in every]:
        raise LookupError(f"there is no lesson {missing[0]} with exercises; there are: {', '.join(every)}")
    return {lesson: every[lesson] for lesson in wanted}


def cell_id(name: str, part: str) -> str:
    """ "slope-answer" """
    return f"{name}-{part}".replace("_", "-")


def exercise_cells(notebook: dict[str, Any]) -> dict[str, tuple[Exercise, str]]:
    """Cell id -> (exercise, "task", "answer" or "check"), of those exercises whose answer stands in the notebook."""
    ids = {one for cell in notebook["cells"] for one in ids_of(cell)}
    return {
        cell_id(one.name, part): (one, part)
        for one in all_exercises()
        if cell_id(one.name, "answer") in ids
        for part in PARTS
    }


def exercises_of(notebook: dict[str, Any]) -> list[Exercise]:
    """The exercises of a release, in the order of its cells."""
    known = exercise_cells(notebook)
    return list(
        {
            known[one][0].name: known[one][0] for cell in notebook["cells"] for one in ids_of(cell) if one in known
        }.values()
    )


def lesson_of(notebook: dict[str, Any], path: Path) -> str:
    """Which lesson this is: most of its exercises decide, or else the number in its name. Raises NoNotebook."""
    count: dict[str, int] = {}
    for one in exercises_of(notebook):
        count[one.lesson] = count.get(one.lesson, 0) + 1
    if count:
        return max(count, key=lambda lesson: count[lesson])
    if (number := re.match(r"\d\d(?=_)", path.name)) and number[0] in lessons():
        return number[0]
    raise NoNotebook("it is no lesson with exercises")


# ---- the learner's answers ------------------------------------------------------------------------------------------


def ids_of(cell: dict[str, Any]) -> list[str]:
    """Under which names a cell is known: Jupyter's, Colab's, nbgrader's."""
    grader = cell["metadata"].get("nbgrader")
    places = (cell.get("id"), cell["metadata"].get("id"), grader.get("grade_id") if isinstance(grader, dict) else None)
    return [one for one in places if isinstance(one, str)]


def answer_in(notebook: dict[str, Any], exercise: Exercise) -> tuple[str, str]:
    """(the source of the learner's answer, "" if there is none; a remark, "" if all is as it should be).

    Cells are copied, split and deleted. Of several with the id of the answer the last one that was written in counts.
    One that has been split is put together from what stands between task and check. Without the id, the last cell that
    binds the name of the answer counts.
    """
    code = [cell for cell in notebook["cells"] if cell.get("cell_type") == "code"]
    answer, check = cell_id(exercise.name, "answer"), cell_id(exercise.name, "check")
    stub = cells.answer_cell(exercise.name).strip()
    own = [cell["source"] for cell in code if answer in ids_of(cell)]
    written = [source for source in own if source.strip() not in (stub, "")] or own
    remark = f"{len(own)} cells have the id {answer}" if len(own) > 1 else ""
    if written and (exercise.answer in bound(written[-1]) or written[-1].strip() == stub):
        return written[-1], remark
    if between := region(notebook["cells"], cell_id(exercise.name, "task"), check):
        pieces = [cell["source"] for cell in between if cell.get("cell_type") == "code"]
        joined = "\n".join(pieces)
        if exercise.answer in bound(joined):
            return joined, f"the answer stands in {len(pieces)} cells"
    others = [cell["source"] for cell in code if check not in ids_of(cell) and exercise.answer in bound(cell["source"])]
    if others and not own:
        return others[-1], f"no cell has the id {answer}: found by its name"
    return (written[-1], remark) if written else ("", f"no cell has the id {answer}")


def region(all_cells: list[dict[str, Any]], first: str, last: str) -> list[dict[str, Any]]:
    """The cells between the one with id `first` and the next one with id `last`; [] unless both are there."""
    inside: list[dict[str, Any]] | None = None
    for one in all_cells:
        if inside is not None and last in ids_of(one):
            return inside
        if first in ids_of(one):
            inside = []
        elif inside is not None:
            inside.append(one)
    return []


def python(source: str) -> str:
    """The cell's source with lines for IPython alone (`%time`, `!ls`) left out, if it is no Python otherwise."""
    try:
        ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return re.sub(r"^([ \t]*)[%!].*$", r"\1pass", source, flags=re.MULTILINE)
    return source


def bound(source: str) -> set[str]:
    """The names that a cell gives values to, outside of functions and classes; by the look of its lines where it
    cannot be parsed."""
    try:
        tree = ast.parse(python(source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {name for pair in BINDS.findall(source) for name in pair if name}
    return top_names(tree)


def top_names(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    todo: list[Any] = list(tree.body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
            continue
        if isinstance(node, ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.alias):
            names.add(node.asname or node.name.partition(".")[0])
        todo += ast.iter_child_nodes(node)
    return names


# ---- tables ---------------------------------------------------------------------------------------------------------


def table(rows: Iterable[Iterable[Any]]) -> str:
    """Rows as CSV. A text that a spreadsheet would take for a formula gets a quote before it."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows([safe(value) for value in row] for row in rows)
    return file.getvalue()


def safe(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    value = printable(value)
    return f"'{value}" if value.startswith(("=", "+", "-", "@", "\t")) else value


def printable(text: str) -> str:
    """One line without signs that turn the writing direction, end lines or are half a letter."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)
