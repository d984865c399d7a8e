"""The notebooks of an exam: what students and teachers get, and their marks."""

import csv
import json

import pytest

from minflow import cli
from minflow.exercises import cells
from minflow.exercises.registry import find
from minflow.exercises.teach import exam, notebook as nb
from tests.exercises.teach.sandboxes import TRUST
from tests.exercises.teach.small_course import answered

NAMES = ["gradient", "diamond", "who_keeps"]


def written(folder, seed, *names):
    """Write an exam by the command. Returns the student's and the teacher's notebook, and their files."""
    assert cli.main(["exercises", "exam", *names, "--seed", str(seed), "--out", str(folder)]) == 0
    name = names[0] if len(names) == 1 and names[0] in ("midterm", "final") else "exam"
    files = [folder / side / f"{name}.ipynb" for side in ("student", "teacher")]
    return [nb.read(file) for file in files], files


def test_students_get_no_solution_and_no_seed(tmp_path, capsys):
    (student, teacher), files = written(tmp_path, 7117, "midterm")
    assert capsys.readouterr().out.split() == [str(file) for file in files]
    text = files[0].read_text()
    assert (
        "7117" not in text and "SOLUTION" not in text and "Rubric" not in text and "minflow" not in student["metadata"]
    )
    exercises = nb.exercises_of(student)
    assert [one.name.rpartition("_")[0] for one in exercises] == [
        "mixed_up", "shapes", "slope", "diamond", "gradient", "softmax", "out_size", "two_cheats", "score",
    ]  # fmt: skip
    for exercise in exercises:
        assert cells.answer_cell(exercise.name) in [cell["source"] for cell in student["cells"]]
        for right in (cells.solved_cell(exercise.name), cells.definition_source(find("slope").right)):
            assert right not in text and json.dumps(right)[1:-1] not in text
    ids = [cell["id"] for cell in student["cells"]]
    assert len(ids) == len(set(ids)) and set(ids) < {cell["id"] for cell in teacher["cells"]}


def test_teachers_notebook_runs_and_has_the_rubric(tmp_path):
    (_, teacher), _ = written(tmp_path, 3, *NAMES)
    space = {}
    for cell in teacher["cells"]:
        if cell["cell_type"] == "code":
            exec(compile(cell["source"], cell["id"], "exec"), space)
    rubrics = [cell["source"] for cell in teacher["cells"] if cell["id"].endswith("-rubric")]
    assert len(rubrics) == len(NAMES)
    (gradient, *_) = nb.exercises_of(teacher)
    partial = teacher["metadata"]["minflow"]["exam"]["partial"][gradient.name]
    for wrong in gradient.wrongs:
        assert f"| {wrong.name} | {partial.get(wrong.name, 0):g} | " in rubrics[0]
    assert {partial.get("one side"), partial.get("values of f")} == {1.0, None}


def test_an_exam_is_marked_by_the_teachers_notebook(tmp_path, capsys):
    (student, _), (_, key) = written(tmp_path / "a", 7, *NAMES)
    (other, _), _ = written(tmp_path / "b", 8, *NAMES)
    gradient, *_ = exercises = nb.exercises_of(student)
    right = {one.name: cells.solved_cell(one.name) for one in exercises}
    one_side = cells.solved_cell(gradient.name).replace("left[i] -= h", "").replace("2 * h", "h")
    copied = {one.name: cells.solved_cell(one.name) for one in nb.exercises_of(other)}
    # a submission's own metadata must not decide how it is marked
    forged = answered({gradient.name: one_side}, student)
    forged["metadata"]["minflow"] = {"exam": {"partial": {gradient.name: {"one side": 100}}}}
    submissions = {
        "empty": student,
        "right": answered(right, student),
        "one side": forged,
        "other seed": answered(copied, other),
        "copied": answered(
            {one.name: copied[name] for one, name in zip(exercises, copied)}, student,
        ),
    }  # fmt: skip
    for name, notebook in submissions.items():
        nb.write(tmp_path / "in" / f"{name}.ipynb", notebook)
    out = tmp_path / "marks.csv"
    command = ["exercises", "grade", str(tmp_path / "in"), "--release", str(key), "--out", str(out), *TRUST]
    assert cli.main(command) == 0, capsys.readouterr().err
    with open(out, newline="") as file:
        marks = {(row["file"].split("/")[-1][:-6], row["exercise"]): row for row in csv.DictReader(file)}
    assert {name for file, name in marks if file != "other seed"} == {one.name for one in exercises}
    other = marks["other seed", ""]
    assert (other["outcome"], other["points"]) == ("unreadable", "0") and "not those of the release" in other["remark"]
    assert other["of"] == str(sum(one.points for one in exercises))
    for exercise in exercises:
        assert marks["empty", exercise.name]["outcome"] == "not started"
        assert float(marks["right", exercise.name]["points"]) == exercise.points
    assert (marks["one side", gradient.name]["points"], marks["one side", gradient.name]["wrong answer"]) == (
        "1",
        "one side",
    )
    assert marks["copied", gradient.name]["points"] == "0"


