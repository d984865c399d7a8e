"""Helpers of the browser tests: paths of programs, small notebooks, and pages that perform actions.

A page that fails leaves `failed.png` in the test's temporary folder. With $MINFLOW_SHOTS, a folder, all screenshots are
taken and kept there.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

import nbformat

TOP = Path(__file__).parent.parent.parent
PLAYWRIGHT = TOP / ".tools/browser/node_modules/playwright-core/index.mjs"
AXE = TOP / ".tools/browser/node_modules/axe-core/axe.min.js"
CHROMIUM = next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), None)
NODE = shutil.which("node")
NOTEBOOK = os.environ.get("MINFLOW_FRONT") == "notebook"  # Notebook 7 instead of JupyterLab; see matrix.py
KERNEL = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
PLACE = "notebooks" if NOTEBOOK else "lab/tree"
SHOTS = os.environ.get("MINFLOW_SHOTS")
# For a cell that is inspected while it runs: after the action "hurry", `rest(seconds)` returns immediately.
REST = """
import os, time
def rest(seconds):
    if not os.path.exists("hurry"):
        time.sleep(seconds)
"""


def act(lab, shots, actions, seconds=90, notebook="small.ipynb", place=None, scale=1, pictures=bool(SHOTS)):
    """Open a notebook and perform the actions (see actions.mjs); return the report. lab: the fixture."""
    asked = {
        "url": lab[0],
        "place": place or f"{PLACE}/{lab[1].name}",
        "notebook": notebook,
        "folder": str(lab[1]),
        "browser": lab[2],
        "playwright": str(PLAYWRIGHT),
        "axe": str(AXE),
        "shots": str(shots),
        "pictures": pictures,
        "scale": scale,
        "seconds": seconds,
        "actions": actions,
    }
    (shots / "asked.json").write_text(json.dumps(asked))
    done = subprocess.run(
        [NODE, str(Path(__file__).with_name("actions.mjs")), str(shots / "asked.json")],
        capture_output=True,
        text=True,
        timeout=seconds + 300,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads((shots / "actions.json").read_text())
    assert "failed" not in report, (
        f"{report['failed']} at {report.get('at', 'the opening')}\nsee {shots}\n{json.dumps(report, indent=1)[:3000]}"
    )
    assert report["outside"] == []
    return report


def drive(lab, shots, notebook="small.ipynb", actions=(), **more):
    """Run all cells; inspect the whole notebook, also after saving and reopening without a kernel, and perform the
    actions.
    """
    return act(
        lab,
        shots,
        [["watch"], ["walk", "atEnd"], ["save"], ["reopen"], ["walk", "again"], *actions],
        seconds=240,
        notebook=notebook,
        **more,
    )


def shots_folder(tmp_path, name):
    folder = Path(SHOTS or tmp_path) / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def write(folder, *sources, tags=()):
    """Write small.ipynb with these cells, given as sources or as cells. Return the notebook."""
    cells = [
        nbformat.v4.new_code_cell(source, metadata={"tags": [*tags]} if tags else {})
        if isinstance(source, str)
        else source
        for source in sources
    ]
    for i, cell in enumerate(cells):
        cell["id"] = f"cell-{i}"
    notebook = nbformat.v4.new_notebook(cells=cells, metadata=KERNEL)
    nbformat.write(notebook, folder / "small.ipynb")
    return notebook


def choose(home, plugin, settings):
    """Set JupyterLab's settings, as if the user had chosen them."""
    folder = home / "settings/@jupyterlab" / plugin.partition("/")[0]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{plugin.partition('/')[2]}.jupyterlab-settings").write_text(json.dumps(settings))
