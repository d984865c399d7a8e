"""Plan keys: each thing that can change between calls takes effect, and the event names it."""

import copy
import gc
import math
import weakref
from collections import deque

import numpy as np
import pytest
from graph_models import MLP, FunctionGraph, Predict, TrainGraph, bits, eager_step, graph_of

import minflow as flow
from minflow import nn
from minflow.compiler import plan_cache
from minflow.core.base import events
from minflow.nn.graph import key

X = np.random.default_rng(0).standard_normal((6, 20)).astype("float32")


def data(n=6):
    return flow.tensor(X[:n]), flow.tensor(np.arange(n) % 5)


@pytest.fixture
def reported():
    found = []
    with events.subscribe(events.GraphCompiled, found.append):
        yield found


def trainer(**options):
    flow.manual_seed(0)
    model = MLP()
    optimizer = flow.optim.SGD(model.parameters(), lr=0.1, **options)
    return model, optimizer, TrainGraph(model, nn.CrossEntropyLoss(), optimizer)


def same_as_eager(change):
    """Two steps, the change, two steps: as a graph and eagerly. Returns the graph's losses, and the reported
    changes.
    """
    found = []
    with events.subscribe(events.GraphCompiled, found.append):
        losses, states = [], []
        for as_graph in (True, False):
            model, optimizer, graph = trainer(momentum=0.5)
            graph.config.exact(True)
            loss_fn, x, y = nn.CrossEntropyLoss(), *data()
            mine = []
            for step in range(4):
                if step == 2:
                    change(model, optimizer)
                loss = graph(x, y) if as_graph else eager_step(model, loss_fn, optimizer, x, y)
                mine.append(bits(loss))
            losses.append(mine)
            states.append({name: bits(t) for name, t in model.state_dict().items()})
    assert losses[0] == losses[1] and states[0] == states[1]
    return found


def names(event):
    return {what for what, _, _ in event.changes}


def test_unchanged_call_does_not_compile(reported):
    model, optimizer, graph = trainer()
    x, y = data()
    for _ in range(3):
        graph(x, y)
        optimizer.param_groups[0]["lr"] *= 0.5
        model.train()
        optimizer.zero_grad()
    assert len(reported) == 1 and reported[0].number == 0 and reported[0].changes == () and reported[0].graph is graph
    assert set(reported[0].seconds) >= {"trace", "passes", "plan"}


def test_another_batch_size(reported):
    _, _, graph = trainer()
    graph(*data(6))
    graph(*data(4))
    graph(*data(6))
    assert len(reported) == 2
    assert set(reported[1].changes) == {("x", "float32[6, 20]", "float32[4, 20]"), ("y", "int64[6]", "int64[4]")}


def frozen(model, optimizer):
    model.layers[0].requires_grad_(False)


def replaced(model, optimizer):
    flow.manual_seed(5)
    model.layers[2] = nn.Linear(32, 5)
    optimizer.add_param_group({"params": model.layers[2].parameters()})


def another_activation(model, optimizer):
    model.layers[1] = nn.Tanh()


def weight_decay_and_momentum(model, optimizer):
    optimizer.param_groups[0].update(weight_decay=0.1, momentum=0.25)


def another_rate(model, optimizer):
    optimizer.param_groups[0]["lr"] = 0.7


@pytest.mark.parametrize(
    "change, expected",
    [
        (frozen, {("model.layers.0.weight.requires_grad", "True", "False")}),
        (replaced, {("model.layers.2", "'Linear'", "another 'Linear'")}),
        (another_activation, {("model.layers.1", "'ReLU'", "'Tanh'")}),
        (weight_decay_and_momentum, {("optimizer.weight_decay", "0.0", "0.1"), ("optimizer.momentum", "0.5", "0.25")}),
        (another_rate, set()),  # the learning rate is not part of the key
    ],
)
def test_changes_between_steps_match_eager(change, expected):
    found = same_as_eager(change)
    assert len(found) == 1 + bool(expected) and {change for one in found for change in one.changes} >= expected


