"""All views together in a real JupyterLab: a foreign notebook, a reloaded page, dark and light, contrast.

The notebook of all views is executed once, outside JupyterLab, with live widgets; the result is opened as by its author
(signed, trusted) and as by anyone else (not trusted).
"""

import copy
import os

import nbformat
import pytest
from hostile_views import VIEWS
from nbclient import NotebookClient
from nbformat.sign import NotebookNotary
from pages import KERNEL, REST, TOP, act, shots_folder, write
from test_hostile import HURT, LOADED, LOOK, UNHURT, unhurt

from tests.svg_checks import without_scripts

pytestmark = pytest.mark.browser

SETUP = f"""
import sys, time
sys.path.insert(0, {str(TOP / "tests")!r})
import numpy as np
import minflow as flow
import minflow.typing as tp
from IPython.display import display
from minflow_widgets import LossCurve, explore, watch, watch_timeline
from hostile_views import VIEWS, block, bundles, job, train_graph
graph, x = train_graph("Net", called=False), flow.ones(2, 4)
"""
LIVE = {  # what a user writes
    "debug": "graph.debug(2)\ngraph(x)\ngraph.debug(-1)",
    "curve": "with LossCurve() as curve:\n    for i in range(300): curve.add(i, loss=1 / (i + 1), lr=0.1)",
    "watch": "with watch(graph):\n    for _ in range(200): graph(x)",
    "timeline": "step = job('train', run=False)\nwith watch_timeline():\n    for _ in range(30): step(np.ones((3, 4), "
    "'f'))",
    "explorer": "explore(graph, x)",
    "module": "block('Net')",
    "graph": "flow.show(graph)",
    "tensor": "flow.show(flow.randn(20, 20), numbers=True)\nflow.randn(8, 8)",
    "tape": "flow.show(block('Net')(x).sum())",
    "error": "block('Net')(flow.ones(2, 5))",
}
CELLS = {
    **LIVE,
    **{f"{what} (view)": f"for bundle in bundles({what!r}, 'conv1'):\n    display(bundle, raw=True)" for what in VIEWS},
}
WIDGET = "application/vnd.jupyter.widget-view+json"
TRUST = "window.jupyterapp.shell.currentWidget.model.cells.get(0).trusted"
# Texts of our HTML with a contrast below 4.5 with their background, or smaller than 11 px.
POOR = """(() => {
    const numbers = (c) => { const n = (c.match(/[\\d.]+/g) ?? []).map(Number); return n.length === 3 ? [...n, 1] : n; };
    const over = (a, b) => a.slice(0, 3).map((x, i) => x * a[3] + b[i] * (1 - a[3]));
    const light = (c) => c.map((x) => x / 255).map((x) => (x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4))
        .reduce((sum, x, i) => sum + x * [0.2126, 0.7152, 0.0722][i], 0);
    const behind = (e) => { if (!e) return [255, 255, 255]; const c = numbers(getComputedStyle(e).backgroundColor);
        return c[3] === 1 ? c.slice(0, 3) : over(c, behind(e.parentElement)); };
    const opacity = (e) => (e && !e.matches('.jp-OutputArea-output') ? Number(getComputedStyle(e).opacity) * opacity(e.parentElement) : 1);
    const poor = []; let seen = 0;
    for (const output of document.querySelectorAll('.jp-OutputArea-output.jp-RenderedHTML, .mfx')) {
        const walk = document.createTreeWalker(output, NodeFilter.SHOW_TEXT);
        while (walk.nextNode()) {
            const e = walk.currentNode.parentElement;
            if (!walk.currentNode.data.trim() || e.closest('svg') || e.closest('[disabled]')) continue;
            const style = getComputedStyle(e), ink = numbers(style.color), back = behind(e);
            const color = over([...ink.slice(0, 3), ink[3] * opacity(e)], back);
            const [a, b] = [light(color), light(back)].sort((x, y) => y - x), ratio = (a + 0.05) / (b + 0.05);
            seen += 1;
            if (ratio < 4.5 || parseFloat(style.fontSize) < 11)
                poor.push([ratio.toFixed(2), style.fontSize, style.color, back.join(), walk.currentNode.data.trim().slice(0, 40)]);
        }
    }
    return [seen, poor];
})()"""


