"""Whole models as ONNX files: values of onnxruntime against ours, and the names of parameters.

Batch norms have the statistics of a batch, not 0 and 1, and no parameter is all zeros, as some layers are initialized.
One size of each family is small enough for every run; the others are slow. Errors are relative to the largest element
of an output.
"""

import re

import numpy as np
import onnx
import pytest

import minflow as flow
from minflow import nn
from minflow.models.gpt import GPT, GPTConfig
from minflow.vision import models
from tests.onnx.helpers import run

AIM = 1e-5


def randomized(model, *inputs):
    """The model in eval mode, with nonzero values where a layer is initialized with zeros, and batch norms as after
    training.

    inputs: give the running statistics, so that they are neither 0 and 1 nor far from the data. Variances are at least
    0.1: that of 4 elements may be tiny, and dividing by its root would magnify rounding errors. Weights are below 1:
    with 1, fifty residual blocks would magnify rounding errors as well.
    """
    rng = np.random.default_rng(0)
    norms = [m for m in model.modules() if isinstance(m, nn.BatchNorm2d)]
    with flow.no_grad():
        for name, parameter in model.named_parameters():
            if not parameter.numpy().any():
                parameter.copy_(flow.tensor(rng.normal(0, 0.05, parameter.shape).astype("float32")))
        for norm in norms:
            norm.momentum = 0.9
            norm.weight.copy_(flow.tensor(rng.uniform(0.2, 0.6, norm.weight.shape).astype("float32")))
        if norms:
            model.train()(*inputs)
    assert all(norm.running_mean.numpy().any() and (norm.running_var.numpy() != 1).any() for norm in norms)
    return model.eval()


def randomized_by(make, shape):
    """An image model with batch norm statistics of a batch of at least 4."""
    return randomized(make(), images(max(4, shape[0]), *shape[1:]))


def images(*shape):
    return flow.tensor(np.random.default_rng(1).standard_normal(shape).astype("float32"))


def tokens(n, steps, vocabulary):
    return flow.tensor(np.random.default_rng(1).integers(0, vocabulary, (n, steps)))


def flat(x):
    """Tensors of nested results, in order."""
    if isinstance(x, dict):
        x = list(x.values())
    return [t for each in x for t in flat(each)] if isinstance(x, list | tuple) else [] if x is None else [x]


def error(got, want):
    """Largest difference relative to the largest element."""
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    return float(np.abs(got - want).max() / np.abs(want).max())


def check(model, *inputs, path):
    """Export the model, run it, compare all results and find its parameters; return the ModelProto."""
    flow.onnx.export(model, inputs, path)
    proto = onnx.load(path)
    onnx.checker.check_model(proto, full_check=True)
    want = [t.numpy() for t in flat(model(*inputs))]
    got = run(proto, *[x.numpy() for x in inputs])
    for a in want:  # otherwise errors would mean little
        assert a.size == 1 or a.std(dtype="float64") > 0.002 * np.abs(a).max()
    errors = [error(a, b) for a, b in zip(got, want, strict=True)]
    print(
        f"{type(model).__name__}: error {max(errors):.1e}, {len(proto.graph.node)} nodes, "
        f"{path.stat().st_size / 1e6:.2f} MB"
    )
    assert max(errors) <= AIM
    arrays = {i.name: onnx.numpy_helper.to_array(i) for i in proto.graph.initializer}
    names = {}  # of each parameter; a shared one has several, of which the file has one
    for name, parameter in model.state_dict(keep_vars=True).items():
        if isinstance(parameter, nn.Parameter):
            names.setdefault(id(parameter), (parameter, set()))[1].add(name)
    for parameter, known in names.values():
        (name,) = known & set(arrays)
        assert (arrays[name] == parameter.numpy()).all()
    return proto