ROW = flow.tensor([[-1.0, -2.0, 3.0]])
CHANGED = {  # arguments of the graph, the input after the change, the change, what is reported
    "a module's attribute": (
        nn.LeakyReLU(0.1),
        ROW,
        lambda m: setattr(m, "negative_slope", 0.5),
        ("model.negative_slope", "0.1", "0.5"),
    ),
    "the mode of a layer": (
        nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5)),
        ROW,
        lambda m: m.eval(),
        ("model.1.training", "True", "False"),
    ),
    "the dtype of the model": (
        nn.Linear(3, 2),
        ROW.double(),
        lambda m: m.double(),
        ("model.weight", "float32[2, 3]", "float64[2, 3]"),
    ),
    "the dtype of the input": (nn.ReLU(), ROW.long(), lambda m: None, ("x", "float32[1, 3]", "int64[1, 3]")),
}


@pytest.mark.parametrize("case", CHANGED)
def test_change_takes_effect_and_is_reported(case, reported):
    model, x, change, expected = CHANGED[case]
    model = copy.deepcopy(model)
    graph = Predict(model)
    graph(ROW)
    change(model)
    out = graph(x)
    assert out.dtype is x.dtype and bits(out) == bits(model(x))
    assert expected in reported[1].changes and len(reported) == 2


def test_eval_and_back(reported):
    model = nn.Dropout(0.5)
    graph = Predict(model)
    for mode in (True, False, True):
        model.train(mode)
        graph(ROW)
    assert len(reported) == 2  # the first plan is reused


def test_grad_mode_and_default_dtype(reported):
    graph, x = FunctionGraph(lambda x: x * flow.tensor(1.5) if flow.is_grad_enabled() else x * 3), flow.ones(2)
    assert graph(x).tolist() == [1.5, 1.5]
    with flow.no_grad():
        assert graph(x).tolist() == [3.0, 3.0]
    assert reported[1].changes == (("recording of gradients", "True", "False"),)
    flow.set_default_dtype(flow.float64)
    try:
        graph(x)
    finally:
        flow.set_default_dtype(flow.float32)
    assert ("default dtype", "minflow.float32", "minflow.float64") in reported[2].changes


def test_captured_tensor_is_read_by_reference_and_listed():
    mask = flow.tensor([1.0, 0.0, 1.0])

    graph = graph_of(lambda self, x: x * mask + flow.tensor([0.0, 0.0, 5.0]))
    x = flow.ones(3)
    assert graph(x).tolist() == [1, 0, 6]
    mask[1] = 9
    assert graph(x).tolist() == [1, 9, 6] and len(graph._plans) == 1
    assert [name for name, _ in graph._last.build.captured] == ["mask"]
    mask.data = flow.tensor([2.0, 2.0, 2.0])
    assert graph(x).tolist() == [2, 2, 7]
    assert graph._history[1].reason[0][0] == "mask"


def test_graph_settings_and_plain_attributes(reported):
    graph, x = graph_of(lambda self, x: x * self.scale, scale=2), flow.ones(2)
    graph(x)
    graph.scale = 5
    assert graph(x).tolist() == [5, 5] and reported[1].changes == (("self.scale", "2", "5"),)


def test_invalid_pass_is_named():
    def broken(graph):
        graph.nodes.pop(0)
        return graph

    graph = Predict(nn.Linear(3, 3))
    graph.passes.append(broken)
    with pytest.raises(flow.MinflowError, match="broken"):
        graph(flow.ones(1, 3))
    graph.passes.remove(broken)
    assert graph(flow.ones(1, 3)).shape == (1, 3)

    def fewer(graph):
        from minflow.core.ir import Graph

        return Graph(graph.inputs, graph.nodes, [], graph.states, graph.updates)

    graph.passes.insert(0, fewer)
    with pytest.raises(flow.MinflowError, match="fewer"):
        graph(flow.ones(1, 3))


