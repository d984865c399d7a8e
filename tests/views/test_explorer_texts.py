"""The explorer's texts match what runs: counts, the order of backward, the loss, names of ops outside modules."""

import re

import numpy as np
import pytest

import minflow as flow
import minflow.nn as nn
import minflow.typing as tp
from minflow.compiler.plan import Plan
from minflow.introspection.graph.explore import explorer_model
from minflow.introspection.graph.explore.explorer_model import graph_explorer_model
from minflow.introspection.graph.explore.session import ExplorerSession
from minflow.introspection.job.explore import job_explorer_model
from minflow.views.draw.fonts import text_width, truncated, truncated_words
from minflow.views.explorer.grid import view_of
from minflow.vision.models import lenet
from tests.graph_models import Train

WORDS = {"forward": "forward", "backward": "backward", "optimizer": "update"}


@pytest.fixture(scope="module")
def net():
    flow.manual_seed(0)
    graph, x, y = Train(lenet()), flow.randn(2, 1, 28, 28), flow.tensor([1, 2])
    graph(x, y)
    return graph, ExplorerSession(graph_explorer_model(graph, (x, y)))


@pytest.fixture
def job():
    flow.clear_default_session()

    @flow.global_function(type="train")
    def train_job(x: tp.Numpy.Placeholder((6, 4)), y: tp.Numpy.Placeholder((6,), dtype=flow.int32)) -> tp.Numpy:
        h = flow.layers.dense(x, 3, name="fc1", kernel_initializer=flow.truncated_normal_initializer(0.1))
        loss = flow.nn.sparse_softmax_cross_entropy_with_logits(y, h)
        flow.optimizer.SGD(flow.optimizer.PiecewiseConstantScheduler([], [0.01])).minimize(loss)
        return loss

    given = np.ones((6, 4), "f4"), np.arange(6, dtype="i4") % 3
    yield ExplorerSession(job_explorer_model(train_job, given))
    flow.clear_default_session()


def rows_of(session):
    return {row.item.name: row for row in session.layout.rows}


def boxes_of(session, name):
    return {
        box[0]: box
        for data, row in zip(session.picture()["rows"], session.layout.rows)
        for box in data[7]
        if row.item.name == name
    }


def test_panel_title_lanes_and_steps_count_the_same_ops(net):
    graph, session = net
    told = dict(session.detail()["rows"])
    lanes = graph.lanes().record
    for lane in lanes.lanes:
        assert told[WORDS[lane.phase]].startswith(f"{lane.ops} operations, ")
    picture = session.picture()
    whole = sum(lane.ops for lane in lanes.lanes)
    assert f"; {whole} operations" in picture["pass"] and whole == len(graph.nodes)
    assert picture["steps"] + lanes.views == whole and picture["views"] == f"{lanes.views} views run without one"
    assert told["times"] == "of this step, run again; another takes a little more or less"


def sum_of(times):
    return sum(times.values())


def test_times_are_of_a_warm_step(monkeypatch):
    """The times include neither the first run of a plan nor the inspection of values between calls."""
    graph, x, y = Train(lenet()), flow.randn(2, 1, 28, 28), flow.tensor([1, 2])

    def run_timed(plan):
        plan.run_watched(lambda node, arrays: None)
        plan.seconds = [9.0] * len(plan.nodes)

    with monkeypatch.context() as patch:
        patch.setattr(Plan, "run_timed", run_timed)
        first = graph_explorer_model(graph, (x, y))
    assert first.timed_step == "this step, run again" and set(first.call_seconds().values()) == {9.0}
    assert 0 < sum(i.seconds for i in first.instructions) < 9
    assert [part.plan.seconds for part in first.parts] == [None], "graph.lanes() counts calls"
    for _ in range(3):
        graph(x, y)
    lanes = sum(lane.seconds for lane in graph.lanes().record.lanes)
    again = graph_explorer_model(graph, (x, y))
    assert again.timed_step == "the last timed call" and sum_of(again.call_seconds()) == pytest.approx(lanes)
    monkeypatch.setattr(explorer_model, "MAX_REPEATED_STEP", 0.0)
    other = Train(lenet())
    cold = ExplorerSession(graph_explorer_model(other, (x, y)))
    assert ["times", "of the first, cold step; later ones take less"] in cold.detail()["rows"]
    assert graph_explorer_model(other, (x, y)).timed_step == "this recorded step"


def test_columns_fit_into_a_jupyterlab_cell():
    """A cell of JupyterLab in a window of 1,280 pixels has 808 for the picture, also with a module of convolutions
    open.
    """
    graph = Train(lenet())
    graph(flow.randn(50, 1, 28, 28), flow.randint(0, 10, (50,)))
    session = ExplorerSession(graph_explorer_model(graph))
    views = [view_of(session.layout)]
    assert not any("…" in text for row in views[0]["rows"] for box in row[7] for text in box[3:]), "texts are whole"
    for row in session.layout.rows:
        if row.item.kind == "module":
            session.opened = session.tree.reveal(row.item) | {row.item.key}
            session.update_layout()
            views.append(view_of(session.layout))
    assert len(views) > 10 and max(view["w"] for view in views) <= 808
    assert {len(view["heads"]) for view in views} == {3}


def test_texts_are_truncated_to_a_width():
    assert truncated("x" * 10_000, 50).endswith("…") and text_width(truncated("x" * 10_000, 50)) <= 50
    assert truncated("conv1", 50) == "conv1"


