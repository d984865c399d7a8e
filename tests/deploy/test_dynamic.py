"""Dynamic axes: sizes that follow them, and what is refused with its line and values."""

import copy
import itertools
import math
import random
import re

import numpy as np
import pytest

import minflow as flow
from minflow import nn, typing as tp
from minflow.compiler.dynamic_shapes.axes import axes_of, sizes_of
from minflow.compiler.dynamic_shapes.derived_sizes import SizedConstant, SizeFormula, SizeRatio, evaluate_sizes
from minflow.compiler.dynamic_shapes.size_relations import NotSizeDependent, SizeSolver
from minflow.deploy import document
from minflow.deploy.checks import Malformed
from minflow.deploy.program import program_of
from minflow.deploy.writing import to_data
from minflow.models import GPT, GPTConfig
from tests.deploy.saved import changed
from tests.graphs import bits


class Graph(nn.Graph):
    """Graph of a function and of the modules that it calls. With an optimizer the function is a loss."""

    def __init__(self, function, *modules, optimizer=None, accumulation=1):
        super().__init__()
        self.function, self.held = function, list(modules)
        if optimizer is not None:
            self.add_optimizer(optimizer)
        self.config.set_gradient_accumulation_steps(accumulation)

    def build(self, x, *more):
        found = self.function(x, *more)
        if self.training:
            found.backward()
        return found


def program(graph, dynamic, *inputs):
    graph(*inputs)
    return program_of(graph, dynamic)


def saved(graph, folder, dynamic, *inputs):
    """Call a graph with these inputs, save it, and load it."""
    graph(*inputs)
    flow.save(graph, folder, dynamic=dynamic)
    return flow.load_graph(folder)


@pytest.fixture
def check(tmp_path):
    """`check(graph, dynamic, first, *others)`: call the graph with the first inputs, save and load it. For the others
    the loaded graph has the same outputs, and afterwards the same states. Return the traced program.
    """

    def check(graph, dynamic, first, *others):
        loaded = saved(graph, tmp_path / "saved", dynamic, *first)
        for inputs in others:
            state = flow.get_rng_state()
            wanted = graph(*inputs)
            flow.set_rng_state(state)
            assert bits(loaded(*inputs)) == bits(wanted), [x.spec for x in inputs]
        assert bits(loaded.state_dict()) == bits(graph.state_dict())
        return program_of(graph, dynamic)

    return check


def text(x):
    if not isinstance(x, tuple):
        return str(x)
    return ", ".join([f"({text(y)})" if isinstance(y, tuple) else str(y) for y in x])


def attrs_of(program):
    """(op, attr or path, text) of each dependent size."""
    return [
        (node.op.name, key, text(x)) for node, changes in program.size_dependent.items() for key, x in changes.items()
    ]


BATCH = {0: {0: "batch"}}


# ---- dependent numbers ----------------------------------------------------------------------------------------------


def test_sizes_follow_dynamic_axes():
    x = SizeFormula(((8, ("batch", "time")), (-1, ("batch",)), (3, ())))
    assert x.evaluate({"batch": 2, "time": 5}) == 81 and x.axes == {"batch", "time"}
    assert str(x) == "8*batch*time - batch + 3"
    assert hash(x) == hash(SizeFormula(x.terms)) and x == SizeFormula(x.terms) and str(SizeFormula(())) == "0"
    with pytest.raises(AttributeError):
        x.terms = ()


def test_ratio():
    n = SizeFormula(((25, ("n",)),))
    x = SizeRatio(0.1, n, SizeFormula((*n.terms, (-1, ()))))
    assert x.evaluate({"n": 4}) == 0.1 * (100 / 99) and str(x) == "0.1 * (25*n) / (25*n - 1)" and x.axes == {"n"}
    assert SizeRatio(1.0, SizeFormula(((2, ()),)), SizeFormula(((1, ("n",)), (-1, ())))).evaluate({"n": 1}) == np.inf


def test_filled():
    n = SizeFormula(((1, ("n",)),))
    assert SizedConstant((n, 2), n).evaluate({"n": 3}, np.dtype("float32")).tolist() == [[3.0, 3.0]] * 3
    assert SizedConstant((n,), 5, -2).evaluate({"n": 3}, np.dtype("int64")).tolist() == [5, 3, 1]


