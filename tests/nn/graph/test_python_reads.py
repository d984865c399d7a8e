"""Values that `build` reads in Python, from tensors (`item()`) and NumPy arrays: a graph sees later changes, or
refuses.
"""

import copy

import numpy as np
import pytest
from graph_models import Predict, Step

import minflow as flow
from minflow import nn
from minflow.core.base.errors import TraceError

X = np.arange(6, dtype="float32").reshape(2, 3)
TEN = 10 * np.arange(9, dtype="float32")

READS = {  # (of a float buffer n of one element and an integer buffer k, both with equal writes) -> a number
    "item": lambda m: m.n.item(),
    "float": lambda m: float(m.n),
    "int": lambda m: int(m.n),
    "complex": lambda m: complex(m.n).real,
    "bool": lambda m: 1.0 if m.n else 0.0,
    "tolist": lambda m: m.n.tolist()[0],
    "numpy": lambda m: float(m.n.numpy()[0]),
    "asarray": lambda m: float(np.asarray(m.n)[0]),
    "format": lambda m: float(f"{m.n:.1f}"),
    "index": lambda m: float(TEN[m.k]),
    "range": lambda m: float(len(range(m.k))),
    "an index of a tensor": lambda m: flow.tensor(TEN)[m.k],
    "a slice": lambda m: flow.tensor(TEN)[: m.k + 0 if m.k.array is None else int(m.k)].sum(),
    "narrow": lambda m: flow.tensor(TEN).narrow(0, m.k, 1).sum(),
    "full": lambda m: flow.full((3,), m.k),
    "in a list": lambda m: flow.tensor([m.n, m.n])[0],
    "deepcopy": lambda m: copy.deepcopy(m.n),
}


class Counts(nn.Module):
    """read: an entry of READS.  order: reads and writes n and k in this order, "rw"; only reads, "r"."""

    def __init__(self, read, order):
        super().__init__()
        self.read, self.order = read, order
        self.register_buffer("n", flow.zeros(1))
        self.register_buffer("k", flow.tensor(0))

    def write(self):
        self.n.add_(1)
        self.k.add_(1)

    def forward(self, x):
        for letter in self.order:
            if letter == "w":
                self.write()
            else:
                found = self.read(self)
        return x * found


@pytest.mark.parametrize("name", list(READS))
@pytest.mark.parametrize("order", ["wr", "rw"])
def test_values_written_by_the_graph_are_refused(name, order):
    module = Counts(READS[name], order)
    with pytest.raises(TraceError, match=r"\(\) reads the elements of a tensor that the graph writes") as caught:
        Predict(module)(flow.tensor(X))
    error = caught.value
    kind = {"model.n": "float32[1]", "model.k": "int64[]"}
    (key,) = error.values.keys() & kind
    assert error.values[key] == kind[key]
    line = Counts.write.__code__.co_firstlineno + (1 if key == "model.n" else 2)
    assert error.values["written"] == f"at test_python_reads.py:{line}"
    assert "test_python_reads.py:" in error.where and "flow.where" in error.hint
    assert not module.n.item()  # nothing was written


@pytest.mark.parametrize("name", list(READS))
def test_values_written_between_calls_are_seen(name):
    eager, module, x = Counts(READS[name], "r"), Counts(READS[name], "r"), flow.tensor(X)
    graph = Predict(module)
    for _ in range(4):
        eager.write(), module.write()
        assert np.array_equal(graph(x).numpy(), eager(x).numpy())
    plans = len(graph._plans)
    assert np.array_equal(graph(x).numpy(), eager(x).numpy()) and len(graph._plans) == plans


def test_each_value_has_a_plan_and_the_reason_is_reported():
    module, x = Counts(READS["item"], "r"), flow.tensor(X)
    graph = Predict(module)
    for i in range(10):
        module.n.fill_(i % 2)
        assert np.array_equal(graph(x).numpy(), X * (i % 2))
    assert len(graph._plans) == 2 and graph._history[1].reason == (("model.n", "0.0", "1.0"),)


def test_write_to_any_alias_is_seen():
    class Views(Counts):
        def write(self):
            flow.as_tensor(self.n)[0].data.view(1).mul_(2)

    with pytest.raises(TraceError, match="item.* reads the elements"):
        Predict(Views(READS["item"], "wr"))(flow.tensor(X))


def test_parameters_updated_by_the_optimizer_cannot_be_read():
    m = nn.Linear(3, 1)
    step = Step(m, flow.optim.SGD(m.parameters(), 0.1), lambda x: (m(x) * m.bias.item()).sum())
    with pytest.raises(TraceError, match="item.* reads the elements") as caught:
        step(flow.tensor(X))
    assert caught.value.values["model.bias"].startswith("float32[1]")


def test_tensor_written_in_build_prints_as_symbolic():
    class Printing(Counts):
        def forward(self, x):
            before = str(self.n)
            self.n.add_(1)
            self.texts = before, str(self.n)
            return x + self.n

    printing = Printing(None, "")
    Predict(printing)(flow.tensor(X))
    texts = printing.texts
    assert texts[0] == "tensor([0.], dtype=minflow.float32)" and "is_lazy='True'" in texts[1]


