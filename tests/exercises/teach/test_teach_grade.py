"""Marks depend only on answers, whatever the notebook contains. Each answer runs in a separate process."""

import csv
import os
import socket
import subprocess
import sys
import tempfile

import pytest

from minflow import cli
from minflow.exercises import cells
from minflow.exercises.card import card_text
from minflow.exercises.grading import process, sandbox, worker
from minflow.exercises.registry import find
from minflow.exercises.teach import build, grade, notebook as nb
from tests.exercises.teach.sandboxes import TRUST
from tests.exercises.teach.small_course import EXERCISES, FIRST, RIGHT, WRONG, answered, lesson

SLOPE = RIGHT["slope"]
LIMITS = grade.Limits(seconds=60, trust=bool(TRUST))
UNCONFINED = grade.Limits(seconds=60, trust=True)


def judged(answer, name="slope", limits=LIMITS):
    return grade.mark("x", answered({name: answer}), lesson(), find(name), limits)


# ---- three learners -------------------------------------------------------------------------------------------------


def test_grading_a_class(course_folder, tmp_path, capsys):
    for name, answers in {"right": RIGHT, "wrong": WRONG, "empty": {}}.items():
        nb.write(tmp_path / "in" / name / "02_downhill.ipynb", answered(answers))
    (tmp_path / "in/right/notes.ipynb").write_text("no notebook")
    assert cli.main(["exercises", "grade", str(tmp_path / "in"), "--out", str(tmp_path / "marks.csv"), *TRUST]) == 0
    with open(tmp_path / "marks.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    marks = {(os.path.basename(os.path.dirname(row["file"])), row["exercise"]): row for row in rows}
    for name in EXERCISES:
        points = find(name).points
        assert marks["right", name]["points"] == marks["right", name]["of"] == str(points)
        assert (marks["wrong", name]["points"], marks["wrong", name]["outcome"] in ("wrong", "nearly")) == ("0", True)
        assert (marks["empty", name]["points"], marks["empty", name]["outcome"]) == ("0", "not started")
    assert marks["wrong", "slope"]["wrong answer"] == "one side"
    assert marks["right", ""]["outcome"] == "unreadable"
    err = capsys.readouterr().err
    assert "right/02_downhill.ipynb: 6 of 6" in err.replace(os.sep, "/") and "notes.ipynb: it is not JSON" in err


def test_nothing_to_grade(tmp_path, capsys):
    assert cli.main(["exercises", "grade", str(tmp_path)]) == 1
    assert "no notebooks" in capsys.readouterr().err


def test_outputs_and_all_other_cells_are_ignored():
    notebook = answered({"slope": WRONG["slope"]})
    for cell in notebook["cells"]:
        if cell["id"] == "slope-check":
            cell["source"] = "1.0"
            cell["outputs"] = [{"output_type": "execute_result", "data": {"text/plain": "1.0"}}]
        if cell["id"] == "downhill-01":
            cell["source"] = "import os; os._exit(0)"
    assert grade.mark("x", notebook, lesson(), find("slope"), LIMITS).outcome == "wrong"


# ---- requirements of an answer --------------------------------------------------------------------------------------


def test_cells_before_an_answer():
    release, needed = lesson(), grade.setup_cells
    assert needed(answered(RIGHT), release, find("slope"), SLOPE) == [FIRST]
    assert len(needed(answered(RIGHT), release, find("mixed_up"), "pair = (4, 1)")) == 2  # its check gets the matrix
    assert needed(answered(RIGHT), release, find("edge"), "limit = slope(abs, 1)") == [FIRST, SLOPE]
    assert needed(answered(RIGHT), release, find("slope"), "def slope(matrix): return matrix") == [FIRST]
    assert needed(answered(RIGHT), release, find("slope"), "def slope(: x") == [FIRST]


def test_answer_may_use_another_answer_of_the_learner():
    answer = "limit = round(1 / slope(lambda w: 5 * w**2, 0.5), 6)"
    mark = grade.mark("x", answered({"slope": SLOPE, "edge": answer}), lesson(), find("edge"), LIMITS)
    assert (mark.outcome, mark.points) == ("right", 2.0)


def test_names_of_own_cells_do_not_count():
    answer = "def slope(f, x, h=1e-3):\n    return rise(f, x, h) / (2 * h)"
    notebook = answered({"slope": answer})
    own = nb.cell("code", "def rise(f, x, h):\n    return f(x + h) - f(x - h)", "own")
    for cells_of_notebook, says in ((notebook["cells"], False), ([own, *notebook["cells"]], True)):
        found = grade.mark("x", {**notebook, "cells": cells_of_notebook}, lesson(), find("slope"), LIMITS)
        assert found.outcome == "stopped"
        for text in (found.remark, card_text(found.card).replace("\n", " ")):
            assert ("rise is in another cell" in text) is says


def test_card_of_a_mark():
    """The card that the learner would see belongs to each mark of an answer, also to one whose process ended."""
    mark = judged(WRONG["slope"])
    assert "smallest case" in card_text(mark.card) and "both sides" in card_text(mark.card)
    assert "ended its process" in card_text(judged("import os\nos._exit(0)").card)
    assert judged(cells.answer_cell("slope")).card is None


def test_marks_are_written_one_by_one(course_folder, tmp_path, monkeypatch, capsys):
    """A run that is interrupted keeps the marks that it has."""
    marks = [grade.Mark("a", "02", "slope", 1.0, 1, "right"), grade.Mark("b", remark="it is a pipe")]

    def interrupted(*rest):
        yield from marks
        raise KeyboardInterrupt

    monkeypatch.setattr(grade, "grade", interrupted)
    assert cli.main(["exercises", "grade", str(course_folder), "--out", str(tmp_path / "new/marks.csv"), "--trust"])
    assert (tmp_path / "new/marks.csv").read_text().splitlines()[1:] == [
        "a,02,slope,1,1,right,,",
        "b,,,0,0,unreadable,,it is a pipe",
    ]


def test_without_a_sandbox_the_risk_must_be_accepted(course_folder, tmp_path, monkeypatch, capsys):
    nb.write(tmp_path / "in/02_downhill.ipynb", answered({"slope": SLOPE}))
    monkeypatch.setattr(sandbox.shutil, "which", lambda name: None)
    assert cli.main(["exercises", "grade", str(tmp_path / "in")]) == 2
    out, err = capsys.readouterr()
    for part in ("your rights", "bubblewrap", "at risk", "in minflow exercises grade", "Try:", "container", "--trust"):
        assert part in err
    assert out == ""
    assert cli.main(["exercises", "grade", str(tmp_path / "in"), "--trust"]) == 0
    assert ",slope,1,1,right," in capsys.readouterr().out


def test_a_process_that_ends_before_the_answer_stops_the_command(tmp_path):
    nb.write(tmp_path / "02_downhill.ipynb", answered({"slope": SLOPE}))
    done = subprocess.run(
        [sys.executable, "-m", "minflow", "exercises", "grade", str(tmp_path), "--seconds", "0.01", *TRUST],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "MINFLOW_LANG": "en"},
    )
    assert done.returncode == 1 and ",slope," not in done.stdout
    for part in ("not the student's mistake", "stopped after 0.01 s", "last line on stderr", "in ", "Try: more memory"):
        assert part in done.stderr


