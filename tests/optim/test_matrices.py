"""Muon and Adafactor: training, refusals, graphs, states."""

import copy
import inspect

import pytest

import minflow as flow
from minflow import nn, optim


@pytest.mark.parametrize("cls", [optim.Muon, optim.Adafactor])
def test_training(cls):
    flow.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 16, bias=False), nn.Tanh(), nn.Linear(16, 2, bias=False))
    x, losses = flow.randn(32, 4), []
    y = x @ flow.randn(4, 2)
    optimizer = cls(model.parameters(), lr=0.05)
    for _ in range(60):
        loss = nn.functional.mse_loss(model(x), y)
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert losses[-1] < losses[0] / 5
    assert not optimizer.state[model[0].weight][next(iter(optimizer.state[model[0].weight]))].requires_grad
    assert copy.deepcopy(optimizer).state_dict()["param_groups"] == optimizer.state_dict()["param_groups"]


def test_closure():
    p = nn.Parameter(flow.ones(2, 2))

    def closure():
        p.grad = None
        loss = (p * p).sum()
        loss.backward()
        return loss

    optimizer = optim.Adafactor([p], lr=0.1)
    assert optimizer.step(closure).item() == 4 and p[0, 0].item() < 1
    with pytest.raises(flow.CallError, match="Adafactor.step takes a function"):
        optimizer.step(0.1)


W = flow.ones(2, 3, requires_grad=True)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: optim.Muon([flow.ones(3, requires_grad=True)]),
            "Muon does not update .* float32 and 1-d",
        ),
        (lambda: optim.Muon([W], momentum=-1), "momentum must be at least 0, got -1"),
        (lambda: optim.Muon([W], ns_steps=100), "ns_steps must be from 0 to 99, got 100"),
        (lambda: optim.Muon([W], ns_coefficients=(1.0, 2.0)), r"three numbers, got \(1.0, 2.0\)"),
        (lambda: optim.Muon([W], adjust_lr_fn="match"), "got 'match'"),
        (lambda: optim.Muon([W.detach().to(flow.complex64).requires_grad_()]), "which is complex64"),
        (lambda: optim.Adafactor([W], beta2_decay=0.5), "beta2_decay must be from -inf to 0, got 0.5"),
        (lambda: optim.Adafactor([W], d=0.5), "d must be at least 1, got 0.5"),
        (lambda: optim.Adafactor([W], eps=1e-3), "eps must be two numbers"),
        (lambda: optim.Adafactor([W], eps=(None, -1)), r"eps\[1\] must be at least 0, got -1"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(flow.OptimError, match=message):
        make()


@pytest.mark.parametrize("cls", [optim.Muon, optim.Adafactor])
def test_a_graph_refuses_them_by_name(cls):
    class Training(nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = nn.Linear(2, 2, bias=False)
            self.add_optimizer(cls(self.model.parameters(), lr=0.1))

    with pytest.raises(flow.GraphError, match=f"{cls.__name__} cannot be part of a graph"):
        Training()


def test_signatures_have_the_defaults_of_pytorch():
    defaults = {n: p.default for n, p in inspect.signature(optim.Muon).parameters.items() if n != "params"}
    assert defaults["weight_decay"] == 0.1 and defaults["momentum"] == 0.95 and defaults["ns_steps"] == 5