def law(*lows):
    names, sizes = "abc"[: len(lows)], list(itertools.product(*[(n, 2 * n) for n in lows]))
    return SizeSolver(names, sizes + [(*lows[:k], 2 * n + 1, *lows[k + 1 :]) for k, n in enumerate(lows)])


@pytest.mark.parametrize("lows", [(2,), (7,), (3, 4), (2, 5, 3)])
def test_whole_numbers_are_solved_for(lows):
    known, draw = law(*lows), random.Random(len(lows))
    for _ in range(50):
        names = [c for k in range(len(lows) + 1) for c in itertools.combinations("abc"[: len(lows)], k)]
        wanted = SizeFormula(tuple((draw.randint(-9, 9), c) for c in names))
        got = known.solve([wanted.evaluate(sizes) for sizes in known.dicts])
        sizes = dict(zip("abc", (11, 13, 1)))
        assert evaluate_sizes(got, sizes) == wanted.evaluate(sizes) and (
            isinstance(got, SizeFormula) or not any(factor for factor, c in wanted.terms if c)
        )
        with pytest.raises(NotSizeDependent):
            known.solve([wanted.evaluate(sizes) + sizes["a"] ** 2 for sizes in known.dicts])


@pytest.mark.parametrize("momentum", [0.1, 0.01, 0.99, 1 / 3, 1.0, 0.0123456789])
def test_ratios_are_solved_for_in_all_bits(momentum):
    known = law(3, 4)
    for factor, names in ((1, "a"), (49, "b"), (6, "ab")):
        count = SizeFormula(((factor, tuple(names)),))
        for value in (lambda n: momentum * (n / (n - 1)), lambda n: 2 / (n - 1), lambda n: 1 / n, lambda n: n + 0.0):
            got = known.solve([value(count.evaluate(sizes)) for sizes in known.dicts])
            for sizes in ({"a": 2, "b": 1}, {"a": 7, "b": 64}):
                assert got.evaluate(sizes) == value(count.evaluate(sizes))


@pytest.mark.parametrize("values", [
    [0.0, 1.0, 1.5], [5e-324, 1e-323, 1e-323], [math.inf, 1.0, 2.0], [math.nan, 1.0, 2.0], [0.3, 0.7, 0.2],
    [1, 1.0, 2], [True, False, True], ["a", "b", "a"], [None, 1, 2], [(1, 2), (1,), (1, 2)], [{"a": 1}, {"b": 1}, {}],
])  # fmt: skip
def test_sizes_that_follow_no_axis(values):
    with pytest.raises(NotSizeDependent):
        law(4).solve(values)


def test_constant_sizes_stay_constant():
    for x in (math.nan, (1, [2.5, {"a": None}]), -0.0, "text", {"a": (1, 2)}):
        assert law(4).solve([x, copy.deepcopy(x), copy.deepcopy(x)]) is x


# ---- programs --------------------------------------------------------------------------------------------------------


def test_mlp(check):
    model = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2))
    found = check(Graph(model, model), {"x": {0: "batch"}}, *[[flow.randn(n, 3)] for n in (4, 1, 2, 7, 64)])
    assert found.axes == {"batch": ((0, 0),)} and attrs_of(found) == []


def test_cnn(check):
    conv, head, norm = nn.Conv2d(1, 2, 3), nn.Linear(8, 3), nn.BatchNorm2d(2).eval()
    graph = Graph(lambda x: head(nn.functional.max_pool2d(norm(conv(x)), 2).view(x.size(0), -1)), conv, head, norm)
    found = check(graph, {"input_0": [0]}, *[[flow.randn(n, 1, 6, 6)] for n in (4, 1, 2, 7)])
    assert attrs_of(found) == [("reshape", "shape", "x_0, 8")]


@pytest.mark.parametrize("time", [1, 3, 8])  # 8 is its block size: longer text cannot be traced
def test_gpt(time, check):
    model = GPT(GPTConfig(8, 11, 1, 2, 4)).eval()
    graph = Graph(lambda x: model(x)[0], model)
    shapes = (2, time), (1, 1), (1, 8), (3, 2), (7, 5)
    found = check(
        graph, {f"_{graph.name}-input_0": {0: "batch", 1: "time"}}, *[[flow.randint(0, 11, shape)] for shape in shapes]
    )
    assert ("reshape", "shape", "batch*time, 4") in attrs_of(found)
    assert ("full", "shape", "time, time") in attrs_of(found)
    assert [fill.step for fill in found.sized_constants.values()] == [1]


