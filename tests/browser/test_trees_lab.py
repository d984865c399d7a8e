"""Summaries, trees, listings, and values above their tape in a real JupyterLab."""

import pytest
from pages import REST, act, drive, shots_folder, write

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
      images: output.querySelectorAll('img, [role=group] > svg').length,
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


# ---- the tree of a build ---------------------------------------------------------------------------------------------

PICTURE = "flow.show(nn.Conv2d(3, 16, 5)(flow.randn(2, 3, 12, 12)))"
TREE_CELL = 4  # number of the cell whose output is the tree: the pictures before it push its program out of view
BUILD = "\ngraph = Predict(nn.Sequential(nn.Linear(6, 8), Block(8), Block(8), nn.Linear(8, 3)))\ngraph.debug(3)\ny = graph(x)"
EXPLORE = "from minflow_widgets import explore\nexplore(graph, x)"
OUTPUT = f".jp-Cell:nth-child({TREE_CELL}) .jp-OutputArea"
FIELD = f"{OUTPUT} input[type=search]"
STATE = f"""(() => {{
    const output = document.querySelector('{OUTPUT}');
    const current = output.querySelector('[aria-current]');
    const folds = [...output.querySelectorAll('details')];
    return {{
      said: output.querySelector('[role=status]').textContent,
      hint: output.querySelector('[data-hint]')?.textContent,
      marked: output.querySelectorAll('[data-hit]').length,
      current: current && current.textContent,
      visible: current && current.getClientRects().length > 0,
      opened: folds.filter((fold) => fold.open).length,
      folds: folds.length,
    }};
  }})()"""
LINE_IN_VIEW = """(() => {
    const line = [...document.querySelectorAll('.jp-Cell:nth-child(1) .cm-line')].find((node) => node.textContent.includes('self.out(weights'));
    const box = line?.getBoundingClientRect();
    return Boolean(box) && box.top > 0 && box.bottom < innerHeight;
  })()"""


def typed(text):
    return [["focus", FIELD], *[["press", key] for key in text], ["eval", STATE]]


def test_tree_of_a_build_is_searched_and_folded(lab, tmp_path):
    write(lab[1], MODEL, PICTURE, PICTURE, BUILD)
    actions = [["run"], ["until", f"document.querySelector('{FIELD}')"], ["idle"], ["eval", STATE], *typed("softmax")]
    actions += [
        ["shot", "found"],
        ["press", "Enter"],
        ["eval", STATE],
        ["press", "Shift+Enter"],
        ["press", "Shift+Enter"],
    ]
    actions += [["eval", STATE], ["press", "Escape"], ["eval", STATE], *typed("nowhere")]
    actions += [["press", "Escape"], ["click", f"{OUTPUT} button:has-text('unfold all')"], ["eval", STATE]]
    actions += [["click", f"{OUTPUT} button:has-text('fold all') >> nth=1"], ["eval", STATE]]
    report = act(lab, shots_folder(tmp_path, "search"), actions)
    before, found, second, last, after, nothing, unfolded, folded = report["values"]
    assert report["errors"] == report["console"] == []
    assert before["marked"] == 0 and 0 < before["opened"] < before["folds"] and before["said"] == ""
    assert found["marked"] >= 2 and found["said"] == f"1 of {found['marked']}"
    assert "softmax" in found["current"] and found["visible"] and found["opened"] > 2
    assert second["said"] == f"2 of {found['marked']}" and second["visible"] and second["current"] != found["current"]
    assert last["said"] == f"{found['marked']} of {found['marked']}" and last["visible"]
    assert after == before, "Escape ends the search, and the folds are as before"
    assert nothing["said"] == "nothing found" and nothing["marked"] == 0 and nothing["current"] is None
    assert unfolded["opened"] == before["folds"] and folded["opened"] == 0


