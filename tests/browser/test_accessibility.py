"""axe finds nothing serious in what minflow shows: in a JupyterLab in both themes, and on the pages that it writes."""

import json
import subprocess
from pathlib import Path

import pytest
from pages import AXE, NODE, PLAYWRIGHT, act, shots_folder, write

from minflow.exercises import cells, welcome

pytestmark = pytest.mark.browser
OUTPUTS = ".jp-OutputArea-output"
VIEWS = {
    "cards of checks": """
from minflow.exercises import check, draw, hint, progress
def slope(f, x, h=1e-3):
    return (f(x + h) - f(x)) / h
display(check("slope", slope), hint("slope"))
def slope(f, x, h=1e-3):
    return (f(x + h) - f(x - h)) / (2 * h)
display(check("slope", slope), hint("slope"), check("edge", 0.4), progress())""",
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
w = flow.ones(3, requires_grad=True)
loss = (w * flow.ones(3)).sum()
display(flow.show(loss), flow.show(graph), flow.explore(graph), flow.ones(3, 4))""",
    "curve": """
import minflow_widgets
curve = minflow_widgets.LossCurve() if hasattr(minflow_widgets, "LossCurve") else None
display(curve)""",
}


def serious(found):
    return [one for one in found if one[1] in ("serious", "critical")]


def test_outputs_of_a_notebook(lab, every_output, tmp_path):
    shots = shots_folder(tmp_path, "accessibility")
    write(lab[1], *VIEWS.values(), tags=["raises-exception"])
    themes = ["JupyterLab Light", "JupyterLab Dark"]
    actions = [["run"], ["idle"], ["shot", "all"]]
    for theme in themes:
        actions += [["theme", theme], ["axe", OUTPUTS], ["shot", theme]]
    report = act(lab, shots, actions, seconds=120)
    print(json.dumps(report["values"], indent=1)[:20000])
    assert not [serious(found) for found in report["values"] if serious(found)]
