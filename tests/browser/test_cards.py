"""Cards of errors and warnings, comparisons and debug trees in a real JupyterLab: a mistake is shown once.

test_states.py and test_hostile.py test notebooks that are not trusted.
"""

import nbformat
import pytest
from pages import drive, shots_folder, write

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


MISTAKES = {
    "linear: the input has 28 features": "layer = nn.Linear(784, 10)\nlayer(flow.randn(32, 28))",
    "linear: the input has 26 features": "net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Linear(2704, 10))\nnet(x)",
    "mse_loss: input has shape [32, 3]": "nn.MSELoss()(flow.randn(32, 3), flow.randn(32, 2))",
    "matmul: inner sizes differ, 3": "a, b = flow.randn(2, 3), flow.randn(4, 5)\na @ b",
    "indexing: 5 is outside axis 0": "a[5]",
    "linear: the input is int64": "nn.Linear(4, 2)(flow.arange(4))",
    "backward a second time": "w = flow.ones(3, requires_grad=True)\nloss = (w * w).sum()\nloss.backward()\nloss.backward()",
    "a leaf that requires grad is written in place": "w += 1",
    "flow has no matmull": "flow.matmull(a, b)",
    "nn.Linear also needs out_features": "nn.Linear(3)",
    "linear: the input has 3136 features": GRAPH,
    "labels go from 0 to 9": """
class Train(nn.Graph):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 4)
        self.add_optimizer(flow.optim.SGD(self.fc.parameters(), lr=0.1))

    def build(self, x, y):
        loss = nn.functional.cross_entropy(self.fc(x), y)
        loss.backward()
        return loss

step = Train()
step(flow.ones(2, 3), flow.tensor([0, 1]))
step(flow.ones(2, 3), flow.tensor([0, 9]))""",
    "matmul: inner sizes differ, 10816": JOB,
    "index 7 is out of bounds": """
@flow.global_function()
def later(x: tp.Numpy.Placeholder((2,))) -> tp.Callback[tp.Numpy]:
    return x + x

later(np.ones(2, "float32"))(lambda result: result[7])""",
    "matmul: inner sizes differ, 6": """
from minflow.utils.data import DataLoader, Dataset
class Pairs(Dataset):
    def __len__(self):
        return 8
    def __getitem__(self, i):
        return flow.ones(2, 6) @ flow.ones(4, i + 1)
for batch in DataLoader(Pairs(), batch_size=4, num_workers=1):
    pass""",
    "matmul: inner sizes differ, 5": "async def go():\n    return flow.ones(2, 5) @ flow.ones(4, 5)\nawait go()",
    "no attribute 'reshpe'": "x.reshpe(4, -1)",
    "the loss is nan": "flow.tensor(float('nan'), requires_grad=True).backward()",
}
AS_EVER = [
    "1 / 0",
    "class Typo(nn.Module):\n    def forward(self, x):\n        return x + y\nTypo()(x)",
]
# Returns the visible text of each cell's output, and the text that is cut off on the right.
VISIBLE = """(async () => {
  const notebook = window.jupyterapp.shell.currentWidget.content, cells = [];
  for (let i = 0; i < notebook.widgets.length; i++) {
    await notebook.scrollToItem(i);
    await new Promise((done) => setTimeout(done, 60));
    const output = notebook.widgets[i].outputArea.node;
    cells.push({
      text: output.innerText,
      closed: output.querySelectorAll('details:not([open])').length, open: output.querySelectorAll('details[open]').length,
      wide: [...output.querySelectorAll('.jp-OutputArea-output')].filter((o) => o.scrollWidth > o.clientWidth + 1).length,
    });
  }
  return cells;
})()"""