def test_the_wrong_release_is_an_error(tmp_path, capsys):
    (student, _), (given, key) = written(tmp_path / "a", 7, *NAMES)
    _, (_, other_key) = written(tmp_path / "b", 8, *NAMES)
    nb.write(tmp_path / "in/anna.ipynb", student)
    before = (tmp_path / "in/anna.ipynb").read_bytes()
    grade, out = ["exercises", "grade", str(tmp_path / "in")], ["--out", str(tmp_path / "page.html")]
    capsys.readouterr()
    for release, says in (
        ([], "not those of the release"),
        (["--release", str(other_key)], "not those of the release"),
        (["--release", str(given)], "it is the students' notebook of an exam"),
    ):
        assert cli.main([*grade, *release, *TRUST]) == 1
        assert says in capsys.readouterr().err
    for release in ([], ["--release", str(other_key)]):
        assert cli.main(["exercises", "similar", str(tmp_path / "in"), *release, *out]) == 1
        assert "not those of the release" in capsys.readouterr().err and not (tmp_path / "page.html").exists()
        assert cli.main(["exercises", "repair", "--in-place", str(tmp_path / "in"), *release]) == 1
        assert (tmp_path / "in/anna.ipynb").read_bytes() == before
    assert cli.main([*grade, "--release", str(key), *TRUST]) == 0


def test_another_exam_is_not_overwritten(tmp_path, capsys):
    (_, teacher), files = written(tmp_path, 7, *NAMES)
    write = ["exercises", "exam", *NAMES, "--out", str(tmp_path), "--seed"]
    assert cli.main([*write, "7"]) == 0  # the same again
    teacher["metadata"]["minflow"]["exam"]["partial"] = {}
    nb.write(files[1], teacher)
    before = [file.read_bytes() for file in files]
    capsys.readouterr()
    for seed in ("7", "8"):
        assert cli.main([*write, seed]) == 1
        err = capsys.readouterr().err
        for part in ("another exam is in this folder", "exam.ipynb", "seed of the new one", "in the folder", "Try: "):
            assert part in err
        assert [file.read_bytes() for file in files] == before


def test_list_of_exercises_with_variants(capsys):
    assert cli.main(["exercises", "exam"]) == 0
    out = capsys.readouterr().out
    assert "midterm: mixed_up, shapes" in out and "without variants: " in out


@pytest.mark.parametrize(
    "names, text", [(["recall_02"], "recall_02 has no variants"), (["slpe"], "there is no exercise 'slpe'")]
)
def test_unknown_exercises_are_named(names, text, tmp_path, capsys):
    assert cli.main(["exercises", "exam", *names, "--out", str(tmp_path)]) == 1
    assert text in capsys.readouterr().err and not list(tmp_path.iterdir())


def test_a_release_that_cannot_be_read(tmp_path, capsys):
    (tmp_path / "key.ipynb").write_text("no notebook")
    nb.write(tmp_path / "in.ipynb", answered({}))
    assert cli.main(["exercises", "grade", str(tmp_path / "in.ipynb"), "--release", str(tmp_path / "key.ipynb")]) == 1
    assert "key.ipynb: it is not JSON" in capsys.readouterr().err


def test_an_exam_of_another_version_is_refused(tmp_path, capsys):
    (student, teacher), (_, key) = written(tmp_path, 7, *NAMES)
    name = nb.exercises_of(student)[1].name
    for cell in teacher["cells"]:
        if cell["id"] == nb.cell_id(name, "answer"):
            cell["source"] = cell["source"].replace(cells.solved_cell(name), "slope_of_d = 7")
    nb.write(key, teacher)
    assert cli.main(["exercises", "grade", str(tmp_path / "student"), "--release", str(key)]) == 1
    assert f"the solution of {name} has changed" in capsys.readouterr().err


def test_examples_are_results_of_the_solution():
    exercise = find("slope_00000000")
    lines = exam.examples(exercise)
    assert lines[1] == "- `f = x**2, x = 3`: `600`" and len(lines) == exam.EXAMPLES
