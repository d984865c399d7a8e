"""Every layer and every optimizer, trained for 20 steps eagerly and as an nn.Graph: the same bits at the end."""

import copy

import numpy as np
import pytest

import minflow as flow
from minflow import nn
from minflow.nn.summary import tensors_in
from tests.registered import layer_cases, optimizer_cases

STEPS = 20


class Training(nn.Graph):
    def __init__(self, model, optimizer):
        super().__init__()
        self.model = model
        self.add_optimizer(optimizer)
        self.config.exact(True)

    def build(self, x):
        loss = loss_of(self.model, x)
        loss.backward()
        return loss


def loss_of(model, x):
    outs = [out for out in tensors_in(model(x)) if out.spec.floating]
    return sum((out * out).mean() for out in outs)


class Scaled(nn.Module):
    """A layer without parameters behind one parameter, so that there is something to train."""

    def __init__(self, layer, size):
        super().__init__()
        self.layer, self.scale = layer, nn.Parameter(flow.ones(size))

    def forward(self, x):
        return self.layer(x * self.scale)


def bits(model):
    return {name: x.numpy().tobytes() for name, x in model.state_dict().items()}


def trained(model, make, x, graph: bool) -> tuple[list[float], dict]:
    optimizer = make(model.parameters())
    flow.manual_seed(3)
    step = Training(model, optimizer) if graph else None
    losses = []
    for _ in range(STEPS):
        if step is not None:
            losses.append(step(x).item())
            continue
        loss = loss_of(model, x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, bits(model)


@pytest.mark.parametrize(("name", "make", "x"), layer_cases(), ids=lambda p: p if isinstance(p, str) else "")
def test_layers(name, make, x):
    if isinstance(x, tuple):
        x = np.random.default_rng(0).standard_normal(x).astype("float32")
    model, x = make(), flow.tensor(x)
    if not list(model.parameters()):
        model = Scaled(model, x.shape[-1])
    sgd = lambda parameters: flow.optim.SGD(parameters, lr=0.01, momentum=0.9)
    eager, graph = trained(copy.deepcopy(model), sgd, x, False), trained(model, sgd, x, True)
    np.testing.assert_array_equal(graph[0], eager[0])
    assert graph[1] == eager[1]


@pytest.mark.parametrize(("name", "options"), optimizer_cases(), ids=str)
def test_optimizers(name, options):
    kind = getattr(flow.optim, name)
    model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3))
    make = lambda parameters: kind(parameters, **options)
    x = flow.tensor(np.random.default_rng(1).standard_normal((5, 4)).astype("float32"))
    eager, graph = trained(copy.deepcopy(model), make, x, False), trained(model, make, x, True)
    np.testing.assert_array_equal(graph[0], eager[0])
    assert graph[1] == eager[1] and eager[0][-1] != eager[0][0]
