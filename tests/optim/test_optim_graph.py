"""A training step traced once and run again and again gives the very bits of the eager one, rates included."""

import numpy as np
import pytest

import minflow as flow
from minflow import nn
from minflow.core.mode import EPOCH
from minflow.core.trace import trace
from tests.reference import execute
from tests.registered import optimizer_cases


def fresh(name, options):
    flow.manual_seed(4)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    optimizer = getattr(flow.optim, name)(model.parameters(), lr=0.1, **options)
    return model, optimizer, flow.optim.lr_scheduler.StepLR(optimizer, 2)


def step_of(model, optimizer):
    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return step


@pytest.mark.parametrize(("name", "options"), optimizer_cases())
def test_traced_step(name, options):
    batches = [np.random.default_rng(i).standard_normal((5, 4)).astype("f4") for i in range(6)]
    model, optimizer, scheduler = fresh(name, options)
    twin, other, schedule = fresh(name, options)
    eager = step_of(model, optimizer)
    other.prepare()
    arrays = [p.array for p in twin.parameters()]
    before = [a.copy() for a in arrays]
    graph, _ = trace(step_of(twin, other), [flow.tensor(batches[0])])
    assert other.steps == 0 and all(np.array_equal(a, b) for a, b in zip(arrays, before)), "tracing has changed numbers"
    names = [node.op.name for node in graph.nodes]
    assert names.count(other.rule(other.param_groups[0])[0].name) == 4
    assert len(graph.updates) == 4 * (1 + len(other.names(other.param_groups[0])))
    for x in batches:
        loss = eager(flow.tensor(x))
        (traced,) = execute(graph, [x])
        other.stepped()
        scheduler.step()
        schedule.step()
        assert np.array_equal(loss.detach().numpy(), traced)
    for p, q in zip(model.parameters(), twin.parameters()):
        assert np.array_equal(p.detach().numpy(), q.detach().numpy())
        for key, value in optimizer.state.get(p, {}).items():
            assert np.array_equal(value.numpy(), other.state[q][key].numpy()), key


def test_a_rate_does_not_move_the_epoch():
    _, optimizer, scheduler = fresh("Adam", {})
    optimizer.step()
    now = EPOCH.now
    scheduler.step()
    assert EPOCH.now == now
