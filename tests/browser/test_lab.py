"""The notebooks in a real JupyterLab in a real Chromium: all cells run, curves move, pictures are displayed."""

import shutil

import pytest
from pages import REST, TOP, drive, shots_folder, write

from conftest import serving

pytestmark = pytest.mark.browser

CURVE = (
    REST
    + """
import math
from minflow_widgets import LossCurve
with LossCurve() as curve:
    for step in range(200):
        curve.add(step, loss=math.exp(-step / 20))
        rest(0.05)
"""
)


def test_curve_moves_and_remains(lab, tmp_path):
    write(lab[1], "print('hello')", CURVE)
    report = drive(lab, shots_folder(tmp_path, "small"))
    assert report["errors"] == [] and report["live"] == 1 and report["liveFrames"] >= 5
    assert report["atEnd"]["good"] == 1 and report["atEnd"]["canvases"] == 0
    assert report["again"]["good"] == 1 and not report["again"]["lost"] and not report["again"]["broken"]


def test_driver_sees_errors(lab, tmp_path):
    write(lab[1], "1 / 0", "print('not reached')")
    report = drive(lab, shots_folder(tmp_path, "error"))
    assert report["errors"] == ["ZeroDivisionError: division by zero"]
    assert report["live"] == 0 and report["atEnd"]["good"] == 0


@pytest.mark.parametrize(("tour", "pictures"), [("R2", 2), ("R3", 1)])
def test_reading_tours(lab, tmp_path, tour, pictures):
    (path,) = (TOP / "notebooks/inside").glob(f"{tour}_*.ipynb")
    shutil.copy(path, lab[1])
    report = drive(lab, shots_folder(tmp_path, tour), path.name)
    assert report["errors"] == []
    assert report["atEnd"]["good"] >= pictures and not report["atEnd"]["broken"] and report["atEnd"]["unnamed"] == 0
    assert report["again"]["good"] == report["atEnd"]["good"] and not report["again"]["lost"]


def test_first_start(browser, tmp_path):
    """`minflow lab` in a new home, and all cells of the first lesson: no dialogs, no kernel warnings, and changes
    are saved only in the learner's folder.
    """
    lessons = {file: file.read_bytes() for file in (TOP / "notebooks").glob("*.ipynb")}
    home, log, first = tmp_path / "Zoë's home, 50% #1", tmp_path / "lab.log", min(file.name for file in lessons)
    with serving(["minflow", "lab"], home, log) as url:
        folder = home / "minflow-course"
        report = drive((url, folder, browser), shots_folder(tmp_path, "first"), first, place="lab/tree")
    assert report["unexpected"] == [] and report["questions"] == []
    assert report["live"] >= 1 and report["liveFrames"] >= 5, "the loss curve did not move"
    assert report["atEnd"]["good"] >= 3 and not report["atEnd"]["broken"] and report["atEnd"]["canvases"] == 0
    assert {file: file.read_bytes() for file in (TOP / "notebooks").glob("*.ipynb")} == lessons
    assert b'"execution_count": 1' in (folder / first).read_bytes()
    assert report["changed"] is False, "the lesson was marked as changed when it was opened"
    text = log.read_text()
    assert text.startswith(f"Your copy of the course is in {folder}\n")
    assert "Kernel" not in text and "[I " not in text and "[W " not in text
    settings = [path.name for path in (home / ".jupyter").rglob("*") if path.is_file()]
    assert [name for name in settings if not name.endswith(".jupyterlab-workspace")] == []  # the open tabs


@pytest.mark.parametrize(
    ("name", "pictures", "explorers", "errors"),
    [
        ("07_eager_and_static", 3, 1, []),
        ("08_debugging_graphs", 2, 1, ["ShapeError", "ShapeError"]),
        ("10_job_functions", 1, 1, []),
        ("11_without_waiting", 3, 0, []),
        ("12_it_leaves_home", 3, 1, []),
    ],
)
def test_notebooks_with_pictures(lab, tmp_path, name, pictures, explorers, errors):
    shutil.copy(TOP / "notebooks" / f"{name}.ipynb", lab[1])
    report = drive(lab, shots_folder(tmp_path, name), f"{name}.ipynb")
    assert report["unexpected"] == []
    assert [error.split(":")[0] for error in report["errors"]] == errors, "the notebook's intended error"
    assert report["atEnd"]["explorers"] == explorers, "an explorer is live and has drawn its graph"
    assert report["atEnd"]["good"] >= pictures and not report["atEnd"]["broken"] and report["atEnd"]["unnamed"] == 0
    assert report["atEnd"]["canvases"] == 0 and report["again"]["good"] == report["atEnd"]["good"] + explorers
    assert not report["again"]["lost"], "a static picture replaces an explorer"
