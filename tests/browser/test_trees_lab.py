"""Summaries, trees, listings, and values above their tape in a real JupyterLab."""

import pytest
from pages import drive, shots_folder, write

pytestmark = pytest.mark.browser

MODEL = """
import minflow as flow
from minflow import nn
flow.manual_seed(0)

class Block(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.norm = nn.LayerNorm(size)
        self.q, self.k, self.v, self.out = [nn.Linear(size, size) for _ in range(4)]

    def forward(self, x):
        y = self.norm(x)
        weights = flow.softmax(self.q(y) @ self.k(y).mT / 8 ** 0.5, -1)
        return x + self.out(weights @ self.v(y))

class Predict(nn.Graph):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def build(self, x):
        return self.model(x)

blocks = nn.Sequential(nn.Linear(6, 8), *[Block(8) for _ in range(50)], nn.Linear(8, 3))
x = flow.randn(2, 5, 6)
"""
ATTENTION = """
h = blocks[0](x)[0]
weights = flow.softmax(blocks[1].q(h) @ blocks[1].k(h).mT, -1)
flow.show(weights)
"""
HEADS = "flow.show(flow.softmax(flow.randn(2, 8, 10, 10), -1))"
CONV = "flow.show(nn.Conv2d(3, 16, 5)(flow.randn(2, 3, 12, 12)))"
SUMMARY = "flow.summary(blocks, x)"
LISTING = "graph = Predict(blocks)\ngraph"
DEBUG = "graph.debug(3)\ny = graph(x)"
GRAPH = "graph"
TREE = "graph.tree()"
CELLS = [MODEL, ATTENTION, HEADS, CONV, SUMMARY, LISTING, DEBUG, GRAPH, TREE]
SEEN = """(() => [...document.querySelectorAll('.jp-Cell')].slice(1).map((cell) => {
    const output = cell.querySelector('.jp-OutputArea');
    const lists = [...output.querySelectorAll('pre')].filter((pre) => /\\(GRAPH:/.test(pre.textContent));
    return {
      high: output.getBoundingClientRect().height,
      wide: [...output.querySelectorAll('.jp-OutputArea-output')].filter((o) => o.scrollWidth > o.clientWidth + 1).length,
      images: output.querySelectorAll('img').length,
      text: output.textContent,
      wraps: lists.filter((pre) => getComputedStyle(pre).whiteSpace !== 'pre').length,
      lists: lists.length,
    };
  }))()"""


def test_trees_and_listings(lab, dark, tmp_path):
    write(lab[1], *CELLS)
    looks = [
        look
        for i in range(1, len(CELLS))
        for look in (["see", f".jp-Cell:nth-child({i + 1}) .jp-OutputArea"], ["shot", f"cell-{i}"])
    ]
    report = drive(lab, shots_folder(tmp_path, "trees"), actions=[["eval", SEEN], *looks])
    assert report["errors"] == [] and not report["atEnd"]["broken"]
    (seen,) = report["values"]
    attention, heads, conv, summary, listing, debug, graph, tree = seen
    assert not any(cell["wide"] for cell in seen)
    assert attention["images"] == 2 and attention["high"] < 400  # the tape is folded
    assert "tape of weights float32[5, 5]: " in attention["text"]
    assert heads["images"] == 1 and conv["images"] == 2 and conv["high"] < 700
    assert "1-50: 50 x Block" in summary["text"] and "multiply-accumulates" in summary["text"]
    assert summary["high"] < 500 and tree["high"] < 500
    assert listing["lists"] == graph["lists"] == 1 and not listing["wraps"] + graph["wraps"]
    assert "x49, to model.50" in debug["text"] and "at In[" in debug["text"]
