"""print(graph): OneFlow's listing, before and after the first call, in the seed's form and in the newer one."""

import os
import re
from pathlib import Path

import pytest
from graph_models import MLP, Predict, TrainGraph

import minflow as flow
from minflow import nn
from minflow.nn.graph import graph as module
from minflow.vision import models


@pytest.fixture(autouse=True)
def numbers_from_zero(monkeypatch):
    monkeypatch.setattr(module, "COUNTS", {})


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 2, 3, bias=False), nn.BatchNorm2d(2), nn.ReLU())
        self.head, self.idle = nn.Linear(8, 3), nn.Linear(8, 7)

    def forward(self, x):
        return self.head(self.body(x).flatten(1))


def trained():
    flow.manual_seed(0)
    model = Small()
    optimizer = flow.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    return TrainGraph(model, nn.CrossEntropyLoss(), optimizer)


def test_before_and_after_the_first_call(golden):
    graph = trained()
    golden("graph_listing_before", repr(graph))
    graph(flow.ones(2, 1, 4, 4), flow.tensor([0, 2]))
    golden("graph_listing_after", repr(graph))
    graph.repr_style = "v1"
    golden("graph_listing_v1", repr(graph))


def test_the_listing_of_the_seed():
    """MobileNetV2 with the misspelt head: what the document shows, with cuda:0 gone and our name in the dtype."""
    model = models.mobilenet_v2()
    model.classifer = nn.Sequential(nn.Dropout(0.2), nn.Linear(model.last_channel, 10))
    graph = TrainGraph(model, nn.CrossEntropyLoss(), flow.optim.SGD(model.parameters(), lr=1e-3))
    before = repr(graph).split("\n")
    assert before[:4] == [
        "(GRAPH:TrainGraph_0:TrainGraph): (",
        "  (CONFIG:config:GraphConfig(training=True, ))",
        "  (MODULE:model:MobileNetV2()): (",
        "    (MODULE:model.features:Sequential()): (",
    ]
    conv = "Conv2d(3, 32, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1), bias=False)"
    assert f"        (MODULE:model.features.0.0:{conv}): (" in before
    assert "    (MODULE:model.classifer:Sequential()): (" in before
    assert "      (MODULE:model.classifer.0:Dropout(p=0.2, inplace=False)): ()" in before
    assert "  (MODULE:loss_fn:CrossEntropyLoss()): ()" in before
    assert not any("is_lazy" in line or "(INPUT" in line for line in before)
    graph(flow.rand(2, 3, 32, 32), flow.tensor([1, 2]))
    after = repr(graph).split("\n")
    assert after[2:4] == ["  (INPUT:_TrainGraph_0-input_0:tensor(..., size=(2, 3, 32, 32), dtype=minflow.float32))",
                          "  (INPUT:_TrainGraph_0-input_1:tensor(..., size=(2,), dtype=minflow.int64))"]
    meta = "tensor(..., is_lazy='True', size=(2, 32, 16, 16), dtype=minflow.float32)"
    assert f"          (OUTPUT:_model.features.0.0-output_0:{meta})" in after
    assert not any("_model.classifer" in line for line in after), "a module that never ran has no inputs and outputs"
    assert {line.split(":")[0].strip() for line in after if line.strip() != ")"} >= {
        "(GRAPH", "(CONFIG", "(MODULE", "(PARAMETER", "(BUFFER", "(INPUT", "(OUTPUT"}  # fmt: skip


@pytest.mark.skipif("MINFLOW_SEEDS" not in os.environ, reason="the documents the project was made from are not part of it")
def test_every_line_of_the_seeds_own_listing():
    """Each line that the document prints is one of ours, the device of its machine and OneFlow's name taken out."""
    (document,) = Path(os.environ["MINFLOW_SEEDS"]).glob("004*")
    lines = document.read_text(encoding="utf-8").split("\n")
    joined: list[str] = []
    for line in lines:
        if joined and joined[-1].startswith("(") and line.startswith(("dtype=", "requires_grad=")):
            joined[-1] += " " + line
        else:
            joined.append(line)
    tags = re.compile(r"\((GRAPH|CONFIG|MODULE|PARAMETER|BUFFER|INPUT|OUTPUT):[^|]*(\(|\)|,)$")  # not the prose and the tables
    shown = [line for line in joined if tags.match(line) and line.isascii()]
    assert len(shown) > 25
    model = models.mobilenet_v2()
    model.classifer = nn.Sequential(nn.Dropout(0.2), nn.Linear(model.last_channel, 10))

    class GraphMobileNetV2(TrainGraph):
        pass

    graph = GraphMobileNetV2(model, nn.CrossEntropyLoss(), flow.optim.SGD(model.parameters(), lr=1e-3))
    ours = {normal(line) for line in repr(graph).replace(",\n       ", ", ").split("\n")}
    small = flow.rand(64, 3, 32, 32)
    graph(small, flow.zeros(64, dtype=flow.int64))
    ours |= {normal(line) for line in re.sub(r",\n *(dtype|requires|size)", r", \1", repr(graph)).split("\n")}
    assert not [line for line in shown if normal(line) not in ours]