@pytest.fixture(scope="module")
def executed():
    """The notebook of all views, after its run."""
    cells = [nbformat.v4.new_code_cell(SETUP, id="setup")]
    for i, (what, source) in enumerate(CELLS.items()):
        cells.append(nbformat.v4.new_code_cell(f"# {what}\n{source}", id=f"cell-{i}"))
        if what == "error":
            cells[-1].metadata["tags"] = ["raises-exception"]
    notebook = nbformat.v4.new_notebook(cells=cells, metadata=KERNEL)
    before = {key: os.environ.get(key) for key in ("MINFLOW_LIVE", "PYTHONPATH")}
    os.environ |= {"MINFLOW_LIVE": "1", "PYTHONPATH": os.pathsep.join([str(TOP), str(TOP / "widgets")])}
    try:
        NotebookClient(notebook, timeout=120).execute()
    finally:
        for key, value in before.items():
            os.environ.pop(key) if value is None else os.environ.__setitem__(key, value)
    return notebook


def test_foreign_notebook_shows_the_same(executed, lab, every_output, home, tmp_path):
    """An untrusted notebook shows every picture and every text that its author sees, before scripts add to them."""
    executed = copy.deepcopy(executed)
    for bundle in [output["data"] for cell in executed.cells for output in cell.get("outputs", ()) if "data" in output]:
        if "text/html" in bundle:
            bundle["text/html"] = without_scripts(bundle["text/html"])
    nbformat.write(executed, lab[1] / "small.ipynb")
    look = [["wait", 2500], ["until", LOADED], ["eval", HURT], ["eval", LOOK], ["eval", TRUST], ["shot", "1"]]
    stranger = act(lab, shots_folder(tmp_path, "states-untrusted"), look)
    NotebookNotary(data_dir=str(home / "data")).sign(executed)
    owner = act(lab, shots_folder(tmp_path, "states-trusted"), look)
    assert (stranger["values"][2], owner["values"][2]) == (False, True)
    for report in (stranger, owner):
        report["errors"] = [e for e in report["errors"] if not e.startswith("ShapeError")]
        assert unhurt(report, UNHURT)["images"] >= 35
    for cell, mine, theirs in zip(executed.cells, owner["values"][1], stranger["values"][1]):
        assert len(mine) == len(theirs) == len(cell.outputs), cell.source
        for output, (parts, text), (same_parts, same_text) in zip(cell.outputs, mine, theirs):
            assert WIDGET not in output.get("data", {}), "a widget would be missing when the notebook is reopened"
            assert text == same_text, cell.source
            kept = [p.split()[0] for p in parts if p.split()[0] != "minflow-live"]  # removed, but its contents remain
            assert kept == [p.split()[0] for p in same_parts], cell.source


def test_contrast(executed, lab, every_output, home, tmp_path):
    nbformat.write(executed, lab[1] / "small.ipynb")
    NotebookNotary(data_dir=str(home / "data")).sign(executed)
    themes = "JupyterLab Light", "JupyterLab Dark", "JupyterLab Dark High Contrast"
    looks = [
        [
            ["theme", theme],
            ["until", LOADED],
            ["wait", 1000],
            ["eval", POOR],
            ["shot", f"{theme}-1"],
            ["see", ".jp-Cell:nth-last-child(12)"],
            ["shot", f"{theme}-2"],
        ]
        for theme in themes
    ]
    report = act(lab, shots_folder(tmp_path, "states-contrast"), [action for look in looks for action in look])
    for theme, (seen, poor) in zip(themes, report["values"], strict=True):
        assert seen > 200 and poor == [], theme


def test_lanes_after_a_reload(lab, tmp_path):
    """While a thread trains. A kernel that is busy with a cell informs a new page of its widgets after the cell has
    ended.
    """
    source = (
        SETUP
        + REST
        + """
import threading
step = job("train", run=False)
def loop():
    with watch_timeline():
        for _ in range(400):
            step(np.ones((3, 4), "f"))
            rest(0.03)
threading.Thread(target=loop).start()
"""
    )
    write(lab[1], source)
    drawn = "document.querySelector('.jp-OutputArea-output canvas')?.getAttribute('aria-label') ?? ''"
    report = act(lab, shots_folder(tmp_path, "states-reload"), [
        ["run"], ["until", f"/step [1-9][0-9]/.test({drawn})"], ["eval", drawn], ["save"], ["reload"],
        ["until", f"/step [1-9][0-9]/.test({drawn})"], ["eval", drawn], ["wait", 1500], ["eval", drawn],
        ["shot", "reloaded"], ["hurry"],
        ["until", f"/step 400 /.test({drawn})"], ["wait", 1500], ["eval", drawn], ["eval", HURT], ["shot", "end"]])  # fmt: skip
    before, after, later, last, seen = report["values"]
    assert before != after != later, "the lanes did not move"
    assert "step 400 " in last, "a reloaded page keeps the last picture"
    assert not seen["lost"] and report["errors"] == []
