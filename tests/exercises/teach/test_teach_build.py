"""Editions from one definition: students get the release, the teachers' edition runs."""

import re

import pytest

from minflow import cli
from minflow.exercises import cells
from minflow.exercises.registry import all_exercises, find
from minflow.exercises.teach import build, nbgrader, notebook as nb, otter
from tests.exercises.teach.small_course import EXERCISES, lesson


def cleared(source):
    """Remove the solution, in the way of all three tools."""
    lines, inside = [], False
    for line in source.split("\n"):
        if "BEGIN SOLUTION" in line or "END SOLUTION" in line:
            inside = "BEGIN" in line
        elif not inside:
            lines.append(line)
    return "\n".join(lines)


@pytest.mark.parametrize("name", [one.name for one in all_exercises()])
def test_cell_without_its_solution_is_the_students(name):
    source = build.teacher_cell(name, cells.answer_cell(name))
    assert cleared(source) == cells.answer_cell(name) != source
    assert source.count("SOLUTION") == 2
    compile(source, name, "exec")


def test_markers_occur_nowhere_else():
    text = r"(BEGIN|END) (SOLUTION|HIDDEN TESTS|MARK SCHEME)|AUTOTEST"
    for path in nb.releases().values():
        assert not [cell["source"] for cell in nb.read(path)["cells"] if re.search(text, cell["source"])], path.name


def test_plain_edition(course_folder, tmp_path, capsys):
    assert cli.main(["exercises", "build", str(tmp_path / "out")]) == 0
    assert nb.read(tmp_path / "out/student/02_downhill.ipynb") == lesson()
    teacher = nb.read(tmp_path / "out/teacher/02_downhill.ipynb")
    assert [cell["source"] for cell in teacher["cells"] if cell["id"] == "edge-answer"] == [
        "limit = ...  # your answer here\n# BEGIN SOLUTION\nlimit = 0.2\n# END SOLUTION"
    ]
    assert "student/" in capsys.readouterr().out
    space = {}
    for cell in teacher["cells"]:
        if cell["cell_type"] == "code":
            exec(cell["source"].replace("check(", "result = check("), space)
            assert "-check" not in cell["id"] or space["result"].ok, cell["id"]


@pytest.mark.parametrize(
    ("kind", "first", "then"),
    [
        ("nbgrader", 'cd "{out}", then nbgrader generate_assignment ps05; give out release/ps05', ""),
        ("nbgrader", 'cd "{out}", then nbgrader generate_assignment ps02; give out release/ps02', "ps05"),
        ("otter", 'otter assign "{out}/ps05/05_eyes.ipynb" ps05-out; give out ps05-out/student', ""),
        ("otter", 'otter assign "{out}/ps02/02_downhill.ipynb" ps02-out; give out ps02-out/student', "ps05"),
    ],
)
def test_suggested_command_uses_the_written_files(tmp_path, capsys, kind, first, then):
    out = tmp_path / "a course"
    lessons = ["02", "05"] if then else ["05"]
    assert cli.main(["exercises", "build", "--for", kind, str(out), "--lesson", *lessons]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == (
        f"Next, in a terminal where {kind} is installed: {first.format(out=out)}"
        f".{f' The same for {then}.' if then else ''}"
    )


def test_unknown_lesson(course_folder, tmp_path, capsys):
    assert cli.main(["exercises", "build", str(tmp_path), "--lesson", "02", "77"]) == 1
    assert "77" in capsys.readouterr().err


def test_nbgrader_metadata(course_folder, tmp_path):
    written = build.build("nbgrader", tmp_path / "n")
    assert [path.relative_to(tmp_path / "n").as_posix() for path in written] == [
        "source/ps02/02_downhill.ipynb",
        "nbgrader_config.py",
    ]
    found = {
        cell["id"]: cell["metadata"]["nbgrader"]
        for cell in nb.read(written[0])["cells"]
        if "nbgrader" in cell["metadata"]
    }
    assert set(found) == {nb.cell_id(name, part) for name in EXERCISES for part in ("answer", "check")}
    for name in EXERCISES:
        answer, check = found[nb.cell_id(name, "answer")], found[nb.cell_id(name, "check")]
        assert answer == {
            "schema_version": 3,
            "grade_id": nb.cell_id(name, "answer"),
            "grade": False,
            "solution": True,
            "locked": False,
            "task": False,
        }
        assert check == {
            "schema_version": 3,
            "grade_id": nb.cell_id(name, "check"),
            "grade": True,
            "solution": False,
            "locked": True,
            "task": False,
            "points": find(name).points,
        }
    compile(nbgrader.CONFIG, "nbgrader_config.py", "exec")
    written[1].write_text("# mine")
    assert len(build.build("nbgrader", tmp_path / "n")) == 1 and written[1].read_text() == "# mine"


def test_otter_cells(course_folder, tmp_path):
    (path,) = build.build("otter", tmp_path, ["02"])
    every = nb.read(path)["cells"]
    assert every[0]["source"] == otter.SETTINGS.strip() and len({cell["id"] for cell in every}) == len(every)
    raws = [cell["source"].split("\n")[0] for cell in every if cell["cell_type"] == "raw"][1:]
    words = ("BEGIN QUESTION", "BEGIN SOLUTION", "END SOLUTION", "BEGIN TESTS", "END TESTS", "END QUESTION")
    assert raws == [f"# {word}" for word in words] * len(EXERCISES)
    tests = {cell["id"]: cell["source"] for cell in every if cell["id"].endswith("-test")}
    space = {}
    exec(tests["mixed-up-test"], space)
    from minflow.exercises.checker import WrongAnswer

    with pytest.raises(WrongAnswer):
        space["test_mixed_up"]((1, 1), [[0] * 10, [3, *[0] * 9], *[[0] * 10] * 8])
    space["test_mixed_up"]((1, 0), [[0] * 10, [3, *[0] * 9], *[[0] * 10] * 8])
