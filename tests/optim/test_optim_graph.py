"""Every optimizer traced, as a graph and from a file: each step has the bits of the eager one and uses the scheduled
rates.

Tests are named by optimizer; the cases are the options of `tests/exported_cases.py`.
"""

import copy
from collections import defaultdict

import numpy as np
import pytest

import minflow as flow
from minflow import nn
from minflow.core.mode import mutation_counter
from minflow.core.trace import trace
from tests.cases import Cases
from tests.exported_cases import optimizer_cases
from tests.graphs import Training, bits, eager_steps
from tests.reference import execute

OPTIMIZERS = defaultdict(list)
for name, options in optimizer_cases():
    OPTIMIZERS[name].append(options)


def new_model():
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))


def step_of(model, optimizer):
    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return step


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizer(name, tmp_path):
    kind = getattr(flow.optim, name)
    with Cases() as case:
        for options in OPTIMIZERS[name]:
            with case(f"{name} {options}: traced"):
                check_traced(lambda parameters, options=options: kind(parameters, lr=0.1, **options))
            with case(f"{name} {options}: 20 steps of a graph"):
                model, x = new_model(), flow.tensor(np.random.default_rng(1).standard_normal((5, 4)).astype("f4"))
                eager = copy.deepcopy(model)
                wanted = eager_steps(eager, kind(eager.parameters(), **options), x, 20)
                graph = Training(model, kind(model.parameters(), **options))
                np.testing.assert_array_equal([graph(x).item() for _ in range(20)], wanted)
                assert bits(model.state_dict()) == bits(eager.state_dict()) and wanted[-1] != wanted[0]
            with case(f"{name} {options}: three steps more from a file"):
                optimizer = kind(eager.parameters(), lr=0.02, **options)
                eager_steps(eager, optimizer, x, 3)
                flow.save({"model": eager.state_dict(), "optimizer": optimizer.state_dict()}, tmp_path / "run.mf")
                saved, other = flow.load(tmp_path / "run.mf"), new_model()
                other.load_state_dict(saved["model"])
                loaded = kind(other.parameters())
                loaded.load_state_dict(saved["optimizer"])
                assert eager_steps(other, loaded, x, 3) == eager_steps(eager, optimizer, x, 3)
                assert bits(other.state_dict()) == bits(eager.state_dict())


def check_traced(make):
    """Run one trace for six batches while a schedule changes the rate; tracing itself changes nothing."""
    batches = [np.random.default_rng(i).standard_normal((5, 4)).astype("f4") for i in range(6)]
    model = new_model()
    twin = copy.deepcopy(model)
    optimizer, other = make(model.parameters()), make(twin.parameters())
    schedules = [flow.optim.lr_scheduler.StepLR(each, 2) for each in (optimizer, other)]
    eager = step_of(model, optimizer)
    other._create_states()
    before = bits(twin.state_dict())
    graph, _ = trace(step_of(twin, other), [flow.tensor(batches[0])])
    assert other._steps_taken == 0 and bits(twin.state_dict()) == before, "tracing has changed values"
    names = [node.op.name for node in graph.nodes]
    assert names.count(other._update_rule(other.param_groups[0])[0].name) == 4
    assert len(graph.updates) == 4 * (1 + len(other._state_names(other.param_groups[0])))
    for x in batches:
        loss = eager(flow.tensor(x))
        (traced,) = execute(graph, [x])
        other._count_step()
        for schedule in schedules:
            schedule.step()
        assert np.array_equal(loss.detach().numpy(), traced)
    for p, q in zip(model.parameters(), twin.parameters()):
        assert bits(p) == bits(q) and bits(optimizer.state.get(p, {})).items() <= bits(other.state[q]).items()


def test_learning_rate_change_does_not_bump_the_counter():
    optimizer = flow.optim.Adam(new_model().parameters(), lr=0.1)
    scheduler = flow.optim.lr_scheduler.StepLR(optimizer, 2)
    optimizer.step()
    now = mutation_counter.count
    scheduler.step()
    assert mutation_counter.count == now
