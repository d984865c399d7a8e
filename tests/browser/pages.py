"""What the browser tests share: where the programs are, notebooks of a few cells, and pages that do what is asked.

Screenshots: in the test's temporary folder, or in $MINFLOW_SHOTS.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

import nbformat

TOP = Path(__file__).parent.parent.parent
PLAYWRIGHT = TOP / ".tools/browser/node_modules/playwright-core/index.mjs"
CHROMIUM = next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), None)
NODE = shutil.which("node")
NOTEBOOK = os.environ.get("MINFLOW_FRONT") == "notebook"  # Notebook 7 instead of JupyterLab; see matrix.py
KERNEL = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
PLACE = "notebooks" if NOTEBOOK else "lab/tree"


def asked_of(lab, notebook, shots, seconds, **more):
    """What the scripts are handed. lab: the fixture."""
    shots.mkdir(parents=True, exist_ok=True)
    return {"url": lab[0], "place": f"{PLACE}/{lab[1].name}", "notebook": notebook, "browser": lab[2],
            "playwright": str(PLAYWRIGHT), "shots": str(shots), "seconds": seconds} | more


def drive(lab, notebook, shots, seconds=240, **more):
    """Run all cells of `notebook` in the browser; returns the driver's report."""
    asked = asked_of(lab, notebook, shots, seconds, **more)
    done = subprocess.run([NODE, str(Path(__file__).with_name("driver.mjs")), json.dumps(asked)],
                          capture_output=True, text=True, timeout=seconds + 300)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout.splitlines()[-1])
    assert "failed" not in report, f"{report['failed']}\nsee {shots}\n{json.dumps(report, indent=1)[:3000]}"
    return report


def act(lab, shots, actions, seconds=90):
    """Open small.ipynb and do the actions (see actions.mjs); the report."""
    asked = asked_of(lab, "small.ipynb", shots, seconds, actions=actions)
    (shots / "asked.json").write_text(json.dumps(asked))
    done = subprocess.run([NODE, str(Path(__file__).with_name("actions.mjs")), str(shots / "asked.json")],
                          capture_output=True, text=True, timeout=seconds + 200)
    assert done.returncode == 0, done.stderr
    report = json.loads((shots / "actions.json").read_text())
    assert "failed" not in report, f"{report['failed']} at {report.get('at', 'the opening')}\nsee {shots}\n{report}"
    assert report["outside"] == []
    return report


def shots_folder(tmp_path, name):
    return Path(os.environ["MINFLOW_SHOTS"]) / name if os.environ.get("MINFLOW_SHOTS") else tmp_path / name


def write(folder, *sources, tags=()):
    """Write small.ipynb with these cells: sources, or cells that are there already. Returns the notebook."""
    cells = [nbformat.v4.new_code_cell(source, metadata={"tags": [*tags]} if tags else {})
             if isinstance(source, str) else source for source in sources]
    for i, cell in enumerate(cells):
        cell["id"] = f"cell-{i}"
    notebook = nbformat.v4.new_notebook(cells=cells, metadata=KERNEL)
    nbformat.write(notebook, folder / "small.ipynb")
    return notebook
