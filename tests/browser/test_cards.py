"""Cards of errors and warnings, comparisons and debug trees in a real JupyterLab: a mistake is said once, on a light
and a dark theme, and in a notebook that is not trusted."""

import json

import nbformat
import pytest
from pages import act, drive, shots_folder, write

from minflow.diagnosis.card import CardRecord, card_bundle
from minflow.views.kinds.debug_tree import debug_bundle
from minflow.views.kinds.divergence import Comparison, ComparedOperation
from minflow.views.records.graph import GraphRecord, Input, NodeRecord

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


def dark(tmp_path):
    place = tmp_path / "home/settings/@jupyterlab/apputils-extension"
    place.mkdir(parents=True, exist_ok=True)
    (place / "themes.jupyterlab-settings").write_text(json.dumps({"theme": "JupyterLab Dark"}))


MISTAKES = {
    "linear: the input has 28 features": "layer = nn.Linear(784, 10)\nlayer(flow.randn(32, 28))",
    "linear: the input has 26 features":
        "net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Linear(2704, 10))\nnet(x)",
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
    "the loss is nan": "flow.tensor(float('nan'), requires_grad=True).backward()",
}
AS_EVER = ["1 / 0", "class Typo(nn.Module):\n    def forward(self, x):\n        return x + y\nTypo()(x)", "x.reshpe(4, -1)"]
# The text that is seen in each cell's output, and what is cut off at its right.
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


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_mistake_is_said_once(lab, tmp_path, theme):
    if theme == "dark":
        dark(tmp_path)
    write(lab[1], MODEL, *MISTAKES.values(), *AS_EVER, tags=["raises-exception"])
    shots = shots_folder(tmp_path, f"mistakes_{theme}")
    report = drive(lab, "small.ipynb", shots)
    card = "display_data text/html text/plain"
    *kinds, warned = [cell["kinds"] for cell in report["cells"]][1 : len(MISTAKES) + 1]
    assert kinds == [[card, "error"]] * len(kinds) and warned == [card]
    assert [cell["kinds"] for cell in report["cells"][-3:]] == [["error"]] * 3
    assert report["outside"] == [] and not report["atEnd"]["broken"] and report["atEnd"]["unnamed"] == 0
    assert report["atEnd"]["good"] == report["again"]["good"] >= 3
    assert any("red: ShapeError in model.fc" in name and "expected input float32[4, 512]" in name
               for name in report["atEnd"]["names"])
    seen = act(lab, shots, [["wait", 2000], ["eval", VISIBLE], ["see", ".jp-Cell:nth-child(12) .jp-OutputArea"]])
    _, *cells = seen["values"][0]
    for said, cell in zip(MISTAKES, cells):
        assert cell["text"].count(said) == 1, f"{said}: {cell['text']}"
        assert not cell["wide"] and not cell["open"] and "ipykernel" not in cell["text"] and "Cell In" not in cell["text"]
        assert (cell["text"].count("see the card above") == 1 and cell["closed"]) or said == "the loss is nan"
    assert all("see the card" not in cell["text"] and "Traceback (most" in cell["text"] for cell in cells[-3:])


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


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_comparisons_and_debug_trees(lab, tmp_path, theme):
    if theme == "dark":
        dark(tmp_path)
    write(lab[1], MODEL, GOOD, COMPARE, AGREE, DEBUG)
    report = drive(lab, "small.ipynb", shots_folder(tmp_path, f"trees_{theme}"))
    kinds = [cell["kinds"] for cell in report["cells"]]
    assert report["errors"] == [] and report["outside"] == []
    assert kinds[2] == kinds[3] == ["execute_result text/html text/plain"] or kinds[2] == [
        "execute_result text/plain text/html"
    ]
    assert [kind.split()[0] for kind in kinds[4]] == ["display_data"] * 3, (
        "one display for each build, and no wall of text"
    )
    assert report["atEnd"]["good"] == report["again"]["good"] == 2 and not report["atEnd"]["broken"]
    assert any(
        "parts from Net at operation" in name and "only in Net: relu" in name for name in report["atEnd"]["names"]
    )
    notebook = nbformat.read(lab[1] / "small.ipynb", 4)
    for output in notebook.cells[4].outputs:
        assert output.data["text/html"].count("<details") > 5 and "was built in" in output.data["text/html"]
        assert "end building graph modules." in output.data["text/plain"]


