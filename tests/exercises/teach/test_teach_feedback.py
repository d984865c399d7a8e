"""Pages of feedback: each student's cards, whatever names and answers contain; and the teacher's index."""

import pytest

from minflow import cli
from minflow.exercises.card import make_card
from minflow.exercises.judge import judge
from minflow.exercises.registry import find
from minflow.exercises.teach import notebook as nb
from minflow.exercises.teach.grade import Mark
from minflow.exercises.teach.pages import feedback
from tests.exercises.teach.sandboxes import TRUST
from tests.exercises.teach.small_course import RIGHT, WRONG, answered
from tests.exercises.teach.test_teach_report import Page

EVIL = "<img src=x onerror=alert(1)>"


def judged(name, source, file="in/anna/02_downhill.ipynb", remark=""):
    """The mark of an answer."""
    space = {}
    exec(source, space)
    exercise = find(name)
    verdict = judge(exercise, space[exercise.answer], seed=0)
    points = exercise.points if verdict.ok else 0
    return Mark(file, "02", name, points, exercise.points, verdict.outcome, "", remark, make_card(verdict))


def pages(tmp_path, *marks):
    feedback.write(marks, tmp_path / "pages")
    return {
        path.relative_to(tmp_path / "pages").as_posix(): path.read_text(encoding="utf-8")
        for path in (tmp_path / "pages").rglob("*.html")
    }


def test_page_shows_points_cases_and_hints_but_no_remarks(course_folder, tmp_path):
    marks = [judged("slope", WRONG["slope"], remark="look at it: gc"), judged("edge", RIGHT["edge"])]
    marks.append(Mark(marks[0].file, "02", "same_scale", of=2, outcome="not started"))
    marks.append(Mark(marks[0].file, "02", "mixed_up", of=1, outcome="stopped", remark="stopped after 9 s"))
    written = pages(tmp_path, *marks)
    assert set(written) == {"index.html", "02_downhill.html"}
    page = written["02_downhill.html"]
    assert Page(page).tags and "<h1>02 - Downhill</h1>" in page and "2 of 6 points" in page
    for text in (
        "0 of 1",
        "f = x**2, x = 3",
        "6.001",
        "Do you look to both sides of x?",
        "\u2713",
        "There is no answer",
    ):
        assert text in page, text
    assert "stopped after 9 s" in page and "look at it" not in page
    assert "slope: look at it: gc" in written["index.html"] and "slope, same_scale, mixed_up" in written["index.html"]


def test_hostile_names_and_answers(course_folder, tmp_path):
    answer = f"def slope(f, x, h=1e-3):\n    return {EVIL!r} + '\\x1b[31m'"
    marks = [judged("slope", answer, file=f"in/{EVIL}/02_downhill.ipynb", remark=EVIL)]
    marks += [
        Mark("in/b/02_downhill.ipynb", of=3, remark=EVIL),
        Mark("in/\u202e\udcff\n/x.ipynb", remark="it is not JSON"),
    ]
    written = pages(tmp_path, *marks)
    assert len(written) == 4
    for text in written.values():
        tags = [tag for tag, attributes in Page(text).tags]
        assert "img" not in tags and "script" not in tags and "http" not in text and "\u202e" not in text


def test_page_of_each_notebook_has_its_own_name():
    names = ["in/a/index.ipynb", "in/a/x.ipynb", "in/a/X.txt", "in/index.ipynb", "in/a.b/x.ipynb"]
    found = feedback.page_names(names)
    assert [path.as_posix() for path in found.values()] == [
        "a/index.html",
        "a/x.html",
        "a/X2.html",
        "index2.html",
        "a.b/x.html",
    ]


def test_unreadable_notebooks_miss_their_points(course_folder, tmp_path, capsys):
    for name in ("anna/02_downhill.ipynb", "bo/ps02/mine.ipynb", "eve/notes.ipynb"):
        (tmp_path / "in" / name).parent.mkdir(parents=True)
        (tmp_path / "in" / name).write_text("{")
    assert cli.main(["exercises", "grade", str(tmp_path / "in"), "--out", str(tmp_path / "marks.csv"), *TRUST]) == 1
    out, err = capsys.readouterr()
    assert out.split() == [str(tmp_path / "marks.csv"), str(tmp_path / "marks.feedback" / "index.html")]
    points = nb.points_of("02")
    assert f"02_downhill.ipynb: 0 of {points}" in err and f"mine.ipynb: 0 of {points}" in err
    assert "none of the notebooks could be marked" in err
    assert "notes.ipynb: 0 of 0" in err and "its name does not say its lesson" in err
    page = (tmp_path / "marks.feedback/anna/02_downhill.html").read_text(encoding="utf-8")
    assert f"0 of {points} points" in page and "could not be read: it is not JSON" in page


@pytest.mark.parametrize("name", ["grade", "repair", "report"])
def test_missing_path_is_an_error(tmp_path, capsys, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "submitted").mkdir()
    assert cli.main(["exercises", name, "submited"]) == 1
    err = capsys.readouterr().err
    assert f"minflow exercises {name}: there is no file or folder submited\n" in err
    assert str(tmp_path / "submited") in err and "Try: submitted" in err


def test_chinese_pages(course_folder, tmp_path, monkeypatch):
    monkeypatch.setenv("MINFLOW_LANG", "zh")
    page = pages(tmp_path, judged("slope", WRONG["slope"]))["02_downhill.html"]
    assert '<html lang="zh">' in page and "0 / 1 分" in page and "Do you look" not in page


def test_marks_and_pages_of_a_class(course_folder, tmp_path):
    nb.write(tmp_path / "in/anna/02_downhill.ipynb", answered(WRONG))
    words = ["exercises", "grade", str(tmp_path / "in"), "--feedback", str(tmp_path / "pages"), *TRUST]
    assert cli.main(words) == 0
    assert "02_downhill.html" in (tmp_path / "pages/index.html").read_text(encoding="utf-8")
