"""The tree, the rows and the picture of the graph explorer."""

import numpy as np
import pytest

import minflow as flow
import minflow.nn as nn
from minflow.introspection.graph.explore.array_summary import summary_of
from minflow.introspection.graph.explore.details import numbers_of
from minflow.introspection.graph.explore.explorer_model import graph_explorer_model
from minflow.introspection.graph.explore.session import ExplorerSession
from minflow.views.draw.fonts import text_width
from minflow.views.explorer.grid import PADDING, PICTURE_WIDTH, Grid, truncated_shapes, view_of
from minflow.views.explorer.rows import StepTree
from minflow.views.explorer.svg import svg_of, text_of
from minflow.vision.models import lenet
from tests.graph_models import Train
from tests.measuring import calls
from tests.svg_checks import map_values


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.act, self.fc2 = nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)

    def forward(self, x):
        return self.fc2(self.act(self.fc1(x)))


def small():
    flow.manual_seed(0)
    graph, x, y = Train(Small()), flow.randn(5, 4), flow.tensor([0, 1, 2, 0, 1])
    graph(x, y)
    return graph, x, y


def layout(graph, opened=None, stage=None):
    model = graph_explorer_model(graph)
    tree = StepTree(model.record(model.stages if stage is None else stage))
    return Grid(tree, tree.initially_opened() if opened is None else opened)


def test_step_groups_ops_by_attribute_with_backward_and_update():
    shown = layout(small()[0])
    assert [row.item.name for row in shown.rows] == ["x", "model", "fc1", "act", "fc2", "y", "loss_fn", "output"]
    fc1 = shown.rows[2]
    names = [[shown.record.nodes[i].label for i in part.nodes] for part in fc1.parts]
    assert names[0] == ["matmul", "add"] and len(names[1]) == 2 and names[2] == ["sgd_momentum"] * 2
    assert {shown.record.nodes[s].name for s in fc1.states} == {
        f"model.fc1.{p}{s}" for p in ("weight", "bias") for s in ("", "-momentum_buffer")
    }


def test_names_are_not_folded_away():
    class Heads(nn.Module):
        def __init__(self):
            super().__init__()
            for name in ("query", "key", "value", "gate", "up", "down", "left", "right", "out", "last"):
                setattr(self, name, nn.Linear(4, 4))

        def forward(self, x):
            for layer in self._modules.values():
                x = layer(x).relu()
            return x

    graph = Train(Heads())
    graph(flow.randn(2, 4), flow.tensor([0, 1]))
    shown = layout(graph)
    assert {"query", "key", "value", "last"} <= {r.item.name for r in shown.rows} and len(shown.rows) <= 25


def test_loop_over_one_module_is_summarized():
    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = nn.Linear(4, 4)

        def forward(self, x):
            h = x
            for _ in range(30):
                h = (self.cell(h) + x).tanh()
            return h

    graph = Train(Recurrent())
    graph(flow.randn(2, 4), flow.tensor([0, 1]))
    shown = layout(graph)
    assert "cell to tanh  30 times (cell, add, tanh), " in text_of(shown, "") and len(shown.rows) < 10


def act(session, what, **more):
    changed = session.act({"do": what, **more})
    return changed, session.picture(), session.detail()


def row(session, name, nth=0):
    return [r for r in session.layout.rows if r.item.name == name][nth]


def everything_opened(tree):
    """Yield the layouts while items are opened in turn, each alone with its ancestors."""
    at = 0
    while at < len(tree.items):
        item = tree.items[at]
        at += 1
        if item.kind in ("module", "fold"):
            yield Grid(tree, tree.reveal(item) | {item.key})


def check_placed(shown):
    """Check that each op is in exactly one row, with its cells in their own columns, and that nothing exceeds the
    picture.
    """
    placed = [i for r in shown.rows for part in r.parts for i in part.nodes]
    assert sorted(placed) == [
        i for i, n in enumerate(shown.record.nodes) if n.kind == "op" and n.mark != "gone"
    ] or any(n.mark == "gone" for n in shown.record.nodes)
    for r in shown.rows:
        assert all(shown.record.nodes[i].column == k for k, part in enumerate(r.parts) for i in part.nodes)
    view = view_of(shown)
    for _, _, y, h, _, _, words, boxes in view["rows"]:
        assert y >= 0 and y + h <= view["h"] and words
        assert all(box[1] >= 0 and box[1] + box[2] <= view["w"] for box in boxes)
    return view


