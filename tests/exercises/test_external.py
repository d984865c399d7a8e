"""Exercises outside the package: every part of the course knows them, and a broken definition disables nothing else."""

import importlib.metadata
import json
import os
import re
import textwrap
import warnings

import pytest

import minflow as flow
from minflow import cli, course
from minflow.exercises import check, draw, external, hint, progress, registry, welcome
from minflow.exercises.authoring import new as authoring
from minflow.exercises.teach import notebook as nb
from tests.exercises.teach.small_course import answered, course_folder as course_folder
from tests.processes import python

RIGHT = "def tide(errors):\n    return sum(abs(error) for error in errors) / len(errors)"
VALUE = """from minflow.exercises.definition import Exercise

exercise = Exercise("02.9", "high_water", kind="predict", level="core", question="When?", fact="At noon.")
exercise.solution(12)
exercise.drawn(lambda rng: int(rng.integers(10)))
exercise.accept(lambda value, drawn: value == drawn)
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A folder with one exercise, tide, and its lesson, known by the environment variable."""
    monkeypatch.setenv(external.VARIABLE, str(tmp_path / "own"))
    monkeypatch.setenv("MINFLOW_PROGRESS", str(tmp_path / ".progress.jsonl"))
    monkeypatch.setattr(external, "WARNED", set())
    authoring.new("tide", tmp_path / "own", "17")
    return tmp_path / "own"


def right(errors):
    return sum(abs(error) for error in errors) / len(errors)


def test_check_hint_and_progress(own):
    def tide(errors):
        return sum(errors) / len(errors)

    assert check("tide", tide).name == "with signs"
    assert "What happens to their signs?" in repr(hint("tide"))
    result = check("tide", right)
    assert result.ok and result.points == 2 and "lesson 17: 1 of 1" in repr(result)
    assert progress().lessons["17"] == {"tide": "right"}


def test_exercise_in_a_lesson_of_the_course(own):
    (own / "l02").mkdir()
    (own / "l02" / "high_water.py").write_text(VALUE)
    assert check("high_water", draw("high_water")).ok
    assert [one.name for one in registry.lesson_exercises("02")][-1] == "high_water"


def test_changed_definition_is_read_again(own):
    assert registry.find("tide").points == 2
    file = own / "tide.py"
    file.write_text(file.read_text().replace('level="core"', 'level="stretch"'))
    os.utime(file, ns=(0, 1))
    assert registry.find("tide").points == 3


def test_installed_package(own, tmp_path, monkeypatch):
    (tmp_path / "tides").mkdir()
    (tmp_path / "tides" / "__init__.py").write_text("1 / 0  # never imported")
    (tmp_path / "tides" / "high_water.py").write_text(VALUE)
    points = [
        importlib.metadata.EntryPoint(f"p{number}", name, external.GROUP) for number, name in enumerate(["tides", "no"])
    ]
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: points if group == external.GROUP else [])
    monkeypatch.syspath_prepend(tmp_path)
    external.installed_folders.cache_clear()
    try:
        with pytest.warns(flow.MinflowWarning, match="exercises of p1 cannot be found\n  in the entry point p1 = no"):
            assert external.folders() == [own, tmp_path / "tides"]
        assert registry.find("high_water").number == "02.9"
    finally:
        external.installed_folders.cache_clear()


BROKEN = {
    "syntax": ("exercise = (\n", "SyntaxError", 1),
    "error": ("import math\n\nmath.nothing\n", "AttributeError: module 'math' has no attribute 'nothing'", 3),
    "ends": ("raise SystemExit\n", "SystemExit", 1),
    "kind": (VALUE.replace("predict", "guess"), "ValueError: high_water: kind 'guess' of", 3),
    "nothing": ("import math\n", "it must bind `exercise`", 1),
    "name": (VALUE.replace("high_water", "low_water"), "so the file must be low_water.py", 3),
    "number": (VALUE.replace("02.9", "2.9"), "got '2.9'", 3),
    "solution": (VALUE.replace("exercise.solution(12)", ""), "no answer decorated by @exercise.solution", 3),
    "cases": (VALUE.replace("predict", "write"), "no function decorated by @exercise.cases", 3),
}


