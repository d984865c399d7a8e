"""A course folder for nbgrader: `source/ps02/02_downhill.ipynb` and a configuration.

nbgrader replaces the part between the markers with its own stub. The configuration makes that stub empty, since ours is
above it. Cells have metadata of schema 3: answers are solution cells, checks are locked cells with points.
Source: nbgrader 0.9, preprocessors/clearsolutions.py and nbgraderformat/v3.json.
"""

from __future__ import annotations

from typing import Any

from .. import cells as lesson_cells
from . import notebook as nb

CONFIG = """\
c = get_config()
c.CourseDirectory.course_id = "minflow"
# An answer cell starts with the student's stub, so the removed solution needs no replacement.
c.ClearSolutions.code_stub = {"python": ""}
# Seconds per cell: lessons train small networks.
c.ExecutePreprocessor.timeout = 120
# Restore deleted check cells; otherwise their points would be missing.
c.OverwriteCells.add_missing_cells = True
"""


def add_metadata(notebook: dict[str, Any]) -> dict[str, Any]:
    """Add nbgrader's metadata to the cells of the exercises."""
    known = nb.exercise_cells(notebook)
    cells = []
    for cell in notebook["cells"]:
        exercise, part = next((known[name] for name in nb.cell_ids(cell) if name in known), (None, ""))
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
                cell = {**cell, "source": lesson_cells.graded_check_cell(exercise.name)}
            cell = {**cell, "metadata": {**cell["metadata"], "nbgrader": data}}
        cells.append(cell)
    return {**notebook, "cells": cells}


def is_release(notebook: dict[str, Any]) -> bool:
    """True if the notebook was released by nbgrader."""
    return any("nbgrader" in cell["metadata"] for cell in notebook["cells"])
