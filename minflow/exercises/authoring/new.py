"""`minflow exercises new`: write an exercise outside the package.

A new exercise is a complete small example (template.py.txt) under the given name. Its lesson is a notebook beside it.
Read next: `proof.py`.
"""

from __future__ import annotations

import keyword
import re
from pathlib import Path
from typing import Any

from ...io import atomic
from .. import cells, external
from ..definition import Exercise
from ..registry import all_exercises, course_file, course_lessons, find, lesson_exercises
from ..teach import notebook as nb

TEMPLATE = Path(__file__).with_name("template.py.txt")
FIRST = "import numpy as np\n\nimport minflow as flow\nfrom minflow.exercises import check, hint"


def new(name: str, folder: Path, lesson: str) -> list[Path]:
    """Write FOLDER/NAME.py, and its cells into the notebook of its lesson in FOLDER. Returns both.

    Raises ValueError for a name or lesson that cannot be used, and OSError.
    """
    if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
        raise ValueError(f"{name!r} is not a name for a function in Python")
    if not (lesson.isdigit() and len(lesson) == 2) or lesson in course_lessons():
        raise ValueError(f"the lesson must be a number of two digits from {len(course_lessons())} on, got {lesson!r}")
    file = folder / f"{name}.py"
    folder.mkdir(parents=True, exist_ok=True)
    external.add_folder(folder)
    if file.exists():
        raise FileExistsError(f"{file} exists")
    if taken := [one for one in all_exercises() if one.name == name]:
        raise ValueError(f"there is an exercise {name} already, {taken[0].number}")
    others = lesson_exercises(lesson)
    number = f"{lesson}.{1 + max((int(one.number.partition('.')[2]) for one in others), default=0)}"
    text = TEMPLATE.read_text(encoding="utf-8").replace("NUMBER", number).replace("NAME", name)
    atomic.write(file, text.encode())
    place = next(iter(sorted(folder.glob(f"{lesson}_*.ipynb"))), folder / f"{lesson}_{name}.ipynb")
    notebook = nb.read(place) if place.exists() else empty_lesson(lesson, name)
    notebook["cells"] += exercise_cells(find(name))
    nb.write(place, notebook)
    return [file, place]


def empty_lesson(lesson: str, name: str) -> dict[str, Any]:
    """Notebook with the two cells that every lesson begins with: its head and its imports."""
    head = f"# {lesson} - {name}\n\n**Question:** What does this lesson answer?\n\n**Time:** 10 minutes"
    kernel = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
    return {
        "cells": [
            nb.cell("markdown", head, f"own-{lesson}-head"),
            nb.cell("code", FIRST, f"own-{lesson}-imports"),
        ],
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def exercise_cells(exercise: Exercise) -> list[dict[str, Any]]:
    """The three cells of an exercise: task, answer and check."""
    task = (
        f"### Exercise {exercise.number}: {exercise.question} ({exercise.kind})\n\n"
        f"Write `{exercise.answer}(errors)`. It returns the mean size of the numbers in the list `errors`, without "
        "their signs: 2 for `[1, -3]`."
    )
    return [
        nb.cell("markdown", task, nb.cell_id(exercise.name, "task")),
        nb.cell("code", cells.answer_cell(exercise.name), nb.cell_id(exercise.name, "answer")),
        nb.cell("code", cells.check_cell(exercise.name), nb.cell_id(exercise.name, "check")),
    ]


def exercise_named(name: str) -> Exercise:
    """Exercise by name, or by the file that defines it, whose folder is then added to the external ones."""
    file = Path(name)
    if file.suffix != ".py":
        return find(name)
    place = file.resolve()
    if place != course_file(file.stem):
        external.add_folder(place.parent.parent if re.fullmatch(r"l\d\d", place.parent.name) else place.parent)
    return find(file.stem)