EVIL = "<img src=x onerror=window.owned=1><script>window.owned=1</script></td></details>"
SEEN = """(() => {
  const box = document.querySelector('.jp-Notebook');
  const images = [...box.querySelectorAll('.jp-OutputArea-output img')];
  const cards = [...box.querySelectorAll('.jp-RenderedHTMLCommon > div')];
  return {
    good: images.filter((i) => i.complete && i.naturalWidth > 100).length, all: images.length,
    foreign: images.filter((i) => !i.src.startsWith('data:image/svg')).length,
    scripts: box.querySelectorAll('.jp-OutputArea-output script').length, owned: window.owned === 1,
    text: cards.map((c) => c.innerText).join('\\n'), grounds: cards.map((c) => getComputedStyle(c).backgroundColor),
    open: box.querySelectorAll('details[open]').length,
  };
})()"""


def outputs():
    """A card, a comparison and a debug tree whose names are markup."""
    nodes = (
        NodeRecord("a", "input", EVIL, ("float32[2]",)),
        NodeRecord(
            "b", "op", EVIL, (), (Input(EVIL, "a"),), EVIL, EVIL, EVIL, mark="failed", count=3,
            notes=(f"got {EVIL}", f"expected {EVIL}"),
        ),
    )
    graph = GraphRecord(nodes, (), (), EVIL)
    parts = (((EVIL, EVIL),), ((EVIL, "float32[2]"),))
    yield card_bundle(
        CardRecord(f"ShapeError in {EVIL}", EVIL, *parts, EVIL, EVIL, EVIL, EVIL, graph, EVIL, (EVIL, EVIL))
    )
    row = ComparedOperation(EVIL, "float32[2]", EVIL, "differs", EVIL, 1.0)
    yield Comparison(
        EVIL, (row,), False, 0, (("differs", EVIL),), 1.0, (EVIL,), (None, 1e-5), graph
    )._repr_mimebundle_()
    yield debug_bundle(
        EVIL,
        [(0, "start"), (1, f"(MODULE:{EVIL}:Net())"), (2, f"(OPERATOR: {EVIL}() -> (float32[2]))"), *[(1, "x")] * 60]
    )


def test_untrusted_notebook_with_hostile_names(lab, tmp_path):
    """Made elsewhere and handed in: the pictures are there, the tree opens by keyboard, and no name is markup."""
    shown = [nbformat.v4.new_output("display_data", bundle) for bundle in outputs()]
    write(lab[1], *[nbformat.v4.new_code_cell(str(i), outputs=[output]) for i, output in enumerate(shown)])
    last = ".jp-Cell:last-child details details > summary"
    down = """(async () => {  // cells out of sight are not there: the notebook itself has to scroll
      const notebook = window.jupyterapp.shell.currentWidget.content;
      notebook.activeCellIndex = notebook.widgets.length - 1;
      await notebook.scrollToItem(notebook.activeCellIndex);
      return true;
    })()"""
    report = act(lab, shots_folder(tmp_path, "cards_untrusted"), [
        ["wait", 2500], ["shot", "untrusted"], ["eval", SEEN], ["until", down], ["see", last], ["press", "Enter", last],
        ["until", f"document.querySelector('{last}').parentElement.open"], ["eval", SEEN],
        ["theme", "JupyterLab Dark"], ["see", ".jp-Cell:first-child .jp-OutputArea-output"], ["shot", "untrusted_dark"],
        ["eval", SEEN]])  # fmt: skip
    first, opened, dark_ = report["values"]
    assert first["good"] == first["all"] == 2 and first["foreign"] == first["scripts"] == 0
    assert first["text"].count("onerror=window.owned") >= 12 and "expected" in first["text"]
    assert opened["open"] == first["open"] + 1, "a branch opens by keyboard"
    assert not any(seen["owned"] for seen in report["values"]) and dark_["grounds"][:2] == ["rgba(0, 0, 0, 0)"] * 2