def test_the_error_of_a_process_that_does_not_start_is_shown(course_folder, monkeypatch, capsys):
    monkeypatch.setattr(process, "BOOTSTRAP", "raise ImportError('no such package')  # {path!r}")
    assert cli.main(["exercises", "grade", str(course_folder), *TRUST]) == 1
    assert "ImportError: no such package" in capsys.readouterr().err


def test_a_right_answer_that_gets_no_points_stops_the_command(course_folder, monkeypatch, capsys):
    monkeypatch.setattr(grade, "TRIAL", "edge")
    monkeypatch.setattr(cells, "solved_cell", lambda name: "limit = 7")
    assert cli.main(["exercises", "grade", str(course_folder), *TRUST]) == 1
    out, err = capsys.readouterr()
    assert "a right answer does not get its points here" in err and ",slope," not in out


@pytest.mark.parametrize(
    "system, machine, says",
    [("darwin", "arm64", "no sandbox for"), ("win32", "AMD64", "no sandbox for"), ("linux", "riscv64", "riscv64")],
)
def test_systems_without_a_sandbox(system, machine, says, monkeypatch):
    monkeypatch.setattr(sandbox.sys, "platform", system)
    monkeypatch.setattr(sandbox.platform, "machine", lambda: machine)
    assert says in sandbox.problem()