def test_lstm(check):
    model = nn.LSTM(3, 4, num_layers=2, batch_first=True)
    shapes = (1, 3, 3), (1, 1, 3), (1, 5, 3), (4, 1, 3), (7, 2, 3)  # a size of 1 is replaced
    found = check(
        Graph(lambda x: model(x)[0], model), {"x": {0: "batch", 1: "time"}}, *[[flow.randn(*shape)] for shape in shapes]
    )
    assert ("full", "shape", "batch, 4") in attrs_of(found)


def test_embedding_bags(check):
    model = nn.EmbeddingBag(11, 3, mode="mean")
    found = check(
        Graph(model, model), {0: {0: "n", 1: "t"}}, *[[flow.randint(0, 11, (n, n + 1))] for n in (4, 1, 2, 7)]
    )
    assert [(fill.first, fill.step) for fill in found.sized_constants.values()] == [(0, 1)]


def test_attention_and_shapes(check):
    def build(x):
        b, t, c = x.shape
        q = x.reshape(b, t, 2, c // 2).transpose(1, 2)
        y = flow.softmax(q @ q.transpose(-2, -1), -1) @ q
        z = y.transpose(1, 2).flatten(2) + flow.zeros(b, 1, c) + flow.ones(t, c).expand(b, t, c)
        left, right = z.chunk(2, dim=2)
        return left[:, 1:] * right[:, : t - 1], z.flatten(0, 1)[b:], z.mean(0), x.sum(0) / b, flow.full((b,), float(b))

    found = check(Graph(build), {"x": {0: "batch", -2: "time"}}, *[[flow.randn(n, 3, 4)] for n in (4, 1, 2, 7)])
    assert found.axes == {"batch": ((0, 0),), "time": ((0, 1),)}
    assert ("getitem", "index", "(None, None, None), (None, time - 1, None)") in attrs_of(found)
    assert ("div", 1, "batch") in attrs_of(found)


@pytest.mark.parametrize("mode", ["nearest", "bilinear"])
def test_images_of_any_size_are_resized(mode, check):
    resize = nn.Sequential(nn.Upsample(scale_factor=2, mode=mode), nn.ReLU(), nn.Upsample((7, 5), mode=mode))
    axes = {0: {0: "batch", 2: "height", 3: "width"}}
    program = check(Graph(resize), axes, *[(flow.randn(*size),) for size in ((2, 3, 4, 6), (1, 3, 5, 3), (3, 3, 8, 7))])
    assert ("interpolate", "output_size", "2*height, 2*width") in attrs_of(program)


def test_three_axes(check):
    graph = Graph(lambda x, y: (x.view(-1).sum() + y.sum(), (x + 1).reshape(x.numel())))
    found = check(
        graph,
        {0: {0: "a", 1: "b", 2: "c"}, "more[0]": {0: "a"}},
        *[[flow.randn(n, 2 * n, n + 1, 2), flow.randn(n)] for n in (4, 2, 3)],
    )
    assert ("reshape", "shape", "2*a*b*c") in attrs_of(found) and found.axes["a"] == ((0, 0), (1, 0))


@pytest.mark.parametrize("first", [1, 4])
def test_literals_and_constants(first, check):
    def build(x):
        n = x.size(0)
        places = flow.arange(1, 2 * n, 2) * 1.0
        return (
            x * n,
            x.sum() * (1 / n),
            x.sum() / (3 * n + 1),
            places + x,
            flow.tensor([2.0] * n) - x,
            x + (n - 1.0),
            flow.full((n,), float(n)),
            flow.tensor(float(n)) * x,
            x[: n - 1],
            x * flow.rand(n),
        )

    found = check(Graph(build), BATCH, *[[flow.randn(n)] for n in (first, 1, 2, 7, 64)])
    assert {x for x in attrs_of(found) if x[1] == 1} >= {
        ("mul", 1, "batch"),
        ("mul", 1, "(1) / (batch)"),
        ("div", 1, "3*batch + 1"),
    }
    assert {fill.step for fill in found.sized_constants.values()} == {0, 2}


def test_batch_norm_in_training(check):
    norm = nn.BatchNorm2d(3)
    found = check(Graph(norm, norm), BATCH, *[[flow.randn(n, 3, 2, 2)] for n in (4, 1, 2, 7)])
    assert attrs_of(found) == [("mix", 3, "0.1 * (4*batch) / (4*batch - 1)")]


def test_training_graph(check):
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 2))

    def loss(x, y):
        logits = model(x)
        return nn.functional.cross_entropy(logits, y) + (logits**2).mean() + logits.var(0).sum()

    graph = Graph(loss, model, optimizer=flow.optim.Adam(model.parameters(), lr=0.01))
    found = check(
        graph,
        {"x": {0: "n"}, "more[0]": {0: "n"}},
        *[[flow.randn(n, 3), flow.randint(0, 2, (n,))] for n in (4, 2, 7, 9, 4)],
    )
    assert {("div", 1, "2*n"), ("mul", 1, "(2) / (n - 1)"), ("expand", "shape", "n, 2")} <= set(attrs_of(found))


