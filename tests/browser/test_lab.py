"""The notebooks in a real JupyterLab in a real Chromium: all cells run, the curve moves, the pictures are there.

Screenshots: in the test's temporary folder, or in $MINFLOW_SHOTS. Without Chromium, node or playwright-core (in
.tools/browser, put there by .ci/run) these tests are skipped, unless MINFLOW_BROWSER=required.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import nbformat
import pytest

pytestmark = pytest.mark.browser
TOP = Path(__file__).parent.parent.parent
PLAYWRIGHT = TOP / ".tools/browser/node_modules/playwright-core/index.mjs"
CHROMIUM = next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), None)
NODE = shutil.which("node")
NOTEBOOK = os.environ.get("MINFLOW_FRONT") == "notebook"  # Notebook 7 instead of JupyterLab; see matrix.py
PLACE = "notebooks" if NOTEBOOK else "lab/tree"


@pytest.fixture(scope="module", autouse=True)
def tools():
    missing = [name for name, there in [("chromium", CHROMIUM), ("node", NODE), (PLAYWRIGHT, PLAYWRIGHT.exists())]
               if not there]
    if missing and os.environ.get("MINFLOW_BROWSER") == "required":
        pytest.fail(f"missing: {missing}")
    elif missing:
        pytest.skip(f"missing: {missing}; .ci/run fetches them")


@pytest.fixture
def lab(tmp_path):
    """A JupyterLab over a fresh folder and a fresh home; gives (url, folder)."""
    folder, home = tmp_path / "course", tmp_path / "home"
    folder.mkdir(), home.mkdir()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {name: value for name, value in os.environ.items() if name != "MINFLOW_LIVE"}
    environment |= {"HOME": str(home), "IPYTHONDIR": str(home / "ipython"), "JUPYTER_CONFIG_DIR": str(home / "config"),
                    "JUPYTER_DATA_DIR": str(home / "data"), "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
                    "PYTHONPATH": os.pathsep.join([str(TOP), str(TOP / "widgets"), os.environ.get("PYTHONPATH", "")])}
    log = (tmp_path / "lab.log").open("w")
    server = subprocess.Popen(
        [sys.executable, "-m", "notebook" if NOTEBOOK else "jupyterlab", "--no-browser", "--allow-root", f"--port={port}", "--ip=127.0.0.1",
         "--IdentityProvider.token=", "--ServerApp.password=", f"--ServerApp.root_dir={folder}",
         "--ServerApp.port_retries=0", f"--{'JupyterNotebookApp' if NOTEBOOK else 'LabApp'}.expose_app_in_browser=true"],
        env=environment, stdout=log, stderr=subprocess.STDOUT)
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(300):
            if server.poll() is not None:
                break
            try:
                urllib.request.urlopen(f"{url}/api/status", timeout=2).close()
                break
            except OSError:
                time.sleep(0.2)
        assert server.poll() is None, (tmp_path / "lab.log").read_text()
        yield url, folder
    finally:
        server.terminate()
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
        log.close()


def drive(lab, notebook, shots, seconds=240):
    """Run all cells of `notebook` in the browser; returns the driver's report."""
    shots.mkdir(parents=True, exist_ok=True)
    asked = {"url": lab[0], "place": PLACE, "notebook": notebook, "chromium": CHROMIUM, "playwright": str(PLAYWRIGHT),
             "shots": str(shots), "seconds": seconds}
    done = subprocess.run([NODE, str(Path(__file__).with_name("driver.mjs")), json.dumps(asked)],
                          capture_output=True, text=True, timeout=seconds + 300)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout.splitlines()[-1])
    assert "failed" not in report, f"{report['failed']}\nsee {shots}\n{json.dumps(report, indent=1)[:3000]}"
    return report


def shots_folder(tmp_path, name):
    return Path(os.environ["MINFLOW_SHOTS"]) / name if os.environ.get("MINFLOW_SHOTS") else tmp_path / name


def write(folder, *sources):
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    for i, cell in enumerate(cells):
        cell["id"] = f"cell-{i}"
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel}), folder / "small.ipynb")


CURVE = """
import math, time
from minflow_widgets import LossCurve
with LossCurve() as curve:
    for step in range(200):
        curve.add(step, loss=math.exp(-step / 20))
        time.sleep(0.05)
"""


def test_curve_moves_and_stays(lab, tmp_path):
    write(lab[1], "print('hello')", CURVE)
    report = drive(lab, "small.ipynb", shots_folder(tmp_path, "small"))
    assert report["errors"] == [] and report["outside"] == []
    assert report["live"] == 1 and report["liveFrames"] >= 5
    assert report["atEnd"]["good"] == 1 and report["atEnd"]["canvases"] == 0
    assert report["again"]["good"] == 1 and not report["again"]["lost"] and not report["again"]["broken"]


def test_driver_sees_errors(lab, tmp_path):
    write(lab[1], "1 / 0", "print('not reached')")
    report = drive(lab, "small.ipynb", shots_folder(tmp_path, "error"))
    assert report["errors"] == ["ZeroDivisionError: division by zero"]
    assert report["live"] == 0 and report["atEnd"]["good"] == 0


def test_tour(lab, tmp_path):
    for file in (TOP / "notebooks").iterdir():
        if file.is_file():
            shutil.copy(file, lab[1])
    report = drive(lab, "00_tour.ipynb", shots_folder(tmp_path, "tour"))
    print(f"opened in {report['openSeconds']:.1f} s, ran in {report['runSeconds']:.1f} s, "
          f"{report['liveFrames']} different pictures of the live curve seen")
    assert report["unexpected"] == [] and report["outside"] == []
    assert report["live"] >= 1 and report["liveFrames"] >= 5, "the loss curve was not seen moving"
    assert report["atEnd"]["good"] >= 7 and not report["atEnd"]["broken"] and report["atEnd"]["unnamed"] == 0
    assert report["atEnd"]["canvases"] == 0, "a live curve was not replaced by its picture"
    assert report["again"]["good"] == report["atEnd"]["good"] and not report["again"]["lost"]


@pytest.mark.parametrize(("name", "pictures", "explorers", "errors"), [
    ("05_eager_and_static", 1, 1, []), ("06_debugging_graphs", 2, 2, ["ShapeError"]),
    ("08_job_functions", 1, 1, []), ("09_async", 3, 0, [])])
def test_notebooks_with_pictures(lab, tmp_path, name, pictures, explorers, errors):
    shutil.copy(TOP / "notebooks" / f"{name}.ipynb", lab[1])
    report = drive(lab, f"{name}.ipynb", shots_folder(tmp_path, name))
    assert report["unexpected"] == [] and report["outside"] == []
    assert [error.split(":")[0] for error in report["errors"]] == errors, "a mistake that the notebook shows"
    assert report["atEnd"]["explorers"] == explorers, "an explorer is live, and has drawn its graph"
    assert report["atEnd"]["good"] >= pictures and not report["atEnd"]["broken"] and report["atEnd"]["unnamed"] == 0
    assert report["atEnd"]["canvases"] == 0 and report["again"]["good"] == report["atEnd"]["good"] + explorers
    assert not report["again"]["lost"], "where an explorer was, a still picture is"
