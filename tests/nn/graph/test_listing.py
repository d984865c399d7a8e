"""print(graph): OneFlow's listing, before and after the first call, in the older and the newer style."""

import itertools
import re

import pytest
from graph_models import MLP, Predict, TrainGraph, graph_of

import minflow as flow
from minflow import nn
from minflow.core.context import PerContext
from minflow.introspection.graph.listing import text as listing
from minflow.nn.graph import graph as module
from minflow.vision import models
from tests.measuring import calls


@pytest.fixture(autouse=True)
def numbers_from_zero(monkeypatch):
    monkeypatch.setattr(module, "graph_counts", PerContext(dict))


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


def test_before_and_after_the_first_call(golden, kernels_of_numpy):
    graph = trained()
    golden("graph_listing_before", repr(graph))
    graph(flow.ones(2, 1, 4, 4), flow.tensor([0, 2]))
    golden("graph_listing_after", repr(graph))
    graph.repr_style = "v1"
    golden("graph_listing_v1", repr(graph))


def test_oneflow_listing():
    """MobileNetV2 with the misspelt head: OneFlow's listing, without cuda:0 and with our name in the dtype."""
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
    assert after[2:4] == [
        "  (INPUT:_TrainGraph_0-input_0:tensor(..., size=(2, 3, 32, 32), dtype=minflow.float32))",
        "  (INPUT:_TrainGraph_0-input_1:tensor(..., size=(2,), dtype=minflow.int64))",
    ]
    meta = "tensor(..., is_lazy='True', size=(2, 32, 16, 16), dtype=minflow.float32)"
    assert f"          (OUTPUT:_model.features.0.0-output_0:{meta})" in after
    assert not any("_model.classifer" in line for line in after), "a module that never ran has no inputs and outputs"
    assert {line.split(":")[0].strip() for line in after if line.strip() != ")"} >= {
        "(GRAPH",
        "(CONFIG",
        "(MODULE",
        "(PARAMETER",
        "(BUFFER",
        "(INPUT",
        "(OUTPUT",
    }


def test_long_lines_break_at_80_columns():
    graph = Predict(nn.Identity())
    graph(flow.ones(1, 2, 1, 2, 1, 2, 1, 2, 1, 2))
    text = repr(graph)
    assert (
        "(INPUT:_model-input_0:tensor(..., is_lazy='True', size=(1, 2, 1, 2, 1, 2, 1, 2, 1, 2),\n"
        + " " * 4
        + "       dtype=minflow.float32))"
    ) in text
    graph(flow.ones(0, 3))
    assert "tensor([], size=(0, 3), dtype=minflow.float32)" in repr(graph)


class Fake:
    """A tensor with a spec only: there is no GPU here, but the rule can be tested."""

    _needs = True

    def __init__(self, shape, dtype=flow.float32, device="cuda"):
        self.spec = flow.ones(1).spec.replace(shape=shape, dtype=dtype, device=flow.device(device))


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("shape", [(), (7,), (64, 3, 32, 32), (0, 3), (1024, 512, 3, 3), (2,) * 25 + (1,) * 10])
@pytest.mark.parametrize(("lazy", "parameter"), [(True, False), (False, True)])
def test_wrap_rule(device, shape, lazy, parameter):
    """A piece that would extend beyond column 80 starts a new line, indented by seven."""
    text = listing.tensor_text(Fake(shape, device=device), lazy, parameter)
    lines = text.split("\n")
    start = "tensor([]" if 0 in shape else "tensor(..."
    assert lines[0].startswith(start + ",") and all(re.match(" {7}[a-z]", line) for line in lines[1:])
    pieces = re.sub(r",\n {7}", ", ", text).removeprefix(start + ", ").removesuffix(")")
    wanted = (
        ["device='cuda:0'"] * (device == "cuda")
        + ["is_lazy='True'"] * lazy
        + [f"size={shape}", "dtype=minflow.float32"]
    )
    assert pieces == ", ".join(wanted + ["requires_grad=True"] * parameter)
    for line, following in itertools.pairwise(lines):
        used = len(line) - 1 + 2 * (line is lines[0])  # without the comma; the first line starts two ahead
        assert used + 2 + len(following.strip().rstrip(",)")) > 80, "wrapped too early"
    for line in lines:
        assert len(line.rstrip(",)")) + 2 * (line is lines[0]) <= 80 or line.count("=") == 1, (
            "a single piece may be longer"
        )


