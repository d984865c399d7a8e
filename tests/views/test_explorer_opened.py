"""The explorer opens composite operations into their parts, in place, with shapes and with values inside."""

import numpy as np
import pytest

import minflow as flow
from minflow import nn
from minflow.compiler.passes import decompose
from minflow.core.base.errors import GraphError
from minflow.introspection.graph.explore.explorer_model import graph_explorer_model
from minflow.introspection.graph.explore.session import ExplorerSession
from minflow.nn import functional as F
from minflow.views.explorer.grid import Grid, view_of
from minflow.views.explorer.rows import StepTree


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.fc = nn.LayerNorm(8), nn.Linear(8, 8)

    def forward(self, x):
        return F.gelu(F.gelu(self.fc(self.norm(x))))


class Train(nn.Graph):
    """A step of the block. whole: True if composite operations run as one call each, as with compiled kernels."""

    def __init__(self, whole=True):
        super().__init__()
        self.model = Block()
        self.add_optimizer(flow.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9))
        if whole:
            self.passes.remove(decompose)

    def build(self, x, y):
        loss = F.cross_entropy(self.model(x), y)
        loss.backward()
        return loss


X, Y = flow.arange(32.0).reshape(4, 8) % 7, flow.tensor([0, 3, 5, 7])


def session_of(recorded=True, whole=True):
    graph = Train(whole)
    graph(X, Y)
    return graph, ExplorerSession(graph_explorer_model(graph, (X, Y) if recorded else ()))


def row(session, name, nth=0):
    return [r for r in session.layout.rows if r.item.name == name][nth]


def toggle(session, name, nth=0):
    return session.act({"do": "toggle", "id": row(session, name, nth).item.id, "tree": session.number})


def names(session):
    return [r.item.name for r in session.layout.rows]


PARTS = ["mean", "sub", "mul", "mean", "add", "rsqrt", "mul", "mul", "add"]


def test_it_opens_in_place_and_closes_again():
    _, session = session_of()
    session.open("model.norm")
    before, closed = session.text(), names(session)
    at = closed.index("layer_norm")
    assert toggle(session, "layer_norm") and names(session) == [*closed[: at + 1], *PARTS, *closed[at + 1 :]]
    assert "▾ layer_norm" in session.text() and "mean  axis=(1,), keepdims  4×8 → 4×1" in session.text()
    assert toggle(session, "layer_norm") and session.text() == before


def test_the_picture_says_what_opens():
    _, session = session_of()
    session.open("model.norm")
    opens = {r[6].partition(" ")[0].rstrip(","): r[5] for r in session.picture()["rows"]}
    assert (opens["layer_norm"], opens["norm"], opens["fc"], opens["weight"]) == (0, 1, 0, -1)
    toggle(session, "layer_norm")
    opens = {r[6].partition(" ")[0].rstrip(","): r[5] for r in session.picture()["rows"]}
    assert (opens["layer_norm"], opens["rsqrt"]) == (1, -1)
    assert not toggle(session, "rsqrt")


def test_forward_and_gradient_open_together():
    graph, session = session_of()
    session.open("model.norm")
    toggle(session, "layer_norm")
    shown = [session.tree.record.nodes[i].label for r in session.layout.rows for i in r.parts[1].nodes]
    assert "layer_norm_grad" not in shown and "gelu_grad" in shown
    head = session.layout.rows.index(row(session, "layer_norm"))
    beside = [
        [session.tree.record.nodes[i].label for i in r.parts[1].nodes] for r in session.layout.rows[head + 1 :][:9]
    ]
    assert beside[0][0] == "mean" and beside[-1] == ["sum_to"]  # the forward again, and gradients, beside their parts
    assert all(beside[:5])
    assert {str(n.op) for n in graph._last.parts[0].graph.nodes} >= {"layer_norm", "layer_norm_grad"}


def test_equal_operations_of_a_module_open_one_by_one():
    _, session = session_of()
    session.open("model")
    toggle(session, "gelu", 1)
    assert names(session).count("gelu") == 2
    assert [r.item.kind for r in session.layout.rows if r.item.name.startswith("gelu")] == ["op", "module"]
    toggle(session, "gelu", 0)
    assert [r.is_open for r in session.layout.rows if r.item.name.startswith("gelu")] == [True, True]
    assert [r.item.name for r in session.layout.rows].count("erf") == 2


