"""Large models: the cost of a first call is linear in the number of layers; and deeply nested models."""

import gc
import time

import numpy as np
import pytest
from graph_models import FunctionGraph, Predict, TrainGraph

import minflow as flow
import minflow.typing as tp
from minflow import nn
from minflow.platforms import compiled
from tests.measuring import calls


def stepping(model, *inputs, optimizer=flow.optim.SGD, configure=lambda graph: None):
    """The call of a training graph of a model, whose result has the shape of its input."""
    graph = TrainGraph(model, nn.MSELoss(), optimizer(model.parameters(), lr=1e-3))
    configure(graph)
    x = flow.ones(*inputs or (4, 4))
    return lambda: graph(x, x)


def linear(layers, **options):
    return stepping(nn.Sequential(*[nn.Linear(4, 4) for _ in range(layers)]), **options)


def adam(layers):
    return linear(layers, optimizer=flow.optim.Adam)


def accumulating(layers):
    return linear(layers, configure=lambda graph: graph.config.set_gradient_accumulation_steps(2))


def showing(layers):
    """The outputs of all layers are kept."""
    return linear(layers, configure=lambda graph: graph.kept.update(f"model.{i}" for i in range(layers)))


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.norm = nn.Linear(4, 4), nn.LayerNorm(4)

    def forward(self, x):
        return x + self.norm(flow.relu(self.linear(x)))


def residual(layers):
    return stepping(nn.Sequential(*[Residual() for _ in range(layers)]))


def normalized(layers):
    pairs = [(nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4)) for _ in range(layers)]
    return nn.Sequential(*[nn.Sequential(*pair) for pair in pairs])


def convolutions(layers):
    return stepping(normalized(layers), 2, 4, 4, 4)


def checkpointed(layers):
    """Each checkpoint recomputes with the buffers as they were in forward."""
    model = normalized(layers)
    for block in model:
        block.to(nn.graph.GraphModule).activation_checkpointing = True
    return stepping(model, 2, 4, 4, 4)


class Average(nn.Module):
    """Assigns a buffer, and reads another one while it is traced."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.register_buffer("average", flow.zeros(4))
        self.register_buffer("scale", flow.tensor(2.0))

    def forward(self, x):
        y = self.linear(x) * self.scale.item()
        self.average = 0.9 * self.average + y.detach().mean(0)
        return y


def averages(layers):
    return stepping(nn.Sequential(*[Average() for _ in range(layers)]))


def branches(layers):
    modules = nn.ModuleList([nn.Linear(4, 4) for _ in range(layers)])

    class Branches(nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = modules

        def forward(self, x):
            return sum([part(x) for part in self.parts])

    return stepping(Branches())


def predicting(layers):
    graph = Predict(nn.Sequential(*[nn.Sequential(nn.Linear(4, 4), nn.ReLU()) for _ in range(layers)]))
    return lambda: graph(flow.ones(2, 4))


def elementwise(layers):
    def build(x):
        for _ in range(4 * layers):  # more than are fused into one loop
            x = x * 1.01 + 0.1
        return x

    graph = FunctionGraph(build)
    return lambda: graph(flow.ones(2, 4))


def outside(layers):
    """Layers and tensors that are not members: build reads them from the enclosing function."""
    modules, tensors = [nn.Linear(4, 4) for _ in range(layers)], [flow.ones(2, 4) for _ in range(layers)]

    def build(x):
        for module, tensor in zip(modules, tensors):
            x = module(x) + tensor + flow.tensor([1.0, 2.0, 3.0, 4.0])
        return x

    graph = FunctionGraph(build)
    return lambda: graph(flow.ones(2, 4))


def job(layers):
    flow.clear_default_session()
    rate = flow.optimizer.PiecewiseConstantScheduler([], [0.1])

    @flow.global_function(type="train")
    def train(x: tp.Numpy.Placeholder((4, 4))) -> tp.Numpy:
        for i in range(layers):
            x = flow.layers.dense(x, 4, kernel_initializer=flow.truncated_normal(0.1), name=f"dense{i}")
        flow.optimizer.SGD(rate).minimize(flow.math.square(x))
        return x

    return lambda: train(np.ones((4, 4), "float32"))


PROGRAMS = [linear, adam, accumulating, showing, residual, convolutions, checkpointed, averages, branches]
PROGRAMS += [predicting, elementwise, outside, job]


@pytest.mark.filterwarnings("ignore:.*build uses")
@pytest.mark.filterwarnings("ignore:.*the function uses")
@pytest.mark.parametrize("platform", ["numpy", "compiled"])
@pytest.mark.parametrize("make", PROGRAMS)
def test_first_call_is_linear_in_the_number_of_layers(make, platform, kernels_of_numpy):
    if platform == "compiled":
        pytest.importorskip("numba")
        compiled.use()
    make(3)()
    assert calls(make(120)) < 3.05 * calls(make(40))


@pytest.mark.filterwarnings("ignore:.*build uses")
@pytest.mark.slow
@pytest.mark.parametrize("make", [linear, predicting, outside])
def test_first_call_of_5000_layers_is_linear(make):
    """Calls are counted, and the processor time of C functions is far below that of a quadratic algorithm: 25 times.

    It is above five times, since 5,000 layers need more memory than caches have.
    """

    def seconds(layers):
        call = make(layers)
        start = time.process_time()
        call()
        return time.process_time() - start

    make(3)()
    assert calls(make(1000)) < 5.05 * calls(make(200))
    for _ in range(8):  # pairs, because under load a large model waits longer for memory than a small one
        small, large = seconds(1000), seconds(5000)
        if large < 8 * small:
            return
    raise AssertionError(f"1,000 layers {small:.2f} s, 5,000 layers {large:.2f} s of processor time")


@pytest.mark.filterwarnings("ignore:.*build uses")
@pytest.mark.parametrize("on", [True, False])
def test_garbage_collector_is_restored_after_a_build(on):
    seen = []

    def build(x):
        seen.append(gc.isenabled())
        return x @ x

    before = gc.isenabled()
    try:
        (gc.enable if on else gc.disable)()
        graph = FunctionGraph(build)
        graph(flow.ones(2, 2))
        assert gc.isenabled() is on
        with pytest.raises(flow.MinflowError, match="2.*3"):
            graph(flow.ones(2, 3))
        assert gc.isenabled() is on and set(seen) == {False} and len(seen) > 1
    finally:
        (gc.enable if before else gc.disable)()