FAMILIES = {
    "lenet": (lambda: models.lenet(), (2, 1, 28, 28)),
    "resnet18": (lambda: models.resnet18(num_classes=10), (1, 3, 64, 64)),
    "mobilenet_v2": (lambda: models.mobilenet_v2(num_classes=10), (2, 3, 32, 32)),
    "squeezenet1_1": (lambda: models.squeezenet1_1(num_classes=10), (2, 3, 40, 40)),
    "vit_tiny": (lambda: models.vit_tiny(), (2, 3, 32, 32)),
    "unet": (lambda: models.UNet(3, 2, width=4), (1, 3, 33, 40)),
    "unet, bilinear": (lambda: models.UNet(3, 2, bilinear=True, width=4), (1, 3, 33, 40)),
    "dcgan generator": (lambda: models.DCGANGenerator(8, 4, 3, 16), (2, 8, 1, 1)),
    "dcgan discriminator": (lambda: models.DCGANDiscriminator(3, 32, 16), (4, 3, 16, 16)),
    "style transfer": (lambda: models.neural_style_transfer(), (1, 3, 16, 20)),
}
SIZES = {  # one VGG: the others have the same layers in other sizes, and each takes half a minute to initialize
    "alexnet": 64,
    "vgg16": 32,
    "resnet34": 64,
    "resnet50": 64,
    "resnet152": 64,
    "resnext50_32x4d": 64,
    "squeezenet1_0": 64,
    "vit_b_16": 224,
}


@pytest.mark.parametrize("name", FAMILIES)
def test_model_family(name, tmp_path):
    flow.manual_seed(0)
    make, shape = FAMILIES[name]
    check(randomized_by(make, shape), images(*shape), path=tmp_path / "model.onnx")


@pytest.mark.slow
@pytest.mark.parametrize("name", SIZES)
def test_another_size(name, tmp_path):
    flow.manual_seed(0)
    shape = (1, 3, SIZES[name], SIZES[name])
    check(randomized_by(lambda: models.get_model(name), shape), images(*shape), path=tmp_path / "model.onnx")


def family(name):
    return re.match("[a-z]+", name.removeprefix("wide_"))[0]


def test_every_listed_family_is_tested():
    assert {family(name) for name in models.list_models()} - set(map(family, (*FAMILIES, *SIZES))) == {"neural"}


# ---- text models -----------------------------------------------------------------------------------------------------


class Recurrent(nn.Module):
    """A language model: logits (N, T, words) of tokens (N, T), and the states at the end."""

    def __init__(self, kind, words=20, hidden=16, **options):
        super().__init__()
        self.embedding = nn.Embedding(words, 8)
        self.layers = getattr(nn, kind)(8, hidden, num_layers=2, batch_first=True, dropout=0.1, **options)
        self.head = nn.Linear(hidden * (2 if self.layers.bidirectional else 1), words)

    def forward(self, x, states=None):
        y, states = self.layers(self.embedding(x), states)
        return self.head(y), states


@pytest.mark.parametrize("options", [{}, {"bidirectional": True}, {"bias": False}], ids=["plain", "both", "no bias"])
@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_recurrent_language_model(kind, options, tmp_path):
    flow.manual_seed(0)
    proto = check(randomized(Recurrent(kind, **options)), tokens(3, 7, 20), path=tmp_path / "model.onnx")
    layers = [node for node in proto.graph.node if node.op_type == kind]
    assert len(layers) == (4 if "bidirectional" in options else 2)


def test_projected_lstm_is_a_loop(tmp_path):
    flow.manual_seed(0)
    model = nn.LSTM(5, 6, num_layers=2, proj_size=3, bidirectional=True)
    proto = check(model.eval(), images(7, 2, 5), path=tmp_path / "model.onnx")
    assert sum(node.op_type == "Scan" for node in proto.graph.node) == 4
    others = [images(n, batch, 5) for n, batch in ((1, 3), (9, 1))]
    check_at(model, images(7, 2, 5), others, {0: {0: "time", 1: "batch"}}, tmp_path / "x.onnx")