def test_plans_with_large_arenas_are_fewer(monkeypatch):
    monkeypatch.setattr(plan_cache, "ARENA_BYTES", 20 * 64 * 2)
    graph = FunctionGraph(lambda x: (x + 1) * (x - 1))
    for n in range(2, 42):
        graph(flow.ones(n, 8))
    assert len(graph._plans) == 16


def test_plans_are_bounded_and_freed():
    graph = FunctionGraph(lambda x: x + 1)
    graph(flow.ones(1))
    first = weakref.ref(graph._last)
    for n in range(2, 100):
        graph(flow.ones(n))
    assert len(graph._plans) == 64 and len(graph._history) == 99
    gc.collect()
    assert first() is None
    assert graph(flow.ones(1)).tolist() == [2.0]


def test_graph_is_freed_with_its_last_reference():
    model = MLP()
    graph = Predict(model)
    graph(flow.ones(1, 20))
    gone = weakref.ref(graph)
    del graph
    gc.collect()
    assert gone() is None


# ---- Python state in modules and around build ------------------------------------------------------------------------


class Holder(nn.Module):
    """Scale by whatever `read` finds in `self.held`."""

    def __init__(self, held, read):
        super().__init__()
        self.held, self.read = held, read

    def forward(self, x):
        return x * self.read(self.held)


ONE = flow.tensor([1.0, 1.0])
# (the held object, how forward reads it, what changes between two calls)
HELD = {
    "list": (lambda: [2.0, 3.0], lambda h: h[0], lambda h: h.__setitem__(0, 5.0)),
    "appended": (lambda: [2.0], lambda h: sum(h), lambda h: h.append(1.5)),
    "zero and minus zero": (lambda: [0.0], lambda h: h[0], lambda h: h.__setitem__(0, -0.0)),
    "int and float": (lambda: [2], lambda h: h[0] / 4, lambda h: h.__setitem__(0, 2.0)),
    "dict": (lambda: {"a": 2.0}, lambda h: h["a"], lambda h: h.update(a=5.0)),
    "order of a dict": (
        lambda: {"a": 2.0, "b": 3.0},
        lambda h: next(iter(h.values())),
        lambda h: h.update(a=h.pop("a")),
    ),
    "set": (lambda: {2, 3}, lambda h: sum(h), lambda h: h.add(7)),
    "deque": (lambda: deque([2.0], 3), lambda h: sum(h), lambda h: h.append(4.0)),
    "text in a list": (lambda: ["sum"], lambda h: 2.0 if h[0] == "sum" else 3.0, lambda h: h.__setitem__(0, "mean")),
    "tensor in a list": (lambda: [flow.tensor([1.0, 2.0])], lambda h: h[0], lambda h: h.__setitem__(0, ONE * 7)),
    "tensor in a dict": (lambda: {"t": flow.tensor([1.0, 2.0])}, lambda h: h["t"], lambda h: h.update(t=ONE * 7)),
    "written tensor": (lambda: [flow.tensor([1.0, 2.0])], lambda h: h[0], lambda h: h[0].mul_(3.0)),
    "list in a tuple": (lambda: (1.0, [2.0]), lambda h: h[1][0], lambda h: h[1].__setitem__(0, 5.0)),
    "four levels": (lambda: [[[[2.0]]]], lambda h: h[0][0][0][0], lambda h: h[0][0][0].__setitem__(0, 5.0)),
    "numpy number": (lambda: [np.float32(2)], lambda h: float(h[0]), lambda h: h.__setitem__(0, np.float32(5))),
    "1,000 entries": (lambda: [2.0] * 1_000, lambda h: h[-1], lambda h: h.__setitem__(-1, 5.0)),
    "function in a list": (lambda: [flow.sin], lambda h: h[0](ONE), lambda h: h.__setitem__(0, flow.cos)),
}