def test_reordered_gradients_are_marked(net):
    """ReLU's gradient is computed after the pooling, on smaller arrays (compiler/passes/relu_pool_reorder.py)."""
    _, session = net
    relu = next(row for row in session.layout.rows if row.item.name == "relu")
    assert relu.ahead == "pool1" and "backward 1 op before pool1" in session.text()
    session.act({"do": "select", "id": relu.item.id, "column": 1})
    order = dict(session.detail()["rows"])["order"]
    assert "before the backward of pool1" in order and "the pass reduce_memory has swapped them" in order
    others = [row.item.name for row in session.layout.rows if row.ahead]
    assert others == ["relu", "relu"]  # the third has no pooling after it, and is placed as in forward
    session.act({"do": "stage", "to": 0})
    assert not any(row.ahead for row in session.layout.rows)
    session.act({"do": "stage", "to": session.model.stages})


def test_lines_do_not_overlap(net):
    _, session = net
    verticals = []
    for path, (_, d) in enumerate(view_of(session.layout)["paths"]):
        for x, y0, y1 in re.findall(r"M([\d.]+) ([\d.]+)V([\d.]+)", d):
            verticals.append((float(x), *sorted((float(y0), float(y1))), path))
    assert len(verticals) > 20
    for x, low, high, path in verticals:
        for x2, low2, high2, other in verticals:
            assert path >= other or x != x2 or high < low2 or high2 < low, "two lines at the same position"
    assert all("L" not in d for kind, d in view_of(session.layout)["paths"] if kind in ("b", "k")), (
        "an arrow head is whole"
    )
    ups = [d for kind, d in view_of(session.layout)["paths"] if kind == "b" and "H" in d]
    assert len(ups) == 5, "four of ten gradients skip a row, one comes from the loss"


def test_loss_is_marked_and_leads_to_backward(net, job):
    for session, name in ((net[1], "loss_fn"), (job, "softmax_cross_entropy")):
        row = rows_of(session)[name]
        assert row.loss and [r for r in session.layout.rows if r.loss] == [row]
        assert "the loss" in boxes_of(session, name)[0][4]
        right = sum(boxes_of(session, name)[0][1:3])
        assert any(kind == "b" and d.startswith(f"M{right:g} ") for kind, d in session.picture()["paths"])


def test_loss_is_the_value_that_backward_was_called_on():
    class Two(nn.Module):
        def forward(self, y, x):
            return (y * y).mean() + 0.1 * (y - 1).abs().sum()

    graph = Train(nn.Linear(3, 3), Two())
    graph(flow.ones(2, 3), flow.ones(2, 3))
    session = ExplorerSession(graph_explorer_model(graph))
    record = session.model.record(0)
    assert record.nodes[record.loss].label == "add" and record.nodes[record.loss].outs == ("float32[]",)

    class Kept(Train):
        def build(self, x, y):
            loss = (self.model(x) - y).square().mean()
            loss.backward()
            return loss * 100

    graph = Kept(nn.Linear(3, 3), Two())
    graph(flow.ones(2, 3), flow.ones(2, 3))
    session = ExplorerSession(graph_explorer_model(graph))
    for stage in (0, session.model.stages):
        record = session.model.record(stage)
        assert record.nodes[record.loss].label == "mean"


def test_job_hides_trivial_reshapes_and_names_ops_outside_modules(job):
    names = list(rows_of(job))
    assert names == ["x", "fc1", "y", "checked_labels", "softmax_cross_entropy", "output", "for all parameters"]
    assert "cast of the learning rate" in job.text()
    nodes = job.tree.record.nodes
    # they still count in the totals
    assert sum(node.label == "reshape" and not node.column for node in nodes) == 3
    job.act({"do": "select", "id": rows_of(job)["for all parameters"].item.id, "column": 2})
    assert job.detail()["title"] == "for all parameters"
    job.act({"do": "select", "id": rows_of(job)["softmax_cross_entropy"].item.id, "column": 0})
    told = job.detail()["rows"]
    assert [text for what, text in told if what == "also covers"] == [
        f"reshape-{k}, which keeps the shape" for k in (1, 2)
    ]
    assert dict(told)["operation"].startswith("softmax_cross_entropy(ignore_index=")
    counted = [
        int(re.match(r"\d+", text).group())
        for what, text in job.model and ExplorerSession(job.model).detail()["rows"]
        if what in WORDS.values()
    ]
    assert sum(counted) == sum(node.kind == "op" for node in nodes)


def test_attributes_are_shown_if_informative(job):
    checked, loss = (boxes_of(job, name)[0][4] for name in ("checked_labels", "softmax_cross_entropy"))
    assert (checked, loss) == ("classes=3", "the loss")
    text = "kernel_size=(3, 3), stride=(2, 2), padding=(1, 1)"
    assert truncated_words(text, 1000) == text and truncated(text, 130).endswith("…")
    assert truncated_words(text, 160) == "kernel_size=(3, 3), …"
    assert truncated_words(text, 40) == "…" and truncated_words("Conv2dOfAVeryLongName", 60).startswith("Conv2d")


def test_attributes_are_shown_as_in_other_views():
    class One(nn.Graph):
        def build(self, x, w):
            return flow.nn.functional.linear(x, w).mean(dim=1)

    graph = One()
    graph(flow.ones(2, 3), flow.ones(4, 3))
    attrs = {
        node.label: node.attrs for node in graph_explorer_model(graph).record(graph_explorer_model(graph).stages).nodes
    }
    assert attrs["matmul"] == "b transposed" and attrs["mean"] == "axis=(1,)"
