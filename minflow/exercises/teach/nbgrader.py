"""A course folder for nbgrader: `source/ps02/02_downhill.ipynb` and a configuration.

nbgrader replaces what stands between the markers by a stub of its own; the configuration makes that stub empty, since
ours stands above it. Cells carry metadata of schema 3: an answer is a solution cell, a check a locked cell with points.
Source: nbgrader 0.9, preprocessors/clearsolutions.py and nbgraderformat/v3.json.
"""

from __future__ import annotations

from typing import Any

from . import notebook as nb

CONFIG = """\
c = get_config()
c.CourseDirectory.course_id = "minflow"
# An answer cell begins with what students find, so nothing has to stand in place of the solution below it.
c.ClearSolutions.code_stub = {"python": ""}
# Lessons train small networks: seconds that one cell may take.
c.ExecutePreprocessor.timeout = 120
# A check cell that a student has deleted comes back; otherwise its points would be missing.
c.OverwriteCells.add_missing_cells = True
"""


def marked(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook with nbgrader's metadata on the cells of its exercises."""
    known = nb.exercise_cells(notebook)
    cells = []
    for cell in notebook["cells"]:
        exercise, part = next((known[one] for one in nb.ids_of(cell) if one in known), (None, ""))
        if exercise and part != "task":
            data = {
                "schema_version": 3,
                "grade_id": nb.cell_id(exercise.name, part),
                "grade": part == "check",
                "solution": part == "answer",
                "locked": part == "check",
                "task": False,
            }
            if part == "check":
                data["points"] = exercise.points
            cell = {**cell, "metadata": {**cell["metadata"], "nbgrader": data}}
        cells.append(cell)
    return {**notebook, "cells": cells}


def is_release(notebook: dict[str, Any]) -> bool:
    """Did the notebook go through nbgrader?"""
    return any("nbgrader" in cell["metadata"] for cell in notebook["cells"])
