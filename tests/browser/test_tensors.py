"""Tensors, images, the memory of a tape and figures in a real JupyterLab: drawn and saved."""

import pytest
from pages import drive, shots_folder, write

pytestmark = pytest.mark.browser

SETUP = """
import math
import minflow as flow
from minflow import nn
flow.manual_seed(0)
x = flow.randn(40, 40)
x[3, 5:9] = math.nan
x[20, 20] = math.inf
x
"""
NUMBERS = "flow.randn(6, 5, requires_grad=True)"
TINY = "flow.tensor([1.0, 2.0])"
SLICES = "flow.randn(16, 3, 5, 5)"
IMAGES = """
from minflow.data.digits import digit_arrays
flow.show(flow.tensor(digit_arrays(True, 8)[0][:24]), images=True)
"""
TAPE = """
w = nn.Parameter(flow.randn(64, 10))
w._label = "<script>alert(1)</script>"
h = (flow.randn(32, 64) @ w).tanh()
h.retain_grad()
loss = (h * h).mean()
flow.show(loss, memory=True)
loss.backward()
flow.show(loss, values=True)
flow.show(loss, memory=True)
"""
FIGURES = """
from minflow_widgets.figures import History, activations, confusion_matrix, filters
History({"loss": [1 / (i + 1) for i in range(100)], "accuracy": [1 - 1 / (i + 1) for i in range(100)]}).plot()
confusion_matrix([0, 1, 1, 2], [0, 1, 2, 2], names=["cat", "dog", "cow"])
filters(nn.Conv2d(3, 16, 5))
model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(288, 10))
activations(model, flow.randn(4, 1, 8, 8));
"""


def test_tensors_are_drawn_and_saved(lab, tmp_path):
    write(lab[1], SETUP, NUMBERS, TINY, SLICES, IMAGES, TAPE, FIGURES)
    report = drive(lab, shots_folder(tmp_path, "tensors"))
    assert report["errors"] == []
    kinds = [cell["kinds"] for cell in report["cells"]]
    assert [" text/html" in k[0] and " text/plain" in k[0] for k in kinds[:5]] == [True, True, False, True, True]
    assert kinds[2] == ["execute_result text/plain"] and len(kinds[5]) == 3 and len(kinds[6]) == 4
    end = report["atEnd"]
    assert end["good"] == 3 + 1 + 2 + 4 and not end["broken"] and end["unnamed"] == 0
    assert report["again"]["good"] == end["good"]
    names = " | ".join(end["names"])
    assert "Tensor float32[40, 40]; 1,600 numbers: min" in names and "4 NaN, 1 inf" in names
    assert "24 images of 8 x 8" in names and "keeps" in names and "bytes for backward" in names
