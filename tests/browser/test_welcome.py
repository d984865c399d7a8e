"""The page that `minflow lab` opens, in a real JupyterLab.

Nothing covers it, one click opens a lesson, and a reload shows the exercises solved there.
"""

import json
import subprocess
from pathlib import Path

import nbformat
import pytest
from pages import AXE, KERNEL, NODE, PLAYWRIGHT, shots_folder

from conftest import serving
from minflow.exercises import cells

pytestmark = pytest.mark.browser


@pytest.mark.parametrize(
    ("inside", "head", "before", "after"),
    [
        (
            "",
            "# 99 - One more\n\n**Question:** Which way is down?\n\n**Time:** 5 minutes",
            ["99 - One more", "Which way is down?", "5", "· 0 of 1"],
            "✓ 1 of 1",
        ),
        (
            "zh",
            "# 99 - 再来一课\n\n**问题：** 往哪边走？\n\n**时间：** 5 分钟",
            ["99 - 再来一课", "往哪边走？", "5"],
            "✓ ",
        ),
    ],
)
def test_welcome_page(browser, tmp_path, inside, head, before, after):
    course, shots = tmp_path / "Zoë's course", shots_folder(tmp_path, f"welcome{inside}")
    folder = course / inside
    folder.mkdir(parents=True)
    shots.mkdir(parents=True, exist_ok=True)
    code = [
        "import minflow as flow\nfrom minflow.exercises import check",
        cells.solved_cell("slope"),
        cells.check_cell("slope"),
    ]
    nbformat.write(
        nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_markdown_cell(head), *map(nbformat.v4.new_code_cell, code)], metadata=KERNEL
        ),
        folder / "99_one more.ipynb",
    )
    asked = {
        "browser": browser,
        "playwright": str(PLAYWRIGHT),
        "axe": str(AXE),
        "shots": str(shots),
        "lesson": before[0],
    }
    words = ["minflow", "lab", "--folder", str(course), "--lang", inside or "en"]
    with serving(words, tmp_path / "home", tmp_path / "lab.log") as url:
        done = subprocess.run(
            [NODE, str(Path(__file__).with_name("welcome.mjs")), json.dumps(asked | {"url": url})],
            capture_output=True,
            text=True,
            timeout=400,
        )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout.splitlines()[-1])
    assert "failed" not in report and report["outside"] == [], f"{report}\nsee {shots}"
    first, again = report["before"], report["after"]
    assert first["address"] == "/lab/tree/welcome.md" and report["path"] == "99_one more.ipynb"
    lessons = [file for file in folder.rglob("*.ipynb") if ".ipynb_checkpoints" not in file.parts]
    assert first["links"] == len(lessons) + 5 > 11, "five links to start from"
    assert first["picture"][0] > 200 and first["picture"][1] == "right"
    assert report["teachers"] == "/lab/tree/docs/teaching/README.md"
    assert first["row"].split("\t")[: len(before)] == before
    assert again["row"].split("\t")[3].startswith(after)
    assert first["over"] == report["over"] == again["over"] == [], "something pops up"
    assert not [one for found in report["axe"] for one in found if one[1] in ("serious", "critical")], report["axe"]
