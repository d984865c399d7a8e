"""A notebook for `otter assign`: raw cells around each exercise, and a test that raises for wrong answers.

Otter's own test format compares saved outputs, which these notebooks do not have, hence `ok_format: false`.
Source: otter-grader 7.0, documentation of the notebook format of Otter Assign.
"""

from __future__ import annotations

from typing import Any

from ..cells import check_cell
from . import notebook as nb

SETTINGS = """\
# ASSIGNMENT CONFIG
init_cell: true
export_cell: false
check_all_cell: false
solutions_pdf: false
generate:
    show_stdout: true
tests:
    ok_format: false
"""
TEST = """\
def test_{name}({arguments}):
    import os
    from runpy import run_module
    from unittest.mock import patch

    check = run_module("minflow.exercises.graded")["check"]
    with patch.dict(os.environ, MINFLOW_GRADING="1"):
        {call}
"""


def add_otter_cells(notebook: dict[str, Any]) -> dict[str, Any]:
    """Add otter's raw cells to the solved notebook; `otter assign ps02/02_downhill.ipynb OUT` generates the rest."""
    known = nb.exercise_cells(notebook)
    every = {id_ for cell in notebook["cells"] for id_ in nb.cell_ids(cell)}
    cells = [nb.cell("raw", SETTINGS.strip(), "otter-settings")]
    for cell in notebook["cells"]:
        name = next((id_ for id_ in nb.cell_ids(cell) if id_ in known), "")
        if not name:
            cells.append(cell)
            continue
        exercise, part = known[name]
        begin = nb.cell(
            "raw",
            f"# BEGIN QUESTION\nname: {exercise.name}\npoints: {exercise.points}",
            nb.cell_id(exercise.name, "question"),
        )
        if part == "task":
            cells += [begin, cell]
        elif part == "answer":
            if nb.cell_id(exercise.name, "task") not in every:
                cells.append(begin)
            cells += [
                raw_cell("BEGIN SOLUTION", exercise.name),
                cell,
                raw_cell("END SOLUTION", exercise.name),
                raw_cell("BEGIN TESTS", exercise.name),
                test_cell(exercise),
                raw_cell("END TESTS", exercise.name),
                raw_cell("END QUESTION", exercise.name),
            ]
        else:
            cells.append(cell)
    return {**notebook, "cells": cells}


def raw_cell(text: str, name: str) -> dict[str, Any]:
    return nb.cell("raw", f"# {text}", nb.cell_id(name, text.lower().replace(" ", "-")))


def test_cell(exercise: Any) -> dict[str, Any]:
    """Cell with a test function. Its arguments name the answer; otter takes them from the student's notebook."""
    source = TEST.format(
        name=exercise.name, arguments=", ".join([exercise.answer, *exercise.given]), call=check_cell(exercise.name)
    )
    return nb.cell("code", source.strip(), nb.cell_id(exercise.name, "test"))
