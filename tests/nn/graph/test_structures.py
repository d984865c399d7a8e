"""Inputs and outputs of graphs in dicts, named tuples and dataclasses, and dataclasses of settings that build reads."""

import dataclasses
import warnings
from collections import Counter, OrderedDict, defaultdict, namedtuple

import pytest

import minflow as flow
from minflow import nn


@dataclasses.dataclass
class Batch:
    x: flow.Tensor
    y: flow.Tensor | None = None
    extra: dict | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    x: flow.Tensor
    inner: Batch


@dataclasses.dataclass
class Derived:
    """A dataclass whose `__post_init__` must not run again, and with a field that `__init__` does not take."""

    x: flow.Tensor
    twice: flow.Tensor = dataclasses.field(init=False)

    def __post_init__(self):
        self.x, self.twice = self.x + 1, self.x * 2


class ModelOutput(OrderedDict):
    """As in Transformers: the fields of a subclass that are not None are entries, too."""

    def __post_init__(self):
        for field in dataclasses.fields(self):
            if (value := getattr(self, field.name)) is not None:
                super().__setitem__(field.name, value)

    def __setattr__(self, name, value):
        if name in self:
            super().__setitem__(name, value)
        super().__setattr__(name, value)


@dataclasses.dataclass
class Output(ModelOutput):
    loss: flow.Tensor | None = None
    logits: flow.Tensor | None = None
    hidden_states: tuple | None = None


Pair = namedtuple("Pair", "first second")
X, Y = flow.tensor([1.0, 2.0]), flow.tensor([3.0, 4.0])


def graph_of(function):
    class Structured(nn.Graph):
        def build(self, *args):
            return function(*args)

    return Structured()


