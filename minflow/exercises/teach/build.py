"""`minflow exercises build`: make student and teacher editions of the lessons from the definitions of the exercises.

The teacher's answer cell contains the student's cell and below it the solution between two markers:

    share = ...  # your answer here
    # BEGIN SOLUTION
    share = 0.25
    # END SOLUTION

The part between the markers is removed for students, by minflow, nbgrader (nbgrader.py) and otter (otter.py) alike, so
student cells are the same in all three, including stubs with a mistake. A teacher's notebook runs from top to bottom.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ...io import atomic
from .. import cells
from . import nbgrader, notebook as nb, otter

BEGIN, END = "# BEGIN SOLUTION", "# END SOLUTION"


def build(kind: str, folder: Path, lessons: Iterable[str] = ()) -> list[Path]:
    """Write the editions of one kind, "plain", "nbgrader" or "otter", into `folder`.

    lessons: numbers such as "02"; empty means all. Returns the written files. Raises LookupError for an unknown lesson,
    and OSError.
    """
    written = []
    for lesson, path in nb.releases(lessons).items():
        released = nb.read_release(path)
        teacher = with_solutions(released)
        if kind == "nbgrader":
            editions = {folder / "source" / f"ps{lesson}" / path.name: nbgrader.add_metadata(teacher)}
        elif kind == "otter":
            editions = {folder / f"ps{lesson}" / path.name: otter.add_otter_cells(teacher)}
        else:
            editions = {folder / "student" / path.name: released, folder / "teacher" / path.name: teacher}
        for file, notebook in editions.items():
            nb.write(file, notebook)
            written.append(file)
    if kind == "nbgrader" and not (config := folder / "nbgrader_config.py").exists():
        atomic.write(config, nbgrader.CONFIG)
        written.append(config)
    return written


def with_solutions(released: dict[str, Any]) -> dict[str, Any]:
    """Add the solution below each stub of a released notebook."""
    known = nb.exercise_cells(released)

    def answer(cell: dict[str, Any]) -> dict[str, Any]:
        exercise, part = next((known[name] for name in nb.cell_ids(cell) if name in known), (None, ""))
        return (
            {**cell, "source": teacher_cell(exercise.name, cell["source"])} if exercise and part == "answer" else cell
        )

    return {**released, "cells": [answer(cell) for cell in released["cells"]]}


def teacher_cell(name: str, stub: str) -> str:
    """Source of the teacher's answer cell. stub: source of the student's."""
    return "\n".join([stub, BEGIN, cells.solved_cell(name), END])
