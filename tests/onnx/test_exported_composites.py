"""Composite ops in ONNX files: one node where a converter exists, the nodes of the decomposition elsewhere."""

import numpy as np
import pytest

import minflow as flow
from minflow import nn
from minflow.nn import functional as F
from minflow.onnx.builder import CONVERTERS
from tests.onnx.helpers import run


class Norms(nn.Module):
    def __init__(self):
        super().__init__()
        self.group, self.layer = nn.GroupNorm(2, 4), nn.LayerNorm(6)
        with flow.no_grad():
            for i, parameter in enumerate(self.parameters()):
                parameter.copy_(flow.linspace(0.5, 1.5, parameter.numel()) + i)

    def forward(self, x):
        return self.layer(self.group(x) * x.mean())


class InputGradient(nn.Graph):
    """The gradient of a loss by the input, in a graph that predicts."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def build(self, x):
        x = x.detach().requires_grad_()
        return flow.autograd.grad(self.model(x).pow(3).sum(), x)[0]


@pytest.fixture
def no_converters(monkeypatch):
    for name in ("layer_norm", "group_norm"):
        monkeypatch.delitem(CONVERTERS, name)


def images(n):
    return flow.tensor(np.random.default_rng(n).standard_normal((n, 4, 6)).astype("float32"))


def kinds(program):
    return [node.op_type for node in program.model_proto.graph.node]


def close(found, wanted):
    np.testing.assert_allclose(found, wanted.detach().numpy(), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("name", ["group", "layer", "both"])
@pytest.mark.parametrize("dynamic", [None, {"x": {0: "batch"}}])
def test_decompositions_have_the_results_of_the_op(name, dynamic, no_converters):
    """Sizes within a decomposition depend on dynamic axes too: those of the ones that scale the groups."""
    norms = Norms().eval()
    model = norms if name == "both" else nn.Sequential(getattr(norms, name))
    decomposed = flow.onnx.export(model, images(3), input_names=["x"], dynamic=dynamic)
    assert not {"LayerNormalization", "InstanceNormalization"} & {*kinds(decomposed)}
    for n in (3,) if dynamic is None else (1, 2, 3, 5):
        close(run(decomposed.model_proto, images(n).numpy())[0], model(images(n)))


def test_one_node_where_a_converter_exists():
    model = Norms().eval()
    program = flow.onnx.export(model, images(3), dynamic={"x": {0: "batch"}})
    assert {"LayerNormalization", "InstanceNormalization"} <= {*kinds(program)}
    close(run(program.model_proto, images(5).numpy())[0], model(images(5)))


def test_names_of_the_other_nodes_stay(no_converters):
    """They are the names in the listing of the graph; those of a decomposition have its scope."""
    program = flow.onnx.export(Norms().eval(), images(3))
    names = [node.name for node in program.model_proto.graph.node]
    assert "mean-0/ReduceMean" in names and any(name.startswith("layer/layer_norm-mean-0/") for name in names), names
    assert len({*names}) == len(names)


@pytest.mark.parametrize("dynamic", [None, {"x": {0: "batch"}}])
def test_a_node_that_its_converter_refuses_is_decomposed(dynamic, monkeypatch):
    """Only that node; the converters of the others are used."""
    convert = CONVERTERS["layer_norm"]

    def of_rows_of_six(b, node, x, *params):
        if node.inputs[0].spec.shape[-1] != 6:
            b.refuse("has rows of another size", "rows of six")
        return convert(b, node, x, *params)

    monkeypatch.setitem(CONVERTERS, "layer_norm", of_rows_of_six)
    model = nn.Sequential(nn.LayerNorm(6), nn.LayerNorm((4, 6)), nn.Flatten(), nn.LayerNorm(24)).eval()
    program = flow.onnx.export(model, images(3), input_names=["x"], dynamic=dynamic)
    assert kinds(program).count("LayerNormalization") == 2 and "Sqrt" in kinds(program)
    for n in (3,) if dynamic is None else (1, 5):
        close(run(program.model_proto, images(n).numpy())[0], model(images(n)))


def test_refusals_within_a_refused_node_are_reported(monkeypatch):
    graph = InputGradient(Norms().layer)
    graph(images(3))
    name = "layer_norm_grad"
    monkeypatch.setitem(CONVERTERS, name, lambda b, node, *inputs: b.refuse("is a gradient"))
    with pytest.raises(flow.GraphError, match="sum_to  its shape depends on batch.* in model/layer_norm"):
        flow.onnx.export(graph, dynamic={"x": {0: "batch"}})


def test_gradients_are_decomposed(tmp_path):
    graph = InputGradient(Norms().layer)
    wanted = graph(images(3))
    close(run(flow.onnx.export(graph).model_proto, images(3).numpy())[0], wanted)
    flow.save(graph, tmp_path / "graph")
    again = flow.onnx.export(flow.load_graph(tmp_path / "graph"))
    close(run(again.model_proto, images(3).numpy())[0], wanted)


def test_refusals_name_the_inner_op_and_the_composite(no_converters):
    graph = InputGradient(Norms())
    graph(images(3))
    with pytest.raises(flow.GraphError, match="batch_norm_grad  has no ONNX equivalent; .* in model.group/group_norm"):
        flow.onnx.export(graph)
    graph = InputGradient(Norms().layer)
    graph(images(3))
    with pytest.raises(flow.GraphError, match="sum_to  its shape depends on batch.* in model/layer_norm"):
        flow.onnx.export(graph, dynamic={"x": {0: "batch"}})


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


@pytest.mark.parametrize(
    ("function", "converted", "decomposed"),
    [
        (lambda x: F.pixel_shuffle(x, 2), "DepthToSpace", ("float32", "int64")),
        (lambda x: F.pixel_shuffle(x[0], 2), "DepthToSpace", ("", "float32")),
        (lambda x: F.pad(x, (1, 2, 1, 0), "reflect"), "Pad", ("float32", "int64")),
        (lambda x: F.pad(x, (1, 2, 0, -1), "reflect"), "Pad", ("", "float32")),
        (lambda x: F.pad(x, (1, 2, 1, 0), "circular"), "Pad", ("", "float32")),
    ],
)
def test_other_nodes_of_a_converted_op_are_decomposed(function, converted, decomposed):
    """onnxruntime's operators support fewer dtypes and options than the op. decomposed: dtypes with and without it."""
    for dtype, found in zip(decomposed, (True, False)):
        if dtype:
            x = np.arange(144).reshape(2, 8, 3, 3).astype(dtype)
            program = flow.onnx.export(Function(function).eval(), flow.tensor(x))
            assert (converted in kinds(program)) is found
            close(run(program.model_proto, x)[0], function(flow.tensor(x)))


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("single", [True, False])
def test_convolutions_are_one_node(axes, single):
    """A batch or one example, with output_padding of more than a stride."""
    rng = np.random.default_rng(axes)
    x = rng.standard_normal((2, 4, *[3] * axes)[single:]).astype("float32")
    options = dict(stride=1, padding=1, output_padding=2, dilation=3, groups=2)
    layer = getattr(nn, f"ConvTranspose{axes}d")(4, 6, 2, **options).eval()
    layers = [layer, getattr(nn, f"Conv{axes}d")(6, 4, 2, stride=2, groups=2).eval()]
    for steps in layers[:1], layers:
        model = nn.Sequential(*steps)
        program = flow.onnx.export(model, flow.tensor(x))
        close(run(program.model_proto, x)[0], model(flow.tensor(x)))
    bias = {"Reshape", "Add"} if axes == 2 else set()  # of Conv2d, which is not a composite op
    assert set(kinds(program)) - {"Unsqueeze", "Squeeze"} == {"Pad", "ConvTranspose", "Conv"} | bias
    assert kinds(program).count("ConvTranspose") == 1 and kinds(program).count("Conv") == 1
