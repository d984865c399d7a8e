"""`minflow exercises build`: student and teacher editions of the lessons, made from one definition of each exercise.

The teacher's answer cell holds what the student finds, and below it the solution between two markers:

    share = ...  # your answer here
    # BEGIN SOLUTION
    share = 0.25
    # END SOLUTION

What stands between them is taken out for students, by us, by nbgrader (nbgrader.py) and by otter (otter.py) alike: so a
student's cell is the same in all three, and a stub with a mistake in it needs no other way. Solved, a notebook runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ...io import atomic
from .. import cells
from . import notebook as nb
from . import nbgrader, otter

BEGIN, END = "# BEGIN SOLUTION", "# END SOLUTION"


def build(kind: str, folder: Path, lessons: Iterable[str] = ()) -> list[Path]:
    """Write the editions of one kind, "plain", "nbgrader" or "otter", into `folder`. lessons: all, if there are none.
    Returns the files that were written. Raises LookupError for a lesson that is not there, OSError."""
    written = []
    for lesson, path in nb.releases(lessons).items():
        released = nb.read(path)
        teacher = solved(released)
        if kind == "nbgrader":
            editions = {folder / "source" / f"ps{lesson}" / path.name: nbgrader.marked(teacher)}
        elif kind == "otter":
            editions = {folder / f"ps{lesson}" / path.name: otter.master(teacher)}
        else:
            editions = {folder / "student" / path.name: released, folder / "teacher" / path.name: teacher}
        for file, notebook in editions.items():
            nb.write(file, notebook)
            written.append(file)
    if kind == "nbgrader" and not (config := folder / "nbgrader_config.py").exists():
        atomic.write(config, nbgrader.CONFIG)
        written.append(config)
    return written


def solved(released: dict[str, Any]) -> dict[str, Any]:
    """The notebook with the solution below each stub."""
    known = nb.exercise_cells(released)

    def answer(cell: dict[str, Any]) -> dict[str, Any]:
        exercise, part = next((known[one] for one in nb.ids_of(cell) if one in known), (None, ""))
        return {**cell, "source": with_solution(exercise.name)} if exercise and part == "answer" else cell

    return {**released, "cells": [answer(cell) for cell in released["cells"]]}


def with_solution(name: str) -> str:
    """The teacher's answer cell."""
    return "\n".join([cells.answer_cell(name), BEGIN, cells.solved_cell(name), END])
