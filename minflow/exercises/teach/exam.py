"""`minflow exercises exam`: write the notebooks of an exam, for students and with solutions and rubric for the teacher.

Each exercise is a variant that the seed selects (exam/variants.py). The ids of its cells name the variant, but not the
seed. Marks come from the teacher's notebook: its metadata has the points of each named wrong answer, and
`minflow exercises grade --release` reads them there, never from a submission. Read next: `../exam/variants.py`.
"""

from __future__ import annotations

import copy
import inspect
from pathlib import Path
from typing import Any

import numpy as np

from ...core.base.errors import MinflowError
from .. import cells
from ..checker import draw
from ..compare import format_value
from ..definition import NOT_GIVEN, Exercise
from ..exam.plans import Plan, minutes
from ..i18n import say
from ..judge import judge
from . import build, notebook as nb

SETUP = """\
import math

import numpy as np

import minflow as flow
from minflow import nn"""
DRAW = "from minflow.exercises import draw"
EXAMPLES = 2  # cases that the task shows


class ExamExists(MinflowError, FileExistsError):
    """The folder has another exam of the same name, which submissions may need for their marks."""


def write(plan: Plan, seed: int, folder: Path) -> list[Path]:
    """Write the student's and the teacher's notebook. Returns the files.

    Raises LookupError for an exercise that does not exist or has no variants, ExamExists, NotebookError and OSError.
    """
    exercises = plan.variants(seed)
    student = [front(plan, exercises), setup(exercises)]
    teacher = [
        *student,
        nb.cell("markdown", say("This copy has the solutions and the rubric. Seed: {seed}", seed=seed), "for-teachers"),
    ]
    partial = {exercise.name: partial_points(exercise) for exercise in exercises}
    for number, exercise in enumerate(exercises, 1):
        parts = exercise_cells(number, exercise)
        student += parts
        for part in parts:
            if part["id"] == nb.cell_id(exercise.name, "answer"):
                part = {**part, "source": build.teacher_cell(exercise.name, part["source"])}
            teacher.append(part)
        teacher.append(
            nb.cell("markdown", rubric(exercise, partial[exercise.name]), nb.cell_id(exercise.name, "rubric"))
        )
    files = {
        folder / "student" / f"{plan.name}.ipynb": notebook(student),
        folder / "teacher" / f"{plan.name}.ipynb": notebook(teacher, exam={"seed": seed, "partial": partial}),
    }
    for file, content in files.items():
        if file.exists() and nb.read(file) != content:
            raise ExamExists(
                say("another exam is in this folder: it has another seed, or was changed by hand"),
                values={say("file"): file, say("seed of the new one"): seed},
                where=say("in the folder {folder}", folder=folder.absolute()),
                hint=say("another folder after --out; or rename or delete this one, if no marks need it"),
            )
    for file, content in files.items():
        nb.write(file, content)
    return list(files)