def test_every_open_set_is_drawn():
    """Every operation is in one row, in its column; links and marks of all passes."""
    _, session = session_of(whole=False)
    model = session.model
    for stage in range(model.stages + 1):
        composites = [node.name for node in model.record(stage).nodes if node.opens and not node.column]
        for opened in [composites, *[[name] for name in composites]]:
            record = model.opened_record(stage, opened)
            tree = StepTree(record)
            grid = Grid(tree, {item.key for item in tree.items if item.kind == "module"})
            placed = sorted(i for r in grid.rows for part in r.parts for i in part.nodes)
            ops = [i for i, node in enumerate(record.nodes) if node.kind == "op"]
            assert placed == [i for i in ops if record.nodes[i].mark != "gone" or i in placed]
            assert len(view_of(grid)["rows"]) == len(grid.rows)
            assert record.loss >= 0 and not record.nodes[record.loss].column
            known = {node.id for node in record.nodes}
            assert len(known) == len(record.nodes)
            outside = [x for i in ops for x in record.nodes[i].inputs if x.ref and x.ref not in known]
            assert not outside or any(node.mark == "gone" for node in record.nodes)
    assert model.opened_record(0, ["nothing"]) is model.record(0)


def test_open_operations_stay_open_from_pass_to_pass():
    """Where the pass `decompose` has replaced the operation, its parts are open."""
    _, session = session_of(whole=False)
    session.act({"do": "stage", "to": 0})
    session.open("layer_norm")
    for stage in range(session.model.stages + 1):
        session.act({"do": "stage", "to": stage})
        assert row(session, "layer_norm", -1).is_open, session.text()
        assert "rsqrt" in names(session)


def test_values_inside_are_computed_on_demand():
    graph, session = session_of()
    session.open("layer_norm")
    assert not [name for name, _ in session.model.summaries if "/mean" in name]
    state = [p.numpy().copy() for p in graph.model.parameters()]
    session.act({"do": "select", "id": row(session, "mean").item.id})
    detail = session.detail()
    assert detail["title"] == "model.norm-layer_norm-0/mean-0"
    summary = session.model.summaries["model.norm-layer_norm-0/mean-0", 0]
    np.testing.assert_allclose(summary.mean, X.numpy().mean(), rtol=1e-6)
    assert [h["label"] for h in detail["arrays"]][:1] == ["values"]
    variance = session.model.summaries["model.norm-layer_norm-0/mean-1", 0]
    np.testing.assert_allclose(variance.high, X.numpy().var(axis=1).max(), rtol=1e-5)
    assert all(np.array_equal(a, b.numpy()) for a, b in zip(state, graph.model.parameters()))
    rows = dict(map(tuple, detail["rows"]))
    assert rows["part of"] == "model.norm-layer_norm-0" and rows["bytes"] == "0: within the whole"
    assert rows["time"].endswith("for model.norm-layer_norm-0 as a whole")


def test_values_inside_a_gradient():
    _, session = session_of()
    session.open("layer_norm")
    last = [r for r in session.layout.rows if r.level == 3 and r.parts[1].nodes][-1]
    session.act({"do": "select", "id": last.item.id, "column": 1})
    detail = session.detail()
    assert detail["arrays"], "of the gradient, without a look at forward before"
    inside = [name for name, _ in session.model.summaries if name.startswith("model.norm-layer_norm_grad-0/")]
    assert "model.norm-layer_norm_grad-0/sum_to-0" in inside
    weight = session.model.gradient_summary("model.norm.weight")
    found = [session.model.summaries[name, 0] for name in inside]
    assert any(s.spec == weight.spec and abs(s.norm - weight.norm) < 1e-6 for s in found)


def test_a_changed_state_is_said():
    graph, session = session_of()
    session.open("layer_norm")
    graph(X, Y)
    session.act({"do": "select", "id": row(session, "mean").item.id})
    values = [text for what, text in session.detail()["rows"] if what == "values"]
    assert values == ["of a step run now: the state or the inputs have changed since the recorded one"]


def test_opening_runs_nothing_and_grads_of_the_last_call_stay():
    graph, session = session_of()
    before = graph.grads["model.norm.weight"].numpy().copy()
    runs = graph._last.parts[0].plan.runs
    session.open("layer_norm")
    session.picture(), session.detail()
    assert graph._last.parts[0].plan.runs == runs
    session.act({"do": "select", "id": row(session, "sub").item.id})
    session.detail()
    np.testing.assert_array_equal(graph.grads["model.norm.weight"].numpy(), before)


