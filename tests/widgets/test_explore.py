"""explore() in a notebook, a terminal and a page. In a real browser: tests/browser/test_explorer_lab.py."""

import gc
import json
import re
import sys
import types
import weakref
from pathlib import Path

import IPython
import minflow_widgets.explorer.explorer as module
import numpy as np
import pytest
from minflow_widgets import explore

import minflow as flow
import minflow.nn as nn
import minflow.typing as tp
from minflow.core.base.errors import GraphError, JobError
from minflow.views.draw.theme import contrast
from minflow.vision.models import mobilenet_v2
from tests.graph_models import Predict, Train


@pytest.fixture
def graph():
    flow.manual_seed(0)
    graph = Train(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)))
    graph.given = flow.randn(5, 4), flow.tensor([0, 1, 2, 0, 1])
    return graph


def displayed(*given):
    """Return an explorer that a page displays, and its widget, if it is live."""
    explorer = explore(*given)
    explorer._ipython_display_()
    return explorer, explorer.shown[0][0] if explorer.shown else None


def ask(widget, what, **more):
    widget.ask = json.dumps({"do": what, "n": np.random.rand(), **more})
    return json.loads(widget.picture), json.loads(widget.detail)


def test_before_the_first_call_it_asks_for_one(graph):
    with pytest.raises(GraphError, match="Train_[0-9]+ has not been called yet") as caught:
        explore(graph)
    assert "explore(graph, x, y)" in str(caught.value) and "at test_explore.py:" in str(caught.value)
    with pytest.raises(GraphError, match="takes a graph, a job or a model, got float"):
        explore(3.0)
    with pytest.raises(GraphError, match="got the class Train; create an object of it first"):
        explore(Train)
    x, y = graph.given
    assert explore(graph, x=x, y=y).session.model.instructions, "build calls its input x, as explore does"
    with pytest.raises(GraphError, match="name must be a string, got Linear"):
        explore(graph, x, y).open(graph.model[0])
    assert "model" in explore(graph, *graph.given).text  # with inputs it needs no call


def test_model_alone_is_run_forward(graph, notebook):
    model, (x, _) = graph.model, graph.given
    with pytest.raises(GraphError, match="the input of Sequential is missing") as caught:
        explore(model)
    assert "explore(model, x)" in str(caught.value) and "at test_explore.py:" in str(caught.value)
    model.insert(1, nn.BatchNorm1d(8))
    before = [b.numpy().copy() for b in model.buffers()]
    explorer = explore(model, x)
    assert explorer.text.startswith("Sequential_") and "▸ model.0  Linear" in explorer.text
    assert "backward" not in explorer.text
    assert len(before) > 1 and all((b.numpy() == old).all() for b, old in zip(model.buffers(), before)), (
        "its statistics are restored"
    )
    explorer._ipython_display_()
    widget = explorer.shown[0][0]
    view, told = ask(widget, "step", to=1)
    assert [words for _, words in view["heads"]] == ["forward ↓", "parameters"] and told["arrays"]
    assert dict(explore(model, x).session.detail()["rows"])["note"].startswith("Forward only")
    assert "Forward only" in explorer.svg
    explorer.record(flow.ones(7, 4))
    assert "7×4" in explorer.text and "Forward only" in explorer.svg
    operation = next(node for node in explorer.session.tree.record.nodes if node.label == "matmul")
    assert "test_explore.py:" in operation.where, "the line that explores"

    class Named(nn.Module):
        def forward(self, a, b=None):
            return {"sum": a + b, "first": a}

    text = explore(Named(), x, b=x).text
    assert "· a  input" in text and "· b  input" in text, "called as forward calls them"


def test_terminal_gets_text(graph, capsys):
    explore(graph, *graph.given)._ipython_display_()
    text = capsys.readouterr().out
    assert text.startswith(graph.name) and "▸ model.0  Linear" in text
    assert "5×4 → 5×8; backward 2 ops; weight, bias (40)" in text