@pytest.mark.parametrize("case", list(HELD))
def test_module_container_is_tracked_by_its_contents(case, reported):
    make, read, change = HELD[case]
    model = Holder(make(), read)
    graph, x = Predict(model), flow.tensor([1.0, -2.0])
    assert bits(graph(x)) == bits(model(x)) == bits(graph(x)) and len(reported) == 1
    before = bits(model(x))
    change(model.held)
    assert bits(graph(x)) == bits(model(x)) and (bits(model(x)) != before or case == "int and float")
    assert (
        len(reported) == 1
        if case == "written tensor"
        else [what for what, _, _ in reported[1].changes] == ["model.held"]
    )
    graph(x)
    assert len(reported) <= 2


def test_graph_and_optimizer_containers_are_tracked(reported):
    graph, x = graph_of(lambda self, x: x * self.scales[0], scales=[2, 3]), flow.ones(2)
    graph(x)
    graph.scales[0] = 5
    assert graph(x).tolist() == [5, 5] and reported[1].changes == (("self.scales", "[2, 3]", "[5, 3]"),)
    graph.scales[0] = 2
    assert graph(x).tolist() == [2, 2] and len(reported) == 2  # the first plan is reused


def test_containers_are_checked_only_for_models_that_have_them(monkeypatch):
    counts = []
    original = key.contents_changed
    monkeypatch.setattr(key, "contents_changed", lambda contents: counts.append(len(contents)) or original(contents))
    for model, wanted in (
        (MLP(), []),
        (Holder((1.0, (2.0,)), lambda h: h[0]), []),
        (Holder([2.0], lambda h: h[0]), [1] * 5),
    ):
        graph = Predict(model)
        for _ in range(6):
            graph(flow.ones(2, 20))
        assert counts == wanted
        counts.clear()
    _, _, graph = trainer(momentum=0.5)
    for _ in range(4):
        graph(*data())
    layers = [kind() for kind in (nn.ReLU, nn.Dropout, nn.Flatten, nn.CrossEntropyLoss)] + [
        nn.Conv2d(1, 2, 3),
        nn.LayerNorm((2, 3)),
    ]
    assert counts == [] and all(key.Fingerprint.of_graph(Predict(layer)).contents == [] for layer in layers)


def test_container_written_in_build_warns_unless_it_is_a_cache(reported):
    class Logging(nn.Module):
        def __init__(self):
            super().__init__()
            self.log, self.masks = [], {}

        def forward(self, x):
            if len(x) not in self.masks:
                self.masks[len(x)] = 1.0
            self.log.append(len(x))  # here
            return x * self.masks[len(x)]

    model = Logging()
    graph = Predict(model)
    with pytest.warns(
        flow.MinflowWarning, match=r"model\.log goes from \[\] to \[2\] while the graph is built"
    ) as records:
        for n in (2, 3, 2, 3, 2, 3, 2, 3):
            assert graph(flow.ones(n)).tolist() == [1.0] * n
    assert len(records) == 1 and len(reported) <= 4


scale = flow.tensor(2.0)


def test_rebound_variable_is_tracked(reported, monkeypatch):
    around = first = flow.tensor(1.0)
    looked = []
    original = key.contents_changed
    monkeypatch.setattr(key, "contents_changed", lambda contents: looked.append(len(contents)) or original(contents))

    def scaled(x):
        return next(x * scale for _ in range(1))

    graph, x = graph_of(lambda self, x: scaled(x) + around), flow.ones(2)
    assert graph(x).tolist() == graph(x).tolist() == [3, 3] and len(reported) == 1 and looked == [2]
    monkeypatch.setitem(globals(), "scale", flow.tensor(5.0))
    assert graph(x).tolist() == [6, 6] and [what for what, _, _ in reported[1].changes] == ["scale"]
    around = flow.tensor([1.0, 2.0])
    assert graph(x).tolist() == [6, 7] and reported[2].changes == (("around", "float32[]", "float32[2]"),)
    around = first
    assert graph(x).tolist() == [6, 6] and len(reported) == 3  # the earlier plan is reused
    around.add_(1)
    assert graph(x).tolist() == [7, 7] and len(reported) == 3
    around = 4.0
    with pytest.warns(flow.MinflowWarning, match=r"build uses around \(4\.0\)"):
        assert graph(x).tolist() == [9, 9] and reported[3].changes == (("around", "float32[]", "4.0"),)