class Square(flow.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return ctx.saved_tensors[0] * g  # half the right gradient, to tell the two apart


@pytest.mark.parametrize("checkpointed", [False, True])
def test_checkpointed_function_and_module(checkpointed, check):
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh())
    model.to(nn.graph.GraphModule).activation_checkpointing = checkpointed
    graph = Graph(
        lambda x: Square.apply(model(x)).sum() / x.size(0), model, optimizer=flow.optim.SGD(model.parameters(), lr=0.1)
    )
    found = check(graph, BATCH, *[[flow.randn(n, 3)] for n in (4, 7)])
    assert ("expand", "shape", "batch, 4") in attrs_of(found) and ("div", 1, "batch") in attrs_of(found)
    assert any(node.op.name == "recompute" for node in found.graph.nodes) is checkpointed


def test_gradient_accumulation(check):
    model = nn.Linear(3, 2)
    graph = Graph(
        lambda x: (model(x) ** 2).mean(), model, optimizer=flow.optim.SGD(model.parameters(), lr=0.1), accumulation=2
    )
    found = check(graph, BATCH, *[[flow.randn(n, 3)] for n in (8, 4, 12, 2, 8)])
    assert ("div", 1, "2*batch") in attrs_of(found) and found.graph.inputs[0].out_specs[0].shape == (4, 3)


def test_job(tmp_path):
    @flow.global_function(type="predict")
    def predict(x: tp.Numpy.Placeholder((4, 6))) -> tp.Numpy:
        w = flow.get_variable("w", shape=(3, 2), initializer=flow.random_normal_initializer())
        return flow.matmul(flow.reshape(x, (x.shape[0] * 2, 3)), w)

    x = np.linspace(-1, 1, 24, dtype="float32").reshape(4, 6)
    expected = predict(x)
    names = set(predict.session.variables)
    found = program_of(predict, {"x": {0: "batch"}})
    assert attrs_of(found) == [("reshape", "shape", "2*batch, 3")] and set(predict.session.variables) == names
    flow.save(predict, tmp_path / "saved", dynamic={"x": {0: "batch"}})
    flow.clear_default_session()
    loaded = flow.load_graph(tmp_path / "saved")
    for n in (4, 1, 3):
        np.testing.assert_array_equal(loaded(flow.from_numpy(x[:n])).numpy(), expected[: 2 * n])