# ---- hostile answers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer, says",
    [
        ("exit()", "SystemExit"),
        ("import os\nos._exit(0)", "ended its process"),
        ("def slope(:", "SyntaxError"),
        ("x = '\ud800'", "UnicodeEncodeError"),
        ("slope = " + "(" * 5000 + ")" * 5000, "the cell raises"),
        ("x = 3", "does not bind slope"),
        ("import minflow\nminflow.Tensor.__add__ = None\n" + SLOPE, "minflow.Tensor.__add__"),
        ("def slope(f, x, h=1):\n    import minflow as flow\n    flow.exp = None", "minflow.exp"),
    ],
)
def test_hostile_answers_earn_nothing_and_are_reported(answer, says):
    verdict = judged(answer)
    assert verdict.outcome in ("stopped", "changed", "not started") and says in verdict.remark, verdict


def test_hostile_answers_touch_no_file_and_start_nothing(tmp_path):
    mine = tmp_path / "mine.txt"
    mine.write_text("mine")
    lines = ["import os, shutil, subprocess, urllib.request", f"mine = {str(mine)!r}", "open('here.txt', 'w').close()"]
    for line in (
        "open(mine, 'w')",
        "os.remove(mine)",
        "os.rename(mine, 'x')",
        "os.truncate(mine, 0)",
        "shutil.rmtree(os.path.dirname(mine))",
        "os.symlink(mine, os.path.dirname(mine) + '/y')",
        "os.fork()",
        "subprocess.run('true')",
    ):
        lines += [
            f"try: {line}",
            "except PermissionError as error: assert 'is refused' in str(error)",
            f"else: raise ValueError({line!r})",
        ]
    lines += ["try: urllib.request.urlopen('http://192.0.2.1/')", "except OSError: pass", "else: raise ValueError"]
    verdict = judged("\n".join([*lines, SLOPE]), limits=UNCONFINED)
    assert verdict.outcome == "right", verdict
    assert mine.read_text() == "mine" and list(tmp_path.iterdir()) == [mine]


def test_nested_folders_of_an_answer_are_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    answer = (
        "import os\ninside = os.open('.', os.O_RDONLY)\nfor i in range(3000):\n    os.mkdir('x', dir_fd=inside)\n"
        "    outside, inside = inside, os.open('x', os.O_RDONLY, dir_fd=inside)\n    os.close(outside)\n" + SLOPE
    )
    assert judged(answer, limits=UNCONFINED).outcome == "right"
    assert list(tmp_path.iterdir()) == [] or os.name != "posix"


def test_limit_of_comparing_excludes_the_process_of_given_variables(monkeypatch):
    """On a busy machine its start takes longer than the limit."""
    limited, values, comparing, during = grade.limited, grade.released_values, [], []

    def limit(seconds, call):
        comparing.append(seconds)
        try:
            return limited(seconds, call)
        finally:
            comparing.pop()

    monkeypatch.setattr(grade, "limited", limit)
    monkeypatch.setattr(grade, "released_values", lambda *words: (during.append(list(comparing)), values(*words))[1])
    assert judged(RIGHT["mixed_up"], "mixed_up").outcome == "right" and during == [[]]


def test_endless_call_ends():
    answer = "def slope(f, x, h=1):\n    while True:\n        try: f(x)\n        except BaseException: pass"
    assert "stopped after 2 s" in judged(answer).remark


def test_uninterruptible_answer_is_killed():
    # A single call of C code is not interrupted by exceptions, but by the end of its process.
    answer = "import collections, itertools\ncollections.deque(itertools.repeat(0), 0)"
    verdict = judged(answer, limits=grade.Limits(seconds=5, trust=bool(TRUST)))
    assert verdict.outcome == "stopped" and ("after 5 s" in verdict.remark or "SIG" in verdict.remark)