def test_all_ops_are_placed_for_any_open_module_and_pass():
    model = graph_explorer_model(small()[0])
    for stage in range(model.stages + 1):
        tree = StepTree(model.record(stage))
        assert len(Grid(tree, tree.initially_opened()).rows) <= 25
        for shown in everything_opened(tree):
            check_placed(shown)


def test_unchanged_stages_are_recorded_once():
    model = graph_explorer_model(small()[0])
    records = [model.record(stage) for stage in range(model.stages + 1)]
    assert records[-1].nodes != records[0].nodes and len({id(record) for record in records}) < len(records)
    nodes = {id(n): n for record in records for n in record.nodes if n.kind == "op"}.values()
    assert len(nodes) == len({(n.id, n.mark) for n in nodes})


def test_shared_module_appears_at_each_call():
    class Shared(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.relu = nn.Linear(4, 4), nn.Linear(4, 3), nn.ReLU()

        def forward(self, x):
            return self.relu(self.b(self.relu(self.a(x))))

    graph = Train(Shared())
    graph(flow.randn(2, 4), flow.tensor([0, 1]))
    names = [r.item.name for r in layout(graph).rows]
    assert names == ["x", "model", "a", "relu", "b", "relu", "y", "loss_fn", "output"]


def test_long_program_without_modules():
    class Long(nn.Graph):
        def build(self, x):
            for i in range(600):
                x = x * 2 if i % 3 else (x + 1).exp()
            return x

    graph = Long()
    graph(flow.zeros(2))
    tree = layout(graph).tree
    assert len(layout(graph).rows) <= 25
    for shown in everything_opened(tree):
        assert len(shown.rows) <= 25 * 4
        check_placed(shown)
    assert len(tree.search("exp")) > 0 and "backward" not in str(view_of(layout(graph))["heads"])


def test_deep_nesting_needs_no_recursion():
    model = nn.Linear(2, 2)
    for _ in range(100):
        model = nn.Sequential(model)
    graph = Train(model)
    graph(flow.randn(2, 2), flow.tensor([0, 1]))
    shown = layout(graph)
    assert len(shown.rows) <= 25
    inner = shown.tree.search("matmul")[0]
    check_placed(Grid(shown.tree, shown.tree.reveal(inner)))


def test_accumulation_checkpoints_and_clipping_are_placed():
    flow.manual_seed(0)
    model = Small()
    model.fc1.checkpointing = True

    class Accumulating(nn.Graph):
        def __init__(self):
            super().__init__()
            self.model, self.loss_fn = model, nn.CrossEntropyLoss()
            groups = [{"params": list(model.parameters()), "clip_grad_max_norm": 1.0, "clip_grad_norm_type": 2.0}]
            self.add_optimizer(flow.optim.SGD(groups, lr=0.1))
            self.config.set_gradient_accumulation_steps(2)

        def build(self, x, y):
            loss = self.loss_fn(self.model(x), y)
            loss.backward()
            return loss

    graph, x, y = Accumulating(), flow.randn(6, 4), flow.tensor([0, 1, 2, 0, 1, 2])
    session = ExplorerSession(graph_explorer_model(graph, (x, y)))
    names = [r.item.name for r in session.layout.rows]
    assert "for all parameters" in names  # the global norm of the gradients
    check_placed(session.layout)
    assert "parts of the batch" in session.model.note


# ---- a recorded step -------------------------------------------------------------------------------------------------


def test_recorded_step_has_the_values_of_the_call_and_no_side_effects():
    flow.manual_seed(3)
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 3))
    graph, x, y = Train(model), flow.randn(5, 4), flow.tensor([0, 1, 2, 0, 1])
    graph(x, y)
    before = {name: t.numpy().copy() for t, name in graph.named_tensors()}
    grads = {name: g.numpy().copy() for name, g in graph.grads.items()}
    random = flow.default_generator.get_state()
    for given in ((x * 3, y), (x[:2], y[:2]), (x, y)):  # the last plan's and its own
        session = ExplorerSession(graph_explorer_model(graph, given))
        assert len(grads) == 6 and all((g.numpy() == grads[name]).all() for name, g in graph.grads.items()), (
            "from the last call"
        )
    assert all((t.numpy() == before[name]).all() for t, name in graph.named_tensors())
    assert (flow.default_generator.get_state() == random).all()
    told = act(session, "select", id=row(session, "output").item.id)[2]
    loss = float(graph(x, y))  # the same step without recording
    assert float(told["arrays"][0]["text"]) == pytest.approx(loss, rel=1e-3)
    gradient = session.model.gradient_summary("model.0.weight")
    assert gradient.norm == pytest.approx(float(graph.grads["model.0.weight"].square().sum().sqrt()), rel=1e-5)