def notebook(all_cells: list[dict[str, Any]], **about: Any) -> dict[str, Any]:
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}} | ({"minflow": about} if about else {})
    return {"cells": all_cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def front(plan: Plan, exercises: list[Exercise]) -> dict[str, Any]:
    """The front page: name, points, time, rules, and a table of the exercises."""
    titles = {"midterm": say("Mid-term exam"), "final": say("Final exam")}
    total = say(
        "points: {points}, minutes: {minutes}",
        points=sum(exercise.points for exercise in exercises),
        minutes=sum(map(minutes, exercises)),
    )
    rules = (
        say("Write your answer into the cell below each task, and keep its name. Only the answer cell is marked."),
        say("Try your answer in the cell below it; your tests are not marked."),
        say("An answer is also run with other inputs than those of the examples."),
        say("No exercise needs the answer to another one. Save the notebook before you hand it in."),
    )
    rows = [f"| {number} | {one.points} | {minutes(one)} |" for number, one in enumerate(exercises, 1)]
    lines = [
        f"# {titles.get(plan.name, say('Exam'))}",
        f"{say('Name:')} ____________________ {say('Date:')} ____________",
        f"**{total}**",
        "\n".join(f"- {rule}" for rule in rules),
        "\n".join([f"| {say('exercise')} | {say('points')} | {say('minutes')} |", "|---|---|---|", *rows]),
    ]
    return nb.cell("markdown", "\n\n".join(lines), "front-page")


def setup(exercises: list[Exercise]) -> dict[str, Any]:
    return nb.cell("code", SETUP + (f"\n{DRAW}" if any("draw(" in one.setup for one in exercises) else ""), "setup")


def exercise_cells(number: int, exercise: Exercise) -> list[dict[str, Any]]:
    """Cells of an exercise: task, code that the answer needs, answer, and room for tests."""
    title = say("Exercise {number} (points: {points})", number=number, points=exercise.points)
    lines = [f"## {title}", exercise.task() if exercise.task else ""]
    if shown := examples(exercise):
        lines += [say("Examples:"), "\n".join(shown)]
    code = exercise.setup
    if "{drawn}" in code:
        code = code.replace("{drawn}", str(draw(exercise.name)))
    given = [nb.cell("code", code, nb.cell_id(exercise.name, "given"))] if code else []
    return [
        nb.cell("markdown", "\n\n".join(lines), nb.cell_id(exercise.name, "task")),
        *given,
        nb.cell("code", in_language(cells.answer_cell(exercise.name)), nb.cell_id(exercise.name, "answer")),
        nb.cell(
            "code", f"# {say('Try your answer here. This cell is not marked.')}", nb.cell_id(exercise.name, "check")
        ),
    ]


def in_language(stub: str) -> str:
    """Translate the comment of an answer cell."""
    for comment, translation in (
        ("# your code here", say("# your code here")),
        ("# your answer here", say("# your answer here")),
    ):
        stub = stub.replace(comment, translation)
    return stub


def examples(exercise: Exercise) -> list[str]:
    """The first cases with their results, as lines of Markdown."""
    if exercise.make_cases is None:
        return []
    lines: list[str] = []
    for case in exercise.make_cases(np.random.default_rng(0)):
        if case.hidden or case.run is not None or len(lines) == EXAMPLES:
            continue
        right = case.expected
        if right is NOT_GIVEN:
            right = exercise.right(*copy.deepcopy(case.args), **copy.deepcopy(case.kwargs))
        arguments = inspect.signature(exercise.right).bind(*case.args, **case.kwargs).arguments
        text = say(case.text) or ", ".join(
            f"{name} = {format_value(value)}" for name, value in arguments.items() if not callable(value)
        )
        lines.append(f"- `{text.replace('`', '')}`: `{format_value(right)}`")
    return lines


# ---- rubric ---------------------------------------------------------------------------------------------------------


def partial_points(exercise: Exercise) -> dict[str, float]:
    """Points of each named wrong answer of code: half, if it is right in half of the shown cases; those of a value are
    stated with it.
    """
    if exercise.make_cases is None:
        return exercise.partial
    half = {}
    for wrong in exercise.wrongs:
        verdict = judge(exercise, wrong.answer, (), 0)
        if verdict.total and 2 * verdict.right >= verdict.total:
            half[wrong.name] = exercise.points / 2
    return half


def rubric(exercise: Exercise, partial: dict[str, float]) -> str:
    """The rubric of an exercise, as Markdown."""
    code = exercise.make_cases is not None
    full = say("every case is right, also the hidden ones") if code else say("the value is right")
    if not partial:
        some = say("never by the command; by you, if the way to the answer is written down and right")
    elif code:
        some = say("a mistake of the table that leaves half of the shown cases right")
    else:
        some = say("a mistake of the table that misses one step")
    rows = [
        f"| {exercise.say(wrong.name)} | {partial.get(wrong.name, 0):g} | {nb.table_cell(say(wrong.hints[0]))} |"
        for wrong in exercise.wrongs
    ]
    parts = [
        f"**{say('Rubric')}**",
        "\n".join(
            [
                f"- {exercise.points}: {full}",
                f"- {exercise.points / 2:g}: {some}",
                f"- 0: {say('anything else, an empty answer, or one that does not run')}",
            ]
        ),
        "\n".join([f"| {say('mistake')} | {say('points')} | {say('what it is about')} |", "|---|---|---|", *rows]),
    ]
    return "\n\n".join(parts)


def read_release(path: Path) -> dict[str, Any]:
    """Read a notebook that a teacher gave out; the exercises of an exam get the partial points that it states.

    Raises NotebookError, also for the students' notebook of an exam, and if another version of minflow wrote the exam
    with another question.
    """
    result = nb.read(path)
    about = result["metadata"].get("minflow")
    exam = about.get("exam") if isinstance(about, dict) else None
    if isinstance(exam, dict):
        sources = "\n".join(cell["source"] for cell in result["cells"])
        for exercise in nb.exercises_of(result):
            if cells.solved_cell(exercise.name) not in sources:
                raise nb.NotebookError(
                    say("the solution of {name} has changed: use the version that wrote the exam", name=exercise.name)
                )
            exercise.partial = exam["partial"].get(exercise.name, {})
    elif nb.variants(name for cell in result["cells"] for name in nb.cell_ids(cell)):
        raise nb.NotebookError(
            say("it is the students' notebook of an exam, without the points of mistakes: give the teacher's")
        )
    return result
