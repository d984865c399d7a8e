"""Large models: the cost of a first call is linear in the number of layers; and deeply nested models."""

import gc
import time

import pytest
from graph_models import FunctionGraph, Predict, TrainGraph

import minflow as flow
from minflow import nn
from tests.measuring import calls


def trained(layers):
    flow.manual_seed(0)
    model = nn.Sequential(*[nn.Linear(4, 4) for _ in range(layers)])
    graph = TrainGraph(model, nn.CrossEntropyLoss(), flow.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))
    return lambda: graph(flow.ones(2, 4), flow.tensor([0, 1]))


def predicting(layers):
    graph = Predict(nn.Sequential(*[nn.Sequential(nn.Linear(4, 4), nn.ReLU()) for _ in range(layers)]))
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


@pytest.mark.filterwarnings("ignore:.*build uses")
@pytest.mark.parametrize("make", [trained, predicting, outside])
def test_first_call_is_linear_in_the_number_of_layers(make):
    make(3)()
    assert calls(make(300)) < 5.2 * calls(make(60))


@pytest.mark.filterwarnings("ignore:.*build uses")
@pytest.mark.slow
@pytest.mark.parametrize("make", [trained, predicting, outside])
def test_first_call_of_5000_layers_takes_at_most_six_times_that_of_1000(make):
    def seconds(layers):
        call = make(layers)
        start = time.process_time()
        call()
        return time.process_time() - start

    make(3)()
    for _ in range(8):  # pairs, because under load a large model waits longer for memory than a small one
        small, large = seconds(1000), seconds(5000)
        if large < 10 and large < 6 * small:
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
        assert gc.isenabled() is on and seen == [False, False]
    finally:
        (gc.enable if before else gc.disable)()
