"""A loaded graph has the bits of the saved one, and the same display. Every layer: `../nn/test_every_layer.py`."""

import collections
import copy
import dataclasses
import json

import numpy as np
import pytest

import minflow as flow
from minflow import nn, typing as tp
from minflow.deploy.folder import read, write
from tests.graphs import Predict, Training, bits, listing


def floats(*shape, seed=0):
    return flow.tensor(np.random.default_rng(seed).standard_normal(shape).astype("float32"))


def same(a, b):
    return bits(a) == bits(b)


def around(graph, tmp_path, *args, dynamic=None, **named):
    """Call the graph, save it, and load it."""
    graph(*args, **named)
    flow.save(graph, tmp_path / "saved" / "model", dynamic=dynamic)
    return flow.load_graph(tmp_path / "saved" / "model")


def meta_of(tmp_path):
    return json.loads((tmp_path / "saved" / "model" / "meta.json").read_text())


class Deep(nn.Module):
    """Shared and tied modules, a non-persistent buffer, lists, an unused parameter."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.again, self.tied = self.first, nn.Linear(4, 4)
        self.tied.weight = self.first.weight
        self.layers = nn.ModuleList([nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(2)])
        self.register_buffer("hidden", flow.ones(4), persistent=False)
        self.register_buffer("count", flow.zeros(1))
        self.unused = nn.Parameter(flow.ones(3))

    def forward(self, x, scale=1.0, *, mask=None):
        self.count += 1
        for layer in self.layers:
            x = layer(x) + self.hidden
        x = self.tied(self.again(self.first(x))) * scale
        return {"x": x if mask is None else x * mask, "parts": [x[0], (None, x[1:])]}


def test_structures_and_modules(tmp_path):
    model, weights = Deep(), flow.tensor([1.0, 2.0, 3.0, 4.0])

    class Both(nn.Graph):
        def __init__(self):
            super().__init__()
            self.model, self.blocks = model, [model.layers[0]]

        def build(self, pair, *, mask=None):
            a, b = pair["a"], pair["b"][0]
            return self.model(a * weights, 2.0, mask=mask), self.blocks[0](b)

    graph, pair, mask = Both(), {"a": floats(3, 4), "b": [floats(2, 4, seed=1)]}, floats(3, 4, seed=2)
    loaded = around(graph, tmp_path, pair, mask=mask)
    mine, theirs = graph(pair, mask=mask), loaded(pair, mask=mask)
    assert same(theirs, mine) and theirs[0]["parts"][1][0] is None and list(theirs[0]) == ["x", "parts"]
    assert loaded.model.first is loaded.model.again and loaded.model.tied.weight is loaded.model.first.weight
    assert set(loaded.model.state_dict()) == set(model.state_dict())
    assert model.count.item() == 2 and loaded.model.count.item() == 2
    assert str(loaded.tree()).replace(loaded.name, graph.name) == str(graph.tree())
    assert ("captured tensor weights" in str(loaded.frozen())) and "mask" in str(loaded.frozen())
    assert [name for name, _ in loaded.named_members()] == [name for name, _ in graph.named_members()]
    again = tmp_path / "again"
    flow.save(loaded, again)  # the loaded graph can be saved, and is the same
    assert (again / "graph.json").read_text().replace(loaded.name, graph.name) == (
        (tmp_path / "saved" / "model" / "graph.json").read_text()
    )


def steps_are_equal(graph, loaded, *inputs, count=3):
    state = flow.get_rng_state()
    mine = [graph(*inputs) for _ in range(count)]
    flow.set_rng_state(state)
    return all(same(a, loaded(*inputs)) for a in mine)


def test_checkpointing_and_accumulation(tmp_path):
    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.3), nn.Linear(8, 2))

    class Steps(Training):
        def __init__(self):
            super().__init__(model, flow.optim.AdamW(model.parameters(), lr=0.01))
            self.config.set_gradient_accumulation_steps(2)
            self.model.to(nn.graph.GraphModule).activation_checkpointing = True

    graph = Steps()
    loaded = around(graph, tmp_path, floats(6, 4))
    assert listing(loaded) == listing(graph) and steps_are_equal(graph, loaded, floats(6, 4))
    meta = meta_of(tmp_path)
    assert meta["inputs"] == [{"name": "x", "shape": [6, 4], "dtype": "float32"}]
    assert meta["outputs"] == [{"shape": [2], "dtype": "float32"}]
    assert same(graph.state_dict(), loaded.state_dict())


def test_custom_generator(tmp_path):
    generator = flow.Generator()
    generator.manual_seed(5)

    class Noise(nn.Graph):
        def build(self, x):
            return x + flow.rand(3, generator=generator) + flow.randn(3)

    graph = Noise()
    loaded = around(graph, tmp_path, floats(3))
    assert steps_are_equal(graph, loaded, floats(3)) and not same(graph(floats(3)), graph(floats(3)))


def test_predict_job(tmp_path):
    @flow.global_function(type="predict")
    def score(
        x: tp.Numpy.Placeholder((4, 8)), pair: tuple[tp.Numpy.Placeholder((4,)), tp.Numpy.Placeholder((4,))]
    ) -> tuple[tp.Numpy, tp.Numpy]:
        h = flow.layers.dense(x, 3, activation=flow.nn.relu, name="score_fc")
        return h, pair[0] + pair[1]

    given = np.random.default_rng(0).standard_normal((4, 8)).astype("float32")
    ones = np.ones(4, "float32")
    mine = score(given, (ones, ones))
    flow.save(score, tmp_path / "score")
    loaded = flow.load_graph(tmp_path / "score")
    theirs = loaded(flow.tensor(given), (flow.tensor(ones), flow.tensor(ones)))
    assert [t.numpy().tobytes() for t in theirs] == [a.tobytes() for a in mine]
    assert set(loaded.variables.state_dict()) == {"score_fc-weight", "score_fc-bias"}
    assert "PARAMETER:variables.score_fc-weight" in str(loaded)
    flow.clear_default_session()


@pytest.mark.parametrize("exact", [True, False])
def test_exact_setting_is_saved(exact, tmp_path):
    """Without exact(), meta.json has the form of earlier versions, which can read it."""
    graph = Predict(nn.Linear(3, 2))
    graph.config.exact(exact)
    loaded = around(graph, tmp_path, floats(4, 3))
    meta = meta_of(tmp_path)
    assert loaded.config.bits is exact and meta.get("exact", False) is exact and ("exact" in meta) is exact
    assert around(loaded, tmp_path / "again", floats(4, 3)).config.bits is exact


def test_exact_job(tmp_path):
    config = flow.function_config()
    config.exact()

    @flow.global_function(type="predict", function_config=config)
    def doubled_exactly(x: tp.Numpy.Placeholder((3,))) -> tp.Numpy:
        return x * 2.0

    doubled_exactly(np.ones(3, "float32"))
    flow.save(doubled_exactly, tmp_path / "job")
    assert flow.load_graph(tmp_path / "job").config.bits
    flow.clear_default_session()


def test_unsaveable_graphs(tmp_path):
    model = nn.Linear(4, 2)
    graph = Predict(model)
    with pytest.raises(flow.GraphError, match=r"Predict_\d+ was never called, so there is no computation to save"):
        flow.save(graph, tmp_path / "never")

    @flow.global_function(type="predict")
    def job_of_save(x: tp.Numpy.Placeholder((2, 2))) -> tp.Numpy:
        return flow.math.relu(x)

    with pytest.raises(flow.GraphError, match="job_of_save was never called"):
        flow.save(job_of_save, tmp_path / "never")

    @flow.library.custom_op("halved_for_save(x)", vjp=lambda g: g * 0.5)
    def halved_for_save(xp, x):
        return x * 0.5

    class Halves(nn.Graph):
        def build(self, x):
            return halved_for_save(x)

    halves = Halves()
    loaded = around(halves, tmp_path, floats(3))
    assert same(loaded(floats(3)), halves(floats(3)))
    first = halves_of = flow.library.custom_op("halved_for_save(x)")(lambda xp, x: x * 0.25)
    with pytest.raises(flow.GraphError, match=r"operations without a registered name.*halved_for_save \(test_replay"):
        flow.save(halves, tmp_path / "never")
    assert first is halves_of and not (tmp_path / "never").exists()


def named(name):
    model = nn.Sequential()
    model.add_module(name, nn.Linear(4, 2))
    return model


class Stacked(nn.Module):
    def forward(self, x):
        return flow.cat([x] * 10_001)


@pytest.mark.parametrize(
    ("model", "place", "found"),
    [
        (named("a\nb"), "states[0].name must be a text without control characters", "model.a"),
        (named("x" * 300), "a name in modules[0].children must be a text of 1 to 255 characters", "xxx"),
        (Stacked(), "nodes[0].in must be a list of 0 to 10000 entries", "'%0'"),
    ],
)
def test_unrepresentable_values(model, place, found, tmp_path):
    graph = Predict(model)
    graph(floats(3, 4))
    with pytest.raises(flow.GraphError, match="cannot be saved") as caught:
        flow.save(graph, tmp_path / "never")
    assert place in caught.value.what and found in str(caught.value) and not (tmp_path / "never").exists()


class Says(nn.Linear):
    def extra_repr(self):
        return "a bell \a\nand a line"


def test_module_extra_repr_and_class_names(tmp_path):
    graph = Predict(nn.Sequential(Says(4, 2), type("Net[int]", (nn.Linear,), {})(2, 2)))
    loaded = around(graph, tmp_path, floats(3, 4))
    assert same(loaded(floats(3, 4)), graph(floats(3, 4)))
    assert loaded.model._modules["0"].extra_repr() == "a bell  \nand a line"
    assert "_Net_int_(in_features=2" in str(loaded)


def test_loaded_graph_refusals(tmp_path):
    graph = Predict(nn.Sequential(nn.Linear(4, 2), nn.Dropout(0.5)).eval())
    loaded = around(graph, tmp_path, floats(3, 4))
    with pytest.raises(flow.GraphError, match=r"was saved for args\[0\] float32\[3, 4\]") as caught:
        loaded(floats(5, 4))
    assert 'dynamic={"args[0]": {0: "batch"}}' in str(caught.value) and "float32[5, 4]" in str(caught.value)
    with pytest.raises(flow.GraphError, match="was saved for"):
        loaded(floats(3, 4).double())
    with pytest.raises(flow.GraphError, match="saved for a call with other arguments") as caught:
        loaded(floats(3, 4), floats(3, 4))
    assert caught.value.values == {"saved": "args [float32[3, 4]]", "got": "args [float32[3, 4], float32[3, 4]]"}
    with pytest.raises(flow.GraphError, match="this Linear is a part of a saved graph"):
        loaded.model._modules["0"](floats(3, 4))
    with pytest.warns(flow.MinflowWarning, match="stays in the mode in which it was saved"):
        loaded.model.train()
    loaded.model.eval()
    assert same(loaded(floats(3, 4)), graph(floats(3, 4)))
    with pytest.raises(flow.GraphError):
        copy.deepcopy(loaded)


@dataclasses.dataclass
class Pair:
    a: flow.Tensor
    b: flow.Tensor | None = None


def test_dataclasses_are_dicts_of_a_loaded_graph(tmp_path):
    Row = collections.namedtuple("Row", "x y")

    class Swap(nn.Graph):
        def build(self, pair, row):
            return Pair(pair.b, pair.a), Row(row.y, row.x + 1)

    loaded = around(Swap(), tmp_path, Pair(floats(3), floats(2)), Row(floats(1), floats(2)))
    for pair in (Pair(floats(3), floats(2)), {"a": floats(3), "b": floats(2)}):
        for row in (Row(floats(1), floats(2)), (floats(1), floats(2))):
            swapped, rows = loaded(pair, row)
            assert type(swapped) is dict and type(rows) is tuple
            assert same(swapped, {"a": floats(2), "b": floats(3)}) and same(rows, (floats(2), floats(1) + 1))
    with pytest.raises(flow.GraphError, match="saved for a call with other arguments"):
        loaded(Pair(floats(3)), Row(floats(1), floats(2)))


def test_refusal_shows_a_dict_of_tensors(tmp_path):
    class Sum(nn.Graph):
        def build(self, terms):
            return terms["a"] + terms["b"]

    loaded = around(Sum(), tmp_path, {"a": floats(3), "b": floats(3)})
    with pytest.raises(flow.GraphError, match="saved for a call with other arguments") as caught:
        loaded({"a": floats(3)})
    assert caught.value.values == {
        "saved": "terms {'a': float32[3], 'b': float32[3]}",
        "got": "terms {'a': float32[3]}",
    }


def test_loaded_graph_is_inspectable_before_its_first_call(tmp_path):
    from minflow_widgets import explore

    graph = Predict(nn.Sequential(nn.Linear(4, 2), nn.ReLU()).eval())
    loaded = around(graph, tmp_path, floats(3, 4))
    assert listing(loaded) == listing(graph) and "INPUT:_model.0-input_0" in str(loaded)
    assert str(loaded.tree()).replace(loaded.name, graph.name) == str(graph.tree())
    assert [str(node.op) for node in loaded.nodes] == ["matmul", "add", "relu"]
    assert type(explore(loaded)).__name__ == "Explorer"
    assert loaded._last.runs == 0 and same(loaded(floats(3, 4)), graph(floats(3, 4)))
    assert "1 plan made" in str(loaded.why())
    model = nn.Linear(4, 2)
    training = Training(model, flow.optim.Adam(model.parameters(), lr=0.01))
    twin = around(training, tmp_path, floats(3, 4))
    state = bits(twin.model.state_dict())
    assert "no gradient" not in str(twin.tree()) and twin._steps == 1
    assert bits(twin.model.state_dict()) == state
    assert steps_are_equal(training, twin, floats(3, 4))


@pytest.mark.parametrize("trains", [False, True])
def test_missing_or_unexpected_weights(trains, tmp_path):
    model, path = nn.Linear(3, 2), tmp_path / "saved"
    optimizer = flow.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    around(Training(model, optimizer) if trains else Predict(model), tmp_path, floats(4, 3))
    data, meta, weights = read(tmp_path / "saved" / "model")
    for wrong, words in [
        ({**weights, "more": np.ones(2, "f4")}, r"weights\.safetensors must be .*'more'"),
        ({**weights, "model.bias-step": np.ones(2, "f4")}, "'model.bias-step'"),
        ({k: x for k, x in weights.items() if k != "model.weight"}, r"states\[0\].*'model.weight'"),
    ]:
        write(path / f"{len(wrong)}", data, meta, wrong)
        with pytest.raises(flow.GraphFormatError, match=f"(?s){words}"):
            flow.load_graph(path / f"{len(wrong)}")


def test_inputs_by_position_or_name(tmp_path):
    class Masked(nn.Graph):
        def build(self, x, mask=None):
            return x * 2 if mask is None else x * mask

    class Many(nn.Graph):
        def build(self, first, *rest, scale, **more):
            return first - rest[0] * scale + more["bias"]["a"] * more["bias"]["b"]

    a, b, c, d = (floats(2, 3, seed=n) for n in range(4))
    loaded = around(Masked(), tmp_path, a)  # arguments with defaults may be omitted again
    for result in (loaded(a), loaded(x=a), loaded(a, None), loaded(a, mask=None)):
        assert same(result, a * 2)
    with pytest.raises(flow.GraphError) as caught:
        loaded(a, b)
    assert caught.value.values == {"saved": "x float32[2, 3], mask None", "got": "x float32[2, 3], mask float32[2, 3]"}
    loaded = around(Masked(), tmp_path, mask=b, x=a)
    for result in (loaded(a, b), loaded(a, mask=b), loaded(x=a, mask=b), loaded(mask=b, x=a)):
        assert same(result, a * b)
    with pytest.raises(flow.GraphError, match=r"build takes \(x, mask\), and mask is missing"):
        loaded(a)
    loaded = around(Many(), tmp_path, a, b, scale=c, bias={"a": a, "b": d})
    want = a - b * c + a * d
    assert same(loaded(a, b, scale=c, bias={"a": a, "b": d}), want)
    assert same(loaded(a, b, bias={"b": d, "a": a}, scale=c), want)


def test_mismatched_call_raises_one_error(tmp_path, capsys):
    loaded = around(Predict(nn.Linear(3, 2)), tmp_path, floats(2, 4, 3), dynamic={"args[0]": {0: "batch"}})
    for x, got, hint in (
        (floats(2, 4, 3).double(), "float64[2, 4, 3]", "args[0].to(flow.float32)"),
        (floats(4, 3), "float32[4, 3]", "args[0].unsqueeze(0), a batch of one"),
        (floats(3), "float32[3]", "a tensor of 3 axes"),
        (floats(2, 5, 3), "float32[2, 5, 3]", '"args[0]": {0: "batch", 1: "size_1"}'),
    ):
        with pytest.raises(flow.GraphError, match=r"was saved for args\[0\] float32\[batch, 4, 3\]") as caught:
            loaded(x)
        assert got in str(caught.value) and hint in str(caught.value)
        assert "test_replay.py:" in caught.value.where and not getattr(caught.value, "__notes__", [])
    with pytest.raises(flow.GraphError) as caught:
        loaded(x, mask=x)
    assert "build" not in caught.value.values and "at replay.py" not in str(caught.value)
    assert capsys.readouterr() == ("", "")
    loaded.model.double()
    with pytest.raises(flow.DTypeError):
        loaded(floats(2, 4, 3))
    out, _ = capsys.readouterr()
    assert "was built up to here" in out and "at replay.py" not in out  # no line of minflow as one of the program


def test_loaded_graph_saves_its_dynamic_axes(tmp_path):
    graph = Predict(nn.Linear(3, 2))
    loaded = around(graph, tmp_path, floats(4, 3), dynamic={"args[0]": {0: "batch"}})
    loaded(floats(9, 3))
    flow.save(loaded, tmp_path / "b")
    assert same(flow.load_graph(tmp_path / "b")(floats(7, 3)), graph(floats(7, 3)))
    flow.save(loaded, tmp_path / "c", dynamic={})
    with pytest.raises(flow.GraphError, match=r"saved for args\[0\] float32\[9, 3\]"):
        flow.load_graph(tmp_path / "c")(floats(7, 3))


def test_loaded_parameters_are_frozen(tmp_path):
    model = nn.Linear(3, 2)
    loaded = around(Training(model, flow.optim.SGD(model.parameters(), lr=0.1)), tmp_path, floats(4, 3))
    weight, bias = loaded.model.weight, loaded.model.bias
    weight.requires_grad_(False)
    before = weight.numpy().copy(), bias.numpy().copy()
    loaded(floats(4, 3))
    assert (weight.numpy() == before[0]).all() and (bias.numpy() != before[1]).all()
    model.weight.requires_grad_(False)
    loaded = around(Training(model, flow.optim.SGD([model.bias], lr=0.1)), tmp_path, floats(4, 3))
    loaded(floats(4, 3))
    loaded.model.weight.requires_grad_(True)
    with pytest.raises(flow.GraphError, match="model.weight took no gradient when the graph was saved"):
        loaded(floats(4, 3))


def test_path_beside_the_folder_is_explained(tmp_path):
    graph = Predict(nn.Linear(2, 1))
    graph(floats(3, 2))
    flow.save(graph, tmp_path / "1" / "model")
    for wrong in (tmp_path / "1", tmp_path / "1" / "model" / "graph.json", tmp_path / "1" / "model" / "meta.json"):
        with pytest.raises(flow.GraphFormatError) as caught:
            flow.load_graph(wrong)
        assert caught.value.hint == f'flow.load_graph("{tmp_path / "1" / "model"}")'
    with pytest.raises(flow.CheckpointError, match="holds a saved graph"):
        flow.save(graph.model.state_dict(), tmp_path / "1" / "model")
    assert not (tmp_path / "1" / "model" / "data.safetensors").exists()
    with pytest.raises(flow.CheckpointError, match="dynamic is only for graphs"):
        flow.save(graph.model.state_dict(), tmp_path / "numbers", dynamic={"x": [0]})
    for nothing, words in ((None, "the path is None"), (3, "the path is of type int")):
        with pytest.raises(flow.GraphFormatError, match=words):
            flow.load_graph(nothing)


def test_loaded_graph_compares_with_eager_like_the_original(tmp_path):
    graph = Predict(nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU()).eval())
    x = floats(2, 1, 5, 5)
    loaded = around(graph, tmp_path, x)
    first, second = [str(g.compare_eager(x)).replace(g.name, "") for g in (graph, loaded)]
    assert first == second and "0 that only the graph has" in second  # the parts of a batch norm too


class Causal(nn.Module):
    """The mask of every GPT: a buffer that is a view of a tensor without other users."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mask", flow.tril(flow.ones(4, 4)).view(1, 1, 4, 4))
        self.register_buffer("places", flow.arange(4).expand(1, -1))
        self.register_buffer("columns", flow.arange(6.0).view(2, 3).t(), persistent=False)
        self.register_buffer("row", flow.arange(8.0).view(2, 4)[1])
        self.embedding = nn.Embedding(4, 4)

    def forward(self, x):
        n = x.size(-1)
        scores = x.masked_fill(self.mask[:, :, :n, :n] == 0, float("-inf")).softmax(-1)
        return scores @ self.embedding(self.places) * self.row + self.columns.sum()


def test_buffers_that_are_views_are_saved_and_updated(tmp_path):
    model, x = Causal(), flow.randn(2, 1, 4, 4)
    before, mask = model(x), model.mask
    graph = Predict(model)
    assert graph(x).tolist() == before.tolist() and model.mask is mask
    flow.save(graph, tmp_path / "causal")
    loaded = flow.load_graph(tmp_path / "causal")
    assert loaded(x).tolist() == before.tolist()
    assert {"mask", "places", "row"} <= set(loaded.state_dict()["model"])
    model.mask.fill_(1)
    assert graph(x).tolist() == model(x).tolist() != before.tolist()


def test_a_buffer_that_shares_a_tensor_of_the_program_stays_a_view():
    base = flow.ones(2, 4)
    model = Causal()
    model.row = base[0]
    graph, x = Predict(model), flow.randn(1, 1, 4, 4)
    graph(x)
    base.mul_(3)
    assert model.row.tolist() == [3, 3, 3, 3] and graph(x).tolist() == model(x).tolist()
