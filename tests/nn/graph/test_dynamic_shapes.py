"""Graphs called with many sizes: build runs once or twice, and every result is that of a fresh graph."""

import copy
import functools
import io
import itertools
import json
import math
import pickle
import random
import re
import struct
import sys
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import minflow as flow
from minflow import nn
from minflow.models.gpt import GPT, GPTConfig
from minflow.vision.models import LeNet

pytestmark = pytest.mark.filterwarnings("ignore:.*build uses")


class FunctionGraph(nn.Graph):
    """A graph of one function, which counts its runs."""

    def __init__(self, function, **modules):
        super().__init__()
        self.function = function
        for name, module in modules.items():
            setattr(self, name, module)
        self.counter = [0]

    def build(self, *inputs):
        runs.append(self.name)
        return self.function(self, *inputs)


runs = []  # a name for each run of a build, without the silent one with symbols


def agree(function, sizes, make, builds=1, **modules):
    """Call one graph with all sizes, and a fresh one with each; return the graph."""
    graph = FunctionGraph(function, **modules)
    for n in sizes:
        inputs = make(n)
        flow.manual_seed(n)
        ours = graph(*inputs)
        flow.manual_seed(n)
        fresh = FunctionGraph(function, **modules)(*inputs)
        assert ours.spec is fresh.spec
        np.testing.assert_array_equal(ours.numpy(), fresh.numpy(), err_msg=f"at size {n}")
    assert runs.count(graph.name) == builds, graph.why()
    return graph


def vectors(n):
    return (flow.tensor(np.random.default_rng(n).standard_normal((n, 6)).astype("float32")),)


class Train(nn.Graph):
    def __init__(self, model, loss):
        super().__init__()
        self.model, self.loss = model, loss
        self.add_optimizer(flow.optim.Adam(model.parameters(), lr=0.01))

    def build(self, x, y):
        runs.append(self.name)
        loss = self.loss(self.model, x, y)
        loss.backward()
        return loss


def image_loss(model, x, y):
    return nn.functional.cross_entropy(model(x), y)


def text_loss(model, x, y):
    return model(x, y)[1]


def images(n):
    rng = np.random.default_rng(n)
    return flow.tensor(rng.random((n, 1, 28, 28), "float32")), flow.tensor(rng.integers(0, 10, n))


def texts(n):
    rng = np.random.default_rng(n)
    return flow.tensor(rng.integers(0, 17, (3, n))), flow.tensor(rng.integers(0, 17, (3, n)))


@pytest.mark.parametrize("case", ["lenet", "gpt"])
def test_training_with_forty_sizes(case):
    flow.manual_seed(0)
    if case == "lenet":
        model, loss, make = LeNet(), image_loss, images
    else:
        model, loss, make = GPT(GPTConfig(64, 17, 2, 2, 16, dropout=0.1)), text_loss, texts
    graph = Train(model, loss)
    sizes = [*range(3, 43)]
    np.random.default_rng(0).shuffle(sizes)
    for n in sizes:
        twin = Train(copy.deepcopy(model), loss)
        twin.load_state_dict(graph.state_dict())
        x, y = make(n)
        flow.manual_seed(n)
        ours = graph(x, y)
        flow.manual_seed(n)
        assert ours.item() == twin(x, y).item()
        for (name, p), q in zip(model.named_parameters(), twin.model.parameters()):
            np.testing.assert_array_equal(p.numpy(), q.numpy(), err_msg=f"{name} at size {n}")
    assert runs.count(graph.name) == 1, graph.why()


# ---- what build computes from a size ---------------------------------------------------------------------------------


def chunked(graph, x):
    return flow.stack([x[i : i + 4].sum() for i in range(0, x.shape[0], 4)]).sum()


def cached(graph, x):
    table = {5: 2.0, 9: 3.0}
    return x * table.get(x.shape[0], 1.0)


def printed(n):
    file = io.StringIO()
    print(n, file=file)
    return file.getvalue()