def test_nested_inputs_and_outputs():
    class Two(nn.Module):
        def forward(self, pair, flag=None):
            return pair[0] + pair[1], {"twice": pair[0] * 2}

    def build(self, batch, mask=None):
        out, more = self.m(batch, None)
        return {"a": out, "b": [more["twice"], None]}

    graph, x = graph_of(build, "Nested", m=Two()), flow.ones(2)
    graph([x, x], mask=x)
    text = repr(graph)
    for line in ("(INPUT:_Nested_0-input_0_0:tensor(..., size=(2,)", "(INPUT:_Nested_0-input_0_1:",
                 "(INPUT:_Nested_0-input_1:",
                 "(INPUT:_m-input_0_0:tensor(..., is_lazy='True'", "[WARNING](INPUT:_m-input_1:<class 'NoneType'>)",
                 "(OUTPUT:_m-output_0:", "(OUTPUT:_m-output_1_0:", "(OUTPUT:_Nested_0-output_0_0:",
                 "[WARNING](OUTPUT:_Nested_0-output_0_1_1:"):  # fmt: skip
        assert line in text, line
    graph.repr_style = "v1"
    text = repr(graph)
    for line in (
        "(INPUT:_Nested_0_input.0.0.0_3:",
        "(INPUT:_Nested_0_input.0.0.1_4:",
        "(INPUT:_Nested_0_input.1.0_6:",
        "(OUTPUT:_m_output.0.0_2:",
        "(OUTPUT:_m_output.0.1.0_4:",
    ):
        assert line in text, line


def names(graph, *args, **kwargs):
    graph(*args, **kwargs)
    return re.findall(r"\((?:IN|OUT)PUT:(\S+?):", repr(graph))


def styled(function, style="seed"):
    graph = graph_of(lambda self, *args, **kwargs: function(*args, **kwargs), "G")
    graph.repr_style = style
    return graph


def test_names_in_both_styles():
    """Arguments, lists in them, keywords; several results, a list and a dict as results."""
    x = flow.ones(2)
    assert names(styled(lambda a, b: (a + b, a * b)), x, x) == [
        "_G_0-input_0",
        "_G_0-input_1",
        "_G_0-output_0",
        "_G_0-output_1",
    ]
    calls = (
        (lambda a, b: (a + b, a * b), (x, x), {}),
        (lambda a, b: a + b[0], (x, [x, x]), {}),
        (lambda a, k: a + k, (x,), {"k": x}),
        (lambda a: {"u": a["p"] + 1, "v": [a["p"] * 2]}, ({"p": x},), {}),
    )
    found = [names(styled(function, "v1"), *args, **kwargs) for function, args, kwargs in calls]
    assert [[name.removeprefix(f"_G_{i}") for name in row] for i, row in enumerate(found, 1)] == [
        ["_input.0.0_2", "_input.0.1_3", "_output.0.0.0_3", "_output.0.0.1_4"],
        ["_input.0.0_2", "_input.0.1.0_4", "_input.0.1.1_5", "_output.0.0_2"],
        ["_input.0.0_2", "_input.1.0_4", "_output.0.0_2"],
        ["_input.0.0.0_3", "_output.0.0.0_3", "_output.0.0.1.0_5"],
    ]


