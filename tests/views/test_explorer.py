"""The tree, the rows and the picture of the graph explorer."""

import minflow as flow
import minflow.nn as nn
from minflow.nn.graph.exploring import graph_subject
from minflow.views.explorer import StepTree
from minflow.views.explorer_layout import Layout, view_of
from minflow.views.explorer_svg import svg_of, text_of


class Train(nn.Graph):
    def __init__(self, model, loss_fn=None, lr=0.1, momentum=0.9):
        super().__init__()
        self.model, self.loss_fn = model, loss_fn or nn.CrossEntropyLoss()
        self.add_optimizer(flow.optim.SGD(model.parameters(), lr=lr, momentum=momentum))

    def build(self, x, y):
        loss = self.loss_fn(self.model(x), y)
        loss.backward()
        return loss


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
    subject = graph_subject(graph)
    tree = StepTree(subject.record(subject.stages if stage is None else stage))
    return Layout(tree, tree.opened_first() if opened is None else opened)


def test_step_stands_by_attribute_with_twin_and_update():
    shown = layout(small()[0])
    assert [row.item.name for row in shown.rows] == ["x", "model", "fc1", "act", "fc2", "y", "loss_fn", "output"]
    fc1 = shown.rows[2]
    names = [[shown.record.nodes[i].op for i in part.nodes] for part in fc1.parts]
    assert names[0] == ["matmul", "add"] and len(names[1]) == 2 and names[2] == ["sgd_momentum"] * 2
    assert {shown.record.states[s].name for s in fc1.states} == {
        f"model.fc1.{p}{s}" for p in ("weight", "bias") for s in ("", "-momentum_buffer")}


def test_repeats_are_a_sentence():
    flow.manual_seed(0)
    layers = [layer for _ in range(500) for layer in (nn.Linear(4, 4), nn.ReLU())]
    graph = Train(nn.Sequential(*layers))
    graph(flow.randn(2, 4), flow.tensor([0, 1]))
    shown = layout(graph)
    assert "500 times (Linear, ReLU)" in text_of(shown, "") and len(shown.rows) <= 25
    view = view_of(shown)
    assert len(view["rows"]) == len(shown.rows) and svg_of(view, "t").startswith("<svg")