def test_stepping_visits_forward_backward_and_update_both_ways():
    graph, x, y = small()
    session = ExplorerSession(graph_explorer_model(graph, (x, y)))
    steps = session.model.instructions
    phases = [step.phase for step in steps]
    assert {"forward", "backward", "optimizer"} == set(phases) and len(steps) == len(graph._last.parts[0].plan.nodes)
    told = [act(session, "step", to=k)[2] for k in range(len(steps))]
    names = [f"update of {s.name.removesuffix('_optimizer')}" if s.phase == "optimizer" else s.name for s in steps]
    assert [t["title"] for t in told] == names and all(t["row"] >= 0 and t["arrays"] for t in told)
    order = ["forward", "backward", "update"]
    shown = [dict(t["rows"])["phase"] for t in told]
    assert shown == sorted(shown, key=order.index), "in the order in which a step is explained"
    plan = [graph._last.parts[0].names[node] for node in graph._last.parts[0].plan.nodes]
    assert (
        sorted(steps, key=lambda s: s.run_index) != steps
        and [s.name for s in sorted(steps, key=lambda s: s.run_index)] == plan
    )
    early = next(k for k, s in enumerate(steps) if s.run_index < k)
    behind = plan[steps[early].run_index - 1]
    text = f"earlier, as call {steps[early].run_index + 1} of a step, right after {behind}"
    assert ["runs", text] in told[early]["rows"]
    assert "between operations of backward" in dict(ExplorerSession(session.model).detail()["rows"])["steps"]
    back = act(session, "step", to=3)[2]
    assert back == told[3] and act(session, "step", to=10**9)[2]["at"] == len(steps) - 1
    update = next(t for t in told if t["title"] == "update of model.fc1.weight")
    reads = [text for what, text in update["rows"] if what == "input"]
    assert update["column"] == 2 and ["phase", "update"] in update["rows"] and reads[-1] == "learning rate, 0.1"
    assert reads[0].startswith("parameter model.fc1.weight [8, 4], -0.") and reads[1].startswith("gradient model.fc1-")
    outputs = [text for what, text in update["rows"] if what == "output"]
    assert outputs[0].startswith("new parameter model.fc1.weight [8, 4], ") and "optimizer state" in outputs[1]


def test_numbers_of_a_table_have_the_same_precision():
    found = summary_of(np.array([[-0.0, 0.5, -12.25], [-1e-9, np.nan, 3]], "f4"))
    assert found.corner == (("0", "0.50", "-12.25"), ("0.00", "nan", "3.00")) and found.power == 0
    assert "-0" not in found.corner[1]
    small = summary_of(np.array([-1.304e-9, 2e-10, 0.0]))
    assert small.corner == (("-1.304", "0.200", "0"),) and small.power == -9 and "to 2e-10" in small.text
    assert summary_of(np.array([5e-324, 0.0])).power == -324 and summary_of(np.array(-0.0)).text == "0"
    wide = summary_of(np.ones((3, 50, 32), "i4"))
    assert len(wide.corner) == 6 and len(wide.corner[0]) == 10 and wide.corner[0][0] == "1"
    drawn = numbers_of("values", wide)
    assert (drawn["power"], drawn["shape"]) == (0, [3, 50, 32])
    assert drawn["maps"]["words"] == "maps [0] to [2] of 3, each 50 × 32; all 1"
    assert summary_of(np.array([0.0, 2, 0, 0])).text == "0 to 2, mean 0.5, norm 2, 75 % zeros"
    assert "zeros" not in summary_of(np.ones(1000)).text + summary_of(np.zeros(5)).text


