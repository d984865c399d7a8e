"""A course of one short lesson with an exercise of each form, instead of the real one; and learners' notebooks."""

import copy

import pytest

from minflow.exercises import cells
from minflow.exercises.teach import notebook as nb

EXERCISES = ("slope", "edge", "same_scale", "mixed_up")  # code, a value, code to fix, a value for a given matrix
RIGHT = {
    "slope": "def slope(f, x, h=1e-3):\n    return (f(x + h) - f(x - h)) / (2 * h)",
    "edge": "limit = 0.2",
    "same_scale": cells.solved_cell("same_scale"),
    "mixed_up": "pair = (4, 1)",
}
WRONG = {
    "slope": "def slope(f, x, h=1e-3):\n    return (f(x + h) - f(x)) / h",
    "edge": "limit = 0.4",
    "same_scale": "def same_scale(x):\n    return x",
    "mixed_up": "pair = (1, 1)",
}
FIRST = "import numpy as np\n\nimport minflow as flow\nfrom minflow.exercises import check"


def lesson():
    """Return the release: a title, imports, the data of an exercise, the exercises, text."""
    parts = [
        nb.cell("markdown", "# 02 - Downhill\n\nA slope is a rise per step: $2x$.", "downhill-00"),
        nb.cell("code", FIRST, "downhill-01"),
        nb.cell("markdown", "## What went wrong", "downhill-02"),
        nb.cell("code", "matrix = np.diag([5] * 10)\nmatrix[4, 1] = 3\nmatrix.shape", "downhill-03"),
    ]
    for name in EXERCISES:
        parts += [
            nb.cell("markdown", f"### {name}\n\nA task.", nb.cell_id(name, "task")),
            nb.cell("code", cells.answer_cell(name), nb.cell_id(name, "answer")),
            nb.cell("code", cells.check_cell(name), nb.cell_id(name, "check")),
        ]
    parts.append(nb.cell("code", "print('a slope', slope(np.sin, 0.0))", "downhill-04"))
    parts.append(nb.cell("markdown", "## Words\n\nNone.", "downhill-words"))
    kernel = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
    return {
        "cells": parts,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def answered(answers, release=None):
    """Return a learner's notebook with these answers."""
    result = copy.deepcopy(release or lesson())
    for cell in result["cells"]:
        for name, source in answers.items():
            if nb.cell_id(name, "answer") in nb.cell_ids(cell):
                cell["source"] = source
    return result


@pytest.fixture
def course_folder(tmp_path, monkeypatch):
    """The folder of the course."""
    from minflow import course

    folder = tmp_path / "course"
    nb.write(folder / "02_downhill.ipynb", lesson())
    monkeypatch.setattr(course, "source", lambda: folder)
    monkeypatch.setenv("MINFLOW_COURSE", str(tmp_path / "nobody"))
    return folder