STEPS = [  # of a tensor (b, t, 4) to one of (b, t, 4)
    lambda x: x.transpose(0, 1).reshape(x.size(1), -1).view(x.size(1), x.size(0), 4).transpose(0, 1),
    lambda x: x + flow.arange(x.size(1)).view(1, -1, 1),
    lambda x: flow.cat([x[:, 1:], x[:, :1]], 1) * x.size(0),
    lambda x: x - x.mean((0, 1), keepdim=True) + x.var((0, 1)) / x.numel(),
    lambda x: x.masked_fill(flow.ones(x.size(1), 4).tril() == 0, 0.5),
    lambda x: flow.zeros(x.size(0) + 1, x.size(1), 4)[1:] + x.flip(1),
    lambda x: flow.einsum("btc,bsc->bts", x, x).softmax(-1) @ x,
    lambda x: x.flatten(0, 1)[flow.arange(x.size(0) * x.size(1))].unflatten(0, x.shape[:2]),
    lambda x: x * (2 / (x.size(0) * x.size(1) + 1)) + x.cumsum(1) / x.size(1),
    lambda x: x.repeat(2, 1, 1)[: x.size(0)] + x.expand(3, *x.shape).sum(0),
    lambda x: nn.functional.pad(x, (0, 0, 1, 0))[:, : x.size(1)] + flow.full((1, 1, 4), x.size(1) - 0.0),
    lambda x: x.roll(1, 0).unsqueeze(1).squeeze(1) + flow.stack(x.split(1, 2), 0).sum(0),
]  # fmt: skip


@pytest.mark.parametrize("seed", range(12))
def test_random_programs(seed, check):
    draw = random.Random(seed)
    steps = [STEPS[seed], *draw.choices(STEPS, k=3)]

    def build(x):
        for step in steps:
            x = step(x)
        return x

    check(Graph(build), {"x": {0: "b", 1: "t"}}, *[[flow.randn(n, draw.randint(2, 6), 4)] for n in (4, 1, 3)])


# ---- no side effects on the graph ------------------------------------------------------------------------------------


def test_trace_has_no_side_effects(capsys):
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.calls, self.log, self.norm = 0, [], nn.BatchNorm1d(3)

        def forward(self, x):
            self.calls += 1
            self.log.append(x.size(0))
            self.last = random.random()
            print("in forward")
            return self.norm(x) * flow.rand(x.size(0), 1)

    model = Counting()
    graph = Graph(model, model)
    graph.debug(1)
    with pytest.warns(flow.MinflowWarning):
        graph(flow.randn(4, 3))
    capsys.readouterr()
    random.seed(3)
    first = random.random()
    random.seed(3)
    before = {name: t.numpy().copy() for name, t in model.state_dict().items()}
    counter, history = flow.get_rng_state().copy(), len(graph._history)
    last, log = model.last, list(model.log)
    found = program_of(graph, BATCH)
    assert ("uniform", "shape", "batch, 1") in attrs_of(found)
    assert capsys.readouterr() == ("", "")
    assert (model.calls, model.log, model.last) == (1, log, last)
    assert random.random() == first and (flow.get_rng_state() == counter).all() and len(graph._history) == history
    for name, t in model.state_dict().items():
        np.testing.assert_array_equal(t.numpy(), before[name])
    graph(flow.randn(4, 3))
    assert len(graph._history) == history


def test_tracing_a_training_graph_takes_no_step():
    model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 2))
    graph = Graph(lambda x: model(x).mean(), model, optimizer=flow.optim.Adam(model.parameters(), lr=0.1))
    x = flow.randn(4, 3)
    graph(x)
    before, counter = bits(graph.state_dict()), flow.get_rng_state().tolist()
    program_of(graph, BATCH)
    assert bits(graph.state_dict()) == before and flow.get_rng_state().tolist() == counter
    assert all(p.grad is None for p in model.parameters()) and graph.optimizers[0][0]._steps_taken == 1
    graph(x)
    assert len(graph._history) == 1 and bits(graph.state_dict()) != before


def test_changed_graph_must_be_called_again():
    model = nn.Dropout(0.5)
    graph = Graph(model, model)
    graph(flow.randn(4, 3))
    model.eval()
    with pytest.raises(flow.GraphError, match="(?s)^Graph_.* has changed since.*training +True at its.*False now"):
        program_of(graph, BATCH)
    graph(flow.randn(4, 3))
    assert program_of(graph, BATCH).axes
    flow.set_default_dtype(flow.float64)
    try:
        with pytest.raises(flow.GraphError, match="(?s)^Graph_.*default dtype.*float32 at its last call.*float64 now"):
            program_of(graph, BATCH)
    finally:
        flow.set_default_dtype(flow.float32)


def test_captured_tensor_with_another_storage():
    weight = flow.ones(3)
    graph = Graph(lambda x: x * weight)
    graph(flow.zeros(4, 3))
    weight.data = flow.zeros(3)
    with pytest.raises(flow.GraphError, match="(?s)has changed.*a tensor at.*, another storage now"):
        program_of(graph, BATCH)


