"""Objects whose special methods raise: a call reports our complete error instead of the object's."""

import contextlib
import io

import numpy as np
import pytest

import minflow as flow
from minflow import nn, optim
from minflow.core.base.errors import MinflowError, shown
from minflow.core.source_location import describe
from minflow.nn import functional as F
from tests.graphs import Predict


class OwnError(Exception):
    """An error that neither Python nor NumPy raises."""


def raising(name):
    """A method of this name that raises, in a file of the user."""
    names = {"OwnError": OwnError}
    exec(compile(f"def {name}(self, *args, **options): raise OwnError('from {name}')", "user.py", "exec"), names)
    return names[name]


def odd(name, base=object, *args):
    method = raising(name)
    members = {name: property(method) if name == "__class__" else method}
    if name == "__eq__":
        members["__hash__"] = object.__hash__
    return type("Odd", (base,), members)(*args)


# methods used by messages, type checks and conversions
METHODS = [
    "__repr__",
    "__str__",
    "__class__",
    "__getattr__",
    "__getattribute__",
    "__format__",
    "__hash__",
    "__len__",
    "__bool__",
    "__eq__",
]
CALLS = {
    "tensor": lambda o: flow.tensor(o),
    "tensor of a list": lambda o: flow.tensor([o]),
    "as_tensor": lambda o: flow.as_tensor(o),
    "add": lambda o: flow.add(x(), o),
    "add to it": lambda o: flow.add(o, x()),
    "x + o": lambda o: x() + o,
    "matmul": lambda o: flow.matmul(x(), o),
    "zeros": lambda o: flow.zeros(o),
    "zeros of a dtype": lambda o: flow.zeros(2, dtype=o),
    "device": lambda o: flow.zeros(2, device=o),
    "reshape": lambda o: x().reshape(o),
    "view": lambda o: x().view(o),
    "sum": lambda o: x().sum(o),
    "x[o]": lambda o: x()[o],
    "x[0] = o": lambda o: x().__setitem__(0, o),
    "cat": lambda o: flow.cat([x(), o]),
    "stack": lambda o: flow.stack([x(), o]),
    "where": lambda o: flow.where(o, x(), x()),
    "softmax": lambda o: F.softmax(x(), dim=o),
    "relu": lambda o: F.relu(o),
    "linear": lambda o: F.linear(x(), o),
    "conv2d": lambda o: F.conv2d(x(), o),
    "pad": lambda o: F.pad(x(), o),
    "interpolate": lambda o: F.interpolate(x().reshape(1, 1, 2, 2), size=o),
    "cross_entropy": lambda o: F.cross_entropy(x(), o),
    "reduction": lambda o: F.cross_entropy(x(), flow.tensor([0, 1]), reduction=o),
    "mse_loss": lambda o: F.mse_loss(x(), o),
    "Linear": lambda o: nn.Linear(o, 2),
    "Conv2d": lambda o: nn.Conv2d(1, 1, o),
    "Sequential": lambda o: nn.Sequential(o),
    "ModuleDict": lambda o: nn.ModuleDict({"a": o}),
    "Dropout": lambda o: nn.Dropout(o),
    "a call": lambda o: nn.Linear(2, 2)(o),
    "add_module": lambda o: nn.Module().add_module("a", o),
    "add_module by a name": lambda o: nn.Module().add_module(o, nn.ReLU()),
    "register_buffer": lambda o: nn.Module().register_buffer("b", o),
    "register_parameter": lambda o: nn.Module().register_parameter("b", o),
    "load_state_dict": lambda o: nn.Linear(2, 2).load_state_dict(o),
    "load_state_dict of it": lambda o: nn.Linear(2, 2).load_state_dict({"weight": o, "bias": o}),
    "train": lambda o: nn.Linear(2, 2).train(o),
    "to": lambda o: nn.Linear(2, 2).to(o),
    "x.to": lambda o: x().to(o),
    "SGD": lambda o: optim.SGD(o, lr=0.1),
    "SGD lr": lambda o: optim.SGD(nn.Linear(2, 2).parameters(), lr=o),
    "StepLR": lambda o: optim.lr_scheduler.StepLR(o, 1),
    "save": lambda o: flow.save({"a": o}, "never-written"),
    "load": lambda o: flow.load(o),
    "manual_seed": lambda o: flow.manual_seed(o),
    "arange": lambda o: flow.arange(o),
    "rand": lambda o: flow.rand(o),
    "einsum": lambda o: flow.einsum(o, x()),
    "TensorDataset": lambda o: flow.utils.data.TensorDataset(o),
    "Parameter": lambda o: nn.Parameter(o),
    "copy_": lambda o: x().copy_(o),
    "permute": lambda o: x().permute(o),
    "transpose": lambda o: x().transpose(o, 0),
    "gather": lambda o: x().gather(0, o),
    "embedding": lambda o: F.embedding(o, x()),
}