def test_details_of_an_op_a_module_and_a_parameter():
    graph, x, y = small()
    session = ExplorerSession(graph_explorer_model(graph, (x, y)))
    act(session, "toggle", id=row(session, "fc1").item.id)
    told = act(session, "select", id=row(session, "matmul").item.id, column=0)[2]
    known = dict(told["rows"])
    assert told["title"] == "model.fc1-matmul-0" and known["output"] == "float32[5, 8]" and known["bytes"] == "160 B"
    assert "test_explorer.py:" in known["line"] and "% of this step, run again" in known["time"]
    assert sum(told["arrays"][0]["counts"]) == 40 and any("gradient" in h["label"] for h in told["arrays"])
    weight = act(session, "select", id=row(session, "weight").item.id, column=2)[2]
    assert any(what == "gradient norm" for what, _ in weight["rows"])
    labels = ["weight now", "gradient of weight", "update of weight", "momentum_buffer now"]
    assert [h["label"] for h in weight["arrays"]] == labels
    before, gradient, update, momentum = (map_values(h["maps"])[0] for h in weight["arrays"])
    assert np.allclose(update, -0.1 * (0.9 * momentum + gradient), atol=1e-6) and np.abs(update).max() > 1e-3
    share = (
        f"{np.linalg.norm(update):.4g}, {100 * np.linalg.norm(update) / np.linalg.norm(before):.3g} % of that of weight"
    )
    assert ["update norm", share] in weight["rows"]
    assert session.act({"do": "leave"}) is False and session.detail()["title"] == "The whole step"
    module = act(session, "select", id=row(session, "fc2").item.id, column=0)[2]
    assert ["operations", "2 forward, 3 backward, 2 update"] in module["rows"]
    whole = ExplorerSession(graph_explorer_model(graph)).detail()
    assert whole["title"] == "The whole step" and whole["rows"][0][0] == "forward"


def test_names_of_operations_and_states_are_opened():
    """In the column of the operation; one that the passes removed in the graph as written."""
    graph, x, y = small()
    session = ExplorerSession(graph_explorer_model(graph, (x, y)))
    names = [node.name for node in session.tree.record.nodes if node.kind == "op" and "matmul" in node.name]
    assert len(names) == 5, "two forward, three backward"
    for name in names:
        assert session.act({"do": "open", "name": name}) and session.said == ""
        told = session.detail()
        column = next(node.column for node in session.tree.record.nodes if node.name == name)
        assert told["column"] == column and (told["title"] == name or (column and "matmul: backward" in told["title"]))
    session.act({"do": "open", "name": "model.fc1.weight_optimizer"})
    assert session.detail()["column"] == 2 and session.stage == session.model.stages
    written = {node.name for node in session.model.record(0).nodes} - {n.name for n in session.tree.record.nodes}
    assert session.act({"do": "open", "name": min(written)}) and session.stage == 0
    before = session.selected, session.stage
    assert not session.act({"do": "open", "name": "fc9"}) and "is called 'fc9'" in session.said
    assert (session.selected, session.stage) == before
    session.act({"do": "select", "id": 0})
    assert session.said == ""


