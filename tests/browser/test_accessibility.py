"""axe finds nothing serious in what minflow shows: in a JupyterLab in both themes, and on the pages that it writes."""

import json
import subprocess
from pathlib import Path

import pytest
from pages import AXE, NODE, PLAYWRIGHT, act, shots_folder, write

from minflow.exercises.teach import notebook as nb
from minflow.exercises.teach.grade import Mark
from minflow.exercises.teach.pages import feedback, report, slides
from tests.exercises.teach.small_course import RIGHT, WRONG, course_folder as course_folder
from tests.exercises.teach.test_teach_feedback import judged

pytestmark = pytest.mark.browser
OUTPUTS = ".jp-OutputArea-output"
VIEWS = {
    "cards of checks": """
from minflow.exercises import check, hint, progress
def slope(f, x, h=1e-3):
    return (f(x + h) - f(x)) / h
display(check("slope", slope), hint("slope"))
def slope(f, x, h=1e-3):
    return (f(x + h) - f(x - h)) / (2 * h)
display(check("slope", slope), hint("slope"), progress())""",
    "error card": "import minflow as flow\nfrom minflow import nn\nflow.ones(2, 3) @ flow.ones(4, 5)",
    "debug tree": """
class Predict(nn.Graph):
    def __init__(self):
        super().__init__()
        self.model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    def build(self, x):
        return self.model(x)
graph = Predict()
graph.debug(1)
graph(flow.ones(2, 3))
graph""",
    "pictures": """
from minflow_widgets import explore
w = flow.ones(3, requires_grad=True)
loss = (w * flow.ones(3)).sum()
display(flow.show(loss), flow.show(graph), explore(graph), flow.summary(graph.model, flow.ones(2, 3)), w)""",
    "curves": """
from minflow_widgets import LossCurve, compare
curves = [LossCurve(), LossCurve()]
for curve in curves:
    with curve:
        for i in range(20):
            curve.add(loss=1 / (1 + i), val_loss=1.2 / (1 + i))
display(curves[0], compare(*curves))""",
}


def serious(found):
    """The violations that must be fixed; the others are on docs/accessibility.md."""
    return [one for one in found if one[1] in ("serious", "critical")]


def test_outputs_of_a_notebook(lab, every_output, tmp_path):
    shots = shots_folder(tmp_path, "accessibility")
    write(lab[1], *VIEWS.values(), tags=["raises-exception"])
    kinds = [".mfx", "details", "svg", "canvas", "table"]
    count = f"{kinds}.map((css) => document.querySelectorAll('{OUTPUTS} ' + css).length)"
    actions = [["watch"], ["eval", count]]
    for theme in ("JupyterLab Light", "JupyterLab Dark"):
        actions += [["theme", theme], ["axe", OUTPUTS], ["walk", theme]]
    seen, *found = act(lab, shots, actions, seconds=120)["values"]
    assert all(seen), dict(zip(kinds, seen))
    assert not any(map(serious, found)), json.dumps(found, indent=1)


def axe(browser, tmp_path, files):
    """Page and color scheme -> violations, for pages in files."""
    pages = [file.as_uri() for file in files]
    asked = {"browser": browser, "playwright": str(PLAYWRIGHT), "axe": str(AXE), "pages": pages}
    (tmp_path / "asked.json").write_text(json.dumps(asked))
    words = [NODE, str(Path(__file__).with_name("axe.mjs")), str(tmp_path / "asked.json")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_pages_that_commands_write(browser, course_folder, tmp_path):
    marks = [judged("slope", WRONG["slope"], remark="look at it"), judged("edge", RIGHT["edge"])]
    marks.append(Mark(marks[0].file, "02", "same_scale", of=2, outcome="not started"))
    feedback.write(marks, tmp_path / "feedback")
    (tmp_path / "class/ada").mkdir(parents=True)
    line = {"time": "2026-01-01T00:00:00Z", "exercise": "slope", "outcome": "wrong", "wrong": "one side"}
    (tmp_path / "class/ada/.progress.jsonl").write_text(json.dumps(line))
    (tmp_path / "report.html").write_text(report.as_html(report.read(tmp_path / "class")), encoding="utf-8")
    slides.write(str(nb.releases()["02"]), tmp_path / "slides.html")
    files = [*sorted((tmp_path / "feedback").rglob("*.html")), tmp_path / "report.html", tmp_path / "slides.html"]
    found = axe(browser, tmp_path, files)
    assert len(found) == 2 * len(files) == 8
    assert not any(map(serious, found.values())), json.dumps(found, indent=1)


def test_axe_finds_faults(browser, tmp_path):
    (tmp_path / "page.html").write_text(
        "<html><body style='background:#fff'><p style='color:#aaa'>pale</p></body></html>"
    )
    found = axe(browser, tmp_path, [tmp_path / "page.html"])
    names = {one[0] for one in serious(found["page.html, light"])}
    assert names == {"color-contrast", "document-title", "html-has-lang"}