def normal(line):
    line = re.sub(r"device='cuda:0', ", "", line.strip()).replace("oneflow.", "minflow.")
    return re.sub(r"\s+", " ", line).removesuffix(": (").removesuffix(": ()")


def test_long_lines_break_at_80_columns():
    class Wide(nn.Graph):
        def __init__(self):
            super().__init__()
            self.m = nn.Identity()

        def build(self, x):
            return self.m(x)

    graph = Wide()
    graph(flow.ones(1, 2, 1, 2, 1, 2, 1, 2, 1, 2))
    text = repr(graph)
    assert ("(INPUT:_m-input_0:tensor(..., is_lazy='True', size=(1, 2, 1, 2, 1, 2, 1, 2, 1, 2),\n"
            + " " * 4 + "       dtype=minflow.float32))") in text  # fmt: skip
    graph(flow.ones(0, 3))
    assert "tensor([], size=(0, 3), dtype=minflow.float32)" in repr(graph)


def test_nested_inputs_and_outputs():
    class Two(nn.Module):
        def forward(self, pair, flag=None):
            return pair[0] + pair[1], {"twice": pair[0] * 2}

    class Nested(nn.Graph):
        def __init__(self):
            super().__init__()
            self.m = Two()

        def build(self, batch, mask=None):
            out, more = self.m(batch, None)
            return {"a": out, "b": [more["twice"], None]}

    graph, x = Nested(), flow.ones(2)
    graph([x, x], mask=x)
    text = repr(graph)
    for line in ("(INPUT:_Nested_0-input_0_0:tensor(..., size=(2,)", "(INPUT:_Nested_0-input_0_1:", "(INPUT:_Nested_0-input_1:",
                 "(INPUT:_m-input_0_0:tensor(..., is_lazy='True'", "[WARNING](INPUT:_m-input_1:<class 'NoneType'>)",
                 "(OUTPUT:_m-output_0:", "(OUTPUT:_m-output_1_0:", "(OUTPUT:_Nested_0-output_0_0:",
                 "[WARNING](OUTPUT:_Nested_0-output_0_1_1:"):  # fmt: skip
        assert line in text, line
    graph.repr_style = "v1"
    text = repr(graph)
    for line in ("(INPUT:_Nested_0_input.0.0.0_3:", "(INPUT:_Nested_0_input.0.0.1_4:", "(INPUT:_Nested_0_input.1.0_6:",
                 "(OUTPUT:_m_output.0.0_2:", "(OUTPUT:_m_output.0.1.0_4:"):  # fmt: skip
        assert line in text, line


def test_names_of_v1_for_plain_calls():
    class Add(nn.Graph):
        def build(self, x, y):
            return x + y, x * y

    graph, x = Add(), flow.ones(2)
    graph.repr_style = "v1"
    graph(x, x)
    names = re.findall(r"\((?:IN|OUT)PUT:(\S+?):", repr(graph))
    assert names == ["_Add_0_input.0.0_2", "_Add_0_input.0.1_3", "_Add_0_output.0.0.0_3", "_Add_0_output.0.0.1_4"]
    operators = re.findall(r"\(OPERATOR: (\S+?)\((\S+?):.* -> \((\S+?):", repr(graph))
    assert operators == [("add-0", "x/out", "add-0/add_0"), ("mul-0", "x/out", "mul-0/mul_0")]


def test_a_graph_counts_by_its_class_name():
    names = [Predict(MLP()).name for _ in range(3)]
    assert names == ["Predict_0", "Predict_1", "Predict_2"]


def test_a_repr_never_raises_and_knows_its_styles():
    graph = Predict(MLP())
    with pytest.raises(flow.MinflowError):
        graph(flow.ones(1, 7))
    assert "(MODULE:model:MLP())" in repr(graph)
    with pytest.raises(flow.MinflowError, match="'seed'.*'v1'"):
        graph.repr_style = "v2"


def test_hostile_names_and_deep_trees():
    class Evil(nn.Module):
        def __init__(self):
            super().__init__()
            self.add_module("<script>alert(1)</script>", nn.Linear(2, 2))
            self.add_module('"; x\n\x1b[31m', nn.Linear(2, 2))

        def extra_repr(self):
            return "a\nb"

        def forward(self, x):
            for m in self._modules.values():
                x = m(x)
            return x

    graph = Predict(Evil())
    graph(flow.ones(1, 2))
    assert "<script>" in repr(graph) and "\x1b" not in repr(graph)
    model = nn.Linear(1, 1)
    for _ in range(300):
        model = nn.Sequential(model)
    text = repr(Predict(model))
    assert text.count("(MODULE:") == 301