def test_passes_mark_their_changes():
    graph, x, y = small()

    def without_relu(g):
        at = next(i for i, n in enumerate(g.nodes) if n.op.name == "relu" and n.phase == "forward")
        node = g.nodes[at]
        from minflow.compiler.passes.rewrite import rewrite
        from minflow.core.ir import outputs_of

        return rewrite(g, [*g.nodes[:at], *g.nodes[at + 1 :]], {outputs_of(node)[0]: node.inputs[0]})

    graph.passes.insert(0, without_relu)
    graph(x, y)
    session = ExplorerSession(graph_explorer_model(graph))
    _, picture, _ = act(session, "stage", to=1)
    assert "1 gone −" in picture["pass"] and "changed ~" in picture["pass"]
    act(session, "toggle", id=row(session, "act").item.id)
    ghost = row(session, "relu")
    assert ghost.marks[0] == {"gone": 1} and "gone" in session.svg() and "forward gone" in session.text()
    assert any(box[6] == "changed" or "~" in box[6] for r in session.picture()["rows"] for box in r[7])
    assert "gone" not in str(act(session, "stage", to=session.model.stages)[1])
    assert act(session, "stage", to=0)[1]["pass"].startswith("as written")


def test_repeats_are_summarized_and_search_shows_folded_modules():
    flow.manual_seed(0)
    graph = Train(nn.Sequential(*[layer for _ in range(200) for layer in (nn.Linear(2, 2), nn.ReLU())]))
    graph(flow.randn(1, 2), flow.tensor([0]))
    shown = layout(graph)
    assert "200 times (Linear, ReLU)" in text_of(shown, "") and len(shown.rows) <= 25
    view = view_of(shown)
    assert len(view["rows"]) == len(shown.rows) and svg_of(view, "t").startswith("<svg")
    session = ExplorerSession(graph_explorer_model(graph))
    _, picture, _ = act(session, "search", text="model.377")
    assert picture["found"][0][1] == "model.377"
    _, picture, told = act(session, "go", id=picture["found"][0][0])
    assert told["title"] == "model.377" and len(picture["rows"]) <= 60
    assert calls(lambda: act(session, "toggle", id=told["row"])) < 100_000  # about 50 per row


def test_invalid_requests_change_nothing():
    session = ExplorerSession(graph_explorer_model(small()[0]))
    before = session.picture()
    asks = [{}, {"do": "toggle"}, {"do": "toggle", "id": -1}, {"do": "toggle", "id": 10**6}, {"do": "select",
    "id": "x"}, {"do": 3},
            {"do": "__init__"}, {"do": "stage", "to": 99}, {"do": "step", "to": 1}, {"do": "go", "id": None},
            {"do": "stage", "to": float("inf")}, {"do": "select", "id": 0, "column": float("inf")}]  # fmt: skip
    for ask in [*asks, {"do": "toggle", "id": 0, "stage": 0}]:
        assert session.act(ask) is False
    assert session.picture() == before


@pytest.mark.parametrize("batch", [8, 128])
def test_columns_fit_into_a_cell_and_texts_into_boxes(batch):
    """In the widest font, closed and with everything open."""
    graph, x = Train(lenet()), flow.randn(batch, 1, 28, 28)
    graph(x, flow.randint(0, 10, (batch,)))
    shown = layout(graph)
    for opened in (None, set(shown.tree.by_key)):
        view = view_of(layout(graph, opened))
        assert view["w"] <= PICTURE_WIDTH < 780
        boxes = [box for row in view["rows"] for box in row[7]]
        for _, _, width, bold, faint, second, _, third in boxes:
            first = text_width(bold, bold=True) + (text_width(faint) + 8 if faint else 0)
            assert max(first, text_width(second), text_width(third)) <= width - 2 * PADDING + 0.5, (bold, faint, second)
        cut = [text for box in boxes for text in box[3:6] if "…" in text]
        assert opened or all(text.startswith("sgd_momentum") for text in cut), cut


def test_input_shapes_are_truncated_before_output_shapes():
    forward, backward = "8×32×28×28, 1×32×1×1 → 8×32×28×28", "8×32×14×14 ← 8×32×28×28, 8×32×28×28"
    assert truncated_shapes(forward, 400) == forward and truncated_shapes(backward, 400) == backward
    assert truncated_shapes(forward, 230) == "8×32×28×28, … → 8×32×28×28"
    assert truncated_shapes(forward, 130) == "… → 8×32×28×28" and truncated_shapes(backward, 130) == "8×32×14×14 ← …"
    assert truncated_shapes(forward, 60).endswith("…") and truncated_shapes("128×1000", 40).startswith("128")