def test_named_and_nested_inputs():
    class Nested(nn.Graph):
        def build(self, batch, *, options):
            mask = options["mask"]
            return {"a": batch[0].view(-1) * mask.repeat(3), "b": [batch[1].reshape(mask.size(0), 3)]}

    graph = Nested()
    graph.config.static_inputs(True)
    graph([flow.zeros(4, 3), flow.zeros(3, 4)], options={"mask": flow.zeros(4)})
    found = program_of(graph, {"batch[0]": {0: "n"}, "batch[1]": {1: "n"}, "options['mask']": {0: "n"}})
    assert found.axes == {"n": ((0, 0), (1, 1), (2, 0))} and ("reshape", "shape", "n, 3") in attrs_of(found)
    with pytest.raises(flow.GraphError, match=r"(?s)n=8.*batch\[1\] has that size too: add 'batch\[1\]': \{1: 'n'\}"):
        program_of(graph, {"batch[0]": {0: "n"}, 2: {0: "n"}})


# ---- choosing axes ---------------------------------------------------------------------------------------------------

SPECS = [flow.zeros(4, 784).spec, flow.zeros(4).spec]


@pytest.mark.parametrize(("dynamic", "axes"), [
    ({"x": {0: "n"}, "y": {0: "n"}}, {"n": ((0, 0), (1, 0))}),
    ({"x": [0, 1]}, {"x_0": ((0, 0),), "x_1": ((0, 1),)}),
    ({1: {-1: "n"}}, {"n": ((1, 0),)}),
    ({"input_1": {0: "n"}, "_LeNetGraph_0-input_0": {0: "n"}}, {"n": ((0, 0), (1, 0))}),
    ({}, {}),
])  # fmt: skip
def test_axes(dynamic, axes):
    assert axes_of(dynamic, ["x", "y"], SPECS) == axes


def test_names_of_nested_inputs():
    assert axes_of({"batch[0]": [0]}, ["batch[0]", "y"], SPECS) == {"batch_0_0": ((0, 0),)}


@pytest.mark.parametrize(("dynamic", "message"), [
    ({"z": {0: "n"}}, r"no input 'z'.*x  float32\[4, 784\].*its inputs are x, y"),
    ({2: {0: "n"}}, r"no input 2.*x, y"),
    ({True: {0: "n"}}, r"no input True"),
    ({"input_7": {0: "n"}}, r"no input 'input_7'"),
    ({"output": {0: "n"}}, r"no input 'output'.*name only inputs"),
    ({"x": {2: "n"}}, r"the input x has no axis 2.*0 to 1"),
    ({"x": {-3: "n"}}, r"no axis -3"),
    ({"x": {"0": "n"}}, r"no axis '0'"),
    ({"x": {0: 3}}, r"name of axis 0 of x must be a word, got 3"),
    ({"x": {0: "a b"}}, r"name of axis 0 of x must be a word, got 'a b'"),
    ({"x": {0: "a", -2: "b"}}, r"axis 0 of x is named twice"),
    ({"x": 0}, r"input x must have a dict from axes to names, got 0"),
    (["x"], r"dynamic must be a dict .*, got \['x'\]"),
    ({"x": {1: "n"}, "y": {0: "n"}}, r"'n' has one size.*784 \(axis 1 of x\)|4 \(axis 0 of y\)"),
])  # fmt: skip
def test_wrong_axes(dynamic, message):
    with pytest.raises(flow.MinflowError, match=f"(?s){message}"):
        axes_of(dynamic, ["x", "y"], SPECS)


def test_at_most_three_axes():
    with pytest.raises(flow.GraphError, match="(?s)4 axes have a size of their own.*a, b, c, d"):
        axes_of({0: dict(enumerate("abcd"))}, ["x"], [flow.zeros(2, 3, 4, 5).spec])