class Settings:
    def __init__(self, rate):
        self.rate = rate


def opaque_models():
    rate, limits, array, settings, names, unused = 2.0, [3.0], np.full(10_000, 4.0), Settings(5.0), {"a": (1, 2)}, 6.0
    big, deep, module, function = list(range(1_001)), [[[[[2.0]]]]], nn.Linear(2, 2), flow.relu

    def helper(x):
        return x * rate

    class Calls(nn.Module):
        def __init__(self):
            super().__init__()
            self.big, self.deep, self.array, self.settings, self.spare = big, deep, array, settings, Settings(0)

        def scaled(self, x):
            return x * self.settings.rate

        def forward(self, x):
            return self.scaled(x) + self.big[1] + self.deep[0][0][0][0][0] + flow.tensor(self.array[:2])

    class Reads(nn.Graph):
        def __init__(self):
            super().__init__()
            self.model, self.unused = Calls(), unused

        def build(self, x):
            return helper(function(module(x))) * limits[0] + self.model(x) + next(names["a"][0] for _ in range(2))

    return Reads()


def test_untracked_objects_warn_once_and_are_listed():
    graph, x = opaque_models(), flow.ones(3, 2)
    with pytest.warns(flow.MinflowWarning, match="build uses .* not again at each call") as records:
        for n in (3, 3, 2, 1):
            graph(x[:n])
    assert len(records) == 1 and records[0].filename == __file__
    listed = {name: what.partition(":")[0] for name, what in graph.frozen().record.built_in if "as it was when" in what}
    assert listed == {
        "rate": "2.0",
        "limits": "[3.0]",
        "names": "{'a'",
        "model.settings": "an object of class Settings",
        "model.big": "a list of more than 1,000 entries",
        "model.deep": "more than 4 levels deep",
        "model.array": "a NumPy array float64[10000]",
    }


def test_function_attributes_are_inspected():
    width, depth = 3.0, 4.0

    class Calls(nn.Module):
        def __init__(self, function):
            super().__init__()
            self.function = function

        def forward(self, x):
            return self.function(x)

    graph = graph_of(
        lambda self, x: self.function(self.model(x)), model=Calls(lambda x: x * width), function=lambda x: x + depth
    )
    with pytest.warns(flow.MinflowWarning, match="build uses .* not again at each call"):
        graph(flow.ones(2))
    assert {name for name, what in graph.frozen().record.built_in if "as it was when" in what} == {"width", "depth"}


K = 2.0
CLASSES, LAYERS = ["a", "b"], [nn.Linear(2, 2)]
layers = [LAYERS[0], flow.relu]


def test_no_warning_for_constants_and_unread_objects():
    class Frozen(nn.Module):
        def __init__(self, settings):
            super().__init__()
            self.settings, self.kind, self.dtype = settings, nn.ReLU, flow.float32
            self.width, self.sizes = settings.rate, (1, 2)

        def forward(self, x):
            return x * self.width * self.sizes[0] * K + len(CLASSES)

    tensor, model = flow.ones(2), Frozen(Settings(2.0))

    def build(self, x):
        for layer in layers:
            x = layer(x)
        return model(x) + tensor + math.pi + np.pi

    graph = graph_of(build)
    graph(flow.ones(1, 2))
    assert not any("as it was" in what for _, what in graph.frozen().record.built_in)
