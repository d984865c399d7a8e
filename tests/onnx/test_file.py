"""flow.onnx.export: names, modes, graphs, and refusals before anything is written."""

import io
import sys

import numpy as np
import onnx
import pytest

import minflow as flow
from minflow import nn
from minflow.onnx import model as writing
from tests.onnx.helpers import run, session

X = flow.tensor(np.random.default_rng(0).standard_normal((4, 6)).astype("float32"))


def network():
    flow.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Dropout(0.5), nn.Linear(5, 3))


class Predict(nn.Graph):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def build(self, features):
        return self.model(features)


class Train(nn.Graph):
    def __init__(self, model):
        super().__init__()
        self.model, self.loss = model, nn.CrossEntropyLoss()
        self.add_optimizer(flow.optim.SGD(model.parameters(), lr=0.1))

    def build(self, x, y):
        loss = self.loss(self.model(x), y)
        loss.backward()
        return loss


def names(model):
    graph = model.graph
    return [i.name for i in graph.input], [o.name for o in graph.output], {w.name for w in graph.initializer}


def test_module_is_exported_in_eval_mode_with_its_names(tmp_path):
    model, path = network(), tmp_path / "new" / "model.onnx"
    flow.onnx.export(model, X, path)
    assert model.training and model[2].training
    written = onnx.load(path)
    assert names(written) == (["input"], ["output_0"], set(model.state_dict()))
    np.testing.assert_allclose(run(written, X.numpy())[0], model.eval()(X).numpy(), rtol=1e-5, atol=1e-6)
    hidden = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in written.graph.value_info}
    assert hidden["1-relu-0/Relu"] == [4, 5] and "output_0" not in hidden
    assert (written.opset_import[0].version, written.ir_version) == (18, 8)
    assert written.graph.node[0].name.startswith("0-") and "test_file.py:" in written.graph.node[0].doc_string


def test_graph_is_exported_as_called(tmp_path):
    graph = Predict(network().eval())
    with pytest.raises(flow.GraphError, match="Predict_.* was never called"):
        flow.onnx.export(graph, None, tmp_path / "a.onnx")
    want = graph(X)
    flow.onnx.export(graph, f=tmp_path / "a.onnx", dynamic={"features": {0: "batch"}})
    written = onnx.load(tmp_path / "a.onnx")
    inputs, outputs, weights = names(written)
    assert (inputs, outputs) == (["features"], ["output_0"]) and "model.0.weight" in weights
    assert [d.dim_param or d.dim_value for d in written.graph.output[0].type.tensor_type.shape.dim] == ["batch", 3]
    np.testing.assert_allclose(run(written, X.numpy())[0], want.numpy(), rtol=1e-5, atol=1e-6)
    assert run(written, X.numpy()[:1])[0].shape == (1, 3)
    flow.onnx.export(graph, flow.ones(2, 6), tmp_path / "b.onnx")  # an example: for this call
    assert session(onnx.load(tmp_path / "b.onnx")).get_inputs()[0].shape == [2, 6]


def test_training_graph_exports_its_forward_part(tmp_path):
    y = flow.tensor([0, 2, 1, 1])
    graph = Train(nn.Linear(6, 3))
    before = float(nn.functional.cross_entropy(graph.model(X), y))
    graph.compiled_for((X, y), {})
    flow.onnx.export(graph, None, tmp_path / "a.onnx")
    written = onnx.load(tmp_path / "a.onnx")
    assert names(written)[0] == ["x", "y"]
    assert run(written, X.numpy(), y.numpy())[0] == pytest.approx(before, rel=1e-5)
    assert not any("Grad" in node.op_type for node in written.graph.node)


def test_training_only_ops_are_refused_with_their_line(tmp_path):
    graph = Train(nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 3)))
    graph(X, flow.tensor([0, 2, 1, 1]))
    path = tmp_path / "a.onnx"
    path.write_text("old")
    with pytest.raises(flow.GraphError, match=r"2 ops") as error:
        flow.onnx.export(graph, None, path)
    assert {"dropout", "batch_norm"} <= set(error.value.values)
    assert "test_file.py:" in error.value.values["dropout"] and "in model.2" in error.value.values["dropout"]
    assert "model.eval()" in error.value.hint and path.read_text() == "old"


def test_unsupported_ops_are_listed_together(tmp_path):
    class Strange(nn.Module):
        def forward(self, x):
            x = x.cumprod(1) + flow.lgamma(x)
            return flow.lgamma(x) + flow.fft.fft(x).real

    with pytest.raises(flow.GraphError) as error:
        flow.onnx.export(Strange(), X, tmp_path / "a.onnx")
    values = error.value.values
    assert "opset 26" in values["cumprod"] and "complex" in values["fft"]
    assert values["lgamma"].count("test_file.py:") == 2
    assert not list(tmp_path.iterdir())


