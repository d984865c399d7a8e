"""`minflow exercises new` and `try`: write an exercise outside the package, and prove its check.

A new exercise is a complete small example (template.py.txt) under the given name. Its lesson is a notebook beside it.
Read next: `proof.py`.
"""

from __future__ import annotations

import keyword
import re
from pathlib import Path
from typing import Any

from ...io import atomic
from .. import cells, external, record
from ..card import card_text, make_card
from ..definition import Exercise
from ..judge import judge
from ..registry import all_exercises, course_file, course_lessons, find, lesson_exercises
from . import notebook as nb
from .proof import SEEDS, Proof, from_cell, given_to

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


# ---- the proof as text ----------------------------------------------------------------------------------------------


def report(proof: Proof) -> str:
    """Proof of an exercise as lines: what was tried, and what must be mended."""
    exercise = proof.exercise
    code, points = any(proof.cases), f"{exercise.points} {'point' if exercise.points == 1 else 'points'}"
    own_hint, right = ([not faults for faults in some] for some in (proof.wrong, proof.right))
    seeds = f", each with {len(SEEDS)} seeds" if code else ""
    lines = [
        (not proof.gaps, "the definition is complete" if not proof.gaps else "the definition is not complete"),
        (not proof.empty_points, f"the empty answer earns {proof.empty_points} points"),
        (all(right), f"{sum(right)} of {len(right)} right answers pass{seeds}"),
        (proof.caught == len(proof.wrong), f"{proof.caught} of {len(proof.wrong)} wrong answers are caught{seeds}"),
        (all(own_hint), f"{sum(own_hint)} of {len(own_hint)} wrong answers get their own hint"),
    ]
    if proof.mutants:
        caught = proof.mutants - len(proof.alive)
        lines.append((not proof.many_pass, f"{caught} of {proof.mutants} mutants of the solution are caught"))
    told = [f"{record.MARKS['right'] if fine else chr(10007)} {text}" for fine, text in lines]
    told += [f"  a mutant that passes: {change.replace(':', ' of the solution:', 1)}" for change in proof.alive]
    if code:
        told.append("  cases: {} visible, {} hidden".format(*proof.cases))
    head = f"{exercise.name}   {exercise.number}   {exercise.kind}, {exercise.level}, {points}"
    end = ["To mend:", *(f"- {fault}" for fault in proof.faults)] if proof.faults else ["The check can be used."]
    return "\n".join([head, "", *told, "", *end])


def answer_card(exercise: Exercise, file: Path) -> str:
    """Card that a learner would see for the answer in a file. Raises what its code raises."""
    answer = from_cell(exercise, file.read_text(encoding="utf-8"))
    return card_text(make_card(judge(exercise, answer, given_to(exercise))))
