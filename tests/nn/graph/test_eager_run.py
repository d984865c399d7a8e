"""The eager run of a comparison: it notifies no listener, and all its writes are restored."""

from contextlib import ExitStack

import numpy as np
import pytest
from graph_models import Predict, TrainGraph

import minflow as flow
from minflow import nn
from minflow.core.base import events
from minflow.nn.graph.compiled import GraphRan

X, Y = flow.tensor(np.random.default_rng(0).normal(size=(6, 8)).astype("float32")), flow.tensor([0, 1, 2, 0, 1, 2])


class Holding(nn.Module):
    """A module whose buffer keeps the last result with its history."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 3)
        self.register_buffer("last", flow.zeros(6, 3))

    def forward(self, x):
        self.last.copy_(self.fc(x))
        return self.last * 1


def net():
    flow.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3))


def train_graph(model, optimizer, parts=1):
    graph = TrainGraph(model, nn.CrossEntropyLoss(), optimizer)
    if parts > 1:
        graph.config.set_gradient_accumulation_steps(parts)
    return graph


def trained(parts=1, **options):
    model = net()
    optimizer = flow.optim.Adam([{"params": list(model.parameters()), **options}], lr=0.1)
    graph = train_graph(model, optimizer, parts)
    graph(X, Y)
    return model, optimizer, graph


def by_eager(model, optimizer):
    def step(x, y):
        optimizer.zero_grad()
        loss = nn.CrossEntropyLoss()(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


@pytest.mark.parametrize("parts", [1, 2])
def test_comparison_notifies_no_listener(parts):
    model, optimizer, graph = trained(parts)
    heard, step = [], by_eager(model, optimizer)
    with ExitStack() as stack:
        for kind in (events.StepDone, events.BackwardDone, GraphRan):
            stack.enter_context(events.subscribe(kind, heard.append))
        graph.compare_eager(X, Y)
        graph.compare(step, X, Y)
        graph.compare(lambda x, y: Predict(model)(x).mean(), X, Y)
        assert not heard
        step(X, Y)
        graph(X, Y)
    assert [type(event).__name__ for event in heard] == ["BackwardDone", "StepDone", "StepDone", "GraphRan"]


@pytest.mark.parametrize("options", [{}, {"clip_grad_max_norm": 0.1, "clip_grad_norm_type": 2.0}])
@pytest.mark.parametrize("parts", [1, 2])
def test_comparison_restores_gradients_steps_and_values(parts, options):
    model, optimizer, graph = trained(parts, **options)
    step = by_eager(model, optimizer)
    step(X, Y)  # leave gradients that a step has used
    graph(X, Y)

    def state():
        tensors = [*model.state_dict().values(), *[t for held in optimizer.state.values() for t in held.values()]]
        tensors += [*[p.grad for p in model.parameters()], *graph.grads.values()]
        return [flow.get_rng_state().tolist(), *[t.numpy().tolist() for t in tensors]]

    before, grads, steps = state(), [p.grad for p in model.parameters()], optimizer._steps_taken
    for compare in (
        graph.compare_eager,
        lambda x, y: graph.compare(step, x, y),
        lambda x, y: graph.compare(lambda *_: step(X, Y), x, y),
    ):
        told = compare(X, Y)
        assert state() == before and optimizer._steps_taken == steps == 3
        if compare == graph.compare_eager:
            assert {row.phase for row in told.rows} == {"forward", "backward", *["optimizer"] * (parts == 1)}
        assert all(
            p.grad is g and g._used_by_step and not g._accumulated_after_step for p, g in zip(model.parameters(), grads)
        )


@pytest.mark.parametrize("by_graph", [True, False])
@pytest.mark.parametrize("sequential", [True, False])
def test_comparison_restores_schedules_and_graphs(by_graph, sequential):
    own = net()
    adam = flow.optim.Adam(own.parameters(), lr=0.1)
    schedule = flow.optim.lr_scheduler.StepLR(adam, 1, gamma=0.5)
    if sequential:
        schedule = flow.optim.lr_scheduler.SequentialLR(adam, [schedule, flow.optim.lr_scheduler.StepLR(adam, 2)], [3])
    inner, eager = train_graph(own, adam), by_eager(own, adam)

    def step(x, y):
        loss = inner(x, y) if by_graph else eager(x, y)
        schedule.step()
        return loss

    def state():
        return (
            repr(inner.state_dict()),
            adam.param_groups[0]["lr"],
            schedule.get_last_lr(),
            repr(schedule.state_dict()),
            adam._steps_taken,
            [(id(p.grad), p.grad.numpy().tolist()) for p in own.parameters() if p.grad is not None],
        )

    step(X, Y)
    before = state()
    trained()[2].compare(step, X, Y)
    assert state() == before
    step(X, Y)
    assert adam._steps_taken == 2 and adam.param_groups[0]["lr"] == 0.025


def test_grads_and_values_are_those_of_the_last_call():
    # the last is too large for the plan's arena
    for width, name in ((3, "model.3"), (3, "model"), (6000, "model.3")):
        model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 8), nn.Linear(8, width))
        graph, reference = (train_graph(m, flow.optim.SGD(m.parameters(), lr=0.1)) for m in (model, net()))
        graph.keep(name)
        graph(X, Y)
        grads, value = [g.numpy().tolist() for g in graph.grads.values()], graph.values(name).numpy().tolist()
        other = flow.randn(4, 8), flow.tensor([1, 1, 1, 1])
        for x, y in ((X * 3, Y), other, (flow.randn(4, 8), other[1])):  # the same plan, and a new one
            graph.compare_eager(x, y)
            graph.compare(reference, x, y)
            graph.compare(lambda x, y, model=model: nn.CrossEntropyLoss()(model(x), y), x, y)
            assert [g.numpy().tolist() for g in graph.grads.values()] == grads
            assert graph.values(name).numpy().tolist() == value


def test_view_of_a_large_input_is_kept():
    graph, x = Predict(nn.Sequential(nn.Flatten(), nn.Identity())), flow.ones(100, 10, 10)
    graph.keep("model.0")
    for k in (1, 2, 3):
        graph(x * k)
        assert (graph.values("model.0").numpy() == k).all()
    graph.compare_eager(x * 7)
    assert (graph.values("model.0").numpy() == 3).all()


def test_buffer_history_is_removed():
    model = Holding()
    graph = Predict(model)
    first = graph.compare_eager(X)
    assert first.first is None and not model.last.requires_grad and model.last.is_leaf and not model.last.numpy().any()
    assert graph.compare(model, X).equal and not model.last.requires_grad and not model.last.numpy().any()


def test_plan_is_valid_after_a_comparison():
    model, _, graph = trained()
    graph.compare_eager(X, Y)
    graph.compare(by_eager(model, graph.optimizers[0][0]), X, Y)
    graph(X, Y)
    assert len(graph.__dict__["_plans"]) == 1


def test_read_only_input_is_compared():
    array = np.ones((6, 8), "float32")
    array.flags.writeable = False
    model = nn.Linear(8, 3)
    assert Predict(model).compare(model, flow.from_numpy(array)).equal


def test_moving_states_is_not_a_difference():
    model = net()
    told = Predict(model).compare(model, X)
    assert told.equal and told.extra == () and "only in" not in repr(told)
    optimizer = flow.optim.SGD(model.parameters(), lr=0.1)

    def without_step(x, y):
        loss = nn.CrossEntropyLoss()(model(x), y)
        loss.backward()
        return loss

    for step in (by_eager(model, optimizer), without_step):
        told = train_graph(model, optimizer).compare(step, X, Y)
        assert told.equal and told.extra == (), "gradients and an optimizer's step are omitted too"


def test_values_read_by_numpy_are_compared():
    model = nn.BatchNorm1d(8)
    told = Predict(model).compare(lambda x: model(x).numpy(), X)
    assert told.equal and [(row.state, row.there) for row in told.rows] == [("equal", "BatchNorm1d: batch_norm")]


def test_value_in_both_state_and_output_is_compared():
    class Exp(nn.Module):
        def __init__(self, read, before=lambda mean: mean):
            super().__init__()
            self.register_buffer("mean", flow.zeros(8))
            self.read, self.before = read, before

        def forward(self, x):
            held = self.before(self.mean)
            self.mean.copy_(x.mean(dim=0).exp())
            return self.read(held)

    for read in (lambda mean: mean * 3, lambda mean: mean, lambda mean: mean[2:]):
        for before in (lambda mean: mean, lambda mean: mean[1:]):  # a view sees later writes to its base
            told = Predict(nn.Flatten()).compare(Exp(read, before), X)
            assert not told.equal and any("exp" in name for name in told.extra)
    told = Predict(nn.Flatten()).compare(Exp(lambda mean: 1.0), X)
    assert not told.equal and not any("exp" in name for name in told.extra)


def test_composite_ops_are_compared_by_their_parts():
    """Where the graph decomposes them; a plan with a kernel for one compares it whole."""
    model = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4))

    class Train(nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = model
            self.add_optimizer(flow.optim.SGD(model.parameters(), lr=0.1))

        def build(self, x):
            loss = self.model(x).square().mean()
            loss.backward()
            return loss

    graph, x = Train(), flow.randn(3, 4)
    graph.config.exact(True)
    found = graph.compare_eager(x)
    names = [row.name for row in found.rows]
    assert found.equal and found.only_here == () and len(names) > 20
    assert "model.1/layer_norm-rsqrt-0" in names and not any(name.endswith("layer_norm-0") for name in names)


def test_parts_that_the_graph_merges_are_left_out():
    """grid_sample checks the bounds of a corner again for each neighbor."""
    graph = Predict(lambda x: nn.functional.grid_sample(x, x[:, :2].permute(0, 2, 3, 1)))
    assert graph.compare_eager(flow.randn(1, 4, 5, 6)).equal
