"""Classes of tensors that programs define: what is kept, what is refused, and that other tensors pay nothing.

`test_subclasses_torch.py` compares the classes of results and the order of calls with PyTorch.
"""

import copy
import io
import pickle
import subprocess
import sys
import threading

import pytest

import minflow as flow
from minflow import DTypeError, MissingNameError, TraceError, nn
from minflow.utils.checkpoint import checkpoint
from minflow.utils.data import DataLoader, TensorDataset
from tests.own_classes import own_classes  # noqa: F401


@pytest.fixture(autouse=True)
def classes(own_classes):  # noqa: F811
    global Meters  # where pickle finds it

    class Meters(flow.Tensor):
        """The default `__torch_function__`."""

    Meters.__qualname__ = "Meters"


def meters(*elements):
    return flow.tensor(elements or [1.0, 2.0]).as_subclass(Meters)


def test_before_the_first_class_nothing_is_prepared():
    program = """
import minflow as flow
from minflow import nn
from minflow.core import overrides
from minflow.core.eager import Eager
run = Eager.run
flow.sparse_coo_tensor([[0], [1]], [2.0], (2, 2)), nn.LazyLinear(2)(flow.ones(1, 3))
assert not overrides.SUBCLASSES and Eager.run is run
class Own(flow.Tensor): pass
assert overrides.SUBCLASSES == [Own] and Eager.run is not run
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True)


def test_tensor_makes_a_plain_tensor():
    x = meters()
    copied = flow.tensor(x)
    assert type(copied) is flow.Tensor and type(x + copied) is Meters and copied.tolist() == [1, 2]


def test_copies_and_pickles_keep_the_class():
    x = meters()
    x.unit = "m"
    file = io.BytesIO()
    flow.save({"x": x}, file)
    file.seek(0)
    loaded = flow.load(file, weights_only=False)["x"]
    for twin in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x)), loaded):
        assert type(twin) is Meters and twin.unit == "m" and twin.tolist() == [1, 2]
    file.seek(0)
    with pytest.raises(flow.CheckpointError, match="whole objects"):
        flow.load(file)


def test_text_has_the_class():
    assert repr(meters()).startswith("Meters([1., 2.]") and repr(flow.ones(1)).startswith("tensor(")
    assert "\n        [2.]" in repr(meters([1.0], [2.0]))


def test_views_share_memory_and_gradients():
    plain = flow.zeros(2)
    view = plain.as_subclass(Meters)
    view += 1
    plain[0] = 5
    assert type(view) is Meters and view.tolist() == plain.tolist() == [5, 1]
    w = meters().requires_grad_()
    optimizer = flow.optim.Adam([w], lr=0.5)
    (w * 2).sum().backward()
    optimizer.step()
    assert type(w) is Meters and w.is_leaf and type(w.grad) is flow.Tensor and w.tolist() == [0.5, 1.5]


@pytest.mark.parametrize(
    "layer, size",
    [
        (nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()), (2, 3, 8, 8)),
        (nn.Sequential(nn.Linear(4, 3), nn.LayerNorm(3), nn.GELU(), nn.Dropout(0.5), nn.Softmax(-1)), (2, 4)),
        (nn.LSTM(4, 3), (2, 1, 4)),
        (nn.TransformerEncoderLayer(4, 2, 8), (2, 1, 4)),
    ],
)
def test_layers_keep_the_class(layer, size):
    y = layer(flow.rand(size).as_subclass(Meters))
    assert type(y[0] if isinstance(y, tuple) else y) is Meters
    assert {type(p) for p in layer.parameters()} == {nn.Parameter}


def test_data_keeps_the_class():
    rows = meters([1.0], [2.0])
    (batch,) = next(iter(DataLoader(TensorDataset(rows), batch_size=2)))
    assert type(batch) is type(next(iter(DataLoader(list(rows), batch_size=2)))) is Meters
    assert batch.tolist() == [[1], [2]]


def test_checkpoint_and_buffers():
    x = meters().requires_grad_()
    assert type(checkpoint(lambda a: a * 2, x, use_reentrant=False)) is Meters
    module = nn.Module()
    module.register_buffer("b", meters())
    assert type(module.double().b) is Meters and module.b.dtype is flow.float64


def test_parameters():
    with pytest.raises(DTypeError, match="of the class Meters") as caught:
        nn.Parameter(meters())
    assert "self.weight.as_subclass(Meters)" in caught.value.hint

    class Weight(Meters, nn.Parameter):
        pass

    layer = nn.Linear(2, 1, bias=False)
    layer.weight = Weight(flow.ones(1, 2))
    assert isinstance(next(iter(layer.parameters())), Meters)
    assert type(layer(flow.ones(1, 2))) is flow.Tensor  # `__torch_function__` is that of Parameter
    plain = nn.Parameter(flow.ones(1))
    assert type(plain * 2) is flow.Tensor

    class Scaled(nn.Parameter):
        def __init__(self, data, requires_grad=False):
            super().__init__()
            self.scale = 2

    made = Scaled([3.0], False)
    assert made.tolist() == [3] and made.scale == 2 and not made.requires_grad and type(made * 2) is flow.Tensor


class Graph(nn.Graph):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def build(self, x):
        return self.function(x)


@pytest.mark.parametrize(
    "function, x",
    [
        (lambda x: x * 2, lambda: meters()),
        (lambda x: x * meters(), lambda: flow.ones(2)),
        (lambda x: flow.cat([x, x.as_subclass(Meters)]), lambda: flow.ones(2)),
    ],
)
def test_graphs_refuse_the_class(function, x):
    with pytest.raises(TraceError, match="graphs compute plain tensors, and this tensor is of the class Meters") as e:
        Graph(function)(x())
    assert "as_subclass(flow.Tensor)" in e.value.hint and "float32[2]" in str(e.value)


def test_a_graph_that_was_compiled_for_plain_tensors_refuses_the_class():
    graph = Graph(lambda x: x * 2)
    assert graph(flow.ones(2)).tolist() == [2, 2]
    with pytest.raises(TraceError, match="class Meters"):
        graph(meters())
    assert graph(meters().as_subclass(flow.Tensor)).as_subclass(Meters).tolist() == [2, 4]


def test_all_refuse():
    class Refusing(flow.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    x = flow.ones(2).as_subclass(Refusing)
    for run, name in [
        (lambda: flow.exp(x), "exp"),
        (lambda: flow.cat([x, x]), "cat"),
        (lambda: x.sum(), "sum"),
        (lambda: x[0], "__getitem__"),
        (lambda: x.shape, "__get__"),
        (lambda: nn.Linear(2, 2)(x), "linear"),
        (lambda: repr(x), "__repr__"),
    ]:
        with pytest.raises(DTypeError, match=rf"no implementation of {name} for \['Refusing'\]") as caught:
            run()
        assert "super().__torch_function__" in caught.value.hint
    with pytest.raises(TypeError, match="unsupported operand"):
        x + 1


def test_what_needs_a_dispatcher_is_refused():
    class Dispatching(flow.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return func(*args)

    data = flow.ones(2)
    for make in (
        lambda: Dispatching([1.0]),
        lambda: data.as_subclass(Dispatching),
        lambda: flow.Tensor._make_subclass(Dispatching, data),
        lambda: flow.Tensor._make_wrapper_subclass(Dispatching, (2,)),
    ):
        with pytest.raises(MissingNameError, match="Dispatching") as caught:
            make()
        assert "__torch_function__" in caught.value.hint
    with pytest.raises(DTypeError, match="takes a class of tensors"):
        data.as_subclass(int)


def test_errors_are_those_of_plain_tensors():
    for run in (lambda x: x + flow.ones(5), lambda x: flow.sum(x, dimm=1), lambda x: x.reshape(7), lambda x: x.nothing):
        texts = []
        for x in (flow.ones(2, 3), flow.ones(2, 3).as_subclass(Meters)):
            with pytest.raises(Exception) as caught:
                run(x)
            texts.append(str(caught.value).replace("Meters", "Tensor"))
        assert texts[0] == texts[1]


def test_threads_and_blocks():
    x, seen = meters(), []
    with flow._C.DisableTorchFunctionSubclass():
        thread = threading.Thread(target=lambda: seen.append(type(x * 2)))
        thread.start()
        thread.join()
        assert type(x * 2) is flow.Tensor
    assert type(x * 2) is Meters and seen == [Meters]


def test_a_program_may_override_what_a_setter_calls():
    class Own(flow.Tensor):
        def requires_grad_(self, requires_grad=True):
            self.requires_grad = requires_grad
            return self

    assert flow.ones(1).as_subclass(Own).requires_grad_().requires_grad