def test_page_gets_widget_and_static_picture(graph, notebook):
    explorer, widget = displayed(graph, *graph.given)
    (still,) = notebook.shown
    assert set(still) == {"text/html", "text/plain"}, "a widget in a saved notebook would be missing"
    assert still["text/html"].startswith("<minflow-live ") and f'data-name="{widget.name}"' in still["text/html"]
    assert "data:image/svg" in still["text/html"] and "<svg" not in still["text/html"]
    assert still["text/plain"] == explorer.text
    assert repr(widget) == "GraphExplorer (live)"
    first = json.loads(widget.picture)
    assert first["steps"] > 5 and [row[7][0][3] for row in first["rows"]][:3] == ["x", "▾ model", "▸ model.0"]
    opened, told = ask(widget, "toggle", id=first["rows"][2][0])
    assert len(opened["rows"]) > len(first["rows"]) and told["title"] == "model.0"
    _, told = ask(widget, "step", to=2)
    assert told["at"] == 2 and told["arrays"]
    passed, _ = ask(widget, "stage", to=0)
    assert passed["pass"].startswith("as written") and "of memory" in passed["pass"]
    widget.ask = "{not json"
    widget.ask = "[1]"
    explorer.end()
    assert set(notebook.updates[0]) == {"text/html", "image/svg+xml", "text/plain"} and explorer.shown == []
    ask(widget, "first")  # a page that still sends requests gets no answer, and nothing breaks


def test_click_shows_details_and_stepping_continues(graph, notebook):
    _explorer, widget = displayed(graph, *graph.given)
    rows = [row[0] for row in json.loads(widget.picture)["rows"]]
    _, told = ask(widget, "step", to=4)
    assert told["at"] == told["last"] == 4
    for what, id in (("toggle", rows[2]), ("select", rows[0])):
        _, shown = ask(widget, what, id=id)
        assert shown["at"] == -1 and shown["last"] == 4 and shown["row"] == id and shown["title"] != told["title"]


def picture_in(bundle):
    return re.search(r"data:image/svg[^\"]*", bundle["text/html"])[0]


def test_keeping_a_picture_leaves_the_widget_live(graph, notebook):
    explorer, widget = displayed(graph, *graph.given)
    (first,) = notebook.shown
    ask(widget, "toggle", id=json.loads(widget.picture)["rows"][2][0])
    _, told = ask(widget, "keep")
    (kept,) = notebook.updates
    assert "Kept" in told["said"] and kept["text/plain"] == explorer.text != first["text/plain"]
    assert kept["text/html"].startswith("<minflow-live ") and f'data-name="{widget.name}"' in kept["text/html"]
    assert picture_in(kept) != picture_in(first) and widget.comm is not None and explorer in module.LIVE_EXPLORERS
    opened = len(json.loads(widget.picture)["rows"])
    closed, told = ask(widget, "first")
    assert len(closed["rows"]) < opened and told["said"] == "", "it goes on"
    explorer.keep()
    assert picture_in(notebook.updates[1]) == picture_in(first), "as it is now"
    explorer.end()
    assert widget.comm is None and explorer not in module.LIVE_EXPLORERS
    assert "minflow-live" not in notebook.updates[2]["text/html"]


def test_keeping_a_picture_below_a_widget(graph, notebook, monkeypatch):
    monkeypatch.setenv("VSCODE_PID", "1")
    explorer, _ = displayed(graph, *graph.given)
    widget, still = notebook.shown
    ask(widget, "toggle", id=json.loads(widget.picture)["rows"][2][0])
    ask(widget, "keep")
    (kept,) = notebook.updates
    assert "<details>" in kept["text/html"] and "minflow-live" not in kept["text/html"]
    assert kept["text/plain"] == explorer.text
    assert picture_in(kept) != picture_in(still) and widget.comm is not None


@pytest.mark.parametrize("page", ["JupyterLab", "VS Code"])
def test_failing_picture_falls_back_to_text(graph, notebook, monkeypatch, page):
    if page == "VS Code":
        monkeypatch.setenv("VSCODE_PID", "1")
    monkeypatch.setattr(module, "picture_card", lambda *args: 1 / 0)
    explorer, _ = displayed(graph, *graph.given)
    assert "(no picture: ZeroDivisionError" in notebook.shown[-1]["text/plain"] and len(explorer.shown) == 1


def test_two_displays_of_one_explorer_stay_in_sync(graph, notebook):
    explorer = explore(graph, *graph.given)
    explorer._ipython_display_(), explorer._ipython_display_()
    (one, _), (two, _) = explorer.shown
    assert one.name != two.name
    ask(one, "toggle", id=json.loads(one.picture)["rows"][2][0])
    assert one.picture == two.picture