@pytest.mark.parametrize("text, problem, line", BROKEN.values(), ids=BROKEN)
def test_broken_definition_names_its_line_and_disables_nothing(own, text, problem, line):
    file = own / "high_water.py"
    file.write_text(text)
    with pytest.raises(external.DefinitionError, match=re.escape(f"{file}, line {line}")) as caught:
        check("high_water", 12)
    assert problem in str(caught.value) and "'high_water'" in str(caught.value)
    with pytest.warns(flow.MinflowWarning, match=re.escape(f"{file}, line {line}")):
        names = [one.name for one in registry.all_exercises()]
    assert {"tide", "slope"} <= set(names) and "high_water" not in names
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        registry.all_exercises()  # the warning comes once
    assert check("tide", right).ok


def test_clashing_names_are_an_error_with_both_places(own, tmp_path):
    (own / "slope.py").write_text("")
    with pytest.raises(external.DefinitionError, match="2 files define exercise 'slope'") as caught:
        check("slope", right)
    assert caught.value.values == {"1": str(registry.FOLDER / "l02" / "slope.py"), "2": str(own / "slope.py")}
    with pytest.warns(flow.MinflowWarning, match="2 files define exercise 'slope'"):
        assert "slope" not in registry.lessons()["02"]
    (own / "02_mine.ipynb").write_text((own / "17_tide.ipynb").read_text())
    with pytest.raises(external.DefinitionError, match=r"lesson 02\n.*02_downhill.ipynb\n.*02_mine"):
        nb.releases()


def test_build_grade_repair_and_report(own, tmp_path, course_folder, capsys):
    for kind, file in (("plain", "teacher/17_tide.ipynb"), ("nbgrader", "source/ps17/17_tide.ipynb")):
        assert cli.main(["exercises", "build", "--for", kind, str(tmp_path / kind), "--lesson", "17"]) == 0
        assert "BEGIN SOLUTION" in (tmp_path / kind / file).read_text()
    theirs = answered({"tide": RIGHT}, nb.read(own / "17_tide.ipynb"))
    nb.write(tmp_path / "class/ada/17_tide.ipynb", theirs)
    marks = tmp_path / "marks.csv"
    words = ["exercises", "grade", "--trust", str(tmp_path / "class"), "--jobs", "1", "--out", str(marks)]
    assert cli.main(words) == 0 and ",17,tide,2,2,right," in marks.read_text()
    assert cli.main(["exercises", "repair", str(tmp_path / "class/ada")]) == 0
    assert RIGHT.splitlines()[0] in (tmp_path / "class/ada/17_tide.repaired.ipynb").read_text()
    check("tide", right)
    os.rename(tmp_path / ".progress.jsonl", tmp_path / "class/ada/.progress.jsonl")
    assert cli.main(["exercises", "report", str(tmp_path / "class")]) == 0
    assert "tide" in (tmp_path / "class/report.csv").read_text()


def test_learners_copy_and_welcome_page(own, tmp_path, course_folder):
    others = [path for path in external.notebooks([]).values()]
    course.update(tmp_path / "copy", others=others)
    text = welcome.page(tmp_path / "copy")
    assert "[17 - tide](17_tide.ipynb)" in text and "[02 - Downhill](02_downhill.ipynb)" in text


def test_option_reaches_other_processes(own, tmp_path, monkeypatch):
    monkeypatch.delenv(external.VARIABLE)
    words = ["-m", "minflow", "exercises", "build", str(tmp_path / "out"), "--lesson", "17", "--exercises"]
    assert "student/17_tide.ipynb" in python(*words, str(own)).stdout
    assert "there is no folder 'none'" in python(*words, "none").stderr


# ---- new and try ----------------------------------------------------------------------------------------------------


