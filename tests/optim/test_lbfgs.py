"""LBFGS against PyTorch, step by step; its errors and state."""

import numpy as np
import pytest

import minflow as flow
from minflow import nn
from minflow.core.base.errors import GraphError, OptimError
from tests.graphs import Training
from tests.pytorch import needs_torch, torch


def rosenbrock(x, y):
    return ((1 - x[:1]) ** 2 + 100 * (y - x[:1] ** 2) ** 2).sum() + (x[1:] ** 4).sum()


def run(L, options, steps, dtype="float64"):
    x, y = (L.tensor(np.array(a, dtype), requires_grad=True) for a in ([-1.2, 0.7], [1.0]))
    optimizer, losses = L.optim.LBFGS([x, y], **options), []

    def closure():
        optimizer.zero_grad()
        loss = rosenbrock(x, y)
        loss.backward()
        return loss

    for _ in range(steps):
        losses.append(float(optimizer.step(closure)))
    state = optimizer.state_dict()["state"][0]
    return losses, [*x.detach().tolist(), *y.detach().tolist()], state["func_evals"], state["n_iter"]


@needs_torch
@pytest.mark.filterwarnings("ignore:Converting a tensor")
@pytest.mark.parametrize(
    "options",
    [
        {"lr": 0.1},
        {"line_search_fn": "strong_wolfe"},
        {"line_search_fn": "strong_wolfe", "max_iter": 4, "max_eval": 6, "history_size": 2},
        {"lr": 0.5, "line_search_fn": "strong_wolfe", "tolerance_grad": 1e-3, "max_iter": 3},
        {"lr": 0.01, "max_iter": 3, "history_size": 1},
    ],
)
def test_steps(options):
    ours, theirs = run(flow, options, 8), run(torch, options, 8)
    assert ours[0] == pytest.approx(theirs[0], rel=1e-6, abs=1e-9) and ours[1] == pytest.approx(theirs[1], rel=1e-5)
    assert ours[2:] == theirs[2:]


def test_least_squares_fit_is_exact():
    flow.manual_seed(0)
    x, model = flow.randn(20, 3), nn.Linear(3, 1)
    y = x @ flow.tensor([[1.0], [2.0], [3.0]]) + 4
    optimizer = flow.optim.LBFGS(model.parameters(), line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        return loss

    optimizer.step(closure)
    saved = optimizer.state_dict()
    assert model.weight.detach().numpy() == pytest.approx(np.array([[1, 2, 3]]), abs=1e-3)
    other = flow.optim.LBFGS(model.parameters(), line_search_fn="strong_wolfe")
    other.load_state_dict(saved)
    assert len(other.state) == 1 and float(other.step(closure)) < 1e-6
    assert other.state_dict()["state"][0]["n_iter"] >= saved["state"][0]["n_iter"]


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda p: flow.optim.LBFGS([{"params": [p]}, {"params": []}]), "one group of parameters, not 2"),
        (
            lambda p: flow.optim.LBFGS([p], line_search_fn="armijo"),
            "line_search_fn must be None or 'strong_wolfe', got 'armijo'",
        ),
        (lambda p: flow.optim.LBFGS([p], lr=-1), "lr must be at least 0, got -1"),
        (lambda p: flow.optim.LBFGS([p]).step(None), "needs a closure"),
        (lambda p: flow.optim.LBFGS([{"params": []}]).step(lambda: 0.0), "no parameters"),
    ],
)
def test_refused(make, text):
    with pytest.raises(OptimError, match=text):
        make(flow.zeros(1, requires_grad=True))


def test_graph_refuses_lbfgs():
    model = nn.Linear(2, 1)
    with pytest.raises(GraphError, match="LBFGS cannot be part of a graph"):
        Training(model, flow.optim.LBFGS(model.parameters()))
