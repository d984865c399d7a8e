"""A repaired notebook has the release's cells and the learner's answers."""

from minflow import cli
from minflow.exercises.teach import nbgrader, notebook as nb, repair
from tests.exercises.teach.small_course import FIRST, RIGHT, answered, lesson


def broken(notebook):
    """Copy one answer, split another, delete a check and the first cells, and add a cell."""
    every = [cell for cell in notebook["cells"] if cell["id"] not in ("edge-check", "downhill-01", "downhill-00")]
    place = next(i for i, cell in enumerate(every) if cell["id"] == "slope-answer")
    every.insert(place + 1, dict(every[place]))
    place = next(i for i, cell in enumerate(every) if cell["id"] == "same-scale-answer")
    head, body = every[place]["source"].split("\n", 1)
    every[place : place + 1] = [nb.cell("code", head, "p"), nb.cell("code", body, "q")]
    return {**notebook, "cells": [*every, nb.cell("code", "1 / 0", "own")]}


def test_cells_are_the_releases_and_answers_the_learners(course_folder, tmp_path, capsys):
    path = tmp_path / "anna.ipynb"
    nb.write(path, broken(answered(RIGHT)))
    assert cli.main(["exercises", "repair", str(path)]) == 0
    assert nb.read(tmp_path / "anna.repaired.ipynb") == answered(RIGHT)
    out = capsys.readouterr().out
    assert "slope: 2 cells" in out and "same_scale: the answer is in 2 cells" in out
    assert "left out: 1 / 0" in out
    assert cli.main(["exercises", "repair", "--in-place", str(tmp_path)]) == 0  # no second repair
    assert nb.read(path) == answered(RIGHT) and len(list(tmp_path.glob("*.ipynb"))) == 2


def test_own_cells_are_listed_and_kept(course_folder, tmp_path, capsys):
    """A helper in a cell of its own works in the notebook, but not in the repaired one."""
    notebook = answered({"slope": "def slope(f, x, h=1e-3):\n    return rise(f, x, h) / (2 * h)"})
    place = next(i for i, cell in enumerate(notebook["cells"]) if cell["id"] == "slope-answer")
    notebook["cells"].insert(place, nb.cell("code", "def rise(f, x, h):\n    return f(x + h) - f(x - h)", "own"))
    notebook["cells"][1]["source"] += "\nimport statistics"
    path = tmp_path / "anna.ipynb"
    nb.write(path, notebook)
    before = path.read_bytes()
    assert cli.main(["exercises", "repair", "--in-place", str(path)]) == 0
    out = capsys.readouterr().out
    assert "left out: def rise(f, x, h):" in out and "left out: import numpy as np" in out
    assert out.count("left out") == 2 and "kept as anna.ipynb.original" in out
    assert (tmp_path / "anna.ipynb.original").read_bytes() == before and path.read_bytes() != before
    path.write_bytes(before)
    assert cli.main(["exercises", "repair", "--in-place", str(path)]) == 1  # it would lose the first original
    assert "anna.ipynb.original exists" in capsys.readouterr().err and path.read_bytes() == before


def test_nbgrader_metadata_is_kept(course_folder, tmp_path):
    nb.write(tmp_path / "x.ipynb", broken(answered(RIGHT, nbgrader.add_metadata(lesson()))))
    path, remarks = repair.repair(tmp_path / "x.ipynb")
    assert nb.read(path) == answered(RIGHT, nbgrader.add_metadata(lesson())) and len(remarks) == 3


def test_custom_release(course_folder, tmp_path):
    release = lesson()
    release["cells"][0]["source"] = "# Ours"
    nb.write(tmp_path / "release.ipynb", release)
    nb.write(tmp_path / "x.ipynb", broken(answered(RIGHT)))
    assert (
        cli.main(["exercises", "repair", "--release", str(tmp_path / "release.ipynb"), str(tmp_path / "x.ipynb")]) == 0
    )
    assert nb.read(tmp_path / "x.repaired.ipynb") == answered(RIGHT, release)


def test_missing_answer_becomes_the_stub(course_folder, tmp_path):
    notebook = {**lesson(), "cells": [cell for cell in lesson()["cells"] if cell["id"] != "slope-answer"]}
    nb.write(tmp_path / "x.ipynb", notebook)
    assert nb.read(repair.repair(tmp_path / "x.ipynb")[0]) == lesson()


def test_files_that_are_not_lessons(course_folder, tmp_path, capsys):
    nb.write(tmp_path / "x.ipynb", {**lesson(), "cells": [nb.cell("code", FIRST, "a")]})
    assert cli.main(["exercises", "repair", str(tmp_path / "x.ipynb")]) == 1
    assert cli.main(["exercises", "mend", str(tmp_path / "x.ipynb")]) == 1  # the old name
    assert "x.ipynb: it is not a lesson" in capsys.readouterr().err and len(list(tmp_path.glob("*.ipynb"))) == 1


def test_links_of_a_learner_are_not_followed(course_folder, tmp_path, capsys):
    """Neither the notebook nor the file to write may be a link below a folder: it could lead to any file."""
    nb.write(tmp_path / "mine.ipynb", answered(RIGHT))
    mine = (tmp_path / "mine.ipynb").read_bytes()
    for name in ("anna", "bo"):
        (tmp_path / "in" / name).mkdir(parents=True)
    (tmp_path / "in/anna/02_downhill.ipynb").symlink_to(tmp_path / "mine.ipynb")
    nb.write(tmp_path / "in/bo/02_downhill.ipynb", answered(RIGHT))
    (tmp_path / "in/bo/02_downhill.repaired.ipynb").symlink_to(tmp_path / "mine.ipynb")
    assert cli.main(["exercises", "repair", "--in-place", str(tmp_path / "in/anna")]) == 1
    assert cli.main(["exercises", "repair", str(tmp_path / "in")]) == 1
    err = capsys.readouterr().err
    assert err.count("anna/02_downhill.ipynb: it is a link") == 2 and "02_downhill.repaired.ipynb is a link" in err
    assert (tmp_path / "mine.ipynb").read_bytes() == mine