@pytest.mark.parametrize("kind, count", [("LSTM", 2), ("GRU", 1), ("RNN", 1)])
def test_initial_states(kind, count, tmp_path):
    flow.manual_seed(0)

    class WithStates(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = getattr(nn, kind)(5, 4, **({"nonlinearity": "relu"} if kind == "RNN" else {}))
            self.count = count

        def forward(self, x, *states):
            return self.layer(x, states if self.count == 2 else states[0])

    check(WithStates().eval(), images(6, 2, 5), *[images(1, 2, 4)] * count, path=tmp_path / "model.onnx")


def test_gpt(tmp_path):
    flow.manual_seed(0)
    model = randomized(GPT(GPTConfig(block_size=16, vocab_size=40, n_layer=2, n_head=2, n_embd=32)))
    check(model, tokens(2, 12, 40), path=tmp_path / "model.onnx")


def test_gpt_with_its_loss(tmp_path):
    flow.manual_seed(0)
    model = randomized(GPT(GPTConfig(block_size=16, vocab_size=40, n_layer=1, n_head=2, n_embd=32)))
    targets = tokens(2, 12, 40)
    targets[0, 3:6] = -1
    check(model, tokens(2, 12, 40), targets, path=tmp_path / "model.onnx")


class Encoder(nn.Module):
    """A classifier of texts into 4 classes."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(20, 16)
        layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(16))
        self.head = nn.Linear(16, 4)

    def forward(self, x):
        return self.head(self.encoder(self.embedding(x), src_key_padding_mask=x == 0).mean(1))


def test_transformer_encoder(tmp_path):
    flow.manual_seed(0)
    x = tokens(3, 6, 20)
    x[1, 4:] = 0
    check(randomized(Encoder()), x, path=tmp_path / "model.onnx")


# ---- arguments and results -------------------------------------------------------------------------------------------


class Nested(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(3, 4), nn.Linear(5, 4)

    def forward(self, x, y):
        a, b = self.first(x), self.second(y)
        return {"sum": a + b, "parts": (a, [b, a * b])}


def test_two_inputs_and_nested_outputs(tmp_path):
    flow.manual_seed(0)
    proto = check(Nested().eval(), images(2, 3), images(2, 5), path=tmp_path / "model.onnx")
    assert [x.name for x in proto.graph.input] == ["x", "y"] and len(proto.graph.output) == 4


def test_batch_norm_in_training_is_refused(tmp_path):
    class Training(nn.Graph):
        def __init__(self, model):
            super().__init__()
            self.model = model

        def build(self, x):
            return self.model(x)

    graph = Training(nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)))
    with pytest.raises(flow.GraphError, match=r"batch_norm.*running statistics(.|\n)*model.eval\(\)"):
        flow.onnx.export(graph, images(2, 3, 8, 8), tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())
    free = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4, track_running_stats=False))
    check(free, images(2, 3, 8, 8), path=tmp_path / "model.onnx")


# ---- other sizes -----------------------------------------------------------------------------------------------------


def check_at(model, example, others, dynamic, path):
    """Export with one example; the file gives the results of the model for the others."""
    flow.onnx.export(model, example, path, dynamic=dynamic)
    proto = onnx.load(path)
    for x in others:
        for a, b in zip(run(proto, x.numpy()), flat(model(x)), strict=True):
            assert error(a, b.numpy()) <= AIM


@pytest.mark.parametrize("name", ["lenet", "vit_tiny", "unet", "dcgan generator", "style transfer"])
def test_other_batch_sizes(name, tmp_path):
    flow.manual_seed(0)
    make, (_, *shape) = FAMILIES[name]
    others = [images(1, *shape), images(5, *shape)]
    check_at(randomized_by(make, (2, *shape)), images(2, *shape), others, {0: {0: "batch"}}, tmp_path / "x.onnx")


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "GPT"])
def test_other_batch_sizes_and_lengths(kind, tmp_path):
    flow.manual_seed(0)
    if kind == "GPT":
        model = GPT(GPTConfig(block_size=16, vocab_size=20, n_layer=1, n_head=2, n_embd=16))
    else:
        model = Recurrent(kind, bidirectional=True)
    others = [tokens(n, steps, 20) for n, steps in ((1, 7), (4, 3), (3, 13))]
    check_at(randomized(model), tokens(2, 5, 20), others, {0: {0: "batch", 1: "time"}}, tmp_path / "x.onnx")


def test_other_image_sizes(tmp_path):
    flow.manual_seed(0)
    others = [images(n, 3, *size) for n, *size in ((1, 32, 40), (3, 40, 32), (2, 47, 39))]
    check_at(
        randomized_by(lambda: models.mobilenet_v2(num_classes=10), (4, 3, 32, 32)),
        images(1, 3, 32, 32),
        others,
        {0: {0: "batch", 2: "height", 3: "width"}},
        tmp_path / "x.onnx",
    )


def test_constant_subgraphs_are_folded(tmp_path):
    """The file has no node for a mask, and both blocks share it; the same for the coordinates of an image's pixels."""
    flow.manual_seed(0)
    model = GPT(GPTConfig(block_size=16, vocab_size=40, n_layer=2, n_head=2, n_embd=32)).eval()
    proto = check(model, tokens(2, 12, 40), path=tmp_path / "model.onnx")
    masks = [i for i in proto.graph.initializer if list(i.dims) == [12, 12]]
    assert len(masks) == 1 and not {"Trilu", "ConstantOfShape"} & {node.op_type for node in proto.graph.node}
    read = {name for node in proto.graph.node for name in node.input}
    assert all(i.name in read for i in proto.graph.initializer)
