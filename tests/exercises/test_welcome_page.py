"""The page that `minflow lab` opens: its description of each lesson, and the learner's progress."""

import json
import os
import re
from pathlib import Path
from urllib.parse import unquote

import nbformat
import pytest

from minflow import cli, course
from minflow.exercises import i18n, record, welcome

TOP = Path(__file__).parents[2]
NOTEBOOKS = TOP / "notebooks"
HEAD = "# 02 - Downhill | up\n\n**Question:** How low is `low`?\n\n**Time:** 40 minutes\n\n**Before:** lesson 01."
CHINESE = "# 02 - 下山\n\n**问题：** 往哪边走？\n\n**时间：** 40 分钟"


def write(path, head, *names):
    cells = [nbformat.v4.new_markdown_cell(head), nbformat.v4.new_markdown_cell('check("text", 1)')]
    cells += [nbformat.v4.new_code_cell(f'check("{name}", {name})') for name in names]
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)


def keep(folder, **outcomes):
    lines = [json.dumps({"exercise": name, "outcome": outcome}) for name, outcome in outcomes.items()]
    with open(folder / record.FILE, "a") as file:
        file.write("\n".join(lines) + "\n")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A learner's folder with two lessons, a tour, and a new version beside the first lesson."""
    monkeypatch.delenv("MINFLOW_PROGRESS", raising=False)
    (tmp_path / record.COURSE_RECORD).touch()
    write(tmp_path / "01_numbers.ipynb", "# 01 - Numbers\n\n**Question:** Which?", "one", "two", "one")
    write(tmp_path / "01_numbers.new.ipynb", "# 01 - Newer", "one")
    write(tmp_path / "02_down hill.ipynb", HEAD, "slope")
    write(tmp_path / "inside/R1_inside.ipynb", "# R1 - In")
    return tmp_path


def rows(folder):
    return [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in welcome.page(folder).splitlines()
        if line.startswith("| [")
    ]


def test_lesson_describes_itself(folder):
    path = folder / "02_down hill.ipynb"
    assert welcome.lesson(path) == welcome.Lesson(path, "02", "Downhill | up", "How low is `low`?", 40, ("slope",))
    write(folder / "02_zh.ipynb", CHINESE)
    one = welcome.lesson(folder / "02_zh.ipynb")
    assert (one.title, one.question, one.minutes) == ("下山", "往哪边走？", 40)


def test_each_lesson_has_a_row_and_a_link(folder):
    assert rows(folder) == [
        ["[01 - Numbers](01_numbers.ipynb)", "Which?", "", "·· 0 of 2"],
        ["[02 - Downhill \\| up](02_down%20hill.ipynb)", "How low is `low`?", "40", "· 0 of 1"],
        ["[R1 - In](inside/R1_inside.ipynb)", "", "", ""],
    ]
    for name in re.findall(r"\]\((.+?)\)", welcome.page(folder)):
        assert (folder / unquote(name)).is_file()


def test_progress_and_next_lesson_are_shown(folder):
    assert "**Begin with [01 - Numbers]" in welcome.page(folder)
    keep(folder, two="wrong", one="not started")
    assert rows(folder)[0][3] == "·~ 0 of 2" and "**Go on with [01 - Numbers]" in welcome.page(folder)
    keep(folder, one="right", two="right")
    assert rows(folder)[0][3] == "✓✓ 2 of 2" and "**Go on with [02 - Downhill" in welcome.page(folder)
    keep(folder, one="wrong", slope="right")
    assert rows(folder)[0][3] == "✓✓ 2 of 2", "a solved exercise stays solved"
    assert "Go on with" not in welcome.page(folder) and "Begin with" not in welcome.page(folder)


def test_skipped_exercise_does_not_send_back(folder):
    keep(folder, one="right", slope="wrong")
    assert "**Go on with [02 - Downhill" in welcome.page(folder)


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"cells": [1]}', b'{"cells": []}', b"\xff"])
def test_damaged_lesson_is_still_listed(folder, data):
    (folder / "03_mine.ipynb").write_bytes(data)
    assert ["[03 - 03_mine](03_mine.ipynb)", "", "", ""] in rows(folder)


def test_only_the_page_is_rewritten(folder):
    path = welcome.write(folder)
    assert path == folder / "welcome.md" and path.read_text(encoding="utf-8") == welcome.page(folder)
    keep(folder, one="right")
    assert welcome.write(folder) == path and "✓· 1 of 2" in path.read_text(encoding="utf-8")
    path.write_text("my own")
    assert welcome.write(folder) is None and path.read_text() == "my own"
    path.unlink()
    path.mkdir()
    assert welcome.write(folder) is None


def test_running_lesson_updates_the_page(folder, monkeypatch):
    monkeypatch.chdir(folder / "inside")
    keep(folder, one="right")
    welcome.refresh()
    assert not (folder / "welcome.md").exists(), "without `minflow lab` there is none"
    welcome.write(folder)
    keep(folder, two="right")
    welcome.refresh()
    assert "✓✓ 2 of 2" in (folder / "welcome.md").read_text(encoding="utf-8")


def test_each_language_updates_its_own_page(folder, monkeypatch):
    write(folder / "zh/02_down.ipynb", CHINESE, "slope")
    pages = [welcome.write(folder), welcome.write(folder / "zh")]
    before = pages[0].read_text(encoding="utf-8")
    monkeypatch.chdir(folder / "zh")
    keep(folder, slope="right")
    welcome.refresh()
    assert "| [02 - 下山](02_down.ipynb) | 往哪边走？ | 40 | ✓ 1/1 |" in pages[1].read_text(encoding="utf-8")
    assert pages[0].read_text(encoding="utf-8") == before