def x():
    return flow.ones(2, 2)


@pytest.mark.parametrize("method", METHODS)
def test_error_is_ours(method, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, call in CALLS.items():
        try:
            call(odd(method))
        except MinflowError as error:
            assert error.where and str(error), name
        except Exception as error:
            raise AssertionError(f"{name}: {type(error).__name__}: {error}") from error
        else:
            raise AssertionError(f"{name} takes it")


@pytest.mark.parametrize(("base", "value"), [(int, -5), (str, "zz"), (list, [1, "a"]), (float, -0.5)])
def test_scalars_and_strings_without_repr(base, value):
    calls = [
        lambda o: F.softmax(x(), dim=o),
        lambda o: flow.zeros(2, device=o),
        lambda o: nn.Linear(o, 2),
        lambda o: F.cross_entropy(x(), flow.tensor([0, 1]), reduction=o),
        lambda o: nn.Linear(2, 2).train(o),
    ]
    for call in calls:
        with pytest.raises(MinflowError) as caught:
            call(odd("__repr__", base, value))
        assert caught.value.what and caught.value.where and caught.value.hint


def test_error_text_mentions_the_failing_repr():
    assert shown(odd("__repr__")) == "<Odd, whose __repr__ raised OwnError>"
    assert describe(odd("__getattribute__")).startswith("<") and describe(odd("__class__"))
    with pytest.raises(MinflowError, match=r"(?s)an integer, not Odd.*<Odd, whose __repr__ raised OwnError>"):
        F.softmax(x(), dim=odd("__repr__"))
    with pytest.raises(MinflowError, match=r"Parameter: an argument cannot be read, its __getattr__ raised") as caught:
        nn.Parameter(odd("__getattr__"))
    assert isinstance(caught.value.__cause__, OwnError)


def test_errors_of_user_functions_propagate():
    """Errors of a dataset, a hook or a closure are not mistakes in a minflow call."""

    class Broken(flow.utils.data.Dataset):
        def __len__(self):
            return 2

        def __getitem__(self, i):
            raise OwnError("from the dataset")

    with pytest.raises(OwnError, match="from the dataset"):
        next(iter(flow.utils.data.DataLoader(Broken())))
    layer = nn.Linear(2, 2)
    layer.register_forward_hook(lambda *args: (_ for _ in ()).throw(OwnError("from the hook")))
    with pytest.raises(OwnError, match="from the hook"):
        layer(x())
    with pytest.raises(OwnError, match="from __array__"):
        flow.tensor(odd("__array__"))
    with pytest.raises(OwnError, match="from __call__"):
        nn.Linear(2, 2).apply(odd("__call__"))


@pytest.mark.parametrize("method", [m for m in METHODS if m not in ("__class__", "__getattribute__")])
def test_modules_with_hostile_attributes(method):
    """Try repr, show, summary, a call, a graph and a state of a module with such an attribute."""
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    model.odd = model[0].odd = odd(method)
    used(model)


@pytest.mark.parametrize("method", ["__repr__", "extra_repr", "__str__", "__len__", "__bool__", "__format__"])
def test_hostile_modules(method):
    kind = type("Odd", (nn.Linear,), {method: raising(method)})
    model = nn.Sequential(kind(2, 2), nn.ReLU())
    used(model)
    if method in ("__repr__", "extra_repr"):
        assert f"whose {method} raised OwnError" in repr(model)


def used(model):
    with contextlib.redirect_stdout(io.StringIO()):
        assert repr(model) and str(flow.summary(model, flow.ones(1, 2))) and model._repr_mimebundle_()
        flow.show(model)
    graph = Predict(model)
    np.testing.assert_array_equal(graph(flow.ones(1, 2)).numpy(), model(flow.ones(1, 2)).detach().numpy())
    assert str(graph) and len(model.state_dict()) == 2 and model.eval() is model