def test_details_of_the_whole():
    _, session = session_of()
    session.open("layer_norm")
    rows = dict(map(tuple, session.detail()["rows"]))
    assert rows["operation"] == "layer_norm(axes=(-1,), eps=1e-05) -> float32[4, 8]"
    assert rows["operations"].startswith("9 forward, ") and rows["bytes written"] == "128 B"
    assert session.detail()["arrays"][0]["label"] == "values of the result"
    session.selected = "", 0
    whole = session.detail()
    session.act({"do": "first"})
    assert session.detail()["rows"] == whole["rows"]  # of the step as it runs, whatever is open


def test_an_instruction_is_found_at_the_head_of_an_open_operation():
    _, session = session_of()
    session.open("layer_norm")
    at = next(k for k, step in enumerate(session.model.instructions) if step.name == "model.norm-layer_norm-0")
    session.act({"do": "step", "to": at})
    assert session.detail()["row"] == row(session, "layer_norm").item.id
    inputs = [text for what, text in session.detail()["rows"] if what == "input"]
    assert inputs[0].startswith("input x [4, 8], 0 to 6, mean ")


def test_a_request_for_another_tree_changes_nothing():
    _, session = session_of()
    session.open("model.norm")
    old, number = row(session, "layer_norm").item.id, session.number
    toggle(session, "layer_norm")
    before = session.text()
    assert not session.act({"do": "toggle", "id": old, "tree": number}) and session.text() == before


def test_without_values():
    """An operation of a graph that was explored without inputs opens with shapes alone."""
    _, session = session_of(recorded=False)
    session.open("layer_norm")
    session.act({"do": "select", "id": row(session, "rsqrt").item.id})
    assert ["output", "float32[4, 1]"] in session.detail()["rows"] and not session.detail()["arrays"]


def test_mistakes_name_the_operation():
    _, session = session_of()
    with pytest.raises(GraphError, match="'rsqrt'"):
        session.open("rsqrt")


def test_a_fold_stays_when_an_operation_in_it_opens():
    class Repeat(nn.Module):
        def forward(self, x):
            for _ in range(30):
                x = F.gelu(x)
            return x

    class Run(nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = Repeat()
            self.passes.remove(decompose)

        def build(self, x):
            return self.model(x)

    graph = Run()
    graph(X)
    session = ExplorerSession(graph_explorer_model(graph))
    session.open("model")
    while fold := next((r for r in session.layout.rows if r.item.kind == "fold" and not r.is_open), None):
        session.act({"do": "toggle", "id": fold.item.id})
    before = names(session)
    toggle(session, "gelu", 3)
    at = [i for i, name in enumerate(before) if name == "gelu"][3]
    after = names(session)
    assert after[at + 1 : at + 6] == ["mul", "erf", "add", "mul", "mul"]
    assert len(after) == len(before) + 5


def test_values_inside_of_views_of_inputs_and_with_accumulation():
    """The inputs are those of the recorded step, whatever the plan ran on since, and of the first micro-step."""

    class Views(nn.Graph):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 4)
            self.add_optimizer(flow.optim.SGD(self.fc.parameters(), lr=0.0))
            self.config.set_gradient_accumulation_steps(2)
            self.passes.remove(decompose)

        def build(self, x):
            h = F.layer_norm(x.reshape(-1, 4).t()[:2], (2 * x.shape[0],))
            loss = self.fc(h[:, :4]).sum()
            loss.backward()
            return loss

    graph = Views()
    graph(X)
    session = ExplorerSession(graph_explorer_model(graph, (X,)))
    graph(X * 100 + flow.arange(8))
    session.open("layer_norm")
    session.act({"do": "select", "id": row(session, "mean").item.id})
    detail = session.detail()
    expected = X.numpy()[:2].reshape(-1, 4).T[:2].mean(axis=1)
    summary = session.model.summaries["layer_norm-0/mean-0", 0]
    np.testing.assert_allclose([summary.low, summary.high], [expected.min(), expected.max()], rtol=1e-6)
    assert not [text for what, text in detail["rows"] if what == "values"]


def test_a_recomputed_module_opens():
    graph = Train()
    graph.model.norm.to(nn.graph.GraphModule).activation_checkpointing = True
    graph(X, Y)
    session = ExplorerSession(graph_explorer_model(graph, (X, Y)))
    session.open("layer_norm")
    assert names(session).count("rsqrt") == 1
    session.act({"do": "select", "id": row(session, "rsqrt").item.id})
    assert session.detail()["arrays"]
