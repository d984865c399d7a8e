"""Custom optimizers: `step()` over `p.grad` and `self.state[p]`, as in PyTorch, and hooks of steps."""

import copy

import pytest

import minflow as flow
from minflow import nn
from minflow.core.base.errors import GraphError, OptimError, StateError
from minflow.optim.optimizer import required
from tests.graphs import Training, bits
from tests.pytorch import needs_torch, torch


def momentum_of(L):
    class Momentum(L.optim.Optimizer):
        def __init__(self, params, lr=0.1, beta=0.9):
            super().__init__(params, {"lr": lr, "beta": beta})

        @L.no_grad()
        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    state = self.state[p]
                    if len(state) == 0:
                        state["step"], state["mean"] = 0, L.zeros_like(p.data)
                    state["step"] += 1
                    state["mean"].mul_(group["beta"]).add_(p.grad.data, alpha=1 - group["beta"])
                    p.data.addcdiv_(state["mean"], state["mean"].abs().sqrt().add_(1e-3), value=-group["lr"])

    return Momentum


def trained(L, steps):
    p = L.nn.Parameter(L.tensor([1.0, -2.0, 3.0]))
    optimizer = momentum_of(L)([p])
    scheduler = L.optim.lr_scheduler.StepLR(optimizer, 2)
    for _ in range(steps):
        optimizer.zero_grad()
        (p * p).sum().backward()
        optimizer.step()
        scheduler.step()
    return p, optimizer


@needs_torch
def test_updates_match_by_hand():
    (p, ours), (q, other) = trained(flow, 20), trained(torch, 20)
    assert p.detach().numpy() == pytest.approx(q.detach().numpy(), rel=1e-6)
    assert ours.state_dict()["state"][0]["step"] == other.state_dict()["state"][0]["step"] == 20


def test_state_is_loaded():
    p, optimizer = trained(flow, 3)
    saved = optimizer.state_dict()
    saved["state"]["elsewhere"] = {"seen": 3}
    other = momentum_of(flow)([p], lr=0.5)
    other.load_state_dict(saved)
    assert other.state[p]["step"] == 3 and other.param_groups[0]["lr"] == optimizer.param_groups[0]["lr"]
    assert other.state["elsewhere"] == {"seen": 3}
    assert other.state[p]["mean"].tolist() == optimizer.state[p]["mean"].tolist()
    assert other.state[p]["mean"] is not optimizer.state[p]["mean"]
    assert other.state[flow.nn.Parameter(flow.ones(1))] == {}


def test_required_options():
    class Bare(flow.optim.Optimizer):
        def __init__(self, params, lr=required):
            super().__init__(params, {"lr": lr})

    with pytest.raises(OptimError, match=r"Bare: group 0 has no lr"):
        Bare([nn.Parameter(flow.ones(1))])


def test_graph_refuses_custom_optimizer_by_name():
    model = nn.Linear(2, 1)
    with pytest.raises(GraphError, match=r"Momentum cannot be part of a graph: its step\(\) is a program of its own"):
        Training(model, momentum_of(flow)(model.parameters()))


def test_hooks():
    model, calls = nn.Linear(2, 1), []
    optimizer = flow.optim.SGD(model.parameters(), lr=0.1)
    before = optimizer.register_step_pre_hook(lambda o, args, kwargs: calls.append("before"))
    optimizer.register_step_post_hook(lambda o, args, kwargs: calls.append(o._steps_taken))
    model(flow.ones(1, 2)).sum().backward()
    optimizer.step()
    before.remove()
    optimizer.step()
    assert calls == ["before", 1, 2]
    with pytest.raises(OptimError, match="a hook must be a function, got an int"):
        optimizer.register_step_pre_hook(3)
    with pytest.raises(GraphError, match="SGD cannot be part of a graph: it has step hooks"):
        Training(model, optimizer)(flow.ones(1, 2))


def test_wrapped_step_counts_once():
    class Quiet(flow.optim.SGD):
        def step(self, closure=None):
            return super().step(closure)

    model = nn.Linear(2, 1)
    optimizer = Quiet(model.parameters(), lr=0.1)
    model(flow.ones(1, 2)).sum().backward()
    optimizer.step()
    assert optimizer._steps_taken == 1 and optimizer._traceable


# ---- hooks and methods of states -------------------------------------------------------------------------------------


def stepped(kind=flow.optim.SGD, **options):
    p = nn.Parameter(flow.ones(2))
    optimizer = kind([p], lr=0.5, momentum=0.5, **options)
    p.grad = flow.ones(2)
    optimizer.step()
    return p, optimizer