def test_sizes_of_dynamic_axes():
    axes = {"n": ((0, 0), (1, 0))}
    assert sizes_of(axes, SPECS, ["x", "y"]) == {"n": 4}
    with pytest.raises(flow.ShapeError, match=r"(?s)'n'.*4 \(axis 0 of x\) and 5 \(axis 0 of y\).*float32\[5\]"):
        sizes_of(axes, [SPECS[0], flow.zeros(5).spec], ["x", "y"])
    with pytest.raises(flow.ShapeError, match=r"(?s)'n' has size 0.*float32\[0\]"):
        sizes_of({"n": ((0, 0),)}, [flow.zeros(0).spec])
    with pytest.raises(flow.ShapeError, match=r"(?s)'n' is missing.*float32\[\]"):
        sizes_of({"n": ((0, 0),)}, [flow.tensor(1.0).spec])


# ---- unsupported sizes -----------------------------------------------------------------------------------------------


def loop(x):
    return sum(x[i] for i in range(x.size(0)))


@pytest.mark.parametrize(("function", "message"), [
    (lambda x: x[: x.size(0) // 2 + 1], r"getitem: its index.*n=4  .*3.*n=8  .*5.*n=9  .*5.*rounded"),
    (lambda x: x.view(x.size(0) // 2, 6), r"reshape: its shape.*n=4 +2.*n=8 +4.*n=12 +6"),
    (lambda x: flow.zeros(x.size(0) ** 2) + x.sum(), r"full: its shape.*n=4  16.*n=8  64.*n=9  81"),
    (lambda x: x * 0.5 ** x.size(0), r"mul: the number 0.0625.*n=8  0.00390625"),
    (lambda x: x + flow.tensor(np.tri(x.size(0), 3)), r"a constant.*n=4  float64\[4, 3\] \[1.0, 0.0, 0.0, 1.0"),
    (loop, r"op number \d+ .*another one.*n=4  nothing.*n=8  <getitem"),
    (lambda x: x + 1 if x.size(0) < 5 else x * 2, r"op number 0 .*n=4  <add.*n=8  <mul.*branch"),
    (lambda x: x.exp() + x if x.size(0) < 5 else x.exp() + x.exp(), r"op number 1 .*n=4  <add.*n=8  <exp"),
    (lambda x: list(x), r"build returns another structure"),
    (lambda x: x.sum(0) if x.size(0) % 2 else x.sum(1), r"sum: its axis"),
])  # fmt: skip
def test_refused(function, message):
    with pytest.raises(flow.GraphError, match=f"(?s){message}") as error:
        program(Graph(function), {0: {0: "n"}}, flow.zeros(4, 3))
    assert "structure" in message or re.search(r"at test_dynamic.py:\d+", error.value.where)


@pytest.mark.parametrize("n", [1, 4])
def test_axes_that_vanish_at_size_1(n):
    with pytest.raises(
        flow.GraphError,
        match=r"(?s)result 0 of build has another number of axes at a size of 1.*"
        r"n=[24]  \[[24], 3\].*n=1  \[3\].*squeeze",
    ):
        program(Graph(lambda x: x.squeeze()), {0: {0: "n"}}, flow.zeros(n, 1, 3))


def test_build_that_accepts_one_size():
    def build(x, y):
        return x + y

    with pytest.raises(
        flow.GraphError,
        match=r"(?s)fails at other sizes.*'n'.*n=8 .*axis 0 of more\[0\] has that size "
        r"too: add 'more\[0\]': \{0: 'n'\}",
    ):
        program(Graph(build), {"x": {0: "n"}}, flow.zeros(4, 3), flow.zeros(4, 3))

    def strict(x):
        if x.size(0) != 4:
            raise ValueError("only four")
        return x

    with pytest.raises(flow.GraphError, match="(?s)n=8 +ValueError: only four.*and at +n=2; n=3"):
        program(Graph(strict), {"x": {0: "n"}}, flow.zeros(4, 3))


def test_refused_sizes_are_excluded(check):
    found = check(Graph(lambda x: x.view(x.size(0) // 2 * 2, 3)), BATCH, *[[flow.randn(n, 3)] for n in (8, 2, 4, 14)])
    assert attrs_of(found) == [("reshape", "shape", "batch, 3")]


# ---- saved and loaded ------------------------------------------------------------------------------------------------


def test_loaded_graph_refuses_other_sizes(tmp_path):
    loaded = saved(
        Graph(lambda x, y: x.sum(1) + y),
        tmp_path / "saved",
        {"x": {0: "n"}, "more[0]": {0: "n"}},
        flow.zeros(4, 3),
        flow.zeros(4),
    )
    with pytest.raises(flow.ShapeError, match=r"(?s)'n' has one size.*5 \(axis 0 of x\) and 6 \(axis 0 of more\[0\]\)"):
        loaded(flow.zeros(5, 3), flow.zeros(6))
    with pytest.raises(flow.ShapeError, match=r"(?s)'n' has size 0.*float32\[0, 3\]"):
        loaded(flow.zeros(0, 3), flow.zeros(0))
    with pytest.raises(flow.GraphError, match=r"(?s)x float32\[n, 3\].*float32\[4, 2\]"):
        loaded(flow.zeros(4, 2), flow.zeros(4))
    assert loaded(flow.ones(2, 3), flow.zeros(2)).tolist() == [3, 3]


def test_impossible_shape_at_these_sizes(tmp_path):
    graph = Graph(lambda x: x.sum() + flow.zeros(x.size(0) - 2) + flow.tensor([1] * (x.size(0) - 2)))
    loaded = saved(graph, tmp_path / "saved", {"x": {0: "n"}}, flow.zeros(4))
    assert loaded(flow.ones(3)).tolist() == [4]
    with pytest.raises(flow.ShapeError, match=r"(?s)would have the shape \(-1,\).*n +1"):
        loaded(flow.ones(1))


# ---- a file is not trusted -------------------------------------------------------------------------------------------


FAR = {"follows": [[2**60, ["n", "n", "n"]]]}
LONG = {"follows": [[1, ["n"]], [-9, []]]}


@pytest.mark.parametrize(("path", "value"), [
    (("axes",), {}), (("axes",), {"m": [[0, 0]]}), (("axes", "n"), [[0, 1]]), (("axes", "n"), [[1, 0]]),
    (("axes", "n"), []), (("axes", "n"), [[0, 0, 0]]), (("axes", "n"), [[-1, 0]]), (("axes", "b"), [[0, 5]]),
    (("axes",), {name: [[0, 0]] for name in "nabc"}),
    (("states", 0, "filled", "shape"), []), (("states", 0, "filled", "shape"), [3]),
    (("states", 0, "filled", "shape"), [LONG]), (("states", 0, "filled", "shape"), [FAR]),
    (("states", 0, "filled", "shape", 0, "follows", 0, 1), ["m"]), (("states", 0, "filled", "step"), 3),
    (("states", 0, "filled", "step"), 10**30), (("states", 0, "filled", "first"), 10**30),
    (("states", 0, "filled", "first"), FAR), (("states", 0, "filled", "first"), {"complex": [1.0, 2.0]}),
    (("states", 0, "filled", "first"), None), (("states", 0, "filled"), {}),
    (("nodes", 0, "attrs", "shape", 0, "follows"), [[1, ["m"]]]), (("nodes", 0, "attrs", "shape", 0), FAR),
    (("nodes", 0, "attrs", "shape", 0), {"follows": [[2, ["n"]]]}), (("nodes", 0, "attrs", "shape", 0), {"follows": 1}),
    (("nodes", 0, "attrs", "shape", 0, "follows"), [[1.5, ["n"]]]), (("nodes", 0, "attrs", "shape", 0), LONG),
    (("nodes", 1, "in", 1), {"follows": [[1, ["m"]]]}), (("nodes", 1, "in", 1), FAR),
    (("nodes", 1, "in", 1), {"ratio": [1.0, FAR, LONG]}), (("nodes", 1, "in", 1), {"ratio": [1.0, LONG]}),
])  # fmt: skip
def test_hostile_axes(path, value):
    graph = Graph(lambda x: flow.zeros(x.size(0), 2).sum(1) + x * x.size(0) + flow.arange(x.size(0)))
    graph(flow.zeros(4))
    data, arrays = to_data(program_of(graph, {"x": {0: "n"}}))
    rows = data["nodes"]
    scaled = next(i for i, row in enumerate(rows) if row["op"] == "mul")
    path = tuple(scaled if path[0] == "nodes" and k == 1 and key == 1 else key for k, key in enumerate(path))
    assert rows[0]["op"] == "full" and data["states"][0]["filled"]["step"] == 1
    document.from_data(data, arrays)
    with pytest.raises(Malformed):
        document.from_data(changed(data, path, value), arrays)
