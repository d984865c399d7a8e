"""Assigning to a buffer rebinds it, in eager and in graphs, as in PyTorch."""

import threading

import pytest
from graph_models import Predict, Step, bits
from minflow_widgets import explore

import minflow as flow
from minflow import nn
from minflow.compiler.plan_cache import PlanCache
from minflow.nn.buffer_links import BufferLink


class Buffered(nn.Module):
    """A module with one buffer `state`; `forward` of a subclass assigns it."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.register_buffer("state", flow.zeros(3))


class MovingAverage(Buffered):
    def forward(self, x):
        self.state = 0.9 * self.state + 0.1 * self.fc(x).detach().mean(0)
        return self.fc(x) - self.state


class Remembers(Buffered):
    """Use the old tensor after the assignment."""

    def forward(self, x):
        before = self.state
        self.state = flow.tanh(self.fc(x.sum(0)) + before).detach()
        return self.state - before


class Statistics(Buffered):
    """Running mean and variance computed by hand; one needs the old value of the other."""

    def __init__(self):
        super().__init__()
        self.register_buffer("variance", flow.ones(3))
        self.register_buffer("count", flow.tensor(0))

    def forward(self, x):
        self.count = self.count + 1
        delta = x.mean(0) - self.state
        self.variance = self.variance + (delta * delta - self.variance) / self.count
        self.state = self.state + delta / self.count
        return (x - self.state) / (self.variance + 1e-5).sqrt()


class View(Buffered):
    """The buffer starts as a view of a tensor that forward reads as well."""

    def __init__(self):
        super().__init__()
        self.table = flow.arange(6.0).reshape(2, 3)
        self.register_buffer("state", self.table[1])

    def forward(self, x):
        self.state = self.state * 0.5 + x.sum(0)
        return self.state + self.table.sum()


class Shared(Buffered):
    """Two names that start as one tensor."""

    def __init__(self):
        super().__init__()
        self.register_buffer("first", self.state)

    def forward(self, x):
        self.state = self.state + x.sum(0)
        return self.state - self.first


class Swap(Buffered):
    def __init__(self):
        super().__init__()
        self.register_buffer("other", flow.ones(3))

    def forward(self, x):
        self.state, self.other = self.other, self.state + x.sum(0)
        return self.state * 2 + self.other


class Untouched(Buffered):
    """Write only: the last input."""

    def forward(self, x):
        self.state = x[0]
        return x * 2


class Twice(Buffered):
    def forward(self, x):
        self.state = self.state + 1
        y = self.state * x
        self.state = self.state * 2
        return y + self.state


class Captured(Buffered):
    """A variable outside the module refers to the first tensor of its buffer."""

    def __init__(self):
        super().__init__()
        self.parts = [self.state]

    def forward(self, x):
        self.state = self.state + x.sum(0)
        return self.state - self.parts[0]


MODULES = [MovingAverage, Remembers, Statistics, View, Shared, Swap, Untouched, Twice, Captured]


def inputs(n=20):
    return [flow.randn(4, 3, generator=flow.Generator().manual_seed(i)) for i in range(n)]


def made(kind):
    flow.manual_seed(1)
    return kind()


def with_forward(forward):
    return type("Custom", (Buffered,), {"forward": forward})()


def exact(model):
    return Predict(model, exact=True)


@pytest.mark.parametrize("kind", MODULES, ids=lambda kind: kind.__name__)
def test_twenty_steps_match_eager(kind):
    eager, model = made(kind), made(kind)
    graph, kept = exact(model), []
    with flow.no_grad():
        for x in inputs():
            kept.append((eager.state, bits(eager.state), model.state, bits(model.state)))
            assert bits(eager(x)) == bits(graph(x))
            for name, tensor in eager.named_buffers():
                assert bits(tensor) == bits(model.get_buffer(name)), name
    # a tensor kept from an earlier step is unchanged
    assert all(bits(a) == b == bits(c) == d for a, b, c, d in kept)
    assert len(graph._history) <= 2


def test_assignment_does_not_change_the_old_tensor():
    model = made(MovingAverage)
    whole = flow.zeros(2, 3)
    model.state = whole[0]
    old = model.state
    model.state = flow.ones(3)
    assert model.state is not old and not whole.any() and not old.any()


def test_gradients_flow_through_an_assigned_buffer():
    model = made(Buffered)
    model.state = model.fc(flow.ones(3))
    (model.state * 2).sum().backward()
    assert model.fc.bias.grad.tolist() == [2.0, 2.0, 2.0]


def test_rebinding_between_calls_does_not_rebuild():
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
    twin = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
    twin.load_state_dict(model.state_dict())
    graph, old = exact(model), []
    for i, x in enumerate(inputs(6)):
        if i % 2:
            old.append((model[1].running_mean, bits(model[1].running_mean)))
            model[1].running_mean, twin[1].running_mean = flow.full((3,), float(i)), flow.full((3,), float(i))
        assert bits(graph(x)) == bits(twin(x))
        assert bits(model[1].running_mean) == bits(twin[1].running_mean)
    assert all(bits(tensor) == before for tensor, before in old)
    assert len(graph._history) == 1
    view = flow.arange(6.0).reshape(2, 3)[1]
    model[1].running_mean, twin[1].running_mean = view, view.clone()
    assert bits(graph(x)) == bits(twin(x)) and bits(view) == bits(twin[1].running_mean)


def test_write_to_a_rebound_buffer_is_seen():
    model = made(MovingAverage)
    graph = exact(model)
    x = inputs(1)[0]
    graph(x)
    model.state.fill_(3.0)
    twin = made(MovingAverage)
    twin.state = flow.full((3,), 3.0)
    assert bits(graph(x)) == bits(twin(x))
    assert bits(graph(x)) == bits(twin(x))


class Scaled(Buffered):
    scale = 1.0

    def forward(self, x):
        self.state = self.state + 1
        return x * self.scale


def test_write_of_another_thread_during_a_step_is_seen(monkeypatch):
    """A step that assigns a buffer accepts its own writes only, without looking at all modules at the next call."""
    model = Scaled()
    graph, (x, *_), looks = exact(model), inputs(1), []
    bind = BufferLink.bind

    def interrupted(link, tensor):
        writer = threading.Thread(target=setattr, args=(model, "scale", 3.0))
        writer.start(), writer.join()
        bind(link, tensor)

    graph(x), graph(x)
    look = PlanCache.look
    monkeypatch.setattr(PlanCache, "look", lambda plans: looks.append(plans) or look(plans))
    graph(x)
    assert not looks
    with monkeypatch.context() as patch:
        patch.setattr(BufferLink, "bind", interrupted)
        assert bits(graph(x)) == bits(x)
    assert bits(graph(x)) == bits(x * 3.0) and looks
    assert model.state.tolist() == [5.0] * 3


def test_other_graphs_of_the_module_see_the_buffer():
    model = made(Buffered)
    writes = with_forward(lambda self, x: setattr(self, "state", self.state + x[0]) or x)
    reader = type("Reader", (nn.Module,), {"forward": lambda self, x: x + self.held.state})()
    reader.held = writes
    graph, other = exact(writes), exact(reader)
    total = flow.zeros(3)
    for x in inputs(5):
        other(x)
        graph(x)
        total = total + x[0]
        assert bits(other(x)) == bits(x + total)
    assert len(other._history) == len(graph._history) == 1
    assert model.state.sum() == 0


def training(model, steps=1):
    return Step(model, flow.optim.SGD(model.parameters(), lr=0.1), set_gradient_accumulation_steps=steps, exact=True)


@pytest.mark.parametrize("steps", [1, 2])
def test_training_with_an_assigned_buffer(steps):
    eager, model = made(MovingAverage), made(MovingAverage)
    graph, optimizer = training(model, steps), flow.optim.SGD(eager.parameters(), lr=0.1)
    for x in inputs(5):
        graph(x)
        optimizer.zero_grad()
        for part in x.chunk(steps):
            (eager(part).square().mean() / steps).backward()
        optimizer.step()
        assert bits(eager.state) == bits(model.state) and bits(eager.fc.weight) == bits(model.fc.weight)


@pytest.mark.parametrize("kind", [View, Shared])
def test_second_step_handles_a_buffer_no_longer_shared(kind):
    eager, optimizer = made(kind), None
    optimizer, wanted = flow.optim.SGD(eager.parameters(), lr=0.1), []
    step = type("Fc", (kind,), {"forward": lambda self, x: self.fc(kind.forward(self, x))})
    eager.__class__ = step
    for x in inputs(4):
        optimizer.zero_grad()
        eager(x).square().mean().backward()
        optimizer.step()
        wanted.append(bits(eager.state))
    model = made(kind)
    model.__class__ = step
    graph = training(model)
    for x, state in zip(inputs(4), wanted):  # no other module bumps the mutation counter in between
        graph(x)
        assert bits(model.state) == state


def test_accumulation_refuses_an_aliasing_buffer():
    model = made(View)
    model.__class__ = type("Fc", (View,), {"forward": lambda self, x: self.fc(View.forward(self, x))})
    before = model.state
    with pytest.raises(
        flow.TraceError,
        match="(?s)the buffer 'state' is assigned in a graph that accumulates "
        "gradients, and shares its memory.*float32.*state.clone()",
    ):
        training(model, 2)(inputs(1)[0])
    assert model.state is before
    model.state = model.state.clone()
    training(model, 2)(inputs(1)[0])


CAPTURED = flow.full((3,), 0.5)


def row(m):
    m.state = m.table[1]


def weight(m):
    m.state = m.fc.weight.detach()[0]


def other(m):
    m.state = m.other


def both(m):
    m.state = m.state + 1
    m.other = m.state


def around(m):
    m.state = CAPTURED


def history(m):
    m.state = m.other.detach()


@pytest.mark.parametrize(
    ("assign", "shared"),
    [
        (row, "model.table"),
        (weight, "model.fc.weight"),
        (other, "model.other"),
        (both, "state"),
        (around, "a captured tensor"),
        (history, "model.other"),
    ],
)
def test_aliasing_buffer_is_refused(assign, shared):
    class Shares(Buffered):
        def __init__(self):
            super().__init__()
            self.register_buffer("table", flow.arange(12.0).reshape(4, 3))
            self.register_buffer("other", flow.ones(3))

        def forward(self, x):
            assign(self)
            return self.fc(x) + self.state

    model = Shares()
    before = dict(model.named_buffers())
    with pytest.raises(
        flow.TraceError,
        match=rf"(?s)the buffer '\w+' is assigned a tensor that shares its memory with "
        rf"{shared}\b.*float32\[.*clone\(\)",
    ):
        Predict(model)(flow.ones(4, 3))
    assert all(model.get_buffer(name) is tensor for name, tensor in before.items())


def test_checkpointed_module_assigns_once():
    class Holder(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = made(MovingAverage)

        def forward(self, x):
            return self.inner(x)

    plain, checkpointed = Holder(), Holder()
    graphs = training(plain), training(checkpointed)
    checkpointed.inner._checkpointing = True
    for x in inputs(3):
        for graph in graphs:
            graph(x)
        assert bits(plain.inner.state) == bits(checkpointed.inner.state)


def test_inspecting_a_step_changes_no_buffer():
    model = made(Remembers)
    graph = exact(model)
    x = inputs(1)[0]
    graph(x)
    before, values = model.state, bits(model.state)
    assert graph.compare_eager(x).equal
    assert model.state is before and bits(model.state) == values
    explore(graph, x)
    assert model.state is before and bits(model.state) == values


def test_saved_graph_resumes(tmp_path):
    model, eager = made(Remembers), made(Remembers)
    graph, xs = exact(model), inputs(4)
    for x in xs[:2]:
        graph(x), eager(x)
    model.state, eager.state = flow.ones(3), flow.ones(3)  # not yet used by a call
    flow.save(graph, tmp_path / "model")
    loaded = flow.load_graph(tmp_path / "model")
    for x in xs[2:]:
        assert bits(loaded(x)) == bits(graph(x)) == bits(eager(x))


def fails(self, x):
    self.state = flow.ones(3)
    raise ValueError("no")


def written_and_then_assigned(self, x):
    self.state.add_(1)
    self.state = self.state * 2
    return x


def registered_and_then_assigned(self, x):
    self.register_buffer("late", flow.ones(3))
    self.late = self.late + x[0]
    return x + self.late


def given_none(self, x):
    self.state = None
    return x


def assigned_and_then_read(self, x):
    self.state = self.state + 1
    return x * self.state.tolist()[0]


def read_and_then_assigned(self, x):
    y = x * self.state.tolist()[0]
    self.state = self.state + 1
    return y


REFUSED = [
    (fails, "no"),
    (
        written_and_then_assigned,
        r"(?s)the buffer 'state' is written in place and then assigned.*"
        r"float32\[3\].*state = state \+ 1",
    ),
    (
        registered_and_then_assigned,
        r"(?s)the buffer 'late' is registered and assigned in one build.*"
        r"float32\[3\].*__init__",
    ),
    (given_none, "the buffer 'state' is given None while a graph is built"),
    (assigned_and_then_read, "tolist"),
    (read_and_then_assigned, "reads the elements of a tensor that the graph writes"),
]


@pytest.mark.parametrize("forward, match", REFUSED)
def test_failed_build_restores_buffers(forward, match):
    model = with_forward(forward)
    before = model.state
    with pytest.raises(ValueError if forward is fails else flow.TraceError, match=match):
        Predict(model)(flow.ones(4, 3))
    assert model.state is before and not before.any()


def test_none_between_calls_is_seen():
    model = with_forward(lambda self, x: x if self.state is None else x + self.state)
    graph, x = exact(model), flow.ones(4, 3)
    for state, more in ((flow.ones(3), 1), (None, 0), (flow.full((3,), 2.0), 2)):
        model.state = state
        assert graph(x).tolist() == (x + more).tolist()


def test_job_refuses_buffer_assignment():
    model = made(MovingAverage)
    before = model.state

    @flow.global_function(type="predict")
    def job(x: flow.typing.Numpy.Placeholder((4, 3))) -> flow.typing.Numpy:
        return model(x)

    with pytest.raises(flow.JobError, match=r"(?s)job job writes a tensor that is not a variable.*state"):
        job(inputs(1)[0].numpy())
    assert model.state is before and not before.any()


def test_replaced_tensor_is_not_saved(tmp_path):
    model = made(Remembers)
    graph, x = exact(model), inputs(1)[0]
    graph(x)
    model.fc.weight = nn.Parameter(flow.ones(3, 3))
    with pytest.raises(flow.GraphError, match="model.fc.weight is not the tensor of the last call"):
        flow.save(graph, tmp_path / "model")
    graph(x)
    flow.save(graph, tmp_path / "model")
    model.state = flow.arange(6.0).reshape(2, 3)[0]
    with pytest.raises(flow.GraphError, match="model.state is a view of another tensor"):
        flow.save(graph, tmp_path / "model")


def test_rebound_buffer_value_is_read_again():
    model = with_forward(lambda self, x: x * self.state.tolist()[0])
    graph, x = exact(model), flow.ones(4, 3)
    assert graph(x).sum().item() == 0
    for k in (2.0, 3.0):
        model.state = flow.full((3,), k)
        assert graph(x).sum().item() == 12 * k