def test_state_dict_hooks():
    order, (_, optimizer) = [], stepped()
    optimizer.register_state_dict_pre_hook(lambda o: order.append("before"))
    optimizer.register_state_dict_pre_hook(lambda o: order.append("first"), prepend=True)
    optimizer.register_state_dict_post_hook(lambda o, state: state.update(note=1))
    optimizer.register_state_dict_post_hook(lambda o, state: {**state, "more": list(state["state"][0])})
    state = optimizer.state_dict()
    assert order == ["first", "before"] and state["note"] == 1 and state["more"] == ["momentum_buffer"]
    _, other = stepped()
    with other.register_load_state_dict_pre_hook(lambda o, state: order.append(state.pop("note"))):
        other.register_load_state_dict_post_hook(lambda o: order.append(o.param_groups[0]["lr"]))
        state["param_groups"][0]["lr"] = 0.25
        other.load_state_dict(state)
    assert order[2:] == [1, 0.25] and state["note"] == 1
    other.register_load_state_dict_pre_hook(lambda o, state: optimizer.state_dict())
    other.load_state_dict({})
    assert other.param_groups[0]["lr"] == 0.5
    optimizer.register_state_dict_post_hook(lambda o, state: 3)
    with pytest.raises(StateError, match=r"must return a dict or None, got an int(.|\n)*returned +3"):
        optimizer.state_dict()
    with pytest.raises(OptimError, match=r"a hook must be a function, got an int(.|\n)*hook\(optimizer, state_dict\)"):
        optimizer.register_load_state_dict_pre_hook(3)


def test_graph_loads_optimizer_state_with_hooks():
    model, seen = nn.Linear(2, 1), []
    optimizer = flow.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
    graph, x = Training(model, optimizer), flow.ones(3, 2)
    graph(x)
    saved, before = copy.deepcopy(graph.state_dict()), bits(optimizer.state[model.weight])
    graph(x)
    optimizer.register_load_state_dict_post_hook(lambda o: seen.append(bits(o.state[model.weight])))
    graph.load_state_dict(saved)
    assert seen == [before] and bits(graph.state_dict()) == bits(saved)


def test_setstate_receives_the_loaded_state():
    class Older(flow.optim.SGD):
        def __setstate__(self, state):
            super().__setstate__(state)
            for group in self.param_groups:
                group.setdefault("warm", 7)

    (_, optimizer), (_, plain) = stepped(Older), stepped()
    assert "warm" not in optimizer.param_groups[0]
    optimizer.load_state_dict(plain.state_dict())
    assert optimizer.param_groups[0]["warm"] == 7 and optimizer.state
    assert copy.deepcopy(optimizer).param_groups[0]["warm"] == 7


def test_overridden_optimizer_methods():
    class Mine(flow.optim.SGD):
        zeroed = 0

        def add_param_group(self, group):
            super().add_param_group({**group, "lr": 0.125})

        def zero_grad(self, set_to_none=True):
            self.zeroed += 1
            super().zero_grad(set_to_none)

    p, optimizer = stepped(Mine)
    optimizer.zero_grad()
    assert p.tolist() == [0.875, 0.875] and optimizer.zeroed == 1 and p.grad is None
    with pytest.raises(OptimError, match="Grouped defines _init_group, and its step.. does not call it"):
        type("Grouped", (flow.optim.SGD,), {"_init_group": lambda self, group: None})
    type("Stepped", (flow.optim.SGD,), {"_init_group": lambda self, group: None, "step": lambda self: None})


class Schedule:
    def __init__(self, rates):
        self.rates = rates

    def __eq__(self, other):
        return self.rates == other.rates


class Counted(flow.optim.Optimizer):
    """Keeps a counter beside the states of its parameters, and an object among its hyperparameters."""

    def __init__(self, params, schedule):
        super().__init__(params, {"lr": 0.1, "schedule": schedule})
        self.state["k"] = flow.zeros(1)

    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                with flow.no_grad():
                    p.sub_(p.grad * group["schedule"].rates[0])
        self.state["k"] += 1


class PythonRMSprop(flow.optim.RMSprop):
    """A class of flow.optim whose step is written again, with a number in the state."""

    def step(self, closure=None):
        for p in self.param_groups[0]["params"]:
            state = self.state[p]
            state.setdefault("square_avg", flow.zeros_like(p))
            state["step"] = state.get("step", 0) + 1


def test_states_with_objects_counters_and_numbers_are_loaded(tmp_path):
    first, second = [Counted([flow.ones(2, requires_grad=True)], Schedule([0.5])) for _ in range(2)]
    for p in first._all_parameters():
        p.sum().backward()
    first.step()
    flow.save(first.state_dict(), tmp_path / "state.pt")
    second.load_state_dict(flow.load(tmp_path / "state.pt", weights_only=False))
    assert second.state["k"].tolist() == [1] and second.param_groups[0]["schedule"] == Schedule([0.5])
    assert second.param_groups[0]["schedule"] is not first.param_groups[0]["schedule"]

    rmsprop = PythonRMSprop([flow.ones(2, requires_grad=True)])
    rmsprop.step()
    rmsprop.load_state_dict(rmsprop.state_dict())
    rmsprop.step()
    assert rmsprop.state[rmsprop._all_parameters()[0]]["step"] == 2