# ---- NumPy arrays ----------------------------------------------------------------------------------------------------

USES = {
    "x + a": lambda x, a: x + a,
    "x + a * 2": lambda x, a: x + a * 2,
    "x + from_numpy": lambda x, a: x + flow.from_numpy(a),
    "x + as_tensor": lambda x, a: x + flow.as_tensor(a),
    "x + tensor": lambda x, a: x + flow.tensor(a),
    "a number of it": lambda x, a: x * float(a.reshape(-1)[1]),
    "a strided part": lambda x, a: x @ flow.from_numpy(a[..., ::-1].copy()[..., ::1]).t() if a.ndim == 2 else x + a,
}


def holder(place, use, a):
    """A module that holds the array in this place."""

    class Holds(nn.Module):
        def __init__(self):
            super().__init__()
            self.kept = {"attribute": a, "list": [a], "dict": {"a": (a,)}}.get(place)

        def forward(self, x):
            if place == "attribute":
                return use(x, self.kept)
            if place == "list":
                return use(x, self.kept[0])
            if place == "dict":
                return use(x, self.kept["a"][0])
            return use(x, a)

    return Holds()


@pytest.mark.parametrize("place", ["attribute", "list", "dict", "closure"])
@pytest.mark.parametrize("name", list(USES))
def test_array_is_read_at_each_call(name, place, recwarn):
    a = np.ones((2, 3), "float32")
    module, x = holder(place, USES[name], a), flow.tensor(X)
    graph = Predict(module)
    for i in range(3):
        a += i
        assert np.array_equal(graph(x).numpy(), module(x).numpy())
    assert not [w for w in recwarn if "NumPy" in str(w.message)]


@pytest.mark.parametrize("name", list(USES)[:-1])
def test_large_array_is_frozen_with_a_warning(name):
    a = np.ones((200, 100), "float32")
    module, x = holder("attribute", USES[name], a), flow.ones(200, 100)
    graph, first = Predict(module), module(x).numpy().copy()
    with pytest.warns(flow.MinflowWarning, match=r"kept \(a NumPy array float32\[200, 100\]\).*a later change is not"):
        graph(x)
    a += 1
    assert np.array_equal(graph(x).numpy(), first)


def test_copied_array_keeps_its_strides():
    from minflow.core.arrays import copy_keeping_strides

    whole = np.arange(24.0).reshape(2, 3, 4)
    for a in (whole, whole[:, ::2], whole.T, whole[::-1, :, 1::2], np.broadcast_to(whole[0], (5, 3, 4)), whole[:0]):
        copy_ = copy_keeping_strides(a)
        assert np.array_equal(copy_, a) and not np.shares_memory(copy_, a)
        assert not a.size or copy_.strides == a.strides


# ---- tensors created in build ----------------------------------------------------------------------------------------


class Lazily(nn.Module):
    """Create a tensor in the first call, and write it in every call."""

    def __init__(self, make):
        super().__init__()
        self.n, self.make, self.like = None, make, nn.Linear(3, 3)

    def forward(self, x):
        if self.n is None:
            self.n = self.make(self)
        n = self.n["n"] if isinstance(self.n, dict) else self.n.bias if isinstance(self.n, nn.Module) else self.n
        with flow.no_grad():
            n.add_(1)
        return x + n


MAKES = {
    "tensor": lambda m: flow.tensor([0.0]),
    "in a dict": lambda m: {"n": flow.tensor([0.0])},
    "from_numpy": lambda m: flow.from_numpy(np.zeros(1, "float32")),
}


@pytest.mark.parametrize("name", list(MAKES))
def test_tensor_created_stored_and_written_in_build_is_refused(name):
    with pytest.raises(TraceError, match=r"build makes the tensor in model.n and writes it: each call would") as caught:
        Predict(Lazily(MAKES[name]))(flow.tensor(X))
    assert "register_buffer in __init__" in caught.value.hint
    line = Lazily.forward.__code__.co_firstlineno + 2
    assert caught.value.where.startswith(f"at test_python_reads.py:{line}") or name == "in a dict"


def test_module_copied_in_build_works():
    flow.manual_seed(1)
    eager = Lazily(lambda m: copy.deepcopy(m.like))
    module = copy.deepcopy(eager)
    graph, x = Predict(module), flow.tensor(X)
    for _ in range(3):
        assert np.array_equal(graph(x).numpy(), eager(x).detach().numpy())


def test_constant_left_by_build_is_read_only():
    class Keeps(nn.Module):
        def forward(self, x):
            self.table = flow.tensor([1.0, 2.0, 3.0])
            return x * self.table

    module = Keeps()
    graph = Predict(module)
    assert np.array_equal(graph(flow.tensor(X)).numpy(), X * [1, 2, 3])
    with pytest.raises(flow.ShapeError, match="read-only"):
        module.table.add_(1)