def in_lists(value):
    """The value with lists in place of tensors, to compare."""
    if isinstance(value, flow.Tensor):
        return value.tolist()
    if dataclasses.is_dataclass(value) and not isinstance(value, dict):
        return type(value).__name__, {f.name: in_lists(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, dict):
        return type(value).__name__, [(key, in_lists(x)) for key, x in value.items()]
    if isinstance(value, list | tuple):
        return type(value).__name__, [in_lists(x) for x in value]
    return value


CASES = {
    "dataclass": (lambda b: Batch(b.x + b.y), lambda: Batch(X, Y)),
    "nested": (lambda b: Frozen(b.x * b.inner.extra["k"][0], Batch(b.inner.x)),
               lambda: Frozen(X, Batch(Y, None, {"k": [X]}))),
    "post_init": (lambda b: (b, b.twice - b.x), lambda: Derived(X)),
    "model output": (lambda b: Output(b.logits.sum(), hidden_states=(b["logits"], *b.hidden_states)),
                     lambda: Output(logits=X, hidden_states=(X, Y))),
    "named tuple": (lambda p: Pair(p.second, [p.first, p]), lambda: Pair(X, Batch(Y))),
    "dict": (lambda d: {"sum": d["a"] + d[1][0], 2: Pair(d["a"], None)}, lambda: {"a": X, 1: (Y,)}),
    "ordered": (lambda d: OrderedDict(b=d["b"] * 2, a=d["a"]), lambda: OrderedDict(b=X, a=Y)),
    "default dict": (lambda d: defaultdict(list, a=d["a"] * 2), lambda: defaultdict(list, a=X)),
    "counter": (lambda d: d, lambda: Counter({"a": X})),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_graph_gives_the_structure_of_eager_code(case):
    function, make = CASES[case]
    graph = graph_of(function)
    for _ in range(2):
        assert in_lists(graph(make())) == in_lists(function(make()))
        assert in_lists(graph.submit(make()).get(60)) == in_lists(function(make()))
    assert len(graph._history) == 1, "one plan"


def test_gradients_flow_through_dataclasses():
    model = nn.Linear(2, 2)

    class Train(nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = model
            self.add_optimizer(flow.optim.SGD(model.parameters(), 0.1))

        def build(self, batch):
            logits = self.model(batch.x)
            out = Output((logits - batch.y).square().mean(), logits)
            out.loss.backward()
            return out

    before = [p.detach().clone() for p in model.parameters()]
    expected = (model(X) - Y).square().mean()
    expected.backward()
    out = Train()(Batch(X, Y))
    assert type(out) is Output and flow.allclose(out.loss, expected.detach())
    for p, old, grad in zip(model.parameters(), before, [p.grad for p in model.parameters()]):
        assert flow.allclose(p.detach(), old - 0.1 * grad)


def test_names_of_fields():
    graph = graph_of(lambda batches: batches[0].x + batches[0].extra["k"])
    graph([Batch(X, extra={"k": Y})])
    graph([Batch(flow.ones(1), extra={"k": Y})])
    assert "because batches[0].x: float32[2] -> float32[1]" in str(graph.why()).replace("args[0]", "batches")
    assert "_Structured_" in repr(graph) and "Batch" not in repr(graph)


@pytest.mark.parametrize(
    ("function", "argument", "said"),
    [
        (lambda b: b.x, Batch(3), r"the input args\[0\].x is an int; a graph takes .* dicts and dataclasses"),
        (lambda b: b[0].x, [Batch(X, extra={"k": "s"})], r"the input args\[0\]\[0\].extra\['k'\] is a str"),
        (lambda x: Batch(x, 3), X, r"(?s)build returns an int.*output.y  3"),
        (lambda x: [Batch(x, {1, 2})], X, r"(?s)build returns a set.*output\[0\].y  \{1, 2\}"),
    ],
)
def test_other_values_are_refused_by_name(function, argument, said):
    with pytest.raises(flow.MinflowError, match=said):
        graph_of(function)(argument)


def test_saved_graph_takes_and_returns_dicts(tmp_path):
    graph = graph_of(lambda b: Batch(b.x * 2, b.y))
    graph(Batch(X, Y))
    flow.save(graph, tmp_path / "graph")
    loaded = flow.load_graph(tmp_path / "graph")
    assert in_lists(loaded({"x": X, "y": Y, "extra": None})["x"]) == [2.0, 4.0]
    assert in_lists(loaded(Batch(X, Y))["x"]) == [2.0, 4.0]


# ---- settings --------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Settings:
    scale: float = 2.0
    sizes: list = dataclasses.field(default_factory=lambda: [1, 2])
    inner: dict = dataclasses.field(default_factory=dict)


class Block(nn.Module):
    def __init__(self, settings):
        super().__init__()
        self.settings = settings

    def forward(self, x):
        return x * self.settings.scale + len(self.settings.sizes)


WRITES = {
    "a number": lambda s: setattr(s, "scale", 3.0),
    "a list": lambda s: s.sizes.append(3),
    "a dict": lambda s: s.inner.update(k=0.5),
    "the same": lambda s: setattr(s, "scale", 2.0),
}


def graph_with(settings, place):
    class InModule(nn.Graph):
        def __init__(self):
            super().__init__()
            self.blocks = nn.Sequential(Block(settings), Block(settings))

        def build(self, x):
            return self.blocks(x)

    class InGraph(nn.Graph):
        def __init__(self):
            super().__init__()
            self.settings = settings

        def build(self, x):
            return x * self.settings.scale + len(self.settings.sizes) + self.settings.inner.get("k", 0)

    class InVariable(nn.Graph):
        def build(self, x):
            return x * settings.scale + len(settings.sizes) + settings.inner.get("k", 0)

    return {"module": InModule, "graph": InGraph, "enclosing variable": InVariable}[place]()


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("place", ["module", "graph", "enclosing variable"])
def test_settings_are_followed_without_notice(place, write):
    settings = Settings()
    graph = graph_with(settings, place)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        graph(X)
        WRITES[write](settings)
        assert graph(X).tolist() == graph(X).tolist() == graph.build(X).tolist()
    assert len(graph._history) == 1 + (write != "the same")


def test_object_in_settings_is_reported():
    class Other:
        scale = 1.0

    settings = Settings(inner=Other())
    with pytest.warns(flow.MinflowWarning, match="settings .*later change is not seen"):
        graph_of(lambda x: x * settings.inner.scale)(X)