def test_hours_are_the_sum_of_the_lessons(folder):
    """The page sums the minutes that the lessons state."""
    assert "2 lessons, about 0.7 hours in all" in welcome.page(folder)
    write(folder / "03_more.ipynb", "# 03 - More\n\n**Time:** 80 minutes")
    write(folder / "inside/R2_in.ipynb", "# R2 - In\n\n**Time:** 120 minutes")
    text = welcome.page(folder)
    assert "3 lessons, about 2 hours in all" in text and "2 tours, about 2 hours, for those" in text


def test_hours_of_the_course(tmp_path):
    """The total of the page, counted independently from the notebooks."""
    course.update(tmp_path)
    minutes = [
        int(re.search(r"\*\*Time:\*\* (\d+) minutes", file.read_text(encoding="utf-8"))[1])
        for file in NOTEBOOKS.glob("[0-9]*.ipynb")
    ]
    text = welcome.page(tmp_path)
    assert f"{len(minutes)} lessons, about {round(sum(minutes) / 60, 1):g} hours in all" in text
    assert sum(minutes) == sum(int(row[2]) for row in rows(tmp_path) if not row[0].startswith("[R"))


def test_page_introduces_minflow_and_a_starting_point(tmp_path):
    course.update(tmp_path)
    text = welcome.page(tmp_path)
    assert "minflow is a small deep-learning framework" in text.split("##")[0]
    assert text.index('<img src="docs/tape.svg"') < text.index("**Begin with [00 - ") < text.index("## The course")
    assert f"loss = {welcome.DRAWN_CODE}" in (TOP / "README.md").read_text(), "the program that draws the picture"
    assert f"the tape of `{welcome.DRAWN_CODE}`" in text
    assert "[The words of the course](docs/glossary.md)" in text and (tmp_path / "docs/glossary.md").is_file()
    assert (tmp_path / "docs/tape.svg").read_bytes() == (TOP / "docs/tape.svg").read_bytes()
    starts = dict(re.findall(r"^\| ((?:know|want)[^|]*) \| (.*) \|$", text, re.MULTILINE))
    links = {who: re.findall(r"\]\((.*?)\)", where) for who, where in starts.items()}
    assert links == {
        "know Python, but not deep learning": ["00_a_program_that_learns.ipynb"],
        "know PyTorch or OneFlow": [
            "07_eager_and_static.ipynb",
            "docs/coming-from-pytorch.md",
            "docs/coming-from-oneflow.md",
        ],
        "want to teach it": ["docs/teaching/README.md"],
    }
    assert all((tmp_path / link).is_file() for some in links.values() for link in some)


def test_folder_without_the_documentation(folder):
    """Created in another way, such as by hand: the page has no broken links."""
    text = welcome.page(folder)
    assert "<img" not in text and "PyTorch or OneFlow |" not in text and "teach it" not in text
    assert "| know Python, but not deep learning | [01 - Numbers](01_numbers.ipynb) |" in text


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no pipes in folders")
def test_pipe_is_neither_read_nor_written(folder):
    """Reading would wait for a writer, and writing for a reader."""
    os.mkfifo(folder / "03_pipe.ipynb")
    os.mkfifo(folder / "inside/R3_pipe.ipynb")
    assert ["[03 - 03_pipe](03_pipe.ipynb)", "", "", ""] in rows(folder)
    os.mkfifo(folder / "welcome.md")
    assert welcome.write(folder) is None and (folder / "welcome.md").is_fifo()
    (folder / "welcome.md").unlink()
    (folder / "welcome.md").symlink_to("/dev/null")
    assert welcome.write(folder) is None


def test_page_is_written_atomically(folder, monkeypatch):
    path, before = welcome.write(folder), (folder / "welcome.md").read_bytes()
    keep(folder, one="right")

    def full(number):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert welcome.write(folder) is None and path.read_bytes() == before
    assert not list(folder.glob(".*.tmp"))


def test_page_in_another_language(folder, monkeypatch):
    monkeypatch.setattr(i18n, "language", lambda: "zh")
    chinese = {"minutes": "分钟", "{right} of {all}": "{all} 中 {right}"}
    monkeypatch.setattr(i18n, "catalog", lambda *names: chinese)
    text = welcome.page(folder)
    assert "| 分钟 |" in text and "2 中 0" in text


def test_lab_opens_the_page(tmp_path, monkeypatch):
    labapp = pytest.importorskip("jupyterlab.labapp")
    calls = []
    monkeypatch.setattr(labapp.LabApp, "launch_instance", classmethod(lambda kind, argv: calls.append(argv)))
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", "x")
    folder = tmp_path / "course"
    assert cli.main(["lab", "--folder", str(folder)]) == 0
    assert "--LabApp.default_url=/lab/tree/welcome.md" in calls[0]
    assert len(rows(folder)) == len(list(NOTEBOOKS.rglob("*.ipynb")))
    (folder / "welcome.md").write_text("my own")
    assert cli.main(["lab", "--folder", str(folder)]) == 0
    first = min(file.name for file in NOTEBOOKS.glob("*.ipynb"))
    assert f"--LabApp.default_url=/lab/tree/{first}" in calls[1]