def test_operators_of_v1():
    class Cat(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(flow.ones(3, 2))
            self.unused = nn.Parameter(flow.ones(1))

        def forward(self, x):
            return flow.cat([x, x @ self.w], dim=1)

    graph = Predict(Cat())
    graph.repr_style = "v1"
    graph.debug(-1, op_repr_with_py_stack=True)
    graph(flow.ones(4, 3))
    lines = [line.strip() for line in repr(graph).split("\n") if "OPERATOR" in line]
    where = 'placement=(minflow.placement(type="cpu", ranks=[0]))'
    assert lines[0] == f"(OPERATOR: model.w() -> (out:sbp=(B), size=(3, 2), dtype=(minflow.float32)), {where})"
    x = "x/out:(sbp=(B), size=(4, 3), dtype=(minflow.float32))"
    y = "model-matmul-0/matmul_0:(sbp=(B), size=(4, 2), dtype=(minflow.float32))"
    out = "(model-cat-0/cat_0:(sbp=(B), size=(4, 5), dtype=(minflow.float32)))"
    assert (
        re.sub(r"\.py:\d+", ".py:0", lines[2])
        == f"(OPERATOR: model-cat-0([{x}, {y}]) -> {out}, {where}, location=(test_listing.py:0))"
    )
    assert len(lines) == 3, "an unused parameter is not an operator"


def test_graph_names_are_numbered_per_class():
    names = [Predict(MLP()).name for _ in range(3)]
    assert names == ["Predict_0", "Predict_1", "Predict_2"]


def test_repr_never_raises(capsys):
    graph = Predict(MLP())
    with pytest.raises(flow.MinflowError):
        graph(flow.ones(1, 7))
    assert "(MODULE:model:MLP())" in repr(graph) and "INPUT" not in repr(graph)

    class Unready(nn.Graph):
        def __init__(self):
            self.early = repr(self)

    with pytest.raises(flow.MinflowError, match="early"):
        Unready()
    assert "Unready" in repr(Unready.__new__(Unready))

    class Odd(nn.Module):
        def extra_repr(self):
            raise KeyError("odd")

    model = nn.Sequential(Odd())
    model[0].add_module("around", model)
    text = repr(Predict(model))
    assert "(MODULE:model.0:Odd(extra_repr fails: KeyError)): (" in text
    assert "(MODULE:model.0.around:Sequential()): (...)" in text


def test_styles():
    graph = Predict(MLP())
    with pytest.raises(flow.MinflowError, match="must be 'seed' or 'v1', got 'v2'"):
        graph.repr_style = "v2"

    class Newer(Predict):
        repr_style = "v1"

    class Unknown(Predict):
        repr_style = "v3"

    newer, x = Newer(MLP()), flow.ones(2, 20)
    newer(x)
    graph(x)
    assert "_Newer_0_input.0.0_2" in repr(newer) and "_Predict_0-input_0" in repr(graph)
    newer.repr_style = "seed"
    assert "_Newer_0-input_0" in repr(newer) and Newer.repr_style == "v1"
    assert "'v3' is none of 'seed' and 'v1'" in repr(Unknown(MLP())).split("\n")[0]


def test_settings_in_the_config_line():
    graph = trained()
    assert "  (CONFIG:config:GraphConfig(training=True, ))" in repr(graph)
    graph.config.set_gradient_accumulation_steps(2)
    assert "  (CONFIG:config:GraphConfig(training=True, gradient_accumulation_steps=2, ))" in repr(graph)
    assert "(CONFIG:config:GraphConfig(training=False, ))" in repr(Predict(MLP()))
    graph(flow.ones(4, 1, 4, 4), flow.tensor([0, 2, 1, 0]))
    text = repr(graph)
    assert "(INPUT:_TrainGraph_0-input_0:tensor(..., size=(4, 1, 4, 4)" in text
    assert "(INPUT:_model-input_0:tensor(..., is_lazy='True', size=(2, 1, 4, 4)" in text
    assert "(OUTPUT:_TrainGraph_0-output_0:tensor(..., size=(2,)" in text, "a loss for each micro-batch"


# ---- positions of modules -------------------------------------------------------------------------------------------


def heads(graph):
    return re.findall(r"^( +)\(MODULE:(\S+?):(\w+)", repr(graph), re.MULTILINE)


def test_modules_in_lists_and_in_closures():
    outside = nn.Sequential(nn.Linear(4, 4))

    def build(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.more["last"](outside(x))

    graph = graph_of(build, layers=[nn.Linear(4, 4), nn.ReLU()], more={"last": nn.Tanh()})
    assert [head[1:] for head in heads(graph)] == [("layers.0", "Linear"), ("layers.1", "ReLU"), ("more.last", "Tanh")]
    graph(flow.ones(2, 4))
    assert heads(graph)[3:] == [("  ", "Sequential", "Sequential"), ("    ", "Sequential.0", "Linear")]
    text = repr(graph)
    for line in (
        "(INPUT:_layers.0-input_0:",
        "(PARAMETER:layers.0.weight:",
        "(OUTPUT:_more.last-output_0:",
        "(OUTPUT:_Sequential.0-output_0:",
        "(PARAMETER:Sequential.0.weight:",
    ):
        assert text.count(line) == 1, line


def test_shared_modules_and_shared_tensors():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(4, 4)
            self.again, self.other = self.first, nn.Linear(4, 4)
            self.other.weight = self.first.weight

        def forward(self, x):
            return self.other(self.again(x))

    graph = Predict(Tied())
    graph(flow.ones(2, 4))
    assert [head[1] for head in heads(graph)] == ["model", "model.first", "model.again", "model.other"]
    text = repr(graph)
    again = text[text.index("(MODULE:model.again") : text.index("(MODULE:model.other")]
    assert "(INPUT:_model.first-input_0:" in again and "(PARAMETER:model.again.weight:" in again, (
        "it did run, under its first name"
    )
    assert text.count("(INPUT:_model.first-input_0:") == 2 and "(PARAMETER:model.other.weight:" in text


def test_replaced_module_has_not_run():
    graph = Predict(MLP((4, 3)))
    graph(flow.ones(2, 4))
    assert "(INPUT:_model.layers.0-input_0:" in repr(graph)
    graph.model.layers[0] = nn.Linear(4, 8)
    assert "(MODULE:model.layers.0:Linear(in_features=4, out_features=8, bias=True)): (" in repr(graph)
    assert "(INPUT:_model.layers.0-input_0:" not in repr(graph)


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
    assert all(line.isprintable() for line in repr(graph).split("\n"))


def test_thousand_nested_modules():
    model = nn.Linear(1, 1)
    for _ in range(999):
        model = nn.Sequential(model)
    graph, texts = Predict(model), []
    assert calls(lambda: texts.append(repr(graph))) < 2_000_000  # about 500 per module
    (text,) = texts
    assert text.count("(MODULE:") == 61 and text.endswith(")\n)")
    depths = [len(line) - len(line.lstrip()) for line in text.split("\n") if "(MODULE:" in line]
    assert depths == list(range(2, 124, 2)) and "0:Sequential()): (... 939 more levels inside)\n" in text


def test_hostile_input_keys():
    graph, x = graph_of(lambda self, x: [value + 1 for value in x.values()], "Keys"), flow.ones(2)
    keys = ["a[0]", "]", "'", "tensor", "\x1b[31m", 3]
    assert [float(y.sum()) for y in graph({key: x for key in keys})] == [4.0] * 6
    assert "\x1b" not in repr(graph) and repr(graph).count("(INPUT:_Keys_0-input_0_") == 6
    for key in keys:
        with pytest.raises(flow.MinflowError, match="int") as caught:
            graph({key: 3})
        assert f"x[{key!r}]" in str(caught.value)
