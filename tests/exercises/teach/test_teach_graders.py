"""nbgrader and otter themselves, from PyPI, from an assignment to its feedback.

Each has a separate environment: nbgrader brings JupyterLab extensions, otter a browser and pandas, which must not
affect other tests.
"""

import contextlib
import csv
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import pytest

from minflow.exercises import cells
from minflow.exercises.teach import build, notebook as nb, repair
from tests.exercises.teach.small_course import EXERCISES, RIGHT, WRONG, answered
from tests.exercises.teach.test_teach_repair import broken

TOP = Path(__file__).parents[3]


# Cells in front of wrong answers: each replaces something that judges -> text of the feedback.
REPLACING = {
    "own": ("def check(*a, **k): pass", "Do you look to both sides of x?"),
    "two": ("check = lambda *a: 2", "Do you look to both sides of x?"),
    "assigned": (
        "import minflow.exercises\nminflow.exercises.check = lambda *a: 2",
        "minflow.exercises.check has been replaced",
    ),
    "judge": (
        "from minflow.exercises import judge\njudge.difference = lambda *a: None",
        "minflow.exercises.judge.difference has been replaced",
    ),
    "abs": ("import builtins\nbuiltins.abs = lambda x: 0", "builtins.abs has been replaced"),
    "cases": (
        "from minflow.exercises.registry import find\nfind('slope').tolerance = (9.0, 9.0)",
        "Do you look to both sides of x?",
    ),
    "quiet": (
        "import os\nos.environ.pop('NBGRADER_EXECUTION', '')\nos.environ['MINFLOW_GRADING'] = '0'",
        "Do you look to both sides of x?",
    ),
}


def replacing(line, notebook):
    """Wrong answers, below a cell that runs `line`."""
    result = answered(WRONG, notebook)
    place = next(i for i, cell in enumerate(result["cells"]) if cell["id"] == "downhill-01")
    result["cells"].insert(place + 1, nb.cell("code", line, "own-cell"))
    return result


@contextlib.contextmanager
def environment(uv, *packages):
    """The Python of a new environment with these packages, which finds ours and its requirements after its own."""
    with tempfile.TemporaryDirectory() as folder:
        yield installed(uv, Path(folder), *packages)


def installed(uv, folder, *packages):
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    subprocess.run([uv, "venv", "-q", "--python", sys.executable, str(folder)], check=True, timeout=120)
    subprocess.run([uv, "pip", "install", "-q", "--python", str(python), *packages], check=True, timeout=600)
    program = "import sysconfig; print(sysconfig.get_path('purelib'))"
    own = subprocess.run([python, "-c", program], check=True, text=True, capture_output=True, timeout=60).stdout.strip()
    paths = [str(TOP), str(TOP / "widgets"), sysconfig.get_path("purelib")]
    Path(own, "ours.pth").write_text("\n".join(paths), encoding="utf-8")
    return python


def command(python, *words, cwd, code=0):
    """Run a command of the environment, whose programs come first (nbgrader calls alembic). code: its exit code."""
    path = os.pathsep.join([str(python.parent), os.environ["PATH"]])
    done = subprocess.run(
        [python, "-m", *words],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=600,
        env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | {"PATH": path},
    )
    assert done.returncode == code, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


@pytest.mark.slow
def test_nbgrader_from_assignment_to_feedback(uv, course_folder, tmp_path):
    with environment(uv, "nbgrader>=0.9.5,<0.10") as python:
        follow_nbgrader(python, tmp_path)


def follow_nbgrader(python, tmp_path):
    top = tmp_path / "teacher"
    build.build("nbgrader", top)
    command(python, "nbgrader", "generate_assignment", "ps02", cwd=top)
    release = nb.read(top / "release/ps02/02_downhill.ipynb")
    for cell in release["cells"]:
        for name in EXERCISES:
            if cell["id"] == nb.cell_id(name, "answer"):
                assert cell["source"] == cells.answer_cell(name) + "\n"
    learners = {"right": answered(RIGHT, release), "wrong": answered(WRONG, release), "empty": release}
    learners |= {name: replacing(line, release) for name, (line, text) in REPLACING.items()}
    learners["named"] = answered(RIGHT | {"edge": "limit = 0.2\ncheck = True"}, release)
    for name, notebook in learners.items():
        nb.write(top / f"submitted/{name}/ps02/02_downhill.ipynb", notebook)
    nb.write(tmp_path / "broken.ipynb", broken(answered(RIGHT, release)))
    repair.repair(tmp_path / "broken.ipynb", target=top / "submitted/repaired/ps02/02_downhill.ipynb")
    unreadable = top / "submitted/unreadable/ps02/02_downhill.ipynb"
    unreadable.parent.mkdir(parents=True)
    unreadable.write_text("not a notebook", encoding="utf-8")
    command(python, "nbgrader", "autograde", "ps02", "--create", cwd=top, code=1)
    command(python, "nbgrader", "generate_feedback", "ps02", cwd=top)
    command(python, "nbgrader", "export", cwd=top)
    with open(top / "grades.csv", newline="") as file:
        marks = {row["student_id"]: (float(row["score"]), float(row["max_score"])) for row in csv.DictReader(file)}
    right, wrong = ("right", "repaired", "named"), ("wrong", "empty", *REPLACING)
    assert marks == dict.fromkeys(right, (6, 6)) | dict.fromkeys((*wrong, "unreadable"), (0, 6))
    assert not (top / "feedback/unreadable").exists()
    feedback = {name: (top / f"feedback/{name}/ps02/02_downhill.html").read_text() for name in (*right, *wrong)}
    assert "Do you look to both sides of x?" in feedback["wrong"] and "not started" in feedback["empty"]
    for name, (line, text) in REPLACING.items():
        assert text in feedback[name], name
    assert not any("most recent call last" in text or "checker.py" in text for text in feedback.values())


@pytest.mark.slow
def test_otter_assigns_and_grades(uv, course_folder, tmp_path):
    with environment(uv, "otter-grader>=7,<8", "ipykernel", "pypdf") as python:
        follow_otter(python, tmp_path)


def follow_otter(python, tmp_path):
    (path,) = build.build("otter", tmp_path / "teacher")
    # It runs the solved notebook, and stops at a failing test.
    command(python, "otter", "assign", path.name, "out", cwd=path.parent)
    student = nb.read(path.parent / "out/student/02_downhill.ipynb")
    text = json.dumps(student)
    assert "SOLUTION" not in text and all(f'grader.check(\\"{name}\\")' in text for name in EXERCISES)
    graded = next((path.parent / "out/autograder").glob("*.zip"))
    learners = {"right": answered(RIGHT, student), "wrong": answered(WRONG, student), "empty": student}
    learners |= {name: replacing(REPLACING[name][0], student) for name in ("own", "judge", "quiet")}
    for name, notebook in learners.items():
        points = 6 if name == "right" else 0
        nb.write(tmp_path / f"{name}.ipynb", notebook)
        (tmp_path / name).mkdir()
        command(
            python,
            "otter",
            "run",
            "-a",
            str(graded),
            "-o",
            str(tmp_path / name),
            str(tmp_path / f"{name}.ipynb"),
            cwd=tmp_path,
        )
        results = json.loads((tmp_path / name / "results.json").read_text())
        assert sum(one["score"] for one in results["tests"] if "score" in one) == points, name
        assert name not in REPLACING or REPLACING[name][1] in json.dumps(results), name
