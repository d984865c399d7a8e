"""Sequential, ModuleList, ModuleDict, ParameterList, ParameterDict."""

from collections import OrderedDict

import pytest

import minflow as flow
from minflow import nn


def test_sequential():
    a, b, c = nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)
    net = nn.Sequential(a, b)
    net.append(c)
    assert len(net) == 3 and net[0] is a and net[-1] is c and list(net) == [a, b, c] and b in net
    assert isinstance(net[:2], nn.Sequential) and len(net[:2]) == 2
    x = flow.ones(4, 2)
    assert net(x).tolist() == c(b(a(x))).tolist()
    net[1] = nn.Tanh()
    assert repr(net[1]) == "Tanh()"
    del net[0]
    assert [name for name, _ in net.named_children()] == ["0", "1"]
    assert net.pop(-1) is c and len(net) == 1
    net.insert(0, a)
    assert net[0] is a and len(net) == 2
    assert len(net + nn.Sequential(c)) == 3
    with pytest.raises(IndexError, match="7"):
        net[7]


def test_sequential_with_names():
    net = nn.Sequential(OrderedDict(first=nn.Linear(2, 2), act=nn.ReLU()))
    assert [name for name, _ in net.named_children()] == ["first", "act"] and net.first is net[0]
    assert [name for name, _ in net[:1].named_children()] == ["first"]


def test_module_list():
    layers = nn.ModuleList([nn.Linear(2, 2) for _ in range(3)])
    layers += [nn.ReLU()]
    layers.extend([nn.ReLU()])
    assert len(layers) == 5 and len(layers[1:3]) == 2 and isinstance(layers[1:3], nn.ModuleList)
    assert len(list(layers.parameters())) == 6
    assert repr(layers) == (
        "ModuleList(\n  (0-2): 3 x Linear(in_features=2, out_features=2, bias=True)\n  (3-4): 2 x ReLU()\n)"
    )
    layers.insert(0, nn.Tanh())
    assert repr(layers[0]) == "Tanh()" and len(layers + [nn.Tanh()]) == 7  # noqa: RUF005
    del layers[0:2]
    assert len(layers) == 4 and isinstance(layers[0], nn.Linear)


def test_module_dict():
    layers = nn.ModuleDict({"a": nn.Linear(2, 2)})
    layers["b"] = nn.ReLU()
    layers.update([("c", nn.Tanh())])
    assert list(layers) == ["a", "b", "c"] == list(layers.keys()) and "b" in layers and len(layers) == 3
    assert [type(m).__name__ for m in layers.values()] == ["Linear", "ReLU", "Tanh"]
    assert isinstance(layers.pop("c"), nn.Tanh) and len(list(layers.items())) == 2
    del layers["a"]
    layers.clear()
    assert not len(layers)


def test_parameter_list():
    weights = nn.ParameterList([flow.ones(2), nn.Parameter(flow.zeros(3))])
    weights.append(flow.ones(1))
    weights += [flow.ones(4)]
    assert len(weights) == 4 and len(list(weights.parameters())) == 4 and isinstance(weights[0], nn.Parameter)
    assert len(weights[1:3]) == 2 and [len(w) for w in weights] == [2, 3, 1, 4]
    weights[0] = flow.ones(5)
    assert weights[0].shape == (5,) and weights[-1].shape == (4,)
    assert "(0): Parameter containing: [minflow.float32 of size 5]" in repr(weights)
    with pytest.raises(IndexError, match="4"):
        weights[4]


def test_parameter_dict():
    weights = nn.ParameterDict({"a": flow.ones(2)})
    weights["b"] = nn.Parameter(flow.zeros(3))
    assert list(weights) == ["a", "b"] and len(weights) == 2 and "a" in weights
    assert [name for name, _ in weights.named_parameters()] == ["a", "b"]
    assert weights.get("c") is None and weights.pop("a").shape == (2,)
    del weights["b"]
    assert not len(weights) and not list(weights.items())