@pytest.mark.parametrize("where", ["VS Code", "VS Code on a server", "Colab"])
def test_widget_is_sent_with_its_output_if_the_page_needs_it(graph, notebook, monkeypatch, where):
    if where == "Colab":
        monkeypatch.setitem(sys.modules, "google.colab", sys)
    elif where == "VS Code":
        monkeypatch.setenv("VSCODE_PID", "1")
    else:
        shell = types.SimpleNamespace(user_ns={"__vsc_ipynb_file__": "a.ipynb"})
        monkeypatch.setattr(IPython, "get_ipython", lambda: shell)
    explorer, _ = displayed(graph, *graph.given)
    widget, still = notebook.shown
    assert widget is explorer.shown[0][0] and "<details>" in still["text/html"]
    assert "minflow-live" not in still["text/html"]
    assert "data:image/svg" in still["text/html"] and still["text/plain"] == explorer.text


def test_legend_explains_only_existing_lines(graph, notebook):
    only, whole = explore(Predict(graph.model), graph.given[0]), explore(graph, *graph.given)
    assert only.session.picture()["key"] == "" and "otted" not in only.svg
    key = "Dotted: values kept for backward; dashed: gradients."
    assert whole.session.picture()["key"] == key and key in whole.svg


def test_without_anywidget_or_live_only_the_static_picture(graph, notebook, monkeypatch):
    monkeypatch.setenv("MINFLOW_LIVE", "0")
    explore(graph, *graph.given)._ipython_display_()
    monkeypatch.setenv("MINFLOW_LIVE", "1")
    monkeypatch.setitem(sys.modules, "anywidget", None)
    module.widget_class.cache_clear()
    explore(graph, *graph.given)._ipython_display_()
    module.widget_class.cache_clear()
    assert [set(x) for x in notebook.shown] == [{"text/html", "image/svg+xml", "text/plain"}] * 2


def test_incompatible_anywidget_falls_back_to_static_picture(graph, notebook, monkeypatch, capsys):
    def unfit():
        raise RuntimeError("anywidget does not fit this notebook")

    monkeypatch.setattr(module, "widget_class", unfit)
    explorer, _ = displayed(graph, *graph.given)
    assert set(notebook.shown[0]) == {"text/html", "image/svg+xml", "text/plain"} and explorer.shown == []
    assert capsys.readouterr().out == "explore: no live picture, RuntimeError: anywidget does not fit this notebook\n"


def test_search_ends_with_the_next_request(graph, notebook):
    _explorer, widget = displayed(graph, *graph.given)
    view, _ = ask(widget, "search", text="linear")
    assert len(view["found"]) == 2 and view["query"] == "linear"
    view, _ = ask(widget, "go", id=view["found"][1][0], hit=1)
    assert len(view["found"]) == 2, "hits can be visited in turn"
    view, _ = ask(widget, "go", id=view["found"][0][0], forget=1)
    assert view["found"] == [] and view["query"] == ""


def test_open_by_name(graph):
    explorer = explore(graph, *graph.given)
    assert "matmul" not in explorer.text and "matmul" in explorer.open("model.2").text
    with pytest.raises(GraphError, match="nothing in Train_[0-9]+ is called 'fc9'"):
        explorer.open("fc9")


def test_later_record_shows_current_values(graph, notebook):
    graph(*graph.given)
    explorer, widget = displayed(graph)
    opened, _ = ask(widget, "toggle", id=json.loads(widget.picture)["rows"][2][0])
    assert opened["steps"] == 0 and ask(widget, "step", to=1)[1]["at"] == -1
    explorer.record(*graph.given)
    again, told = ask(widget, "step", to=1)
    assert again["steps"] > 5 and told["at"] == 1 and len(again["rows"]) == len(opened["rows"])


def test_sizes_for_mobilenet(notebook):
    flow.manual_seed(0)
    graph = Train(mobilenet_v2())
    explorer, widget = displayed(graph, flow.randn(2, 3, 32, 32), flow.tensor([1, 2]))
    (still,) = notebook.shown
    data = sum(len(text.encode()) for text in (widget.picture, widget.detail, *still.values()))
    assert data < 31_000
    # The scripts are sent with each explorer that is shown, and not saved with the notebook: as much as one figure.
    assert len((widget._esm + widget._css).encode()) < 50_000
    assert sum(len(text.encode()) for text in explorer._repr_mimebundle_().values()) < 60_000
    rows = json.loads(widget.picture)["rows"]
    assert len(rows) <= 25
    assert any("features.1 to 17" in row[7][0][3] and row[7][0][5].startswith("17 InvertedResidual") for row in rows)


