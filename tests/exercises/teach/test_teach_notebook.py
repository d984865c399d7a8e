"""Learners' notebooks are read as untrusted input, and their answers are found."""

import json
import os

import pytest

from minflow import cli
from minflow.exercises.registry import find
from minflow.exercises.teach import notebook as nb
from tests.exercises.teach.small_course import RIGHT, answered, lesson


@pytest.mark.parametrize("data", [b"", b"\xff\xfe\0", b"[]", b"{}", b'{"cells": 3}', b"[" * 100_000, b"null"])
def test_invalid_notebooks(data, tmp_path):
    path = tmp_path / "x.ipynb"
    path.write_bytes(data)
    with pytest.raises(nb.NotebookError):
        nb.read(path)


def test_folder_and_missing_file_are_not_notebooks(tmp_path):
    for path in (tmp_path, tmp_path / "missing.ipynb"):
        with pytest.raises(nb.NotebookError):
            nb.read(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no pipes in folders")
@pytest.mark.parametrize("words", [["repair"], ["repair", "--in-place"], ["grade"]])
def test_pipe_is_not_a_notebook(tmp_path, capsys, words):
    """Reading it would wait for a writer."""
    os.mkfifo(tmp_path / "x.ipynb")
    with pytest.raises(nb.NotebookError, match="it is a pipe, not a file"):
        nb.read(tmp_path / "x.ipynb")
    code = cli.main(["exercises", *words, str(tmp_path)])
    assert "it is a pipe, not a file" in capsys.readouterr().err and code == 1


def test_oversized_notebook_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(nb, "MAX_BYTES", 10)
    (tmp_path / "x.ipynb").write_text(json.dumps(lesson()))
    with pytest.raises(nb.NotebookError, match="10 bytes"):
        nb.read(tmp_path / "x.ipynb")


def test_malformed_cells_are_repaired(tmp_path):
    path = tmp_path / "x.ipynb"
    path.write_text(json.dumps({"cells": [3, None, {"source": ["a", 1, "b"]}, {"source": 7, "metadata": []}]}))
    assert [(cell["source"], cell["metadata"]) for cell in nb.read(path)["cells"]] == [("ab", {}), ("", {})]


def test_round_trip(tmp_path):
    nb.write(tmp_path / "x.ipynb", lesson())
    assert nb.read(tmp_path / "x.ipynb") == lesson()


def test_folders_are_searched_except_hidden_files(tmp_path):
    for name in ("a/x.ipynb", "a/.ipynb_checkpoints/x.ipynb", "y.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert nb.notebooks([str(tmp_path), str(tmp_path / "y.txt")]) == [tmp_path / "a/x.ipynb", tmp_path / "y.txt"]


# ---- answers --------------------------------------------------------------------------------------------------------


def answer(notebook):
    return nb.find_answer(notebook, find("slope"))


def test_answer_is_found_by_its_id():
    assert answer(answered(RIGHT)) == (RIGHT["slope"], "")


@pytest.mark.parametrize("metadata", [{"id": "slope-answer"}, {"nbgrader": {"grade_id": "slope-answer"}}])
def test_id_may_be_in_the_metadata(metadata):
    notebook = answered(RIGHT)
    cell = next(cell for cell in notebook["cells"] if cell["id"] == "slope-answer")
    cell["id"], cell["metadata"] = "a8f1", metadata
    assert answer(notebook) == (RIGHT["slope"], "")


def test_last_written_copy_counts():
    notebook = answered(RIGHT)
    place = next(i for i, cell in enumerate(notebook["cells"]) if cell["id"] == "slope-answer")
    stub = next(cell for cell in lesson()["cells"] if cell["id"] == "slope-answer")
    notebook["cells"].insert(place + 1, stub)
    source, remark = answer(notebook)
    assert source == RIGHT["slope"] and "2 cells" in remark


def test_split_answer_is_joined():
    notebook = answered(RIGHT)
    place = next(i for i, cell in enumerate(notebook["cells"]) if cell["id"] == "slope-answer")
    head, body = RIGHT["slope"].split("\n")
    notebook["cells"][place : place + 1] = [nb.cell("code", head, "b1"), nb.cell("code", body, "slope-answer")]
    source, remark = answer(notebook)
    assert source == RIGHT["slope"] and "2 cells" in remark


def test_answer_without_id_is_found_by_its_name():
    notebook = {"cells": [nb.cell("code", "import math\n" + RIGHT["slope"], "x"), nb.cell("code", "y = slope", "y")]}
    source, remark = answer(notebook)
    assert source.endswith(RIGHT["slope"]) and "by name" in remark


def test_missing_answer():
    source, remark = answer({"cells": [nb.cell("markdown", RIGHT["slope"], "slope-answer")]})
    assert source == "" and "slope-answer" in remark


def test_names_bound_by_a_cell():
    source = (
        "import a.b, c as d\nfrom e import f\nx, (y, *z) = 1\ndef g(p): q = 1\nclass H: r = 1\n"
        "for i in 3: w = 1\n[k for k in 1]"
    )
    assert nb.bound_names(source) == {"a", "d", "f", "x", "y", "z", "g", "H", "i", "w"}
    assert nb.bound_names("def slope(f:\n  x = 1\ny = 2\ny == 3") == {"slope", "y"}  # not Python: by its lines
    assert nb.bound_names("%time\n!ls\nx = 1") == {"x"}


# ---- tables ---------------------------------------------------------------------------------------------------------


def test_spreadsheet_cells_are_not_formulas():
    text = nb.to_csv([["=1+1", "+x", "-x", "@x", 'a"b', -3, "a\nb\u202e"]])
    assert text == "'=1+1,'+x,'-x,'@x,\"a\"\"b\",-3,a\ufffdb\ufffd\n"