def test_new_exercise_runs_and_its_check_is_proved(own, capsys):
    assert cli.main(["exercises", "new", "ebb"]) == 0
    assert capsys.readouterr().out.splitlines()[:2] == [str(own / "ebb.py"), str(own / "17_tide.ipynb")]
    ids = [cell["id"] for cell in json.loads((own / "17_tide.ipynb").read_text())["cells"]]
    assert ids[2:] == [f"{name}-{part}" for name in ("tide", "ebb") for part in nb.PARTS]
    assert registry.find("ebb").number == "17.2"
    assert cli.main(["exercises", "try", str(own / "ebb.py")]) == 0
    out = capsys.readouterr().out
    assert "5 of 5 wrong answers get their own hint" in out and "3 of 3 mutants of the solution are caught" in out


def test_guide_shows_what_is_printed(own, capsys):
    page = (course.checkout() / "docs/teaching/own-exercises.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    assert cli.main(["exercises", "new", "mean_error"]) == 0
    (own / "tide.py").unlink()
    capsys.readouterr()
    assert cli.main(["exercises", "try", "mean_error"]) == 0
    assert capsys.readouterr().out.strip() == textwrap.dedent(block).strip().replace("17.1", "17.2")


@pytest.mark.parametrize(
    "words, problem",
    [
        (["two words"], "is not a name"),
        (["class"], "is not a name"),
        (["slope"], "there is an exercise slope already, 02.1"),
        (["tide"], "exists"),
        (["ebb", "--lesson", "02"], "from 17 on, got '02'"),
    ],
)
def test_new_refuses(own, capsys, words, problem):
    before = sorted(own.iterdir())
    assert cli.main(["exercises", "new", *words]) == 1
    assert problem in capsys.readouterr().err and sorted(own.iterdir()) == before


def test_new_needs_a_folder(monkeypatch, capsys):
    monkeypatch.delenv(external.VARIABLE, raising=False)
    assert cli.main(["exercises", "new", "ebb"]) == 1
    assert "--exercises FOLDER" in capsys.readouterr().err


FAULTS = {
    "no question": ('question="How large is an error on average?"', 'question=""', "it has no question"),
    "right": ("total += error if error > 0 else -error", "total += error", "'right answer 2' (seed 0) is not right"),
    "passes": ("return sum(errors) /", "return sum(map(abs, errors)) /", "'with signs' (seed 0) passes"),
    "alike": ("return abs(sum(errors) /", "return (sum(errors) /", "'late abs' (seed 0) is taken for 'with signs'"),
    "no hint": ('"Add all sizes, then divide."', '""', "these wrong answers have no hint: largest"),
    "nothing": ("case([1.0, -3.0]", "case([-1.0, 3.0]", ""),
}


@pytest.mark.parametrize("old, new, fault", FAULTS.values(), ids=FAULTS)
def test_try_finds_faults(own, capsys, old, new, fault):
    file = own / "tide.py"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))
    assert cli.main(["exercises", "try", "tide"]) == bool(fault)
    assert (f"- {fault}" if fault else "The check can be used.") in capsys.readouterr().out


def test_try_reports_mutants_that_pass(own, capsys):
    file = own / "tide.py"
    more = "    if len(sizes) > 90:\n        return 1\n    return sum(sizes)"
    file.write_text(file.read_text().replace("    return sum(sizes)", more))
    cli.main(["exercises", "try", "tide"])
    out = capsys.readouterr().out
    assert "a mutant that passes: line 4 of the solution: 90 + 1" in out and "mutants pass: add cases" in out


def test_try_an_answer(own, tmp_path, capsys):
    file = tmp_path / "answer.py"
    file.write_text("def tide(errors):\n    return sum(errors) / len(errors)\n")
    assert cli.main(["exercises", "try", "tide", "--answer", str(file)]) == 0
    assert "the smallest case that fails: 2 of 5" in capsys.readouterr().out
    file.write_text("1 / 0")
    assert cli.main(["exercises", "try", "tide", "--answer", str(file)]) == 1
    assert "division by zero" in capsys.readouterr().err