def test_memory_is_limited():
    verdict = judged("def slope(f, x, h=1):\n    return len(bytearray(3_000_000_000))")
    assert ": MemoryError" in verdict.remark or sys.platform != "linux"  # others have no limit
    assert "ZeroDivisionError" in judged("def slope(f, x, h=1):\n    return 1 / 0").remark
    four_parts = judged("import minflow\ndef slope(f, x, h=1):\n    return minflow.ones(2) + minflow.ones(3)").remark
    assert "Error: " in four_parts and "\n" not in four_parts
    assert judged("data = bytearray(300_000_000)\n" + SLOPE).outcome == "right"


def test_environment_of_an_answer(monkeypatch):
    """A new process, which neither writes the learner's progress nor reads nbgrader's settings. Large graphs run on
    NumPy, seed and word are the teacher's, and a cell may print, wait and call magics.
    """
    monkeypatch.delenv("MINFLOW_MACHINE", raising=False)
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    settings = {"PROGRESS": "0", "MACHINE": "0", "SEED": "7", "WORD": "spring"}
    answer = (
        "import asyncio, os, sys\nawait asyncio.sleep(0)\nassert 'pytest' not in sys.modules\n%time 3\n"
        f"assert {{name: os.environ['MINFLOW_' + name] for name in {list(settings)}}} == {settings}\n"
        "assert 'NBGRADER_EXECUTION' not in os.environ\n"
        "for i in range(2000): print('x' * 1000); os.write(1, b'y' * 1000)\n" + SLOPE
    )
    assert judged(answer, limits=grade.Limits(seconds=60, seed=7, word="spring", trust=bool(TRUST))).outcome == "right"
    assert judged("%%time\n" + SLOPE).outcome == "right"


def test_suspicious_answers_are_marked():
    reading = "from minflow.exercises.registry import find\nslope = find('slope').right"
    mark = grade.mark("x", answered({"slope": reading}), lesson(), find("slope"), UNCONFINED)
    assert (mark.outcome, mark.remark) == ("right", "look at it: minflow.exercises")


def test_summary_counts_files():
    marks = [
        grade.Mark("a", "02", "slope", 1.0, 1, "right"),
        grade.Mark("a", "02", "edge", 0.0, 2, "wrong"),
        grade.Mark("b\n"),
    ]
    assert grade.summary(marks) == ["a: 1 of 3", "b\ufffd: 0 of 0"]


# ---- the audit hook -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments, here",
    [
        (("socket", ("127.0.0.1", 80)), True),
        (("socket", ("::1", 80, 0, 0)), True),
        (("localhost", 80, 0, 0, 0), True),
        (("socket", ("93.184.216.34", 80)), False),
        (("example.com", 80, 0, 0, 0), False),
        (("socket", "/tmp/x"), True),
    ],
)
def test_local_addresses_are_allowed(arguments, here):
    assert worker.is_local(arguments) is here


def test_hosts_are_refused_by_name():
    program = (
        "from minflow.exercises.grading import worker; import socket\nworker.refuse_access('.')\n"
        "try: socket.getaddrinfo('example.com', 80)\nexcept PermissionError as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert "socket.getaddrinfo is refused" in done.stdout, done.stderr
    assert socket.gethostname()  # nothing is refused here


def test_unanswered_stubs_count_as_not_started(course_folder):
    for name in EXERCISES:
        assert grade.mark("x", lesson(), lesson(), find(name), LIMITS).outcome == "not started"
        assert judged(cells.answer_cell(name), name).outcome in ("not started", "wrong", "stopped")


@pytest.mark.slow
def test_teachers_editions_earn_all_points_and_students_none(tmp_path):
    build.build("plain", tmp_path)
    for edition in ("teacher", "student"):
        marks = list(grade.grade([str(tmp_path / edition)], grade.Limits(trust=bool(TRUST))))
        assert {one.exercise for one in marks} == {
            one.name for path in nb.releases().values() for one in nb.exercises_of(nb.read(path))
        }
        wrong = [one for one in marks if (one.outcome == "right") != (edition == "teacher")]
        assert not wrong, wrong
