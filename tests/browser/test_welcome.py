"""The page that `minflow lab` opens, in a real JupyterLab: nothing stands over it, one click opens a lesson, and what was
solved there is on the page when it is loaded again."""

import json
import subprocess
from pathlib import Path

import nbformat
import pytest
from conftest import serving
from pages import NODE, PLAYWRIGHT, TOP, shots_folder

from minflow.exercises import cells

pytestmark = pytest.mark.browser


def test_welcome_page(browser, tmp_path):
    folder, shots = tmp_path / "Zoë's course", shots_folder(tmp_path, "welcome")
    folder.mkdir()
    shots.mkdir(parents=True)
    head = "# 99 - One more\n\n**Question:** Which way is down?\n\n**Time:** 5 minutes"
    code = ["import minflow as flow\nfrom minflow.exercises import check", cells.solved_cell("slope"),
            cells.check_cell("slope")]
    nbformat.write(nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_markdown_cell(head), *map(nbformat.v4.new_code_cell, code)],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}),
        folder / "99_one more.ipynb")
    asked = {"browser": browser, "playwright": str(PLAYWRIGHT), "shots": str(shots), "lesson": "99 - One more"}
    with serving(["minflow", "lab", "--folder", str(folder)], tmp_path / "home", tmp_path / "lab.log") as url:
        done = subprocess.run([NODE, str(Path(__file__).with_name("welcome.mjs")), json.dumps(asked | {"url": url})],
                              capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout.splitlines()[-1])
    assert "failed" not in report and report["outside"] == [], f"{report}\nsee {shots}"
    before, after = report["before"], report["after"]
    assert before["address"] == "/lab/tree/welcome.md"
    assert before["links"] == len(list((TOP / "notebooks").rglob("*.ipynb"))) + 1
    assert before["row"].split("\t") == ["99 - One more", "Which way is down?", "5", "· 0 of 1"]
    assert report["path"] == "99_one more.ipynb"
    assert after["row"].split("\t")[3] == "✓ 1 of 1"
    assert before["over"] == report["over"] == after["over"] == [], "something pops up"
