"""Cards of errors, comparisons and debug trees in a real JupyterLab: drawn, below the traceback, on a light and a dark theme,
and in a notebook that is not trusted."""

import json

import nbformat
import pytest
from test_lab import drive, lab, shots_folder, tools  # noqa: F401

pytestmark = pytest.mark.browser

MODEL = """
import minflow as flow
from minflow import nn

class CNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 16, 3, padding=1), nn.Conv2d(16, 64, 3, padding=1)
        self.pool, self.fc = nn.MaxPool2d(2), nn.Linear(512, 10)

    def forward(self, x):
        x = self.pool(self.conv1(x).relu())
        x = self.pool(self.conv2(x).relu())
        return self.fc(x.flatten(1))

class Predict(nn.Graph):
    def __init__(self):
        super().__init__()
        self.model = model

    def build(self, x):
        return self.model(x)

model, x = CNN(), flow.randn(4, 1, 28, 28)
"""
EAGER = "model(x)"
GRAPH = "Predict()(x)"
JOB = """
import numpy as np
import minflow.typing as tp

@flow.global_function(type="predict")
def job(x: tp.Numpy.Placeholder((8, 1, 28, 28))) -> tp.Numpy:
    h = flow.nn.relu(flow.layers.conv2d(x, 16, 3, name="conv"))
    return flow.matmul(flow.reshape(h, (8, -1)), flow.get_variable("w", (5, 3), initializer=flow.zeros_initializer()))

job(np.zeros((8, 1, 28, 28), "float32"))
"""
PLAIN = "1 / 0"
FAILING = [MODEL, EAGER, GRAPH, JOB, PLAIN]


def write(folder, sources, raising=True):
    """A notebook whose cells may raise without ending the run."""
    cells = []
    for i, source in enumerate(sources):
        cells.append(nbformat.v4.new_code_cell(source, metadata={"tags": ["raises-exception"]} if raising else {}))
        cells[-1]["id"] = f"cell-{i}"
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel}), folder / "small.ipynb")


def dark(tmp_path):
    place = tmp_path / "home/settings/@jupyterlab/apputils-extension"
    place.mkdir(parents=True, exist_ok=True)
    (place / "themes.jupyterlab-settings").write_text(json.dumps({"theme": "JupyterLab Dark"}))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_cards_below_tracebacks(lab, tmp_path, theme):  # noqa: F811
    if theme == "dark":
        dark(tmp_path)
    write(lab[1], FAILING)
    report = drive(lab, "small.ipynb", shots_folder(tmp_path, f"cards_{theme}"))
    kinds = [cell["kinds"] for cell in report["cells"]]
    card = "display_data text/html text/plain"
    assert kinds[1] == ["error", card] and kinds[3] == ["error", card] and kinds[4] == ["error"]
    assert kinds[2][-2:] == ["error", card], "the traceback stays, and stands above the card"
    assert report["errors"][-1] == "ZeroDivisionError: division by zero" and len(report["errors"]) == 4
    assert report["outside"] == [] and not report["atEnd"]["broken"] and report["atEnd"]["unnamed"] == 0
    assert report["atEnd"]["good"] == report["again"]["good"] == 3
    assert any("red: ShapeError in model.fc" in name and "expected input float32[4, 512]" in name for name in report["atEnd"]["names"])