def test_lines_of_a_tree_lead_to_their_cell_and_to_the_explorer(lab, dark, tmp_path):
    write(lab[1], MODEL, PICTURE, PICTURE, BUILD, EXPLORE)
    row = f"{OUTPUT} summary:has(b:text-is('out'))"
    actions = [
        *(["cell", i] for i in range(4)),
        ["until", f"document.querySelector('{FIELD}')"],
        ["idle"],
        *typed("model.1.out"),
        ["eval", LINE_IN_VIEW],
    ]
    actions += [["click", f"{row} span[data-link]"], ["wait", 1500], ["eval", LINE_IN_VIEW], ["shot", "at-the-cell"]]
    actions += [
        ["see", row],
        ["wait", 300],
        ["eval", LINE_IN_VIEW],
        ["press", "g", row],
        ["wait", 1500],
        ["eval", LINE_IN_VIEW],
    ]
    actions += [["see", row], ["hover", row, 40, 8], ["click", f"{OUTPUT} button:has-text('explore')"], ["eval", STATE]]
    # the same with an explorer, in a cell that has not run yet
    told = "document.querySelector('.mfx .details').textContent"
    actions += [["cell", 4], ["until", "document.querySelector('.mfx[data-graph=Predict_0]')"], ["idle"], ["see", row]]
    actions += [["hover", row, 40, 8], ["click", f"{OUTPUT} button:has-text('explore')"]]
    actions += [["until", f"{told}.includes('model.1.out')"], ["eval", told], ["shot", "explored"], ["eval", STATE]]
    report = act(lab, shots_folder(tmp_path, "links"), actions)
    found, before, after, away, by_key, alone, explored, state = report["values"]
    assert report["errors"] == report["console"] == []
    assert found["marked"] > 1 and not before and after and not away and by_key
    assert alone["hint"] == 'in a new cell: from minflow_widgets import explore; explore(graph).open("model.1.out")'
    assert "model.1.out" in explored and state["hint"] == ""


GROWING = """
class Slow(nn.Module):
    def __init__(self, i):
        super().__init__()
        self.fc = nn.Linear(4 + i % 3, 4 + (i + 1) % 3)

    def forward(self, x):
        rest(0.01)
        return self.fc(x)

graph = Predict(nn.Sequential(*[Slow(i) for i in range(300)], nn.Linear(5, 4)))
graph.debug(2)
graph(flow.randn(2, 4))
"""
SEEN_GROWING = "window.seen"
WATCH = """(() => {
    window.seen = [];
    setInterval(() => {
      const output = document.querySelector('.jp-Cell:nth-child(2) .jp-OutputArea');
      const text = output ? output.textContent : '';
      const count = text.match(/(\\d+) modules?, \\d+ operations? so far/);
      if (count) window.seen.push([Number(count[1]), output.querySelectorAll('details').length, output.querySelectorAll('script').length]);
    }, 50);
  })()"""


def test_tree_grows_during_a_build_and_opens_where_it_failed(lab, tmp_path):
    """The last layer does not fit: the build fails after 300 modules."""
    write(lab[1], MODEL + REST, GROWING.replace("nn.Linear(5, 4)", "nn.Linear(9, 4)"))
    output = ".jp-Cell:nth-child(2) .jp-OutputArea"
    actions = [
        ["eval", WATCH],
        ["run"],
        ["until", "window.seen.length > 20"],
        ["top", output],
        ["shot", "growing"],
        ["hurry"],
    ]
    actions += [["until", "document.querySelector('.jp-Cell:nth-child(2) input[type=search]')"], ["idle"]]
    actions += [["eval", SEEN_GROWING], ["eval", STATE.replace(f"nth-child({TREE_CELL})", "nth-child(2)")]]
    failing = "document.querySelector('.jp-Cell:nth-child(2) .jp-OutputArea summary pre')"
    actions += [
        ["top", output],
        ["eval", f"{failing}.getClientRects()[0]?.top < innerHeight && {failing}.textContent"],
        ["shot", "failed"],
    ]
    report = act(lab, shots_folder(tmp_path, "growing"), actions)
    *_, seen, state, error = report["values"]
    counts = [count for count, _, _ in seen]
    assert counts == sorted(counts) and len(set(counts)) >= 3, "the tree grows"
    assert all(rows < 60 and not scripts for _, rows, scripts in seen)
    assert len(report["errors"]) == 1 and error.startswith("✗ ShapeError: linear: the input has")
    assert state["opened"] == 3, "only the branch that failed"