def test_lone_surrogate_does_not_stop_the_message(notebook):
    model = nn.Sequential()
    model.add_module("\ud800<script>", nn.Linear(2, 2))
    graph = Train(model)
    _explorer, widget = displayed(graph, flow.randn(1, 2), flow.tensor([0]))
    module = next(row[0] for row in json.loads(widget.picture)["rows"] if "script" in row[6])
    _, told = ask(widget, "select", id=module)
    assert any("<script>" in text for _, text in told["rows"]), "names are unchanged in the details of a module"
    widget.picture.encode(), widget.detail.encode()
    notebook.shown[0]["text/html"].encode()


def test_job():
    flow.clear_default_session()

    @flow.global_function(type="train")
    def train_job(x: tp.Numpy.Placeholder((6, 4)), y: tp.Numpy.Placeholder((6,), dtype=flow.int32)) -> tp.Numpy:
        fill = flow.truncated_normal_initializer(0.1)
        h = flow.layers.dense(x, 8, activation=flow.nn.relu, name="fc1", kernel_initializer=fill)
        h = flow.layers.dense(h, 3, name="fc2", kernel_initializer=fill)
        loss = flow.nn.sparse_softmax_cross_entropy_with_logits(y, h)
        flow.optimizer.Adam(flow.optimizer.PiecewiseConstantScheduler([], [0.01])).minimize(loss)
        return loss

    with pytest.raises(JobError, match="has not been called yet"):
        explore(train_job)
    x, y = np.random.default_rng(0).normal(size=(6, 4)).astype("f4"), np.arange(6, dtype="i4") % 3
    train_job(x, y)
    before = {name: v.numpy() for name, v in train_job.session.variables.items()}
    explorer = explore(train_job, x, y)
    assert all((v.numpy() == before[name]).all() for name, v in train_job.session.variables.items())
    assert train_job.steps == 1
    assert "▸ fc1" in explorer.text and "weight, bias (40): adam + m, v" in explorer.text
    explorer.open("fc1")
    session = explorer.session
    weight = next(r.item.id for r in session.layout.rows if r.item.name == "weight")
    session.act({"do": "select", "id": weight, "column": 2})
    assert any(what == "gradient norm" for what, _ in session.detail()["rows"])
    steps = session.model.instructions
    columns = {node.name: node.column for node in session.model.record(session.model.stages).nodes}
    shown = [columns[step.name] for step in steps]
    assert (
        shown == sorted(shown) and {0, 1, 2} == set(shown) and any(step.run_index < k for k, step in enumerate(steps))
    )
    assert len(steps) > 15 and "▸ fc1" in explore(train_job).text
    flow.clear_default_session()


def test_old_explorers_release_their_graphs(notebook, monkeypatch):
    monkeypatch.setattr(module, "LIVE_EXPLORERS", module.LIVE_EXPLORERS.__class__())
    closed = []
    close = module.close
    monkeypatch.setattr(module, "close", lambda widget: (closed.append(widget), close(widget)))
    held, graphs = [], []  # `held`: like Out[n] of a notebook
    for i in range(30):
        graph = Train(nn.Sequential(nn.Linear(4, 4)))
        explorer, _ = displayed(graph, flow.ones(2, 4), flow.tensor([0, 1]))
        held.append(explorer)
        graphs.append(weakref.ref(graph))
        if not i:
            first = graph, explorer.text
    del graph, explorer
    gc.collect()
    alive = [i for i, graph in enumerate(graphs) if graph() is not None]
    assert alive == [0, *range(22, 30)] and len(closed) == 22 == len(notebook.updates)
    assert all(widget.comm is None for widget in closed)
    assert set(notebook.updates[0]) == {"text/html", "image/svg+xml", "text/plain"}
    # An explorer whose graph is alive can be used again; the others keep a picture that says so.
    assert repr(held[0]) == first[1] and "matmul" in held[0].open("model.0").text
    assert "Linear" in repr(held[1]) and "Linear" in held[1]._repr_mimebundle_()["text/plain"]
    with pytest.raises(GraphError, match="8 newer ones were shown, and the graph is gone"):
        held[1].open("model.0")
    held[1].asked({"new": '{"do": "first"}'})
    before = len(notebook.shown)
    held[1]._ipython_display_(), held[0]._ipython_display_()
    assert "text/html" in notebook.shown[before] and "minflow-live" not in notebook.shown[before]["text/html"]
    assert "minflow-live" in notebook.shown[-1]["text/html"] and len(module.LIVE_EXPLORERS) == 8


