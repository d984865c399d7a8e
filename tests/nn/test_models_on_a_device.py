"""Whole models on a device that is not the CPU: the stand-in of `tests/strict_backend.py`, which counts host copies."""

import numpy as np
import pytest

import minflow as flow
from minflow import nn, typing as tp
from minflow.core.kernels import EAGER_PLATFORMS, REFERENCE, use_platforms
from minflow.job.session import default_session
from minflow.vision.models import MobileNetV2
from minflow.vision.models.resnet import BasicBlock, ResNet
from tests.graph_models import GPT, MLP, LeNet
from tests.strict_backend import UPLOADS, counted, strict_cuda


def images(channels, size, classes):
    return lambda: (flow.randn(4, channels, size, size), flow.randint(0, classes, (4,)))


def sequences():
    tokens = flow.randint(0, 17, (3, 9))
    return tokens[:, :-1], tokens[:, 1:]


def loss_of(logits, target):
    return nn.functional.cross_entropy(logits.flatten(0, -2), target.flatten())


class Reader(nn.Module):
    """An LSTM that predicts the next token."""

    def __init__(self):
        super().__init__()
        self.embed, self.lstm, self.out = nn.Embedding(17, 6), nn.LSTM(6, 8, 2, batch_first=True), nn.Linear(8, 17)

    def forward(self, tokens):
        return self.out(self.lstm(self.embed(tokens))[0])


SETTING = [[1, 8, 1, 1], [4, 12, 1, 2]]  # expansion, channels, blocks, stride
MODELS = {  # name: (model, its inputs and targets, learning rate)
    "MLP": (MLP, lambda: (flow.randn(6, 20), flow.randint(0, 5, (6,)))),
    "LeNet": (LeNet, images(1, 28, 10)),
    "MobileNetV2": (lambda: MobileNetV2(num_classes=5, inverted_residual_setting=SETTING), images(3, 32, 5)),
    "ResNet": (lambda: ResNet(BasicBlock, [1, 1, 1, 1], num_classes=5), images(3, 32, 5)),
    "GPT": (GPT, sequences),
    "LSTM": (Reader, sequences),
}
OPTIMIZERS = {
    "MLP": flow.optim.Adam,
    "LeNet": flow.optim.SGD,
    "MobileNetV2": flow.optim.RMSprop,
    "ResNet": flow.optim.SGD,
    "GPT": flow.optim.AdamW,
    "LSTM": flow.optim.Adam,
}


class Training(nn.Graph):
    def __init__(self, model, optimizer):
        super().__init__()
        self.model = model
        self.config.exact(True)
        self.add_optimizer(optimizer)

    def build(self, x, y):
        loss = loss_of(self.model(x), y)
        loss.backward()
        return loss


class Predict(nn.Graph):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def build(self, x):
        return self.model(x)


def train(name, device, mode):
    """Three steps: (losses, the elements of all parameters and buffers, copies to the host)."""
    flow.manual_seed(0)
    make, data = MODELS[name]
    model, (x, y) = make().to(device), data()
    x, y = x.to(device), y.to(device)
    optimizer = OPTIMIZERS[name](model.parameters(), lr=0.01)
    graph = Training(model, optimizer) if mode == "graph" else None
    losses, uploads = [], 0
    with counted() as copies:
        for _ in range(3):
            uploads = -UPLOADS.total()
            if graph is not None:
                losses.append(graph(x, y))
            else:
                optimizer.zero_grad()
                loss = loss_of(model(x), y)
                loss.backward()
                optimizer.step()
                losses.append(loss.detach())
            uploads += UPLOADS.total()
    # this GPT makes positions on the host in each step, which a graph has as a constant
    assert uploads == (2 if device == "cuda" and (name, mode) == ("GPT", "eager") else 0)
    assert all(t.device.type == device for t in (*losses, *model.state_dict().values()))
    return [bits(t) for t in losses], {k: bits(t) for k, t in model.state_dict().items()}, dict(copies)


def requested(copies):
    """The copies of results; checks of elements are read with each."""
    checks = sum([n for place, n in copies.items() if place.endswith("report_pending")])
    assert checks <= sum(copies.values()) - checks
    return sum(copies.values()) - checks