def test_mistakes_are_shown_once(lab, tmp_path):
    write(lab[1], MODEL, *MISTAKES.values(), *AS_EVER, tags=["raises-exception"])
    report = drive(lab, shots_folder(tmp_path, "mistakes"), actions=[["eval", VISIBLE]])
    card = "display_data text/html text/plain"
    *kinds, warned = [cell["kinds"] for cell in report["cells"]][1 : len(MISTAKES) + 1]
    assert kinds == [[card, "error"]] * len(kinds) and warned == [card]
    assert [cell["kinds"] for cell in report["cells"][-len(AS_EVER) :]] == [["error"]] * len(AS_EVER)
    assert not report["atEnd"]["broken"] and report["atEnd"]["unnamed"] == 0
    assert report["atEnd"]["good"] == report["again"]["good"] >= 3
    assert any(
        "red: ShapeError in model.fc" in name and "expected input float32[4, 512]" in name
        for name in report["atEnd"]["names"]
    )
    _, *cells = report["values"][0]
    for said, cell in zip(MISTAKES, cells):
        assert cell["text"].count(said) == 1, f"{said}: {cell['text']}"
        assert (
            not cell["wide"] and not cell["open"] and "ipykernel" not in cell["text"] and "Cell In" not in cell["text"]
        )
        assert (cell["text"].count("see the card above") == 1 and cell["closed"]) or said == "the loss is nan"
    assert all(
        "see the card" not in cell["text"] and "Traceback (most" in cell["text"] for cell in cells[-len(AS_EVER) :]
    )


GOOD = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2, self.pool = nn.Conv2d(1, 4, 3, padding=1), nn.Conv2d(4, 8, 3, padding=1), nn.MaxPool2d(2)
        self.fc1, self.fc2 = nn.Linear(392, 32), nn.Linear(32, 10)

    def forward(self, x):
        x = self.pool(self.conv1(x).relu())
        x = self.pool(self.conv2(x).relu())
        return self.fc2(self.fc1(x.flatten(1)).relu())

class Student(Net):
    def forward(self, x):
        x = self.pool(self.conv1(x).relu())
        x = self.pool(self.conv2(x))
        return self.fc2(self.fc1(x.flatten(1)).relu())

model = Net()
student = Student()
student.load_state_dict(model.state_dict())
"""
COMPARE = """
class Mine(Predict):
    def __init__(self):
        super().__init__()
        self.model = student

Mine().compare(model, x)
"""
AGREE = "Predict().compare(model, x)"
DEBUG = """
class Train(nn.Graph):
    def __init__(self):
        super().__init__()
        self.model, self.loss_fn = model, nn.CrossEntropyLoss()
        self.add_optimizer(flow.optim.SGD(model.parameters(), lr=0.1))

    def build(self, x, y):
        loss = self.loss_fn(self.model(x), y)
        loss.backward()
        return loss

for level in (1, 2, 3):
    graph = Train()
    graph.debug(level)
    graph(x, flow.tensor([1, 2, 3, 4]))
"""


def test_comparisons_and_debug_trees(lab, dark, tmp_path):
    write(lab[1], MODEL, GOOD, COMPARE, AGREE, DEBUG)
    report = drive(lab, shots_folder(tmp_path, "comparisons"))
    kinds = [cell["kinds"] for cell in report["cells"]]
    assert report["errors"] == []
    assert kinds[2] == kinds[3] == ["execute_result text/html text/plain"] or kinds[2] == [
        "execute_result text/plain text/html"
    ]
    assert [kind.split()[0] for kind in kinds[4]] == ["display_data"] * 3, (
        "one display per build, without a wall of text"
    )
    assert report["atEnd"]["good"] == report["again"]["good"] == 2 and not report["atEnd"]["broken"]
    assert any(
        "diverges from Net at operation" in name and "only in Net: relu" in name for name in report["atEnd"]["names"]
    )
    notebook = nbformat.read(lab[1] / "small.ipynb", 4)
    for output in notebook.cells[4].outputs:
        assert output.data["text/html"].count("<details") > 5 and "was built in" in output.data["text/html"]
        assert "end building graph modules." in output.data["text/plain"]