DEEP = "[" * 100_000, '{"do":' * 100_000, '{"do": "first", "n":' + "[" * 900 + "]" * 900 + "}"
VALUES = [], {}, None, True, "1", -1, 10**400, 1e308, float("nan"), "\ud800", "x" * 100_000
DO = "toggle", "select", "go", "stage", "step", "search"
ODD = [
    *[json.dumps({"do": do, key: value}) for do in DO for key in ("id", "to", "text", "n") for value in VALUES],
    *[json.dumps({"do": do}) for do in ("", "item", "act", "__class__", "picture", "keep\0", 5, ["first"])],
    json.dumps({"do": "select", "id": 1, "column": "x"}),
    json.dumps({"do": "select", "id": 1, "column": -(10**30), "stage": [1]}),
    json.dumps({"do": "select", "id": 2.7, "column": 1e400}), "", "1", "[]", '"\\ud800"',
]  # fmt: skip


@pytest.mark.parametrize("new", [*DEEP, "null", '"do"', "{", '{"do": {"a": []}}', "1e999"], ids=lambda text: text[:9])
def test_no_message_of_a_page_raises(graph, notebook, new):
    explorer, _ = displayed(graph, *graph.given)
    before = explorer.text
    explorer.asked({"new": new})
    assert explorer.text == before


def test_invalid_requests_are_answered_or_ignored(graph, notebook):
    explorer, widget = displayed(graph, *graph.given)
    for new in ODD:
        explorer.asked({"new": new})
        assert json.loads(widget.picture)["rows"] and "rows" in json.loads(widget.detail)
        assert len(widget.picture) < 60_000 and len(widget.detail) < 60_000
    widget.picture.encode()


def test_request_failing_inside_does_not_raise(graph, notebook, monkeypatch):
    explorer, _ = displayed(graph, *graph.given)
    monkeypatch.setattr(explorer.session, "act", lambda ask: 1 / 0)
    explorer.asked({"new": '{"do": "first"}'})


PAGES = {  # page and ink
    "Lab light": ("#ffffff", "#000000"), "Lab dark": ("#111111", "#ffffff"), "VS Code light": ("#ffffff", "#3b3b3b"),
    "VS Code dark": ("#1e1e1e", "#cccccc"), "no word, light": ("#ffffff", "#24292f"),
    "no word, dark": ("#1e1e1e", "#e6e6e6"),
}  # fmt: skip


@pytest.mark.parametrize("page", PAGES)
def test_light_and_dark_colors_are_readable(page):
    """The script's colors are mixed from those of the page."""
    css = Path(module.__file__).with_name("explorer.css").read_text(encoding="utf-8")
    assert all(word in css for word in ("--jp-layout-color0", "--vscode-editor-background", "prefers-color-scheme"))
    theme = dict(zip(("page", "ink"), PAGES[page]))

    def color(words):
        mixed = re.fullmatch(r"color-mix\(in srgb,(\S+) (\d+)%,(\S+)\)", words)
        if not mixed:
            return theme[words[6:-1]] if words.startswith("var(") else words
        one, two = color(mixed[1]), color(mixed[3])
        share = int(mixed[2]) / 100
        parts = [share * int(one[i : i + 2], 16) + (1 - share) * int(two[i : i + 2], 16) for i in (1, 3, 5)]
        return "#" + "".join(f"{round(part):02x}" for part in parts)

    for name, words in re.findall(r"--(\w+):(#\w{6}|color-mix\((?:[^()]|\([^()]*\))*\))", css):
        theme.setdefault(name, color(words))
    assert len(theme) == 16
    backs = [theme[name] for name in ("page", "soft", "f", "b", "u")]
    assert min(contrast(theme[text], back) for text in ("ink", "faint", "mark") for back in backs) >= 4.5
    lines = ("fs", "bs", "us", "ks", "line")
    assert min(contrast(theme[line], theme[back]) for line in lines for back in ("page", "soft")) >= 3
    for script in Path(module.__file__).parent.glob("*.js"):  # other colors are the same in both
        assert "'#" not in script.read_text(encoding="utf-8")


def test_scripts_are_not_squeezed():
    """Each is read at one sitting, as tests/widgets/test_page_theme.py wants, in lines as long as Python's."""
    scripts = [Path(module.__file__).parent.parent / name for name in module.SCRIPTS]
    assert {script.name for script in scripts} == {file.name for file in scripts[0].parent.glob("*.js")}
    for script in scripts:
        assert max(map(len, script.read_text(encoding="utf-8").splitlines())) <= 120, script.name