def bits(t):
    return t.dtype, tuple(t.shape), t.detach().cpu().numpy().tobytes()


@pytest.fixture(autouse=True)
def reference_kernels():
    """The only ones that other devices have; those of NumPy and the compiled ones add in another order."""
    before = EAGER_PLATFORMS["cpu"]
    use_platforms("cpu", [REFERENCE])
    yield
    use_platforms("cpu", before)


@pytest.mark.parametrize("mode", ["eager", "graph"])
@pytest.mark.parametrize("name", MODELS)
def test_training_has_the_bits_of_the_cpu_and_reads_nothing(name, mode):
    with strict_cuda():
        there = train(name, "cuda", mode)
    assert there == (*train(name, "cpu", mode)[:2], {})


@pytest.mark.parametrize("name", MODELS)
def test_job_predicts_with_a_captured_model(name):
    """It copies to the host only what it returns."""

    def predict(device):
        flow.manual_seed(0)
        make, data = MODELS[name]
        model, (x, _) = make().eval().to(device), data()
        array = x.numpy()
        placeholder = tp.Numpy.Placeholder(array.shape, dtype=x.dtype)

        def forward(x: placeholder) -> tp.Numpy:
            return model(x.to(device))

        job = flow.global_function()(forward)
        job(array)
        with counted() as copies:
            results = [job(array) for _ in range(2)]
        return [a.tobytes() for a in results], dict(copies)

    with strict_cuda():
        there, copies = predict("cuda")
    assert there == predict("cpu")[0] and requested(copies) == 2


def test_job_trains_where_it_is_placed():
    def train_job(tag):
        flow.clear_default_session()
        flow.manual_seed(0)
        config = flow.function_config()
        config.default_placement_scope(flow.scope.placement(tag, "0:0"))
        start = flow.random_normal_initializer(stddev=0.1)

        @flow.global_function(type="train", function_config=config)
        def train(x: tp.Numpy.Placeholder((6, 8)), y: tp.Numpy.Placeholder((6,), dtype=flow.int64)) -> tp.Numpy:
            h = flow.layers.dense(x, 16, activation=flow.math.relu, kernel_initializer=start, name="first")
            logits = flow.layers.dense(h, 4, kernel_initializer=start, name="second")
            loss = flow.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
            flow.optimizer.Adam(flow.optimizer.PiecewiseConstantScheduler([], [0.01])).minimize(loss)
            return loss

        rng = np.random.default_rng(0)
        x, y = rng.standard_normal((6, 8)).astype("f4"), rng.integers(0, 4, 6)
        train(x, y)
        with counted() as copies:
            losses = [train(x, y).tobytes() for _ in range(3)]
        variables = default_session().variables
        assert {v.device.type for v in variables.values()} == {"cuda" if tag == "gpu" else "cpu"}
        return losses, {name: v.numpy().tobytes() for name, v in variables.items()}, dict(copies)

    with strict_cuda():
        losses, variables, copies = train_job("gpu")
    assert (losses, variables) == train_job("cpu")[:2] and requested(copies) == 3


def test_tensors_made_in_a_job_are_where_it_is_placed():
    """Whatever the default device of the program is."""

    def run(tag):
        config = flow.function_config()
        config.default_placement_scope(flow.scope.placement(tag, "0:0"))

        @flow.global_function(function_config=config)
        def add(x: tp.Numpy.Placeholder((3,))) -> tp.Numpy:
            made = flow.ones(3)
            assert made.device.type == ("cuda" if tag == "gpu" else "cpu")
            return x + made

        return add(np.zeros(3, "float32")).tolist()

    with strict_cuda():
        for tag in ("cpu", "gpu"):
            flow.clear_default_session()
            with flow.device("cuda"):
                assert run(tag) == [1, 1, 1]


def test_graphs_on_a_device_have_no_compiled_kernels():
    from minflow.platforms import compiled

    before = compiled.used()
    compiled.use(True)
    try:
        with strict_cuda():
            graph = Predict(nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 8)).to("cuda"))
            x = flow.randn(512, 20, device="cuda")
            assert (graph(x) - graph.model(x)).abs().max().item() < 1e-5
    finally:
        compiled.use(before)