def test_output_names(tmp_path):
    class Several(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(flow.ones(3))

        def forward(self, x, mask=None):
            return {"x": x, "twice": [x * 2, x * 2], "weight": self.weight}, x

    flow.onnx.export(Several(), flow.ones(2, 3), tmp_path / "a.onnx")
    written = onnx.load(tmp_path / "a.onnx")
    assert names(written)[1] == ["x_1", "output_1", "output_2", "weight_1", "output_4"]  # no value has two names
    got = run(written, np.full((2, 3), 3, "float32"))
    assert [float(a.max()) for a in got] == [3, 6, 6, 1, 3]
    flow.onnx.export(network(), X, tmp_path / "b.onnx", input_names=["features"], output_names=["logits"])
    assert names(onnx.load(tmp_path / "b.onnx"))[:2] == (["features"], ["logits"])
    with pytest.warns(flow.MinflowWarning, match="2 names for 1 inputs"):  # PyTorch names weights by them
        flow.onnx.export(network(), X, tmp_path / "b.onnx", input_names=["a", "b"])
    assert names(onnx.load(tmp_path / "b.onnx"))[0] == ["a"]
    with pytest.raises(flow.GraphError, match="output_names has a name twice"):
        flow.onnx.export(Several(), flow.ones(2, 3), tmp_path / "b.onnx", output_names=list("aabcd"))


def test_open_file(tmp_path):
    file = io.BytesIO()
    for target in (file, tmp_path / "a.onnx"):
        flow.onnx.export(network(), X, target)
    assert file.getvalue() == (tmp_path / "a.onnx").read_bytes()  # and the same bytes each time


def test_tied_and_captured_tensors(tmp_path):
    table = flow.tensor(np.arange(12, dtype="float32").reshape(4, 3))

    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.head = nn.Embedding(4, 3), nn.Linear(3, 4, bias=False)
            self.head.weight = self.embedding.weight

        def forward(self, x):
            return self.head(self.embedding(x) + table[x])

    model, x = Tied(), flow.tensor([1, 3, 0])
    flow.onnx.export(model, x, tmp_path / "a.onnx")
    written = onnx.load(tmp_path / "a.onnx")
    assert names(written)[2] >= {"embedding.weight"} and "head.weight" not in names(written)[2]
    np.testing.assert_allclose(run(written, x.numpy())[0], model(x).detach().numpy(), rtol=1e-5)


def test_half_precision_and_bfloat16_pass_the_checker(tmp_path):
    for dtype in (flow.float16, flow.bfloat16, flow.float64):
        flow.onnx.export(network().to(dtype), X.to(dtype), tmp_path / "a.onnx")
        assert onnx.load(tmp_path / "a.onnx").graph.input[0].type.tensor_type.elem_type in (10, 11, 16)


def test_mistakes_are_explained(tmp_path, monkeypatch):
    model = network()
    with pytest.raises(flow.GraphError, match="the path is of type int"):
        flow.onnx.export(model, X, 3)
    with pytest.raises(flow.GraphError, match="function"):
        flow.onnx.export(lambda x: x, X, tmp_path / "a.onnx")
    with pytest.raises(flow.GraphError, match="cannot be written"):
        flow.onnx.export(model, X, tmp_path)
    monkeypatch.setattr(writing, "MAX_WEIGHT_BYTES", 100)
    with pytest.raises(flow.GraphError, match="192 bytes|2 GB") as error:
        flow.onnx.export(model, X, tmp_path / "a.onnx")
    assert error.value.values["largest"] == "0.weight"
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(flow.MissingDependencyError, match=r"'onnx' \(extra 'onnx' of minflow-learn\)"):
        flow.onnx.export(model, X, tmp_path / "a.onnx")
    assert not list(tmp_path.iterdir())


def test_loaded_graph_needs_no_example(tmp_path):
    graph = Predict(network().eval())
    want = graph(X)
    flow.save(graph, tmp_path / "saved", dynamic={"features": {0: "batch"}})
    for example in (None, X):
        flow.onnx.export(flow.load_graph(tmp_path / "saved"), example, tmp_path / "a.onnx")
        written = onnx.load(tmp_path / "a.onnx")
        assert names(written)[0] == ["features"] and "model.3.bias" in names(written)[2]
        np.testing.assert_allclose(run(written, X.numpy())[0], want.numpy(), rtol=1e-5, atol=1e-6)
        assert session(written).get_inputs()[0].shape == ["batch", 6]


def test_predict_job(tmp_path):
    @flow.global_function(type="predict")
    def job(x: flow.typing.Numpy.Placeholder((4, 3))) -> flow.typing.Numpy:
        w = flow.get_variable("weights", (3, 2), initializer=flow.constant_initializer(0.5))
        return flow.matmul(x, w) * 2.0 + flow.ones(2)

    x = np.ones((4, 3), "float32")
    want = job(x)
    flow.onnx.export(job, None, tmp_path / "a.onnx")
    np.testing.assert_allclose(run(onnx.load(tmp_path / "a.onnx"), x)[0], want, rtol=1e-5)
