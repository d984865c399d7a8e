"""Saving and resuming: a resumed run continues bit for bit, and states are exchanged between graphs and modules."""

import numpy as np
import pytest
from graph_models import LeNet, Predict, TrainGraph, bits, state_bits

import minflow as flow
from minflow import nn


def data(step):
    rng = np.random.default_rng(step)
    return flow.tensor(rng.standard_normal((4, 1, 28, 28)).astype("float32")), flow.tensor(rng.integers(0, 10, 4))


OPTIMIZERS = {
    "sgd": lambda ps: flow.optim.SGD(ps, lr=0.1),
    "momentum": lambda ps: flow.optim.SGD(ps, lr=0.1, momentum=0.9, dampening=0.1),
    "adam": lambda ps: flow.optim.Adam(ps, lr=0.01, amsgrad=True),
    "adamw": lambda ps: flow.optim.AdamW(ps, lr=0.01),
}


def trainer(kind, seed):
    flow.manual_seed(seed)
    model = LeNet(p=0.5)
    optimizer = OPTIMIZERS[kind](model.parameters())
    scheduler = flow.optim.lr_scheduler.CosineAnnealingLR(optimizer, 8)
    return model, optimizer, scheduler, TrainGraph(model, nn.CrossEntropyLoss(), optimizer, lr_sch=scheduler)


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("after", [0, 2])
def test_resumed_run_equals_the_uninterrupted_one(kind, after, tmp_path):
    model, optimizer, scheduler, graph = trainer(kind, 0)
    for step in range(3):
        graph(*data(step))
    flow.save(graph.state_dict(), tmp_path / "checkpoint")
    expected = [bits(graph(*data(step))) for step in range(3, 7)]
    final, rate = state_bits(model, optimizer), graph.lr
    again, other, schedule, fresh = trainer(kind, 99)
    for step in range(after):  # before the first call, or after some
        fresh(*data(step + 50))
    fresh.load_state_dict(flow.load(tmp_path / "checkpoint"))
    assert [bits(fresh(*data(step))) for step in range(3, 7)] == expected
    assert state_bits(again, other) == final and fresh.lr == rate and schedule.last_epoch == scheduler.last_epoch
    assert len(fresh._plans) == 1 and fresh._steps == 7 and other._steps_taken == 7


def test_contents_of_a_state():
    model, optimizer, _, graph = trainer("momentum", 0)
    graph(*data(0))
    state = graph.state_dict()
    assert list(state["model"]) == list(model.state_dict()) and not state["loss_fn"]
    assert state["System-Train-TrainStep"].tolist() == [1]
    assert bits(state["model.fc1.weight-momentum_buffer"]) == bits(optimizer.state[model.fc1.weight]["momentum_buffer"])
    held = bits(state["model"]["fc1.weight"])
    graph(*data(1))
    assert bits(state["model"]["fc1.weight"]) == held != bits(model.fc1.weight)  # a copy: later steps do not change it


def test_states_are_exchanged_between_graphs_and_modules():
    model, _, _, graph = trainer("sgd", 0)
    graph(*data(0))
    twin = LeNet(p=0.5)
    predict = Predict(twin)
    predict.load_state_dict(model.state_dict())
    assert state_bits(twin) == state_bits(model)
    other = LeNet(p=0.5)
    other.load_state_dict(graph.state_dict()["model"])
    assert state_bits(other) == state_bits(model)
    graph.load_state_dict({"model": twin.state_dict()}, strict=False)
    assert Predict(model).state_dict().keys() == {"model"}


def test_mismatched_moment_writes_nothing():
    """Other mismatches: `test_mistakes_settings.py`."""
    model, optimizer, _, graph = trainer("momentum", 0)
    graph(*data(0))
    state = graph.state_dict()
    graph(*data(1))
    before, steps = state_bits(model, optimizer), graph._steps
    with pytest.raises(flow.MinflowError, match="momentum_buffer"):
        graph.load_state_dict({**state, "model.fc1.weight-momentum_buffer": flow.zeros(3)})
    assert state_bits(model, optimizer) == before and graph._steps == steps


def test_accumulation_and_two_optimizers_resume(tmp_path):
    def make(seed):
        flow.manual_seed(seed)
        model = LeNet(p=0.0)
        head = [model.fc2.weight, model.fc2.bias]
        rest = [p for p in model.parameters() if p is not head[0] and p is not head[1]]
        optimizers = flow.optim.SGD(rest, lr=0.1, momentum=0.9), flow.optim.Adam(head, lr=0.01)
        graph = TrainGraph(model, nn.CrossEntropyLoss(), *optimizers)
        graph.config.set_gradient_accumulation_steps(2)
        return model, optimizers, graph

    model, optimizers, graph = make(0)
    graph(*data(0))
    flow.save(graph.state_dict(), tmp_path / "two.safetensors")
    expected = [graph(*data(step)).tolist() for step in (1, 2)]
    again, others, fresh = make(5)
    fresh.load_state_dict(flow.load(tmp_path / "two.safetensors"))
    assert [fresh(*data(step)).tolist() for step in (1, 2)] == expected
    for mine, theirs in zip(optimizers, others):
        assert state_bits(model, mine) == state_bits(again, theirs)
