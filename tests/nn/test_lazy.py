"""Lazy layers: shapes from the first input, states before and after it, and refusals before it."""

import copy

import numpy as np
import pytest

import minflow as flow
from minflow import nn
from tests.graphs import Predict


def model():
    return nn.Sequential(nn.LazyConv2d(4, 3, groups=1), nn.LazyBatchNorm2d(), nn.ReLU(), nn.Flatten(), nn.LazyLinear(2))


X = np.random.default_rng(0).standard_normal((2, 3, 5, 5)).astype("float32")


def test_first_input_sets_the_shape():
    net, x = model(), flow.tensor(X)
    parameters = list(net.parameters())
    assert repr(net[0]) == "LazyConv2d(0, 4, kernel_size=(3, 3), stride=(1, 1))" and net[4].has_uninitialized_params()
    net(x)
    assert [type(m).__name__ for m in net] == ["Conv2d", "BatchNorm2d", "ReLU", "Flatten", "Linear"]
    assert net[0].in_channels == 3 and net[1].num_features == 4 and net[4].in_features == 36
    assert all(a is b and type(a) is nn.Parameter for a, b in zip(parameters, net.parameters(), strict=True))
    bound = 1 / np.sqrt(27)
    assert 0 < net[0].weight.abs().max().item() <= bound and net[1].running_var.shape == (4,)
    net(x).sum().backward()
    assert net[0].weight.grad.shape == (4, 3, 3, 3)


@pytest.mark.parametrize("change", [lambda m: m, copy.deepcopy, lambda m: m.double()])
def test_loaded_state_sets_the_shape(change):
    net, x = model(), flow.tensor(X)
    net(x)
    other = change(model())
    other.load_state_dict(net.state_dict())
    assert type(other[0]) is nn.Conv2d and list(other.state_dict()) == list(net.state_dict())
    dtype = other[0].weight.dtype
    assert np.allclose(other.eval()(x.to(dtype)).detach().numpy(), net.eval()(x).detach().numpy(), atol=1e-5)
    assert list(model().state_dict()) == list(net.state_dict())


def test_uninitialized_parameters_are_refused():
    net = model()
    assert nn.parameter.is_lazy(net[0].weight) and not nn.parameter.is_lazy(flow.ones(1))
    with pytest.raises(flow.MinflowError, match="UninitializedParameter has no shape yet"):
        net[0].weight.shape

    graph = Predict(net)
    with pytest.raises(flow.MinflowError, match="LazyConv2d is not initialized yet"):
        graph(flow.tensor(X))
    net(flow.tensor(X))
    assert graph(flow.tensor(X)).shape == (2, 2)


WRONG = [
    (lambda: nn.LazyConv2d(4, 3, groups=2)(flow.ones(1, 3, 4, 4)), "3 channels, which groups=2 does not divide"),
    (lambda: nn.LazyBatchNorm1d()(flow.ones(3)), "LazyBatchNorm1d: the input has 1 axes, so it has no channels"),
    (lambda: nn.LazyConv2d(4, 3)(flow.ones(3)), "LazyConv2d: the input has 1 axes, so it has no channels"),
]


@pytest.mark.parametrize(("call", "match"), WRONG)
def test_errors(call, match):
    with pytest.raises(flow.MinflowError, match=match):
        call()