SIZES = [7, 5, 9, 12, 30, 2]
DERIVED = {
    "mean over the batch": lambda graph, x: x.sum(0) / x.shape[0],
    "len": lambda graph, x: x.sum(0) / len(x),
    "reciprocal": lambda graph, x: x * (1 / x.size(0)) + x.numel(),
    "root": lambda graph, x: x * x.shape[0] ** -0.5,
    "arange": lambda graph, x: x + flow.arange(x.shape[0]).unsqueeze(1),
    "arange of floats": lambda graph, x: x + flow.arange(1, x.shape[0] + 1, dtype=flow.float32)[:, None],
    "zeros": lambda graph, x: flow.cat([flow.zeros(x.shape[0], 2), x, flow.ones_like(x)], 1),
    "positions": lambda graph, x: x + flow.arange(40.0)[: x.shape[0], None],
    "reshape": lambda graph, x: x.reshape(2 * x.shape[0], -1).flatten().view(3, -1),
    "slice": lambda graph, x: x[1:] - x[:-1],
    "half": lambda graph, x: x[: x.shape[0] // 2].sum(0) * (-(-len(x) // 3)),
    "divmod": lambda graph, x: x * divmod(x.shape[0], 4)[1],
    "last": lambda graph, x: x[-1] + x[x.shape[0] - 1] + x.select(0, -1),
    "pad": lambda graph, x: nn.functional.pad(x, (1, 1, 2, 3)),
    "outer": lambda graph, x: (x @ x.T).softmax(-1).tril(),
    "std": lambda graph, x: (x - x.mean(0)) / x.std(0),
    "convolution": lambda graph, x: nn.functional.conv1d(x.T[None], flow.ones(2, 6, 2), stride=1, padding=1),
    "repeat": lambda graph, x: x.repeat(2, 1).roll(1, 0).flip(0),
    "random": lambda graph, x: nn.functional.dropout(x, 0.5) + flow.randn(x.shape[0], 6) + flow.rand_like(x),
    "same sizes": lambda graph, x: x if x.shape == (x * 2).shape else x.sum(),
    "expand": lambda graph, x: flow.ones(1, 6).expand(x.shape[0], -1) * x,
    "one hot": lambda graph, x: nn.functional.one_hot(x.argmax(1), 6).float() + x.sort(0).values,
    "unit axis": lambda graph, x: x.unsqueeze(0).expand(3, *x.shape).transpose(0, 1).contiguous().view(len(x), 18),
}


@pytest.mark.parametrize("case", DERIVED)
def test_sizes_follow(case):
    agree(DERIVED[case], SIZES, vectors)


RAN = {
    "branch": lambda graph, x: x * 2 if x.shape[0] > 8 else x * 3,
    "branch on a float": lambda graph, x: x * 2 if 1 / x.shape[0] < 0.15 else x * 3,
    "least of two": lambda graph, x: x[: min(len(x), 8)].sum(0),
    "loop": lambda graph, x: sum(x[i] * i for i in range(len(x))),
    "chunks": chunked,
    "table": cached,
    "rounds": lambda graph, x: functools.reduce(lambda y, _: y * 2, range(len(x) // 5), x),
    "rounded logarithm": lambda graph, x: x * int(math.log2(x.shape[0])),
    "logarithm": lambda graph, x: x * math.log2(x.shape[0]) + math.sqrt(2 * x.shape[0]),
    "part": lambda graph, x: x.topk(max(1, int(0.15 * x.shape[0])), 0).values,
    "float first": lambda graph, x: x * 2 if 1.0 / x.shape[0] < 0.13 else x * 3,
    "complex": lambda graph, x: x * 2 if (1j * x.shape[0]).imag > 8 else x * 3,
    "slice of a list": lambda graph, x: x * sum([2, 3, 4, 5, 6, 7, 8, 9, 10, 11][: x.shape[0]][8:]),
    "divisor": lambda graph, x: x * math.gcd(x.shape[0], 2),
    "old text": lambda graph, x: x * (2 if "%d" % x.shape[0] in ("9", "12") else 3),  # noqa: UP031
    "text of a shape": lambda graph, x: x * len(repr(x.shape)),
    "bytes": lambda graph, x: x * len(bytes(x.shape[0])) * len(hex(x.shape[0])),
    "islice": lambda graph, x: x * len([*itertools.islice(itertools.count(), x.shape[0])]),
    "packed": lambda graph, x: x * struct.pack("i", x.shape[0])[0],
    "stride": lambda graph, x: x * (2 if x.T.contiguous().stride()[0] > 8 else 3),
    "elements of a range": lambda graph, x: x * (2 if flow.arange(x.shape[0]).tolist()[-1] > 7 else 3),
    "list": lambda graph, x: x * sum([2] * x.shape[0]),
    "NumPy": lambda graph, x: x * float(np.floor(np.log2(x.shape[0]))),
    "array of NumPy": lambda graph, x: x + flow.tensor(np.arange(x.shape[0]))[:, None],
    "text": lambda graph, x: x * float(f"{x.shape[0]}.5"),
    "rounded": lambda graph, x: x * round(x.shape[0] / 3),
    "odd and even": lambda graph, x: x * (2 if x.shape[0] % 2 else 3),
    "iteration": lambda graph, x: flow.stack([row * 2 for row in x]),
    "list of sizes": lambda graph, x: x * [*range(40)][x.shape[0]],
    "split": lambda graph, x: flow.cat([part * i for i, part in enumerate(x.split(4))]),
    "squeeze": lambda graph, x: x[: len(x) - 1].squeeze().sum(),
    "isinstance": lambda graph, x: x * (1 if type(x.shape[0]) is int else 5),
    "truth": lambda graph, x: x * (2 if x.shape[0] - 9 else 3),
    "sorted": lambda graph, x: x * sorted([x.shape[0], 8])[0],
}


@pytest.mark.parametrize("case", RAN)
def test_results_are_right_where_build_must_run(case):
    function = RAN[case]
    graph = FunctionGraph(function)
    for n in (*SIZES, 8, 9, 10, 11, 31):
        inputs = vectors(n)
        np.testing.assert_array_equal(graph(*inputs).numpy(), FunctionGraph(function)(*inputs).numpy(), err_msg=f"{n}")
    notes = [plan.note for plan in graph.why().record.plans]
    assert any("build ran again: " in note and "test_dynamic_shapes.py:" in note for note in notes)


def test_a_guard_is_shown_as_the_program_would_write_it():
    graph = FunctionGraph(lambda graph, x: x * 2 if x.shape[0] > 8 else x * 3)
    for n in (4, 5, 9):
        graph(*vectors(n))
    note = graph.why().record.plans[-1].note
    assert note.startswith("build ran again: it depends on inputs[0].shape[0] <= 8, at test_dynamic_shapes.py:")


def test_a_view_that_exists_at_one_size_alone():
    model = nn.EmbeddingBag(5, 3, mode="max")
    graph = FunctionGraph(lambda graph, x: graph.model(x), model=model)
    for n in (7, 8, 16, 6):
        x = flow.tensor(np.random.default_rng(n).integers(0, 5, (n, 2)))
        np.testing.assert_array_equal(graph(x).numpy(), model(x).numpy())


LOG, TABLE, ROWS, THIS = [], {}, np.zeros(3, "int64"), sys.modules[__name__]
last = total = size = None


class Journal:
    entries = []
    size = None

    def __init__(self):
        self.lines = []
        self.size = 0


journal = Journal()


def counted(graph, x):
    """Changes what the program has outside of the graph, independent of sizes."""
    global total
    graph.calls = getattr(graph, "calls", 0) + 1
    graph.steps.append("step")
    total = (total or 0) + 1
    LOG.append(total)
    TABLE.setdefault("calls", []).append(1)
    ROWS[0] += 1
    journal.lines.append("step")
    Journal.entries.append(1)
    Journal.count = getattr(Journal, "count", 0) + 1
    return x * 2


@pytest.mark.filterwarnings("ignore:.*goes from")
def test_what_build_counts_outside_of_the_graph_counts_its_runs():
    graph = FunctionGraph(counted)
    graph.steps = []
    for n in (5, 9, 12, 7):
        assert (graph(*vectors(n)) == vectors(n)[0] * 2).all()
    assert "build did not run" in graph.why().record.plans[-1].note
    counts = graph.calls, graph.steps, total, LOG, TABLE, ROWS.tolist(), journal.lines, Journal.entries, Journal.count
    assert counts == (1, ["step"], 1, [1], {"calls": [1]}, [1, 0, 0], ["step"], [1], 1)


def set_global(n):
    global last
    last = n


def set_size(target, n):
    target.size = n


KEEPING = {
    "a list": lambda graph, x: LOG.append(x.shape),
    "a dict": lambda graph, x: TABLE.update(n=x.shape[0]),
    "a list inside": lambda graph, x: TABLE.setdefault("sizes", []).append(2 * x.shape[0]),
    "a global": lambda graph, x: set_global(x.shape[0]),
    "an attribute": lambda graph, x: setattr(graph, "rows", len(x)),
    "a list of the graph": lambda graph, x: graph.steps.append(x.shape[0] / 2),
    "an object": lambda graph, x: set_size(journal, x.shape[0]),
    "a class": lambda graph, x: set_size(Journal, x.shape[0]),
    "a function": lambda graph, x: set_size(set_size, x.shape[0]),
    "a module": lambda graph, x: set_size(THIS, x.shape[0]),
    "an array": lambda graph, x: ROWS.__setitem__(1, x.shape[0]),
    "text": lambda graph, x: LOG.append(f"{x.shape[0]} rows"),
    "a branch": lambda graph, x: TABLE.update(big=x.shape[0] > 8),
    "tensors": lambda graph, x: LOG.append(x * 2),
}


def kept_state(graph):
    """Sizes that the program keeps, as text."""
    state = graph.rows, graph.steps, last, LOG, TABLE, ROWS.tolist(), journal.size, Journal.size, set_size.size, size
    return re.sub(r"tensor\(.*?\)|<.*?>", "tensor", repr(state))


@pytest.mark.filterwarnings("ignore:.*goes from")
@pytest.mark.parametrize("case", KEEPING)
def test_sizes_that_build_keeps_are_those_of_each_call(case):
    states, keep = [], KEEPING[case]
    for shared in (True, False):
        set_global(None)
        LOG.clear(), TABLE.clear(), ROWS.fill(0)
        journal.size = Journal.size = set_size.size = THIS.size = None
        graph = FunctionGraph(lambda graph, x: keep(graph, x) or x * 2)
        graph.rows, graph.steps = 0, []
        states.append([])
        for n in (5, 9, 12, 7):
            one = graph if shared else FunctionGraph(graph.function)
            one.rows, one.steps = graph.rows, graph.steps
            one(*vectors(n))
            graph.rows = one.rows
            states[-1].append(kept_state(one))
    assert states[0] == states[1]


class Slotted:
    __slots__ = ("kept",)  # is not undone


def test_sizes_that_the_program_keeps_are_ints_afterwards():
    holder = Slotted()
    holder.kept = ()

    def function(graph, x):
        holder.kept += x.shape[0], 2 * x.shape[0] + 1
        return x * 2

    graph = FunctionGraph(function)
    for n in (5, 9):
        graph(*vectors(n))
    for size, n in zip(holder.kept[2:4], (9, 19), strict=True):
        assert isinstance(size, int) and pickle.loads(pickle.dumps(size)) == n and {n: 1}[size] and {size: 1}[n]
        assert [*range(size)] == [*range(n)] and np.zeros(size).shape == (n,) and f"{size} {size!r}" == f"{n} {n}"
        assert type(size + 1) is int and type(size / 2) is float and type(int(size)) is int
        x = flow.full((size, 2), size)
        assert type(x.shape[0]) is int and x.spec is flow.full((n, 2), n).spec
        np.testing.assert_array_equal((flow.ones(3) * size).clamp(max=size).numpy(), np.full(3, n, "float32"))
        later = FunctionGraph(lambda graph, x, size=size: x * (x.shape[0] - size) * (2 if x.shape[0] > size else 3))
        for m in (4, 30, 8, 10, 20):
            x = vectors(m)[0]
            np.testing.assert_array_equal(later(x).numpy(), (x * (m - n) * (2 if m > n else 3)).numpy())


def in_place(view):
    def function(graph, x):
        copied = x * 1
        view(copied).add_(1)
        return copied

    return function


@pytest.mark.parametrize("shape", [lambda n: (n, 6), lambda n: (6, n), lambda n: (3, -1), lambda n: (-1, 6)])
@pytest.mark.parametrize("sizes", [(5, 7, 6, 3, 12), (6, 12, 5, 3, 9)])
def test_a_reshape_is_a_view_at_some_sizes(shape, sizes):
    function = in_place(lambda x: x.T.reshape(shape(x.shape[0])))
    graph = FunctionGraph(function)
    for n in sizes:
        np.testing.assert_array_equal(graph(*vectors(n)).numpy(), FunctionGraph(function)(*vectors(n)).numpy())


REFUSED = {
    "JSON": lambda graph, x: x * len(json.dumps([*x.shape])),
    "fraction": lambda graph, x: x * (2 if Fraction(x.shape[0], 8) > 1 else 3),
    "decimal": lambda graph, x: x * (2 if Decimal(8) < x.shape[0] else 3),
    "generator": lambda graph, x: x * random.Random(x.shape[0]).randrange(2),
    "type of int": lambda graph, x: x * (2 if int.__gt__(x.shape[0], 8) else 3),
    "print": lambda graph, x: x * len(printed(x.shape[0])),
}


@pytest.mark.filterwarnings("ignore:.*print")
@pytest.mark.parametrize("case", REFUSED)
def test_results_are_right_where_c_code_needs_an_int(case):
    graph = FunctionGraph(REFUSED[case])
    for n in (*SIZES, 8, 9, 10, 11, 31):
        inputs = vectors(n)
        np.testing.assert_array_equal(
            graph(*inputs).numpy(), FunctionGraph(REFUSED[case])(*inputs).numpy(), err_msg=f"{n}"
        )
    assert any("build ran again" in plan.note for plan in graph.why().record.plans)


def test_a_mistake_at_one_size_is_the_programs_own():
    model = GPT(GPTConfig(16, 17, 1, 1, 8))
    graph = Train(model, text_loss)
    for n in (5, 9):
        graph(*texts(n))
    for n in (17, 30):
        with pytest.raises(flow.MinflowError, match=str(n)):
            graph(*texts(n))
    before = runs.count(graph.name)
    graph(*texts(12))
    assert runs.count(graph.name) == before and graph.why().record.plans[-1].note.startswith("build did not run")


def test_a_change_of_the_model_is_traced_anew():
    model = nn.Sequential(nn.Linear(6, 4), nn.Dropout(0.5), nn.BatchNorm1d(4))
    graph = FunctionGraph(lambda graph, x: graph.model(x), model=model)
    for n in (4, 5, 6):
        graph(*vectors(n))
    model.eval()
    for n in (7, 8, 9):
        np.testing.assert_array_equal(graph(*vectors(n)).numpy(), model(*vectors(n)).numpy())
    assert runs.count(graph.name) == 2
    model.train()
    graph(*vectors(10))
    model.eval()
    np.testing.assert_array_equal(graph(*vectors(11)).numpy(), model(*vectors(11)).numpy())
    assert runs.count(graph.name) == 2


def test_buffers_are_shared_by_all_sizes():
    flow.manual_seed(3)
    model = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4))
    twin = copy.deepcopy(model)
    graph = FunctionGraph(lambda graph, x: graph.model(x), model=model)
    for n in (4, 5, 6, 4, 7, 5):
        assert (graph(*vectors(n)) == twin(*vectors(n))).all()
        assert (model[1].running_var == twin[1].running_var).all()
    model[1].running_mean = flow.ones(4)
    twin[1].running_mean = flow.ones(4)
    for n in (6, 8):
        assert (graph(*vectors(n)) == twin(*vectors(n))).all()
        assert (model[1].running_mean == twin[1].running_mean).all()


def test_a_captured_tensor_with_another_storage_is_read_anew():
    table = flow.ones(6)
    graph = FunctionGraph(lambda graph, x: (x * table).sum(0))
    for n in (4, 5, 6):
        graph(*vectors(n))
    table.data = flow.full((6,), 3.0)
    for n in (7, 8, 4):
        np.testing.assert_array_equal(graph(*vectors(n)).numpy(), (vectors(n)[0] * 3).sum(0).numpy())


def test_several_axes():
    graph = FunctionGraph(lambda graph, x, y: (x @ y).mean(0) * y.shape[1])
    for n, m in ((3, 4), (5, 4), (5, 7), (8, 9), (2, 2), (6, 6), (9, 4)):
        x, y = vectors(n)[0], vectors(m)[0].T.contiguous()
        np.testing.assert_array_equal(graph(x, y).numpy(), ((x @ y).mean(0) * m).numpy())
    assert runs.count(graph.name) <= 3


def test_type_of_a_size_is_the_programs_own():
    class Typed(nn.Module):
        def forward(self, x):
            n = x.shape[0]
            return x * 2 if type(n) is int and n > 8 else x * 3

    class Placed(nn.Module):
        def forward(self, x):
            return x * 2 if x.device.type == "cpu" else x

    for module, reason in ((Typed(), "build ran again: build calls type()"), (Placed(), "build did not run")):
        graph = FunctionGraph(lambda graph, x: graph.model(x), model=module)
        for n in (4, 5, 30, 9, 8):
            assert (graph(*vectors(n)) == module(*vectors(n))).all()
        assert graph.why().record.plans[-1].note.startswith(reason)


@pytest.mark.filterwarnings("ignore:.*model.rows goes from")
def test_an_attribute_that_build_sets_is_set_for_each_size():
    class Notes(nn.Module):
        def forward(self, x):
            self.rows = x.shape[0]
            return x * 2

    model = Notes()
    graph = FunctionGraph(lambda graph, x: graph.model(x), model=model)
    for n in (3, 4, 5):
        graph(*vectors(n))
        assert model.rows == n and type(model.rows) is int
    assert "build sets model.rows" in graph.why().record.plans[-1].note


def test_views_of_a_derived_plan_have_its_sizes():
    model = nn.Sequential(nn.Linear(6, 4), nn.ReLU())
    graph = FunctionGraph(lambda graph, x: graph.model(x).sum(), model=model)
    for n in (3, 4, 5):
        graph(*vectors(n))
    fresh = FunctionGraph(lambda graph, x: graph.model(x).sum(), model=model)
    fresh(*vectors(5))
    assert repr(graph).replace(graph.name, "") == repr(fresh).replace(fresh.name, "")
    assert str(graph._last.traced[0].graph) == str(fresh._last.traced[0].graph).replace(fresh.name, graph.name)


def test_plans_and_history_are_bounded():
    graph = FunctionGraph(lambda graph, x: x * 2)
    for n in range(2, 1102):
        graph(flow.ones(n, 2))
    assert len(graph._plans) <= 64 and len(graph._history) == 1000 and runs.count(graph.name) == 1
    assert "1100 plans made" in repr(graph.why())
